"""Model files whose parts contradict each other: one error each, which names the part."""

from __future__ import annotations

import functools
import io
import json
import os
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from tensorflow.core.protobuf import saved_model_pb2

from converters.tf.emit.options import Options
from converters.tf.errors import FileError
from converters.tf.ir.interpret import interpret
from converters.tf.load.files import Kind, kind_of
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.models import mlp, text_cnn
from converters.tf.tf2rust import Request, run
from tools.codegen.conversion import ConversionError

WEIGHTS = "model.weights.h5"


def _change_h5(content: bytes, change: Callable[[Any], None]) -> bytes:
    buffer = io.BytesIO(content)
    with h5py.File(buffer, "r+") as file:
        change(file)
    return buffer.getvalue()


def _change_zip(path: Path, member: str, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, change(content) if name == member else content)


def _first(file: Any) -> str:
    found: list[str] = []
    root = "model_weights/" if "model_weights" in file else ""
    file[root or "/"].visititems(
        lambda name, item: found.append(root + name) if isinstance(item, h5py.Dataset) else None
    )
    return found[0]


def _wrong_shape(file: Any) -> None:
    name = _first(file)
    shape = file[name].shape
    del file[name]
    file[name] = np.zeros((3, *shape), np.float32)


def _not_a_number(file: Any) -> None:
    file[_first(file)][...] = np.nan


def _missing(file: Any) -> None:
    del file[_first(file)]


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_wrong_shape, "[Ss]hape"),
        (_not_a_number, "16 of the 16 numbers of the weight .*batch_normalization.* not a number"),
        (_missing, "expected 4 variables, but received 3|beta"),
    ],
)
def test_weights(tmp_path: Path, suffix: str, change: Callable[[Any], None], what: str) -> None:
    path = tmp_path / f"m{suffix}"
    mlp().save(path)
    if suffix == ".keras":
        _change_zip(path, WEIGHTS, lambda content: _change_h5(content, change))
    else:
        path.write_bytes(_change_h5(path.read_bytes(), change))
    with pytest.raises(FileError, match=what) as caught:
        load(path, LoadOptions())
    assert len(caught.value.problems) == 1


def _chain() -> Any:
    x = keras.Input((4,), name="x")
    y = layers.Dense(4, name="second")(layers.Dense(4, name="first")(x))
    return keras.Model(x, y)


def _fed_by(name: str) -> Callable[[str], str]:
    """Returns a change of a description: its first layer reads what the layer `name` computes."""

    def change(text: str) -> str:
        config = json.loads(text)
        for layer in config["config"]["layers"]:
            if layer["name"] == "first":
                (node,) = layer["inbound_nodes"]
                node["args"][0]["config"]["keras_history"][0] = name
        return json.dumps(config)

    return change


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("source", ["second", "first", "nowhere"])
def test_layers_that_feed_each_other(tmp_path: Path, suffix: str, source: str) -> None:
    path = tmp_path / f"m{suffix}"
    _chain().save(path)
    change = _fed_by(source)
    if suffix == ".keras":
        _change_zip(path, "config.json", lambda content: change(content.decode()).encode())
    else:
        with h5py.File(path, "r+") as file:
            file.attrs["model_config"] = change(file.attrs["model_config"])
    with pytest.raises(FileError, match=r"loops or disconnected|nowhere") as caught:
        load(path, LoadOptions())
    assert len(caught.value.problems) == 1


def test_no_module_of_a_description_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    _chain().save(path)

    def change(content: bytes) -> bytes:
        config = json.loads(content)
        layer = config["config"]["layers"][1]
        layer |= {"module": "antigravity", "class_name": "geohash", "registered_name": None}
        return json.dumps(config).encode()

    _change_zip(path, "config.json", change)
    with pytest.raises(FileError, match="the class 'geohash', which is not part of Keras"):
        load(path, LoadOptions(allow_custom_code=True))


