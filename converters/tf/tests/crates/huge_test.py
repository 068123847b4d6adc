"""A model whose weights have more than 2 GiB, from the file to the results."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from converters.tf import tf2rust
from converters.tf.emit.options import Options, WeightsMode
from converters.tf.tests.crates.crates import compile_and_test, must, program, rustfmt, write
from converters.tf.tests.crates.mapped_program import SOURCES, mapped_program

_LAYERS, _UNITS = 6, 10_000
# Rows of a matrix that are written at a time.
_ROWS = 500


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An ONNX file with dense layers, whose weights are beside it."""
    folder = tmp_path_factory.mktemp("huge")
    nodes, weights, x = [], [], "x"
    with (folder / "weights.bin").open("wb") as file:
        for layer in range(_LAYERS):
            name, at = f"w{layer}", file.tell()
            for first in range(0, _UNITS, _ROWS):
                numbers = np.arange(first * _UNITS, (first + _ROWS) * _UNITS, dtype=np.uint32)
                mixed = numbers * np.uint32(2654435761 + 2 * layer) >> np.uint32(8)
                file.write(((mixed / np.float32(2**23) - 1) / 100).astype("<f4").tobytes())
            weight = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[_UNITS, _UNITS])
            weight.data_location = TensorProto.EXTERNAL
            places = {"location": "weights.bin", "offset": at, "length": 4 * _UNITS**2}
            for key, value in places.items():
                weight.external_data.add(key=key, value=str(value))
            weights.append(weight)
            output = "y" if layer + 1 == _LAYERS else f"y{layer}"
            nodes.append(helper.make_node("MatMul", [x, name], [output], name=f"dense{layer}"))
            x = output
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", _UNITS]) for n in ("x", x)
    ]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    yield folder / "model.onnx"
    shutil.rmtree(folder)


def _most() -> int:
    """Returns the bytes that the process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize("pack", [False, True])
def test_weights_of_more_than_2_gib(pack: bool, model: Path, tmp_path: Path) -> None:
    size = _LAYERS * _UNITS**2 * 4
    assert size > 1 << 31
    options = Options("huge", model.name, weights=WeightsMode.FILE, pack=pack)
    before = _most()
    request = tf2rust.Request(model, options, rustfmt=rustfmt(), crate_only=True)
    files = tf2rust.run(request).files
    # The model's weights, those of the crate, and some of a layer in float64.
    assert _most() - before < 2.6 * size
    part = "rust_generated_code/"
    write({path.removeprefix(part): content for path, content in files.items()}, tmp_path)
    del files
    flags = ["-Cdebug-assertions=off", "-Copt-level=2"]
    assert "test result: ok" in compile_and_test(tmp_path, "huge", flags)
    (tmp_path / "mapped.rs").write_text(mapped_program("huge", "Huge", "y", _UNITS, 1))
    library = f"--extern=huge={tmp_path}/libhuge.rlib"
    command = [program("RUSTC", "rustc"), "--edition=2024", library, "mapped.rs", "-o", "mapped"]
    must(command, tmp_path)
    sums = set()
    for source in SOURCES:
        made, called, found = map(int, must(["./mapped", source], tmp_path).split())
        sums.add(found)
        if not pack and source != "file":
            assert made < 0.01 * size
            assert called < 0.05 * size
    assert len(sums) == 1
    shutil.rmtree(tmp_path)
