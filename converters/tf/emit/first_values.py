"""What a state holds before the first step, as Rust."""

from __future__ import annotations

from typing import Any

from converters.tf import ir
from converters.tf.emit.functions import float_literal

# Elements of a state that are literals of the crate, at most: the compiler takes one by one.
MOST = 1 << 16


def is_filled(data: ir.Array) -> bool:
    """Returns whether all elements are the same number."""
    return bool((data == data.ravel()[:1]).all())


def first_values(data: ir.Array | None) -> str | None:
    """Returns an expression of the elements, as an array of Rust; none if all are 0.

    Args:
        data: The elements; none for zeros.
    """
    if data is None or not data.any():
        return None
    flat = data.ravel()
    if is_filled(data):
        return f"[{_literal(flat[0])}; {data.size}]"
    return f"[{', '.join(map(_literal, flat))}]"


def _literal(value: Any) -> str:
    """Returns an element of an array as a literal that reads back as the same bits."""
    kind = value.dtype
    if kind == "bool":
        return "true" if value else "false"
    if kind.kind != "f":
        return str(int(value))
    text = float_literal(value)
    if kind != "float64":
        return text
    number = repr(float(value))
    return text.replace("f32::", "f64::") if "::" in text else number