def test_a_package_that_is_not_installed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    _chain().save(path)

    def change(content: bytes) -> bytes:
        config = json.loads(content)
        layer = config["config"]["layers"][1]
        layer |= {"module": "keras_cv.layers", "class_name": "Far", "registered_name": "cv>Far"}
        return json.dumps(config).encode()

    _change_zip(path, "config.json", change)
    with pytest.raises(FileError, match=r"the Python package keras_cv, which .* \(install it"):
        load(path, LoadOptions())


def test_heaps_that_are_read_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.attrs.create("names", ["first", "second"], dtype=h5py.string_dtype())
    assert kind_of(path) is Kind.HDF5
    content = path.read_bytes()
    heap = content.index(b"GCOL")
    objects = heap + 16
    (length,) = struct.unpack_from("<Q", content, objects + 8)
    second = objects + 16 + (length + 7) // 8 * 8
    for at in (objects, second):
        path.write_bytes(content[:at] + bytes(16) + content[at + 16 :])
        with pytest.raises(FileError, match=f"a damaged heap at byte {at}"):
            kind_of(path)
    cut = content[: heap + 12]
    path.write_bytes(cut)
    assert kind_of(path) is Kind.HDF5


def test_a_file_that_ends_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    _chain().save(path)
    content = path.read_bytes()
    for size in range(len(content) - 1, -1, -37):
        path.write_bytes(content[:size])
        with pytest.raises(FileError) as caught:
            kind_of(path)
        assert len(caught.value.problems) == 1


def test_ops_that_tensorflow_does_not_know(tmp_path: Path) -> None:
    graph = tf.compat.v1.GraphDef()
    graph.node.add(op="Placeholder", name="x").attr["dtype"].type = 1
    graph.node.add(op="OwnOp", name="y", input=["x"])
    path = tmp_path / "m.pb"
    path.write_bytes(graph.SerializeToString())
    folder = tmp_path / "m"
    _chain().export(folder, verbose=False)
    content = (folder / "saved_model.pb").read_bytes()
    (folder / "saved_model.pb").write_bytes(content.replace(b"MatMul", b"OwnMul"))
    for source, op in ((path, "OwnOp"), (folder, "OwnMul")):
        with pytest.raises(FileError, match=f"the op '{op}', which is not part") as caught:
            load(source, LoadOptions())
        assert len(caught.value.problems) == 1


HOSTILE: list[Any] = [
    *("fn", "self", "../../x", "a/b", "", "\0", "x" * 5000, "\u00e9\U0001f600", "1", "lambda x: x"),
    *(None, -1, 0, 3, 7.5, True, 1e308, float("nan"), [], {}, [[1]], ["a", 0, 0]),
]


