"""Models that Keras 2 wrote: files and SavedModels convert to what Keras 2 predicted."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from tensorflow.core.protobuf import saved_model_pb2

from converters.tf.errors import FileError
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import TOLERANCE, check, difference, inputs_for

# Written by `keras_2/write.py`, which says how.
ARCHIVE = Path(__file__).parent / "keras_2/models.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    NAMES = sorted({name.partition("/")[0] for name in _archive.namelist()})
MODELS = [name for name in NAMES if not name.endswith(".npz")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive."""
    path = tmp_path_factory.mktemp("keras_2")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(path)
    return path


def _compare(path: Path, recorded: Path) -> None:
    """Compares a model with what Keras 2 predicted."""
    loaded = load(path, LoadOptions())
    check(loaded, (1, 3))
    graph = convert(loaded.trace)
    with np.load(recorded) as file:
        arrays = {port.name: file[key] for port, key in zip(graph.inputs, file.files, strict=False)}
        found = list(interpret(graph, arrays).values())
        expected = [file[f"output_{i}"] for i in range(len(file.files) - len(arrays))]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert difference(a, b) <= TOLERANCE


@pytest.mark.parametrize("name", MODELS)
def test_model_of_keras_2(folder: Path, name: str) -> None:
    _compare(folder / name, folder / f"{name.partition('.')[0]}.npz")


def _described(path: Path, change: Callable[[Any], Any], version: str = "2.2.4-tf") -> None:
    """Writes the description of a file anew."""
    with h5py.File(path, "r+") as file:
        config = json.loads(file.attrs["model_config"])
        file.attrs["model_config"] = json.dumps(change(config) or config)
        file.attrs["keras_version"] = version


@pytest.mark.parametrize("name", ["image.h5", "nested.h5", "words.h5"])
def test_names_with_slashes(folder: Path, tmp_path: Path, name: str) -> None:
    """As in the DenseNets of Keras 2: `conv1/bn`. Keras 3 takes no such name."""
    path = tmp_path / name
    path.write_bytes((folder / name).read_bytes())

    def change(config: Any) -> Any:
        names = {layer["name"] for layer in config["config"]["layers"]}
        text = json.dumps(config)
        for old in names:
            text = text.replace(f'"{old}"', f'"a/{old}"')
        return json.loads(text)

    _described(path, change)
    _compare(path, folder / f"{name.partition('.')[0]}.npz")


def test_names_with_slashes_stay_apart(tmp_path: Path) -> None:
    x = keras.Input((3,), name="x")
    y = layers.Dense(3, name="a_b")(layers.Dense(3, name="first")(x))
    keras.Model(x, y).save(tmp_path / "m.h5")
    _described(
        tmp_path / "m.h5", lambda config: json.loads(json.dumps(config).replace('"first"', '"a/b"'))
    )
    found = [layer.path for layer in load(tmp_path / "m.h5", LoadOptions()).trace.layers]
    assert sorted(found) == ["a_b", "a_b_2"]


@pytest.mark.parametrize("listed", [True, False])
def test_a_sequence_whose_first_layer_has_the_shape(tmp_path: Path, listed: bool) -> None:
    """As Keras wrote it before 2.3 and TensorFlow before 2.2: without a layer for the input."""
    model = keras.Sequential(
        [
            keras.Input((9, 3)),
            layers.Conv1D(4, 3, padding="causal", dilation_rate=2),
            layers.BatchNormalization(),
            keras.Sequential([layers.LSTM(3, return_sequences=True)]),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    path = tmp_path / "m.h5"
    model.save(path)

    def older(config: Any) -> None:
        found = [item for item in config["config"]["layers"] if item["class_name"] != "InputLayer"]
        shape = [None, 9, 3]
        for layer in found:
            layer["config"].pop("name")
            layer["config"]["name"] = f"{layer['class_name'].lower()}_1"
            if layer["class_name"] == "BatchNormalization":
                layer["class_name"] = "BatchNormalizationV1"
            if layer["class_name"] == "Sequential":
                older(layer)
        first = found[0]["config"]
        first["batch_input_shape"] = shape if "filters" in first else [None, 9, 4]
        for name in ("module", "registered_name", "build_config"):
            found[0].pop(name, None)
        config["config"] = found if listed else {"name": "net", "layers": found}

    _described(path, older)
    graph = check(load(path, LoadOptions()), (1, 3))
    arrays = inputs_for(graph, 3)
    (found,), (given,) = interpret(graph, arrays).values(), arrays.values()
    assert difference(found, np.asarray(model(given))) <= TOLERANCE


def test_words_that_come_first(tmp_path: Path) -> None:
    """A table of words is given integers in any type; Keras 2 says float32."""
    model = keras.Sequential([keras.Input((5,)), layers.Embedding(7, 3), layers.Flatten()])
    path = tmp_path / "m.h5"
    model.save(path)

    def older(config: Any) -> None:
        table = next(i for i in config["config"]["layers"] if i["class_name"] == "Embedding")
        table["config"]["batch_input_shape"] = [None, 5]
        table["config"]["input_length"] = 5
        config["config"] = [
            i for i in config["config"]["layers"] if i["class_name"] != "InputLayer"
        ]

    _described(path, older)
    check(load(path, LoadOptions()), (1, 3))


def test_variables_of_an_optimizer(tmp_path: Path) -> None:
    """As Keras 2 saves a compiled model: a class that is not here would make them."""
    folder = tmp_path / "model"
    module = tf.Module()
    module.kernel = tf.Variable([[2.0, -1.0], [0.5, 3.0]], name="kernel")
    module.optimizer = tf.Module()
    module.optimizer.momentum = tf.Variable([[1.0, 1.0], [1.0, 1.0]], name="momentum")
    served = tf.function(
        lambda x: {"y": x @ module.kernel}, [tf.TensorSpec([None, 2], tf.float32, "x")]
    )
    tf.saved_model.save(module, str(folder), served)
    file = folder / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    nodes = model.meta_graphs[0].object_graph_def.nodes
    names = {c.local_name: c.node_id for node in nodes for c in node.children}
    owner = nodes[names["optimizer"]]
    owner.slot_variables.add(
        original_variable_node_id=names["kernel"],
        slot_name="momentum",
        slot_variable_node_id=names["momentum"],
    )
    changed = model.SerializeToString()
    file.write_bytes(changed)
    graph = check(load(folder, LoadOptions()), (1, 3))
    (found,) = interpret(graph, {"x": np.array([[1.0, 2.0]], np.float32)}).values()
    assert found.tolist() == [[3.0, 5.0]]
    assert file.read_bytes() == changed
    shutil.rmtree(folder / "variables")
    with pytest.raises(FileError) as err:
        load(folder, LoadOptions())
    assert str(folder / "variables") in str(err.value)
