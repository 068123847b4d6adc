"""Recurrent layers that are one operator: as loops, which become one op again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.replay import Refused, Tensor
from converters.tf.load.tflite.call import Call, Handler
from converters.tf.load.tflite.lists import written

# Operands of a sequence LSTM: kernels of its gates, of its states, biases.
_KERNELS = range(1, 5)
_RECURRENT = range(5, 9)
_BIASES = range(12, 16)
# Peepholes, projections and norms.
_OTHERS = {
    **dict.fromkeys((9, 10, 11), "peepholes"),
    **dict.fromkeys((16, 17), "a projection"),
    **dict.fromkeys((20, 21, 22, 23), "norms of its gates"),
}
_ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {0: tf.identity, 1: tf.nn.relu, 4: tf.tanh}


def _rows(call: Call) -> Tensor:
    """Returns the input with the time first."""
    x = call.tensor(0)
    return x if call.option("timeMajor", False) else tf.transpose(x, [1, 0, 2])


def _over_time(
    call: Call, units: int, states: int, cell: Callable[..., Sequence[Tensor]]
) -> Tensor:
    """Returns the output of every step.

    A cell gives its states, the output first. They are 0 before: a call leaves none behind.
    """
    x = _rows(call)
    steps, batch = x.shape[0], tf.shape(x)[1]
    outputs = tf.zeros([steps, batch, units])
    outputs.set_shape([steps, x.shape[1], units])
    zeros = tf.zeros([batch, units])
    zeros.set_shape([x.shape[1], units])

    def turn(time: Tensor, rows: Tensor, *before: Tensor) -> list[Tensor]:
        after = cell(tf.gather(x, time), *before)
        return [time + 1, written(rows, time, after[0]), *after]

    starts = [tf.constant(0), outputs, *[zeros] * states]
    found = tf.while_loop(lambda time, *_: time < steps, turn, starts)[1]
    return found if call.option("timeMajor", False) else tf.transpose(found, [1, 0, 2])


def _joined(call: Call, places: Sequence[int]) -> Array:
    """Returns the weights of the gates i, f, g and o side by side, as Keras has them."""
    return np.concatenate([call.array(place) for place in places], axis=0)


def _lstm(call: Call) -> Tensor:
    refused = sorted({what for index, what in _OTHERS.items() if call.has(index)})
    if refused:
        raise Refused(f"an LSTM with {' and '.join(refused)}")
    if not call.has(_KERNELS[0]):
        raise Refused("an LSTM whose input and forget gates are one")
    if int(call.option("fusedActivationFunction")) != 4:
        raise Refused("an LSTM whose activation is not tanh")
    if call.option("cellClip", 0.0) or call.option("projClip", 0.0):
        raise Refused("an LSTM that clips its state")
    kernel, recurrent = (_joined(call, places).T for places in (_KERNELS, _RECURRENT))
    bias = call.weight("bias", _joined(call, _BIASES))
    kernel, recurrent = call.weight("kernel", kernel), call.weight("recurrent_kernel", recurrent)
    units = int(recurrent.shape[0])

    def cell(x: Tensor, hidden: Tensor, state: Tensor) -> Sequence[Tensor]:
        gates = tf.nn.bias_add(tf.matmul(x, kernel) + tf.matmul(hidden, recurrent), bias)
        enter, forget, new, leave = tf.split(gates, 4, axis=1)
        state = tf.sigmoid(forget) * state + tf.sigmoid(enter) * tf.tanh(new)
        return tf.sigmoid(leave) * tf.tanh(state), state

    return _over_time(call, units, 2, cell)


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

    return _over_time(call, units, 1, cell)


OPS: dict[str, Handler] = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _simple,
}
