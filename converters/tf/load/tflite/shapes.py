"""Operators that move elements, reduce them, or make tensors."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from converters.tf.load.saved_model.replay import Refused, Tensor
from converters.tf.load.tflite.call import Call, Constant, Handler
from converters.tf.load.tflite.lists import joined, written


def _reshape(call: Call) -> Tensor:
    shape = call.tensor(1) if call.has(1) else [int(i) for i in call.option("newShape", ())]
    return tf.reshape(call.tensor(0), shape)


def _squeeze(call: Call) -> Tensor:
    axes = [int(i) for i in call.option("squeezeDims", ())]
    return tf.squeeze(call.tensor(0), axes or None)


def _axis(call: Call, index: int) -> Tensor | int:
    """Returns an axis, which a file has as a number or a list of one."""
    value = call.value(index)
    return call.ints(index)[0] if isinstance(value, Constant) else tf.reshape(value, [])


def _concatenation(call: Call) -> Tensor:
    if call.option("fusedActivationFunction"):
        raise Refused("an activation after it, which TFLite leaves out")
    parts, axis = call.tensors(), int(call.option("axis"))
    found = joined(parts, axis)
    return tf.concat(parts, axis) if found is None else found


def _strided_slice(call: Call) -> Tensor:
    begin, end = call.tensor(1), call.tensor(2)
    names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    options = ("beginMask", "endMask", "ellipsisMask", "newAxisMask", "shrinkAxisMask")
    masks = {f"{n}_mask": int(call.option(o)) for n, o in zip(names, options, strict=True)}
    return tf.raw_ops.StridedSlice(
        input=call.tensor(0),
        begin=begin,
        end=begin + end if call.option("offset", False) else end,
        strides=call.tensor(3),
        **masks,
    )


def _split(call: Call) -> list[Tensor]:
    return list(tf.split(call.tensor(1), int(call.option("numSplits")), _axis(call, 0)))


def _split_v(call: Call) -> list[Tensor]:
    sizes = call.tensor(1)
    return list(tf.split(call.tensor(0), sizes, _axis(call, 2), num=len(call.results)))


def _unpack(call: Call) -> list[Tensor]:
    return list(tf.unstack(call.tensor(0), int(call.option("num")), int(call.option("axis"))))


def _gather(call: Call) -> Tensor:
    table, axis = call.tensor(0, "embeddings"), int(call.option("axis"))
    return tf.gather(table, call.tensor(1), axis=axis, batch_dims=int(call.option("batchDims")))


def _mirror_pad(call: Call) -> Tensor:
    mode = "SYMMETRIC" if call.option("mode") else "REFLECT"
    return tf.pad(call.tensor(0), call.tensor(1), mode)


def _one_hot(call: Call) -> Tensor:
    indices, depth, on, off = call.tensors()
    return tf.one_hot(indices, depth, on, off, int(call.option("axis", -1)))


def _cumsum(call: Call) -> Tensor:
    flags = {"exclusive": bool(call.option("exclusive")), "reverse": bool(call.option("reverse"))}
    return tf.cumsum(call.tensor(0), _axis(call, 1), **flags)


def _products(call: Call) -> Tensor:
    """Returns products of sizes: so TFLite's converter writes matmuls over open shapes."""
    sizes, places = call.tensor(0), call.ints(1)
    if sizes.shape.rank != 1 or sizes.shape[0] != len(places):
        raise Refused("products of segments that are not sizes")
    products = [tf.constant(1, sizes.dtype)] * call.ints(2)[0]
    for number, place in enumerate(places):
        if 0 <= place < len(products):
            products[place] = products[place] * sizes[number]
    return tf.stack(products)


def _shape(call: Call) -> Tensor:
    return tf.shape(call.tensor(0), tf.as_dtype(call.results[0].dtype))


def _reduced(function: Callable[..., Tensor]) -> Handler:
    return lambda call: function(
        call.tensor(0), call.tensor(1), keepdims=bool(call.option("keepDims"))
    )


def _arg(function: Callable[..., Tensor]) -> Handler:
    def found(call: Call) -> Tensor:
        return function(call.tensor(0), _axis(call, 1), tf.as_dtype(call.results[0].dtype))

    return found


def _update(call: Call) -> Tensor:
    """Replaces a part of a tensor; one row of the first axis may be computed: a loop writes it."""
    x, part = call.tensor(0), call.tensor(1)
    shape, size = x.shape.as_list(), part.shape.as_list()
    start = call.value(2)
    if isinstance(start, Constant):
        places = [int(i) for i in start.data]
        if None in shape or None in size:
            raise Refused("a part of a tensor of an open shape is replaced")
        places = [min(max(p, 0), d - s) for p, d, s in zip(places, shape, size, strict=True)]
        return _pasted(x, part, places)
    if size[:1] != [1] or size[1:] != shape[1:]:
        raise Refused("a part is replaced at a computed place that is not a row")
    row = tf.clip_by_value(start[0], 0, shape[0] - 1)
    return written(x, row, tf.reshape(part, shape[1:]))


def _pasted(x: Tensor, part: Tensor, places: list[int]) -> Tensor:
    """Returns a tensor with a part replaced, which grows axis by axis."""
    whole = x.shape.as_list()
    for axis, place in enumerate(places):
        size = part.shape.as_list()
        if size[axis] == whole[axis]:
            continue
        start = [p if a > axis else 0 for a, p in enumerate(places)]
        end = place + size[axis]
        sides = []
        for first, count in ((0, place), (end, whole[axis] - end)):
            begin, extent = [*start], [*size]
            begin[axis], extent[axis] = first, count
            sides.append(tf.slice(x, begin, extent))
        part = tf.concat([sides[0], part, sides[1]], axis)
    return part


