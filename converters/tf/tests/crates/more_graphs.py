"""Graphs of ops that write at places, of loops over the examples, and of systems of equations."""

from __future__ import annotations

import math

import numpy as np

from converters.tf import ir
from converters.tf.ir.ops.quantized import packed, spread
from converters.tf.tests.crates.graphs import BOOL, F32, I32, I64, B, Sketch

I8 = ir.DType.I8


def written() -> ir.Graph:
    """Returns slices that are changed at places: known ones, and those of each example."""
    s = Sketch("written")
    x, new = s.input("x", (B, 9, 3)), s.input("new", (B, 4, 3))
    places = s.input("places", (B, 4, 1), I32)
    for kind in ir.ScatterKind:
        s.op(ir.Scatter(kind, 1), [x, places, new], x.shape, name=f"scatter_{kind}")
    flat = s.input("flat", (B, 9, 9))
    pairs = ir.constant(np.array([[8, 0], [0, 2], [8, 0]], np.int64))
    square = ir.constant(np.zeros((9, 9), np.float32))
    numbers = s.weight(3)
    s.op(ir.Scatter(ir.ScatterKind.ADD), [square, pairs, numbers], (9, 9), name="known")
    s.op(ir.Scatter(ir.ScatterKind.UPDATE, 1), [flat, _pairs(s), new], flat.shape, name="pairs")
    lower = ir.constant(np.array(3, np.int32))
    shifted = s.op(ir.Binary(ir.BinaryKind.SUB), [places, lower], places.shape, I32)
    s.op(ir.Scatter(ir.ScatterKind.MAX, 1, True), [x, shifted, new], x.shape, name="skipped")
    wide = s.op(ir.Cast(), [x], x.shape, I64)
    update = s.op(ir.Cast(), [new], new.shape, I64)
    s.op(ir.Scatter(ir.ScatterKind.MUL, 1), [wide, places, update], x.shape, I64, name="wide")
    return s.graph()


def _pairs(s: Sketch) -> ir.Value:
    """Returns indices of which an element is a row of an example."""
    first = s.input("rows", (B, 4, 3, 1), I64)
    second = ir.constant(np.arange(12, dtype=np.int64).reshape(1, 4, 3, 1) % 9)
    column = s.op(ir.BroadcastTo(), [second], (B, 4, 3, 1), I64)
    return s.op(ir.Concat(3), [first, column], (B, 4, 3, 2), I64, name="pair")


def each() -> ir.Graph:
    """Returns a loop that computes something for every example by itself."""
    s = Sketch("each")
    x, y = s.input("x", (B, 4, 2)), s.input("y", (B, 2))
    turn, xs, ys = (
        ir.Value(kind, shape, name=name)
        for name, kind, shape in (("turn", I32, ()), ("xs", F32, (B, 4, 2)), ("ys", F32, (B, 2)))
    )
    sums, tops = ir.Value(F32, (B, 2), name="sums"), ir.Value(BOOL, (B,), name="tops")
    row, own, product = (ir.Value(F32, shape) for shape in ((4, 2), (2,), (4, 2)))
    total, positive, top = ir.Value(F32, (2,)), ir.Value(BOOL, (2,)), ir.Value(BOOL, ())
    new_sums, new_tops = ir.Value(F32, (B, 2)), ir.Value(BOOL, (B,))
    nodes = (
        ir.Node(ir.Gather(0), (xs, turn), (row,)),
        ir.Node(ir.Gather(0), (ys, turn), (own,)),
        ir.Node(ir.Binary(ir.BinaryKind.MUL), (row, own), (product,)),
        ir.Node(ir.Reduce(ir.ReduceKind.SUM, (0,), False), (product,), (total,)),
        ir.Node(ir.Compare(ir.CompareKind.GT), (total, own), (positive,)),
        ir.Node(ir.Reduce(ir.ReduceKind.ALL, (0,), False), (positive,), (top,)),
        ir.Node(ir.Update(), (sums, turn, total), (new_sums,)),
        ir.Node(ir.Update(), (tops, turn, top), (new_tops,)),
    )
    inputs, outputs = (turn, xs, ys, sums, tops), (xs, ys, new_sums, new_tops)
    body = ir.Graph(
        "body",
        tuple(ir.Port(str(i), v) for i, v in enumerate(inputs)),
        tuple(ir.Port(str(i), v) for i, v in enumerate(outputs)),
        nodes,
    )
    zeros = s.op(ir.BroadcastTo(), [ir.constant(np.zeros((1, 1), np.float32))], (B, 2))
    none = s.op(ir.BroadcastTo(), [ir.constant(np.zeros(1, bool))], (B,), BOOL)
    results = tuple(ir.Value(v.dtype, v.shape) for v in outputs)
    s.nodes.append(ir.Node(ir.Loop(B, body), (x, y, zeros, none), results, "each"))
    s.outputs += [ir.Port("sums", results[2]), ir.Port("tops", results[3])]
    return s.graph()


