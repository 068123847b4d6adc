"""Keras' files: what Python wrote is read and written in Rust, and the other way round."""

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from typing import Any

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from bindings.client.tests import keras_models

PROGRAM = os.environ["KERAS_FILES"]
# Outputs differ by rounding; weights not at all.
NEAR = 2e-5
# Models that Keras 2 wrote, without functions that Keras 3 lacks.
KERAS_2 = pathlib.Path(os.environ["KERAS_2"]).parent
KERAS_2_MODELS = ["image", "nested"]
# The cases, and the ends of their files. Keras writes no `.h5` file with layers of images, and none
# with the vocabulary of a layer that was adapted.
FILES = [
    (name, end)
    for name in keras_models.CASES
    for end in ("", ".h5")
    if not (end and ("image" in name or "listed" in name))
]


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
        if (name, ".h5") in FILES:
            model.save(folder / f"{name}.h5")
        keras.backend.clear_session()
    for name in KERAS_2_MODELS:
        shutil.copy(KERAS_2 / f"{name}.h5", folder / f"keras_2_{name}.h5")
    _run("resave", str(folder))
    yield folder


@pytest.mark.parametrize(("name", "end"), FILES)
def test_models_of_python_are_the_same_after_rust(again: pathlib.Path, name: str, end: str) -> None:
    first = keras.models.load_model(again / f"{name}.keras")
    second = keras.models.load_model(again / f"{name}{end}.again.keras")
    # Functions between layers come back as layers.
    if name != "arithmetic":
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


def test_names_that_no_attribute_holds_lie_in_pieces(tmp_path: pathlib.Path) -> None:
    long = "n" * 200
    dense = [keras.layers.Dense(1, name=f"{long}{index}") for index in range(150)]
    inner = keras.Sequential([keras.Input((1,)), *dense], name="inner")
    x = keras.Input((1,))
    model = keras.Model(x, inner(x))
    model.save(tmp_path / "long.h5")
    with h5py.File(tmp_path / "long.h5") as file:
        assert "weight_names1" in file["model_weights/inner"].attrs
    _run("resave", str(tmp_path))
    again = keras.models.load_model(tmp_path / "long.h5.again.keras")
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("name", KERAS_2_MODELS)
def test_models_of_keras_2_become_those_of_keras_3(again: pathlib.Path, name: str) -> None:
    model = keras.models.load_model(again / f"keras_2_{name}.h5.again.keras")
    with np.load(KERAS_2 / f"{name}.npz") as expected:
        for index, found in enumerate(_list(model(expected["x0"], training=False))):
            _near(found, expected[f"y{index}"], name)


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
        # Layers of images are for training where nothing else is said.
        found = model(x if len(x) > 1 else x[0], training=False)
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
        weights = [value.numpy() for value in model.weights]
        for value in model.weights:
            value.assign(np.zeros_like(value.numpy()))
        model.load_weights(made / f"{name}.weights.h5")
        for value, wanted in zip(model.weights, weights, strict=True):
            np.testing.assert_array_equal(value.numpy(), wanted)
        model.save_weights(made / f"{name}.again.weights.h5")
    signals = keras.models.load_model(made / "signals.keras")
    kernels = 0
    for layer in signals.layers:
        for weight in layer.weights:
            side = weight.name.partition("_")[0]
            first = keras.initializers.STFT(side, layer.window, layer.scaling, layer.periodic)
            # The program has added as much.
            more = 0.01 * np.abs(np.sin(np.arange(weight.numpy().size) * 0.7))
            found = weight.numpy() - more.reshape(weight.shape)
            _near(found, first(weight.shape), f"{layer.name}/{weight.name}")
            kernels += 1
    assert kernels == 5
    sequential = keras.models.load_model(made / "dense.keras")
    assert isinstance(sequential, keras.Sequential)
    frozen = keras.models.load_model(made / "frozen.keras")
    assert [layer.trainable for layer in frozen.layers[1:]] == [False, False, False, True]
    _run("check", str(made))


def test_the_weights_are_hdf5(made: pathlib.Path) -> None:
    with zipfile.ZipFile(made / "dense.keras") as archive:
        assert archive.testzip() is None
        weights = archive.read("model.weights.h5")
    with h5py.File(io.BytesIO(weights)) as file:
        kernel = file["layers/dense/vars/0"]
        assert kernel.shape == (5, 8) and kernel.dtype == np.float32
        assert len(file["layers"]) > 4


