"""Ops that become layers: a field with weights, and a line that runs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from converters.tf import ir
from converters.tf.emit.context import Context
from converters.tf.emit.functions import activation_words, float_literal
from converters.tf.emit.names import wishes
from converters.tf.ir.ops.conv import is_depthwise, is_pointwise_sum
from converters.tf.plan.arena import Step

Emit = Callable[[Context, Step], list[str]]


def _shapes(node: ir.Node, extra: str = "") -> str:
    text = f"{ir.shape_text(node.input.shape)} -> {ir.shape_text(node.outputs[0].shape)}"
    return f"{text}, {extra}" if extra else text


def weight_path(node: ir.Node, index: int) -> str:
    """Returns the path that a weight's owner has, for a field's name.

    Args:
        node: The node.
        index: Which operand the weight is.
    """
    value = node.operand(index)
    owner = value.name.rpartition("/")[0] if value is not None else ""
    return owner or node.layer


def _result(c: Context, node: ir.Node, name: str) -> str:
    return c.name_slot(node.outputs[0], name, *wishes(node.outputs[0].name, name))


def _dense_field(c: Context, node: ir.Node) -> str:
    """Returns the name of a product's field, made on its first use."""
    assert isinstance(node.op, ir.Dense)
    kernel = node.operand(1)
    assert kernel is not None
    bias = node.operand(2)
    k, n = kernel.shape
    activation = c.activation(node.op.activation)
    value = (
        f"Dense::new(@name, w, ({c.tensor(kernel)}, [{k}, {n}]), "
        f"{c.optional_tensor(bias)}, {activation}, p)?"
    )
    doc = _shapes(node, activation_words(node.op.activation))
    key = (node.op, kernel, bias)
    return c.layer(node, "dense::Dense", weight_path(node, 1), value, doc, key)


def _dense(c: Context, step: Step) -> list[str]:
    node = step.node
    name = _dense_field(c, node)
    out = _result(c, node, name)
    residual = node.operand(3)
    x = c.source(node.input)
    if residual is not None:
        lines = []
        if step.onto is None:
            c.use("layout")
            lines.append(f"layout::copy(m, {c.source(residual)}, {out})?;")
        return [*lines, _onto(c, step, name, x, out)]
    if step.scratch.elements:
        return [f"self.{name}.run_with(m, {x}, {out}, {c.scratch(step)})?;"]
    return [f"self.{name}.run(m, {x}, {out})?;"]


def _scaled_dense(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.ScaledDense)
    kernel, bias, residual, scale, shift = (node.operand(i) for i in range(1, 6))
    assert kernel is not None and scale is not None
    *_, k, n = _numbers(kernel.shape)
    value = (
        f"Dense::new(@name, w, ({c.tensor(kernel)}, [{k}, {n}]), "
        f"{c.optional_tensor(bias)}, {c.activation(node.op.activation)}, p)?"
    )
    doc = _shapes(node, activation_words(node.op.activation))
    key = (ir.Dense(node.op.activation), kernel, bias)
    name = c.layer(node, "dense::Dense", weight_path(node, 1), value, doc, key)
    out = _result(c, node, name)
    c.use("dense::Scaled")
    x = f"Scaled::by({c.source(node.input)}, {c.source(scale)})"
    if shift is not None:
        x += f".plus({c.tensor(shift)})"
    if node.op.bounds is not None:
        x += f".within({c.activation(node.op.bounds)})"
    if residual is None:
        return [f"self.{name}.run_scaled(m, {x}, {out})?;"]
    lines = []
    if step.onto is None:
        c.use("layout")
        lines.append(f"layout::copy(m, {c.source(residual)}, {out})?;")
    return [*lines, f"self.{name}.run_scaled_onto(m, {x}, {out})?;"]


def _onto(c: Context, step: Step, name: str, x: str, out: str) -> str:
    if step.scratch.elements:
        return f"self.{name}.run_onto_with(m, {x}, {out}, {c.scratch(step)})?;"
    return f"self.{name}.run_onto(m, {x}, {out})?;"


