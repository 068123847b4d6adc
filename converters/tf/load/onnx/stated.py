"""Shapes that an ONNX file states for what its nodes give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

# Dimensions that are all numbers.
Fixed: TypeAlias = tuple[int, ...]

# The axes and elements of the largest input that may decide a size.
_MOST_AXES, _MOST_ELEMENTS = 1, 16
# Operators whose result has the shape of the first operand.
_ALIKE = frozenset(
    [
        *("Abs", "Acos", "Asin", "Atan", "BitwiseNot", "Cast", "CastLike", "Ceil", "Cos", "Cosh"),
        *("Elu", "Erf", "Exp", "Floor", "Identity", "Log", "Neg", "Not", "Reciprocal", "Relu"),
        *("Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Sqrt", "Tan", "Tanh"),
    ]
)
# Operators whose operands broadcast.
_TOGETHER = frozenset(["Add", "Div", "Max", "Min", "Mod", "Mul", "Pow", "Sub"])


def stated_shapes(model: Any, onnx: Any) -> Mapping[str, Fixed]:
    """Returns the shapes of tensors of a graph by name, where all dimensions are numbers.

    They are what the file says, what follows from it forwards, and what follows from a result for
    the operand of an element-wise operator. A file without inputs that may decide a size has none,
    unless it has a loop.

    Args:
        model: The model.
        onnx: The package.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    turns = any(node.op_type == "Loop" for node in model.graph.node)
    if not turns and not any(_is_short(v) for v in model.graph.input if v.name not in constants):
        return {}
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # It is more than onnx can infer.
        graph = model.graph
    found = {tensor.name: tuple(map(int, tensor.dims)) for tensor in graph.initializer}
    for value in (*graph.value_info, *graph.input, *graph.output):
        shape = _fixed(value)
        if shape is not None:
            found[value.name] = shape
    for node in reversed(graph.node):
        _backwards(node, found)
    return found


def _backwards(node: Any, found: dict[str, Fixed]) -> None:
    """Takes the shape of a result for the operand that has it."""
    shape = found.get(node.output[0]) if len(node.output) == 1 else None
    if shape is None or node.domain not in ("", "ai.onnx"):
        return
    if node.op_type in _ALIKE:
        found.setdefault(node.input[0], shape)
    if node.op_type in _TOGETHER and len(node.input) == 2:
        for one, other in (node.input, node.input[::-1]):
            if found.get(other) == ():
                found.setdefault(one, shape)


def _fixed(value: Any) -> Fixed | None:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in tensor.shape.dim):
        return None
    return tuple(int(dim.dim_value) for dim in tensor.shape.dim)


def _is_short(value: Any) -> bool:
    """Returns whether an input may decide a size or an axis: it is a short list, or a number."""
    shape = _fixed(value)
    return shape is not None and len(shape) <= _MOST_AXES and math.prod(shape) <= _MOST_ELEMENTS
