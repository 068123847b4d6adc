"""How TFLite stores constants."""

from __future__ import annotations

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf.ir import Array


class Damaged(Exception):  # noqa: N818 - it names a finding, not a failure of the program
    """A file is not as the format says; the message says where."""


_TYPES = {v: k.lower() for k, v in vars(schema.TensorType).items() if isinstance(v, int)}
# Where NumPy has a type of the same name.
_PLAIN = frozenset(
    [
        "float32",
        "float16",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "complex64",
    ]
)


def element_name(number: int) -> str:
    """Returns the NumPy name of an element type, or TFLite's where NumPy has none."""
    name = _TYPES.get(number)
    if name is None:
        raise Damaged(f"element type {number}")
    return "int8" if name == "int4" else name


def array_of(
    content: bytes, number: int, name: str, shape: tuple[int, ...]
) -> tuple[Array | None, str]:
    """Returns a constant, and why there is none."""
    kind = _TYPES.get(number, "")
    count = int(np.prod(shape, dtype=np.int64))
    if kind == "int4":
        return _halves(content, name, count).reshape(shape), ""
    if kind == "bfloat16":
        wide = _checked(content, np.dtype("<u2"), name, count).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(shape), ""
    if kind == "bool":
        return (_checked(content, np.dtype("u1"), name, count) != 0).reshape(shape), ""
    if kind not in _PLAIN:
        return None, f"its elements are of the type {kind}"
    dtype = np.dtype(kind).newbyteorder("<")
    data = _checked(content, dtype, name, count).astype(np.dtype(kind))
    return data.reshape(shape), ""


def empty(dtype: str, shape: tuple[int, ...]) -> Array | None:
    """Returns a constant without elements, or nothing if NumPy has no such type."""
    return np.zeros(shape, dtype) if dtype in _PLAIN or dtype == "bool" else None


def _checked(content: bytes, dtype: np.dtype[np.generic], name: str, count: int) -> Array:
    if len(content) != count * dtype.itemsize:
        what = f"{len(content)} bytes for {count} elements of {dtype.name}"
        raise Damaged(f"the tensor {name!r} has {what}")
    return np.frombuffer(content, dtype)


def _halves(content: bytes, name: str, count: int) -> Array:
    """Returns numbers of four bits, the first of two in the low ones."""
    both = _checked(content, np.dtype("u1"), name, (count + 1) // 2)
    low, high = both & 15, both >> 4
    numbers = np.stack([low, high], 1).reshape(-1)[:count].astype(np.int8)
    return np.where(numbers > 7, numbers - 16, numbers).astype(np.int8)


def real(data: Array, scale: Array, zero_point: Array, axis: int) -> Array:
    """Returns the float32 numbers that quantized ones stand for."""
    shape = [1] * data.ndim
    if scale.size > 1:
        shape[axis] = scale.size
    wide = data.astype(np.float64) - zero_point.reshape(shape if scale.size > 1 else -1)
    found = wide * scale.reshape(shape if scale.size > 1 else -1)
    return found.astype(np.float32).reshape(data.shape)
