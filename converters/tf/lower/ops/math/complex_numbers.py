"""Complex numbers as pairs of real tensors.

What moves or adds elements works on the real and on the imaginary parts by themselves; products,
quotients and a few functions are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from converters.tf import ir
from converters.tf.ir import BinaryKind, Fn
from converters.tf.ir.build import Builder, broadcast
from converters.tf.lower.graph import Context, Handler, Result, Tensor, Unsupported, element_type
from converters.tf.lower.tensors import Complex

# Ops whose results have the parts that the parts of their operands give.
_PARTWISE = (
    "Add",
    "AddN",
    "AddV2",
    "BiasAdd",
    "BroadcastTo",
    "Concat",
    "ConcatV2",
    "Cumsum",
    "ExpandDims",
    "Fill",
    "Gather",
    "GatherNd",
    "GatherV2",
    "MatrixBandPart",
    "Mean",
    "MirrorPad",
    "Neg",
    "Pack",
    "Pad",
    "PadV2",
    "Reshape",
    "ReverseV2",
    "Roll",
    "Select",
    "SelectV2",
    "Slice",
    "Split",
    "SplitV",
    "Squeeze",
    "StridedSlice",
    "Sub",
    "Sum",
    "Tile",
    "Transpose",
    "Unpack",
    "ZerosLike",
)
_PRODUCTS = ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "MatMul", "Mul")
_TYPES = {"complex64": "float32", "complex128": "float64"}


def _parts(arg: Tensor) -> tuple[Tensor, Tensor]:
    return (arg.real, arg.imaginary) if isinstance(arg, Complex) else (arg, arg)


def _joined(real: Tensor, imaginary: Tensor) -> Tensor:
    if isinstance(real, ir.Value) and isinstance(imaginary, ir.Value):
        return Complex(real, imaginary)
    raise Unsupported("complex numbers of which a part is not a tensor")


def _partwise(handler: Handler) -> Handler:
    def both(ctx: Context) -> Result:
        if not any(isinstance(a, Complex) for a in ctx.args):
            return handler(ctx)
        pairs = [_parts(a) for a in ctx.args]
        found = [handler(replace(ctx, args=args)) for args in zip(*pairs, strict=True)]
        real, imaginary = found
        if isinstance(real, tuple) and isinstance(imaginary, tuple):
            return tuple(_joined(a, b) for a, b in zip(real, imaginary, strict=True))
        if isinstance(real, tuple) or isinstance(imaginary, tuple):
            raise Unsupported("complex numbers of which a part is not a tensor")
        return _joined(real, imaginary)

    return both


def _bilinear(handler: Handler) -> Handler:
    """Multiplies by products of parts."""

    def product(ctx: Context) -> Result:
        a, b = (ctx.args[i] if i < len(ctx.args) else None for i in range(2))
        if not isinstance(a, Complex) or not isinstance(b, Complex):
            return handler(ctx)
        a = _conjugate(ctx.build, a) if _adjoint(ctx, "x", "a") else a
        b = _conjugate(ctx.build, b) if _adjoint(ctx, "y", "b") else b

        def of(x: ir.Value, y: ir.Value) -> ir.Value:
            found = handler(replace(ctx, args=(x, y)))
            if not isinstance(found, ir.Value):
                raise Unsupported("complex numbers of which a part is not a tensor")
            return found

        return _multiplied(ctx.build, of, a, b)

    return product


def _adjoint(ctx: Context, *names: str) -> bool:
    return any(ctx.attr(f"adj_{name}") or ctx.attr(f"adjoint_{name}") for name in names)


def _multiplied(
    build: Builder, of: Callable[[ir.Value, ir.Value], ir.Value], a: Complex, b: Complex
) -> Complex:
    real = build.binary(BinaryKind.SUB, of(a.real, b.real), of(a.imaginary, b.imaginary))
    imaginary = build.binary(BinaryKind.ADD, of(a.real, b.imaginary), of(a.imaginary, b.real))
    return Complex(real, imaginary)


def product(build: Builder, a: Complex, b: Complex) -> Complex:
    """Multiplies elements."""
    return _multiplied(build, lambda x, y: build.binary(BinaryKind.MUL, x, y), a, b)


def _conjugate(build: Builder, x: Complex) -> Complex:
    return Complex(x.real, build.unary(Fn.NEG, x.imaginary))


def _squared(build: Builder, x: Complex) -> ir.Value:
    """Returns the squares of magnitudes."""
    squares = (build.unary(Fn.SQUARE, part) for part in (x.real, x.imaginary))
    return build.binary(BinaryKind.ADD, *squares)


def _quotient(build: Builder, a: Complex, b: Complex) -> Complex:
    size = _squared(build, b)
    above = product(build, a, _conjugate(build, b))
    real, imaginary = (
        build.binary(BinaryKind.DIV, part, size) for part in (above.real, above.imaginary)
    )
    return Complex(real, imaginary)


def _divided(handler: Handler) -> Handler:
    def quotient(ctx: Context) -> Result:
        a, b = ctx.args
        if isinstance(a, Complex) and isinstance(b, Complex):
            return _quotient(ctx.build, a, b)
        return handler(ctx)

    return quotient


def of(ctx: Context) -> Complex:
    """Returns the first operand, which must be complex.

    Raises:
        Unsupported: It is not.
    """
    arg = ctx.args[0]
    if not isinstance(arg, Complex):
        raise Unsupported("complex numbers that are not a spectrum")
    return arg


def _magnitude(ctx: Context) -> Result:
    return ctx.build.unary(Fn.SQRT, _squared(ctx.build, of(ctx)))


def _angle(ctx: Context) -> Result:
    x = of(ctx)
    return ctx.build.binary(BinaryKind.ATAN2, x.imaginary, x.real)


def _exponential(build: Builder, x: Complex) -> Complex:
    size = build.unary(Fn.EXP, x.real)
    real, imaginary = (
        build.binary(BinaryKind.MUL, size, build.unary(turn, x.imaginary))
        for turn in (Fn.COS, Fn.SIN)
    )
    return Complex(real, imaginary)


def _inverse(build: Builder, x: Complex) -> Complex:
    one = build.scalar(1, x.real.dtype)
    return _quotient(build, Complex(one, build.scalar(0, x.real.dtype)), x)


_FUNCTIONS: Mapping[str, Callable[[Builder, Complex], Complex]] = {
    "Exp": _exponential,
    "Inv": _inverse,
    "Reciprocal": _inverse,
    "Square": lambda build, x: product(build, x, x),
    "OnesLike": lambda build, x: Complex(
        build.broadcast_to(build.scalar(1, x.real.dtype), x.real.shape),
        build.broadcast_to(build.scalar(0, x.real.dtype), x.real.shape),
    ),
}


def _function(handler: Handler, function: Callable[[Builder, Complex], Complex]) -> Handler:
    def either(ctx: Context) -> Result:
        arg = ctx.args[0]
        return function(ctx.build, arg) if isinstance(arg, Complex) else handler(ctx)

    return either


def _cast(handler: Handler) -> Handler:
    def either(ctx: Context) -> Result:
        arg, target = ctx.args[0], ctx.attr("DstT")
        if isinstance(arg, Complex) and target not in _TYPES:
            return ctx.build.cast(arg.real, ctx.dtype("DstT"))
        if target not in _TYPES:
            return handler(ctx)
        kind = element_type(_TYPES[target])
        if isinstance(arg, Complex):
            return Complex(ctx.build.cast(arg.real, kind), ctx.build.cast(arg.imaginary, kind))
        real = ctx.build.cast(ctx.value(0), kind)
        return Complex(real, ctx.build.broadcast_to(ctx.build.scalar(0, kind), real.shape))

    return either


def _complex(ctx: Context) -> Result:
    real, imaginary, build = ctx.value(0), ctx.value(1), ctx.build
    shape = broadcast(real.shape, imaginary.shape)
    return Complex(build.broadcast_to(real, shape), build.broadcast_to(imaginary, shape))


def _conj(ctx: Context) -> Result:
    arg = ctx.args[0]
    return _conjugate(ctx.build, arg) if isinstance(arg, Complex) else ctx.value(0)


def with_complex_numbers(handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Returns functions that take complex numbers, too, by TensorFlow's op."""
    found = dict(handlers)
    found |= {op: _partwise(handlers[op]) for op in _PARTWISE if op in handlers}
    found |= {op: _bilinear(handlers[op]) for op in _PRODUCTS if op in handlers}
    found |= {op: _divided(handlers[op]) for op in ("Div", "RealDiv")}
    found |= {op: _function(handlers[op], function) for op, function in _FUNCTIONS.items()}
    found["Cast"] = _cast(handlers["Cast"])
    return found | {
        "Angle": _angle,
        "Complex": _complex,
        "ComplexAbs": _magnitude,
        "Conj": _conj,
        "Imag": lambda ctx: of(ctx).imaginary,
        "Real": lambda ctx: of(ctx).real,
    }
