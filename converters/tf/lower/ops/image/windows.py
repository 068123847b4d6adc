"""Convolutions and pools over one, two or three axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from converters.tf import ir
from converters.tf.ir.build import Builder, static
from converters.tf.ir.expressions import is_open, surely
from converters.tf.ir.symbolic import product
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.image import computed
from converters.tf.lower.ops.image.depth import conv_3d, conv_transpose_3d, pool_3d
from converters.tf.lower.ops.image.patches import patches, takes_patches

Padding = tuple[tuple[int, int], ...]


def same(size: int, window: int, stride: int, dilation: int) -> tuple[int, int]:
    """Returns TensorFlow's `SAME` padding of one axis."""
    reach = (window - 1) * dilation + 1
    total = (-(-size // stride) - 1) * stride + reach - size
    # A quotient that is rounded up takes less than a stride more than there is.
    if not is_open(size) or reach < stride:
        total = max(total, 0) if reach > 1 else 0
    return total // 2, total - total // 2


def conv_output(
    size: int, window: int, stride: int, dilation: int, padding: tuple[int, int]
) -> int:
    """Returns the outputs along one axis.

    Raises:
        Unsupported: The window is larger than the axis, whatever is open.
    """
    free = size + sum(padding) - (window - 1) * dilation - 1
    if surely(lambda: free < 0):
        raise Unsupported(f"a window of {window} on an axis of {size}")
    return free // stride + 1


class _Axes:
    """Attributes of a window by axis, whatever the data format."""

    def __init__(self, ctx: Context, rank: int) -> None:
        form = ctx.attr("data_format", "NHWC")
        self.last = form in ("NHWC", "NDHWC")
        self.rank = rank
        self._ctx = ctx
        first = 1 if self.last else 2
        self.places = range(first, first + rank - 2)

    def pick(self, name: str) -> tuple[int, ...]:
        values = self._ctx.attr(name) or (1,) * self.rank
        return tuple(int(values[i]) for i in self.places)

    def padding(
        self,
        sizes: Sequence[int],
        window: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
    ) -> Padding:
        kind = self._ctx.attr("padding", "VALID")
        if kind == "VALID":
            return tuple((0, 0) for _ in sizes)
        if kind == "EXPLICIT":
            pairs = self._ctx.attr("explicit_paddings")
            return tuple((int(pairs[2 * i]), int(pairs[2 * i + 1])) for i in self.places)
        return tuple(map(same, sizes, window, strides, dilations))

    def channels_last(self, x: ir.Value) -> ir.Value:
        if self.last:
            return x
        return self._ctx.build.transpose(x, [0, *range(2, x.rank), 1])

    def restored(self, x: ir.Value) -> ir.Value:
        if self.last:
            return x
        return self._ctx.build.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def _spatial(x: ir.Value) -> list[int]:
    return [static(d, "the size of an image") for d in x.shape[1:-1]]


def _outputs(x: ir.Value, window: Sequence[int], op: ir.Conv) -> list[int]:
    sizes = (_spatial(x), window, op.strides, op.dilations, op.padding)
    return list(map(conv_output, *sizes))


def emit_conv(
    build: Builder, x: ir.Value, weights: ir.Value, op: ir.Conv, residual: ir.Value | None = None
) -> ir.Value:
    """Adds a convolution; along one axis if the first of two is trivial."""
    window = [static(d, "a filter") for d in weights.shape[:-2]]
    outputs = _outputs(x, window, op)
    shape = (x.shape[0], *outputs, weights.shape[-1])
    if not weights.is_constant:
        return computed.conv(build, x, weights, op, outputs, residual)
    if residual is None and takes_patches(op, weights):
        return patches(build, x, op, window, outputs)
    flat = x.rank == 4 and x.shape[1] == 1 and weights.shape[0] == 1
    if flat and op.padding[0] == (0, 0) and residual is None:
        line = ir.Conv(op.strides[1:], op.dilations[1:], op.padding[1:], op.groups)
        narrow = build.reshape(x, (x.shape[0], *x.shape[2:]))
        kernel = build.reshape(weights, weights.shape[1:])
        result = build.emit(line, [narrow, kernel], (shape[0], *shape[2:]))
        return build.reshape(result, shape)
    return build.emit(op, [x, weights, None, residual], shape)


def _conv(ctx: Context) -> Result:
    x, weights = ctx.value(0), ctx.value(1)
    axes = _Axes(ctx, x.rank)
    x = axes.channels_last(x)
    channels = static(x.shape[-1], "the channels")
    window = [static(d, "a filter") for d in weights.shape[:-2]]
    strides, dilations = axes.pick("strides"), axes.pick("dilations")
    padding = axes.padding(_spatial(x), window, strides, dilations)
    depthwise = ctx.node.op == "DepthwiseConv2dNative"
    if depthwise:
        weights = ctx.build.reshape(weights, (*window, 1, product(weights.shape[-2:])))
    groups = channels // static(weights.shape[-2], "a filter")
    op = ir.Conv(strides, dilations, padding, groups)
    if len(window) == 3:
        return axes.restored(conv_3d(ctx.build, x, weights, op, emit_conv))
    return axes.restored(emit_conv(ctx.build, x, weights, op))


def _extract_patches(ctx: Context) -> Result:
    x = ctx.value(0)
    axes = _Axes(ctx, x.rank)
    window = axes.pick("ksizes")
    strides, dilations = axes.pick("strides"), axes.pick("rates")
    padding = axes.padding(_spatial(x), window, strides, dilations)
    op = ir.Conv(strides, dilations, padding)
    return patches(ctx.build, x, op, window, _outputs(x, window, op))


def dilated(
    ctx: Context, x: ir.Value, blocks: Sequence[int], crops: Sequence[tuple[int, int]]
) -> ir.Value | None:
    """Returns the dilated convolution that `BatchToSpaceND` of a convolution's result ends."""
    node = next((n for n in reversed(ctx.build.nodes[-8:]) if _gives(ctx.build, n, x)), None)
    if node is None or not isinstance(node.op, ir.Conv):
        return None
    spread = next((s for v, s in ctx.low.spread.items() if _same(ctx.build, node.input, v)), None)
    weights = node.operand(1)
    plain = set(node.op.strides) == {1} and all(p == (0, 0) for p in node.op.padding)
    if spread is None or weights is None or not plain or spread.blocks != tuple(blocks):
        return None
    padding = tuple(
        (before - c, after - d)
        for (before, after), (c, d) in zip(spread.padding, crops, strict=True)
    )
    if any(b < 0 or a < 0 for b, a in padding) or spread.source.rank != len(blocks) + 2:
        return None
    size = len(blocks)
    if len(node.op.dilations) not in (size, size - 1):
        return None
    inner = (1,) * (size - len(node.op.dilations)) + node.op.dilations
    steps = tuple(b * d for b, d in zip(blocks, inner, strict=True))
    kernel = ctx.build.reshape(
        weights, ((1,) * (size - len(node.op.dilations))) + tuple(weights.shape)
    )
    op = ir.Conv((1,) * size, steps, padding, node.op.groups)
    return emit_conv(ctx.build, spread.source, kernel, op)


def _same(build: Builder, a: ir.Value, b: ir.Value) -> bool:
    return build.unshaped(a) is build.unshaped(b)


def _gives(build: Builder, node: ir.Node, x: ir.Value) -> bool:
    return build.unshaped(x) in node.outputs


def emit_conv_transpose(
    build: Builder, x: ir.Value, weights: ir.Value, op: ir.ConvTranspose, spatial: Sequence[int]
) -> ir.Value:
    """Adds a transposed convolution; along one axis if the first of two is trivial."""
    if not weights.is_constant:
        return computed.conv_transpose(build, x, weights, op, spatial)
    channels = static(weights.shape[-2], "a filter") * op.groups
    flat = len(spatial) == 2 and spatial[0] == 1 and weights.shape[0] == 1 and x.shape[1] == 1
    if flat and op.padding[0] == (0, 0):
        line = ir.ConvTranspose(op.strides[1:], op.dilations[1:], op.padding[1:], op.groups)
        narrow = build.reshape(x, (x.shape[0], *x.shape[2:]))
        kernel = build.reshape(weights, weights.shape[1:])
        result = build.emit(line, [narrow, kernel], (x.shape[0], spatial[1], channels))
        return build.reshape(result, (x.shape[0], *spatial, channels))
    return build.emit(op, [x, weights], (x.shape[0], *spatial, channels))


def _conv_transpose(ctx: Context) -> Result:
    weights, x = ctx.value(1), ctx.value(2)
    target = ctx.dims(0).ravel()
    axes = _Axes(ctx, x.rank)
    x = axes.channels_last(x)
    sizes = [static(target[i], "the size of an image") for i in axes.places]
    window = [static(d, "a filter") for d in weights.shape[:-2]]
    strides, dilations = axes.pick("strides"), axes.pick("dilations")
    padding = axes.padding(sizes, window, strides, dilations)
    if ctx.node.op.startswith("Depthwise"):
        raise Unsupported("a transposed depthwise convolution")
    groups = static(x.shape[-1], "the channels") // static(weights.shape[-1], "a filter")
    op = ir.ConvTranspose(strides, dilations, padding, groups)
    if len(window) == 3:
        return axes.restored(
            conv_transpose_3d(ctx.build, x, weights, op, sizes, emit_conv_transpose)
        )
    return axes.restored(emit_conv_transpose(ctx.build, x, weights, op, sizes))


def emit_pool(build: Builder, x: ir.Value, op: ir.Pool) -> ir.Value:
    """Adds a pool; along one axis if the first of two is trivial."""
    ones = (1,) * len(op.size)
    outputs = map(conv_output, _spatial(x), op.size, op.strides, ones, op.padding)
    shape = (x.shape[0], *outputs, x.shape[-1])
    if len(op.size) == 2 and x.shape[1] == 1 and op.size[0] == 1 and op.padding[0] == (0, 0):
        line = ir.Pool(op.kind, op.size[1:], op.strides[1:], op.padding[1:])
        narrow = build.reshape(x, (x.shape[0], *x.shape[2:]))
        result = build.emit(line, [narrow], (shape[0], *shape[2:]))
        return build.reshape(result, shape)
    return build.emit(op, [x], shape)


def _pool(kind: ir.PoolKind) -> Callable[[Context], Result]:
    def handler(ctx: Context) -> Result:
        x = ctx.value(0)
        axes = _Axes(ctx, x.rank)
        x = axes.channels_last(x)
        size, strides = axes.pick("ksize"), axes.pick("strides")
        padding = axes.padding(_spatial(x), size, strides, (1,) * len(size))
        op = ir.Pool(kind, size, strides, padding)
        if len(size) == 3:
            return axes.restored(pool_3d(ctx.build, x, op, emit_pool))
        return axes.restored(emit_pool(ctx.build, x, op))

    return handler


def _dilation(ctx: Context) -> Result:
    raise Unsupported("a morphological dilation")


OPS: dict[str, Handler] = {
    "Conv2D": _conv,
    "Conv3D": _conv,
    "DepthwiseConv2dNative": _conv,
    "Conv2DBackpropInput": _conv_transpose,
    "Conv3DBackpropInputV2": _conv_transpose,
    "MaxPool": _pool(ir.PoolKind.MAX),
    "MaxPool3D": _pool(ir.PoolKind.MAX),
    "AvgPool": _pool(ir.PoolKind.AVERAGE),
    "AvgPool3D": _pool(ir.PoolKind.AVERAGE),
    "Dilation2D": _dilation,
    "ExtractImagePatches": _extract_patches,
    "ExtractVolumePatches": _extract_patches,
}
