"""Layers and functions of Keras 2 that Keras 3 has no more, or computes in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from converters.tf.load.keras.legacy_nodes import ELLIPSIS

# Parts of TensorFlow whose functions only compute.
_MODULES = ("__operators__", "linalg", "math", "nn")
_FUNCTIONS = frozenset(
    (
        "abs",
        "argmax",
        "argmin",
        "broadcast_to",
        "cast",
        "clip_by_value",
        "concat",
        "cumsum",
        "einsum",
        "exp",
        "expand_dims",
        "gather",
        "identity",
        "image.resize",
        "matmul",
        "maximum",
        "minimum",
        "one_hot",
        "ones_like",
        "pad",
        "repeat",
        "reshape",
        "reverse",
        "round",
        "shape",
        "slice",
        "split",
        "sqrt",
        "square",
        "squeeze",
        "stack",
        "strided_slice",
        "tanh",
        "tile",
        "transpose",
        "unstack",
        "where",
        "zeros_like",
    )
)


def keras_2_hard_sigmoid(x: Any) -> Any:
    """Returns `0.2 x + 0.5` between 0 and 1; the slope of Keras 3 is a sixth.

    Keras finds it again by its name when a layer copies another.
    """
    return keras.ops.clip(0.2 * x + 0.5, 0.0, 1.0)


class ThresholdedReLU(keras.layers.Layer):  # type: ignore[misc]
    """`x` above `theta`, 0 elsewhere."""

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.theta = float(theta)

    def call(self, inputs: Any) -> Any:
        """Returns the result for a tensor of any shape."""
        return keras.ops.where(inputs > self.theta, inputs, 0.0)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {**super().get_config(), "theta": self.theta}


class TFOpLambda(keras.layers.Layer):  # type: ignore[misc]
    """A function of TensorFlow, called on the tensors of a functional model."""

    def __init__(self, function: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._allow_non_tensor_positional_args = True
        self.function = function
        self._run = _function(function)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the function's result."""
        return self._run(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {**super().get_config(), "function": self.function}


class SlicingOpLambda(TFOpLambda):
    """A part of a tensor."""

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the part."""
        return self._run(*(_slices(a) for a in args), **{k: _slices(v) for k, v in kwargs.items()})


def _function(path: str) -> Callable[..., Any]:
    module, _, function = path.rpartition(".")
    known = path in _FUNCTIONS or (module in _MODULES and not function.startswith("_"))
    if not known:
        raise ValueError(f"tf.{path} is not among the functions that a model file may name")
    found: Any = tf
    for name in path.split("."):
        found = getattr(found, name, None)
    if not callable(found):
        raise ValueError(f"TensorFlow has no function tf.{path}")
    run: Callable[..., Any] = found
    return run


def _slices(value: Any) -> Any:
    """Returns a value with slices where a description has their parts."""
    if isinstance(value, dict) and set(value) == {"start", "stop", "step"}:
        return slice(value["start"], value["stop"], value["step"])
    if isinstance(value, list | tuple):
        return type(value)(_slices(v) for v in value)
    return ... if isinstance(value, str) and value == ELLIPSIS else value


CUSTOM_OBJECTS: Mapping[str, Any] = {
    "SlicingOpLambda": SlicingOpLambda,
    "TFOpLambda": TFOpLambda,
    "ThresholdedReLU": ThresholdedReLU,
    keras_2_hard_sigmoid.__name__: keras_2_hard_sigmoid,
}
"""All of them by the names in descriptions."""
