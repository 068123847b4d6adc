"""Images read at places that are computed: boxes of them, and projections."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn
from converters.tf.ir.build import static
from converters.tf.ir.symbolic import product
from converters.tf.ir.values import EXACT
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.ops.control import examples
from converters.tf.lower.ops.image.colors import Arithmetic
from converters.tf.lower.tensors import Rows


class _Image:
    """Pixels of images [batch, height, width, C]: float32 places in each, [batch, ...]."""

    def __init__(self, ctx: Context, x: ir.Value) -> None:
        self.build, self.math = ctx.build, Arithmetic(ctx.build)
        self.rows, self.columns = (static(d, "the size of an image") for d in x.shape[1:3])
        if self.rows * self.columns > EXACT or not self.rows * self.columns:
            raise Unsupported(f"an image of {self.rows} x {self.columns} is read at places")
        x = ctx.build.cast(x, ir.DType.F32)
        self.flat = ctx.build.reshape(x, (x.shape[0], self.rows * self.columns, x.shape[3]))

    def within(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """Returns where places lie in the image; one that is NaN does not."""
        sides = (
            self.build.compare(kind, place, self.math.value(limit))
            for place, size in ((row, self.rows), (column, self.columns))
            for kind, limit in ((CompareKind.GE, 0.0), (CompareKind.LE, size - 1.0))
        )
        first, *others = sides
        for other in others:
            first = self.build.binary(BinaryKind.LOGICAL_AND, first, other)
        return first

    def at(self, row: ir.Value, column: ir.Value, fill: float | None) -> ir.Value:
        """Returns the pixels at whole places; `fill` where they lie outside of the image."""
        inside = self.within(row, column)
        place = self.math.add(self.math.mul(row, float(self.columns)), column)
        place = self.build.cast(self.math.where(inside, place, 0.0), ir.DType.I32)
        pixels = self.build.gather(self.flat, place, 1, batch_dims=1)
        return pixels if fill is None else self.filled(inside, pixels, fill)

    def filled(self, inside: ir.Value, pixels: ir.Value, fill: float) -> ir.Value:
        """Returns pixels, and `fill` where places are not inside."""
        inside = self.build.reshape(inside, (*inside.shape, 1))
        return self.math.where(inside, pixels, fill)

    def mixed(self, row: ir.Value, column: ir.Value, fill: float | None) -> ir.Value:
        """Returns pixels between the four around each place."""
        math = self.math
        top, left = (self.build.unary(Fn.FLOOR, place) for place in (row, column))
        down, right = math.sub(row, top), math.sub(column, left)
        if fill is None:  # The last pixel of an axis has none after it.
            low, far = (
                self.build.binary(BinaryKind.MIN, math.add(place, 1.0), math.value(size - 1.0))
                for place, size in ((top, self.rows), (left, self.columns))
            )
        else:
            low, far = math.add(top, 1.0), math.add(left, 1.0)

        def between(line: ir.Value) -> ir.Value:
            a, b = self.at(line, left, fill), self.at(line, far, fill)
            return self._between(a, b, right)

        return self._between(between(top), between(low), down)

    def _between(self, a: ir.Value, b: ir.Value, share: ir.Value) -> ir.Value:
        share = self.build.reshape(share, (*share.shape, 1))
        return self.math.add(a, self.math.mul(self.math.sub(b, a), share))

    def nearest(self, row: ir.Value, column: ir.Value, fill: float | None) -> ir.Value:
        """Returns the pixels next to each place; halves are rounded away from 0."""
        return self.at(self._round(row), self._round(column), fill)

    def _round(self, x: ir.Value) -> ir.Value:
        size = self.build.unary(Fn.ABS, x)
        whole = self.build.unary(Fn.FLOOR, size)
        half = self.build.compare(CompareKind.GE, self.math.sub(size, whole), self.math.value(0.5))
        rounded = self.math.where(half, self.math.add(whole, 1.0), whole)
        return self.math.mul(rounded, self.build.unary(Fn.SIGN, x))


def _crop_and_resize(ctx: Context) -> Result:
    """Boxes of images: each example's own, or of one image."""
    x, boxes, numbers, build = ctx.value(0), ctx.value(1), ctx.args[2], ctx.build
    height, width = ctx.ints(3)
    channels = x.shape[3]
    batch: ir.Dim = x.shape[0]
    if isinstance(numbers, Rows) and examples.own(numbers) and batch == ir.Batch():
        (each,) = numbers.shape
        count = each.scale if isinstance(each, ir.Batch) else 0
    elif batch == 1 and isinstance(numbers, ir.Value) and numbers.data is not None:
        if numbers.data.any():
            raise Unsupported("boxes of an image that there is not")
        count = numbers.data.size
    else:
        raise Unsupported("boxes of images that the inputs choose")
    if product(boxes.shape[:1]) != product((batch, count)):
        raise Unsupported(f"boxes {ir.shape_text(boxes.shape)} of {count} for each image")
    boxes = build.reshape(boxes, (batch, count, 4))
    image, math = _Image(ctx, x), Arithmetic(build)

    def places(axis: int, size: int, out: int) -> ir.Value:
        """Returns [batch, count, out] places along an axis."""
        first, last = (build.part(boxes, 2, i, 1) for i in (axis, axis + 2))
        if out <= 1:
            return math.mul(math.mul(0.5, math.add(first, last)), size - 1.0)
        step = math.div(math.mul(math.sub(last, first), size - 1.0), out - 1.0)
        steps = ir.constant(np.arange(out, dtype=np.float32))
        return math.add(math.mul(first, size - 1.0), math.mul(steps, step))

    shape = (batch, count, height, width)
    row = build.reshape(places(0, image.rows, height), (batch, count, height, 1))
    column = build.reshape(places(1, image.columns, width), (batch, count, 1, width))
    row, column = build.broadcast_to(row, shape), build.broadcast_to(column, shape)
    inside = image.within(row, column)
    row, column = math.where(inside, row, 0.0), math.where(inside, column, 0.0)
    read = image.nearest if ctx.attr("method", "bilinear") == "nearest" else image.mixed
    fill = float(ctx.attr("extrapolation_value", 0.0) or 0.0)
    pixels = image.filled(inside, read(row, column, None), fill)
    return build.reshape(pixels, (product((batch, count)), height, width, channels))


