"""Model files whose parts contradict each other: one error each, which names the part."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
from keras import layers

from converters.tf.errors import FileError
from converters.tf.load.model import LoadOptions, load
from converters.tf.tests.models import mlp

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
