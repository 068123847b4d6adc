"""What is refused without TensorFlow: hostile archives, flags, folders."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from converters.tf import ir
from converters.tf.cli.arguments import parse_shapes
from converters.tf.cli.output_folder import write_folder
from converters.tf.describe.features import made, read
from converters.tf.errors import FeaturesError, FileError
from converters.tf.ir.build import Builder
from converters.tf.load.files import Kind, kind_of
from tools.codegen.conversion import UsageError


def _zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


GOOD = {"config.json": b'{"class_name": "Sequential"}', "model.weights.h5": b"x"}


def test_a_zip_with_what_a_model_has(tmp_path: Path) -> None:
    assert kind_of(_zip(tmp_path / "m.bin", GOOD)) is Kind.KERAS


@pytest.mark.parametrize(
    ("members", "what"),
    [
        ({"config.json": b"{}"}, "without model.weights.h5"),
        ({**GOOD, "config.json": b"{"}, "config.json is damaged"),
        ({**GOOD, "config.json": b"[1]"}, "does not describe a model"),
        ({**GOOD, "../../etc/x": b""}, "points outside"),
        ({**GOOD, "model.weights.h5": bytes(200 << 20)}, "times its size"),
        ({**GOOD, "config.json": b'{"a":' * 300 + b"{}" + b"}" * 300}, "does not describe a model"),
        ({**GOOD, "config.json": b"[" * 100_000}, "config.json is damaged"),
    ],
)
def test_hostile_archives(tmp_path: Path, members: dict[str, bytes], what: str) -> None:
    with pytest.raises(FileError, match=what):
        kind_of(_zip(tmp_path / "m.keras", members))


@pytest.mark.parametrize(
    ("content", "what"), [(b"", "no model"), (b"hello", "no model"), (b"PK\x03\x04", "damaged zip")]
)
def test_files_that_are_no_models(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "m.keras"
    path.write_bytes(content)
    with pytest.raises(FileError, match=what):
        kind_of(path)


def test_a_path_that_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        kind_of(tmp_path / "missing")
    with pytest.raises(FileError, match=r"without saved_model\.pb"):
        kind_of(tmp_path)


def test_shapes_of_inputs() -> None:
    assert parse_shapes(["image=5,6,3", "7"]) == {"image": (5, 6, 3), "": (7,)}
    assert parse_shapes(["image=?,6,3"]) == {"image": (None, 6, 3)}
    for bad in ("image=", "image=5,x", "image=0,1", ""):
        with pytest.raises(UsageError, match="expected"):
            parse_shapes([bad])
    with pytest.raises(UsageError, match="has a shape already"):
        parse_shapes(["image=5,6,3", "image=5,6,4"])


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(out, {"rust_generated_code/a": b"1"}, overwrite=False)
    with pytest.raises(UsageError, match="is not empty"):
        write_folder(out, {"rust_generated_code/b": b"2"}, overwrite=False)
    write_folder(out, {"rust_generated_code/b": b"2"}, overwrite=True)
    assert [p.name for p in (out / "rust_generated_code").iterdir()] == ["b"]
    (out / "mine.txt").write_text("precious")
    with pytest.raises(UsageError, match="did not write"):
        write_folder(out, {"rust_generated_code/c": b"3"}, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def _graph() -> ir.Graph:
    x = ir.Value(ir.DType.F32, (ir.Batch(), 3), None, "x")
    y = ir.Value(ir.DType.F32, (ir.Batch(), 3), None, "y")
    node = ir.Node(ir.Unary(ir.Function(ir.Fn.NEG)), (x,), (y,))
    return ir.Graph("g", (ir.Port("x", x),), (ir.Port("y", y),), (node,))


def _predict(arrays: object) -> dict[str, ir.Array]:
    assert isinstance(arrays, dict)
    return {"y": -arrays["x"]}


def test_features_are_what_the_model_takes() -> None:
    b = Builder()
    words = ir.Value(ir.DType.I32, (ir.Batch(), 2, 50), name="words")
    by = ir.Value(ir.DType.I32, (ir.Batch(), 500), name="by")
    table = ir.constant(np.zeros((4, 1), np.float32))
    found = b.gather(table, b.reshape(words, (ir.Batch(2), 50)), 0)
    whole = b.binary(ir.BinaryKind.FLOOR_MOD, b.scalar(7, ir.DType.I32), by)
    ports = tuple(ir.Port(v.name, v) for v in (words, by))
    outputs = (ir.Port("found", found), ir.Port("whole", whole))
    graph = ir.Graph("g", ports, outputs, tuple(b.nodes))
    inputs = made(graph, lambda _: {}).inputs
    assert set(np.unique(inputs["words"])) == {0, 1, 2, 3}
    assert inputs["by"].min() == 1

    def fails(_: object) -> dict[str, ir.Array]:
        raise ValueError("no such luck")

    with pytest.raises(FeaturesError, match=r"no such luck \(record inputs that it takes"):
        made(graph, fails)


def test_features_hold_places_along_an_axis() -> None:
    """As `take_along_axis` reads them: widened, and counted from the end if they are negative."""
    b = Builder()
    places = ir.Value(ir.DType.I32, (ir.Batch(), 90, 1), name="places")
    rows = ir.Value(ir.DType.F32, (ir.Batch(), 2, 4), name="rows")
    wide = b.broadcast_to(b.cast(places, ir.DType.I64), (ir.Batch(), 90, 2))
    size, none = b.scalar(4, ir.DType.I64), b.scalar(0, ir.DType.I64)
    below = b.compare(ir.CompareKind.LT, wide, none)
    index = b.select(below, b.binary(ir.BinaryKind.ADD, wide, size), wide)
    found = b.gather(rows, b.transpose(index, [0, 2, 1]), 2, batch_dims=2)
    ports = tuple(ir.Port(v.name, v) for v in (places, rows))
    graph = ir.Graph("g", ports, (ir.Port("found", found),), tuple(b.nodes))
    assert set(np.unique(made(graph, lambda _: {}).inputs["places"])) == {0, 1, 2, 3}


def test_features_of_floats_that_are_indices() -> None:
    """As Keras' `Embedding` reads its input, which is float32 by default."""
    b = Builder()
    words = ir.Value(ir.DType.F32, (ir.Batch(), 90), name="words")
    numbers = ir.Value(ir.DType.F32, (ir.Batch(), 90), name="numbers")
    table = ir.constant(np.zeros((4, 1), np.float32))
    rounded = b.unary(ir.Fn.ROUND, words)
    found = b.gather(table, b.cast(rounded, ir.DType.I32), 0)
    whole = b.cast(numbers, ir.DType.I32)
    ports = tuple(ir.Port(v.name, v) for v in (words, numbers))
    outputs = (ir.Port("found", found), ir.Port("whole", whole))
    graph = ir.Graph("g", ports, outputs, tuple(b.nodes))
    inputs = made(graph, lambda _: {}).inputs
    assert set(np.unique(inputs["words"])) == {0.0, 1.0, 2.0, 3.0}
    assert inputs["numbers"].min() < 0


