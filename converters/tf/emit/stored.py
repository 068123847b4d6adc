"""Tensors in fewer bits, as a file has them and converters/runtime/src/stored.rs reads them."""

from __future__ import annotations

import numpy as np

from converters.tf import ir
from converters.tf.passes.rounded import as_bytes, of_bytes

_HALVES = 1
_BYTES = 2
_ALIGN = 16


def record(data: ir.Array) -> bytes | None:
    """Returns the record of a tensor, or nothing if no smaller one gives it back bit for bit."""
    if data.dtype != np.float32 or data.ndim < 2:
        return None
    bits = data.view(np.uint32)
    parts = as_bytes(data)
    if parts is not None:
        whole, factors = parts
        if np.array_equal(of_bytes(whole, factors).reshape(data.shape).view(np.uint32), bits):
            body = factors.astype("<f4").tobytes() + whole.tobytes()
            return _record(_BYTES, data.size, len(factors), body)
    with np.errstate(over="ignore"):
        halves = data.astype(np.float16)
    if np.array_equal(halves.astype(np.float32).view(np.uint32), bits):
        return _record(_HALVES, data.size, 0, halves.astype("<f2").tobytes())
    return None


def _record(form: int, elements: int, columns: int, body: bytes) -> bytes:
    head = b"".join(number.to_bytes(4, "little") for number in (form, elements, columns, 0))
    return head + body + bytes(-len(body) % _ALIGN)
