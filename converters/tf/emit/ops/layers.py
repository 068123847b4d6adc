"""What emitters of layers share: ops with weights become a field, and a line that runs it."""

from __future__ import annotations

from converters.tf import ir
from converters.tf.emit.context import Context
from converters.tf.emit.statements import (
    LABEL,
    PARALLEL,
    WEIGHTS,
    Code,
    Name,
    Part,
    call,
    code,
    method,
)
from converters.tf.ir.sizes import numbers
from converters.tf.plan.arena import Step


def shapes_text(node: ir.Node, extra: str = "") -> str:
    """Returns the documentation of a layer: its shapes, and more words."""
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


def dense_parts(c: Context, node: ir.Node, activation: ir.Function | None) -> list[Part]:
    """Returns the arguments that make a product with the weights of a node."""
    kernel, bias = node.given(1), node.operand(2)
    *_, k, n = numbers(kernel.shape)
    sizes: list[Part] = [k, n]
    ends = (c.optional_tensor(bias), c.activation(activation))
    return [LABEL, WEIGHTS, (c.tensor(kernel), sizes), *ends, PARALLEL]


def copied_residual(c: Context, step: Step, out: Name) -> list[Code]:
    """Returns the copy of a residual, to which a product is added, if it is not there already."""
    if step.onto is not None:
        return []
    return [call("layout::copy", c.source(step.node.given(3)), out)]


def run_onto(c: Context, step: Step, layer: Name, x: Part, out: Name) -> Code:
    """Returns the statement of a product that is added to its residual."""
    if step.scratch.elements:
        return method(layer, "run_onto_with", x, out, c.scratch(step))
    return method(layer, "run_onto", x, out)


def axis(size: int, taps: int, stride: int, dilation: int, pad: tuple[int, int]) -> Code:
    """Returns one axis of a window: how many elements, how many taps, and how they move."""
    use = ["conv::Axis"]
    if (size, taps, stride, dilation, pad) == (1, 1, 1, 1, (0, 0)):
        return code("Axis::UNIT", use=use)
    found = code("Axis::new({}, {})", size, taps, use=use)
    if stride != 1:
        found = code("{}.stride({})", found, stride)
    if dilation != 1:
        found = code("{}.dilation({})", found, dilation)
    if pad != (0, 0):
        found = code("{}.padding({}, {})", found, *pad)
    return found
