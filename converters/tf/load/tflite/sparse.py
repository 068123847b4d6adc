"""Constants of which TFLite stores only those elements, or blocks of them, that are not 0.

A tensor has its axes in an order of its own, blocks last; each axis is stored whole, or as the
places of its elements and where those of each row start. Source: TFLite's schema and
`FormatConverter`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.tf.ir import Array
from converters.tf.load.tflite.stored import Damaged

# Most elements of a tensor whose zeros are not in the file, 1 GiB of floats.
_MOST = 1 << 28


def places_of(sparsity: Any, name: str, shape: tuple[int, ...]) -> Array:
    """Returns where the stored elements are in the whole tensor, laid flat.

    Args:
        sparsity: A `SparsityParametersT`.
        name: The tensor.
        shape: Its shape.
    """
    order = [int(i) for i in _list(sparsity.traversalOrder)]
    blocks = [int(i) for i in _list(sparsity.blockMap)]
    axes = list(sparsity.dimMetadata or ())
    rank = len(shape)
    right = sorted(order) == list(range(rank + len(blocks))) and len(axes) == len(order)
    if not right or any(not 0 <= b < rank for b in blocks):
        raise Damaged(f"the sparse tensor {name!r} has the axes {order} and blocks {blocks}")
    total = int(np.prod(shape, dtype=np.int64))
    if total > _MOST:
        raise Damaged(f"the sparse tensor {name!r} has {total} elements; at most {_MOST} are known")
    found = np.zeros((1, 0), np.int64)
    for axis in axes:
        index = _expanded(axis, len(found), name, total)
        found = np.concatenate([found[index[:, 0]], index[:, 1:]], axis=1)
    place = np.zeros((len(found), rank), np.int64)
    sizes = {b: int(axes[order.index(rank + i)].denseSize) for i, b in enumerate(blocks)}
    for position, axis in enumerate(order):
        if axis >= rank:
            place[:, blocks[axis - rank]] += found[:, position]
        else:
            place[:, axis] += found[:, position] * sizes.get(axis, 1)
    if (place < 0).any() or (place >= np.asarray(shape)).any():
        raise Damaged(f"the sparse tensor {name!r} has an element outside of {shape}")
    return np.asarray(np.ravel_multi_index(tuple(place.T), shape))


def _expanded(axis: Any, rows: int, name: str, most: int) -> Array:
    """Returns of every element of an axis in which row, and where in it, it is."""
    if axis.format == 0:
        size = int(axis.denseSize)
        if size < 0 or size * rows > most:
            raise Damaged(f"the sparse tensor {name!r} has an axis of {size}")
        return np.stack([np.repeat(np.arange(rows), size), np.tile(np.arange(size), rows)], 1)
    segments, indices = (_list(v and v.values) for v in (axis.arraySegments, axis.arrayIndices))
    rising = len(segments) == rows + 1 and (np.diff(segments) >= 0).all()
    if not rising or segments[0] != 0 or segments[-1] != len(indices) or len(indices) > most:
        raise Damaged(f"the sparse tensor {name!r} has rows that end at {segments[:8].tolist()}")
    return np.stack([np.repeat(np.arange(rows), np.diff(segments)), indices], 1)


def _list(found: Any) -> Array:
    return np.asarray([] if found is None else found, np.int64).reshape(-1)


def whole(data: Array, places: Array, shape: tuple[int, ...]) -> Array:
    """Returns a tensor of its stored elements and zeros."""
    result = np.zeros(int(np.prod(shape, dtype=np.int64)), data.dtype)
    result[places] = data
    return result.reshape(shape)
