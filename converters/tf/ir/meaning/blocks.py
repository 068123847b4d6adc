"""The large ops in NumPy: products, convolutions, norms, attention, recurrent layers, images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.ir.meaning.functions import apply, sigmoid

Operands = Sequence[Array | None]


def _get(x: Operands, index: int) -> Array:
    value = x[index]
    if value is None:
        raise ValueError(f"operand {index} is left out")
    return value


def _maybe(x: Operands, index: int) -> Array | None:
    return x[index] if index < len(x) else None


def _finish(result: Array, extra: Sequence[Array | None], activation: ir.Function | None) -> Array:
    for term in extra:
        if term is not None:
            result = result + term
    return result if activation is None else apply(activation, result)


def _dense(op: ir.Dense, x: Operands) -> list[Array]:
    result = _get(x, 0) @ _get(x, 1)
    return [_finish(result, [_maybe(x, 2), _maybe(x, 3)], op.activation)]


def _scaled_dense(op: ir.ScaledDense, x: Operands) -> list[Array]:
    kernel = _get(x, 1)
    rows = _affine(_get(x, 0), _get(x, 4), _maybe(x, 5))
    rows = rows if op.bounds is None else apply(op.bounds, rows)
    result = rows @ kernel.reshape(kernel.shape[-2:])
    return [_finish(result, [_maybe(x, 2), _maybe(x, 3)], op.activation)]


def _mat_mul(op: ir.MatMul, x: Operands) -> list[Array]:
    a, b = _get(x, 0), _get(x, 1)
    a = np.swapaxes(a, -1, -2) if op.transpose_a else a
    b = np.swapaxes(b, -1, -2) if op.transpose_b else b
    return [_finish(a @ b, [_maybe(x, 2)], op.activation)]


def _taps(size: Sequence[int]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(s) for s in size)))


def _at(
    tap: Sequence[int], outputs: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[slice, ...]:
    spatial = tuple(
        slice(t * d, t * d + (o - 1) * s + 1, s)
        for t, o, s, d in zip(tap, outputs, strides, dilations, strict=True)
    )
    return (slice(None), *spatial)


def _outputs(
    padded: Sequence[int], size: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    reach = [(s - 1) * d + 1 for s, d in zip(size, dilations, strict=True)]
    return tuple((p - r) // s + 1 for p, r, s in zip(padded, reach, strides, strict=True))


def _padding(padding: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(0, 0), *padding, (0, 0)]


def _conv(op: ir.Conv, x: Operands) -> list[Array]:
    data, weights = np.pad(_get(x, 0), _padding(op.padding)), _get(x, 1)
    size = weights.shape[:-2]
    outputs = _outputs(data.shape[1:-1], size, op.strides, op.dilations)
    result = np.zeros((data.shape[0], *outputs, weights.shape[-1]))
    if min(result.shape, default=1) > 0:
        inner, outer = weights.shape[-2], weights.shape[-1] // op.groups
        for tap in _taps(size):
            part = data[_at(tap, outputs, op.strides, op.dilations)]
            if inner == 1 and op.groups > 1:
                result += np.repeat(part, outer, axis=-1) * weights[tap][0]
                continue
            for g in range(op.groups):
                columns = slice(g * outer, (g + 1) * outer)
                rows = part[..., g * inner : (g + 1) * inner]
                result[..., columns] += rows @ weights[tap][:, columns]
    return [_finish(result, [_maybe(x, 2), _maybe(x, 3)], op.activation)]


def _conv_transpose(op: ir.ConvTranspose, x: Operands, spatial: tuple[int, ...]) -> Array:
    data, weights = _get(x, 0), _get(x, 1)
    size, inner = weights.shape[:-2], weights.shape[-1] // op.groups
    padded = [s + before + after for s, (before, after) in zip(spatial, op.padding, strict=True)]
    outer = weights.shape[-2]
    result = np.zeros((data.shape[0], *padded, outer * op.groups))
    for tap in _taps(size):
        place = _at(tap, data.shape[1:-1], op.strides, op.dilations)
        for g in range(op.groups):
            rows = slice(g * inner, (g + 1) * inner)
            columns = slice(g * outer, (g + 1) * outer)
            result[(*place, columns)] += data[..., rows] @ weights[tap][:, rows].T
    inside = tuple(slice(b, b + s) for s, (b, _) in zip(spatial, op.padding, strict=True))
    return _finish(result[(slice(None), *inside)], [_maybe(x, 2)], op.activation)


def _chain(op: ir.Chain, x: Operands) -> list[Array]:
    names = dict.fromkeys(v for link in op.links for v in link.present if v.is_constant)
    weights = dict(zip(names, x[1:], strict=True))
    result = _get(x, 0)
    for link in op.links:
        operands = [result, *(None if v is None else weights[v] for v in link.inputs[1:])]
        if isinstance(link.op, ir.Dense):
            (result,) = _dense(link.op, operands)
        else:
            assert isinstance(link.op, ir.Conv)
            (result,) = _conv(link.op, operands)
        result = result.astype(link.output.dtype.numpy)
    return [result]


def _pool(op: ir.Pool, x: Operands) -> list[Array]:
    data = _get(x, 0)
    ones = (1,) * len(op.size)
    empty = -np.inf if op.kind is ir.PoolKind.MAX else 0.0
    padded = np.pad(data, _padding(op.padding), constant_values=empty)
    inside = np.pad(np.ones(data.shape), _padding(op.padding))
    outputs = _outputs(padded.shape[1:-1], op.size, op.strides, ones)
    places = [_at(tap, outputs, op.strides, ones) for tap in _taps(op.size)]
    if op.kind is ir.PoolKind.MAX:
        return [np.max([padded[p] for p in places], axis=0)]
    total = np.sum([padded[p] for p in places], axis=0)
    return [total / np.sum([inside[p] for p in places], axis=0)]


def _softmax(op: ir.Softmax, x: Operands) -> list[Array]:
    """TensorFlow's on the CPU: what is no number leaves nothing of all others in its row."""
    data = _get(x, 0)
    least = np.finfo(data.dtype).min
    top = np.fmax.reduce(data, axis=-1, keepdims=True, initial=least)
    shifted = data - top
    weights = np.where(np.isnan(shifted), np.inf, np.exp(shifted))
    total = np.sum(weights, axis=-1, keepdims=True)
    if op.log:
        return [np.where(np.isinf(total), np.nan, shifted - np.log(total))]
    return [weights / total]


