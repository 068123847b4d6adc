"""Scratch memory of the ops: what their kernels ask for, at most, at any SIMD level.

A test compares it with the kernels' own answers (`converters/tf/tests/crates/scratch_test.py`).
"""

from __future__ import annotations

import math

from converters.tf import ir
from converters.tf.ir.ops import tiles
from converters.tf.ir.sizes import elements, is_depthwise, is_pointwise_sum, numbers, present

# Vectors are 8 or 16 numbers wide, as the processor has it: scratch memory must do for both.
_LANES = (8, 16)
_PACKED_ROWS = 512
_PACKED_TOGETHER = 2 * 1024 * 1024
_LARGE_PRODUCT = 16_000_000
_ATTENTION_QUERIES = 64
_ATTENTION_TOGETHER = 8
_DIRECT_ROWS = 4
# Bands of chains: as in kernels/src/conv/chain.rs.
_CHAIN_NEAR = 1 << 17
_CHAIN_TASKS = 8
_CHAIN_LEAST_LINES = 2
_CHAIN_LINE = 16


def scratch_elements(node: ir.Node, packed: bool = True) -> int:
    """Returns the f32 elements of scratch memory that a node needs for one example.

    Args:
        node: The node.
        packed: Whether matrices of weights are packed beforehand.
    """
    op = node.op
    if isinstance(op, ir.MatMul):
        return _mat_mul_scratch(node, op)
    if isinstance(op, ir.Attention):
        return _attention_scratch(node)
    if isinstance(op, ir.Lstm | ir.Gru | ir.SimpleRnn):
        return _recurrent_scratch(node, packed)
    if isinstance(op, ir.Chain):
        return _chain_scratch(op)
    if isinstance(op, ir.Suppress):
        return numbers(present(node, 1).shape)[-1]
    if isinstance(op, ir.Solve | ir.LogDeterminant):
        return numbers(node.input.shape)[-1] ** 2
    if packed:
        return _tiled_scratch(node, op) if isinstance(op, ir.Conv) else 0
    if isinstance(op, ir.Dense):
        k, n = numbers(present(node, 1).shape)
        return _plain_product(elements(node.input.shape) // max(k, 1), n, k)
    if is_pointwise_sum(node):
        k, n = numbers(present(node, 1).shape)[-2:]
        return _plain_product(elements(node.input.shape) // max(k, 1), n, k)
    if isinstance(op, ir.Conv) and not is_depthwise(node):
        *size, group_in, out = numbers(present(node, 1).shape)
        return op.groups * _packed_len(16, math.prod(size) * group_in, out // op.groups)
    if isinstance(op, ir.ConvTranspose):
        *size, group_out, inputs = numbers(present(node, 1).shape)
        return _packed_len(16, math.prod(size) * inputs // op.groups, group_out) * op.groups
    return 0


def _packed_len(lanes: int, k: int, n: int) -> int:
    return k * (-(-n // lanes) * lanes)


def _plain_product(m: int, n: int, k: int) -> int:
    """Returns the scratch elements of a product with a matrix that is not packed."""
    if m <= 1 or n <= 1 or k == 0 or m <= _DIRECT_ROWS:
        return 0
    return _packed_len(16, _packed_rows(k), n)


def _tiled_scratch(node: ir.Node, op: ir.Conv) -> int:
    """Returns the scratch elements of a convolution whose filter is transformed for tiles."""
    *taps, depth, columns = numbers(present(node, 1).shape)
    if op.groups != 1:
        return 0
    images, *inputs, _ = numbers(node.input.shape)
    outputs = numbers(node.output.shape)[1:-1]
    before = [padding[0] for padding in op.padding]
    axes = zip(inputs, outputs, taps, op.strides, op.dilations, before, strict=True)
    return tiles.scratch(images, [tiles.Axis(*axis) for axis in axes], depth, columns)


def _chain_scratch(op: ir.Chain) -> int:
    """Returns the scratch elements of layers that are computed together."""
    first, *_ = op.links
    if isinstance(first.op, ir.Dense):
        return elements(first.output.shape)
    lines, each = _CHAIN_LEAST_LINES, 0
    for link in reversed(op.links[1:]):
        assert isinstance(link.op, ir.Conv)
        _, height, width, channels = numbers(link.input.shape)
        reach = (numbers(present(link, 1).shape)[0] - 1) * link.op.dilations[0] + 1
        lines = min((lines - 1) * link.op.strides[0] + reach, height)
        each += lines * width * channels
    each = -(-each // _CHAIN_LINE) * _CHAIN_LINE
    return max(_CHAIN_TASKS * each, 2 * _CHAIN_NEAR)


def _mat_mul_scratch(node: ir.Node, op: ir.MatMul) -> int:
    *lead, m, n = numbers(node.output.shape)
    k = numbers(node.input.shape)[-2 if op.transpose_a else -1]
    direct = m <= _DIRECT_ROWS and not op.transpose_a and not op.transpose_b
    if m <= 1 or n <= 1 or k == 0 or direct:
        return 0
    one = max(_packed_len(lanes, _packed_rows(k), n) for lanes in _LANES)
    if 2 * m * n * k >= _LARGE_PRODUCT:
        return one
    most = one
    for lanes in _LANES:
        each = _packed_len(lanes, k, n)
        most = max(most, each * min(max(1, _PACKED_TOGETHER // each), max(1, math.prod(lead))))
    return most


def _packed_rows(k: int) -> int:
    """Returns the rows of a matrix that are packed at a time: those of some equal parts."""
    each = math.ceil(k / math.ceil(k / _PACKED_ROWS))
    return min(math.ceil(each / 16) * 16, k)


def _attention_scratch(node: ir.Node) -> int:
    assert isinstance(node.op, ir.Attention)
    if node.op.beside:
        _, queries, heads, depth = numbers(node.input.shape)
        _, keys, _, width = numbers(present(node, 2).shape)
        each = max(_packed_len(n, depth, keys) + _packed_len(n, keys, width) for n in _LANES)
        return heads * each + keys * min(_ATTENTION_TOGETHER * _ATTENTION_QUERIES, queries)
    queries, depth = numbers(node.input.shape)[-2:]
    keys, width = numbers(present(node, 2).shape)[-2:]
    scores = keys * min(_ATTENTION_QUERIES, queries)
    packed = max(_packed_len(n, depth, keys) + _packed_len(n, keys, width) for n in _LANES)
    if node.operand(3) is not None:
        return packed + scores + queries * keys
    # As `scratch_len` in kernels/src/ops/sequence/attention.rs says for any level.
    heads = math.prod(numbers(node.input.shape)[:-2])
    room, data = packed + scores, heads * (queries + keys) * (depth + width)
    return min(room * min(max(heads, 1), _ATTENTION_TOGETHER), max(room, data))


def _recurrent_scratch(node: ir.Node, packed: bool) -> int:
    sequences, steps, inputs = numbers(node.input.shape)
    columns = numbers(present(node, 1).shape)[1]
    units = numbers(present(node, 2).shape)[0]
    state = units + (columns if isinstance(node.op, ir.Gru) else 0)
    products = 0 if packed else _plain_product(max(steps, _DIRECT_ROWS + 1), columns, inputs)
    again = 0 if packed else _plain_product(_DIRECT_ROWS + 1, columns, units)
    return sequences * (steps * columns + state + max(products, again))
