"""Lists of tensors that a loop writes, which TFLite's converter has taken apart.

A list is one tensor whose first axis counts its elements. Writing an element becomes a slice before
it, the element and a slice after it, joined; a list of one element becomes that element. Here they
are what they were again, so that recurrent layers are recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from converters.tf.load.saved_model.replay import Tensor


def written(x: Tensor, index: Tensor, item: Tensor) -> Tensor:
    """Returns a tensor with one row of its first axis replaced."""
    shape = x.shape.as_list()
    rows = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=_known(shape[1:]))
    rows = tf.raw_ops.TensorListSetItem(input_handle=rows, index=index, item=item)
    stacked = tf.raw_ops.TensorListStack(
        input_handle=rows,
        element_shape=_known(shape[1:]),
        element_dtype=x.dtype,
        num_elements=shape[0],
    )
    stacked.set_shape(shape)
    return stacked


def _known(shape: Sequence[int | None]) -> Tensor:
    return tf.constant([-1 if d is None else d for d in shape], tf.int32)


def joined(parts: Sequence[Tensor], axis: int) -> Tensor | None:
    """Returns the list that a concatenation writes an element of, or nothing if it does not."""
    if axis != 0 or len(parts) != 3 or parts[1].shape.rank is None:
        return None
    before, item, after = parts
    if before.op.type != "Slice" or after.op.type != "Slice" or item.shape[0] != 1:
        return None
    x, start, size = before.op.inputs
    other, begin, rest = after.op.inputs
    if other is not x or x.shape[:1] == [None] or x.shape[1:] != item.shape[1:]:
        return None
    index, following = _first(size), _first(begin)
    whole = tf.get_static_value(start), tf.get_static_value(rest)
    if index is None or following is None or any(w is None for w in whole):
        return None
    others = (_others(size, -1), _others(begin, 0), not whole[0].any(), (whole[1] == -1).all())
    if not all(others) or not _follows(following, index):
        return None
    return written(x, index, tf.reshape(item, tf.shape(item)[1:]))


def _first(sizes: Tensor) -> Tensor | None:
    """Returns the number that a list of numbers is joined from at the front."""
    if sizes.op.type != "ConcatV2":
        return None
    first = sizes.op.inputs[0]
    if first.op.type != "Reshape" or first.shape != [1] or first.op.inputs[0].shape.rank:
        return None
    return first.op.inputs[0]


def _others(sizes: Tensor, wanted: int) -> bool:
    """Returns whether all numbers of a list after the first are the wanted one."""
    parts = [tf.get_static_value(t) for t in sizes.op.inputs[1:-1]]
    return all(p is not None and (p == wanted).all() for p in parts)


def _follows(number: Tensor, before: Tensor) -> bool:
    """Returns whether a number is another one and 1."""
    if number.op.type != "AddV2":
        return False
    a, b = number.op.inputs
    return (a is before and tf.get_static_value(b) == 1) or (
        b is before and tf.get_static_value(a) == 1
    )


def restored(argument: Tensor, result: Tensor) -> Tensor:
    """Returns what a loop's body gives for a value that it carries.

    A list of one element that nobody reads, and that an element replaces, is a list again.
    """
    one = argument.shape.rank and argument.shape[0] == 1 and not argument.consumers()
    if not one or result.op.type != "Reshape" or result.shape != argument.shape:
        return result
    item = result.op.inputs[0]
    if item.shape != argument.shape[1:]:
        return result
    return written(argument, tf.constant(0), item)
