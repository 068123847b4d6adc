"""Graphs that hold every op: each op's result is an output of its graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from converters.tf import ir
from converters.tf.passes.loops import with_own_results

F32, I32, I64, BOOL = ir.DType.F32, ir.DType.I32, ir.DType.I64, ir.DType.BOOL
B = ir.Batch()


@dataclass
class Sketch:
    """A graph in the making.

    Attributes:
        name: Its name.
    """

    name: str
    inputs: list[ir.Port] = field(default_factory=list)
    outputs: list[ir.Port] = field(default_factory=list)
    nodes: list[ir.Node] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def input(self, name: str, shape: ir.Shape, dtype: ir.DType = F32) -> ir.Value:
        """Adds an input."""
        value = ir.Value(dtype, shape, name=name)
        self.inputs.append(ir.Port(name, value))
        return value

    def weight(self, *shape: int, name: str = "") -> ir.Value:
        """Returns a random constant."""
        data = self.random.normal(0, 0.5, shape).astype(np.float32)
        return ir.constant(data, name or f"w{len(self.nodes)}/{'x'.join(map(str, shape))}")

    def op(
        self,
        op: ir.Op,
        operands: Sequence[ir.Value | None],
        shape: ir.Shape,
        dtype: ir.DType = F32,
        name: str = "",
    ) -> ir.Value:
        """Adds a node whose result is an output."""
        (value,) = self.ops(op, operands, [shape], dtype, name)
        return value

    def ops(
        self,
        op: ir.Op,
        operands: Sequence[ir.Value | None],
        shapes: Sequence[ir.Shape],
        dtype: ir.DType = F32,
        name: str = "",
    ) -> list[ir.Value]:
        """Adds a node whose results are outputs."""
        layer = name or f"{type(op).__name__.lower()}_{len(self.nodes)}"
        values = [ir.Value(dtype, shape) for shape in shapes]
        self.nodes.append(ir.Node(op, tuple(operands), tuple(values), layer))
        for i, value in enumerate(values):
            self.outputs.append(ir.Port(f"{layer}_{i}" if len(values) > 1 else layer, value))
        return values

    def graph(self) -> ir.Graph:
        """Returns the graph."""
        return ir.Graph(self.name, tuple(self.inputs), tuple(self.outputs), tuple(self.nodes))


_PARAMS: dict[ir.Fn, tuple[float, ...]] = {
    ir.Fn.CLAMP: (-0.5, 0.75),
    ir.Fn.LEAKY_RELU: (0.3,),
    ir.Fn.ELU: (1.5,),
    ir.Fn.CELU: (0.8,),
    ir.Fn.HARD_SHRINK: (0.5,),
    ir.Fn.SOFT_SHRINK: (0.5,),
    ir.Fn.SQUARE_PLUS: (4.0,),
    ir.Fn.THRESHOLD: (0.25, -1.0),
}
_BOOLS = frozenset([ir.Fn.IS_NAN, ir.Fn.IS_INF, ir.Fn.IS_FINITE])


def elementwise() -> ir.Graph:
    """Returns functions of one and two elements, comparisons, selections and conversions."""
    s = Sketch("elementwise")
    shape: ir.Shape = (B, 3, 5)
    x, y = s.input("x", shape), s.input("y", shape)
    row = s.input("type", (5,))
    i, flag = s.input("i", shape, I32), s.input("flag", shape, BOOL)
    row_of_numbers = ir.constant(np.array([-3, -1, 1, 2, 12], np.int32))
    for kind in ir.Fn:
        function = ir.Function(kind, _PARAMS.get(kind, ()))
        if kind is ir.Fn.LOGICAL_NOT:
            s.op(ir.Unary(function), [flag], shape, BOOL, str(kind))
        else:
            s.op(ir.Unary(function), [x], shape, BOOL if kind in _BOOLS else F32, str(kind))
    for two in ir.BinaryKind:
        if str(two).startswith("logical"):
            s.op(ir.Binary(two), [flag, flag], shape, BOOL, str(two))
        elif str(two).startswith("bit"):
            s.op(ir.Binary(two), [i, row_of_numbers], shape, I32, str(two))
        else:
            s.op(ir.Binary(two), [x, y], shape, F32, str(two))
    for relation in ir.CompareKind:
        s.op(ir.Compare(relation), [x, row], shape, BOOL, f"{relation}_row")
        s.op(
            ir.Compare(relation),
            [i, ir.constant(np.array(3, np.int32))],
            shape,
            BOOL,
            f"{relation}_i32",
        )
    for two in (ir.BinaryKind.ADD, ir.BinaryKind.SUB, ir.BinaryKind.MUL, ir.BinaryKind.MAX):
        s.op(ir.Binary(two), [i, i], shape, I32, f"{two}_i32")
    divisor = ir.constant(np.array([-3, -1, 1, 2, 5], np.int32))
    for two in (
        *(ir.BinaryKind.DIV, ir.BinaryKind.FLOOR_DIV),
        *(ir.BinaryKind.FLOOR_MOD, ir.BinaryKind.TRUNC_MOD),
    ):
        s.op(ir.Binary(two), [i, divisor], shape, I32, f"{two}_i32")
    exponent = ir.constant(np.array([3, 0, 1, 31, 2], np.int32))
    s.op(ir.Binary(ir.BinaryKind.POW), [i, exponent], shape, I32, "pow_i32")
    for extreme in (ir.ReduceKind.MAX, ir.ReduceKind.MIN):
        s.op(ir.Reduce(extreme, (1,)), [i], (B, 5), I32, f"reduce_{extreme}_i32")
    s.op(ir.Binary(ir.BinaryKind.ADD, ir.RELU), [x, row], shape, name="add relu")
    s.op(ir.Binary(ir.BinaryKind.MUL, ir.Function(ir.Fn.TANH)), [row, x], shape, name="mul/tanh")
    s.op(ir.Select(), [flag, x, row], shape, name="select")
    for target in (ir.DType.F64, I32, I64, BOOL):
        s.op(ir.Cast(), [x], shape, target, f"to_{target}")
    s.op(ir.Cast(), [flag], shape, F32, "from_bool")
    scale, shift = s.weight(5), s.weight(5)
    s.op(ir.ScaleShift(ir.RELU6), [x, scale, shift], shape, name="scale_shift")
    return s.graph()


def whole() -> ir.Graph:
    """Returns a division and a power of integers, which some numbers refuse."""
    s = Sketch("whole")
    x = s.input("x", (B, 2), I32)
    y = s.input("y", (B, 2), I32)
    divided = s.op(ir.Binary(ir.BinaryKind.FLOOR_DIV), [x, y], x.shape, I32)
    s.op(ir.Binary(ir.BinaryKind.POW), [x, divided], x.shape, I32)
    return s.graph()


def in_place() -> ir.Graph:
    """Returns a chain in which every op may write over its operand."""
    s = Sketch("in_place")
    shape: ir.Shape = (B, 4)
    x = s.input("x", shape)
    value = s.op(ir.Dense(), [x, s.weight(4, 4), None], shape)
    chain: list[tuple[ir.Op, list[ir.Value | None]]] = [
        (ir.Unary(ir.Function(ir.Fn.TANH)), []),
        (ir.Binary(ir.BinaryKind.SUB), [x]),
        (ir.Binary(ir.BinaryKind.MUL), [s.weight(4)]),
        (ir.Reshape(), []),
        (ir.Unary(ir.Function(ir.Fn.NEG)), []),
        (ir.Binary(ir.BinaryKind.ADD, ir.RELU), [x]),
    ]
    for op, more in chain:
        value = s.op(op, [value, *more], shape)
    value = s.op(ir.Binary(ir.BinaryKind.SUB), [x, value], shape)
    value = s.op(ir.Binary(ir.BinaryKind.MUL), [value, value], shape)
    value = s.op(ir.Dense(ir.RELU), [x, s.weight(4, 4), s.weight(4), value], shape)
    last = s.outputs[-1]
    s.outputs[:] = [last]
    return s.graph()


def layout() -> ir.Graph:
    """Returns ops that move, select and combine elements."""
    s = Sketch("layout")
    x = s.input("features", (B, 4, 6, 3))
    table = s.weight(9, 4)
    ids = s.input("model", (B, 5), I32)
    s.op(ir.Transpose((0, 2, 1, 3)), [x], (B, 6, 4, 3))
    s.op(ir.Transpose((3, 0, 2, 1)), [x], (3, B, 6, 4))
    flat = s.op(ir.Reshape(), [x], (ir.Batch(4), 18))
    s.op(ir.Softmax(), [flat], (ir.Batch(4), 18))
    s.op(ir.Softmax(log=True), [x], (B, 4, 6, 3))
    s.op(ir.Concat(3), [x, x, x], (B, 4, 6, 9))
    s.op(ir.Concat(1), [x, x], (B, 8, 6, 3))
    s.op(ir.Slice((0, 3, 1, 0), (1, -1, 2, 1)), [x], (B, 4, 3, 2))
    padding = ((0, 0), (1, 2), (0, 1), (0, 0))
    for mode in ir.PadMode:
        s.op(ir.Pad(padding, mode, 1.5), [x], (B, 7, 7, 3), name=f"pad_{mode}")
    s.op(ir.Gather(0), [table, ids], (B, 5, 4), name="embedding")
    s.op(ir.Gather(2), [x, ir.constant(np.array([5, 0], np.int64))], (B, 4, 2, 3))
    s.op(ir.Gather(1, 1), [flat_rows(s, x), ids], (B, 5, 3))
    s.op(ir.OneHot(2, 2.0, -1.0), [ids], (B, 5, 9))
    s.op(ir.OneHot(1), [ids], (B, 9, 5), I32)
    s.op(ir.Tile((1, 2, 1, 3)), [x], (B, 8, 6, 9))
    s.op(ir.BroadcastTo(), [s.weight(6, 3)], (B, 4, 6, 3))
    for kind in ir.ReduceKind:
        if kind in (ir.ReduceKind.ALL, ir.ReduceKind.ANY):
            continue
        s.op(ir.Reduce(kind, (1, 2)), [x], (B, 3), name=f"reduce_{kind}")
        s.op(ir.Reduce(kind, (3,), True), [x], (B, 4, 6, 1), name=f"reduce_last_{kind}")
    positive = s.op(
        ir.Compare(ir.CompareKind.GT), [x, ir.constant(np.array(-0.5, np.float32))], x.shape, BOOL
    )
    s.op(ir.Reduce(ir.ReduceKind.ALL, (1, 3)), [positive], (B, 6), BOOL)
    s.op(ir.Reduce(ir.ReduceKind.ANY, (1, 3)), [positive], (B, 6), BOOL)
    s.op(ir.ArgExtreme(3), [x], (B, 4, 6), I64)
    s.op(ir.ArgExtreme(1, True), [x], (B, 6, 3), I32)
    s.op(ir.TopK(), [x], (B, 4, 6, 2), I32)
    s.op(ir.TopK(), [ids], (B, 5), I32)
    s.op(ir.Cumulative(2), [x], x.shape)
    s.op(ir.Cumulative(1, True, True, True), [x], x.shape)
    for half in (False, True):
        corners = {"align_corners": not half, "half_pixel": half}
        s.op(ir.Resize(ir.ResizeKind.BILINEAR, **corners), [x], (B, 7, 9, 3))
        s.op(ir.Resize(ir.ResizeKind.NEAREST, half_pixel=half), [x], (B, 8, 12, 3))
    s.op(ir.Slice((0, 0), (1, 1)), [ids], (B, 2), I32)
    s.outputs.append(ir.Port("same", x))
    s.outputs.append(ir.Port("constant", table))
    return s.graph()


def tiled() -> ir.Graph:
    """Returns convolutions whose filters are transformed for tiles of either kind."""
    s = Sketch("tiled")
    x, z = s.input("x", (B, 10, 10, 32)), s.input("z", (B, 16, 16, 20))
    same, uneven = ((1, 1), (1, 1)), ((2, 1), (0, 3))
    for act in (ir.RELU, ir.Function(ir.Fn.SILU)):
        s.op(
            ir.Conv((1, 1), (1, 1), same, 1, act),
            [x, s.weight(3, 3, 32, 32), s.weight(32), x],
            x.shape,
        )
    s.op(ir.Conv((1, 1), (1, 1), uneven), [x, s.weight(3, 3, 32, 30)], (B, 11, 11, 30))
    frames = s.input("frames", (B, 3, 16, 16, 16))
    images = s.op(ir.Reshape(), [frames], (ir.Batch(3), 16, 16, 16))
    s.op(ir.Conv((1, 1), (1, 1), same), [images, s.weight(3, 3, 16, 16)], (ir.Batch(3), 16, 16, 16))
    s.op(
        ir.Conv((1, 1), (1, 1), same, 1, ir.RELU6),
        [z, s.weight(3, 3, 20, 24), s.weight(24)],
        (B, 16, 16, 24),
    )
    return s.graph()


def digits() -> ir.Graph:
    """Returns a small network on images of one channel, whose layers take few ways of kernels."""
    s = Sketch("digits")
    none = ((0, 0), (0, 0))
    x = s.input("x", (B, 9, 9, 1))
    first = [x, s.weight(3, 3, 1, 16), s.weight(16)]
    y = s.op(ir.Conv((1, 1), (1, 1), none, 1, ir.RELU), first, (B, 7, 7, 16))
    y = s.op(ir.Conv((2, 2), (1, 1), none), [y, s.weight(3, 3, 16, 10)], (B, 3, 3, 10))
    y = s.op(ir.Reshape(), [y], (B, 90))
    y = s.op(ir.Dense(ir.RELU), [y, s.weight(90, 32), s.weight(32)], (B, 32))
    y = s.op(ir.Dense(None), [y, s.weight(32, 10), s.weight(10)], (B, 10))
    s.op(ir.Softmax(), [y], (B, 10))
    return s.graph()


def lines() -> ir.Graph:
    """Returns convolutions along lines whose filters are transformed for tiles."""
    s = Sketch("lines")
    x, z = s.input("x", (B, 61, 40)), s.input("z", (B, 3, 25, 32))
    for size, dilation in ((3, 1), (4, 1), (5, 1), (3, 6)):
        causal = ((size - 1) * dilation, 0)
        s.op(
            ir.Conv((1,), (dilation,), (causal,), 1, ir.RELU),
            [x, s.weight(size, 40, 36), s.weight(36)],
            (B, 61, 36),
        )
    s.op(ir.Conv((1,), (1,), ((0, 0),)), [x, s.weight(5, 40, 33)], (B, 57, 33))
    s.op(ir.Conv((1, 1), (1, 1), ((0, 0), (1, 1))), [z, s.weight(1, 3, 32, 34)], (B, 3, 25, 34))
    return s.graph()


def chained() -> ir.Graph:
    """Returns convolutions with an image between them that is not there as a whole."""
    s = Sketch("chained")
    x = s.input("x", (B, 64, 64, 3))
    one, swish = ((0, 0), (0, 0)), ir.Function(ir.Fn.SILU)
    results = []
    for stride, after in ((1, ir.RELU6), (2, swish)):
        wide = ir.Conv((1, 1), (1, 1), one, 1, after)
        y = s.op(wide, [x, s.weight(1, 1, 3, 128), s.weight(128)], (B, 64, 64, 128))
        around = ((2 - stride, 1), (2 - stride, 1))
        deep = ir.Conv((stride, stride), (1, 1), around, 128, after)
        shape: ir.Shape = (B, 64 // stride, 64 // stride, 128)
        y = s.op(deep, [y, s.weight(3, 3, 1, 128), s.weight(128)], shape)
        narrow = ir.Conv((1, 1), (1, 1), one)
        results.append(s.op(narrow, [y, s.weight(1, 1, 128, 2)], (*shape[:-1], 2)))
    s.outputs[:] = [port for port in s.outputs if port.value in results]
    return s.graph()


def paired() -> ir.Graph:
    """Returns products whose matrices are read as one."""
    s = Sketch("paired")
    x = s.input("x", (B, 200))
    results = []
    for n in (384, 250):
        first = [x, s.weight(200, 720), s.weight(720)]
        y = s.op(ir.Dense(ir.RELU), first, (B, 720))
        scale = ir.constant(s.random.normal(0, 0.01, (720, n)).astype(np.float32))
        results.append(s.op(ir.Dense(ir.Function(ir.Fn.TANH)), [y, scale], (B, n)))
    s.outputs[:] = [port for port in s.outputs if port.value in results]
    return s.graph()


def scaled() -> ir.Graph:
    """Returns products whose operand is scaled: by a batch norm, and per example."""
    s = Sketch("scaled")
    shape: ir.Shape = (B, 5, 3, 20)
    x, factor = s.input("x", shape), s.input("factor", (B, 1, 1, 20))
    rows = s.input("rows", (B, 7, 20))
    norm: list[ir.Value | None] = [s.weight(20), s.weight(20)]
    one = ((0, 0), (0, 0))
    tanh = ir.Function(ir.Fn.TANH)
    results = []
    for bounds in (None, ir.RELU, ir.RELU6):
        y = s.op(ir.ScaleShift(bounds), [x, *norm], shape)
        conv = ir.Conv((1, 1), (1, 1), one, 1, tanh)
        y = s.op(conv, [y, s.weight(1, 1, 20, 33), s.weight(33)], (B, 5, 3, 33))
        results.append(y)
    for operands in ([x, factor], [factor, x]):
        y = s.op(ir.Binary(ir.BinaryKind.MUL), operands, shape)
        conv = ir.Conv((1, 1), (1, 1), one)
        results.append(s.op(conv, [y, s.weight(1, 1, 20, 20), s.weight(20), x], shape))
        y = s.op(ir.Binary(ir.BinaryKind.MUL), operands, shape)
        results.append(s.op(conv, [y, s.weight(1, 1, 20, 6)], (B, 5, 3, 6)))
    y = s.op(ir.ScaleShift(), [rows, *norm], (B, 7, 20))
    results.append(s.op(ir.Dense(tanh), [y, s.weight(20, 9), s.weight(9)], (B, 7, 9)))
    s.outputs[:] = [port for port in s.outputs if port.value in results]
    return s.graph()


def flat_rows(s: Sketch, x: ir.Value) -> ir.Value:
    """Adds `x` as rows of three elements."""
    return s.op(ir.Reshape(), [x], (B, 24, 3))


def products() -> ir.Graph:
    """Returns products, convolutions, pools and norms."""
    s = Sketch("products")
    x, v = s.input("x", (B, 9, 8, 4)), s.input("v", (B, 7, 6))
    relu, tanh = ir.RELU, ir.Function(ir.Fn.TANH)
    h = s.op(ir.Dense(relu), [v, s.weight(6, 5), s.weight(5)], (B, 7, 5))
    s.op(ir.Dense(tanh), [v, s.weight(6, 5), None, h], (B, 7, 5))
    one, same = ((0, 0), (0, 0)), ((1, 1), (1, 1))
    s.op(
        ir.Conv((1, 1), (1, 1), one, 1, relu), [x, s.weight(3, 2, 4, 5), s.weight(5)], (B, 7, 7, 5)
    )
    s.op(ir.Conv((2, 1), (1, 2), same), [x, s.weight(3, 3, 4, 6)], (B, 5, 6, 6))
    s.op(ir.Conv((1, 1), (1, 1), same, 2), [x, s.weight(3, 3, 2, 6), s.weight(6)], (B, 9, 8, 6))
    s.op(ir.Conv((1, 1), (1, 1), same, 4, tanh), [x, s.weight(3, 3, 1, 4)], (B, 9, 8, 4))
    s.op(ir.Conv((1, 1), (1, 1), same, 4), [x, s.weight(3, 3, 1, 8), s.weight(8)], (B, 9, 8, 8))
    for act in (relu, tanh):
        s.op(
            ir.Conv((1, 1), (1, 1), same, 1, act),
            [x, s.weight(3, 3, 4, 4), s.weight(4), x],
            (B, 9, 8, 4),
        )
        s.op(
            ir.Conv((1, 1), (1, 1), one, 1, act),
            [x, s.weight(1, 1, 4, 4), s.weight(4), x],
            (B, 9, 8, 4),
        )
    s.op(ir.Conv((2,), (1,), ((2, 0),), 1), [v, s.weight(3, 6, 4)], (B, 4, 4))
    s.op(
        ir.ConvTranspose((2, 2), (1, 1), one, 1, relu),
        [x, s.weight(2, 2, 3, 4), s.weight(3)],
        (B, 18, 16, 3),
    )
    s.op(ir.ConvTranspose((2,), (1,), ((0, 0),)), [v, s.weight(3, 5, 6)], (B, 15, 5))
    for kind in ir.PoolKind:
        s.op(ir.Pool(kind, (3, 2), (2, 2), ((1, 1), (0, 0))), [x], (B, 5, 4, 4))
        s.op(ir.Pool(kind, (2,), (2,), ((0, 1),)), [v], (B, 4, 6))
    for norm in ir.NormKind:
        s.op(ir.Norm(norm, 1e-3), [v, s.weight(6), s.weight(6)], v.shape)
    s.op(ir.Norm(ir.NormKind.LAYER, 1e-3), [v, None, None], v.shape)
    s.op(ir.GroupNorm(2, 1e-3), [x, s.weight(4), None], x.shape)
    s.op(ir.MatMul(), [v, s.weight(6, 3)], (B, 7, 3))
    s.op(ir.MatMul(transpose_b=True, activation=relu), [v, v], (B, 7, 7))
    s.op(ir.MatMul(transpose_a=True), [v, v, s.weight(6)], (B, 6, 6))
    return s.graph()


def sequences() -> ir.Graph:
    """Returns recurrent layers and attention."""
    s = Sketch("sequences")
    t, i, u = 5, 3, 4
    x = s.input("x", (B, t, i))
    mask = s.input("mask", (B, t), BOOL)
    h, c = s.input("h", (B, u)), s.input("c", (B, u))
    states: list[ir.Shape] = [(B, t, u), (B, u), (B, u)]
    for bits in range(4):
        reverse, zero = bool(bits & 1), bool(bits & 2)
        seen = mask if bits else None
        start = (h, c) if bits & 1 else (None, None)
        lstm = [s.weight(i, 4 * u), s.weight(u, 4 * u), s.weight(4 * u), *start, seen]
        s.ops(ir.Lstm(reverse, zero), [x, *lstm], states, name=f"lstm_{bits}")
        gru = [s.weight(i, 3 * u), s.weight(u, 3 * u), s.weight(3 * u)]
        after = bool(bits & 1)
        again = s.weight(3 * u) if after else None
        operands = [x, *gru, again, start[0], seen]
        s.ops(ir.Gru(after, reverse, zero), operands, states[:2], name=f"gru_{bits}")
        rnn = [s.weight(i, u), s.weight(u, u), None, start[0], seen]
        op = ir.SimpleRnn(ir.Function(ir.Fn.TANH), reverse, zero)
        s.ops(op, [x, *rnn], states[:2], name=f"rnn_{bits}")
    q, k, v = (s.input(name, (B, 2, t, d)) for name, d in (("q", 6), ("k", 6), ("v", 4)))
    out: ir.Shape = (B, 2, t, 4)
    s.op(ir.Attention(1 / math.sqrt(6)), [q, k, v], out)
    s.op(ir.Attention(0.5, True), [q, k, v], out)
    bias = s.input("bias", (B, 1, 1, t))
    s.op(ir.Attention(0.5), [q, k, v, bias], out)
    s.op(ir.Attention(0.5), [q, k, v, s.weight(t, t)], out)
    beside: ir.Shape = (B, t, 2, 6)
    wide = s.op(ir.Dense(), [x, s.weight(3, 36)], (B, t, 36))
    parts = [s.op(ir.Slice((0, 0, begin), (1, 1, 1)), [wide], (B, t, 12)) for begin in (12, 0, 24)]
    sides = [s.op(ir.Reshape(), [part], beside) for part in parts]
    s.outputs[:] = [port for port in s.outputs if port.value not in (*parts, *sides)]
    s.op(ir.Attention(0.5, True, True), sides, beside)
    near: list[ir.Value | None] = [
        s.input(name, (B, t, 3, 2)) for name in ("near_q", "near_k", "near_v")
    ]
    s.op(ir.Attention(0.5, False, True), near, (B, t, 3, 2))
    return s.graph()


def merged() -> ir.Graph:
    """Returns layers whose first axis is the batch times another: frames, windows of an image."""
    s = Sketch("merged")
    _rows_of_images(s, ir.Batch(3))
    return s.graph()


def fixed() -> ir.Graph:
    """Returns layers over a batch of a fixed size."""
    s = Sketch("fixed")
    _rows_of_images(s, 3)
    return s.graph()


def _rows_of_images(s: Sketch, rows: ir.Dim) -> None:
    def rest(shape: ir.Shape) -> ir.Shape:
        return (B, 3, *shape[1:]) if isinstance(rows, ir.Batch) else shape

    def input_of(name: str, *shape: int) -> ir.Value:
        full: ir.Shape = (rows, *shape)
        if not isinstance(rows, ir.Batch):
            return s.input(name, full)
        value = s.op(ir.Reshape(), [s.input(name, rest(full))], full)
        s.outputs.pop()
        return value

    def op(
        op: ir.Op, operands: list[ir.Value | None], *shapes: tuple[int, ...], name: str = ""
    ) -> None:
        for value in s.ops(op, operands, [(rows, *shape) for shape in shapes], name=name):
            whole = s.op(ir.Reshape(), [value], rest(value.shape))
            s.outputs[:] = [port for port in s.outputs if port.value is not value]
            assert s.outputs[-1].value is whole

    same, none = ((1, 1), (1, 1)), ((0, 0), (0, 0))
    image, line = input_of("image", 10, 10, 16), input_of("line", 6, 5)
    op(
        ir.Conv((1, 1), (1, 1), same, 1, ir.RELU),
        [image, s.weight(3, 3, 16, 16), s.weight(16), image],
        (10, 10, 16),
    )
    op(ir.Conv((2, 2), (1, 1), none), [image, s.weight(2, 2, 16, 3)], (5, 5, 3))
    op(ir.Conv((1, 1), (1, 1), same, 16), [image, s.weight(3, 3, 1, 16)], (10, 10, 16))
    op(ir.ConvTranspose((2, 2), (1, 1), none), [image, s.weight(2, 2, 3, 16)], (20, 20, 3))
    op(ir.Pool(ir.PoolKind.MAX, (2, 2), (2, 2), none), [image], (5, 5, 16))
    op(ir.GroupNorm(2, 1e-3), [image, s.weight(16), None], (10, 10, 16))
    op(ir.Resize(ir.ResizeKind.BILINEAR, half_pixel=True), [image], (7, 9, 16))
    t, i, u = 6, 5, 4
    lstm = [s.weight(i, 4 * u), s.weight(u, 4 * u), s.weight(4 * u)]
    op(ir.Lstm(False, False), [line, *lstm], (t, u), (u,), (u,), name="lstm")
    gru = [s.weight(i, 3 * u), s.weight(u, 3 * u), s.weight(3 * u)]
    op(ir.Gru(True, True, False), [line, *gru, s.weight(3 * u)], (t, u), (u,), name="gru")
    tanh = ir.Function(ir.Fn.TANH)
    rnn = [s.weight(i, u), s.weight(u, u)]
    op(ir.SimpleRnn(tanh, False, False), [line, *rnn], (t, u), (u,), name="rnn")
    q, k, v = (input_of(name, 2, 7, d) for name, d in (("q", 6), ("k", 6), ("v", 4)))
    op(ir.Attention(0.5), [q, k, v], (2, 7, 4))
    op(ir.Attention(0.5, True), [q, k, v, input_of("bias", 1, 1, 7)], (2, 7, 4))
    op(ir.Attention(0.5, False, True), [q, k, k], (2, 7, 6))


def loops() -> ir.Graph:
    """Returns loops: one in another, values that change places, a turn's number."""
    s = Sketch("loops")
    x = s.input("x", (B, 4))
    rows = s.input("rows", (B, 3))
    turn = ir.Value(I32, ())
    a, b = (ir.Value(F32, (B, 4), name=n) for n in "ab")
    stack = ir.Value(F32, (3, B, 4), name="stack")
    kept = ir.Value(F32, (B, 3), name="kept")
    tall = ir.Value(F32, (B, 2, 2))
    y, z = ir.Value(F32, (B, 4)), ir.Value(F32, (B, 4))
    again = ir.Value(F32, (3, B, 4))
    inner_turn, before, after = ir.Value(I32, ()), ir.Value(F32, (B, 4)), ir.Value(F32, (B, 4))
    inner = ir.Graph(
        "inner",
        (ir.Port("turn", inner_turn), ir.Port("before", before)),
        (ir.Port("after", after),),
        (ir.Node(ir.Binary(ir.BinaryKind.MAX), (before, s.weight(4)), (after,)),),
    )
    nodes = (
        ir.Node(ir.Reshape(), (a,), (tall,)),
        ir.Node(ir.Dense(ir.RELU), (b, s.weight(4, 4), s.weight(4)), (y,), layer="cell/dense"),
        ir.Node(ir.Loop(2, inner), (y,), (z,), layer="cell/inner"),
        ir.Node(ir.Update(), (stack, turn, z), (again,)),
    )
    body = ir.Graph(
        "body",
        tuple(ir.Port(str(i), v) for i, v in enumerate((turn, a, b, stack, kept))),
        # The second is what the first was, and the first what the inner loop leaves.
        tuple(ir.Port(str(i), v) for i, v in enumerate((z, a, again, kept))),
        nodes,
    )
    graph = ir.Graph("loops", (), (), (ir.Node(ir.Loop(3, body), (), ()),))
    (node,) = with_own_results(graph).nodes
    assert isinstance(node.op, ir.Loop)
    zeros = ir.constant(np.zeros((1, 1), np.float32))
    start = s.op(ir.BroadcastTo(), [zeros], (3, B, 4))
    states: list[ir.Shape] = [(B, 4), (B, 4), (3, B, 4), (B, 3)]
    s.ops(node.op, [x, x, start, rows], states, name="cell")
    _open_loop(s)
    return s.graph()


