"""An operator of a test: elements within a limit, which their sign and size lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

RUST = "soft_clip.rs"
ARGUMENTS = ("limit",)

Array = npt.NDArray[Any]


def shapes(
    operands: Sequence[tuple[Any, ...]], attributes: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Returns the shape of the only operand."""
    (x,) = operands
    return [x]


def compute(operands: Sequence[Array], attributes: Mapping[str, Any]) -> list[Array]:
    """Returns `limit * x / (limit + |x|)`."""
    (x,) = operands
    limit = attributes["limit"]
    return [limit * x / (limit + np.abs(x))]