def test_features_of_what_a_loop_indexes() -> None:
    place = ir.Value(ir.DType.I32, (), name="place")
    turn, inner, kept = (ir.Value(ir.DType.I32, (), name=name) for name in ("turn", "i", "kept"))
    b = Builder()
    taken = b.gather(ir.constant(np.array([3, 5], np.int32)), inner, 0)
    total = b.binary(ir.BinaryKind.ADD, kept, taken)
    body = ir.Graph(
        "body",
        tuple(ir.Port(v.name, v) for v in (turn, inner, kept)),
        (ir.Port("i", inner), ir.Port("kept", total)),
        tuple(b.nodes),
    )
    results = tuple(ir.Value(ir.DType.I32, (), name=name) for name in ("i", "sum"))
    loop = ir.Node(ir.Loop(3, body), (place, ir.constant(np.zeros((), np.int32))), results)
    graph = ir.Graph("g", (ir.Port("place", place),), (ir.Port("sum", results[1]),), (loop,))
    drawn = {int(made(graph, lambda _: {}, attempt).inputs["place"]) for attempt in range(20)}
    assert drawn == {0, 1}


def test_recorded_features(tmp_path: Path) -> None:
    path = tmp_path / "features.npz"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(path, x=x, predictions=-x)
    assert np.array_equal(read(path, _graph(), _predict).outputs["y"], -x)
    assert made(_graph(), _predict).inputs["x"].shape == (3, 3)


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"z": np.zeros((2, 3), np.float32)}, "no array 'x'; there are z"),
        (
            {"x": np.zeros((2, 3), np.float32), "y": np.ones((2, 3), np.float32)},
            "array 'y' is nothing of the model; it has x, predictions",
        ),
        ({"x": np.zeros((2, 4), np.float32)}, "expected float32"),
        ({"x": np.zeros((0, 3), np.float32)}, "expected float32"),
        (
            {"x": np.zeros((2, 3), np.float32), "predictions": np.ones((2, 3), np.float32)},
            "differs from what the model predicts",
        ),
        (
            {"x": np.zeros((2, 3), np.float32), "predictions": np.ones((2, 1), np.float32)},
            "the model's",
        ),
        (
            {"x": np.zeros((2, 3), np.float32), "predictions": np.full((2, 3), np.nan)},
            "by NaN or infinity",
        ),
        (
            {"x": np.zeros((2, 3), np.float32), "predictions": np.full((2, 3), "no")},
            "is <U2, expected float32",
        ),
    ],
)
def test_features_of_another_model(tmp_path: Path, arrays: dict[str, ir.Array], what: str) -> None:
    path = tmp_path / "features.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    with pytest.raises(FeaturesError, match=what):
        read(path, _graph(), _predict)


def test_features_that_are_no_arrays(tmp_path: Path) -> None:
    path = tmp_path / "features.npz"
    path.write_text(json.dumps({"x": 1}))
    with pytest.raises(FeaturesError, match=r"can't be read as \.npz"):
        read(path, _graph(), _predict)


def test_features_that_are_one_array(tmp_path: Path) -> None:
    path = tmp_path / "features.npy"
    np.save(path, np.zeros((2, 3), np.float32))
    with pytest.raises(FeaturesError, match="a single array; expected one per input"):
        read(path, _graph(), _predict)


def test_features_that_the_model_refuses(tmp_path: Path) -> None:
    path = tmp_path / "features.npz"
    np.savez(path, x=np.zeros((2, 3), np.float32))

    def fails(_: object) -> dict[str, ir.Array]:
        raise ValueError("an index is not below 3")

    with pytest.raises(FeaturesError, match="fails for these inputs: an index is not below 3"):
        read(path, _graph(), fails)