def _places(item: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = item.items() if isinstance(item, dict) else enumerate(item)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from _places(value, (*path, key))


def _spoiled(content: bytes, choose: random.Random) -> bytes:
    config = json.loads(content)
    place = choose.choice(list(_places(config)))
    item = config
    for key in place[:-1]:
        item = item[key]
    if isinstance(item, dict) and choose.random() < 0.2:
        del item[place[-1]]
    else:
        item[place[-1]] = choose.choice(HOSTILE)
    return json.dumps(config).encode()


@pytest.mark.parametrize("make", [mlp, text_cnn], ids=lambda f: f.__name__)
def test_descriptions_with_anything_in_them(tmp_path: Path, make: Callable[[], Any]) -> None:
    """Each is refused by an error of this program, or becomes files in the folders of a crate."""
    whole, path = tmp_path / "whole.keras", tmp_path / "m.keras"
    make().save(whole)
    refused = 0
    for seed in range(15):
        choose = random.Random(seed)
        path.write_bytes(whole.read_bytes())
        _change_zip(path, "config.json", functools.partial(_spoiled, choose=choose))
        try:
            files = run(Request(path, Options("net", "m.keras"))).files
        except ConversionError as err:
            assert err.problems
            refused += 1
            continue
        for name in map(PurePosixPath, files):
            assert ".." not in name.parts
            assert name.parts[0] in ("rust_generated_code", "saved_model_from_tensorflow")
            assert len(name.name) < 40
    assert 0 < refused < 15


def _zip_with(path: Path, change: Callable[[bytes, int, int], bytes]) -> None:
    """Changes the compressed bytes of `config.json`, which begin and end at two places."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", json.dumps({"x": list(range(1000))}))
        archive.writestr(WEIGHTS, b"")
        info = archive.getinfo("config.json")
    content = path.read_bytes()
    start = 30 + len("config.json")
    path.write_bytes(change(content, start, start + info.compress_size))


def _garbled(content: bytes, start: int, end: int) -> bytes:
    return content[:start] + b"\xff" * (end - start) + content[end:]


def _encrypted(content: bytes, _: int, __: int) -> bytes:
    place = content.index(b"PK\x01\x02") + 8
    return content[:6] + b"\x01" + content[7:place] + b"\x01" + content[place + 1 :]


def _other_method(number: int) -> Callable[[bytes, int, int], bytes]:
    def change(content: bytes, _: int, __: int) -> bytes:
        place = content.index(b"PK\x01\x02") + 10
        return (
            content[:8]
            + bytes([number])
            + content[9:place]
            + bytes([number])
            + content[place + 1 :]
        )

    return change


@pytest.mark.parametrize("change", [_garbled, _encrypted, _other_method(14), _other_method(12)])
def test_members_that_can_not_be_unpacked(
    tmp_path: Path, change: Callable[[bytes, int, int], bytes]
) -> None:
    path = tmp_path / "m.keras"
    _zip_with(path, change)
    with pytest.raises(FileError, match="a damaged zip archive"):
        kind_of(path)


def test_many_members_that_unpack_to_much(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "{}")
        archive.writestr(WEIGHTS, b"")
        for number in range(4):
            archive.writestr(f"{number}", bytes(32 << 20))
    with pytest.raises(FileError, match="the archive unpacks to 134217730 bytes"):
        kind_of(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_in_place_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    os.mkfifo(path)
    with pytest.raises(FileError, match="not a regular file"):
        kind_of(path)


def test_frozen_graphs_with_anything_in_them(tmp_path: Path) -> None:
    """Each is refused by an error of this program, or traced."""
    path = tmp_path / "m.pb"
    with tf.compat.v1.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, (None, 4), "x")
        v = tf.while_loop(
            lambda i, _: i < 3, lambda i, v: [i + 1, tf.nn.relu(v @ tf.eye(4))], [0, x]
        )
        tf.nn.softmax(v[1][:, 1:3], name="y")
    whole = graph.as_graph_def().SerializeToString()
    refused = 0
    for seed in range(60):
        choose = random.Random(seed)
        content = bytearray(whole)
        for _ in range(choose.randrange(1, 4)):
            content[choose.randrange(len(content))] = choose.choice([0, 1, 0x7F, 0xFF, 0x0A])
        path.write_bytes(bytes(content))
        try:
            load(path, LoadOptions())
        except ConversionError as err:
            refused += 1
            assert all(c.isprintable() or c == "\n" for c in err.text("tf2rust"))
    assert refused > 20


def test_attributes_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "m.pb"
    graph = tf.compat.v1.GraphDef()
    graph.node.add(op="Placeholder", name="x").attr["dtype"].type = 1
    node = graph.node.add(op="Relu", name="y", input=["x"])
    node.attr["T"].type = 1
    node.attr[""].i = 1
    path.write_bytes(graph.SerializeToString())
    try:
        load(path, LoadOptions())
    except ConversionError as err:
        assert len(err.problems) == 1


def test_a_signature_that_leaves_out_an_output(tmp_path: Path) -> None:
    module = tf.Module()
    spec = tf.TensorSpec([None, 2], tf.float32)
    module.f = tf.function(lambda x: {"a": x + 1, "b": x * 2}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    file = tmp_path / "m" / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    functions = model.meta_graphs[0].object_graph_def.concrete_functions
    for function in functions.values():
        del function.output_signature.dict_value.fields["b"]
    file.write_bytes(model.SerializeToString())
    with pytest.raises(FileError, match="names 1 outputs, but its function returns 2"):
        load(tmp_path / "m", LoadOptions())


@pytest.mark.parametrize("kind", [tf.bool, tf.int32, tf.float64, tf.string, tf.complex64])
def test_constants_of_another_type_than_their_node_says(tmp_path: Path, kind: Any) -> None:
    """TensorFlow's import compares them with nothing; its kernel refuses them."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], "x")
        tf.subtract(x, tf.constant(np.ones(4, np.float32), name="ones"))
    definition = graph.as_graph_def()
    (node,) = (node for node in definition.node if node.name == "ones")
    value = ["1"] * 4 if kind == tf.string else np.ones(4, kind.as_numpy_dtype)
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, kind))
    path = tmp_path / "m.pb"
    path.write_bytes(definition.SerializeToString())
    with pytest.raises(ConversionError, match=r"node ones \(Const\): .*float32"):
        run(Request(path, Options("net", path.name)))


