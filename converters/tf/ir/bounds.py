"""How large a size can be in which there are numbers that a call counts."""

from __future__ import annotations

from typing import Any, cast

from converters.tf.ir.expressions import (
    Above,
    Floor,
    OpenSizeError,
    Size,
    Unknown,
    counted,
    maximum,
)


def most_of(size: int) -> int:
    """Returns a size that is at least as large, without numbers that a call counts.

    Raises:
        OpenSizeError: None is found.
    """
    if not isinstance(size, Size):
        return size
    total: Any = 0
    for product, factor in size.terms:
        if factor < 0 and any(counted(Size({(atom,): 1})) for atom in product):
            if not all(isinstance(atom, Unknown) for atom in product):
                raise OpenSizeError(f"how large {size!s} can be is not known")
            continue
        part: Any = factor
        for atom in product:
            if isinstance(atom, Floor):
                part = part * (cast(Any, most_of(cast(int, atom.of))) // atom.by)
            elif isinstance(atom, Above):
                part = part * maximum(most_of(cast(int, atom.of)), 0)
            else:
                one = Size({(atom,): 1})
                part = part * (one if atom.most is None else most_of(atom.most))
        total = total + part
    return cast(int, total)
