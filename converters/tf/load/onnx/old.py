"""Files of ONNX's operators before version 7, which the `onnx` package converts to version 7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# The oldest version that is read as it is, of 2017.
OLDEST = 7
# The attribute that keeps along which axis an old operator broadcasts its second operand.
AXIS = "axis_of_old_broadcast"
# Version 7 lets them broadcast as NumPy does, and changed nothing else. The converter of versions
# refuses them for open dimensions and for an axis.
_BROADCAST = frozenset(
    ["Add", "And", "Div", "Equal", "Gemm", "Greater", "Less", "Mul", "Or", "PRelu", "Pow", "Sub"]
) | {"Xor"}
# A domain of which the converter of versions knows nothing.
_ASIDE = "tf2rust.old"


def renewed(model: Any, onnx: Any) -> Any:
    """Returns a model in operators of version 7.

    Args:
        model: The model, which changes.
        onnx: The package.

    Raises:
        Exception: The converter of versions has no counterpart for an operator.
    """
    for node in _nodes(model.graph):
        if node.domain in ("", "ai.onnx") and node.op_type in _BROADCAST:
            node.domain = _ASIDE
            given = {a.name: a for a in node.attribute}
            if "axis" in given:
                given["axis"].name = AXIS
            for name in {"broadcast", "consumed_inputs"}.intersection(given):
                node.attribute.remove(given[name])
            if node.op_type == "PRelu":  # A slope for each channel.
                node.attribute.append(onnx.helper.make_attribute(AXIS, 1))
    model.opset_import.append(onnx.helper.make_opsetid(_ASIDE, 1))
    found = onnx.version_converter.convert_version(model, OLDEST)
    for node in _nodes(found.graph):
        if node.domain == _ASIDE:
            node.domain = ""
    return found


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
