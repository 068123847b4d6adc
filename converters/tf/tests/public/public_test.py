"""The sweep takes models out of packages, compares them and writes a page; nothing is fetched."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver
from onnx import TensorProto, helper, numpy_helper

from converters.tf.tests.public import archives, sweep
from converters.tf.tests.public.compare import Found, attempt
from converters.tf.tests.public.entry import Archive, Entry, Kind
from converters.tf.tests.public.models import ENTRIES
from converters.tf.tests.public.page import page, row
from converters.tf.tests.public.tflite import by_tflite, rounded
from tools.codegen.program import USAGE


def _onnx(op: str = "MatMul") -> bytes:
    """Returns a network with an open batch and an open number of steps."""
    weights = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "steps", 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "steps", 3])],
        [numpy_helper.from_array(weights, "w")],
    )
    opsets = [helper.make_opsetid("", 20)]
    # Newer versions are not known to every onnxruntime.
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bytes(model.SerializeToString())


def _tflite() -> bytes:
    @tf.function(input_signature=[tf.TensorSpec([1, 4])])  # type: ignore[untyped-decorator]
    def net(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(x @ tf.eye(4) * 2)

    concrete = net.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    random = np.random.default_rng(1)
    samples = [[random.uniform(-1, 1, (1, 4)).astype(np.float32)] for _ in range(9)]
    converter.representative_dataset = lambda: iter(samples)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and an npm package."""
    where = tmp_path_factory.mktemp("packages")
    with zipfile.ZipFile(where / "tiny_net-1.0-py3-none-any.whl", "w") as wheel:
        for name, content in (
            ("net.onnx", _onnx()),
            ("other.onnx", _onnx("NoSuchOp")),
            ("saved/saved_model.pb", b"no graph"),
        ):
            wheel.writestr(zipfile.ZipInfo(f"tiny/{name}"), content)
    with tarfile.open(where / "tiny-net-2.0.tgz", "w:gz") as archive:
        content = _tflite()
        member = tarfile.TarInfo("package/net.tflite")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return where


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def wheel(folder: Path) -> Archive:
    return Archive("tiny-net", "1.0", _hash(folder / "tiny_net-1.0-py3-none-any.whl"))


@pytest.fixture
def packed(folder: Path) -> Archive:
    return Archive("@tiny/net", "2.0", _hash(folder / "tiny-net-2.0.tgz"), npm=True)


@pytest.fixture
def net(wheel: Archive) -> Entry:
    return Entry(wheel, "tiny/net.onnx", "is small", sizes={"steps": (4, 7)})


@pytest.fixture(autouse=True)
def _flags() -> None:
    flags.FLAGS.mark_as_parsed()


def test_names_of_models_are_unique_and_their_flags_make_sense() -> None:
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    for entry in ENTRIES:
        assert entry.options().shapes.batch == entry.batch
        assert len(entry.archive.sha256) == 64
        assert not set(entry.does) & set("|`")
    first = ENTRIES[0]
    assert first.name == "silero-vad/silero_vad.onnx"
    assert first.flags == (
        "--input_shape input=1,576",
        "--input_shape state=2,1,128",
        "--input_value sr=16000",
    )
    assert dict(first.options().values) == {"sr": "16000"}
    assert {entry.kind for entry in ENTRIES} == set(Kind)


def test_archives_are_found_by_their_names(wheel: Archive, packed: Archive) -> None:
    assert (wheel.spec, wheel.pattern) == ("tiny-net==1.0", "tiny_net-1.0-*.whl")
    assert (packed.spec, packed.pattern) == ("@tiny/net@2.0", "tiny-net-2.0.tgz")


