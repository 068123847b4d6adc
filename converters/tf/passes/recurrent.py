"""Rules that recognise LSTM, GRU and simple recurrent layers in loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from converters.tf import ir
from converters.tf.ir import Fn
from converters.tf.ir.build import elements
from converters.tf.passes.patterns import Const, add, find, fn, is_number, mul, sub
from converters.tf.passes.rewrite import Match, Rules


@dataclass(frozen=True)
class _Product:
    """`x @ kernel + bias` in a body."""

    x: ir.Value
    kernel: ir.Value
    bias: ir.Value | None


@dataclass
class _Cell:
    """What a body computes.

    Attributes:
        hidden: Place of the hidden state among the carried values.
        output: The new hidden state, before the mask.
        kernel: Weights of the input.
        recurrent: Weights of the state.
        bias: Bias of both, or of the input.
        recurrent_bias: Bias of the state alone.
        x: The row that is read.
        op: The op, without direction and masking.
        states: Places of the states and their new values, before the mask.
    """

    hidden: int
    output: ir.Value
    kernel: ir.Value
    recurrent: ir.Value
    bias: ir.Value | None
    recurrent_bias: ir.Value | None
    x: ir.Value
    op: ir.Lstm | ir.Gru | ir.SimpleRnn
    states: dict[int, ir.Value] = field(default_factory=dict)


class _Body:
    """A loop's body with what its inputs and outputs are."""

    def __init__(self, outer: Match, node: ir.Node, loop: ir.Loop) -> None:
        self.loop = loop
        self.zeros = [is_zero(outer, v) for v in node.present]
        self.match = Match.whole(loop.body)
        self.turn = loop.body.inputs[0].value
        self.ins = [p.value for p in loop.body.inputs[1:]]
        self.outs = [p.value for p in loop.body.outputs]
        self.place = {v: i for i, v in enumerate(self.ins)}
        self.same = [a is b for a, b in zip(self.ins, self.outs, strict=True)]

    def read(self, value: ir.Value) -> int | None:
        """Returns the place of the carried sequence whose current row a value is."""
        node = self.match.made_by(value, ir.Gather)
        if node is None:
            return None
        assert isinstance(node.op, ir.Gather)
        params, index = node.present
        place = self.place.get(params)
        if index is not self.turn or node.op.axis or node.op.batch_dims or place is None:
            return None
        return place if self.same[place] else None

    def stays_zero(self, value: ir.Value) -> bool:
        """Returns whether a value is carried, 0 and never changed."""
        place = self.place.get(value)
        return place is not None and self.same[place] and self.zeros[place]

    def product(self, value: ir.Value) -> _Product | None:
        node = self.match.made_by(value, ir.Dense)
        if node is None or node.op != ir.Dense() or node.operand(3) is not None:
            return None
        kernel = node.operand(1)
        return None if kernel is None else _Product(node.input, kernel, node.operand(2))

    def unmasked(self, value: ir.Value) -> tuple[ir.Value | None, ir.Value, ir.Value | None]:
        """Returns mask, new and old of a masked value."""
        node = self.match.made_by(value, ir.Select)
        if node is None:
            return None, value, None
        mask, new, old = node.present
        return mask, new, old


def _gates(body: _Body, values: Sequence[ir.Value]) -> ir.Value | None:
    """Returns the matrix whose equal parts, in order, the values are."""
    source: ir.Value | None = None
    width = values[0].shape[-1]
    if not isinstance(width, int):
        return None
    for index, value in enumerate(values):
        node = body.match.made_by(value, ir.Slice)
        if node is None or node.op != ir.Slice((0, index * width), (1, 1)):
            return None
        source = node.input if source is None else source
        if node.input is not source:
            return None
    if source is None or source.shape[-1] != width * len(values):
        return None
    return source


