"""Random numbers that a seed decides: an input of the model, or a variable that calls carry."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.lower.graph import Context, Handler, Result, Unsupported
from converters.tf.lower.tensors import Seed

_RANDOM = "random numbers"
_KEPT = "random numbers of a seed that is the same in every call"
# The number of the algorithm Philox, and of the automatic choice, which is Philox.
_PHILOX, _AUTOMATIC = 1, 3


def _algorithm(ctx: Context) -> Result:
    return ctx.build.scalar(_PHILOX, ir.DType.I32)


def _key_counter(ctx: Context) -> Result:
    seed = Seed(ctx.value(0))
    if seed.source.shape != (2,):
        raise Unsupported(f"a seed of shape {ir.shape_text(seed.source.shape)}")
    if ctx.node.op.endswith("Alg"):
        return seed, seed, ctx.build.scalar(_PHILOX, ir.DType.I32)
    return seed, seed


def _drawn(distribution: ir.Distribution) -> Handler:
    def handler(ctx: Context) -> Result:
        seed, counter = ctx.args[1], ctx.args[2]
        if not isinstance(seed, Seed) or seed != counter:
            raise Unsupported(_RANDOM)
        if seed.source.is_constant:
            raise Unsupported(_KEPT)
        if ctx.integer(3) not in (_PHILOX, _AUTOMATIC):
            raise Unsupported("random numbers of another algorithm than Philox")
        dtype = ctx.dtype("dtype")
        if dtype is not ir.DType.F32:
            raise Unsupported(f"random numbers of {dtype.value}")
        shape = tuple(ctx.dims(0).ravel())
        return ctx.build.emit(ir.Random(distribution), [seed.source], shape, dtype)

    return handler


OPS: dict[str, Handler] = {
    "StatelessRandomGetAlg": _algorithm,
    "StatelessRandomGetKeyCounter": _key_counter,
    "StatelessRandomGetKeyCounterAlg": _key_counter,
    "StatelessRandomNormalV2": _drawn(ir.Distribution.NORMAL),
    "StatelessRandomUniformV2": _drawn(ir.Distribution.UNIFORM),
}