def _open_loop(s: Sketch) -> None:
    """Halves numbers and counts, until the largest is small."""
    x = s.input("level", (4,))
    turn, level, going = ir.Value(I32, ()), ir.Value(F32, (4,)), ir.Value(ir.DType.BOOL, ())
    count, counted = ir.Value(I32, ()), ir.Value(I32, ())
    half, most, more = ir.Value(F32, (4,)), ir.Value(F32, ()), ir.Value(ir.DType.BOOL, ())
    one, scale, small = (ir.constant(np.asarray(n)) for n in _NUMBERS)
    nodes = (
        ir.Node(ir.Binary(ir.BinaryKind.MUL), (level, scale), (half,)),
        ir.Node(ir.Binary(ir.BinaryKind.ADD), (count, one), (counted,)),
        ir.Node(ir.Reduce(ir.ReduceKind.MAX, (0,), False), (half,), (most,)),
        ir.Node(ir.Compare(ir.CompareKind.GT), (most, small), (more,)),
    )
    body = ir.Graph(
        "body",
        tuple(ir.Port(str(i), v) for i, v in enumerate((turn, level, count, going))),
        tuple(ir.Port(str(i), v) for i, v in enumerate((half, counted, more))),
        nodes,
    )
    zero, true = ir.constant(np.asarray(0, np.int32)), ir.constant(np.asarray(True))
    op = ir.Loop(100, body, 2)
    before = (x, zero, true)
    after = tuple(ir.Value(v.dtype, v.shape) for v in before)
    s.nodes.append(ir.Node(op, before, after, "halved"))
    s.outputs += [ir.Port("halved", after[0]), ir.Port("halvings", after[1])]