def _lstm(body: _Body, place: int) -> _Cell | None:
    m = body.match
    _, new, _ = body.unmasked(body.outs[place])
    node = m.producer(new)
    outer = mul(fn(Fn.SIGMOID, "o"), fn(Fn.TANH, "cell"))
    found = None if node is None else find(m, outer, node)
    if found is None:
        return None
    cell = m.producer(found["cell"])
    update = mul(fn(Fn.SIGMOID, "i"), fn(Fn.TANH, "g"))
    inner = None if cell is None else find(m, add(mul(fn(Fn.SIGMOID, "f"), "c"), update), cell)
    if inner is None:
        return None
    values = [inner["i"], inner["f"], inner["g"], found["o"]]
    gates = _gates(body, values)
    at = body.place.get(inner["c"])
    hidden = body.ins[place]
    parts = _apart(body, values, hidden) if gates is None else _sum(body, gates, hidden)
    if parts is None or at is None:
        return None
    x, h, bias = parts
    states = {place: new, at: found["cell"]}
    return _Cell(place, new, x.kernel, h.kernel, bias, None, x.x, ir.Lstm(), states)


def _sum(
    body: _Body, value: ir.Value, hidden: ir.Value
) -> tuple[_Product, _Product, ir.Value | None] | None:
    """Returns the parts of `x @ kernel + hidden @ recurrent + bias`."""
    m = body.match
    node = m.producer(value)
    if node is None:
        return None
    found = find(m, add(add("a", "b"), Const("bias")), node) or find(m, add("a", "b"), node)
    if found is None:
        return None
    a, b = body.product(found["a"]), body.product(found["b"])
    if a is None or b is None:
        return None
    if a.x is hidden:
        a, b = b, a
    if b.x is not hidden:
        return None
    terms = [t.data for t in (found.get("bias"), a.bias, b.bias) if t is not None]
    if any(t is None for t in terms):
        return None
    arrays = [t.reshape(-1) for t in terms if t is not None]
    if not arrays:
        return a, b, None
    names = [t.name for t in (found.get("bias"), a.bias, b.bias) if t is not None]
    width = elements(a.kernel.shape[-1:])
    total = np.zeros(width)
    for array in arrays:
        total = total + array
    return a, b, ir.constant(total.astype(np.float32), names[0])


def _apart(
    body: _Body, values: Sequence[ir.Value], hidden: ir.Value
) -> tuple[_Product, _Product, ir.Value | None] | None:
    """Returns the same for gates that are computed one by one, as with recurrent dropout."""
    parts = [_sum(body, value, hidden) for value in values]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or len({x.x for x, _, _ in found}) != 1:
        return None
    x = _beside([x for x, _, _ in found])
    h = _beside([h for _, h, _ in found])
    biases = [bias.data for _, _, bias in found if bias is not None]
    if x is None or h is None or len(biases) not in (0, len(found)):
        return None
    known = [bias for bias in biases if bias is not None]
    names = [bias.name for _, _, bias in found if bias is not None]
    return x, h, ir.constant(np.concatenate(known), names[0]) if known else None


def _beside(products: Sequence[_Product]) -> _Product | None:
    """Returns one product whose columns are those of several."""
    kernels = [product.kernel.data for product in products]
    known = [kernel for kernel in kernels if kernel is not None]
    if len(known) < len(kernels) or len({kernel.shape for kernel in known}) != 1:
        return None
    joined = ir.constant(np.concatenate(known, axis=1), products[0].kernel.name)
    return _Product(products[0].x, joined, None)


def _columns(body: _Body, values: Sequence[ir.Value]) -> _Product | None:
    """Returns the product whose columns the values are, in order; it may be one for each."""
    source = _gates(body, values)
    if source is not None:
        return body.product(source)
    products = [_with_bias(body, value) for value in values]
    found = [product for product in products if product is not None]
    same = len(found) == len(products) and len({product.x for product in found}) == 1
    joined = _beside(found) if same else None
    biases = [product.bias for product in found if product.bias is not None]
    known = [bias.data.reshape(-1) for bias in biases if bias.data is not None]
    if joined is None or len(known) not in (0, len(found)):
        return None
    bias = ir.constant(np.concatenate(known), biases[0].name) if known else None
    return _Product(joined.x, joined.kernel, bias)


