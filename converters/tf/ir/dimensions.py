"""Dimensions of inputs as a file has them: numbers, names, expressions, or `None` for the batch."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from converters.tf.ir.agreeing import agreed
from converters.tf.ir.expressions import Size, maximum, multiple, names_of, unknown

# A dimension of an input: `None` is the batch, a text is a name or an expression.
Text: TypeAlias = int | str | None
# Characters of an expression; a file may hold any text.
_LONGEST = 200


def parsed(text: str) -> int:
    """Returns the size that an expression of names is: `past + 2*steps`.

    Raises:
        ValueError: It is not a sum, difference, product, quotient or `max(a, b)` of names and
            numbers; only a name has a quotient that leaves nothing, `height/32`.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"an expression of {len(text)} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as err:
        raise ValueError(f"no expression of sizes: {text}") from err
    return cast(int, _value(tree, text))


def _value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):
        return unknown(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value < 1 << 31:
        return node.value
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "max" and len(node.args) == 2:
        left, right = (_value(part, text) for part in node.args)
        return maximum(left, right)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, text), _value(node.right, text)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and type(right) is int and right > 0:
            return left // right
        named = isinstance(left, Size) and left.name
        if isinstance(node.op, ast.Div) and named and type(right) is int and right > 0:
            return multiple(named, right) // right
    raise ValueError(f"no expression of sizes: {text}")


def names(text: Text) -> tuple[str, ...]:
    """Returns the open dimensions that a dimension names, in order."""
    if not isinstance(text, str):
        return ()
    size = parsed(text)
    return tuple(names_of(size)) if isinstance(size, Size) else ()


def all_names(shapes: Sequence[tuple[Text, ...]]) -> list[str]:
    """Returns the open dimensions that shapes name, each once, in order."""
    return list(dict.fromkeys(name for shape in shapes for dim in shape for name in names(dim)))


def joined(shapes: Sequence[tuple[Text, ...]], a: Size, b: Size) -> list[tuple[Text, ...]]:
    """Returns shapes in which two sizes are the same, which `agreed` said they can be."""
    order = all_names(shapes)
    if a.name and b.name:
        first, second = sorted((a.name, b.name), key=order.index)
        return replaced(shapes, {second: unknown(first)})
    return replaced(shapes, agreed(a, b))


def replaced(
    shapes: Sequence[tuple[Text, ...]], sizes: Mapping[str, int]
) -> list[tuple[Text, ...]]:
    """Returns shapes with numbers or sizes in the places of open dimensions."""

    def dim(text: Text) -> Text:
        if not isinstance(text, str):
            return text
        size = parsed(text)
        size = size.with_atoms(sizes) if isinstance(size, Size) else size
        return str(size) if isinstance(size, Size) else size

    return [tuple(map(dim, shape)) for shape in shapes]