def axis(c: Context, size: int, taps: int, stride: int, dilation: int, pad: tuple[int, int]) -> str:
    """Returns one axis of a window: how many elements, how many taps, and how they move."""
    c.use("conv::Axis")
    if (size, taps, stride, dilation, pad) == (1, 1, 1, 1, (0, 0)):
        return "Axis::UNIT"
    text = f"Axis::new({size}, {taps})"
    if stride != 1:
        text += f".stride({stride})"
    if dilation != 1:
        text += f".dilation({dilation})"
    if pad != (0, 0):
        text += f".padding({pad[0]}, {pad[1]})"
    return text


def _numbers(shape: ir.Shape) -> list[int]:
    return [d.scale if isinstance(d, ir.Batch) else d for d in shape]


def _geometry(
    c: Context,
    op: ir.Conv | ir.ConvTranspose,
    image: ir.Value,
    taps: list[int],
    ends: tuple[int, int],
) -> str:
    """Returns the sizes of a convolution over `image`, with `ends` channels at both sides."""
    c.use("conv::Geometry")
    spatial = _numbers(image.shape)[1:-1]
    axes = [
        axis(c, *numbers)
        for numbers in zip(spatial, taps, op.strides, op.dilations, op.padding, strict=True)
    ]
    channels = f"{ends[0]}, {ends[1]}"
    if len(axes) == 1:
        text = f"Geometry::line({axes[0]}, {channels})"
    elif axes[0] == axes[1]:
        text = f"Geometry::square({axes[0]}, {channels})"
    else:
        text = f"Geometry::new({axes[0]}, {axes[1]}, {channels})"
    return f"&{text}" if op.groups == 1 else f"&{text}.groups({op.groups})"


def _conv(c: Context, step: Step) -> list[str]:
    node = step.node
    residual = node.operand(3)
    if is_pointwise_sum(node):
        return _pointwise(c, step)
    name = _conv_field(c, node)
    x, out = c.source(node.input), _result(c, node, name)
    if residual is not None:
        scratch = c.scratch(step)
        return [f"self.{name}.run_add(m, {x}, {c.source(residual)}, {out}, {scratch})?;"]
    if step.scratch.elements:
        return [f"self.{name}.run_with(m, {x}, {out}, {c.scratch(step)})?;"]
    return [f"self.{name}.run(m, {x}, {out})?;"]


def _chain(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Chain)
    if isinstance(node.op.links[0].op, ir.Dense):
        first, second = (_dense_field(c, link) for link in node.op.links)
        ends = f"{c.source(node.input)}, {_result(c, node, second)}"
        return [f"self.{first}.run_then(m, &self.{second}, {ends}, {c.scratch(step)})?;"]
    c.use("chain")
    names = [_conv_field(c, link) for link in node.op.links]
    layers = ", ".join(f"&self.{name}" for name in names)
    ends = f"{c.source(node.input)}, {_result(c, node, names[-1])}"
    return [f"chain::run(m, &[{layers}], {ends}, {c.scratch(step)})?;"]


def _conv_field(c: Context, node: ir.Node) -> str:
    """Returns the name of a convolution's field, made on its first use."""
    assert isinstance(node.op, ir.Conv)
    kernel, bias = node.operand(1), node.operand(2)
    assert kernel is not None
    *taps, _, outputs = _numbers(kernel.shape)
    inputs = _numbers(node.input.shape)[-1]
    geometry = _geometry(c, node.op, node.input, taps, (inputs, outputs))
    weights = f"{c.tensor(kernel)}, {c.optional_tensor(bias)}, {c.activation(node.op.activation)}"
    doc = _shapes(node, _conv_words(node.op, taps, is_depthwise(node)))
    key = (node.op, kernel, bias, tuple(_numbers(node.input.shape)))
    path = weight_path(node, 1)
    if is_depthwise(node) and node.operand(3) is None:
        value = f"DepthwiseConv::new(@name, {geometry}, {weights})?"
        return c.layer(node, "conv::DepthwiseConv", path, value, doc, key)
    value = f"Conv::new(@name, w, {geometry}, {weights}, p)?"
    return c.layer(node, "conv::Conv", path, value, doc, key)


