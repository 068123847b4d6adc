"""Models that Keras 2 wrote to .h5, made readable for Keras 3."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import keras

from converters.tf.load.keras.legacy_layers import keras_2_hard_sigmoid
from converters.tf.load.keras.legacy_models import restructure
from converters.tf.load.keras.legacy_nodes import modernize

_ANY = object()
# Arguments of Keras 2 that Keras 3 refuses, with the only value that changes nothing; any value of
# those that only help to build, to train or to draw random numbers.
_ROWS: Sequence[tuple[Sequence[str], Mapping[str, object]]] = (
    (
        ("LSTM", "GRU", "SimpleRNN", "RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"),
        {"time_major": False},
    ),
    (
        (
            "Conv1DTranspose",
            "Conv2DTranspose",
            "Conv3DTranspose",
            "DepthwiseConv1D",
            "DepthwiseConv2D",
        ),
        {"groups": 1},
    ),
    (
        ("SeparableConv1D", "SeparableConv2D"),
        {
            "groups": 1,
            "kernel_constraint": _ANY,
            "kernel_initializer": _ANY,
            "kernel_regularizer": _ANY,
        },
    ),
    (
        (
            "RandomBrightness",
            "RandomContrast",
            "RandomFlip",
            "RandomRotation",
            "RandomTranslation",
            "RandomZoom",
        ),
        {"rng_type": _ANY},
    ),
    (
        ("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"),
        {"noise_shape": None, "trainable": _ANY},
    ),
    # Keras 3 takes the name of this default for a function.
    (("Attention",), {"score_mode": "dot"}),
    (("Discretization",), {"dtype": _ANY, "trainable": _ANY}),
    (
        ("MultiHeadAttention",),
        {
            "query_shape": _ANY,
            "key_shape": _ANY,
            "value_shape": _ANY,
            "softmax_robust_masking": False,
        },
    ),
)
_DROPPED = {layer: row for layers, row in _ROWS for layer in layers}
# Makes Keras read a layer by the rules of its own files: those for .h5 lose several axes.
_KERAS_3 = {"module": "keras.layers", "registered_name": None}
_ACTIVATIONS = ("activation", "recurrent_activation")
_FUNCTION = {
    "module": "builtins",
    "class_name": "function",
    "config": keras_2_hard_sigmoid.__name__,
    "registered_name": keras_2_hard_sigmoid.__name__,
}
_ATTRIBUTE = "model_config"


def readable(path: Path, folder: Path) -> Path:
    """Returns the file, or a copy of it in a folder whose description Keras 3 understands.

    Raises:
        OSError: The file is damaged.
        ValueError: Its description is.
    """
    with h5py.File(path, "r") as file:
        text = file.attrs.get(_ATTRIBUTE)
        version = file.attrs.get("keras_version", "1")
    if text is None:
        return path
    config = json.loads(text)
    version = version.decode() if isinstance(version, bytes) else str(version)
    old = version.startswith(("1", "2"))
    if old:
        restructure(config)
    changed = _fix(config)
    if old:
        _rename_activations(config)
        modernize(config)
    elif not changed:
        return path
    copy = folder / "model.h5"
    shutil.copyfile(path, copy)
    with h5py.File(copy, "r+") as file:
        file.attrs[_ATTRIBUTE] = json.dumps(config)
    return copy


def _fix(config: Any) -> bool:
    """Makes all layers such that Keras 3 takes them as they are; returns whether one was not."""
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
        axis = arguments.get("axis")
        known = hasattr(keras.layers, str(item.get("class_name"))) and "module" not in item
        if isinstance(axis, list) and len(axis) > 1 and known:
            item |= _KERAS_3
            changed = True
        for name, neutral in dropped.items():
            if name in arguments and (neutral is _ANY or arguments[name] == neutral):
                del arguments[name]
                changed = True
    return changed


def _rename_activations(config: Any) -> None:
    """Gives activations that Keras 3 computes in another way the names of those of Keras 2."""
    stack = [config]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        if isinstance(item, dict):
            stack.extend(item.values())
            for key in _ACTIVATIONS:
                if item.get(key) == "hard_sigmoid":
                    item[key] = dict(_FUNCTION)
