"""Tensors of the typed graph: element types, shapes, values and constants.

Tensors are dense and row-major. The rank of every tensor is known. A dimension is a number, an
expression over open dimensions (`expressions.py`), or a multiple of the batch size.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from converters.tf.ir.expressions import is_open

Array: TypeAlias = npt.NDArray[Any]


class DType(StrEnum):
    """Element types, by their Rust names. `bool` takes one byte, 0 or 1.

    `str` is text, of Python's strings or of bytes, which only inputs and outputs have.
    """

    F32 = "f32"
    F64 = "f64"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    BOOL = "bool"
    STR = "str"

    @property
    def numpy(self) -> np.dtype[Any]:
        """Returns the NumPy type."""
        return np.dtype(_NUMPY[self.value])

    @property
    def bytes(self) -> int:
        """Returns the size of an element."""
        return int(self.numpy.itemsize)

    @classmethod
    def of(cls, dtype: npt.DTypeLike) -> DType:
        """Returns the type of a NumPy type.

        Raises:
            ValueError: There is none.
        """
        kind = np.dtype(dtype)
        if kind.kind in "OSU":
            return cls.STR
        name = kind.name
        for ours, numpy in _NUMPY.items():
            if numpy == name:
                return cls(ours)
        raise ValueError(f"element type {name} has no counterpart; known: {', '.join(_NUMPY)}")


_NUMPY = {
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
    "str": "object",
}


# Up to here float32 holds every integer.
EXACT = 1 << 24


@dataclass(frozen=True)
class Batch:
    """`scale` times the batch size of the call; `scale` is positive."""

    scale: int = 1

    def __str__(self) -> str:
        """Returns `batch` or `batch*scale`."""
        if is_open(self.scale):
            text = str(self.scale)
            return f"batch*({text})" if " " in text else f"batch*{text}"
        return "batch" if self.scale == 1 else f"batch*{self.scale}"


Dim: TypeAlias = int | Batch
Shape: TypeAlias = tuple[Dim, ...]


def shape_at(shape: Shape, batch: int) -> tuple[int, ...]:
    """Returns the shape for a batch size; open dimensions stay open."""
    return tuple(d.scale * batch if isinstance(d, Batch) else d for d in shape)


def shape_text(shape: Shape) -> str:
    """Returns the shape as people read it: `[batch, 28, 28, 1]`."""
    return f"[{', '.join(str(d) for d in shape)}]"


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor. Two values are equal if they are one object.

    Attributes:
        dtype: Element type.
        shape: Dimensions, of which at most one is of the batch; a constant has numbers only.
        data: The elements of a constant.
        name: A wish for a variable's or field's name, in the model's words and any characters:
            the path of a weight (`block1/conv/kernel`), the layer of another value, or empty.
    """

    dtype: DType
    shape: Shape
    data: Array | None = None
    name: str = ""

    @property
    def rank(self) -> int:
        """Returns the number of dimensions."""
        return len(self.shape)

    @property
    def is_constant(self) -> bool:
        """Returns whether the elements are known."""
        return self.data is not None

    def __repr__(self) -> str:
        """Returns name, type and shape."""
        kind = "const" if self.is_constant else "value"
        return f"<{kind} {self.name} {self.dtype}{shape_text(self.shape)}>"


def constant(data: Array, name: str = "") -> Value:
    """Returns a constant value of an array."""
    data = np.ascontiguousarray(data).reshape(np.shape(data))
    shape: tuple[int, ...] = data.shape
    return Value(DType.of(data.dtype), shape, data, name)