def _conv_words(op: ir.Conv | ir.ConvTranspose, taps: list[int], depthwise: bool) -> str:
    """Returns a convolution in words: `3x3/2 depthwise, relu6`."""
    words = "x".join(str(t) for t in taps) if len(taps) > 1 else f"width {taps[0]}"
    if any(s != 1 for s in op.strides):
        words += f"/{'x'.join(str(s) for s in dict.fromkeys(op.strides))}"
    if depthwise:
        words += " depthwise"
    if any(d != 1 for d in op.dilations):
        words += f", dilated by {'x'.join(str(d) for d in dict.fromkeys(op.dilations))}"
    if op.groups != 1 and not depthwise:
        words += f", {op.groups} groups"
    activation = activation_words(op.activation)
    return f"{words}, {activation}" if activation else words


def _pointwise(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Conv)
    kernel, bias, residual = node.operand(1), node.operand(2), node.operand(3)
    assert kernel is not None and residual is not None
    *_, k, n = _numbers(kernel.shape)
    value = (
        f"Dense::new(@name, w, ({c.tensor(kernel)}, [{k}, {n}]), "
        f"{c.optional_tensor(bias)}, {c.activation(node.op.activation)}, p)?"
    )
    doc = _shapes(node, _conv_words(node.op, [1, 1], False))
    key = (node.op, kernel, bias)
    name = c.layer(node, "dense::Dense", weight_path(node, 1), value, doc, key)
    out = _result(c, node, name)
    lines = []
    if step.onto is None:
        c.use("layout")
        lines.append(f"layout::copy(m, {c.source(residual)}, {out})?;")
    return [*lines, _onto(c, step, name, c.source(node.input), out)]


def _conv_transpose(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.ConvTranspose)
    kernel, bias = node.operand(1), node.operand(2)
    assert kernel is not None
    *taps, _, inputs = _numbers(kernel.shape)
    outputs = _numbers(node.output.shape)[-1]
    geometry = _geometry(c, node.op, node.output, taps, (outputs, inputs))
    value = (
        f"ConvTranspose::new(@name, w, {geometry}, {c.tensor(kernel)}, "
        f"{c.optional_tensor(bias)}, {c.activation(node.op.activation)}, p)?"
    )
    words = _conv_words(node.op, taps, False)
    key = (node.op, kernel, bias, tuple(_numbers(node.output.shape)))
    path = weight_path(node, 1)
    name = c.layer(node, "conv::ConvTranspose", path, value, _shapes(node, words), key)
    out = _result(c, node, name)
    x = c.source(node.input)
    if step.scratch.elements:
        return [f"self.{name}.run_with(m, {x}, {out}, {c.scratch(step)})?;"]
    return [f"self.{name}.run(m, {x}, {out})?;"]


def _norm(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Norm)
    c.use("norm::Kind")
    scale, shift = node.operand(1), node.operand(2)
    width = _numbers(node.input.shape)[-1]
    value = (
        f"Norm {{ name: @name, kind: Kind::{str(node.op.kind).capitalize()}, width: {width}, "
        f"scale: {c.optional_tensor(scale)}, shift: {c.optional_tensor(shift)}, "
        f"epsilon: {float_literal(node.op.epsilon)} }}"
    )
    key = (node.op, scale, shift, width)
    name = c.layer(node, "norm::Norm", weight_path(node, 1), value, _shapes(node), key)
    return [f"self.{name}.run(m, {c.source(node.input)}, {_result(c, node, name)})?;"]


def _group_norm(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.GroupNorm)
    scale, shift = node.operand(1), node.operand(2)
    _, *positions, channels = _numbers(node.input.shape)
    sizes = f"({math.prod(positions)}, {channels}, {node.op.groups})"
    value = (
        f"GroupNorm {{ name: @name, sizes: {sizes}, scale: {c.optional_tensor(scale)}, "
        f"shift: {c.optional_tensor(shift)}, epsilon: {float_literal(node.op.epsilon)} }}"
    )
    key = (node.op, scale, shift, sizes)
    name = c.layer(node, "norm::GroupNorm", weight_path(node, 1), value, _shapes(node), key)
    return [f"self.{name}.run(m, {c.source(node.input)}, {_result(c, node, name)})?;"]


