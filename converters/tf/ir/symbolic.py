"""Small integer tensors whose elements may be open dimensions: shapes as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from converters.tf.ir.agreeing import differ, divisible
from converters.tf.ir.expressions import OpenSizeError, is_open, maximum, minimum, surely
from converters.tf.ir.values import Array, Batch, Dim, Shape

Objects: TypeAlias = npt.NDArray[Any]


class NotSymbolicError(Exception):
    """The result depends on the batch size in another way than as a multiple."""


@dataclass(frozen=True, eq=False)
class Symbol:
    """A tensor of dimensions.

    Attributes:
        dims: An object array of dimensions.
        dtype: NumPy name of the element type.
    """

    dims: Objects
    dtype: str = "int32"

    def known(self) -> Array | None:
        """Returns the numbers if no element is open."""
        if any(isinstance(d, Batch) or is_open(d) for d in self.dims.flat):
            return None
        return self.dims.astype(self.dtype)


def objects(data: Any) -> Objects:
    """Returns an object array of Python integers."""
    array = np.asarray(data)
    result = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        value = array[index]
        result[index] = value if isinstance(value, Batch) or is_open(value) else int(value)
    return result


def of_shape(shape: Shape, dtype: str = "int32") -> Symbol:
    """Returns a shape as a tensor."""
    dims = np.empty(len(shape), object)
    for index, dim in enumerate(shape):
        dims[index] = dim
    return Symbol(dims, dtype)


def multiply(a: Dim, b: Dim) -> Dim:
    """Returns the product.

    Raises:
        NotSymbolicError: Both depend on the batch, or the factor is negative.
    """
    if isinstance(a, Batch) and isinstance(b, Batch):
        raise NotSymbolicError("the square of the batch size")
    if isinstance(b, Batch):
        a, b = b, a
    if isinstance(a, Batch):
        if b == 0:
            return 0
        # A call refuses an open size below 1.
        if not isinstance(b, Batch) and not surely(lambda: b <= 0):
            return Batch(a.scale * b)
        raise NotSymbolicError("a negative multiple of the batch size")
    return b if isinstance(b, Batch) else a * b


def divide(a: Dim, b: Dim) -> Dim:
    """Returns the quotient if it is exact for every batch size.

    Raises:
        NotSymbolicError: It is not.
    """
    if isinstance(a, Batch) and isinstance(b, Batch):
        if a.scale % b.scale == 0:
            return a.scale // b.scale
    elif isinstance(a, Batch) and not isinstance(b, Batch):
        if not surely(lambda: b <= 0) and a.scale % b == 0:
            return Batch(a.scale // b)
    elif not isinstance(a, Batch) and not isinstance(b, Batch) and b != 0:
        return a // b
    raise NotSymbolicError(f"{a} / {b}")


def remainder(a: Dim, b: Dim) -> Dim:
    """Returns what a quotient that is rounded down leaves.

    Raises:
        NotSymbolicError: It depends on the batch.
    """
    if not isinstance(a, Batch) and not isinstance(b, Batch) and b != 0:
        return a % b
    raise NotSymbolicError(f"{a!s} % {b!s}")


def add(a: Dim, b: Dim) -> Dim:
    """Returns the sum.

    Raises:
        NotSymbolicError: It is not a multiple of the batch size.
    """
    if isinstance(a, Batch) and isinstance(b, Batch):
        return Batch(a.scale + b.scale)
    if a == 0:
        return b
    if b == 0:
        return a
    if not isinstance(a, Batch) and not isinstance(b, Batch):
        return a + b
    raise NotSymbolicError(f"{a} + {b}")


def subtract(a: Dim, b: Dim) -> Dim:
    """Returns the difference.

    Raises:
        NotSymbolicError: It is not a multiple of the batch size.
    """
    if not isinstance(a, Batch) and not isinstance(b, Batch):
        return a - b
    if a == b:
        return 0
    if b == 0:
        return a
    if isinstance(a, Batch) and isinstance(b, Batch) and a.scale > b.scale:
        return Batch(a.scale - b.scale)
    raise NotSymbolicError(f"{a} - {b}")


def larger(a: Dim, b: Dim) -> Dim:
    """Returns the larger dimension, a batch being at least 1.

    Raises:
        NotSymbolicError: It depends on the batch size which one that is.
    """
    if not isinstance(a, Batch) and not isinstance(b, Batch):
        return maximum(a, b)
    if isinstance(b, Batch):
        a, b = b, a
    if isinstance(a, Batch) and (b.scale if isinstance(b, Batch) else b) <= a.scale:
        return a
    if isinstance(a, Batch) and isinstance(b, Batch):
        return b
    raise NotSymbolicError(f"max({a}, {b})")


def smaller(a: Dim, b: Dim) -> Dim:
    """Returns the smaller dimension, a batch being at least 1.

    Raises:
        NotSymbolicError: It depends on the batch size which one that is.
    """
    if not isinstance(a, Batch) and not isinstance(b, Batch):
        return minimum(a, b)
    return b if larger(a, b) == a else a


def map_dims(function: Callable[..., Dim], *arrays: Any) -> Objects:
    """Applies a function of dimensions elementwise, with broadcasting."""
    result = np.frompyfunc(function, len(arrays), 1)(*(objects(a) for a in arrays))
    array = np.empty(np.shape(result), object)
    array[...] = result
    return array


def product(dims: Sequence[Dim]) -> Dim:
    """Returns the product of dimensions.

    Raises:
        NotSymbolicError: Two of them depend on the batch.
    """
    result: Dim = 1
    for dim in dims:
        result = multiply(result, dim)
    return result


def scale_of(dim: Dim) -> int:
    """Returns a dimension, or of what number a batch is the multiple."""
    return dim.scale if isinstance(dim, Batch) else dim


def complete(target: Sequence[Dim], total: Dim) -> Shape:
    """Returns a shape of `total` elements, its one `-1` replaced.

    Raises:
        NotSymbolicError: No dimension fits for every batch size.
        ValueError: The number of elements differs.
    """
    open_places = [i for i, d in enumerate(target) if d == -1]
    rest = product([d for d in target if d != -1])
    shape = list(target)
    if len(open_places) > 1:
        raise ValueError("a shape has more than one -1")
    if open_places:
        try:
            if is_open(total) and remainder(total, rest) != 0:
                raise NotSymbolicError(f"{total!s} / {rest!s}")
            shape[open_places[0]] = divide(total, rest)
        except (NotSymbolicError, OpenSizeError):
            divisible(scale_of(total), scale_of(rest))
            raise
    elif rest != total:
        if isinstance(total, Batch) is isinstance(rest, Batch):
            differ(scale_of(total), scale_of(rest))
        if isinstance(total, Batch) and not isinstance(rest, Batch):
            raise NotSymbolicError(f"{rest} elements out of {total}")
        raise ValueError(f"{rest} elements out of {total}")
    return tuple(shape)