def systems() -> ir.Graph:
    """Returns factors, solutions and determinants of matrices."""
    s = Sketch("systems")
    x, right = s.input("x", (B, 2, 5, 5)), s.input("right", (B, 2, 5, 3))
    shift = ir.constant(np.eye(5, dtype=np.float32) * 3)
    square = s.op(ir.MatMul(False, True), [x, x], x.shape, name="square")
    whole = s.op(ir.Binary(ir.BinaryKind.ADD), [square, shift], x.shape, name="whole")
    lower = s.op(ir.Cholesky(), [whole], x.shape, name="factor")
    for transposed in (False, True):
        triangle = ir.TriangularSolve(True, transposed)
        s.op(triangle, [lower, right], right.shape, name=f"lower_{transposed}")
        upper = ir.TriangularSolve(False, transposed)
        s.op(upper, [whole, right], right.shape, name=f"upper_{transposed}")
        general = s.op(ir.Binary(ir.BinaryKind.ADD), [whole, lower], x.shape)
        s.op(ir.Solve(transposed), [general, right], right.shape, name=f"solved_{transposed}")
    s.ops(ir.LogDeterminant(), [x], [(B, 2), (B, 2)], name="determinant")
    sign = ir.Value(F32, (B, 2))
    log = ir.Value(F32, (B, 2))
    s.nodes.append(ir.Node(ir.LogDeterminant(), (whole,), (sign, log), "unread"))
    s.outputs.append(ir.Port("logarithm", log))
    return s.graph()


def sizes() -> ir.Graph:
    """Returns conversions between integers of all sizes, and operations on their bits."""
    s = Sketch("sizes")
    kinds = [kind for kind in ir.DType if kind.numpy.kind in "iu"]
    inputs = [s.input(f"in_{kind}", (B, 3), kind) for kind in kinds]
    large = ir.constant(np.array([99999, 7, -300], np.int32))
    whole = inputs[kinds.index(I32)]
    sum_ = s.op(ir.Binary(ir.BinaryKind.ADD), [whole, large], whole.shape, I32, "large")
    for kind, x in zip(kinds, inputs, strict=True):
        s.op(ir.Cast(), [x], x.shape, I64, f"wide_{kind}")
        s.op(ir.Cast(), [sum_], x.shape, kind, f"narrow_{kind}")
    s.op(ir.Cast(), [s.input("in_bool", (B, 3), BOOL)], (B, 3), ir.DType.I8, "truth")
    for bits in (k for k in ir.BinaryKind if k.startswith("bit")):
        s.op(ir.Binary(bits), [sum_, whole], whole.shape, I32, f"{bits}_i32")
        long = inputs[kinds.index(I64)]
        s.op(ir.Binary(bits), [long, long], long.shape, I64, f"{bits}_i64")
    return s.graph()


def refused() -> ir.Graph:
    """Returns a write and a system that some inputs have no result of."""
    s = Sketch("refused")
    matrix, place = s.input("matrix", (B, 2, 2)), s.input("place", (B, 1, 1), I32)
    one = ir.constant(np.ones((1, 1, 2), np.float32))
    row = s.op(ir.BroadcastTo(), [one], (B, 1, 2))
    start = s.op(ir.Scatter(ir.ScatterKind.ADD, 1), [matrix, place, row], (B, 2, 2), name="added")
    s.op(ir.Solve(), [start, matrix], (B, 2, 2), name="solved")
    return s.graph()