def is_embedding(c_root: Callable[[ir.Value], ir.Value], node: ir.Node) -> bool:
    """Returns whether a gather looks up rows of a constant table of f32."""
    op = node.op
    if not isinstance(op, ir.Gather) or op.axis != 0 or op.batch_dims != 0:
        return False
    table = node.input
    return table.data is not None and table.dtype is ir.DType.F32 and table.rank == 2


def embedding(c: Context, step: Step) -> list[str]:
    """Emits a lookup in a table."""
    node = step.node
    indices = node.operand(1)
    assert indices is not None
    rows, width = node.input.shape
    value = f"Embedding {{ name: @name, table: {c.tensor(node.input)}, size: [{rows}, {width}] }}"
    doc = f"{ir.shape_text(indices.shape)} -> {ir.shape_text(node.output.shape)}"
    key = (node.op, node.input)
    name = c.layer(node, "gather::Embedding", weight_path(node, 0), value, doc, key)
    return [f"self.{name}.run(m, {c.source(indices)}, {_result(c, node, name)})?;"]


def _attention(c: Context, step: Step) -> list[str]:
    node = step.node
    assert isinstance(node.op, ir.Attention)
    q, k, v, mask = (node.operand(i) for i in range(4))
    assert q is not None and k is not None and v is not None
    _, heads, queries, depth = _numbers(q.shape)
    _, _, keys, width = _numbers(v.shape)
    if node.op.beside:
        heads, queries, keys = queries, heads, _numbers(v.shape)[1]
    value = (
        f"Attention {{ name: @name, heads: {heads}, queries: {queries}, keys: {keys}, "
        f"depth: {depth}, width: {width}, scale: {float_literal(node.op.scale)}, "
        f"causal: {str(node.op.causal).lower()} }}"
    )
    key = (node.op, heads, queries, keys, depth, width)
    path = f"{node.layer}/attention" if node.layer else "attention"
    name = c.layer(node, "attention::Attention", path, value, _shapes(node), key)
    out = _result(c, node, name)
    tail = f"{out}, {c.scratch(step)})?;"
    if node.op.beside:
        c.use("attention::Lines")
        lines = ", ".join(_lines(c, side) for side in (q, k, v))
        return [f"self.{name}.run_beside(m, [{lines}], {tail}"]
    operands = c.sources([q, k, v])
    if mask is None:
        return [f"self.{name}.run(m, {operands}, {tail}"]
    shape = (1,) * (4 - mask.rank) + mask.shape
    dims = c.dims(shape).removeprefix("&")
    return [f"self.{name}.run_masked(m, {operands}, ({c.source(mask)}.into(), {dims}), {tail}"]


def _lines(c: Context, side: ir.Value) -> str:
    """Returns the lines of heads that lie side by side, from a column on."""
    *_, heads, depth = _numbers(side.shape)
    first, row = c.plan.columns.get(side, (0, heads * depth))
    whole = c.plan.root(side) if side in c.plan.columns else side
    return f"Lines::of({c.source(whole)}, {first}, {row})"


def _order(c: Context, node: ir.Node, units: int, reverse: bool, zero_masked: bool) -> str:
    c.use("recurrent::Order")
    _, steps, inputs = _numbers(node.input.shape)
    text = f"Order::new({steps}, {inputs}, {units})"
    return text + (".reversed()" if reverse else "") + (".zero_masked()" if zero_masked else "")


def _operands(c: Context, node: ir.Node, hidden: int, cell: int | None, mask: int) -> str:
    c.use("recurrent::Operands")
    text = f"Operands::of({c.source(node.input)})"
    for method, index in (("hidden", hidden), ("cell", cell), ("mask", mask)):
        value = None if index is None else node.operand(index)
        if value is not None:
            text += f".{method}({c.source(value)})"
    return text


def _states(c: Context, node: ir.Node, name: str, words: tuple[str, ...]) -> list[str]:
    names = []
    for value, word in zip(node.outputs, words, strict=True):
        base = f"{name}_{word}"
        names.append(c.name_slot(value, base, base))
    return names


