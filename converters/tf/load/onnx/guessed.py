"""Inputs that decide sizes inside of a model: what they are follows from the stated results.

Where an operator inside has no stated shape, the whole model is converted for a value that its
outputs allow. A call that gives another value fails. One element of a size may be any number, if
the model converts without knowing it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir.expressions import is_open, unknown
from converters.tf.ir.symbolic import Symbol
from converters.tf.load.onnx.file import Graph, Port
from converters.tf.load.onnx.stated import Fixed
from converters.tf.load.onnx.values import Known

# As many conversions are tried.
_MOST_TRIES = 32
# No input has this dimension: what needs it is refused.
_ANY = unknown("(any)")

Guess = Mapping[str, Known | Symbol]


def stated_outputs(model: Graph) -> dict[str, Fixed]:
    """Returns the shapes of outputs that the file states, by name."""
    found = {}
    for node in model.nodes:
        for name, shape in zip(node.outputs, node.shapes, strict=False):
            if name in model.outputs and shape is not None:
                found[name] = shape
    return found


def guesses(model: Graph, some: bool) -> Iterator[Guess]:
    """Yields values of the short integer inputs that the stated outputs allow, by name.

    Args:
        model: The model.
        some: Whether one element of each may be any number.
    """
    outputs = stated_outputs(model)
    deciding = [port for port in model.inputs if _decides(port)]
    if not deciding or len(outputs) < len(model.outputs):
        return
    ways = [_values(port, list(outputs.values()), some) for port in deciding]
    for found in itertools.islice(itertools.product(*ways), _MOST_TRIES):
        names = (port.name for port in deciding)
        yield dict(zip(names, found, strict=True))


def _decides(port: Port) -> bool:
    shape = port.shape
    fixed = shape is not None and len(shape) < 2 and all(isinstance(dim, int) for dim in shape)
    return fixed and port.dtype in ("int32", "int64")


def _values(port: Port, shapes: Sequence[Fixed], some: bool) -> list[Known | Symbol]:
    """Returns sizes of the outputs, in their order, as an input may give them."""
    assert port.shape is not None
    count = int(port.shape[0] or 0) if port.shape else 1
    dims = tuple(int(dim or 0) for dim in port.shape)
    ways = (list(sizes) for shape in shapes for sizes in itertools.combinations(shape, count))
    if some:
        ways = (
            [*sizes[:place], _ANY, *sizes[place:]]
            for shape in shapes
            for place in range(count)
            for sizes in itertools.combinations(shape, count - 1)
        )
    found = dict.fromkeys(map(tuple, itertools.islice(ways, _MOST_TRIES)))
    return [_value(port.dtype, sizes, dims) for sizes in found]


def _value(dtype: str, sizes: Sequence[Any], dims: Fixed) -> Known | Symbol:
    if any(map(is_open, sizes)):
        found = np.empty(len(sizes), object)
        found[:] = sizes
        return Symbol(found.reshape(dims), dtype)
    return Known(np.array(sizes, dtype).reshape(dims))


def holds(guess: Guess, ports: Sequence[Port], inputs: Sequence[Any]) -> Any:
    """Returns whether a call gives what was guessed, as a truth value of TensorFlow."""
    found = [
        _agrees(guess[port.name], tensor)
        for port, tensor in zip(ports, inputs, strict=True)
        if port.name in guess
    ]
    return tf.reduce_all(tf.stack(found))


def _agrees(value: Known | Symbol, tensor: Any) -> Any:
    if isinstance(value, Known):
        return tf.reduce_all(tf.equal(tensor, value.data))
    kept = np.array([is_open(dim) for dim in value.dims.flat]).reshape(value.dims.shape)
    sizes = np.where(kept, 1, value.dims).astype(value.dtype)
    fits = tf.where(kept, tensor >= 1, tf.equal(tensor, sizes))
    return tf.reduce_all(fits)