def _affine(result: Array, scale: Array | None, shift: Array | None) -> Array:
    result = result if scale is None else result * scale
    return result if shift is None else result + shift


def _norm(op: ir.Norm, x: Operands) -> list[Array]:
    data = _get(x, 0)
    if op.kind is ir.NormKind.LAYER:
        data = data - np.mean(data, axis=-1, keepdims=True)
    data = data / np.sqrt(np.mean(data * data, axis=-1, keepdims=True) + op.epsilon)
    return [_affine(data, _maybe(x, 1), _maybe(x, 2))]


def _group_norm(op: ir.GroupNorm, x: Operands) -> list[Array]:
    data = _get(x, 0)
    grouped = data.reshape(data.shape[0], -1, op.groups, data.shape[-1] // op.groups)
    grouped = grouped - np.mean(grouped, axis=(1, 3), keepdims=True)
    variance = np.mean(grouped * grouped, axis=(1, 3), keepdims=True)
    result = (grouped / np.sqrt(variance + op.epsilon)).reshape(data.shape)
    return [_affine(result, _maybe(x, 1), _maybe(x, 2))]


def _attention(op: ir.Attention, x: Operands) -> list[Array]:
    q, k, v, mask = _get(x, 0), _get(x, 1), _get(x, 2), _maybe(x, 3)
    if op.beside:
        q, k, v = (np.swapaxes(side, 1, 2) for side in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) * op.scale
    if mask is not None:
        scores = scores + mask
    if op.causal:
        queries, keys = scores.shape[-2:]
        seen = np.arange(keys)[None, :] <= np.arange(queries)[:, None] + keys - queries
        scores = np.where(seen, scores, -np.inf)
    result = _softmax(ir.Softmax(), [scores])[0] @ v
    return [np.swapaxes(result, 1, 2) if op.beside else result]


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
    given = _maybe(x, index)
    return np.zeros((_get(x, 0).shape[0], units)) if given is None else given


def _plus(x: Array, bias: Array | None) -> Array:
    return x if bias is None else x + bias


def _lstm(op: ir.Lstm, x: Operands) -> list[Array]:
    kernel, recurrent = _get(x, 1), _get(x, 2)

    def step(row: Array, states: list[Array]) -> list[Array]:
        z = _plus(row @ kernel + states[0] @ recurrent, _maybe(x, 3))
        i, f, g, o = np.split(z, 4, axis=-1)
        cell = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(cell), cell]

    units = recurrent.shape[0]
    states = [_start(x, 4, units), _start(x, 5, units)]
    return _recur(_get(x, 0), _maybe(x, 6), states, step, op.reverse, op.zero_masked)


