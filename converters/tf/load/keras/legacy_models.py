"""The layers of a description of Keras 2, in the words of Keras 3."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

# Layers that TensorFlow 1 wrote by other names.
_RENAMED = {
    "BatchNormalizationV1": "BatchNormalization",
    "BatchNormalizationV2": "BatchNormalization",
    "UnifiedGRU": "GRU",
    "UnifiedLSTM": "LSTM",
}
_SHAPE = "batch_input_shape"


def restructure(config: Any) -> None:
    """Rewrites all layers of a description: their classes, their names, where a sequence begins."""
    numbers = itertools.count(1)
    for layer in list(_layers(config)):
        layer["class_name"] = _RENAMED.get(layer["class_name"], layer["class_name"])
        if layer["class_name"] == "Sequential":
            _begin(layer, f"sequential_{next(numbers)}")
    for layer in _layers(config):
        if layer["class_name"] != "InputLayer" and isinstance(layer["config"], dict):
            layer["config"].pop(_SHAPE, None)  # Keras 3 takes it for a shape without the batch.
    _rename(config)


def _items(config: Any) -> Iterator[Any]:
    stack = [config]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _layers(config: Any) -> Iterator[dict[str, Any]]:
    for item in _items(config):
        if isinstance(item, dict) and isinstance(item.get("class_name"), str) and "config" in item:
            yield item


def _begin(sequence: dict[str, Any], name: str) -> None:
    """Lets a sequence begin with its input, which older files leave to the first layer."""
    if isinstance(sequence["config"], list):
        sequence["config"] = {"name": sequence.get("name", name), "layers": sequence["config"]}
    layers = sequence["config"].get("layers") if isinstance(sequence["config"], dict) else None
    if not isinstance(layers, list) or not layers or not isinstance(layers[0], dict):
        return
    own = layers[0].get("config")
    if layers[0].get("class_name") != "InputLayer" and isinstance(own, dict) and _SHAPE in own:
        described = {
            _SHAPE: own[_SHAPE],
            "dtype": own.get("dtype") or "float32",
            "name": f"{own.get('name', name)}_input",
        }
        layers.insert(0, {"class_name": "InputLayer", "config": described})


def _rename(config: Any) -> None:
    """Replaces slashes in names of layers, which Keras 3 refuses."""
    names = {
        owner["name"]
        for layer in _layers(config)
        for owner in (layer, layer["config"])
        if isinstance(owner, dict) and isinstance(owner.get("name"), str)
    }
    new: dict[str, str] = {}
    for name in sorted(n for n in names if "/" in n):
        plain = name.replace("/", "_")
        tries = (plain if i == 1 else f"{plain}_{i}" for i in itertools.count(1))
        new[name] = next(t for t in tries if t not in names)
        names.add(new[name])
    if not new:
        return
    for item in _items(config):
        if isinstance(item, list) and _is_call(item, new):
            item[0] = new[item[0]]
    for layer in _layers(config):
        for owner in (layer, layer["config"]):
            if isinstance(owner, dict) and isinstance(owner.get("name"), str):
                owner["name"] = new.get(owner["name"], owner["name"])


def _is_call(item: list[Any], names: Mapping[str, str]) -> bool:
    """Returns whether a list names the result of a call of one of these layers."""
    return (
        len(item) in (3, 4)
        and isinstance(item[0], str)
        and item[0] in names
        and all(isinstance(v, int) for v in item[1:3])
    )
