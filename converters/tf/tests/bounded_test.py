"""Crates without std whose open dimensions have a bound, at several sizes of one crate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import keras
import numpy as np
import pytest

from converters.tf import ir
from converters.tf.cli.arguments import parse_most
from converters.tf.emit.crate import Features, crate_files
from converters.tf.emit.model import model_text
from converters.tf.emit.npz import npz_bytes
from converters.tf.emit.options import Options, Profile, RuntimeMode
from converters.tf.errors import FeaturesError
from converters.tf.ir.expressions import size_at
from converters.tf.ir.fixed import open_dims
from converters.tf.ir.sizes import numbers
from converters.tf.load.model import LoadOptions, load, trace_model
from converters.tf.load.shapes import FixedShapes
from converters.tf.tests.crates.crates import compile_and_test, runtime_flags, rustfmt, write
from converters.tf.tests.open_models import (
    decoder,
    encoder,
    gru,
    lstm,
    small_net,
    strided,
    text_cnn,
    two_inputs,
    u_net,
)
from converters.tf.tf2rust import Request, graph_of
from converters.tf.tf2rust import run as converted
from tools.codegen.conversion import UsageError

_MOST = 40
# A short call comes after the longest one, which leaves its memory behind.
_LENGTHS = (_MOST, 1, 7)
_HEAD = """
#[test]
fn calls_of_several_sizes() {
    let model = TYPE::new().unwrap();
    let mut workspace = Box::new(Workspace::new());
    let mut outputs = Box::new(Outputs::new());
    assert_eq!(Workspace::SIZE, size_of_val(&*workspace));
"""


def _crate(
    model: keras.Model,
    folder: Path,
    calls: Sequence[tuple[int, ...]],
    wrong: str = "",
    shapes: Mapping[str, tuple[int | None, ...]] = MappingProxyType({}),
) -> None:
    """Converts, compiles and runs a crate at several sizes, of which the first one is its bound.

    Args:
        model: The model.
        folder: Where to write.
        calls: What the open dimensions are in each call.
        wrong: Statements about inputs that are refused; `@0` is the first input.
        shapes: As for `--input_shape`.
    """
    loaded = trace_model(model, FixedShapes(shapes, 1))
    graph = graph_of(loaded)
    names = open_dims(graph)
    cases = []
    for call in calls:
        given = _inputs(graph, dict(zip(names, call, strict=True)))
        found = loaded.predict(given)
        cases.append(Features(given, {p.name: found[p.name] for p in graph.outputs}))
    most = tuple(zip(names, calls[0], strict=True))
    options = Options(
        "net", "open_models.py", profile=Profile.NO_STD, runtime=RuntimeMode.CRATE, most=most
    )
    text = model_text(graph, options)
    files = crate_files(text, graph, options, cases[-1], rustfmt())
    lines = [_HEAD.replace("TYPE", text.type)]
    for number, case in enumerate(cases):
        path = folder / f"call_{number}.npz"
        arrays = {f"in_{i}": data for i, data in enumerate(case.inputs.values())}
        arrays |= {f"out_{i}": data for i, data in enumerate(case.outputs.values())}
        path.write_bytes(npz_bytes(arrays))
        lines.append(f'    let file = npz::Npz::open("{path}");')
        fields = [
            f'{port.field}: View::new(&file.array::<{port.type}>("in_{i}"), {list(data.shape)})'
            for i, (port, data) in enumerate(zip(text.inputs, case.inputs.values(), strict=True))
        ]
        inputs = f"&Inputs {{ {', '.join(fields)} }}"
        lines.append(f"    let ran = model.run({inputs}, &mut outputs, &mut workspace);")
        lines.append("    ran.unwrap();")
        for i, (port, data) in enumerate(zip(text.outputs, case.outputs.values(), strict=True)):
            found_text = f"outputs.{port.field}"
            lines.append(f"    assert_eq!({found_text}.shape, {list(data.shape)});")
            values = f"{found_text}.data().iter().map(|&x| f64::from(x)).collect::<Vec<_>>()"
            lines.append(f'    close("call {number}", &{values}, &file.floats("out_{i}"));')
    for i, port in enumerate(text.inputs):
        wrong = wrong.replace(f"@{i}", port.field)
    files["tests/golden.rs"] += "\n".join([*lines, wrong, "}", ""]).encode()
    write(files, folder)
    assert "2 passed" in compile_and_test(folder, "net", runtime_flags())


def _inputs(graph: ir.Graph, sizes: Mapping[str, int]) -> dict[str, ir.Array]:
    random = np.random.default_rng(sum(sizes.values()))
    arrays: dict[str, ir.Array] = {}
    for port in graph.inputs:
        shape = [size_at(d, sizes) for d in numbers(port.value.shape)]
        kind = port.value.dtype.numpy
        data = random.normal(size=shape) if kind.kind == "f" else random.integers(0, 20, shape)
        arrays[port.name] = data.astype(kind)
    return arrays


@pytest.mark.parametrize(
    "make", [decoder, encoder, gru, lstm, strided, text_cnn], ids=lambda make: make.__name__
)
def test_sequences(make: Callable[[], keras.Model], tmp_path: Path) -> None:
    _crate(make(), tmp_path, [(n,) for n in _LENGTHS])


def test_several_inputs(tmp_path: Path) -> None:
    wrong = """\
    let apart = Inputs { @0: View::new(&[1; 2], [1, 2]), @1: View::new(&[0.5], [1, 1]) };
    let error = model.run(&apart, &mut outputs, &mut workspace).unwrap_err().to_string();
    assert_eq!(error, "axis 1 of input @1 has 1 elements, expected 2 as axis 1 of input @0");
"""
    _crate(two_inputs(), tmp_path, [(n,) for n in _LENGTHS], wrong)


def test_images(tmp_path: Path) -> None:
    wrong = """\
    let large = Inputs { @0: View::new(&[0.0; 3], [1, 1, 31, 3]) };
    let error = model.run(&large, &mut outputs, &mut workspace).unwrap_err().to_string();
    assert_eq!(error, "axis 2 of input @0 has 31 elements, expected at most 30");
    let none = Inputs { @0: View::new(&[], [1, 0, 8, 3]) };
    let error = model.run(&none, &mut outputs, &mut workspace).unwrap_err().to_string();
    assert_eq!(error, "axis 1 of input @0 has 0 elements, expected at least 1");
    let two = Inputs { @0: View::new(&[0.0; 384], [2, 8, 8, 3]) };
    let error = model.run(&two, &mut outputs, &mut workspace).unwrap_err().to_string();
    assert_eq!(error, "axis 0 of input @0 has 2 elements, expected 1");
"""
    calls = [(24, 30), (8, 8), (9, 13)]
    _crate(small_net(), tmp_path, calls, wrong, {"": (None, None, 3)})


def test_multiples(tmp_path: Path) -> None:
    wrong = """\
    let odd = Inputs { @0: View::new(&[0.0; 144], [1, 8, 6, 3]) };
    let error = model.run(&odd, &mut outputs, &mut workspace).unwrap_err().to_string();
    assert_eq!(error, "axis 2 of input @0 has 6 elements, expected a multiple of 4");
"""
    calls = [(24, 32), (8, 8), (4, 20)]
    _crate(u_net(), tmp_path, calls, wrong, {"": (None, None, 3)})


def test_a_bound_that_is_not_a_multiple(tmp_path: Path) -> None:
    path = tmp_path / "net"
    u_net().export(path, verbose=False)
    most = (("height", 30), ("width", 32))
    options = Options("net", path.name, profile=Profile.NO_STD, most=most)
    shapes = LoadOptions(FixedShapes({"": (None, None, 3)}))
    what = r"--max height=30: height is a multiple of 4, and 30 is not one \(take 32"
    with pytest.raises(UsageError, match=what):
        converted(Request(path, options, shapes))


def _request(folder: Path, most: Sequence[tuple[str, int]], profile: Profile) -> Request:
    path = folder / "net.keras"
    lstm().save(path)
    return Request(path, Options("net", path.name, profile=profile, most=tuple(most)))


@pytest.mark.parametrize(
    ("most", "what"),
    [
        ([("length", 9)], "no open dimension 'length'; there are steps"),
        ([], r"leaves steps open \(say how large it may be, such as --max steps=512"),
    ],
)
def test_bounds_that_do_not_fit(most: list[tuple[str, int]], what: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=what):
        converted(_request(tmp_path, most, Profile.NO_STD))


def test_a_crate_with_std_has_no_bound(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="take open dimensions of any size"):
        converted(_request(tmp_path, [("steps", 9)], Profile.STD))


def test_recorded_features_keep_the_bound(tmp_path: Path) -> None:
    request = _request(tmp_path, [("steps", 9)], Profile.NO_STD)
    (port,) = load(request.model, LoadOptions()).trace.inputs
    path = tmp_path / "features.npz"
    path.write_bytes(npz_bytes({port.name: np.zeros((1, 10, 6), np.float32)}))
    with pytest.raises(FeaturesError, match="steps is 10, and may be 9 at most"):
        converted(replace(request, features=path))


def test_the_flag() -> None:
    assert parse_most(["steps=512", "a=b=3"]) == (("steps", 512), ("a=b", 3))
    for wrong in ("steps", "=3", "steps=0", "steps=-1", "steps=x"):
        with pytest.raises(UsageError, match="expected the name of an open dimension"):
            parse_most([wrong])
    with pytest.raises(UsageError, match="has a bound already"):
        parse_most(["steps=3", "steps=4"])
