"""Inputs that decide sizes inside of a model: what they are follows from the stated results.

Where an operator inside has no stated shape, the whole model is converted for a value that its
outputs allow. A call that gives another value fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.onnx.file import Graph, Port
from converters.tf.load.onnx.stated import Fixed

# As many conversions are tried.
_MOST_TRIES = 24

Guess = Mapping[str, Array]


def stated_outputs(model: Graph) -> dict[str, Fixed]:
    """Returns the shapes of outputs that the file states, by name."""
    found = {}
    for node in model.nodes:
        for name, shape in zip(node.outputs, node.shapes, strict=False):
            if name in model.outputs and shape is not None:
                found[name] = shape
    return found


def guesses(model: Graph) -> Iterator[Guess]:
    """Yields values of the short integer inputs that the stated outputs allow, by name."""
    outputs = stated_outputs(model)
    deciding = [port for port in model.inputs if _decides(port)]
    if not deciding or len(outputs) < len(model.outputs):
        return
    ways = [_values(port, list(outputs.values())) for port in deciding]
    for found in itertools.islice(itertools.product(*ways), _MOST_TRIES):
        names = (port.name for port in deciding)
        yield dict(zip(names, found, strict=True))


def _decides(port: Port) -> bool:
    shape = port.shape
    fixed = shape is not None and len(shape) < 2 and all(isinstance(dim, int) for dim in shape)
    return fixed and port.dtype in ("int32", "int64")


def _values(port: Port, shapes: Sequence[Fixed]) -> list[Array]:
    """Returns sizes of the outputs, in their order, as an input may give them."""
    assert port.shape is not None
    count = int(port.shape[0] or 0) if port.shape else 1
    ways = (sizes for shape in shapes for sizes in itertools.combinations(shape, count))
    found = dict.fromkeys(itertools.islice(ways, _MOST_TRIES))
    dims = tuple(int(dim or 0) for dim in port.shape)
    return [np.array(sizes, port.dtype).reshape(dims) for sizes in found]


def holds(guess: Guess, ports: Sequence[Port], inputs: Sequence[Any]) -> Any:
    """Returns whether a call gives what was guessed, as a truth value of TensorFlow."""
    found = [
        tf.reduce_all(tf.equal(tensor, guess[port.name]))
        for port, tensor in zip(ports, inputs, strict=True)
        if port.name in guess
    ]
    return tf.reduce_all(tf.stack(found))
