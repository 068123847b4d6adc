"""Sets of element types that the runtime serves."""

from __future__ import annotations

from converters.tf.ir.values import DType

SINGLE = frozenset([DType.F32])
FLOATS = frozenset([DType.F32, DType.F64])
INTEGERS = frozenset([DType.I32, DType.I64])
NUMBERS = FLOATS | INTEGERS
SINGLE_AND_INTEGERS = SINGLE | INTEGERS
BOOLS = frozenset([DType.BOOL])


def unserved(what: str, found: DType, served: frozenset[DType]) -> list[str]:
    """Returns why an element type is refused, or nothing if it is served."""
    if found in served:
        return []
    return [f"{what} of {found}; supported: {', '.join(sorted(served))}"]
