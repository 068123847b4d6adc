"""Ops over sequences: attention and recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from converters.tf.ir.expressions import largest, smallest
from converters.tf.ir.graph import Node, Op
from converters.tf.ir.operands import Operands
from converters.tf.ir.ops.functions import Function, affine, apply, sigmoid
from converters.tf.ir.ops.norm import Softmax
from converters.tf.ir.ops.packing import DIRECT_ROWS, LANES, packed_len, plain_product
from converters.tf.ir.sizes import elements, numbers
from converters.tf.ir.values import Array, Shape

# Queries whose scores are computed at a time, and heads that are computed together.
_QUERIES = 64
_TOGETHER = 8

__all__ = ["Attention", "Gru", "Lstm", "SimpleRnn"]


@dataclass(frozen=True)
class Attention(Op):
    """`softmax(q @ k^T * scale + mask) @ v`: (q, k, v, mask?), f32.

    q is [batch, heads, queries, depth], k [batch, heads, keys, depth], v [batch, heads, keys,
    width], the output [batch, heads, queries, width]. The mask is f32, added to the scores, and
    broadcasts to [batch, heads, queries, keys]. `causal` hides the keys after the query's own
    place, counted from the end of both. With `beside`, heads lie side by side and there is no mask:
    q is [batch, queries, heads, depth], the others and the output alike.
    """

    scale: float
    causal: bool = False
    beside: bool = False

    single = True

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shape of q with the width of v."""
        return ((*x[0][:-1], x[2][-1]),)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the attention, its scores as a whole."""
        x = x.wide()
        q, k, v, mask = x[0], x[1], x[2], x.get(3)
        if self.beside:
            q, k, v = (np.swapaxes(side, 1, 2) for side in (q, k, v))
        scores = q @ np.swapaxes(k, -1, -2) * self.scale
        if mask is not None:
            scores = scores + mask
        if self.causal:
            queries, keys = scores.shape[-2:]
            seen = np.arange(keys)[None, :] <= np.arange(queries)[:, None] + keys - queries
            scores = np.where(seen, scores, -np.inf)
        result = Softmax().meaning(Operands([scores]), scores.shape)[0] @ v
        return [np.swapaxes(result, 1, 2) if self.beside else result]

    def macs(self, node: Node) -> int:
        """Returns those of both products."""
        _, *lines, width = numbers(node.given(2).shape)
        keys = lines[0 if self.beside else 1]
        depth = numbers(node.input.shape)[-1]
        return elements(node.input.shape) // max(depth, 1) * keys * (depth + width)

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory of scores and packed keys and values, of some heads together."""
        if self.beside:
            _, queries, heads, depth = numbers(node.input.shape)
            _, keys, _, width = numbers(node.given(2).shape)
            each = max(packed_len(n, depth, keys) + packed_len(n, keys, width) for n in LANES)
            return heads * each + keys * smallest(_TOGETHER * _QUERIES, queries)
        queries, depth = numbers(node.input.shape)[-2:]
        keys, width = numbers(node.given(2).shape)[-2:]
        scores = keys * smallest(_QUERIES, queries)
        sides = max(packed_len(n, depth, keys) + packed_len(n, keys, width) for n in LANES)
        if node.operand(3) is not None:
            return sides + scores + queries * keys
        # As `scratch_len` in kernels/src/ops/sequence/attention.rs says for any level.
        heads = math.prod(numbers(node.input.shape)[:-2])
        room, data = sides + scores, heads * (queries + keys) * (depth + width)
        together = smallest(_TOGETHER, largest(heads, 1))
        return smallest(room * together, largest(room, data))


