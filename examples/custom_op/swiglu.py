"""`swiglu(gate, up)`: an op of a library of your own, with its gradient.

The library is loaded once, with TensorFlow; the device of libtfp.so, if it is there, runs its
kernels as its own.
"""

from __future__ import annotations

import pathlib
from typing import Any, Final

import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import load_library, op_def_library

Tensor = Any
"""A tensor of TensorFlow, which ships no types for mypy."""

_RESULTS: Final = {"SwiGlu": 1, "SwiGluGrad": 2}


def load(library: pathlib.Path) -> None:
    """Loads the library that defines the ops.

    Args:
        library: The shared library that this example builds.

    Raises:
        tf.errors.NotFoundError: If there is none.
    """
    load_library.load_pluggable_device_library(str(library))


def _call(op: str, **inputs: Tensor) -> list[Tensor]:
    """Runs an op, or adds it to the graph that is being built."""
    tensors = list(inputs.values())
    attributes = ("T", tensors[0].dtype.as_datatype_enum)
    if tf.executing_eagerly():
        outputs = execute.execute(
            op.encode(), _RESULTS[op], inputs=tensors, attrs=attributes, ctx=context.context()
        )
    else:
        outputs = tf.nest.flatten(op_def_library.apply_op(op, **inputs))
    if execute.must_record_gradient():
        execute.record_gradient(op, tensors, attributes, outputs)
    return list(outputs)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Computes `gate * sigmoid(gate) * up`.

    Args:
        gate: float32 or float64.
        up: Of the same type and shape.

    Returns:
        A tensor of that type and shape.
    """
    gate = tf.convert_to_tensor(gate)
    up = tf.convert_to_tensor(up, gate.dtype)
    return _call("SwiGlu", gate=gate, up=up)[0]


@tf.RegisterGradient("SwiGlu")  # type: ignore[untyped-decorator]
def _gradient(op: Any, dy: Tensor) -> list[Tensor]:
    gate, up = op.inputs
    return _call("SwiGluGrad", gate=gate, up=up, dy=dy)