def _with_bias(body: _Body, value: ir.Value) -> _Product | None:
    product = body.product(value)
    node = body.match.producer(value)
    if product is not None or node is None:
        return product
    found = find(body.match, add("product", Const("bias")), node)
    product = None if found is None else body.product(found["product"])
    if found is None or product is None or product.bias is not None:
        return None
    return _Product(product.x, product.kernel, found["bias"])


def _gru(body: _Body, place: int) -> _Cell | None:
    m = body.match
    _, new, _ = body.unmasked(body.outs[place])
    node = m.producer(new)
    hidden = body.ins[place]
    z = fn(Fn.SIGMOID, add("xz", "hz"))
    pattern = add(mul(z, "h"), mul(sub(1.0, z), fn(Fn.TANH, add("xh", "rest"))))
    found = None if node is None else find(m, pattern, node)
    if found is None or found["h"] is not hidden:
        return None
    xz, hz = found["xz"], found["hz"]
    if _sliced_from(body, hz, hidden) is None:
        xz, hz = hz, xz
    for xh, rest in ((found["xh"], found["rest"]), (found["rest"], found["xh"])):
        cell = _reset_after(body, place, new, (xz, hz, xh, rest)) or _reset_before(
            body, place, new, (xz, hz, xh, rest)
        )
        if cell is not None:
            return cell
    return None


def _sliced_from(body: _Body, value: ir.Value, x: ir.Value) -> _Product | None:
    """Returns the product of `x` that a value is, or is a part of."""
    node = body.match.made_by(value, ir.Slice)
    product = _with_bias(body, value) if node is None else body.product(node.input)
    return product if product is not None and product.x is x else None


Parts = tuple[ir.Value, ir.Value, ir.Value, ir.Value]


def _reset_after(body: _Body, place: int, new: ir.Value, parts: Parts) -> _Cell | None:
    xz, hz, xh, rest = parts
    node = body.match.producer(rest)
    pattern = mul(fn(Fn.SIGMOID, add("a", "b")), "hh")
    found = None if node is None else find(body.match, pattern, node)
    if found is None:
        return None
    for xr, hr in ((found["a"], found["b"]), (found["b"], found["a"])):
        x, h = _columns(body, [xz, xr, xh]), _columns(body, [hz, hr, found["hh"]])
        if x is None or h is None or h.x is not body.ins[place]:
            continue
        op = ir.Gru(True)
        return _Cell(place, new, x.kernel, h.kernel, x.bias, h.bias, x.x, op, {place: new})
    return None


def _reset_before(body: _Body, place: int, new: ir.Value, parts: Parts) -> _Cell | None:
    xz, hz, xh, rest = parts
    candidate = body.product(rest)
    if candidate is None or candidate.bias is not None or candidate.kernel.data is None:
        return None
    node = body.match.producer(candidate.x)
    pattern = mul(fn(Fn.SIGMOID, add("a", "b")), "h")
    found = None if node is None else find(body.match, pattern, node)
    if found is None or found["h"] is not body.ins[place]:
        return None
    for xr, hr in ((found["a"], found["b"]), (found["b"], found["a"])):
        x, h = _columns(body, [xz, xr, xh]), _columns(body, [hz, hr])
        if x is None or h is None or h.x is not body.ins[place] or h.kernel.data is None:
            continue
        if h.bias is not None:
            continue
        joined = np.concatenate([h.kernel.data, candidate.kernel.data], axis=1)
        recurrent = ir.constant(joined, h.kernel.name)
        op = ir.Gru(False)
        return _Cell(place, new, x.kernel, recurrent, x.bias, None, x.x, op, {place: new})
    return None


