"""The largest elements of a row, as many as there are when it is sorted."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.ir.build import static
from converters.tf.ir.expressions import surely
from converters.tf.lower.graph import Context, Handler, Result, Unsupported, element_type


def _top_k(ctx: Context) -> Result:
    x = ctx.value(0)
    number = ctx.dims(1).item() if len(ctx.args) > 1 else int(ctx.attr("k"))
    count = static(number, "the number of largest elements")
    size = static(x.shape[-1], "the row whose largest elements are taken")
    # A row of which a call has fewer is an error of the call.
    if surely(lambda: not 0 <= count <= size):
        raise Unsupported(f"the {count!s} largest of {size!s} elements")
    if not ctx.attr("sorted", True) and count != 1:
        raise Unsupported("top_k that leaves the order open")
    build, axis = ctx.build, x.rank - 1
    places = build.emit(ir.TopK(), [x], (*x.shape[:-1], count), ir.DType.I32)
    values = build.gather(x, places, axis, axis)
    kind = element_type(ctx.attr("index_type", "int32"))
    return values, build.cast(places, kind)


OPS: dict[str, Handler] = {
    "TopK": _top_k,
    "TopKV2": _top_k,
}
