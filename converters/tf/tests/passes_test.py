"""The passes and the arithmetic of dimensions on graphs made by hand; no TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from converters.tf import ir
from converters.tf.ir import Batch, BinaryKind, Fn
from converters.tf.ir.build import Builder, ShapeError, broadcast
from converters.tf.ir.interpret import interpret
from converters.tf.ir.symbolic import (
    NotSymbolicError,
    add,
    complete,
    divide,
    larger,
    multiply,
    subtract,
)
from converters.tf.passes.chains import with_chains
from converters.tf.passes.parallel import with_joined_products
from converters.tf.passes.pipeline import optimize
from converters.tf.passes.scaled import with_scaled_products

B = Batch()


def _input(*shape: ir.Dim) -> ir.Value:
    return ir.Value(ir.DType.F32, shape, None, "x")


def _graph(x: ir.Value, build: Builder, *results: ir.Value) -> ir.Graph:
    outputs = tuple(ir.Port(f"y{i}", v) for i, v in enumerate(results))
    return ir.Graph("g", (ir.Port("x", x),), outputs, tuple(build.nodes))


def _same(graph: ir.Graph) -> ir.Graph:
    """Returns the optimized graph after comparing it with the plain one."""
    shape = ir.shape_at(graph.inputs[0].value.shape, 3)
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    better = optimize(graph)
    before, after = interpret(graph, {"x": x}), interpret(better, {"x": x})
    for name, value in before.items():
        np.testing.assert_allclose(after[name], value, rtol=1e-5, atol=1e-6)
    return better


def _constant(*shape: int) -> ir.Value:
    data = np.random.default_rng(2).normal(size=shape)
    return ir.constant(data.astype(np.float32), "c")


def test_scale_and_shift_go_into_a_dense_layer() -> None:
    x, b = _input(B, 4), Builder()
    y = b.mat_mul(x, _constant(4, 3))
    y = b.binary(BinaryKind.MUL, y, _constant(3))
    y = b.binary(BinaryKind.ADD, y, _constant(3))
    y = b.unary(Fn.CLAMP, y, 0.0, 6.0)
    (node,) = _same(_graph(x, b, y)).nodes
    assert node.op == ir.Dense(ir.RELU6)


@pytest.mark.parametrize("kind", [BinaryKind.MUL, BinaryKind.DIV])
def test_what_is_rounded_is_computed_as_it_is_written(kind: BinaryKind) -> None:
    """Integers are multiplied exactly; another factor would round halves elsewhere."""
    x, b = _input(B, 4), Builder()
    whole = ir.constant(np.arange(12, dtype=np.float32).reshape(4, 3), "k")
    y = b.binary(kind, b.mat_mul(x, whole), ir.constant(np.array(0.3, np.float32), "s"))
    first, second = optimize(_graph(x, b, b.unary(Fn.ROUND, y))).nodes
    assert first.operand(1) is whole
    assert second.op == ir.Binary(kind, ir.Function(Fn.ROUND))
    assert second.present[1].data == np.float32(0.3)


def test_a_value_that_is_read_twice_keeps_its_node() -> None:
    x, b = _input(B, 4), Builder()
    y = b.mat_mul(x, _constant(4, 3))
    z = b.binary(BinaryKind.ADD, y, _constant(3))
    assert len(_same(_graph(x, b, y, z)).nodes) == 2


def test_a_residual_joins_the_later_product() -> None:
    x, b = _input(B, 4), Builder()
    y = b.mat_mul(x, _constant(4, 4))
    y = b.binary(BinaryKind.ADD, x, y)
    (node,) = _same(_graph(x, b, b.unary(Fn.TANH, y))).nodes
    assert node.operand(3) is x
    assert node.op == ir.Dense(ir.Function(Fn.TANH))


def test_equal_work_is_done_once_and_dead_work_never() -> None:
    x, b = _input(B, 4), Builder()
    b.unary(Fn.SIN, x)
    y = b.binary(BinaryKind.MUL, b.unary(Fn.EXP, x), b.unary(Fn.EXP, x))
    assert len(_same(_graph(x, b, y)).nodes) == 2


def test_equal_ops_with_other_shapes_stay_apart() -> None:
    x, b = _input(B, 1), Builder()
    results = [b.broadcast_to(x, (B, n)) for n in (2, 3)]
    assert len(_same(_graph(x, b, *results)).nodes) == 2


def test_reshapes_and_transposes_cancel() -> None:
    x, b = _input(B, 4, 6), Builder()
    y = b.transpose(b.transpose(x, [0, 2, 1]), [0, 2, 1])
    y = b.reshape(b.reshape(y, (B, 24)), (B, 4, 6))
    assert _same(_graph(x, b, y)).nodes == ()


def test_a_pooled_border_is_not_a_convolutions_border() -> None:
    x, b = _input(B, 5, 2), Builder()
    padded = b.pad(x, [(0, 0), (1, 1), (0, 0)])
    kernel = _constant(3, 2, 4)
    y = b.emit(ir.Conv((1,), (1,), ((0, 0),)), [padded, kernel], (B, 5, 4))
    pool = ir.Pool(ir.PoolKind.MAX, (2,), (1,), ((0, 0),))
    z = b.emit(pool, [padded], (B, 6, 2))
    kinds = [type(n.op).__name__ for n in _same(_graph(x, b, y, z)).nodes]
    assert sorted(kinds) == ["Conv", "Pad", "Pool"]


def test_zeros_around_an_image_hide_below_what_is_not_negative() -> None:
    x, b = _input(B, 5, 4, 2), Builder()
    pool = ir.Pool(ir.PoolKind.MAX, (3, 3), (2, 2), ((0, 0), (0, 0)))
    for low, high, kinds in [
        (0.0, float("inf"), ["Pool", "Unary"]),
        (0.0, 6.0, ["Pool", "Unary"]),
        (-1.0, 1.0, ["Pad", "Pool", "Unary"]),
    ]:
        b = Builder()
        y = b.unary(Fn.CLAMP, x, low, high)
        y = b.pad(y, [(0, 0), (1, 1), (1, 2), (0, 0)])
        nodes = _same(_graph(x, b, b.emit(pool, [y], (B, 3, 3, 2)))).nodes
        assert sorted(type(n.op).__name__ for n in nodes) == kinds
    b = Builder()
    y = b.pad(x, [(0, 0), (1, 1), (1, 2), (0, 0)])
    assert len(_same(_graph(x, b, b.emit(pool, [y], (B, 3, 3, 2)))).nodes) == 2


def test_a_window_of_zeros_alone_keeps_them() -> None:
    x, b = _input(B, 5, 2), Builder()
    pool = ir.Pool(ir.PoolKind.MAX, (2,), (1,), ((0, 0),))
    y = b.pad(b.unary(Fn.CLAMP, x, 0.0, 6.0), [(0, 0), (2, 1), (0, 0)])
    assert len(_same(_graph(x, b, b.emit(pool, [y], (B, 7, 2)))).nodes) == 3


def test_a_factor_and_its_range_are_one_op() -> None:
    x, b = _input(B, 3, 4), Builder()
    y = b.binary(BinaryKind.MUL, x, _constant(4))
    (node,) = _same(_graph(x, b, b.unary(Fn.CLAMP, y, 0.0, 6.0))).nodes
    assert node.op == ir.ScaleShift(ir.RELU6)


@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB])
@pytest.mark.parametrize("slope", [_constant(3), ir.constant(np.full(3, 0.3, np.float32), "c")])
def test_a_slope_for_what_is_negative_is_one_op(kind: BinaryKind, slope: ir.Value) -> None:
    x, b = _input(B, 2, 3), Builder()
    below = b.unary(Fn.CLAMP, b.unary(Fn.NEG, x), 0.0, float("inf"))
    above = b.unary(Fn.CLAMP, x, 0.0, float("inf"))
    y = b.binary(kind, above, b.binary(BinaryKind.MUL, slope, below))
    (node,) = _same(_graph(x, b, y)).nodes
    assert slope.data is not None
    if slope.data[0] != slope.data[1]:
        assert node.op == ir.Binary(BinaryKind.PRELU)
    else:
        number = float(slope.data[0]) * (-1 if kind is BinaryKind.ADD else 1)
        assert node.op == ir.Unary(ir.Function(Fn.LEAKY_RELU, (number,)))


def test_ramps_of_two_values_are_no_slope() -> None:
    x, b = _input(B, 3), Builder()
    below = b.unary(Fn.CLAMP, b.unary(Fn.NEG, b.unary(Fn.SIN, x)), 0.0, float("inf"))
    above = b.unary(Fn.CLAMP, x, 0.0, float("inf"))
    y = b.binary(BinaryKind.SUB, above, b.binary(BinaryKind.MUL, below, _constant(3)))
    kinds = {n.op.kind for n in _same(_graph(x, b, y)).nodes if isinstance(n.op, ir.Binary)}
    assert BinaryKind.PRELU not in kinds


def _scaled(x: ir.Value, build: Builder, *results: ir.Value) -> list[str]:
    """Returns the names of the ops after products scale their operand, results compared."""
    graph = _graph(x, build, *results)
    better = with_scaled_products(graph)
    random = np.random.default_rng(1)
    data = random.normal(size=ir.shape_at(x.shape, 3)).astype(np.float32)
    before, after = interpret(graph, {"x": data}), interpret(better, {"x": data})
    for name, value in before.items():
        np.testing.assert_allclose(after[name], value, rtol=1e-5, atol=1e-6)
    return [type(n.op).__name__ for n in better.nodes]


def test_products_scale_their_operand() -> None:
    conv = ir.Conv((1, 1), (1, 1), ((0, 0), (0, 0)))
    for last in (None, ir.RELU6, ir.Function(Fn.TANH)):
        x, b = _input(B, 3, 2, 4), Builder()
        y = b.emit(ir.ScaleShift(last), [x, _constant(4), _constant(4)], x.shape)
        y = b.emit(conv, [y, _constant(1, 1, 4, 5), _constant(5), None], (B, 3, 2, 5))
        bounds = last is None or last.kind is Fn.CLAMP
        assert _scaled(x, b, y) == (["ScaledDense"] if bounds else ["ScaleShift", "Conv"])
    x, b = _input(B, 3, 2, 4), Builder()
    factor = b.emit(ir.Reduce(ir.ReduceKind.MEAN, (1, 2), True), [x], (B, 1, 1, 4))
    y = b.binary(BinaryKind.MUL, factor, x)
    y = b.emit(conv, [y, _constant(1, 1, 4, 4), None, x], x.shape)
    assert _scaled(x, b, y) == ["Reduce", "ScaledDense"]


def test_products_scale_nothing_that_others_read_or_that_is_no_row() -> None:
    x, b = _input(B, 3, 4), Builder()
    y = b.emit(ir.ScaleShift(), [x, _constant(4), _constant(4)], x.shape)
    z = b.emit(ir.Dense(), [y, _constant(4, 5)], (B, 3, 5))
    assert _scaled(x, b, y, z) == ["ScaleShift", "Dense"]
    x, b = _input(B, 3, 4), Builder()
    y = b.emit(ir.ScaleShift(), [x, _constant(4), _constant(4)], x.shape)
    y = b.emit(ir.Conv((2,), (1,), ((0, 0),)), [y, _constant(1, 4, 5)], (B, 2, 5))
    assert _scaled(x, b, y) == ["ScaleShift", "Conv"]
    x, b = _input(B, 1, 4), Builder()
    y = b.emit(ir.ScaleShift(), [x, _constant(4), _constant(4)], x.shape)
    y = b.emit(ir.Dense(), [y, _constant(4, 5)], (B, 1, 5))
    assert _scaled(x, b, y) == ["ScaleShift", "Dense"]
    x, b = _input(B, 3, 4), Builder()
    factor = b.emit(ir.Reduce(ir.ReduceKind.MEAN, (2,), True), [x], (B, 3, 1))
    y = b.binary(BinaryKind.MUL, x, factor)
    y = b.emit(ir.Dense(), [y, _constant(4, 5)], (B, 3, 5))
    assert _scaled(x, b, y) == ["Reduce", "Binary", "Dense"]


@pytest.mark.parametrize("shape", [(), (4,), (1, 4)])
def test_a_factor_may_have_few_axes(shape: tuple[int, ...]) -> None:
    for turned in (False, True):
        x, b = _input(B, 5, 4), Builder()
        known = _constant(*shape)
        operands = (known, x) if turned else (x, known)
        y = b.emit(ir.Binary(BinaryKind.MUL), operands, x.shape)
        y = b.mat_mul(y, _constant(4, 3))
        assert _scaled(x, b, y) == ["Binary", "Dense"]


def _heads(b: Builder, x: ir.Value, count: int, depth: int) -> ir.Value:
    return b.reshape(x, (*x.shape[:-1], count, depth))


def test_heads_stay_side_by_side() -> None:
    for causal in (False, True):
        x, b = _input(B, 5, 6), Builder()
        q, k, v = (
            b.transpose(_heads(b, b.mat_mul(x, _constant(6, 6)), 2, 3), [0, 2, 1, 3])
            for _ in range(3)
        )
        y = b.emit(ir.Attention(0.5, causal), [q, k, v], q.shape)
        z = b.transpose(y, [0, 2, 1, 3])
        graph = _same(_graph(x, b, z))
        kinds = [type(n.op).__name__ for n in graph.nodes]
        assert "Transpose" not in kinds
        assert graph.nodes[-1].op == ir.Attention(0.5, causal, beside=True)
        assert "Transpose" in [type(n.op).__name__ for n in _same(_graph(x, b, y)).nodes]


def test_products_that_an_attention_reads_are_one() -> None:
    x, b = _input(B, 5, 6), Builder()
    random = np.random.default_rng(4)
    sides = []
    for name, depth in (("q", 4), ("k", 4), ("v", 2)):
        data = random.normal(size=(6, 2 * depth)).astype(np.float32)
        operands = [x, ir.constant(data, f"mha/{name}/kernel"), ir.constant(data[0])]
        product = b.emit(ir.Dense(), operands, (B, 5, 2 * depth))
        sides.append(_heads(b, product, 2, depth))
    y = b.emit(ir.Attention(0.5, beside=True), sides, sides[2].shape)
    graph = _graph(x, b, y)
    joined = with_joined_products(graph)
    kinds = [type(n.op).__name__ for n in joined.nodes]
    assert kinds == ["Dense", *["Slice"] * 3, *["Reshape"] * 3, "Attention"]
    assert joined.nodes[0].layer == "mha/q_k_v"
    data = np.random.default_rng(1).normal(size=(3, 5, 6)).astype(np.float32)
    before, after = interpret(graph, {"x": data}), interpret(joined, {"x": data})
    np.testing.assert_allclose(after["y0"], before["y0"], rtol=1e-5, atol=1e-6)
    # Another reader needs a result of its own.
    first = b.nodes[0].output
    kinds = [type(n.op).__name__ for n in with_joined_products(_graph(x, b, y, first)).nodes]
    assert kinds.count("Dense") == 2


def test_a_residual_joins_a_product_through_a_reshape() -> None:
    x, b = _input(B, 3, 4), Builder()
    y = b.mat_mul(b.reshape(x, (ir.Batch(3), 4)), _constant(4, 4))
    y = b.binary(BinaryKind.ADD, x, b.reshape(y, (B, 3, 4)))
    kinds = [type(n.op).__name__ for n in _same(_graph(x, b, y)).nodes]
    assert sorted(set(kinds)) == ["Dense", "Reshape"]


def test_constants_are_computed_now() -> None:
    b = Builder()
    y = b.binary(BinaryKind.ADD, _constant(3), b.scalar(1, ir.DType.F32))
    assert y.is_constant
    assert b.nodes == []


def test_a_loop_is_written_out_without_what_nobody_reads() -> None:
    x = _input(B, 2)
    turn = ir.Value(ir.DType.I32, ())
    kept, unused = _input(B, 2), _input(B, 2)
    inner = Builder()
    doubled = inner.binary(BinaryKind.ADD, kept, kept)
    wasted = inner.unary(Fn.SIN, unused)
    body = ir.Graph(
        "body",
        tuple(ir.Port(n, v) for n, v in (("i", turn), ("a", kept), ("b", unused))),
        (ir.Port("a", doubled), ir.Port("b", wasted)),
        tuple(inner.nodes),
    )
    b = Builder()
    y, _ = b.emit_many(ir.Loop(3, body), [x, x], [(x.dtype, x.shape)] * 2)
    kinds = [type(n.op).__name__ for n in _same(_graph(x, b, y)).nodes]
    assert kinds == ["Binary"] * 3


def test_dimensions() -> None:
    assert multiply(Batch(2), 3) == Batch(6)
    assert multiply(0, B) == 0
    assert divide(Batch(6), Batch(2)) == 3
    assert add(B, Batch(2)) == Batch(3)
    assert subtract(Batch(3), Batch(3)) == 0
    assert larger(1, B) == B
    assert complete((-1, 4), Batch(12)) == (Batch(3), 4)
    assert complete((B, -1), Batch(12)) == (B, 12)
    for wrong in (
        lambda: multiply(B, B),
        lambda: divide(B, 2),
        lambda: add(B, 1),
        lambda: larger(2, B),
        lambda: complete((-1, 5), Batch(12)),
    ):
        with pytest.raises(NotSymbolicError):
            wrong()
    with pytest.raises(ValueError, match="5 elements out of 6"):
        complete((5,), 6)


def test_broadcasting() -> None:
    assert broadcast((B, 1, 3), (4, 1)) == (B, 4, 3)
    with pytest.raises(ShapeError):
        broadcast((B, 3), (2, 3))


def _expanded(size: int, residual: bool = False, read_twice: bool = False) -> list[str]:
    """Returns the names of the ops of an expansion, by channel and back, results compared."""
    x, b = _input(B, size, 64, 2), Builder()
    shape: ir.Shape = (B, size, 64, 128)
    one = ir.Conv((1, 1), (1, 1), ((0, 0), (0, 0)), 1, ir.RELU6)
    wide = b.emit(one, [x, _constant(1, 1, 2, 128), _constant(128)], shape)
    if residual:
        wide = b.emit(one, [x, _constant(1, 1, 2, 128), None, wide], shape)
    halves = ir.Conv((2, 2), (1, 1), ((0, 1), (0, 1)), 128, ir.RELU)
    y = b.emit(halves, [wide, _constant(3, 3, 1, 128), None], (B, size // 2, 32, 128))
    y = b.emit(one, [y, _constant(1, 1, 128, 3), None], (B, size // 2, 32, 3))
    graph = _graph(x, b, *([y, wide] if read_twice else [y]))
    better = with_chains(graph)
    data = np.random.default_rng(1).normal(size=(1, size, 64, 2)).astype(np.float32)
    before, after = interpret(graph, {"x": data}), interpret(better, {"x": data})
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    return [type(n.op).__name__ for n in better.nodes]


def test_large_images_between_convolutions_are_not_there_as_a_whole() -> None:
    assert _expanded(16) == ["Chain", "Conv"]


def test_images_that_are_small_or_read_or_sums_stay() -> None:
    assert _expanded(14) == ["Conv"] * 3
    assert _expanded(16, read_twice=True) == ["Conv"] * 3
    assert _expanded(16, residual=True) == ["Conv"] * 4


def _products(width: int, read_twice: bool = False, rows: int = 1) -> list[str]:
    """Returns the names of the ops of a product of a row and of what reads it, results compared."""
    x, b = _input(B, 100) if rows == 1 else _input(ir.Batch(rows), 100), Builder()
    shape: ir.Shape = (x.shape[0], width)
    y = b.emit(ir.Dense(ir.RELU), [x, _constant(100, width), _constant(width)], shape)
    z = b.emit(ir.Dense(), [y, _constant(width, 156), None], (x.shape[0], 156))
    graph = _graph(x, b, *([z, y] if read_twice else [z]))
    better = with_chains(graph)
    data = np.random.default_rng(1).normal(size=(2 * rows, 100)).astype(np.float32)
    before, after = interpret(graph, {"x": data}), interpret(better, {"x": data})
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    return [type(n.op).__name__ for n in better.nodes]


def test_products_of_large_matrices_are_computed_together() -> None:
    assert _products(1024) == ["Chain"]


def test_products_that_are_small_or_read_or_of_more_rows_stay() -> None:
    assert _products(1023) == ["Dense"] * 2
    assert _products(1024, read_twice=True) == ["Dense"] * 2
    assert _products(1024, rows=2) == ["Dense"] * 2


def _kinds(graph: ir.Graph) -> list[str]:
    return [type(node.op).__name__ for node in graph.nodes]


def _rounded(b: Builder, x: ir.Value, most: float = 127.0) -> ir.Value:
    return b.unary(Fn.CLAMP, b.unary(Fn.ROUND, x), -most, most)


def test_conversions_that_change_nothing_vanish() -> None:
    x, b = _input(B, 4), Builder()
    y = b.cast(b.cast(_rounded(b, x), ir.DType.I8), ir.DType.F32)
    kernel = ir.constant(np.arange(12, dtype=np.float32).reshape(4, 3), "k")
    z = b.cast(b.reshape(b.cast(b.mat_mul(y, kernel), ir.DType.I32), (B, 1, 3)), ir.DType.F32)
    assert _kinds(_same(_graph(x, b, z))) == ["Unary", "Unary", "Dense", "Reshape"]


@pytest.mark.parametrize("case", ["plain", "unbounded", "wide", "half", "sum", "unsure"])
def test_conversions_that_change_something_stay(case: str) -> None:
    x, b = _input(B, 4), Builder()
    kind = ir.DType.I32
    y = x
    if case == "unbounded":
        y = b.unary(Fn.ROUND, x)
    elif case == "wide":
        kind, y = ir.DType.I8, _rounded(b, x, 128.0)
    elif case == "half":
        y = b.unary(Fn.CLAMP, b.unary(Fn.ROUND, x), -0.5, 127.0)
    elif case == "sum":
        y = b.mat_mul(_rounded(b, x), ir.constant(np.full((4, 2), 40000, np.float32), "k"))
    elif case == "unsure":
        y = b.mat_mul(_rounded(b, x), ir.constant(np.full((4, 2), 1.5, np.float32), "k"))
    z = b.cast(b.cast(y, kind), ir.DType.F32)
    # Bytes are reached by way of i32, there and back.
    count = 4 if kind is ir.DType.I8 else 2
    assert _kinds(_same(_graph(x, b, z))).count("Cast") == count


def test_tables_of_one_index_are_one() -> None:
    x, b = _input(B, 4), Builder()
    places = b.cast(b.unary(Fn.CLAMP, b.unary(Fn.ABS, x), 0.0, 6.0), ir.DType.I32)
    shorts = ir.constant(np.arange(-8, 6, dtype=np.int8).reshape(7, 2), "shorts")
    table = b.cast(b.gather(shorts, places, 0), ir.DType.F32)
    by_row = b.reshape(b.gather(_constant(7), places, 0), (B, 4, 1))
    columns = b.gather(b.gather(_constant(7, 3), places, 0), ir.constant(np.array([2, 0])), 2)
    y = b.binary(BinaryKind.SUB, b.binary(BinaryKind.DIV, table, by_row), columns)
    assert _kinds(_same(_graph(x, b, y))) == ["Unary", "Unary", "Cast", "Gather"]
    other = b.gather(_constant(7, 2), b.cast(b.unary(Fn.CLAMP, x, 0.0, 6.0), ir.DType.I32), 0)
    apart = _same(_graph(x, b, b.binary(BinaryKind.ADD, y, other)))
    assert _kinds(apart).count("Gather") == 2