_NUMBERS = (np.int32(1), np.float32(0.5), np.float32(0.01))


def blocks() -> ir.Graph:
    """Returns convolutions that repeat: a struct of their own in the crate."""
    s = Sketch("blocks")
    shape: ir.Shape = (B, 8, 8, 4)
    y = s.input("image", shape)
    # A place called as an associated constant of the runtime.
    y = s.op(ir.Unary(ir.RELU), [y], shape, name="relu")
    around, none = ((1, 1), (1, 1)), ((0, 0), (0, 0))
    for i in range(4):
        for name, op, size, residual in (
            ("depthwise", ir.Conv((1, 1), (1, 1), around, 4, ir.RELU6), (3, 3, 1, 4), None),
            ("project", ir.Conv((1, 1), (1, 1), none), (1, 1, 4, 4), y),
        ):
            path = f"block_{i}_{name}"
            weights = s.weight(*size, name=f"{path}/kernel")
            y = s.op(op, [y, weights, s.weight(4, name=f"{path}/bias"), residual], shape, name=path)
        y = s.op(ir.Unary(ir.RELU), [y], shape, name=f"block_{i}_relu")
    s.outputs[:] = s.outputs[-1:]
    return s.graph()


def named(name: str) -> ir.Graph:
    """Returns layers that repeat, all of that name but for a number."""
    s = Sketch("named")
    y = s.input("x", (B, 4))
    for i in range(8):
        for part in ("inner", "outer"):
            path = f"{name}_{i}_{part}"
            y = s.op(ir.Dense(), [y, s.weight(4, 4, name=f"{path}/k"), None], (B, 4), name=path)
        y = s.op(ir.Transpose((0, 1)), [y], (B, 4), name=f"{name}_{i}_moved")
    s.outputs[:] = s.outputs[-1:]
    return s.graph()


GRAPHS = (
    blocks,
    chained,
    paired,
    elementwise,
    fixed,
    in_place,
    layout,
    lines,
    loops,
    merged,
    products,
    scaled,
    sequences,
    tiled,
)


def wide() -> ir.Graph:
    """Returns a layer of more than a megabyte."""
    s = Sketch("wide")
    x = s.input("x", (B, 700))
    s.op(ir.Dense(), [x, s.weight(700, 400), None], (B, 400), name="wide")
    return s.graph()


def mlp() -> ir.Graph:
    """Returns a small classifier."""
    s = Sketch("mlp")
    x = s.input("x", (B, 6))
    h = s.op(
        ir.Dense(ir.RELU),
        [x, s.weight(6, 8, name="hidden/kernel"), s.weight(8, name="hidden/bias")],
        (B, 8),
        name="hidden",
    )
    y = s.op(
        ir.Dense(),
        [h, s.weight(8, 2, name="logits/kernel"), s.weight(2, name="logits/bias")],
        (B, 2),
        name="logits",
    )
    s.op(ir.Softmax(), [y], (B, 2), name="probabilities")
    s.outputs[:] = [ir.Port("probabilities", s.outputs[-1].value)]
    return s.graph()