def test_only_the_model_is_unpacked(folder: Path, wheel: Archive, tmp_path: Path) -> None:
    saved = archives.taken(Entry(wheel, "tiny/saved/", ""), folder, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [saved / "saved_model.pb"]
    with pytest.raises(archives.ArchiveError, match=r"has no tiny/none\.onnx"):
        archives.taken(Entry(wheel, "tiny/none.onnx", ""), folder, tmp_path)


def test_another_archive_of_the_same_name_is_refused(folder: Path, wheel: Archive) -> None:
    changed = dataclasses.replace(wheel, sha256="0" * 64)
    with pytest.raises(archives.ArchiveError, match=f"{wheel.sha256}, expected 000"):
        archives.fetched(changed, folder)


def test_npm_is_asked_for_only_where_it_is_needed(
    packed: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(archives.ArchiveError, match="no npm on PATH"):
        archives.fetched(packed, tmp_path)


def test_a_model_of_a_wheel_is_compared(folder: Path, net: Entry) -> None:
    found = attempt(net, folder)
    assert (found.dims, found.refused, found.error) == (("batch", "steps"), "", "")
    assert found.nodes > 0
    assert found.difference <= 1e-6
    assert sweep.met(net, found)


def test_8_bits_of_tflite_are_equal(folder: Path, packed: Archive, tmp_path: Path) -> None:
    entry = Entry(packed, "package/net.tflite", "doubles", span=(-100, 100))
    found = attempt(entry, folder)
    assert (found.difference, found.dims) == (0.0, ())
    # Real numbers come in place of those that the caller gives, as the file rounds them.
    path = archives.taken(entry, folder, tmp_path)
    given = {"x": np.array([[0.1, 0.2, -0.3, 0.9]], np.float32)}
    outputs = by_tflite(path, given)
    (array,) = outputs.values()
    assert 0 < np.abs(given["x"] - [[0.1, 0.2, -0.3, 0.9]]).max() < 0.01
    assert np.abs(array - 2 * np.maximum(given["x"], 0)).max() < 0.02
    (again,) = rounded(path, {"y": array + np.float32(1e-3)}).values()
    assert np.array_equal(again, array)


def test_a_size_that_the_list_lacks_is_named(folder: Path, net: Entry) -> None:
    with pytest.raises(ValueError, match="no sizes for steps"):
        attempt(dataclasses.replace(net, sizes={}), folder)


def test_refusals_have_their_reason(folder: Path, net: Entry) -> None:
    other = dataclasses.replace(net, path="tiny/other.onnx")
    found = attempt(other, folder)
    assert "NoSuchOp" in found.refused
    assert not sweep.met(other, found)
    assert sweep.met(dataclasses.replace(other, refused=True), found)
    assert "| refused: `" in row(other, found)


def test_rows_say_what_became_of_a_model(net: Entry) -> None:
    start = "| tiny-net/net.onnx | is small | `tiny-net==1.0` |"
    good = Found(net.name, ("batch", "steps"), 3, 2e-6, 1.5, 12.3)
    assert row(net, good) == f"{start} | batch, steps | 3 | 2.0e-06 | 12 s |"
    loose = dataclasses.replace(net, tolerance=0.5, batch=1)
    small = dataclasses.replace(good, largest=4e-7)
    assert "| 2.0e-06, outputs up to 4e-07 |" in row(net, small)
    far = dataclasses.replace(good, difference=0.25, seconds=0.0)
    assert row(net, far).endswith("| 3 | **2.5e-01** | |")
    assert row(loose, far) == f"{start} `--batch 1` | batch, steps | 3 | 2.5e-01 of 0.5 | |"
    broken = dataclasses.replace(good, error="a | `b`")
    assert "| fails: `a / 'b'` |" in row(net, broken)


def _tried(entries: Sequence[Entry]) -> Iterator[Found]:
    for entry in entries:
        yield Found(entry.name, nodes=1, difference=0.0 if entry.does == "works" else 1.0)


def test_the_page_keeps_the_rows_of_others(wheel: Archive, packed: Archive, tmp_path: Path) -> None:
    names = ("a.onnx", "b.onnx")
    entries = [Entry(wheel, name, "works") for name in names]
    entries.append(Entry(packed, "c.tflite", "differs"))
    written = tmp_path / "page.md"
    results = sweep.sweep(entries, [], _tried, written)
    assert [sweep.met(entry, found) for entry, found in results] == [True, True, False]
    text = written.read_text("utf-8")
    assert "2 of the 3 models below agree" in text
    assert text == page({entry.name: row(entry, found) for entry, found in results}, entries)
    better = [*entries[:2], dataclasses.replace(entries[2], does="works")]
    sweep.sweep(better, ["@tiny/net/c.tflite"], _tried, written)
    assert "3 of the 3 models below agree" in written.read_text("utf-8")
    assert sweep.chosen(entries, ["tiny-net"]) == entries[:2]


def test_what_is_no_model_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with flagsaver.flagsaver(only=["magika", "magic"]):
        assert sweep.main(["sweep"]) == USAGE
    assert "no model magic; the packages are silero-vad, magika, " in capsys.readouterr().err
    assert sweep.main(["sweep", "magika"]) == USAGE
