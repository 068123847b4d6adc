"""Ops over sequences: attention and recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass

from converters.tf.ir.graph import Op
from converters.tf.ir.ops.functions import Function

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


@dataclass(frozen=True)
class Lstm(Op):
    """An LSTM over a sequence, f32, with tanh and sigmoid.

    (x [batch, T, I], kernel [I, 4U], recurrent [U, 4U], bias [4U]?, h [batch, U]?, c [batch, U]?,
    mask [batch, T] bool?) -> (sequence [batch, T, U], last h [batch, U], last c [batch, U]).
    Gates lie in the order input, forget, candidate, output. States start at 0. Where the mask is
    false, the state stays, and the sequence repeats the output of the step before (0 at first), or
    has 0 with `zero_masked`. `reverse` reads x (and the mask) from its end; the sequence is in the
    order of reading. Results that nobody reads have no user in the graph.
    """

    reverse: bool = False
    zero_masked: bool = False


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


@dataclass(frozen=True)
class SimpleRnn(Op):
    """`h = activation(x @ kernel + h @ recurrent + bias)` over a sequence, f32; see `Lstm`.

    (x [batch, T, I], kernel [I, U], recurrent [U, U], bias [U]?, h [batch, U]?,
    mask [batch, T] bool?) -> (sequence [batch, T, U], last h [batch, U]).
    """

    activation: Function | None = None
    reverse: bool = False
    zero_masked: bool = False
