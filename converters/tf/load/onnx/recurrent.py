"""LSTM, GRU and RNN as the loops that TensorFlow's layers trace to, which the passes recognise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.ir.expressions import is_open
from converters.tf.ir.symbolic import of_shape
from converters.tf.load.onnx.context import Context, Handler, Result, fixed, whole
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused

Function = Callable[[Any], Any]

_ACTIVATIONS: Mapping[str, Function] = {
    "Elu": tf.nn.elu,
    "Relu": tf.nn.relu,
    "Sigmoid": tf.sigmoid,
    "Softplus": tf.nn.softplus,
    "Softsign": tf.nn.softsign,
    "Tanh": tf.tanh,
}


@dataclass
class _Weights:
    """Weights of one direction as TensorFlow's layers have them: `x @ kernel`, gates side by side.

    Attributes:
        kernel: `[inputs, gates * units]`.
        recurrent: `[units, gates * units]`.
        bias: Of the input, `[gates * units]`, or `None`.
        recurrent_bias: Of the state, or `None`.
    """

    kernel: Any
    recurrent: Any
    bias: Any
    recurrent_bias: Any


Step = Callable[[Any, Sequence[Any]], Sequence[Any]]


def _loop(
    x: Any, states: Sequence[Any], step: Step, steps: Any, reverse: bool, mask: Any = None
) -> Any:
    """Returns the states of every step `[steps, batch, units]` and the last ones.

    Args:
        x: `[steps, batch, inputs]`.
        states: The first states; the first of them is the output.
        step: Gets a row and the states, returns the new states.
        steps: Number of rows, a number or a tensor.
        reverse: Whether it starts at the last row.
        mask: Which rows a sequence has `[steps, batch, 1]`; where it has none, the states stay and
            the output is zero.
    """
    if reverse:
        x = tf.reverse(x, [0])
        mask = None if mask is None else tf.reverse(mask, [0])
    present = None if mask is None else tf.TensorArray(mask.dtype, steps).unstack(mask)
    rows = tf.TensorArray(x.dtype, steps).unstack(x)
    written = tf.TensorArray(x.dtype, steps, element_shape=states[0].shape)

    def turn(time: Any, out: Any, *now: Any) -> Any:
        new = step(rows.read(time), now)
        if present is None:
            return (time + 1, out.write(time, new[0]), *new)
        there = present.read(time)
        shown = tf.where(there, new[0], tf.zeros_like(new[0]))
        kept = (tf.where(there, a, b) for a, b in zip(new, now, strict=True))
        return (time + 1, out.write(time, shown), *kept)

    _, out, *final = tf.while_loop(
        lambda time, *_: time < steps,
        turn,
        (tf.constant(0), written, *states),
        parallel_iterations=32,
        maximum_iterations=steps,
    )
    sequence = out.stack()
    return (tf.reverse(sequence, [0]) if reverse else sequence), final


def _arranged(gates: Sequence[int]) -> Callable[[Array], Array]:
    """Returns a function that brings gates along the first axis into an order."""

    def change(a: Array) -> Array:
        parts = np.split(a, len(gates), axis=0)
        return np.concatenate([parts[g] for g in gates], axis=0)

    return change


def _weights(
    ctx: Context, direction: int, gates: Sequence[int], joined: bool, name: str
) -> _Weights:
    arrange = _arranged(gates)

    if not all(isinstance(ctx.value(i), Known) for i in (1, 2, 3) if ctx.has(i)):
        return _computed_weights(ctx, direction, gates, joined)

    def part(index: int, key: str, role: str, change: Callable[[Array], Array]) -> Any:
        known = ctx.known(index).view((key, direction), lambda a: change(a[direction]))
        known.role, known.name = f"{role}{name}", ""
        return ctx.session.tensor(known)

    kernel = part(1, "kernel", "weight", lambda a: arrange(a).T)
    recurrent = part(2, "recurrent", "recurrent_weight", lambda a: arrange(a).T)
    if not ctx.has(3):
        return _Weights(kernel, recurrent, None, None)
    if joined:

        def whole(a: Array) -> Array:
            first, second = np.split(a, 2)
            return arrange(first + second)

        return _Weights(kernel, recurrent, part(3, "bias", "bias", whole), None)
    bias = part(3, "bias", "bias", lambda a: arrange(np.split(a, 2)[0]))
    more = part(3, "more", "recurrent_bias", lambda a: arrange(np.split(a, 2)[1]))
    return _Weights(kernel, recurrent, bias, more)


def _computed_weights(ctx: Context, direction: int, gates: Sequence[int], joined: bool) -> _Weights:
    """Returns weights that the model computes or is given."""

    def arranged(x: Any) -> Any:
        parts = tf.split(x, len(gates), axis=0)
        return tf.concat([parts[g] for g in gates], 0)

    kernel, recurrent = (tf.transpose(arranged(ctx.form(i)[direction])) for i in (1, 2))
    if not ctx.has(3):
        return _Weights(kernel, recurrent, None, None)
    first, second = tf.split(ctx.form(3)[direction], 2)
    if joined:
        return _Weights(kernel, recurrent, arranged(first + second), None)
    return _Weights(kernel, recurrent, arranged(first), arranged(second))


def _product(x: Any, kernel: Any, bias: Any) -> Any:
    y = tf.matmul(x, kernel)
    return y if bias is None else tf.nn.bias_add(y, bias)


def _lstm_step(w: _Weights, functions: Sequence[Function], holes: Sequence[Any] | None) -> Step:
    """Returns a step; `holes` are weights of the cell for three gates: input, output, forget."""
    f, g, h = functions

    def step(x: Any, states: Sequence[Any]) -> Sequence[Any]:
        hidden, cell = states
        gates = tf.matmul(x, w.kernel) + tf.matmul(hidden, w.recurrent)
        gates = gates if w.bias is None else tf.nn.bias_add(gates, w.bias)
        i, forget, c, o = tf.split(gates, 4, axis=1)
        if holes is not None:
            i, forget = i + holes[0] * cell, forget + holes[2] * cell
        new = f(forget) * cell + f(i) * g(c)
        o = o if holes is None else o + holes[1] * new
        return f(o) * h(new), new

    return step


def _gru_step(w: _Weights, functions: Sequence[Function], units: int, reset_after: bool) -> Step:
    f, g = functions

    def step(x: Any, states: Sequence[Any]) -> Sequence[Any]:
        (hidden,) = states
        xz, xr, xh = tf.split(_product(x, w.kernel, w.bias), 3, axis=1)
        if reset_after:
            hz, hr, hh = tf.split(_product(hidden, w.recurrent, w.recurrent_bias), 3, axis=1)
            z, r = f(xz + hz), f(xr + hr)
            candidate = g(xh + r * hh)
        else:
            inner = tf.matmul(hidden, w.recurrent[:, : 2 * units])
            hz, hr = tf.split(inner, 2, axis=1)
            z, r = f(xz + hz), f(xr + hr)
            candidate = g(xh + tf.matmul(r * hidden, w.recurrent[:, 2 * units :]))
        return (z * hidden + (1 - z) * candidate,)

    return step


def _rnn_step(w: _Weights, functions: Sequence[Function], units: int) -> Step:
    (f,) = functions

    def step(x: Any, states: Sequence[Any]) -> Sequence[Any]:
        return (f(_product(x, w.kernel, w.bias) + tf.matmul(states[0], w.recurrent)),)

    return step


def _functions(ctx: Context, direction: int, defaults: Sequence[str]) -> list[Function]:
    given = [str(name) for name in ctx.attr("activations") or ()]
    count = len(defaults)
    names = given[direction * count : (direction + 1) * count] if given else list(defaults)
    known = {name.lower(): function for name, function in _ACTIVATIONS.items()}
    unknown = [name for name in names if name.lower() not in known]
    if unknown or len(names) != count:
        raise Refused(f"activations {given}; supported: {', '.join(_ACTIVATIONS)}")
    if ctx.attr("activation_alpha") or ctx.attr("activation_beta"):
        raise Refused("activations with parameters")
    return [known[name.lower()] for name in names]


def _refuse(ctx: Context) -> None:
    if ctx.attr("clip") is not None:
        raise Refused("clip")
    if ctx.attr("input_forget", 0):
        raise Refused("input_forget=1")


def _recurrent(gates: Sequence[int], defaults: Sequence[str], states: int) -> Handler:
    """Returns the handler of a recurrent operator.

    Args:
        gates: Where TensorFlow's gates are among ONNX's.
        defaults: Activations.
        states: How many states a cell has.
    """

    def handler(ctx: Context) -> Result:
        _refuse(ctx)
        kind = ctx.text("direction", "forward", ["forward", "reverse", "bidirectional"])
        batch_first = bool(ctx.attr("layout", 0))
        order = (1, 0, 2) if batch_first else (0, 1, 2)
        shape = ctx.shape(0)
        if len(shape) != 3:
            raise Refused(f"a sequence of {len(shape)} axes")
        steps = whole(shape[1 if batch_first else 0], "the number of steps")
        turns = ctx.session.symbol(of_shape((steps,)))[0] if is_open(steps) else steps
        mask = _mask(ctx, steps, turns)
        units = fixed(ctx.shape(2)[-1], "the number of units")
        x = ctx.form(0, order)
        batch = shape[0 if batch_first else 1]
        sequences, finals = [], []
        for direction in range(2 if kind == "bidirectional" else 1):
            reverse = kind == "reverse" or direction == 1
            functions = _functions(ctx, direction, defaults)
            step = _step(ctx, direction, gates, functions, units)
            first = [
                _start(ctx, 5 + i, direction, batch_first, batch, units) for i in range(states)
            ]
            sequence, final = _loop(x, first, step, turns, reverse, mask)
            sequences.append(sequence)
            finals.append(final)
        axis = 2 if batch_first else 1
        full = tf.stack([_placed(s, batch_first) for s in sequences], axis=axis)
        ends = [tf.stack([f[i] for f in finals], axis=int(batch_first)) for i in range(states)]
        wide = (shape[0], shape[1])
        sizes = (*wide, len(sequences)) if batch_first else (steps, len(sequences), batch)
        state = (batch, len(finals)) if batch_first else (len(finals), batch)
        results = [ctx.result(full, None, (*sizes, units))]
        results += [ctx.result(end, None, (*state, units)) for end in ends]
        return results[: len(ctx.node.outputs)]

    return handler


def _mask(ctx: Context, steps: int, turns: Any) -> Any:
    """Returns which rows each sequence has `[steps, batch, 1]`, or nothing if all have all."""
    if not ctx.has(4):
        return None
    lengths = ctx.value(4)
    if isinstance(lengths, Known) and np.all(lengths.data == steps):
        return None
    rows = tf.range(turns, dtype=tf.int32)[None, :]
    there = rows < tf.cast(ctx.form(4), tf.int32)[:, None]
    return tf.transpose(there)[:, :, None]


def _placed(sequence: Any, batch_first: bool) -> Any:
    return tf.transpose(sequence, [1, 0, 2]) if batch_first else sequence


def _step(
    ctx: Context, direction: int, gates: Sequence[int], functions: list[Function], units: int
) -> Step:
    op = ctx.node.op
    reset_after = bool(ctx.attr("linear_before_reset", 0))
    suffix = "_reverse" if direction else ""
    joined = op != "GRU" or not reset_after
    w = _weights(ctx, direction, gates, joined, suffix)
    if op == "LSTM":
        holes = tf.split(ctx.form(7)[direction], 3) if ctx.has(7) else None
        return _lstm_step(w, functions, holes)
    if op == "GRU":
        return _gru_step(w, functions, units, reset_after)
    return _rnn_step(w, functions, units)


def _start(
    ctx: Context, index: int, direction: int, batch_first: bool, batch: Any, units: int
) -> Any:
    """Returns the first state of a direction `[batch, units]`."""
    known = ctx.has(index) and isinstance(ctx.value(index), Known) and not ctx.array(index).any()
    if not ctx.has(index) or known:
        rows = ctx.form(0, (1, 0, 2) if batch_first else (0, 1, 2))
        zeros = tf.zeros(tf.stack([tf.shape(rows)[1], units]), rows.dtype)
        return tf.ensure_shape(zeros, [rows.shape[1], units])
    own = ctx.shape(index)[0 if batch_first else 1]
    if isinstance(own, int) and not isinstance(batch, int):
        raise Refused(f"its first state is for a batch of {own}, not for other numbers of examples")
    state = ctx.form(index)
    return state[:, direction] if batch_first else state[direction]


OPS: Mapping[str, Handler] = {
    "GRU": _recurrent((0, 1, 2), ("Sigmoid", "Tanh"), 1),
    "LSTM": _recurrent((0, 2, 3, 1), ("Sigmoid", "Tanh", "Tanh"), 2),
    "RNN": _recurrent((0,), ("Tanh",), 1),
}
