"""The calls of layers in a description of Keras 2, in the words of Keras 3.

Keras 2 counts the making of a model inside of a model as its first call. It knows arguments that
are tensors by the shape of a list: name of a layer, number of its call, number of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MODELS = frozenset(("Functional", "Model", "Sequential"))
_RECURRENT = frozenset(
    ("Bidirectional", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "GRU", "LSTM", "RNN", "SimpleRNN")
)
_CONSTANT = "_CONSTANT_VALUE"
ELLIPSIS = "Ellipsis"
"""How an index that stands for many is written here; Keras 3 has no words for one."""


def modernize(config: Any) -> None:
    """Rewrites the calls in all functional models of a description."""
    for model in list(_functional(config)):
        layers = model["layers"]
        first = {
            layer["name"]: int(layer.get("class_name") in _MODELS)
            for layer in layers
            if isinstance(layer, dict) and "name" in layer
        }
        for layer in layers:
            if isinstance(layer, dict):
                nodes = layer.get("inbound_nodes", [])
                recurrent = layer.get("class_name") in _RECURRENT
                layer["inbound_nodes"] = [_node(node, first, recurrent) for node in nodes]
        for key in ("input_layers", "output_layers"):
            found = _shifted(model[key], first)
            single = isinstance(found, list) and len(found) == 1
            model[key] = found[0] if single and _is_reference(found[0], first) else found


def _functional(config: Any) -> Iterator[dict[str, Any]]:
    stack = [config]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if {"layers", "input_layers", "output_layers"} <= set(item):
                yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _is_reference(value: Any, first: Mapping[str, int]) -> bool:
    return (
        isinstance(value, list)
        and len(value) in (3, 4)
        and isinstance(value[0], str)
        and value[0] in first
        and all(isinstance(v, int) for v in value[1:3])
    )


def _shifted(value: Any, first: Mapping[str, int]) -> Any:
    if _is_reference(value, first):
        return [value[0], value[1] - first[value[0]], value[2]]
    if isinstance(value, list):
        return [_shifted(v, first) for v in value]
    if isinstance(value, dict):
        return {k: _shifted(v, first) for k, v in value.items()}
    return value


def _tensors(value: Any, first: Mapping[str, int]) -> Any:
    """Returns an argument, with tensors as Keras 3 writes them."""
    if _is_reference(value, first):
        history = _shifted(value, first)
        config = {"shape": [None], "dtype": "float32", "keras_history": history}
        return {"class_name": "__keras_tensor__", "config": config}
    if isinstance(value, list) and value[:1] == [_CONSTANT]:
        return value[2]
    if isinstance(value, dict) and value.get("class_name") == "__ellipsis__":
        return ELLIPSIS
    if isinstance(value, list):
        return [_tensors(v, first) for v in value]
    if isinstance(value, dict):
        return {k: _tensors(v, first) for k, v in value.items()}
    return value


def _node(node: Any, first: Mapping[str, int], recurrent: bool) -> Any:
    """Returns a call; one that is not a list is in the words of Keras 3 already."""
    if not isinstance(node, list) or not node:
        return node
    single = isinstance(node[0], str)
    parts = [node] if single else node
    if any(not isinstance(p, list) or len(p) not in (3, 4) for p in parts):
        return node
    kwargs = parts[-1][3] if len(parts[-1]) == 4 else {}
    kwargs = {key: _tensors(value, first) for key, value in (kwargs or {}).items()}
    inputs = [_tensors(p[:3], first) for p in parts]
    if recurrent and len(inputs) > 1:
        kwargs["initial_state"] = inputs[1:]
        inputs = inputs[:1]
    return {"args": inputs if len(inputs) == 1 else [inputs], "kwargs": kwargs}
