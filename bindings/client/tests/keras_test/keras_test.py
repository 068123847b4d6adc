"""Keras' files: what Python wrote is read and written in Rust, and the other way round."""

import io
import json
import os
import pathlib
import subprocess
import zipfile
from collections.abc import Iterator
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from bindings.client.tests import keras_models

PROGRAM = os.environ["KERAS_FILES"]
# Outputs differ by rounding; weights not at all.
NEAR = 2e-5


def _run(*arguments: str) -> None:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _list(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in value]
    return list(value) if isinstance(value, list | tuple) else [value]


def _near(found: Any, expected: Any, name: str) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, name
    away = np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)
    assert away.size == 0 or away.max() <= NEAR, f"{name}: {away.max()}"


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Models of random layers, written by Keras and again in Rust."""
    folder = tmp_path_factory.mktemp("again")
    for index, (name, case) in enumerate(keras_models.CASES.items()):
        r = np.random.default_rng([5, index])
        keras.utils.set_random_seed(index)
        shapes, layers = case(r)
        inputs = [keras.Input(shape, name=f"in{at}") for at, shape in enumerate(shapes)]
        outputs = layers(*[keras.layers.Dense(x.shape[-1])(x) for x in inputs])
        model = keras.Model(inputs, outputs)
        for variable in model.variables:
            if variable.dtype == "float32":
                variable.assign(variable.numpy() + r.normal(size=variable.shape) ** 2 * 0.1)
        model.save(folder / f"{name}.keras")
        keras.backend.clear_session()
    _run("resave", str(folder))
    yield folder


@pytest.mark.parametrize("name", list(keras_models.CASES))
def test_models_of_python_are_the_same_after_rust(again: pathlib.Path, name: str) -> None:
    first = keras.models.load_model(again / f"{name}.keras")
    second = keras.models.load_model(again / f"{name}.again.keras")
    assert [type(layer) for layer in first.layers] == [type(layer) for layer in second.layers]
    assert [layer.name for layer in first.layers] == [layer.name for layer in second.layers]
    weights = list(zip(first.weights, second.weights, strict=True))
    assert weights
    for one, other in weights:
        assert one.dtype == other.dtype and one.trainable == other.trainable
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    r = np.random.default_rng(3)
    x = [r.normal(size=(4, *value.shape[1:])).astype(np.float32) for value in first.inputs]
    for found, expected in zip(_list(second(x)), _list(first(x)), strict=True):
        _near(found, expected, name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Models that are made in Rust."""
    folder = tmp_path_factory.mktemp("made")
    _run("make", str(folder))
    return folder


def test_models_of_rust_compute_the_same_in_python(made: pathlib.Path) -> None:
    names = sorted(path.stem for path in made.glob("*.shapes"))
    assert len(names) >= 16
    for name in names:
        model = keras.models.load_model(made / f"{name}.keras")
        shapes = json.loads((made / f"{name}.shapes").read_text())
        x = []
        for index, (shape, value) in enumerate(zip(shapes, model.inputs, strict=True)):
            array = np.fromfile(made / f"{name}.x{index}", value.dtype)
            x.append(array.reshape(shape))
        found = model(x if len(x) > 1 else x[0])
        if isinstance(found, dict):
            # Outputs have the names that they have in Rust.
            assert set(found) in ({"class", "age"}, {"decoder", "state"}, {"y", "z"}), name
            order = {"class": 0, "age": 1, "decoder": 0, "state": 1, "y": 0, "z": 1}
            found = [value for _, value in sorted(found.items(), key=lambda pair: order[pair[0]])]
        found = _list(found)
        for index, value in enumerate(found):
            expected = np.fromfile(made / f"{name}.y{index}", np.float32)
            _near(value, expected.reshape(value.shape), name)
        model.save(made / f"{name}.again.keras")
    sequential = keras.models.load_model(made / "dense.keras")
    assert isinstance(sequential, keras.Sequential)
    frozen = keras.models.load_model(made / "frozen.keras")
    assert [layer.trainable for layer in frozen.layers[1:]] == [False, False, True]
    _run("check", str(made))


def test_the_weights_are_hdf5(made: pathlib.Path) -> None:
    with zipfile.ZipFile(made / "dense.keras") as archive:
        assert archive.testzip() is None
        weights = archive.read("model.weights.h5")
    with h5py.File(io.BytesIO(weights)) as file:
        kernel = file["layers/dense/vars/0"]
        assert kernel.shape == (5, 8) and kernel.dtype == np.float32
        assert len(file["layers"]) > 4