def test_trainings_go_on_in_python(tmp_path: pathlib.Path) -> None:
    _run("train", str(tmp_path))
    names = sorted(path.stem for path in tmp_path.glob("*.loss"))
    assert len(names) == 11
    for name in names:
        model = keras.models.load_model(tmp_path / f"{name}.keras")
        assert model.compiled and int(model.optimizer.iterations.numpy()) == 3
        after = keras.models.load_model(tmp_path / f"{name}.after.keras")
        x = np.fromfile(tmp_path / f"{name}.x0", np.float32).reshape(3, 4)
        truth = [
            np.fromfile(tmp_path / f"{name}.truth{index}", np.float32).reshape(3, 2)
            for index in range(2)
        ]
        logs = model.train_on_batch(x, truth, return_dict=True)
        expected = float((tmp_path / f"{name}.loss").read_text())
        assert abs(logs["loss"] - expected) <= NEAR * max(1.0, expected), name
        assert "e_mean_absolute_error" in logs, logs
        assert model.optimizer.variables
        pairs = list(zip(model.weights, after.weights, strict=True))
        # What the optimizer keeps shows whether each number is that of its variable.
        pairs += zip(model.optimizer.variables, after.optimizer.variables, strict=True)
        for found, wanted in pairs:
            _near(found.numpy(), wanted.numpy(), f"{name}: {found.path}")


