"""Matrix products, which are layers if they have weights, and ops on square matrices."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.functions import activation_words
from converters.tf.emit.ops.layers import (
    copied_residual,
    dense_parts,
    run_onto,
    shapes_text,
    weight_path,
)
from converters.tf.emit.statements import Code, Name, Part, call, code, method
from converters.tf.plan.arena import Step


def dense_field(c: Context, node: ir.Node) -> Name:
    """Returns the field of a product, made on its first use."""
    assert isinstance(node.op, ir.Dense)
    kernel, bias = node.given(1), node.operand(2)
    parts = dense_parts(c, node, node.op.activation)
    doc = shapes_text(node, activation_words(node.op.activation))
    key = (node.op, kernel, bias)
    return c.made(node, "dense::Dense", weight_path(node, 1), parts, doc, key)


def _dense(c: Context, step: Step) -> list[Code]:
    node = step.node
    layer = dense_field(c, node)
    out = c.layer_result(node, layer)
    x = c.source(node.input)
    if node.operand(3) is not None:
        return [*copied_residual(c, step, out), run_onto(c, step, layer, x, out)]
    if step.scratch.elements:
        return [method(layer, "run_with", x, out, c.scratch(step))]
    return [method(layer, "run", x, out)]


def _scaled_dense(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.ScaledDense)
    kernel, bias, residual, scale, shift = (node.operand(i) for i in range(1, 6))
    assert scale is not None
    parts = dense_parts(c, node, node.op.activation)
    doc = shapes_text(node, activation_words(node.op.activation))
    key = (ir.Dense(node.op.activation), kernel, bias)
    layer = c.made(node, "dense::Dense", weight_path(node, 1), parts, doc, key)
    out = c.layer_result(node, layer)
    ends = (c.source(node.input), c.source(scale))
    x = code("Scaled::by{}", ends, use=["dense::Scaled"])
    if shift is not None:
        x = code("{}.plus({})", x, c.tensor(shift))
    if node.op.bounds is not None:
        x = code("{}.within({})", x, c.activation(node.op.bounds))
    if residual is None:
        return [method(layer, "run_scaled", x, out)]
    return [*copied_residual(c, step, out), method(layer, "run_scaled_onto", x, out)]


def _mat_mul(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.MatMul)
    bias = node.operand(2)
    finish: Part = "mat_mul::Finish::NONE"
    if bias is not None or node.op.activation is not None:
        activation = c.activation(node.op.activation)
        template = "mat_mul::Finish { bias: {}, activation: {} }"
        finish = code(template, c.optional_source(bias), activation)
    transposed = (node.op.transpose_a, node.op.transpose_b)
    a, b = c.shaped(node.given(0)), c.shaped(node.given(1))
    out = c.result(node, "product")
    return [call("mat_mul::mat_mul", a, b, transposed, finish, (out, c.scratch(step)))]


def _whole_product(c: Context, step: Step) -> list[Code]:
    node = step.node
    a, b = node.given(0), node.given(1)
    groups = 1 if b.rank == 2 else c.product(a.shape[:-2])
    sizes = (groups, c.dim(a.shape[-1]), c.dim(b.shape[-1]))
    out = c.result(node, "product")
    return [call("whole::product", sizes, (c.source(a), c.source(b)), out)]


def _rows(c: Context, value: ir.Value) -> Part:
    """Returns an operand with the length of its rows."""
    return (c.source(value), c.dim(value.shape[-1]))


def _cholesky(c: Context, step: Step) -> list[Code]:
    node = step.node
    out = c.result(node, "factor")
    return [call("linear_system::cholesky", _rows(c, node.input), out)]


def _triangular(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.TriangularSolve)
    how = code(
        "Triangle { lower: {}, transposed: {} }",
        node.op.lower,
        node.op.transposed,
        use=["kernels::ops::matrix::linear_system::Triangle"],
    )
    matrix, right = _rows(c, node.input), _rows(c, node.given(1))
    out = c.result(node, "solution")
    return [call("linear_system::triangular_solve", matrix, how, right, out)]


def _solve(c: Context, step: Step) -> list[Code]:
    node = step.node
    assert isinstance(node.op, ir.Solve)
    matrix, right = _rows(c, node.input), _rows(c, node.given(1))
    out = (c.result(node, "solution"), c.scratch(step))
    return [call("linear_system::solve", matrix, node.op.transposed, right, out)]


def _log_determinant(c: Context, step: Step) -> list[Code]:
    node = step.node
    sign, log = (
        c.named(value, node, name)
        for value, name in zip(node.outputs, ("sign", "log_determinant"), strict=True)
    )
    out = (sign, log, c.scratch(step))
    return [call("linear_system::log_determinant", _rows(c, node.input), out)]


OPS: Mapping[type[ir.Op], Emit] = {
    ir.Cholesky: _cholesky,
    ir.Dense: _dense,
    ir.LogDeterminant: _log_determinant,
    ir.MatMul: _mat_mul,
    ir.ScaledDense: _scaled_dense,
    ir.Solve: _solve,
    ir.TriangularSolve: _triangular,
    ir.WholeProduct: _whole_product,
}