def _gru(op: ir.Gru, x: Operands) -> list[Array]:
    kernel, recurrent = _get(x, 1), _get(x, 2)
    units = recurrent.shape[0]

    def step(row: Array, states: list[Array]) -> list[Array]:
        h = states[0]
        xz, xr, xh = np.split(_plus(row @ kernel, _maybe(x, 3)), 3, axis=-1)
        if op.reset_after:
            hz, hr, hh = np.split(_plus(h @ recurrent, _maybe(x, 4)), 3, axis=-1)
            z = sigmoid(xz + hz)
            candidate = np.tanh(xh + sigmoid(xr + hr) * hh)
        else:
            hz, hr = np.split(h @ recurrent[:, : 2 * units], 2, axis=-1)
            z = sigmoid(xz + hz)
            candidate = np.tanh(xh + (sigmoid(xr + hr) * h) @ recurrent[:, 2 * units :])
        return [z * h + (1 - z) * candidate]

    states = [_start(x, 5, units)]
    return _recur(_get(x, 0), _maybe(x, 6), states, step, op.reverse, op.zero_masked)


def _simple_rnn(op: ir.SimpleRnn, x: Operands) -> list[Array]:
    kernel, recurrent = _get(x, 1), _get(x, 2)

    def step(row: Array, states: list[Array]) -> list[Array]:
        z = _plus(row @ kernel + states[0] @ recurrent, _maybe(x, 3))
        return [z if op.activation is None else apply(op.activation, z)]

    states = [_start(x, 4, recurrent.shape[0])]
    return _recur(_get(x, 0), _maybe(x, 5), states, step, op.reverse, op.zero_masked)


def _places(
    op: ir.Resize, size: int, target: int
) -> tuple[Array, Array, Array]:  # low, high, weight of high
    scale = (size - 1) / (target - 1) if op.align_corners and target > 1 else size / target
    if op.kind is ir.ResizeKind.NEAREST:
        # A place in float32 can be the next pixel's, and halves go up.
        centre = (np.arange(target) + (0.5 if op.half_pixel else 0)).astype(np.float32)
        near = np.floor(centre * np.float32(scale) + np.float32(0.5 if op.align_corners else 0))
        index = np.clip(near, 0, size - 1).astype(int)
        return index, index, np.zeros(target)
    place = np.arange(target, dtype=np.float64)
    at = (place + 0.5) * scale - 0.5 if op.half_pixel else place * scale
    low = np.floor(at)
    indices = [np.clip(i, 0, size - 1).astype(int) for i in (low, low + 1)]
    return indices[0], indices[1], at - low


def _resize(op: ir.Resize, x: Operands, spatial: tuple[int, ...]) -> Array:
    result = _get(x, 0)
    for axis, target in enumerate(spatial, start=1):
        low, high, weight = _places(op, result.shape[axis], target)
        if op.kind is ir.ResizeKind.NEAREST:
            result = np.take(result, low, axis=axis)
            continue
        w = weight.reshape([-1 if i == axis else 1 for i in range(4)])
        result = np.take(result, low, axis=axis) * (1 - w) + np.take(result, high, axis=axis) * w
    return result


SPATIAL: dict[type, Callable[[Any, Operands, tuple[int, ...]], Array]] = {
    ir.ConvTranspose: _conv_transpose,
    ir.Resize: _resize,
}
"""Ops whose result's height and width are not in their operands."""

BLOCKS: dict[type, Callable[[Any, Operands], list[Array]]] = {
    ir.Dense: _dense,
    ir.ScaledDense: _scaled_dense,
    ir.MatMul: _mat_mul,
    ir.Conv: _conv,
    ir.Chain: _chain,
    ir.Pool: _pool,
    ir.Softmax: _softmax,
    ir.Norm: _norm,
    ir.GroupNorm: _group_norm,
    ir.Attention: _attention,
    ir.Lstm: _lstm,
    ir.Gru: _gru,
    ir.SimpleRnn: _simple_rnn,
}
"""Ops over floats whose results' shapes follow from their operands."""