# The dtype policies, and how far float32 results of a model may be from each other.
POLICIES = {
    "mixed_float16": 4e-3,
    "mixed_bfloat16": 3e-2,
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float64": 2e-5,
}


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Models of each policy, and what Rust made of them."""
    folder = tmp_path_factory.mktemp("policies")
    before = keras.config.dtype_policy()
    k = keras.layers
    for policy in POLICIES:
        keras.config.set_dtype_policy(policy)
        keras.utils.set_random_seed(3)
        x = keras.Input((6, 4))
        first = k.LSTM(3, recurrent_initializer="glorot_uniform", return_sequences=True)
        y = k.Bidirectional(first)(x)
        y = k.TimeDistributed(k.Dense(4))(k.BatchNormalization()(y))
        y = k.LayerNormalization()(k.Add()([y, x]) * 0.5)
        y = k.MultiHeadAttention(2, 3)(y, y)
        y = k.Dense(3, activation="softmax", dtype="float32")(k.Flatten()(y))
        keras.Model(x, y).save(folder / f"{policy}.keras")
        numbers = np.random.default_rng(4).normal(size=(3, 6, 4)).astype(np.float32)
        numbers.tofile(folder / f"{policy}.x0")
    keras.config.set_dtype_policy(before)
    _run("policies", str(folder))
    return folder


def _policy(layer: keras.Layer) -> list[str]:
    inner = [getattr(layer, name, None) for name in ("layer", "forward_layer", "backward_layer")]
    return [one.dtype_policy.name for one in (layer, *inner) if one is not None]


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_of_python_are_the_same_after_rust(policies: pathlib.Path, policy: str) -> None:
    first = keras.models.load_model(policies / f"{policy}.keras")
    second = keras.models.load_model(policies / f"{policy}.again.keras")
    x = np.fromfile(policies / f"{policy}.x0", np.float32).reshape(3, 6, 4)
    expected = np.asarray(first(x))
    found = np.fromfile(policies / f"{policy}.y0", np.float32).reshape(3, 3)
    assert np.abs(found - expected).max() <= POLICIES[policy]
    # All is as it was; the function between layers came back as a layer.
    np.testing.assert_array_equal(np.asarray(second(x)), expected)
    others = {layer.name: layer for layer in second.layers}
    assert len(others) == len(first.layers) + 1
    for layer in first.layers:
        assert _policy(layer) == _policy(others[layer.name])
    assert _policy(first.layers[1])[0] == policy
    for one, other in zip(first.weights, second.weights, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    values = [weight.numpy() for weight in first.weights]
    for weight in first.weights:
        weight.assign(np.zeros(weight.shape))
    first.load_weights(policies / f"{policy}.weights.h5")
    for weight, value in zip(first.weights, values, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


@pytest.mark.parametrize("name", ["scaled", "scaled_graph"])
def test_scaled_trainings_go_on_in_python(policies: pathlib.Path, name: str) -> None:
    model = keras.models.load_model(policies / f"{name}.keras")
    optimizer = model.optimizer
    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    scale, iterations, loss = json.loads((policies / f"{name}.numbers").read_text())
    assert float(optimizer.dynamic_scale.numpy()) == scale
    assert int(optimizer.inner_optimizer.iterations.numpy()) == iterations > 0
    kinds = [_policy(layer) for layer in model.layers]
    mixed = "mixed_float16"
    assert kinds == [[mixed] * 3, [mixed], [mixed] * 2, [mixed], [mixed], ["float32"]]
    x = np.fromfile(policies / f"{name}.x0", np.float32).reshape(3, 6, 4)
    truth = np.fromfile(policies / f"{name}.truth0", np.float32).reshape(3, 2)
    found = np.fromfile(policies / f"{name}.y0", np.float32).reshape(3, 2)
    assert np.abs(np.asarray(model(x)) - found).max() <= 1e-2
    slots = [one.numpy() for one in optimizer.inner_optimizer.variables[2:]]
    assert all(np.abs(slot).max() > 0 for slot in slots)
    assert abs(float(model.train_on_batch(x, truth)) - loss) <= 1e-2


def _rows(path: pathlib.Path) -> tuple[list[str], list[list[float | str]]]:
    with path.open(newline="") as file:
        head, *rows = list(csv.reader(file))
    assert path.read_bytes().count(b"\r\n") == len(rows) + 1
    return head, [[one if one == "NA" else float(one) for one in row] for row in rows]


def _same_rows(found: list[list[float | str]], expected: list[list[float | str]]) -> None:
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        for value, other in zip(row, wanted, strict=True):
            assert value == other or abs(float(value) - float(other)) <= NEAR, (row, wanted)


def _scalars(folder: pathlib.Path) -> dict[tuple[str, int], float]:
    found: dict[tuple[str, int], float] = {}
    # The newest file: each training has its own.
    path = max(folder.glob("events.out.tfevents.*.v2"), key=lambda one: one.stat().st_mtime_ns)
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "scalars":
                found[value.tag, event.step] = float(tf.make_ndarray(value.tensor))
    return found


def test_callbacks_do_what_those_of_keras_do(tmp_path: pathlib.Path) -> None:
    _run("callbacks", str(tmp_path))
    rust, python = tmp_path / "rust", tmp_path / "python"
    python.mkdir()
    x, y, val_x, val_y = (
        np.fromfile(tmp_path / name, np.float32).reshape(-1, width)
        for name, width in (("x", 3), ("y", 1), ("val_x", 3), ("val_y", 1))
    )
    # By graph, as in Rust.
    model = keras.models.load_model(tmp_path / "first.keras")
    rates: list[float] = []
    logged: list[dict[str, float]] = []

    def _note(_: int, logs: dict[str, float]) -> None:
        logged.append(dict(logs))
        rates.append(float(model.optimizer.learning_rate))

    c = keras.callbacks
    model.fit(
        x,
        y,
        4,
        12,
        verbose=0,
        shuffle=False,
        validation_data=(val_x, val_y),
        callbacks=[
            c.CSVLogger(python / "log.csv"),
            c.ReduceLROnPlateau("val_loss", 0.3, 1, cooldown=1, min_delta=0.2, min_lr=0.02),
            c.ModelCheckpoint(python / "{epoch:02d}-{val_loss:.1f}.keras", save_best_only=True),
            c.LambdaCallback(on_epoch_end=_note),
        ],
    )
    found = [float(one) for one in (tmp_path / "rates").read_text().split()]
    np.testing.assert_allclose(found, rates, rtol=1e-6)
    assert len(set(found)) > 2
    head, rows = _rows(rust / "log.csv")
    wanted_head, wanted = _rows(python / "log.csv")
    assert head == wanted_head
    _same_rows(rows[:12], wanted)
    # Of a second training.
    _same_rows(rows[12:], wanted[:2])
    files = sorted(path.name for path in python.glob("*.keras"))
    assert files == sorted(path.name for path in rust.glob("*.keras"))
    best, other = (keras.models.load_model(folder / files[-1]) for folder in (rust, python))
    for one, two in zip(best.weights, other.weights, strict=True):
        _near(one.numpy(), two.numpy(), one.path)
    # The tags and folders of keras.callbacks.TensorBoard, which needs a package that is not here.
    columns = {name: [float(row[at]) for row in rows[:12]] for at, name in enumerate(head)}
    for part, prefix in (("train", ""), ("validation", "val_")):
        events = _scalars(rust / "board" / part)
        wanted_events = {
            (f"epoch_{name}", epoch): columns[prefix + name][epoch]
            for name in ("loss", "mean_absolute_error")
            for epoch in range(12)
        }
        if not prefix:
            wanted_events |= {("epoch_learning_rate", at): one for at, one in enumerate(rates)}
        assert set(events) == set(wanted_events)
        for key, value in events.items():
            assert abs(value - wanted_events[key]) <= NEAR, key
    model = keras.models.load_model(tmp_path / "first.keras")
    scheduled = c.LearningRateScheduler(lambda epoch, rate: 0.1 if epoch == 0 else rate * 0.5)
    logger = c.CSVLogger(python / "scheduled.csv")
    model.fit(x, y, 4, 4, verbose=0, shuffle=False, callbacks=[logger, scheduled])
    head, rows = _rows(rust / "scheduled.csv")
    wanted_head, wanted = _rows(python / "scheduled.csv")
    assert head == wanted_head
    _same_rows(rows, wanted)