def chosen() -> ir.Graph:
    """Returns boxes that suppress others, and matmuls of integers."""
    s = Sketch("chosen")
    boxes, scores = s.input("boxes", (B, 6, 4)), s.input("scores", (B, 2, 6))
    own = s.input("own", (B, 2, 6, 4))
    s.op(ir.Suppress(0.3, -1.0, True), [boxes, scores], (B, 2, 4), I32, "shared")
    s.op(ir.Suppress(0.0, -math.inf, False), [own, scores], (B, 2, 6), I32, "of_class")
    rows = s.op(ir.Unary(ir.Function(ir.Fn.ROUND)), [s.input("rows", (B, 3, 40))], (B, 3, 40))
    s.op(ir.Introsort(), [rows], rows.shape, I32, "sorted")
    for dtype in (I32, ir.DType.I64):
        a, b = s.input(f"a_{dtype}", (B, 3, 4), dtype), s.input(f"b_{dtype}", (B, 4, 2), dtype)
        weight = ir.constant(s.random.integers(-(1 << 30), 1 << 30, (4, 5)).astype(dtype.numpy))
        s.op(ir.WholeProduct(), [a, b], (B, 3, 2), dtype, f"each_{dtype}")
        s.op(ir.WholeProduct(), [a, weight], (B, 3, 5), dtype, f"all_{dtype}")
    return s.graph()


def drawn() -> ir.Graph:
    """Returns random numbers for the examples, and such of a fixed shape."""
    s = Sketch("drawn")
    x = s.input("x", (B, 5))
    for dtype in (I32, I64):
        seed = s.input(f"seed_{dtype}", (2,), dtype)
        for kind in ir.Distribution:
            noise = s.op(ir.Random(kind), [seed], (B, 5), F32, f"{kind}_{dtype}")
            s.op(ir.Binary(ir.BinaryKind.ADD), [x, noise], x.shape, name=f"noisy_{kind}_{dtype}")
        s.op(ir.Random(ir.Distribution.NORMAL), [seed], (3, 7), F32, f"fixed_{dtype}")
    return s.graph()