def _reflected(math: Arithmetic, x: ir.Value, size: int) -> ir.Value:
    """Counts places back and forth, the ends twice."""
    build, turn = math.build, 2.0 * size
    below = build.unary(Fn.NEG, math.add(x, 1.0))
    x = math.where(build.compare(CompareKind.LT, x, math.value(0.0)), below, x)
    x = math.sub(x, math.mul(turn, build.unary(Fn.FLOOR, math.div(x, turn))))
    x = math.where(build.compare(CompareKind.GE, x, math.value(size)), math.sub(turn - 1.0, x), x)
    return math.clamp(x, 0.0, size - 1.0)


def _wrapped(math: Arithmetic, x: ir.Value, size: int) -> ir.Value:
    """Counts places round and round; between the last one and the first lies one step."""
    build = math.build
    if size <= 1:
        return math.clamp(x, 0.0, 0.0)

    def turns(place: ir.Value) -> ir.Value:
        return build.unary(Fn.FLOOR, math.div(place, size - 1.0))

    before = math.add(x, math.mul(float(size), math.add(turns(build.unary(Fn.NEG, x)), 1.0)))
    after = math.sub(x, math.mul(float(size), turns(x)))
    inner = math.where(math.over(x, size - 1.0), after, x)
    x = math.where(build.compare(CompareKind.LT, x, math.value(0.0)), before, inner)
    return math.clamp(x, 0.0, size - 1.0)


_BORDERS: Mapping[str, Callable[[Arithmetic, ir.Value, int], ir.Value]] = {
    "CONSTANT": lambda math, x, size: x,
    "NEAREST": lambda math, x, size: math.clamp(x, 0.0, size - 1.0),
    "REFLECT": _reflected,
    "WRAP": _wrapped,
}


def _projected(ctx: Context) -> Result:
    """Images of which a projection says where each pixel comes from."""
    x, transforms, build = ctx.value(0), ctx.value(1), ctx.build
    height, width = ctx.ints(2)
    fill = float(ctx.array(3)) if len(ctx.args) > 3 else 0.0
    image, math = _Image(ctx, x), Arithmetic(build)
    batch, channels = x.shape[0], x.shape[3]
    if transforms.shape[0] not in (batch, 1):
        raise Unsupported("projections of another batch")
    lead = transforms.shape[0]
    across = ir.constant(np.arange(width, dtype=np.float32).reshape(1, 1, width))
    down = ir.constant(np.arange(height, dtype=np.float32).reshape(1, height, 1))

    def row_of(first: int) -> tuple[ir.Value, ir.Value]:
        x_part, y_part = (
            math.mul(build.reshape(build.part(transforms, 1, i, 1), (lead, 1, 1)), place)
            for i, place in ((first, across), (first + 1, down))
        )
        return x_part, y_part

    def third(index: int) -> ir.Value:
        return build.reshape(build.part(transforms, 1, index, 1), (lead, 1, 1))

    scale = math.add(math.add(*row_of(6)), 1.0)
    shape = (batch, height, width)
    border = _BORDERS[str(ctx.attr("fill_mode", "CONSTANT")).upper()]
    places = []
    for first, size in ((3, image.rows), (0, image.columns)):
        at = math.div(math.add(math.add(*row_of(first)), third(first + 2)), scale)
        places.append(build.broadcast_to(border(math, at, size), shape))
    bilinear = str(ctx.attr("interpolation", "NEAREST")).upper() == "BILINEAR"
    row, column = places
    pixels = (image.mixed if bilinear else image.nearest)(row, column, fill)
    far = build.compare(CompareKind.NE, build.broadcast_to(scale, shape), math.value(0.0))
    result = image.filled(far, pixels, fill)
    return build.cast(build.reshape(result, (*shape, channels)), x.dtype)


OPS: dict[str, Handler] = {
    "CropAndResize": _crop_and_resize,
    "ImageProjectiveTransformV2": _projected,
    "ImageProjectiveTransformV3": _projected,
}