def _sparse_to_dense(call: Call) -> Tensor:
    indices, shape, values, default = call.tensors()
    return tf.raw_ops.SparseToDense(
        sparse_indices=indices, output_shape=shape, sparse_values=values, default_value=default
    )


def _top_k(call: Call) -> list[Tensor]:
    found = tf.raw_ops.TopKV2(input=call.tensor(0), k=call.tensor(1), sorted=True)
    return [found.values, found.indices]


def _rfft(call: Call) -> Tensor:
    """TFLite's converter writes a transform along one axis as one of two axes, of one row."""
    x, sizes = call.tensor(0), call.value(1)
    if isinstance(sizes, Constant) and int(sizes.data[0]) == 1 and x.shape[-2] == 1:
        return tf.raw_ops.RFFT(input=x, fft_length=sizes.data[1:])
    return tf.raw_ops.RFFT2D(input=x, fft_length=call.tensor(1))


def _unique(call: Call) -> list[Tensor]:
    kind = tf.as_dtype(call.results[1].dtype)
    found = tf.raw_ops.Unique(x=call.tensor(0), out_idx=kind)
    return [found.y, found.idx]


def _range(call: Call) -> Tensor:
    start, limit, delta = call.tensors()
    return tf.range(start, limit, delta)


OPS: dict[str, Handler] = {
    "ARG_MAX": _arg(tf.argmax),
    "ARG_MIN": _arg(tf.argmin),
    "BATCH_TO_SPACE_ND": lambda call: tf.raw_ops.BatchToSpaceND(
        input=call.tensor(0), block_shape=call.tensor(1), crops=call.tensor(2)
    ),
    "BROADCAST_ARGS": lambda call: tf.raw_ops.BroadcastArgs(s0=call.tensor(0), s1=call.tensor(1)),
    "BROADCAST_TO": lambda call: tf.broadcast_to(call.tensor(0), call.tensor(1)),
    "BUCKETIZE": lambda call: tf.raw_ops.Bucketize(
        input=call.tensor(0), boundaries=[float(b) for b in call.option("boundaries", ())]
    ),
    "CONCATENATION": _concatenation,
    "CUMSUM": _cumsum,
    "DEPTH_TO_SPACE": lambda call: tf.nn.depth_to_space(
        call.tensor(0), int(call.option("blockSize"))
    ),
    "DYNAMIC_UPDATE_SLICE": _update,
    "EMBEDDING_LOOKUP": lambda call: tf.gather(call.tensor(1, "embeddings"), call.tensor(0)),
    "EXPAND_DIMS": lambda call: tf.expand_dims(call.tensor(0), _axis(call, 1)),
    "FILL": lambda call: tf.fill(call.tensor(0), call.tensor(1)),
    "GATHER": _gather,
    "GATHER_ND": lambda call: tf.gather_nd(call.tensor(0), call.tensor(1)),
    "MATRIX_DIAG": lambda call: tf.linalg.diag(call.tensor(0)),
    "MATRIX_SET_DIAG": lambda call: tf.linalg.set_diag(call.tensor(0), call.tensor(1)),
    "MEAN": _reduced(tf.reduce_mean),
    "MIRROR_PAD": _mirror_pad,
    "ONE_HOT": _one_hot,
    "PACK": lambda call: tf.stack(call.tensors(), int(call.option("axis"))),
    "PAD": lambda call: tf.pad(call.tensor(0), call.tensor(1)),
    "PADV2": lambda call: tf.raw_ops.PadV2(
        input=call.tensor(0), paddings=call.tensor(1), constant_values=call.tensor(2)
    ),
    "RANGE": _range,
    "RANK": lambda call: tf.rank(call.tensor(0)),
    "REDUCE_ALL": _reduced(tf.reduce_all),
    "REDUCE_ANY": _reduced(tf.reduce_any),
    "REDUCE_MAX": _reduced(tf.reduce_max),
    "REDUCE_MIN": _reduced(tf.reduce_min),
    "REDUCE_PROD": _reduced(tf.reduce_prod),
    "RESHAPE": _reshape,
    "REVERSE_SEQUENCE": lambda call: tf.reverse_sequence(
        call.tensor(0),
        call.tensor(1),
        int(call.option("seqDim")),
        int(call.option("batchDim")),
    ),
    "REVERSE_V2": lambda call: tf.reverse(call.tensor(0), call.tensor(1)),
    "RFFT2D": _rfft,
    "SCATTER_ND": lambda call: tf.scatter_nd(*call.tensors()),
    "SEGMENT_SUM": lambda call: tf.math.segment_sum(call.tensor(0), call.tensor(1)),
    "SHAPE": _shape,
    "SLICE": lambda call: tf.slice(call.tensor(0), call.tensor(1), call.tensor(2)),
    "SPACE_TO_BATCH_ND": lambda call: tf.raw_ops.SpaceToBatchND(
        input=call.tensor(0), block_shape=call.tensor(1), paddings=call.tensor(2)
    ),
    "SPACE_TO_DEPTH": lambda call: tf.nn.space_to_depth(
        call.tensor(0), int(call.option("blockSize"))
    ),
    "SPARSE_TO_DENSE": _sparse_to_dense,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "SUM": _reduced(tf.reduce_sum),
    "TILE": lambda call: tf.tile(call.tensor(0), call.tensor(1)),
    "TOPK_V2": _top_k,
    "TRANSPOSE": lambda call: tf.transpose(call.tensor(0), call.tensor(1)),
    "UNIQUE": _unique,
    "UNSORTED_SEGMENT_PROD": _products,
    "UNPACK": _unpack,
    "UNSORTED_SEGMENT_SUM": lambda call: tf.math.unsorted_segment_sum(*call.tensors()),
    "WHERE": lambda call: tf.where(call.tensor(0)),
}