def _simple(body: _Body, place: int) -> _Cell | None:
    _, new, _ = body.unmasked(body.outs[place])
    node = body.match.producer(new)
    if node is None:
        return None
    activation, value = None, new
    if isinstance(node.op, ir.Unary):
        activation, value = node.op.function, node.input
    parts = _sum(body, value, body.ins[place])
    if parts is None:
        return None
    x, h, bias = parts
    op = ir.SimpleRnn(activation)
    return _Cell(place, new, x.kernel, h.kernel, bias, None, x.x, op, {place: new})


@dataclass
class _Masking:
    """How masked rows are treated; `row` is the mask's row in the body."""

    row: ir.Value | None = None
    zero: bool = False


@dataclass
class _Roles:
    """What the carried values are: places of former outputs and of lists that are written."""

    former: list[int] = field(default_factory=list)
    lists: dict[int, bool] = field(default_factory=dict)  # whether only the last output is kept


def _roles(body: _Body, cell: _Cell) -> tuple[_Masking, _Roles] | None:
    masking, roles = _Masking(), _Roles()

    def masked(mask: ir.Value | None) -> bool:
        if masking.row is None:
            masking.row = mask
        return masking.row is mask

    _, _, old = body.unmasked(body.outs[cell.hidden])
    masking.row = body.unmasked(body.outs[cell.hidden])[0]
    if old is not None and old is not body.ins[cell.hidden]:
        return None
    for place, value in enumerate(body.outs):
        if body.same[place]:
            continue
        mask, new, old = body.unmasked(value)
        if place in cell.states:
            fits = new is cell.states[place] and old in (None, body.ins[place])
        elif body.match.made_by(value, ir.Update) is not None:
            fits = _list(body, cell, place, masking, roles)
            mask = masking.row
        else:
            fits = new is cell.output and old is body.ins[place]
            roles.former.append(place)
        if not fits or not masked(mask):
            return None
    return masking, roles


def _list(body: _Body, cell: _Cell, place: int, masking: _Masking, roles: _Roles) -> bool:
    update = body.match.made_by(body.outs[place], ir.Update)
    if update is None:
        return False
    target, index, item = update.present
    last = is_number(index, 0)
    if target is not body.ins[place] or not (last or index is body.turn):
        return False
    roles.lists[place] = last
    mask, new, old = body.unmasked(item)
    if new is not cell.output or mask is not masking.row:
        return False
    if old is not None:
        masking.zero = is_zero(body.match, old) or body.stays_zero(old)
        if not masking.zero and (old not in body.place or not _is_former(body, cell, old)):
            return False
    return True


def _is_former(body: _Body, cell: _Cell, old: ir.Value) -> bool:
    """Returns whether a carried value is the output of the turn before."""
    _, new, before = body.unmasked(body.outs[body.place[old]])
    return new is cell.output and before is old


def is_zero(m: Match, value: ir.Value) -> bool:
    """Returns whether all elements are 0, repeated or not."""
    node = m.made_by(value, ir.BroadcastTo)
    return is_number(value if node is None else node.input, 0)


def _sequence(m: Match, value: ir.Value) -> tuple[ir.Value, bool]:
    """Returns a carried sequence [T, batch, ...] with the batch first, and whether it is read back.

    The reversal is left out of it.
    """
    node = m.made_by(value, ir.Slice)
    reverse = False
    if node is not None:
        size = value.shape[0]
        assert not isinstance(size, ir.Batch)
        backwards = ir.Slice((size - 1, *(0,) * (value.rank - 1)), (-1, *(1,) * (value.rank - 1)))
        if node.op == backwards and node.input.shape == value.shape:
            value, reverse = node.input, True
    return m.build.transpose(value, [1, 0, *range(2, value.rank)]), reverse


def _recurrent(m: Match, node: ir.Node) -> Sequence[ir.Value] | None:
    assert isinstance(node.op, ir.Loop)
    if node.op.going is not None or isinstance(node.op.trips, ir.Batch):
        return None
    body = _Body(m, node, node.op)
    for place, value in enumerate(body.ins):
        if body.same[place] or value.dtype is not ir.DType.F32 or value.rank != 2:
            continue
        for recognise in (_lstm, _gru, _simple):
            cell = recognise(body, place)
            if cell is None:
                continue
            result = _replacement(m, node, body, cell)
            if result is not None:
                return result
    return None


