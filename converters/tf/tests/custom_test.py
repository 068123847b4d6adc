"""Models whose classes are in a Python file of the user."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from keras import ops as K  # noqa: N812 - as models call it

from converters.tf.errors import FileError
from converters.tf.load.files import Kind
from converters.tf.load.keras.custom import custom_objects
from converters.tf.load.model import LoadOptions, load, load_keras
from converters.tf.tests.checks import check, model_of, ops
from tools.codegen.conversion import UnsupportedError, UsageError

_LAYERS = """\
import keras

from near_by import FACTOR


def halved(x):
    return x / 2


@keras.saving.register_keras_serializable("mine")
class Scaled(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.inner = keras.layers.Dense(units, activation=halved)

    def call(self, x):
        return FACTOR * self.inner(x)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Shifted(keras.layers.Layer):
    def call(self, x):
        return x + 1
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A model and the Python file of its layers, which this process has forgotten."""
    code = tmp_path / "my_layers.py"
    code.write_text(_LAYERS)
    (tmp_path / "near_by.py").write_text("FACTOR = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = importlib.util.spec_from_file_location("my_layers", code)
    assert spec is not None and spec.loader is not None
    mine = importlib.util.module_from_spec(spec)
    registered = keras.saving.get_custom_objects()
    before = dict(registered)
    spec.loader.exec_module(mine)

    def body(x: Any) -> Any:
        return mine.Shifted()(keras.layers.Dense(2, mine.halved)(mine.Scaled(3)(x)))

    model = model_of([(4,)], body)
    path = tmp_path / "m.keras"
    model.save(path)
    registered.clear()
    registered.update(before)
    return path, code


def test_layers_of_a_file_of_the_user(files: tuple[Path, Path]) -> None:
    path, code = files
    options = LoadOptions(allow_custom_code=True, custom_objects=(code,))
    check(load(path, options), (1, 3))


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_without_the_file_the_class_is_named(files: tuple[Path, Path], suffix: str) -> None:
    path, code = files
    allowed = LoadOptions(allow_custom_code=True)
    if suffix == ".h5":
        with_code = LoadOptions(allow_custom_code=True, custom_objects=(code,))
        before = dict(keras.saving.get_custom_objects())
        model = load_keras(path, Kind.KERAS, with_code)
        path = path.with_suffix(suffix)
        model.save(path)
        keras.saving.get_custom_objects().clear()
        keras.saving.get_custom_objects().update(before)
    name = r"it needs the (class|layer|function) '[\w>]*(Scaled|Shifted|halved)'"
    with pytest.raises(FileError, match=name + r", which is not part of Keras \(.*--custom_obj"):
        load(path, allowed)


def test_a_lambda_whose_code_is_not_in_the_file(tmp_path: Path) -> None:
    """Keras writes `activation="<lambda>"` for one, and nothing else of it."""
    x = keras.Input((3,))
    model = keras.Model(x, layers.Dense(2, activation="softsign")(x))
    path, code = tmp_path / "m.h5", tmp_path / "activations_of_mine.py"
    model.save(path)
    with h5py.File(path, "r+") as file:
        config = file.attrs["model_config"].replace('"softsign"', '"<lambda>"')
        file.attrs["model_config"] = config
    with pytest.raises(FileError, match="function '<lambda>', whose code it does not hold"):
        load(path, LoadOptions())
    code.write_text("import keras\nactivation = lambda x: x / (1 + keras.ops.abs(x))\n")
    loaded = load(path, LoadOptions(allow_custom_code=True, custom_objects=(code,)))
    (found,) = loaded.predict({loaded.trace.inputs[0].name: np.ones((2, 3), np.float32)}).values()
    assert np.allclose(found, model.predict(np.ones((2, 3)), verbose=0), atol=1e-6)


def test_code_of_the_user_runs_only_if_that_is_allowed(files: tuple[Path, Path]) -> None:
    path, code = files
    code.write_text("raise SystemExit('it ran')")
    with pytest.raises(UsageError, match="--allow_custom_code"):
        load(path, LoadOptions(custom_objects=(code,)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1 +", "SyntaxError"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        (None, "no Python file"),
    ],
)
def test_files_that_can_not_run(files: tuple[Path, Path], text: str | None, what: str) -> None:
    path, code = files
    other = code.with_name("other.py")
    if text is not None:
        other.write_text(text)
    with pytest.raises(UsageError, match=what):
        load(path, LoadOptions(allow_custom_code=True, custom_objects=(other,)))


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_lambdas_know_the_usual_names(suffix: str, tmp_path: Path) -> None:
    """Keras stores the code of a lambda without what its module imported."""

    def body(a: Any, b: Any) -> Any:
        apart = layers.Lambda(lambda x: tf.sqrt(K.sum((x[0] - x[1]) ** 2, -1, keepdims=True)))
        turned = layers.Lambda(lambda x: np.pi * keras.ops.sin(x))
        return turned(apart([a, b]))

    path = tmp_path / f"model.{suffix}"
    model_of([(4,), (4,)], body).save(path)
    check(load(path, LoadOptions(allow_custom_code=True)), (1, 3))
    with pytest.raises(FileError, match=r"which was not run.*--allow_custom_code"):
        load(path, LoadOptions())


def test_lambdas_know_what_files_of_the_user_define(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text("def K(x):\n    return x / 2\n")

    def body(x: Any) -> Any:
        return layers.Lambda(lambda x: K(x) if callable(K) else x)(x)

    path = tmp_path / "model.keras"
    model_of([(4,)], body).save(path)
    graph = check(load(path, LoadOptions(allow_custom_code=True, custom_objects=(code,))), (3,))
    assert ops(graph) == ["Binary"]


def test_a_name_has_one_file(files: tuple[Path, Path]) -> None:
    path, code = files
    copy = code.with_name("copy.py")
    copy.write_text(_LAYERS)
    with pytest.raises(UsageError, match="another file defines"):
        load(path, LoadOptions(allow_custom_code=True, custom_objects=(code, copy)))


def test_a_function_may_import_a_neighbour_when_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "late_neighbour.py").write_text("FACTOR = 3\n")
    code = tmp_path / "late.py"
    code.write_text("def factor():\n    from late_neighbour import FACTOR\n    return FACTOR\n")
    assert custom_objects((code,))["factor"]() == 3


def test_a_file_may_change_the_path_itself(tmp_path: Path) -> None:
    code = tmp_path / "path.py"
    code.write_text("import sys\nsys.path.remove(sys.path[-1])\n\ndef one():\n    return 1\n")
    assert custom_objects((code,))["one"]() == 1


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_names_in_any_script(suffix: str, tmp_path: Path) -> None:
    """TensorFlow's scopes take letters of ASCII alone."""
    inputs = keras.Input((4, 6), name="вход")
    inner = keras.Sequential([layers.Dense(3, name="größe (1)")], name="-ö")
    lstm = layers.Bidirectional(layers.LSTM(3, name="層"), name="bö")
    model = keras.Model(inputs, layers.Dense(2, name="выход")(lstm(inner(inputs))), name="名")
    model.save(tmp_path / f"model.{suffix}")
    scope = tf.name_scope
    graph = check(load(tmp_path / f"model.{suffix}", LoadOptions()))
    assert tf.name_scope is scope
    assert [layer.path for layer in graph.layers][:2] == ["-ö", "-ö/größe (1)"]
    assert [port.name for port in graph.inputs] == ["вход"]


def test_a_model_that_was_never_called_says_so() -> None:
    class Own(keras.Model):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(UnsupportedError, match="never called or built"):
        check(Own())
