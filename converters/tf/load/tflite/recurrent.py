"""Recurrent layers that are one operator: as loops, which become one op again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.saved_model.replay import Refused, Tensor
from converters.tf.load.tflite.call import Call, Handler
from converters.tf.load.tflite.lists import written

# Operands of a sequence LSTM: kernels of its gates, of its states, biases.
_KERNELS = range(1, 5)
_RECURRENT = range(5, 9)
_BIASES = range(12, 16)
# Variables among the operands: of a sequence LSTM and of its halves in two directions, of an RNN
# and of SVDF.
_STATES = range(18, 20)
_FORWARD, _BACKWARD = 35, 37
_HIDDEN = 4
_FILTERED = 4
# What gates see of the state before they are opened (of the output gate: after), a product of the
# output with its bias, and factors of the gates' norms.
_PEEPHOLES = (9, 10, None, 11)
_PROJECTION = (16, 17)
_NORMS = range(20, 24)
# What is added to the variance of a gate.
_EPSILON = 1e-8
_ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {0: tf.identity, 1: tf.nn.relu, 4: tf.tanh}


def _rows(call: Call) -> Tensor:
    """Returns the input with the time first."""
    x = call.tensor(0)
    return x if call.option("timeMajor", False) else tf.transpose(x, [1, 0, 2])


def _begun(call: Call, place: int, shape: tuple[int | None, ...], zeros: Tensor) -> Tensor:
    """Returns what a state holds at first: zeros, unless the call gets it.

    Args:
        call: The operator.
        place: The place of the variable among the operands.
        shape: Its shape.
        zeros: Zeros of the shape.

    Raises:
        Refused: The call gets it, and may change it or not.
    """
    key, variables = call.kept.get(place), call.variables
    if key is None:
        return zeros
    if key not in variables.given:
        variables.first[key] = (shape, np.zeros([d or 1 for d in shape], np.float32))
        return zeros
    if call.replay.inside:
        raise Refused("a variable changes in a loop or branch")
    return variables.values[key]


def _left(call: Call, place: int, value: Tensor) -> None:
    """Notes what a state holds afterwards."""
    if place in call.kept:
        call.variables.values[call.kept[place]] = value


def _over_time(
    call: Call, sizes: Sequence[int], places: Sequence[int], cell: Callable[..., Sequence[Tensor]]
) -> Tensor:
    """Returns the output of every step.

    A cell gives its states of some sizes, the output first. They are the variables at some places
    of the operands, and 0 before unless a call gets them.
    """
    x = _rows(call)
    steps, batch = x.shape[0] or tf.shape(x)[0], tf.shape(x)[1]
    outputs = tf.zeros([steps, batch, sizes[0]])
    outputs.set_shape([x.shape[0], x.shape[1], sizes[0]])

    def start(units: int, place: int) -> Tensor:
        shape = (x.shape[1], units)
        state = _begun(call, place, shape, tf.zeros([batch, units]))
        state.set_shape(shape)
        return state

    def turn(time: Tensor, rows: Tensor, *before: Tensor) -> list[Tensor]:
        after = cell(tf.gather(x, time), *before)
        return [time + 1, written(rows, time, after[0]), *after]

    starts = [tf.constant(0), outputs, *map(start, sizes, places)]
    _, found, *after = tf.while_loop(lambda time, *_: time < steps, turn, starts)
    for place, value in zip(places, after, strict=True):
        _left(call, place, value)
    return found if call.option("timeMajor", False) else tf.transpose(found, [1, 0, 2])


def _joined(call: Call, places: Sequence[int]) -> Array:
    """Returns the weights of the gates i, f, g and o side by side, as Keras has them."""
    return np.concatenate([call.array(place) for place in places], axis=0)


def _lstm(call: Call) -> Tensor:
    if int(call.option("fusedActivationFunction")) != 4:
        raise Refused("an LSTM whose activation is not tanh")
    others = (*(i for i in _PEEPHOLES if i is not None), *_PROJECTION, *_NORMS)
    clips = [float(call.option(name, 0.0)) for name in ("cellClip", "projClip")]
    if any(map(call.has, others)) or any(clips) or not call.has(_KERNELS[0]):
        return _lstm_with_more(call, clips)
    kernel, recurrent = (_joined(call, places).T for places in (_KERNELS, _RECURRENT))
    bias = call.weight("bias", _joined(call, _BIASES))
    kernel, recurrent = call.weight("kernel", kernel), call.weight("recurrent_kernel", recurrent)
    units = int(recurrent.shape[0])

    def cell(x: Tensor, hidden: Tensor, state: Tensor) -> Sequence[Tensor]:
        gates = tf.nn.bias_add(tf.matmul(x, kernel) + tf.matmul(hidden, recurrent), bias)
        enter, forget, new, leave = tf.split(gates, 4, axis=1)
        state = tf.sigmoid(forget) * state + tf.sigmoid(enter) * tf.tanh(new)
        return tf.sigmoid(leave) * tf.tanh(state), state

    return _over_time(call, [units, units], _STATES, cell)


def _lstm_with_more(call: Call, clips: Sequence[float]) -> Tensor:
    """Replays an LSTM whose gates see the state, are normalized or less, or whose output is less.

    Without kernels of the input gate, it is what the forget gate leaves.
    """
    gates = [g for g in range(4) if call.has(_KERNELS[g])]
    if gates not in ([0, 1, 2, 3], [1, 2, 3]):
        raise Refused("an LSTM without kernels of a gate")
    kernel, recurrent = (
        call.weight(name, _joined(call, [places[g] for g in gates]).T)
        for name, places in (("kernel", _KERNELS), ("recurrent_kernel", _RECURRENT))
    )
    units = int(kernel.shape[1]) // len(gates)

    def vector(index: int | None, role: str) -> Tensor | None:
        if index is None or not call.has(index):
            return None
        return call.weight(role, call.array(index))

    peepholes = {g: vector(_PEEPHOLES[g], "peephole") for g in gates}
    norms = {g: vector(_NORMS[g], "norm") for g in gates}
    biases = {g: vector(_BIASES[g], "bias") for g in gates}
    projection = call.weight("projection", call.array(16).T) if call.has(16) else None
    shift = vector(_PROJECTION[1], "projection_bias")
    sizes = [units if projection is None else int(projection.shape[1]), units]

    def opened(gate: int, total: Tensor, state: Tensor) -> Tensor:
        """Returns what a gate is before its activation."""
        peephole, norm, bias = peepholes[gate], norms[gate], biases[gate]
        if peephole is not None:
            total = total + state * peephole
        if norm is not None:
            mean, variance = tf.nn.moments(total, [1], keepdims=True)
            total = (total - mean) * tf.math.rsqrt(variance + _EPSILON) * norm
        return total if bias is None else tf.nn.bias_add(total, bias)

    def clipped(x: Tensor, bound: float) -> Tensor:
        return tf.clip_by_value(x, -bound, bound) if bound > 0.0 else x

    def cell(x: Tensor, hidden: Tensor, state: Tensor) -> Sequence[Tensor]:
        total = tf.matmul(x, kernel) + tf.matmul(hidden, recurrent)
        parts = dict(zip(gates, tf.split(total, len(gates), axis=1), strict=True))
        forget = tf.sigmoid(opened(1, parts[1], state))
        enter = tf.sigmoid(opened(0, parts[0], state)) if 0 in parts else 1.0 - forget
        state = forget * state + enter * tf.tanh(opened(2, parts[2], state))
        state = clipped(state, clips[0])
        hidden = tf.sigmoid(opened(3, parts[3], state)) * tf.tanh(state)
        if projection is not None:
            hidden = tf.matmul(hidden, projection)
            hidden = clipped(hidden if shift is None else hidden + shift, clips[1])
        return hidden, state

    return _over_time(call, sizes, _STATES, cell)


def _both_ways(call: Call) -> Sequence[Tensor] | Tensor:
    """Replays two LSTMs, of which the second goes from the end to the start."""
    if any(map(call.has, range(39, 48))):
        raise Refused("an LSTM in two directions that reads another input as well")
    axis = 0 if call.option("timeMajor", True) else 1
    x, results = call.tensor(0), []
    for first, back, states in ((1, False, _FORWARD), (18, True, _BACKWARD)):
        rows = tf.reverse(x, [axis]) if back else x
        half = [call.value(i) if call.has(i) else None for i in range(first, first + 17)]
        pairs = zip(_STATES, range(states, states + 2), strict=True)
        kept = {own: call.kept[place] for own, place in pairs if place in call.kept}
        y = _lstm(replace(call, operands=[rows, *half], kept=kept))
        results.append(tf.reverse(y, [axis]) if back else y)
    return tf.concat(results, 2) if call.option("mergeOutputs", False) else results


def _simple(call: Call) -> Tensor:
    activation = _ACTIVATIONS.get(int(call.option("fusedActivationFunction")))
    if activation is None:
        raise Refused("a recurrent layer whose activation is neither tanh nor relu")
    kernel = call.weight("kernel", call.array(1).T)
    recurrent = call.weight("recurrent_kernel", call.array(2).T)
    bias = call.weight("bias", call.array(3))
    units = int(recurrent.shape[0])

    def cell(x: Tensor, hidden: Tensor) -> Sequence[Tensor]:
        total = tf.nn.bias_add(tf.matmul(x, kernel) + tf.matmul(hidden, recurrent), bias)
        return [activation(total)]

    return _over_time(call, [units], [_HIDDEN], cell)


def _filters(call: Call) -> Tensor:
    """Replays filters over the last values of features (SVDF).

    The variable holds these values, the oldest first.
    """
    x, times = call.tensor(0), call.array(2)
    count, memory = times.shape
    zeros = tf.zeros([tf.shape(x)[0], count * memory])
    state = _begun(call, _FILTERED, (x.shape[0], count * memory), zeros)
    new = tf.matmul(x, call.weight("features", call.array(1).T))
    past = tf.reshape(state, [-1, count, memory])
    past = tf.concat([past[:, :, 1:], tf.expand_dims(new, 2)], 2)
    _left(call, _FILTERED, tf.reshape(past, [-1, count * memory]))
    sums = tf.reduce_sum(past * call.weight("times", times), 2)
    rank = int(call.option("rank", 1))
    return call.biased(tf.reduce_sum(tf.reshape(sums, [-1, count // rank, rank]), 2), 3)


OPS: dict[str, Handler] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": _both_ways,
    "SVDF": _filters,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _simple,
}
