"""Memory of packed matrices, as in kernels/src/gemm."""

from __future__ import annotations

import math

from converters.tf.ir.expressions import is_open, surely

# Vectors are 8 or 16 numbers wide, as the processor has it: scratch memory must do for both.
LANES = (8, 16)
# Up to here rows are multiplied as they are.
DIRECT_ROWS = 4
_PACKED_ROWS = 512


def packed_len(lanes: int, k: int, n: int) -> int:
    """Returns the elements of a packed matrix of k rows and n columns, at most where n is open."""
    if is_open(n):
        return k * (n + lanes - 1)
    return k * (-(-n // lanes) * lanes)


def packed_rows(k: int) -> int:
    """Returns the rows of a matrix that are packed at a time: those of some equal parts.

    Where k is open, all of them: never fewer.
    """
    if is_open(k):
        return k
    each = math.ceil(k / math.ceil(k / _PACKED_ROWS))
    return min(math.ceil(each / 16) * 16, k)


def plain_product(m: int, n: int, k: int) -> int:
    """Returns the scratch elements of a product with a matrix that is not packed, at most.

    Args:
        m: Rows of the first matrix.
        n: Columns of the second one.
        k: Its rows.
    """
    if n <= 1 or k == 0 or surely(lambda: m <= DIRECT_ROWS):
        return 0
    return packed_len(16, packed_rows(k), n)