def test_saved_models_with_a_damaged_object_graph(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    _chain().export(folder, verbose=False)
    file = folder / "saved_model.pb"
    whole = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    refused = 0
    for seed in range(25):
        choose = random.Random(seed)
        model = saved_model_pb2.SavedModel()
        model.CopyFrom(whole)
        nodes = model.meta_graphs[0].object_graph_def.nodes
        node = choose.choice(nodes)
        if node.children and choose.random() < 0.5:
            choose.choice(node.children).node_id = choose.choice([0, 1, 999, -1])
        elif choose.random() < 0.5:
            node.Clear()
        else:
            node.CopyFrom(choose.choice(nodes))
        file.write_bytes(model.SerializeToString())
        try:
            load(folder, LoadOptions())
        except ConversionError as err:
            refused += 1
            assert all(c.isprintable() or c == "\n" for c in err.text("tf2rust"))
    assert refused > 5


@pytest.mark.parametrize("name", ["\ud800", "x" * 70_000, "a\nb", "a\u202eb"])
def test_names_that_no_array_can_have(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.keras"
    x = keras.Input((4,), name="input_of_the_model")
    keras.Model(x, layers.Dense(2)(x)).save(path)
    text = json.dumps(name)[1:-1].encode()
    _change_zip(path, "config.json", lambda c: c.replace(b"input_of_the_model", text))
    try:
        files = run(Request(path, Options("net", "m.keras"))).files
    except ConversionError as err:
        assert len(str(err)) < 5000
    else:
        assert files


def test_a_loop_in_a_loop_of_another_process(tmp_path: Path) -> None:
    """The functions of a file are in the file, whatever functions this process knows."""
    path = tmp_path / "m.pb"

    def outer(i: Any, v: Any) -> list[Any]:
        inner = tf.while_loop(lambda j, _: j < 2, lambda j, w: [j + 1, w * 1.5], [0, v])
        return [i + 1, inner[1]]

    with tf.compat.v1.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, (None, 4), "x")
        tf.identity(tf.while_loop(lambda i, _: i < 3, outer, [0, x])[1], "y")
    definition = graph.as_graph_def()
    content = definition.SerializeToString()
    for function in definition.library.function:
        name = function.signature.name.encode()
        content = content.replace(name, b"other" + name[5:])
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    inputs = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}
    found = interpret(convert(loaded.trace), inputs)["y"]
    np.testing.assert_array_equal(found, inputs["x"] * np.float32(1.5**6))
    np.testing.assert_array_equal(loaded.predict(inputs)["y"], found)


@pytest.mark.parametrize("function", ["io.write_file", "math.__class__", "nn.__setattr__"])
def test_functions_of_a_file_of_keras_2_only_compute(tmp_path: Path, function: str) -> None:
    path = tmp_path / "ops.h5"
    with zipfile.ZipFile(Path(__file__).parent / "keras_2/models.zip") as archive:
        path.write_bytes(archive.read("ops.h5"))
    with h5py.File(path, "r+") as file:
        text = file.attrs["model_config"]
        text = text.decode() if isinstance(text, bytes) else text
        assert '"function": "math.multiply"' in text
        hostile = text.replace('"function": "math.multiply"', f'"function": "{function}"')
        file.attrs["model_config"] = hostile
    with pytest.raises(FileError, match=f"tf.{function} is not among the functions") as caught:
        load(path, LoadOptions())
    assert len(caught.value.problems) == 1