@dataclass(frozen=True)
class Lstm(Op):
    """An LSTM over a sequence, f32, with tanh and sigmoid.

    (x [batch, T, I], kernel [I, 4U], recurrent [U, 4U], bias [4U]?, h [batch, U]?, c [batch, U]?,
    mask [batch, T] bool?) -> (sequence [batch, T, U], last h [batch, U], last c [batch, U]).
    Gates lie in the order input, forget, candidate, output. States start at 0. Where the mask is
    false, the state stays. The sequence then repeats the output of the step before (0 at first), or
    has 0 with `zero_masked`. `reverse` reads x (and the mask) from its end; the sequence is in the
    order of reading. Results that nobody reads have no user in the graph.
    """

    reverse: bool = False
    zero_masked: bool = False

    single = True
    packed = (1, 2)

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shapes of the sequence and of each state."""
        return _sequence_shapes(x, 2)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the sequence and the states, a step at a time."""
        x = x.wide()
        kernel, recurrent = x[1], x[2]

        def step(row: Array, states: list[Array]) -> list[Array]:
            z = affine(row @ kernel + states[0] @ recurrent, None, x.get(3))
            i, f, g, o = np.split(z, 4, axis=-1)
            cell = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
            return [sigmoid(o) * np.tanh(cell), cell]

        units = recurrent.shape[0]
        states = [_start(x, 4, units), _start(x, 5, units)]
        return _recur(x[0], x.get(6), states, step, self.reverse, self.zero_masked)

    def macs(self, node: Node) -> int:
        """Returns those of both products of every step."""
        return _macs(node)

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory of the projected sequence and of a state."""
        return _scratch(node, packed, per_state=0)


@dataclass(frozen=True)
class Gru(Op):
    """A GRU over a sequence, f32, with tanh and sigmoid; see `Lstm`.

    (x [batch, T, I], kernel [I, 3U], recurrent [U, 3U], bias [3U]?, recurrent bias [3U]?,
    h [batch, U]?, mask [batch, T] bool?) -> (sequence [batch, T, U], last h [batch, U]).
    Gates lie in the order update, reset, candidate. With `reset_after`, the reset gate acts on the
    projected state with its bias; else on the state, and there is no recurrent bias.
    """

    reset_after: bool = True
    reverse: bool = False
    zero_masked: bool = False

    single = True
    packed = (1, 2)

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shapes of the sequence and of each state."""
        return _sequence_shapes(x, 1)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the sequence and the state, a step at a time."""
        x = x.wide()
        kernel, recurrent = x[1], x[2]
        units = recurrent.shape[0]

        def step(row: Array, states: list[Array]) -> list[Array]:
            h = states[0]
            xz, xr, xh = np.split(affine(row @ kernel, None, x.get(3)), 3, axis=-1)
            if self.reset_after:
                hz, hr, hh = np.split(affine(h @ recurrent, None, x.get(4)), 3, axis=-1)
                z = sigmoid(xz + hz)
                candidate = np.tanh(xh + sigmoid(xr + hr) * hh)
            else:
                hz, hr = np.split(h @ recurrent[:, : 2 * units], 2, axis=-1)
                z = sigmoid(xz + hz)
                candidate = np.tanh(xh + (sigmoid(xr + hr) * h) @ recurrent[:, 2 * units :])
            return [z * h + (1 - z) * candidate]

        states = [_start(x, 5, units)]
        return _recur(x[0], x.get(6), states, step, self.reverse, self.zero_masked)

    def macs(self, node: Node) -> int:
        """Returns those of both products of every step."""
        return _macs(node)

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory of the projected sequence and of a state."""
        return _scratch(node, packed, per_state=numbers(node.given(1).shape)[1])


@dataclass(frozen=True)
class SimpleRnn(Op):
    """`h = activation(x @ kernel + h @ recurrent + bias)` over a sequence, f32; see `Lstm`.

    (x [batch, T, I], kernel [I, U], recurrent [U, U], bias [U]?, h [batch, U]?,
    mask [batch, T] bool?) -> (sequence [batch, T, U], last h [batch, U]).
    """

    activation: Function | None = None
    reverse: bool = False
    zero_masked: bool = False

    single = True
    packed = (1, 2)

    def shapes(self, x: Sequence[Shape]) -> tuple[Shape, ...]:
        """Returns the shapes of the sequence and of each state."""
        return _sequence_shapes(x, 1)

    def meaning(self, x: Operands, shape: tuple[int, ...]) -> list[Array]:
        """Returns the sequence and the state, a step at a time."""
        x = x.wide()
        kernel, recurrent = x[1], x[2]

        def step(row: Array, states: list[Array]) -> list[Array]:
            z = affine(row @ kernel + states[0] @ recurrent, None, x.get(3))
            return [z if self.activation is None else apply(self.activation, z)]

        states = [_start(x, 4, recurrent.shape[0])]
        return _recur(x[0], x.get(5), states, step, self.reverse, self.zero_masked)

    def macs(self, node: Node) -> int:
        """Returns those of both products of every step."""
        return _macs(node)

    def scratch(self, node: Node, packed: bool = True) -> int:
        """Returns the memory of the projected sequence and of a state."""
        return _scratch(node, packed, per_state=0)


def _recur(
    x: Array,
    mask: Array | None,
    states: list[Array],
    step: Callable[[Array, list[Array]], list[Array]],
    reverse: bool,
    zero_masked: bool,
) -> list[Array]:
    turns = range(x.shape[1] - 1, -1, -1) if reverse else range(x.shape[1])
    output = np.zeros_like(states[0])
    sequence = []
    for t in turns:
        new = step(x[:, t], states)
        seen = np.ones((x.shape[0], 1), bool) if mask is None else mask[:, t, None].astype(bool)
        output = np.where(seen, new[0], 0 if zero_masked else output)
        states = [np.where(seen, n, s) for n, s in zip(new, states, strict=True)]
        sequence.append(output)
    return [np.stack(sequence, axis=1), *states]


def _start(x: Operands, index: int, units: int) -> Array:
    given = x.get(index)
    return np.zeros((x[0].shape[0], units)) if given is None else given


def _sequence_shapes(x: Sequence[Shape], states: int) -> tuple[Shape, ...]:
    batch, steps, _ = x[0]
    units = x[2][0]
    return ((batch, steps, units), *[(batch, units)] * states)


def _macs(node: Node) -> int:
    batch, steps, _ = numbers(node.input.shape)
    weights = elements(node.given(1).shape) + elements(node.given(2).shape)
    return batch * steps * weights


def _scratch(node: Node, packed: bool, per_state: int) -> int:
    """Returns the scratch elements of a recurrent layer, of which each state has some more."""
    sequences, steps, inputs = numbers(node.input.shape)
    columns = numbers(node.given(1).shape)[1]
    units = numbers(node.given(2).shape)[0]
    state = units + per_state
    # As for any number of rows that are not multiplied as they are.
    products = 0 if packed else plain_product(DIRECT_ROWS + 1, columns, inputs)
    again = 0 if packed else plain_product(DIRECT_ROWS + 1, columns, units)
    return sequences * (steps * columns + state + max(products, again))