def quantized() -> ir.Graph:
    """Returns layers and operations on int8 numbers that stand for real ones."""
    s = Sketch("quantized")
    real = s.input("real", (B, 5, 6, 3))
    image = s.op(ir.Quantize(0.02, -7), [real], real.shape, I8, "taken")
    window = ((3, 3), (2, 1), (1, 2), ((1, 0), (2, 1)))

    def whole(low: int, high: int, *shape: int) -> ir.Array:
        return s.random.integers(low, high, shape)

    def scaled(count: int) -> list[ir.Value]:
        factors = whole(1 << 30, (1 << 31) - 1, count), whole(-9, -6, count)
        return [ir.constant(a.astype(np.int32)) for a in (whole(-99, 99, count), *factors)]

    for rescaling, outputs in zip(ir.Rescaling, (40, 5, 19), strict=True):
        kernel = packed(whole(-127, 128, outputs, 3, 3, 3).astype(np.int8))
        middle = 19 if outputs == 5 else 0
        conv = ir.QuantizedConv(*window, outputs, rescaling, -7, 4, -120, 101, middle)
        count = -(-outputs // 16) * 16
        weights = [ir.constant(kernel, f"conv_{outputs}/kernel"), *scaled(count)]
        if rescaling is ir.Rescaling.REAL:
            factors = s.random.uniform(0.001, 0.004, count).astype(np.float32)
            weights[2:] = [ir.constant(factors.view(np.int32))] * 2
        s.op(conv, [image, *weights], (B, 2, 5, outputs), I8, f"conv_{outputs}")
    taps = ir.constant(whole(-127, 128, 3, 3, 3).astype(np.int8), "each/kernel")
    for middle in (-20, 0):
        each_channel = ir.QuantizedDepthwise(*window, ir.Rescaling.TWICE, -7, 9, -128, 127, middle)
        y = s.op(each_channel, [image, taps, *scaled(3)], (B, 2, 5, 3), I8, f"each_{abs(middle)}")
    ends = ((1 << 30, 3 << 29, 5 << 28), (0, -1, -17))
    total = ir.QuantizedPair(ir.QuantizedPairKind.SUM, (3, 9, -2), *ends, -128, 127)
    z = s.op(total, [y, y], y.shape, I8, "sum")
    ends = ((0, 0, 5 << 28), (0, 0, -6))
    product = ir.QuantizedPair(ir.QuantizedPairKind.PRODUCT, (3, 9, -2), *ends, -100, 100)
    s.op(product, [y, z], y.shape, I8, "product")
    for kind in ir.QuantizedPoolKind:
        pool = ir.QuantizedPool(kind, (2, 3), (2, 1), ((0, 1), (1, 1)), -90, 100)
        s.op(pool, [image], (B, 3, 6, 3), I8, f"pool_{kind}")
    rows = ir.Value(I8, (B, 30, 3))
    s.nodes.append(ir.Node(ir.Reshape(), (image,), (rows,), "rows"))
    s.op(ir.QuantizedMean(-7, 3 << 29, -4, 5), [rows], (B, 3), I8, "mean")
    table = ir.constant(np.arange(255, -1, -1).astype(np.int8), "table")
    s.op(ir.Looked(), [image, table], image.shape, I8, "looked")
    below = np.exp(-0.1 * np.arange(255, -1, -1)).astype(np.float32)
    shares = ir.QuantizedSoftmax(1 / 256, -128)
    s.op(shares, [image, ir.constant(below, "below")], image.shape, I8, "shares")
    s.op(ir.Dequantize(0.25, 3), [image], image.shape, F32, "given")
    return s.graph()


def ranged() -> ir.Graph:
    """Returns layers on real numbers that become int8 by the range of each example."""
    s = Sketch("ranged")

    def weights(outputs: int, *window: int) -> list[ir.Value]:
        kernel = s.random.integers(-127, 128, (outputs, *window)).astype(np.int8)
        totals = spread(kernel.reshape(outputs, -1).astype(np.int64).sum(axis=1))
        factors = s.random.uniform(0.001, 0.004, totals.size).astype(np.float32)
        name = f"w{len(s.nodes)}"
        parts = {"kernel": packed(kernel), "totals": totals, "factors": factors}
        return [ir.constant(data, f"{name}/{role}") for role, data in parts.items()]

    def levels(x: ir.Value, axes: int) -> list[ir.Value]:
        kinds, shapes = (I8, F32), ir.DynamicLevels(axes).shapes([x.shape])
        values = [ir.Value(*each) for each in zip(kinds, shapes, strict=True)]
        s.nodes.append(ir.Node(ir.DynamicLevels(axes), (x,), tuple(values), f"levels_{axes}"))
        s.outputs += [ir.Port(f"{x.name}_{axes}_{v.dtype}", v) for v in values]
        return values

    image = levels(s.input("image", (B, 5, 6, 3)), 3)
    window = ((3, 3), (2, 1), (1, 2), ((1, 0), (2, 1)))
    shape = (B, 2, 5, 40)
    parts = weights(40, 3, 3, 3)
    conv = ir.DynamicConv(*window, 40, ir.RELU6)
    y = s.op(conv, [*image, *parts, s.weight(40)], shape, name="conv")
    s.op(conv, [*image, *parts, None, y], shape, name="onto")
    s.op(ir.DynamicConv(*window, 40), [*image, *parts[:2]], shape, I32, "sums")
    given = ir.constant(np.array([0.25, -7], np.float32), "given")
    s.op(ir.DynamicConv(*window, 40), [image[0], given, *parts[:2]], shape, I32, "by_one")
    line = levels(s.input("line", (B, 9, 8)), 2)
    conv = ir.DynamicConv((3,), (2,), (1,), ((0, 1),), 5, ir.Function(ir.Fn.TANH))
    s.op(conv, [*line, *weights(5, 3, 8), s.weight(5)], (B, 4, 5), name="along")
    rows = s.input("rows", (B, 7, 20))
    parts = weights(33, 20)
    for axes in (1, 2):
        found = levels(rows, axes)
        dense = ir.DynamicDense(33, ir.RELU)
        s.op(dense, [*found, *parts, s.weight(33)], (B, 7, 33), name=f"dense_{axes}")
        s.op(ir.DynamicDense(33), [*found, *parts[:2]], (B, 7, 33), I32, f"whole_{axes}")
    return s.graph()


def transposed() -> ir.Graph:
    """Returns transposed convolutions, and no other product."""
    s = Sketch("transposed")
    for pixels, outputs, channels, groups in [(8, 3, 4, 1), (6, 40, 24, 1), (4, 8, 16, 2)]:
        x = s.input(f"x{channels}", (B, pixels, pixels, channels))
        weights = s.weight(2, 2, outputs // groups, channels)
        conv = ir.ConvTranspose((2, 2), (1, 1), ((0, 0), (0, 0)), groups)
        s.op(conv, [x, weights, s.weight(outputs)], (B, 2 * pixels, 2 * pixels, outputs))
    return s.graph()


MORE = (chosen, drawn, each, quantized, ranged, sizes, systems, written)
