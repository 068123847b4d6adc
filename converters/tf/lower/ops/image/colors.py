"""Colors of images as hue, saturation and value, and what is changed in them."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.ir import BinaryKind, CompareKind, Fn, ReduceKind
from converters.tf.ir.build import Builder, static
from converters.tf.lower.graph import Context, Handler, Result, Unsupported


class Arithmetic:
    """Short names for functions of elements, with numbers as constants of float32."""

    def __init__(self, build: Builder) -> None:
        """Emits with a builder."""
        self.build = build

    def value(self, x: ir.Value | float) -> ir.Value:
        """Returns a tensor."""
        return x if isinstance(x, ir.Value) else self.build.scalar(x, ir.DType.F32)

    def _of(self, kind: BinaryKind, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
        return self.build.binary(kind, self.value(a), self.value(b))

    def add(self, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
        """Returns `a + b`."""
        return self._of(BinaryKind.ADD, a, b)

    def sub(self, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
        """Returns `a - b`."""
        return self._of(BinaryKind.SUB, a, b)

    def mul(self, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
        """Returns `a * b`."""
        return self._of(BinaryKind.MUL, a, b)

    def div(self, a: ir.Value | float, b: ir.Value | float) -> ir.Value:
        """Returns `a / b`."""
        return self._of(BinaryKind.DIV, a, b)

    def over(self, a: ir.Value, b: ir.Value | float) -> ir.Value:
        """Returns whether `a > b`."""
        return self.build.compare(CompareKind.GT, a, self.value(b))

    def where(
        self, condition: ir.Value, then: ir.Value | float, other: ir.Value | float
    ) -> ir.Value:
        """Chooses elementwise."""
        return self.build.select(condition, self.value(then), self.value(other))

    def clamp(self, x: ir.Value, low: float, high: float) -> ir.Value:
        """Returns elements within limits."""
        return self.build.unary(Fn.CLAMP, x, low, high)


def _channels(ctx: Context, x: ir.Value) -> list[ir.Value]:
    if static(x.shape[-1], "the number of channels") != 3:
        raise Unsupported(f"colors of {x.shape[-1]} channels")
    return [ctx.build.part(x, x.rank - 1, i, 1) for i in range(3)]


def _to_hsv(ctx: Context, x: ir.Value) -> list[ir.Value]:
    """Returns hue (of 1 for a turn), saturation and value."""
    build, math = ctx.build, Arithmetic(ctx.build)
    red, green, blue = _channels(ctx, x)
    most = build.reduce(ReduceKind.MAX, x, [-1], keepdims=True)
    spread = math.sub(most, build.reduce(ReduceKind.MIN, x, [-1], keepdims=True))
    saturation = math.where(math.over(most, 0.0), math.div(spread, most), 0.0)
    scale = math.div(1.0, math.mul(6.0, spread))
    from_red = math.mul(scale, math.sub(green, blue))
    from_green = math.add(math.mul(scale, math.sub(blue, red)), 2.0 / 6.0)
    from_blue = math.add(math.mul(scale, math.sub(red, green)), 4.0 / 6.0)
    hue = math.where(build.compare(CompareKind.EQ, green, most), from_green, from_blue)
    hue = math.where(build.compare(CompareKind.EQ, red, most), from_red, hue)
    hue = math.where(math.over(spread, 0.0), hue, 0.0)
    below = build.compare(CompareKind.LT, hue, math.value(0.0))
    return [math.where(below, math.add(hue, 1.0), hue), saturation, most]


def _from_hsv(ctx: Context, hue: ir.Value, saturation: ir.Value, value: ir.Value) -> ir.Value:
    build, math = ctx.build, Arithmetic(ctx.build)
    turn = math.mul(hue, 6.0)

    def away(place: float) -> ir.Value:
        return build.unary(Fn.ABS, math.sub(turn, place))

    parts = (math.sub(away(3.0), 1.0), math.sub(2.0, away(2.0)), math.sub(2.0, away(4.0)))
    gray = math.sub(1.0, saturation)
    colors = (
        math.mul(math.add(gray, math.mul(saturation, math.clamp(part, 0.0, 1.0))), value)
        for part in parts
    )
    return build.concat(list(colors), hue.rank - 1)


def _rgb_to_hsv(ctx: Context) -> Result:
    x = ctx.value(0)
    return ctx.build.concat(_to_hsv(ctx, x), x.rank - 1)


def _hsv_to_rgb(ctx: Context) -> Result:
    return _from_hsv(ctx, *_channels(ctx, ctx.value(0)))


def _saturation(ctx: Context) -> Result:
    math = Arithmetic(ctx.build)
    hue, saturation, value = _to_hsv(ctx, ctx.value(0))
    saturation = math.clamp(math.mul(saturation, ctx.value(1)), 0.0, 1.0)
    return _from_hsv(ctx, hue, saturation, value)


def _hue(ctx: Context) -> Result:
    build, math = ctx.build, Arithmetic(ctx.build)
    hue, saturation, value = _to_hsv(ctx, ctx.value(0))
    hue = math.add(hue, ctx.value(1))
    hue = math.sub(hue, build.unary(Fn.FLOOR, hue))
    return _from_hsv(ctx, hue, saturation, value)


def _contrast(ctx: Context) -> Result:
    x, math = ctx.value(0), Arithmetic(ctx.build)
    mean = ctx.build.reduce(ReduceKind.MEAN, x, [-3, -2], keepdims=True)
    return math.add(math.mul(math.sub(x, mean), ctx.value(1)), mean)


OPS: dict[str, Handler] = {
    "AdjustContrastv2": _contrast,
    "AdjustHue": _hue,
    "AdjustSaturation": _saturation,
    "HSVToRGB": _hsv_to_rgb,
    "RGBToHSV": _rgb_to_hsv,
}
