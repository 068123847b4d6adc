"""Windows over three axes, made of windows over two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from converters.tf import ir
from converters.tf.ir.build import Builder, static
from converters.tf.ir.symbolic import product

EmitConv = Callable[[Builder, ir.Value, ir.Value, ir.Conv, ir.Value | None], ir.Value]
EmitTransposed = Callable[[Builder, ir.Value, ir.Value, ir.ConvTranspose, Sequence[int]], ir.Value]
EmitPool = Callable[[Builder, ir.Value, ir.Pool], ir.Value]


def _merged(build: Builder, x: ir.Value) -> ir.Value:
    """Takes the depth into the batch."""
    return build.reshape(x, (product(x.shape[:2]), *x.shape[2:]))


def _tap(build: Builder, weights: ir.Value, tap: int) -> ir.Value:
    return build.reshape(build.part(weights, 0, tap, 1), weights.shape[1:])


def conv_3d(
    build: Builder, x: ir.Value, weights: ir.Value, op: ir.Conv, emit: EmitConv
) -> ir.Value:
    """Returns the sum over the taps along the depth of convolutions of the slices."""
    stride, dilation = op.strides[0], op.dilations[0]
    plane = ir.Conv(op.strides[1:], op.dilations[1:], op.padding[1:], op.groups)
    x = build.pad(x, [(0, 0), op.padding[0], (0, 0), (0, 0), (0, 0)])
    depth, taps = static(x.shape[1], "the depth"), static(weights.shape[0], "a filter")
    outputs = (depth - (taps - 1) * dilation - 1) // stride + 1
    total: ir.Value | None = None
    for tap in range(taps):
        begin = [0, tap * dilation, 0, 0, 0]
        counts = [x.shape[0], outputs, *x.shape[2:]]
        planes = build.slice(x, begin, counts, [1, stride, 1, 1, 1])
        total = emit(build, _merged(build, planes), _tap(build, weights, tap), plane, total)
    if total is None:
        raise ValueError("a filter without taps")
    return build.reshape(total, (x.shape[0], outputs, *total.shape[1:]))


def conv_transpose_3d(
    build: Builder,
    x: ir.Value,
    weights: ir.Value,
    op: ir.ConvTranspose,
    spatial: Sequence[int],
    emit: EmitTransposed,
) -> ir.Value:
    """Returns the sum over the taps along the depth, each put in its place."""
    stride, dilation = op.strides[0], op.dilations[0]
    plane = ir.ConvTranspose(op.strides[1:], op.dilations[1:], op.padding[1:], op.groups)
    before, after = op.padding[0]
    padded = spatial[0] + before + after
    depth, taps = static(x.shape[1], "the depth"), static(weights.shape[0], "a filter")
    reach = (depth - 1) * stride + 1
    total: ir.Value | None = None
    for tap in range(taps):
        planes = emit(build, _merged(build, x), _tap(build, weights, tap), plane, spatial[1:])
        rest = planes.shape[1:]
        spread = build.reshape(planes, (x.shape[0], depth, 1, *rest))
        gap = [(0, stride - 1) if i == 2 else (0, 0) for i in range(spread.rank)]
        spread = build.reshape(build.pad(spread, gap), (x.shape[0], depth * stride, *rest))
        spread = build.part(spread, 1, 0, reach)
        first = tap * dilation
        place = [(first, padded - first - reach) if i == 1 else (0, 0) for i in range(5)]
        term = build.pad(spread, place)
        total = term if total is None else build.binary(ir.BinaryKind.ADD, total, term)
    if total is None:
        raise ValueError("a filter without taps")
    return build.part(total, 1, before, spatial[0])


def pool_3d(build: Builder, x: ir.Value, op: ir.Pool, emit: EmitPool) -> ir.Value:
    """Pools height and width, then the depth; exact for both kinds, as windows are boxes."""
    plane = ir.Pool(op.kind, op.size[1:], op.strides[1:], op.padding[1:])
    planes = emit(build, _merged(build, x), plane)
    height, width, channels = planes.shape[1:]
    line = build.reshape(planes, (x.shape[0], x.shape[1], product([height, width]), channels))
    deep = ir.Pool(op.kind, (op.size[0], 1), (op.strides[0], 1), (op.padding[0], (0, 0)))
    result = emit(build, line, deep)
    return build.reshape(result, (x.shape[0], result.shape[1], height, width, channels))
