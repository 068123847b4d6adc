"""Convolutions: images have their channels last from here on."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.ir.expressions import is_open, surely
from converters.tf.ir.symbolic import of_shape
from converters.tf.load.onnx.context import Context, Handler, Result, fixed
from converters.tf.load.onnx.values import Known
from converters.tf.load.saved_model.replay import Refused

# More would make weights mostly zeros where TensorFlow's op has no groups.
_MOST_GROUPS = 32
Pads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Window:
    """A window that moves over the spatial axes of images.

    Attributes:
        size: Taps by axis.
        strides: Steps.
        dilations: Distances of taps.
        pads: Elements before and after each axis.
        outputs: Places of the window by axis.
        beyond: How far the last window reaches over the padding, for `ceil_mode`; of an open axis,
            how far it may.
        same: Whether the padding is TensorFlow's `SAME`, which depends on an open size; there are
            no other pads then.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pads
    outputs: tuple[int, ...]
    beyond: tuple[int, ...]
    same: bool = False

    @property
    def padding(self) -> str:
        """Returns what TensorFlow's ops call the padding."""
        return "SAME" if self.same else "EXPLICIT"


def window_of(ctx: Context, size: Sequence[int], same: bool = False) -> Window:
    """Returns the window of a convolution or pool over operand 0.

    Args:
        ctx: The node.
        size: Taps by axis.
        same: Whether its padding may be `SAME`.

    Raises:
        Refused: It does not fit.
    """
    spatial = ctx.sizes(0, "the size of an image")[1:]
    rank = len(spatial)
    if len(size) != rank or not rank:
        raise Refused(f"a window of {len(size)} axes over images of {rank}")
    strides = numbers(ctx, "strides", rank)
    dilations = numbers(ctx, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    steps = zip(spatial, strides, strict=True)
    if ctx.attr("auto_pad") == "SAME_UPPER" and any(is_open(n) and s > 1 for n, s in steps):
        if not same:
            raise Refused("auto_pad=SAME_UPPER of an image of open size")
        places = tuple((n - 1) // s + 1 for n, s in zip(spatial, strides, strict=True))
        none = (0,) * rank
        return Window(tuple(size), strides, dilations, ((0, 0),) * rank, places, none, True)
    pads = _pads(ctx, spatial, reach, strides)
    ceil = bool(ctx.attr("ceil_mode", 0))
    outputs, beyond = [], []
    for n, r, s, (before, after) in zip(spatial, reach, strides, pads, strict=True):
        free = n + before + after - r
        # The call refuses an open size that is too small.
        if surely(partial(operator.lt, free, 0)):
            raise Refused(f"a window of {r} over {n} pixels")
        # No window of an open axis sees the padding alone: one more may begin, and all end in what
        # is added.
        if ceil and is_open(n) and after + s <= r:
            outputs.append((free + s - 1) // s + 1)
            beyond.append(s - 1)
            continue
        count = free // s + 1
        if ceil and free % s and count * s < n + before:  # Else it would see the padding alone.
            count += 1
        outputs.append(count)
        beyond.append(max(0, (count - 1) * s + r - (n + before + after)))
    return Window(tuple(size), strides, dilations, pads, tuple(outputs), tuple(beyond))


def numbers(ctx: Context, name: str, rank: int) -> tuple[int, ...]:
    """Returns an attribute that has a positive number for each spatial axis."""
    values = tuple(int(v) for v in ctx.attr(name) or (1,) * rank)
    if len(values) != rank or any(v < 1 for v in values):
        raise Refused(f"{name}={list(values)} for {rank} axes")
    return values


def _pads(
    ctx: Context, spatial: Sequence[int], reach: Sequence[int], strides: Sequence[int]
) -> Pads:
    auto = ctx.text("auto_pad", "NOTSET", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    rank = len(spatial)
    if auto == "VALID":
        return ((0, 0),) * rank
    if auto == "NOTSET":
        given = [int(p) for p in ctx.attr("pads") or (0,) * (2 * rank)]
        if len(given) != 2 * rank or any(p < 0 for p in given):
            raise Refused(f"pads={given} for {rank} axes")
        return tuple(zip(given[:rank], given[rank:], strict=True))
    pads = []
    for n, r, s in zip(spatial, reach, strides, strict=True):
        total = max((-(-n // s) - 1) * s + r - n, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if auto == "SAME_UPPER" else (large, small))
    return tuple(pads)


def flat(pads: Pads) -> list[int]:
    """Returns pads of spatial axes as TensorFlow's ops want them for all axes."""
    return [0, 0, *(p for pair in pads for p in pair), 0, 0]


def conv(ctx: Context) -> Result:
    """Returns a convolution; the weights are operand 1, and 2 is a bias."""
    kernel = _kernel_shape(ctx)
    rank = len(kernel) - 2
    window = window_of(ctx, tuple(ctx.attr("kernel_shape") or kernel[2:]), same=True)
    if window.size != kernel[2:]:
        raise Refused(f"kernel_shape={list(window.size)} of weights {list(kernel)}")
    groups, channels = int(ctx.attr("group", 1)), ctx.sizes(0)[0]
    if groups < 1 or channels != kernel[1] * groups or kernel[0] % groups:
        raise Refused(f"{groups} groups of {channels} channels, weights {list(kernel)}")
    x, size = ctx.last(0), window
    if rank == 1:
        x = tf.expand_dims(x, 1)
        size = wider(window)
    if rank > 3:
        raise Refused(f"images of {rank} axes; at most 3 are supported")
    y = _convolved(ctx, x, size, groups)
    if rank == 1:
        y = tf.squeeze(y, [1])
    if ctx.has(2):
        y = tf.nn.bias_add(y, ctx.form(2))
    return ctx.result_last(y)


def _kernel_shape(ctx: Context) -> tuple[int, ...]:
    """Returns the shape of weights.

    Raises:
        Refused: They are not the weights of a window.
    """
    shape = tuple(fixed(d, "a size of weights") for d in ctx.shape(1))
    if len(shape) < 3:
        raise Refused(f"weights {list(shape)}")
    return shape


def _weights(ctx: Context, key: Any, shape: Sequence[int], perm: Sequence[int]) -> Any:
    """Returns weights in a shape, and then in an order of axes."""
    if isinstance(ctx.value(1), Known):
        return ctx.weight(1, key, lambda a: a.reshape(shape).transpose(perm))
    return tf.transpose(tf.reshape(ctx.form(1), shape), perm)


def wider(window: Window) -> Window:
    """Returns the window over an axis of size 1, too."""
    return Window(
        (1, *window.size),
        (1, *window.strides),
        (1, *window.dilations),
        ((0, 0), *window.pads),
        (1, *window.outputs),
        (0, *window.beyond),
        window.same,
    )


def _convolved(ctx: Context, x: Any, window: Window, groups: int) -> Any:
    shape = _kernel_shape(ctx)
    strides, dilations = [1, *window.strides, 1], [1, *window.dilations, 1]
    if len(window.size) == 3:
        padding = [[0, 0], *map(list, window.pads), [0, 0]]
        if any(any(p) for p in window.pads):
            x = tf.pad(x, padding)
        if groups > _MOST_GROUPS:
            raise Refused(f"{groups} groups over 3 axes; at most {_MOST_GROUPS} are supported")

        def deep(a: Array) -> Array:
            return _without_groups(a, groups).transpose(2, 3, 4, 1, 0)

        if groups == 1:
            weights = _weights(ctx, ("conv", 1), shape, (2, 3, 4, 1, 0))
        else:
            weights = ctx.weight(1, ("conv", groups), deep)
        return tf.raw_ops.Conv3D(
            input=x,
            filter=weights,
            strides=strides,
            padding="SAME" if window.same else "VALID",
            dilations=dilations,
        )
    plain = set(window.dilations) == {1} and window.strides[0] == window.strides[1]
    options = {
        "strides": strides,
        "padding": window.padding,
        "explicit_paddings": [] if window.same else flat(window.pads),
        "dilations": dilations,
    }
    if groups == x.shape[-1] and groups > 1 and plain:
        taps = (groups, shape[0] // groups, *window.size)
        weights = _weights(ctx, ("depthwise", window.size), taps, (2, 3, 0, 1))
        return tf.raw_ops.DepthwiseConv2dNative(input=x, filter=weights, **options)

    weights = _weights(ctx, ("conv", window.size), (*shape[:2], *window.size), (2, 3, 1, 0))
    return tf.raw_ops.Conv2D(input=x, filter=weights, **options)


def _conv_transpose(ctx: Context) -> Result:
    kernel = _kernel_shape(ctx)
    rank = len(kernel) - 2
    spatial = ctx.sizes(0, "the size of an image")[1:]
    if rank not in (1, 2, 3) or len(spatial) != rank:
        raise Refused(f"weights {list(kernel)} for images of {len(spatial)} axes")
    groups = int(ctx.attr("group", 1))
    if not 1 <= groups <= _MOST_GROUPS or kernel[0] % groups:
        raise Refused(f"{groups} groups; at most {_MOST_GROUPS} are supported")
    strides, dilations = numbers(ctx, "strides", rank), numbers(ctx, "dilations", rank)
    outputs, pads = _transposed_sizes(ctx, spatial, kernel[2:], strides, dilations)

    def arranged(a: Array) -> Array:
        whole = _without_groups(without_dilations(a, dilations), groups)
        return whole.transpose(perm)

    perm = (*range(2, 2 + rank), 1, 0)
    if isinstance(ctx.value(1), Known):
        weights = ctx.weight(1, ("transposed", dilations, groups), arranged)
        y = spread(ctx, ctx.last(0), weights, outputs, strides, pads, kernel[1] * groups)
    else:
        taps = _computed_without_dilations(ctx.form(1), dilations)
        parts = zip(
            tf.split(ctx.last(0), groups, axis=-1), tf.split(taps, groups, axis=0), strict=True
        )
        images = [
            spread(ctx, x, tf.transpose(w, perm), outputs, strides, pads, kernel[1])
            for x, w in parts
        ]
        y = images[0] if groups == 1 else tf.concat(images, -1)
    if ctx.has(2):
        y = tf.nn.bias_add(y, ctx.form(2))
    return ctx.result_last(y)


def without_dilations(a: Array, dilations: Sequence[int]) -> Array:
    """Returns weights with zeros between the taps, as TensorFlow's CPU has no dilations here."""
    sizes = [(k - 1) * d + 1 for k, d in zip(a.shape[2:], dilations, strict=True)]
    result = np.zeros((*a.shape[:2], *sizes), a.dtype)
    places = (slice(None), slice(None), *(slice(None, None, d) for d in dilations))
    result[places] = a
    return result


def _computed_without_dilations(x: Any, dilations: Sequence[int]) -> Any:
    """Returns the same of weights that are computed."""
    for axis, dilation in enumerate(dilations, 2):
        if dilation > 1:
            shape = x.shape.as_list()
            gaps = [[0, 0]] * (len(shape) + 1)
            gaps[axis + 1] = [0, dilation - 1]
            wide = tf.pad(tf.expand_dims(x, axis + 1), gaps)
            x = tf.reshape(wide, [*shape[:axis], shape[axis] * dilation, *shape[axis + 1 :]])
            x = x[(*(slice(None),) * axis, slice(0, (shape[axis] - 1) * dilation + 1))]
    return x


def _without_groups(a: Array, groups: int) -> Array:
    """Returns weights `[rows, columns]` of all channels, with zeros where groups don't meet."""
    rows, columns = a.shape[0] // groups, a.shape[1]
    result = np.zeros((a.shape[0], columns * groups, *a.shape[2:]), a.dtype)
    for g in range(groups):
        own = slice(g * rows, (g + 1) * rows)
        result[own, g * columns : (g + 1) * columns] = a[own]
    return result


def spread(
    ctx: Context,
    x: Any,
    weights: Any,
    outputs: Sequence[int],
    strides: Sequence[int],
    pads: Pads,
    channels: int,
) -> Any:
    """Returns a transposed convolution; it is computed whole, and its edges are cut off."""
    rank = len(outputs)
    if rank == 1:
        y = spread(
            ctx,
            tf.expand_dims(x, 1),
            tf.expand_dims(weights, 0),
            (1, *outputs),
            (1, *strides),
            ((0, 0), *pads),
            channels,
        )
        return tf.squeeze(y, [1])
    # A negative padding is an edge that no input reaches.
    inner = tuple((max(b, 0), max(a, 0)) for b, a in pads)
    outer = [(max(-b, 0), max(-a, 0)) for b, a in pads]
    sizes = [n - b - a for n, (b, a) in zip(outputs, outer, strict=True)]
    full = [n + b + a for n, (b, a) in zip(sizes, inner, strict=True)]
    target, padding, explicit = (full, "VALID", []) if rank == 3 else (sizes, "EXPLICIT", inner)
    whole = ctx.session.symbol(of_shape((*target, channels), "int32"))
    options: dict[str, Any] = {
        "input_sizes": tf.concat([tf.shape(x)[:1], whole], 0),
        "filter": weights,
        "out_backprop": x,
        "strides": [1, *strides, 1],
        "padding": padding,
    }
    if rank == 3:
        y = tf.raw_ops.Conv3DBackpropInputV2(**options)
        y = y[(slice(None), *(slice(b, b + n) for n, (b, _) in zip(sizes, inner, strict=True)))]
    else:
        y = tf.raw_ops.Conv2DBackpropInput(explicit_paddings=flat(tuple(explicit)), **options)
    if any(any(p) for p in outer):
        y = tf.pad(y, [[0, 0], *map(list, outer), [0, 0]])
    known = [None if is_open(n) else n for n in outputs]
    return tf.ensure_shape(y, [x.shape[0], *known, channels])


def _transposed_sizes(
    ctx: Context,
    spatial: Sequence[int],
    size: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[tuple[int, ...], Pads]:
    rank = len(spatial)
    extra = [int(p) for p in ctx.attr("output_padding") or (0,) * rank]
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    whole = [(n - 1) * s + r + e for n, s, r, e in zip(spatial, strides, reach, extra, strict=True)]
    auto = ctx.text("auto_pad", "NOTSET", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    wanted = ctx.attr("output_shape")
    if wanted or auto.startswith("SAME"):
        outputs = [int(n) for n in wanted[-rank:]] if wanted else [
            n * s for n, s in zip(spatial, strides, strict=True)
        ]  # fmt: skip
        pads = []
        for w, n in zip(whole, outputs, strict=True):
            total = max(w - n, 0)
            small, large = total // 2, total - total // 2
            pair = (small, large) if auto == "SAME_UPPER" else (large, small)
            pads.append(pair)
    else:
        given = [int(p) for p in ctx.attr("pads") or (0,) * (2 * rank)]
        given = [0] * (2 * rank) if auto == "VALID" else given
        pads = list(zip(given[:rank], given[rank:], strict=True))
        outputs = [w - b - a for w, (b, a) in zip(whole, pads, strict=True)]
    if surely(lambda: any(n < 1 for n in outputs)):
        raise Refused(f"an image of the size {outputs}")
    # What output_padding adds at the end may be computed by nobody but the bias.
    ends = [w - e - b - n for w, e, (b, _), n in zip(whole, extra, pads, outputs, strict=True)]
    return tuple(outputs), tuple((b, end) for (b, _), end in zip(pads, ends, strict=True))


OPS: Mapping[str, Handler] = {
    "Conv": conv,
    "ConvTranspose": _conv_transpose,
}