def _replacement(m: Match, node: ir.Node, body: _Body, cell: _Cell) -> Sequence[ir.Value] | None:
    found = _roles(body, cell)
    source = body.read(cell.x)
    if found is None or source is None:
        return None
    masking, roles = found
    if any(not body.zeros[p] for p in roles.former):
        return None
    x_stacked = node.present[source]
    if x_stacked.shape[0] != body.loop.trips or x_stacked.rank != 3:
        return None
    mask: ir.Value | None = None
    mask_place = None if masking.row is None else _mask_place(body, masking.row)
    if masking.row is not None and mask_place is None:
        return None
    x, reverse = _sequence(m, x_stacked)
    if mask_place is not None:
        stacked = node.present[mask_place]
        mask, back = _sequence(m, stacked)
        if back != reverse:
            mask = m.build.transpose(stacked, [1, 0, *range(2, stacked.rank)])
            x, reverse = m.build.transpose(x_stacked, [1, 0, 2]), False
        mask = m.build.reshape(mask, mask.shape[:2])
    starts = [None if body.zeros[p] else node.present[p] for p in cell.states]
    outputs = _emit(m, node, body, cell, (x, mask, starts), (reverse, masking.zero))
    return _results(m, node, cell, roles, outputs, mask is not None)


def _mask_place(body: _Body, row: ir.Value) -> int | None:
    """Returns the place of the mask [T, batch, 1] or [T, batch] whose row is given."""
    node = body.match.producer(row)
    while node is not None and isinstance(node.op, ir.BroadcastTo | ir.Reshape):
        row = node.input
        node = body.match.producer(row)
    place = body.read(row)
    if place is None or row.dtype is not ir.DType.BOOL:
        return None
    return place if body.ins[place].shape[2:] in ((), (1,)) else None


def _emit(
    m: Match,
    node: ir.Node,
    body: _Body,
    cell: _Cell,
    operands: tuple[ir.Value, ir.Value | None, list[ir.Value | None]],
    how: tuple[bool, bool],
) -> tuple[ir.Value, ...]:
    x, mask, starts = operands
    state = body.ins[cell.hidden].shape
    sequence = (state[0], body.loop.trips, state[1])
    biases: list[ir.Value | None] = [cell.bias]
    op: ir.Op
    if isinstance(cell.op, ir.Lstm):
        op = ir.Lstm(*how)
    elif isinstance(cell.op, ir.Gru):
        op = ir.Gru(cell.op.reset_after, *how)
        biases.append(cell.recurrent_bias)
    else:
        op = ir.SimpleRnn(cell.op.activation, *how)
    inputs = [x, cell.kernel, cell.recurrent, *biases, *starts, mask]
    shapes = [sequence, *(state for _ in cell.states)]
    return m.build.emit_many(op, inputs, [(ir.DType.F32, s) for s in shapes])


def _results(
    m: Match,
    node: ir.Node,
    cell: _Cell,
    roles: _Roles,
    outputs: tuple[ir.Value, ...],
    masked: bool,
) -> Sequence[ir.Value]:
    sequence, *states = outputs
    trips = sequence.shape[1]
    assert not isinstance(trips, ir.Batch)
    last = dict(zip(cell.states, states, strict=True))
    results = []
    for place, value in enumerate(node.outputs):
        if place in last:
            results.append(last[place])
        elif place in roles.lists and not roles.lists[place]:
            results.append(m.build.transpose(sequence, [1, 0, 2]))
        elif place in roles.lists or place in roles.former:
            final = m.build.part(sequence, 1, trips - 1, 1) if masked else last[cell.hidden]
            results.append(m.build.reshape(final, value.shape))
        else:
            results.append(node.present[place])
    return results


RULES: Rules = {ir.Loop: [_recurrent]}
