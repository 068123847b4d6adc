"""Models that Keras 2 wrote to .h5, made readable for Keras 3."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import keras

# Arguments of Keras 2 that Keras 3 refuses, with the only value that changes nothing.
_DROPPED: Mapping[str, Mapping[str, object]] = {
    "LSTM": {"time_major": False},
    "GRU": {"time_major": False},
    "SimpleRNN": {"time_major": False},
    "RNN": {"time_major": False},
    "DepthwiseConv1D": {"groups": 1},
    "DepthwiseConv2D": {"groups": 1},
    "SeparableConv1D": {"groups": 1},
    "SeparableConv2D": {"groups": 1},
    "Conv1DTranspose": {"groups": 1},
    "Conv2DTranspose": {"groups": 1},
    "Conv3DTranspose": {"groups": 1},
    "MultiHeadAttention": {
        "query_shape": None,
        "key_shape": None,
        "value_shape": None,
        "softmax_robust_masking": False,
    },
}
# Arguments that only help to build a layer, whatever their value.
_HINTS = ("query_shape", "key_shape", "value_shape")
_ATTRIBUTE = "model_config"


class ThresholdedReLU(keras.layers.Layer):  # type: ignore[misc]
    """A layer that Keras 3 has no more: `x` above `theta`, 0 elsewhere."""

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.theta = float(theta)

    def call(self, inputs: Any) -> Any:
        """Returns the result for a tensor of any shape."""
        return keras.ops.where(inputs > self.theta, inputs, 0.0)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {**super().get_config(), "theta": self.theta}


CUSTOM_OBJECTS: Mapping[str, type] = {"ThresholdedReLU": ThresholdedReLU}
"""Layers of Keras 2 that Keras 3 has no more."""


def readable(path: Path, folder: Path) -> Path:
    """Returns the file, or a copy of it in a folder whose description Keras 3 understands.

    Raises:
        OSError: The file is damaged.
        ValueError: Its description is.
    """
    with h5py.File(path, "r") as file:
        text = file.attrs.get(_ATTRIBUTE)
    if text is None:
        return path
    config = json.loads(text)
    if not _fix(config):
        return path
    copy = folder / "model.h5"
    shutil.copyfile(path, copy)
    with h5py.File(copy, "r+") as file:
        file.attrs[_ATTRIBUTE] = json.dumps(config)
    return copy


def _fix(config: Any) -> bool:
    """Takes the refused arguments out of all layers; returns whether there were any."""
    changed = False
    stack = [config]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        if not isinstance(item, dict):
            continue
        stack.extend(item.values())
        arguments = item.get("config")
        dropped = _DROPPED.get(str(item.get("class_name")), {})
        if not isinstance(arguments, dict):
            continue
        for name, neutral in dropped.items():
            if name in arguments and (name in _HINTS or arguments[name] == neutral):
                del arguments[name]
                changed = True
    return changed
