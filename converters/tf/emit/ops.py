"""Ops without weights: a line that calls a function of the runtime."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context
from converters.tf.emit.functions import ADD_CLAMP, BINARY, COMPARE, REDUCE, float_literal, unary
from converters.tf.emit.layers import LAYERS, Emit, axis, embedding, is_embedding
from converters.tf.emit.names import wishes
from converters.tf.emit.systems import SYSTEMS
from converters.tf.ir.ops.elementwise import changes_size
from converters.tf.plan.arena import Step


def _result(c: Context, node: ir.Node, default: str) -> str:
    value = node.output
    return c.name_slot(value, *wishes(value.name or node.layer, default))


def _shaped(c: Context, value: ir.Value) -> str:
    return f"({c.source(value)}, {c.dims(value.shape)})"


def _elements(c: Context, dtype: ir.DType) -> None:
    """Notes the module that only holds implementations for a type: nothing names it."""
    c.use("elementwise")
    if dtype is ir.DType.I32:
        c.use("kernels::ops::elementwise::int32")


def _unary(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Unary)
    function = node.op.function
    _elements(c, node.input.dtype)
    op = c.kernel(unary(function, node.input.dtype), function.params)
    out = _result(c, node, str(function.kind))
    if step.onto is not None:
        return [f"elementwise::map_in_place(m, {op}, {out})?;"]
    return [f"elementwise::map(m, {op}, {c.source(node.input)}, {out})?;"]


def _fused_add(c: Context, op: ir.Binary, dtype: ir.DType) -> str | None:
    """Returns the one operation that adds and clamps."""
    if op.kind is not ir.BinaryKind.ADD or dtype is not ir.DType.F32 or op.activation is None:
        return None
    if op.activation.kind is not ir.Fn.CLAMP:
        return None
    return c.kernel(ADD_CLAMP, op.activation.params)


def _binary(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Binary)
    a, b = node.given(0), node.given(1)
    _elements(c, a.dtype)
    fused = _fused_add(c, node.op, a.dtype)
    op = fused or c.kernel(BINARY[node.op.kind])
    out = _result(c, node, str(node.op.kind))
    same = a.shape == b.shape
    if step.onto is not None:
        other = b if step.onto == 0 else a
        left = str(step.onto == 0).lower()
        if same:
            call = f"zip_in_place::<_, _, {left}>(m, {op}, {out}, {c.source(other)})?;"
        else:
            own = f"({out}, {c.dims(node.output.shape)})"
            call = f"zip_broadcast_in_place::<_, _, {left}>(m, {op}, {own}, {_shaped(c, other)})?;"
    elif same:
        call = f"zip(m, {op}, {c.source(a)}, {c.source(b)}, {out})?;"
    else:
        call = f"zip_broadcast(m, {op}, {_shaped(c, a)}, {_shaped(c, b)}, {out})?;"
    lines = [f"elementwise::{call}"]
    if node.op.activation is not None and fused is None:
        lines.append(f"elementwise::activate(m, {c.activation(node.op.activation)}, {out})?;")
    return lines


def _compare(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Compare)
    a, b = node.given(0), node.given(1)
    _elements(c, a.dtype)
    op = c.kernel(COMPARE[node.op.kind])
    out = _result(c, node, str(node.op.kind))
    if a.shape == b.shape:
        return [f"elementwise::zip(m, {op}, {c.source(a)}, {c.source(b)}, {out})?;"]
    return [f"elementwise::zip_broadcast(m, {op}, {_shaped(c, a)}, {_shaped(c, b)}, {out})?;"]


def _select(c: Context, step: Step) -> list[str]:
    node = step.node
    c.use("elementwise")
    operands = ", ".join(_shaped(c, node.given(i)) for i in range(3))
    return [f"elementwise::select(m, {operands}, {_result(c, node, 'select')})?;"]


def _cast(c: Context, step: Step) -> list[str]:
    node = step.node
    if changes_size(node):
        c.use("whole")
        return [f"whole::cast(m, {c.source(node.input)}, {_result(c, node, 'cast')})?;"]
    c.use("elementwise")
    return [f"elementwise::cast(m, {c.source(node.input)}, {_result(c, node, 'cast')})?;"]


def _scale_shift(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.ScaleShift)
    c.use("elementwise")
    operands = ", ".join(c.source(node.given(i)) for i in range(3))
    out = _result(c, node, "scaled")
    return [f"elementwise::scale_shift(m, {operands}, {c.activation(node.op.activation)}, {out})?;"]


def _mat_mul(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.MatMul)
    c.use("mat_mul")
    bias = node.operand(2)
    if bias is None and node.op.activation is None:
        finish = "mat_mul::Finish::NONE"
    else:
        activation = c.activation(node.op.activation)
        finish = f"mat_mul::Finish {{ bias: {c.optional_source(bias)}, activation: {activation} }}"
    transposed = f"({str(node.op.transpose_a).lower()}, {str(node.op.transpose_b).lower()})"
    a, b = _shaped(c, node.given(0)), _shaped(c, node.given(1))
    out = _result(c, node, "product")
    return [f"mat_mul::mat_mul(m, {a}, {b}, {transposed}, {finish}, ({out}, {c.scratch(step)}))?;"]


def _whole_product(c: Context, step: Step) -> list[str]:
    node = step.node
    a, b = node.given(0), node.given(1)
    c.use("whole")
    groups = "1" if b.rank == 2 else c.product(a.shape[:-2])
    sizes = f"({groups}, {c.dim(a.shape[-1])}, {c.dim(b.shape[-1])})"
    out = _result(c, node, "product")
    return [f"whole::product(m, {sizes}, ({c.source(a)}, {c.source(b)}), {out})?;"]


def _suppress(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Suppress)
    c.use("suppress", "kernels::ops::image::suppress::Limits")
    boxes, scores = node.given(0), node.given(1)
    overlap, score = float_literal(node.op.overlap), float_literal(node.op.score)
    order = str(node.op.in_order).lower()
    limits = f"Limits {{ overlap: {overlap}, score: {score}, in_order: {order} }}"
    rows = f"({c.source(scores)}, {c.dim(scores.shape[-1])})"
    out = f"({_result(c, node, 'chosen')}, {c.scratch(step)})"
    return [f"suppress::suppress(m, {c.source(boxes)}, {rows}, {limits}, {out})?;"]


def _pool(c: Context, step: Step) -> list[str]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Pool)
    c.use("pool", "conv::Axis")
    _, *spatial, channels = (d.scale if isinstance(d, ir.Batch) else d for d in node.input.shape)
    axes = [
        axis(c, size, taps, stride, 1, pad)
        for size, taps, stride, pad in zip(spatial, op.size, op.strides, op.padding, strict=True)
    ]
    if len(axes) == 1:
        axes.insert(0, "Axis::UNIT")
    both = f"[{axes[0]}; 2]" if axes[0] == axes[1] else f"[{axes[0]}, {axes[1]}]"
    kind = f"pool::Kind::{str(op.kind).capitalize()}"
    out = _result(c, node, "pool")
    x = c.source(node.input)
    return [f"pool::pool(m, {kind}, {both}, {channels}, {x}, {out})?;"]


def _axes(axes: tuple[int, ...]) -> str:
    return "&[" + ", ".join(str(a) for a in axes) + "]"


def _reduce(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Reduce)
    c.use("reduce")
    op = c.kernel(REDUCE[node.op.kind])
    out = _result(c, node, str(node.op.kind))
    return [f"reduce::reduce(m, {op}, {_shaped(c, node.input)}, {_axes(node.op.axes)}, {out})?;"]


def _arg(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.ArgExtreme)
    c.use("reduce")
    extreme = f"reduce::Extreme::{'Min' if node.op.smallest else 'Max'}"
    out = _result(c, node, "arg")
    x = _shaped(c, node.input)
    index = f"|i| i as {node.output.dtype}"
    return [f"reduce::arg(m, {extreme}, {x}, {node.op.axis}, {index}, {out})?;"]


def _top_k(c: Context, step: Step) -> list[str]:
    node = step.node
    c.use("top")
    out = _result(c, node, "largest")
    return [f"top::top_k(m, {_shaped(c, node.input)}, {c.dim(node.output.shape[-1])}, {out})?;"]


def _cumulative(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Cumulative)
    c.use("reduce")
    kind = ir.BinaryKind.MUL if node.op.product else ir.BinaryKind.ADD
    op = c.kernel(BINARY[kind])
    neutral = literal(1.0 if node.op.product else 0.0, node.input.dtype)
    mode = (
        f"reduce::Mode {{ exclusive: {str(node.op.exclusive).lower()}, "
        f"reverse: {str(node.op.reverse).lower()} }}"
    )
    out = _result(c, node, "running")
    x = _shaped(c, node.input)
    return [f"reduce::running(m, ({op}, {neutral}), {x}, {node.op.axis}, {mode}, {out})?;"]


def _softmax(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Softmax)
    c.use("softmax")
    function = "log_softmax" if node.op.log else "softmax"
    width = node.input.shape[-1]
    out = _result(c, node, function)
    return [f"softmax::{function}(m, {c.source(node.input)}, {c.dim(width)}, {out})?;"]


def _transpose(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Transpose)
    c.use("layout")
    out = _result(c, node, "transposed")
    return [f"layout::transpose(m, {_shaped(c, node.input)}, {_axes(node.op.perm)}, {out})?;"]


def _concat(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Concat)
    c.use("layout")
    outer = c.product(node.output.shape[: node.op.axis])
    out = _result(c, node, "concat")
    return [f"layout::concat(m, {c.sources(node.present)}, {outer}, {out})?;"]


def _slice(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Slice)
    c.use("layout")
    ranges = f"({_axes(node.op.begin)}, {_axes(node.op.strides)})"
    out = f"({_result(c, node, 'slice')}, {c.dims(node.output.shape)})"
    return [f"layout::slice(m, {_shaped(c, node.input)}, {ranges}, {out})?;"]


def literal(value: float, dtype: ir.DType) -> str:
    """Returns a number as a literal of a type."""
    if dtype in (ir.DType.F32, ir.DType.F64):
        text = float_literal(value)
        return text.replace("f32::", "f64::") if dtype is ir.DType.F64 else text
    return str(int(value))


def _pad(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Pad)
    c.use("layout")
    padding = "&[" + ", ".join(f"({a}, {b})" for a, b in node.op.padding) + "]"
    if node.op.mode is ir.PadMode.CONSTANT:
        border = f"layout::Border::Constant({literal(node.op.value, node.input.dtype)})"
    else:
        border = f"layout::Border::{str(node.op.mode).capitalize()}"
    out = _result(c, node, "padded")
    return [f"layout::pad(m, {_shaped(c, node.input)}, {padding}, {border}, {out})?;"]


def _gather(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Gather)
    if is_embedding(c.plan.root, node):
        return embedding(c, step)
    c.use("gather")
    out = _result(c, node, "gathered")
    x, indices = _shaped(c, node.input), _shaped(c, node.given(1))
    axes = f"({node.op.axis}, {node.op.batch_dims})"
    return [f"gather::gather(m, {x}, {indices}, {axes}, {out})?;"]


def _one_hot(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.OneHot)
    c.use("gather")
    shape = node.output.shape
    inner = c.product(shape[node.op.axis + 1 :])
    dtype = node.output.dtype
    values = f"({literal(node.op.on, dtype)}, {literal(node.op.off, dtype)})"
    sizes = f"({c.dim(shape[node.op.axis])}, {inner})"
    out = _result(c, node, "one_hot")
    return [f"gather::one_hot(m, {c.source(node.input)}, {sizes}, {values}, {out})?;"]


def _tile(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Tile)
    c.use("layout")
    out = _result(c, node, "tiled")
    return [f"layout::tile(m, {_shaped(c, node.input)}, {_axes(node.op.multiples)}, {out})?;"]


def _broadcast(c: Context, step: Step) -> list[str]:
    node = step.node
    c.use("layout")
    out = f"({_result(c, node, 'broadcast')}, {c.dims(node.output.shape)})"
    return [f"layout::broadcast(m, {_shaped(c, node.input)}, {out})?;"]


def _resize(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Resize)
    c.use("resize")
    corners = (
        f"resize::Corners {{ align: {str(node.op.align_corners).lower()}, "
        f"half_pixel: {str(node.op.half_pixel).lower()} }}"
    )
    out = f"({_result(c, node, 'resized')}, {c.dims(node.output.shape)})"
    return [f"resize::{node.op.kind}(m, {_shaped(c, node.input)}, {corners}, {out})?;"]


def _update(c: Context, step: Step) -> list[str]:
    node = step.node
    c.use("layout")
    x, index, part = (c.source(node.given(i)) for i in range(3))
    out = _result(c, node, "updated")
    if step.onto is not None:
        return [f"layout::update_in_place(m, {index}, {part}, {out})?;"]
    return [f"layout::update(m, {x}, {index}, {part}, {out})?;"]


def _scatter(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Scatter)
    c.use("scatter", "kernels::ops::moving::scatter::Reduction")
    x, indices, updates = (node.given(i) for i in range(3))
    lead, depth = node.op.batch_dims, indices.shape[-1]
    assert isinstance(depth, int)
    groups = c.product(x.shape[:lead])
    limits = c.dims(x.shape[lead : lead + depth])
    how = f"(Reduction::{str(node.op.kind).capitalize()}, {str(node.op.skip).lower()})"
    operands = ", ".join(c.source(v) for v in (x, indices, updates))
    out = _result(c, node, "scattered")
    return [f"scatter::scatter(m, {how}, ({groups}, {limits}), ({operands}), {out})?;"]


def _loop(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Loop)
    c.use("layout")
    turn, *carried = (port.value for port in node.op.body.inputs)
    slots = [c.name_slot(v, *wishes(v.name or node.layer, "carried")) for v in carried]
    c.carried.update(zip(node.outputs, carried, strict=True))
    lines = [
        f"layout::copy(m, {c.source(start)}, {slot})?;"
        for start, slot in zip(node.present, slots, strict=True)
    ]
    counted = c.plan.places[turn].elements > 0
    inner = [f"layout::set(m, turn, {c.name_slot(turn, 'turn')})?;"] if counted else []
    for part in step.body:
        inner += OPS[type(part.node.op)](c, part)
    for port, value, slot in zip(node.op.body.outputs, carried, slots, strict=True):
        if c.plan.root(port.value) is not value:
            inner.append(f"layout::copy(m, {c.source(port.value)}, {slot})?;")
    if node.op.going is not None:
        inner.insert(0, f"if !layout::is_set(m, {slots[node.op.going]})? {{ break; }}")
    trips = f"0..{node.op.trips}"
    if isinstance(node.op.trips, ir.Batch):
        trips = f"(0..i32::MAX).take({c.dim(node.op.trips)})"
    turns = f"for {'turn' if counted else '_'} in {trips}"
    # One statement, which nothing takes apart.
    return [*lines, "\n".join([f"{turns} {{", *inner, "}"])]


OPS: Mapping[type[object], Emit] = {
    **LAYERS,
    **SYSTEMS,
    ir.ArgExtreme: _arg,
    ir.Binary: _binary,
    ir.BroadcastTo: _broadcast,
    ir.Cast: _cast,
    ir.Compare: _compare,
    ir.Concat: _concat,
    ir.Cumulative: _cumulative,
    ir.Gather: _gather,
    ir.Loop: _loop,
    ir.MatMul: _mat_mul,
    ir.OneHot: _one_hot,
    ir.Pad: _pad,
    ir.Pool: _pool,
    ir.Reduce: _reduce,
    ir.Resize: _resize,
    ir.ScaleShift: _scale_shift,
    ir.Scatter: _scatter,
    ir.Select: _select,
    ir.Slice: _slice,
    ir.Softmax: _softmax,
    ir.Suppress: _suppress,
    ir.Tile: _tile,
    ir.TopK: _top_k,
    ir.Transpose: _transpose,
    ir.Unary: _unary,
    ir.Update: _update,
    ir.WholeProduct: _whole_product,
}