def _lstm(c: Context, step: Step) -> list[str]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Lstm)
    kernel, recurrent, bias = (node.operand(i) for i in (1, 2, 3))
    assert recurrent is not None
    units = _numbers(recurrent.shape)[0]
    order = _order(c, node, units, op.reverse, op.zero_masked)
    value = (
        f"Lstm::new(@name, w, {order}, [{c.tensor(kernel)}, {c.tensor(recurrent)}], "
        f"{c.optional_tensor(bias)}, p)?"
    )
    key = (op, kernel, recurrent, bias, order)
    name = c.layer(
        node, "recurrent::Lstm", weight_path(node, 1), value, _shapes(node, f"{units} units"), key
    )
    operands = _operands(c, node, 4, 5, 6)
    sequence, hidden, cell = _states(c, node, name, ("sequence", "hidden", "cell"))
    scratch = c.scratch(step)
    return [f"self.{name}.run(m, {operands}, {sequence}, [{hidden}, {cell}], {scratch})?;"]


def _gru(c: Context, step: Step) -> list[str]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.Gru)
    kernel, recurrent, bias, again = (node.operand(i) for i in (1, 2, 3, 4))
    assert recurrent is not None
    units = _numbers(recurrent.shape)[0]
    order = _order(c, node, units, op.reverse, op.zero_masked)
    value = (
        f"Gru::new(@name, w, {order}, [{c.tensor(kernel)}, {c.tensor(recurrent)}], "
        f"[{c.optional_tensor(bias)}, {c.optional_tensor(again)}], "
        f"{str(op.reset_after).lower()}, p)?"
    )
    key = (op, kernel, recurrent, bias, again, order)
    name = c.layer(
        node, "recurrent::Gru", weight_path(node, 1), value, _shapes(node, f"{units} units"), key
    )
    operands = _operands(c, node, 5, None, 6)
    sequence, hidden = _states(c, node, name, ("sequence", "hidden"))
    return [f"self.{name}.run(m, {operands}, {sequence}, {hidden}, {c.scratch(step)})?;"]


def _simple_rnn(c: Context, step: Step) -> list[str]:
    node = step.node
    op = node.op
    assert isinstance(op, ir.SimpleRnn)
    kernel, recurrent, bias = (node.operand(i) for i in (1, 2, 3))
    assert recurrent is not None
    units = _numbers(recurrent.shape)[0]
    order = _order(c, node, units, op.reverse, op.zero_masked)
    value = (
        f"SimpleRnn::new(@name, w, {order}, [{c.tensor(kernel)}, {c.tensor(recurrent)}], "
        f"{c.optional_tensor(bias)}, {c.activation(op.activation)}, p)?"
    )
    key = (op, kernel, recurrent, bias, order)
    name = c.layer(
        node,
        "recurrent::SimpleRnn",
        weight_path(node, 1),
        value,
        _shapes(node, f"{units} units"),
        key,
    )
    operands = _operands(c, node, 4, None, 5)
    sequence, hidden = _states(c, node, name, ("sequence", "hidden"))
    return [f"self.{name}.run(m, {operands}, {sequence}, {hidden}, {c.scratch(step)})?;"]


LAYERS: Mapping[type[object], Emit] = {
    ir.Attention: _attention,
    ir.Chain: _chain,
    ir.Conv: _conv,
    ir.ConvTranspose: _conv_transpose,
    ir.Dense: _dense,
    ir.GroupNorm: _group_norm,
    ir.Gru: _gru,
    ir.Lstm: _lstm,
    ir.Norm: _norm,
    ir.ScaledDense: _scaled_dense,
    ir.SimpleRnn: _simple_rnn,
}


def packed_constants(graph: ir.Graph) -> set[ir.Value]:
    """Returns the constants that are only packed."""
    packed: set[ir.Value] = set()
    read: set[ir.Value] = {port.value for port in graph.outputs}
    for node in graph.all_nodes():
        # All that a chain reads, its links read.
        if isinstance(node.op, ir.Chain):
            continue
        places = () if is_depthwise(node) else node.op.packed
        for index, value in enumerate(node.inputs):
            if value is not None and value.data is not None:
                (packed if index in places else read).add(value)
    return packed - read
