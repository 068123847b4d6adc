"""Calls of the recurrent layers of GPUs, and what they are in ops that TensorFlow's CPU has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tests.conformance.cases import Call, values

Types = Mapping[str, np.dtype[Any]]

STEPS, BATCH, INPUTS, UNITS = 5, 3, 2, 4
LENGTHS = (5, 2, 4)
GATES = {"lstm": 4, "gru": 3}
KINDS = (("lstm", 1, 1), ("lstm", 2, 2), ("gru", 1, 2), ("gru", 2, 1))
"""The mode, layers and directions of each call."""


def _weights(mode: str, layers: int, directions: int) -> list[tuple[int, ...]]:
    """Returns the shapes of the parameters, in their order."""
    every = range(layers * directions)
    matrices: list[tuple[int, ...]] = []
    for index in every:
        inputs = INPUTS if index < directions else directions * UNITS
        matrices += [(GATES[mode] * UNITS, inputs), (GATES[mode] * UNITS, UNITS)]
    return matrices + [(GATES[mode] * UNITS,) for _ in every for _ in range(2)]


def _version(op: str) -> int:
    return int(op[-1]) if op[-1].isdigit() else 1


def _made(op: str) -> Callable[[Types], Iterator[Call]]:
    def calls(types: Types) -> Iterator[Call]:
        dtype = types["T"]
        # The gradient takes the outputs, which 16 bits do not hold exactly.
        if "Backprop" in op and dtype != np.float32:
            return
        for mode, layers, directions in KINDS:
            for time_major in (True, False) if _version(op) == 3 else (True,):
                yield _one(op, dtype, mode, (layers, directions), time_major)

    return calls


def _one(
    op: str, dtype: np.dtype[Any], mode: str, sizes: tuple[int, int], time_major: bool
) -> Call:
    layers, directions = sizes
    every = layers * directions

    def made(*shape: int, seed: int) -> Any:
        swapped = (shape[1], shape[0], shape[2]) if not time_major else shape
        return values(swapped, dtype, seed, -1, 1)

    count = sum(int(np.prod(shape)) for shape in _weights(mode, layers, directions))
    states = made(every, BATCH, UNITS, seed=2)
    inputs = {
        "input": made(STEPS, BATCH, INPUTS, seed=1),
        "input_h": states,
        "input_c": made(every, BATCH, UNITS, seed=3) if mode == "lstm" else np.zeros((), dtype),
        "params": values((count,), dtype, 4, -1, 1),
    }
    attributes: dict[str, Any] = {
        "rnn_mode": mode,
        "direction": "bidirectional" if directions == 2 else "unidirectional",
        "input_mode": "linear_input",
        "dropout": 0.0,
        "seed": 0,
        "seed2": 0,
    }
    if "Backprop" not in op:
        attributes["is_training"] = True
    if _version(op) == 3:
        inputs["sequence_lengths"] = np.array(LENGTHS, np.int32)
        attributes |= {"time_major": time_major, "num_proj": 0}
    if "Backprop" in op:
        with tf.device("/device:CPU:0"):
            given = {name: tf.constant(value) for name, value in inputs.items()}
            outputs, reserve = _run(given, attributes)
            inputs |= dict(
                zip(("output", "output_h", "output_c"), (x.numpy() for x in outputs), strict=True)
            )
            inputs |= {
                "output_backprop": values(tuple(outputs[0].shape), dtype, 5, -1, 1),
                "output_h_backprop": values(states.shape, dtype, 6, -1, 1),
                "output_c_backprop": values(inputs["input_c"].shape, dtype, 7, -1, 1),
                "reserve_space": reserve.numpy(),
            }
        if _version(op) > 1:
            inputs["host_reserved"] = np.zeros(0, np.int8)
    return Call(inputs, attributes)


def _step(mode: str, weights: list[tf.Tensor], x: Any, h: Any, c: Any) -> tuple[Any, Any]:
    kernel, recurrent, bias, recurrent_bias = weights
    of_x = tf.split(x @ tf.transpose(kernel) + bias, GATES[mode], 1)
    of_h = tf.split(h @ tf.transpose(recurrent) + recurrent_bias, GATES[mode], 1)
    if mode == "lstm":
        i, f, g, o = (a + b for a, b in zip(of_x, of_h, strict=True))
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c
    update, reset = (tf.sigmoid(of_x[index] + of_h[index]) for index in (0, 1))
    return (1 - update) * tf.tanh(of_x[2] + reset * of_h[2]) + update * h, c


def _run(
    inputs: Mapping[str, tf.Tensor], attributes: Mapping[str, Any]
) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Returns the outputs of the layers, and those of all layers but the last in one vector."""
    mode = attributes["rnn_mode"]
    directions = 2 if attributes["direction"] == "bidirectional" else 1
    time_major = attributes.get("time_major", True)

    def swapped(x: tf.Tensor) -> tf.Tensor:
        return x if time_major else tf.transpose(x, (1, 0, 2))

    x, hidden = swapped(inputs["input"]), swapped(inputs["input_h"])
    cells = swapped(inputs["input_c"]) if mode == "lstm" else tf.zeros_like(hidden)
    layers = hidden.shape[0] // directions
    shapes = _weights(mode, layers, directions)
    sizes = [int(np.prod(shape)) for shape in shapes]
    parts = zip(tf.split(inputs["params"], sizes), shapes, strict=True)
    weights = [tf.reshape(part, shape) for part, shape in parts]
    every = layers * directions
    lengths = inputs.get("sequence_lengths", tf.fill([BATCH], STEPS))
    tf.debugging.assert_shapes([(lengths, (BATCH,))])
    tf.debugging.assert_non_negative(lengths)
    tf.debugging.assert_less_equal(lengths, STEPS)
    last_h, last_c, kept = [], [], []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            own = weights[2 * index :][:2] + weights[2 * every + 2 * index :][:2]
            h, c = hidden[index], cells[index]
            sequence: list[Any] = [None] * STEPS
            for step in reversed(range(STEPS)) if direction else range(STEPS):
                valid = (step < lengths)[:, None]
                new_h, new_c = _step(mode, own, x[step], h, c)
                h, c = tf.where(valid, new_h, h), tf.where(valid, new_c, c)
                sequence[step] = tf.where(valid, new_h, tf.zeros_like(new_h))
            outputs.append(tf.stack(sequence))
            last_h.append(h)
            last_c.append(c)
        x = tf.concat(outputs, 2)
        if layer < layers - 1:
            # As the kernel keeps it: the axis of the batch is the first.
            kept.append(tf.reshape(tf.transpose(x, (1, 0, 2)), [-1]))
    none = tf.zeros([], x.dtype)
    results = [
        swapped(x),
        swapped(tf.stack(last_h)),
        swapped(tf.stack(last_c)) if mode == "lstm" else none,
    ]
    return results, tf.concat(kept, 0) if kept else tf.zeros([0], x.dtype)


def _forward(**arguments: Any) -> list[tf.Tensor]:
    return _run(arguments, arguments)[0]


def _backward(**arguments: Any) -> list[tf.Tensor]:
    sources = [arguments[name] for name in ("input", "input_h", "input_c", "params")]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs, _ = _run(arguments, arguments)
    weights = [arguments[f"{name}_backprop"] for name in ("output", "output_h", "output_c")]
    zero = tf.UnconnectedGradients.ZERO
    found: list[tf.Tensor] = tape.gradient(outputs, sources, weights, zero)
    return found


FORWARD = ("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
BACKWARD = ("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3")

CALLS: Mapping[str, Callable[[Types], Iterator[Call]]] = {
    op: _made(op) for op in FORWARD + BACKWARD
}
"""Calls by op."""

REFERENCES: Mapping[str, Callable[..., list[tf.Tensor]]] = {
    **dict.fromkeys(FORWARD, _forward),
    **dict.fromkeys(BACKWARD, _backward),
}
"""As in `references`."""
