"""Convolutions whose weights the model computes: products of patches, as kernels pack weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import Builder, static
from converters.tf.lower.graph import Unsupported
from converters.tf.lower.ops.image.patches import patches

# Elements that the windows of one image may have together.
_MOST_ELEMENTS = 1 << 26


def conv(
    build: Builder,
    x: ir.Value,
    weights: ir.Value,
    op: ir.Conv,
    outputs: Sequence[int],
    residual: ir.Value | None,
) -> ir.Value:
    """Returns a convolution, added to a residual; operands as those of `ir.Conv`."""
    *window, inner, columns = (static(d, "a filter") for d in weights.shape)
    taps, places, groups = int(np.prod(window)), int(np.prod(outputs)), op.groups
    if taps * inner * groups * places > _MOST_ELEMENTS:
        raise Unsupported(f"a convolution of {places} places with weights that are computed")
    seen = patches(build, x, op, window, outputs)
    seen = build.reshape(seen, (x.shape[0], places, taps, groups, inner))
    rows = build.transpose(seen, [0, 3, 1, 2, 4])
    rows = build.reshape(rows, (x.shape[0], groups, places, taps * inner))
    kernel = build.reshape(weights, (taps * inner, groups, columns // groups))
    result = build.mat_mul(rows, build.transpose(kernel, [1, 0, 2]))
    result = build.transpose(result, [0, 2, 1, 3])
    result = build.reshape(result, (x.shape[0], *outputs, columns))
    return result if residual is None else build.binary(ir.BinaryKind.ADD, result, residual)


def conv_transpose(
    build: Builder, x: ir.Value, weights: ir.Value, op: ir.ConvTranspose, spatial: Sequence[int]
) -> ir.Value:
    """Returns a transposed convolution: one of the image with zeros between its pixels.

    Operands are those of `ir.ConvTranspose`.
    """
    *window, inner, channels = (static(d, "a filter") for d in weights.shape)
    rank, groups = len(window), op.groups
    sizes = [static(d, "the size of an image") for d in x.shape[1:-1]]
    for axis, stride in enumerate(op.strides, 1):
        if stride > 1:
            wide = build.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
            gap = [(0, stride - 1) if i == axis + 1 else (0, 0) for i in range(wide.rank)]
            full = (*x.shape[:axis], sizes[axis - 1] * stride, *x.shape[axis + 1 :])
            x = build.reshape(build.pad(wide, gap), full)
            x = build.part(x, axis, 0, (sizes[axis - 1] - 1) * stride + 1)
    edges = []
    for axis, size in enumerate(spatial):
        reach = (window[axis] - 1) * op.dilations[axis]
        before = reach - op.padding[axis][0]
        have = (sizes[axis] - 1) * op.strides[axis] + 1
        edges.append((before, size + reach - before - have))
    x = _edged(build, x, edges)
    last = [n - 1 for n in window]
    turned = build.slice(weights, [*last, 0, 0], weights.shape, [*(-1 for _ in window), 1, 1])
    # From outputs by group and inputs to inputs of a group and outputs of all.
    split = build.reshape(turned, (*window, inner, groups, channels // groups))
    order = [*range(rank), rank + 2, rank + 1, rank]
    kernel = build.reshape(
        build.transpose(split, order), (*window, channels // groups, groups * inner)
    )
    plain = ir.Conv((1,) * rank, op.dilations, ((0, 0),) * rank, groups)
    return conv(build, x, kernel, plain, list(spatial), None)


def _edged(build: Builder, x: ir.Value, edges: Sequence[tuple[int, int]]) -> ir.Value:
    """Returns an image with zeros around it, or without its edges where a number is negative."""
    grown = [(max(b, 0), max(a, 0)) for b, a in edges]
    x = build.pad(x, [(0, 0), *grown, (0, 0)])
    for axis, (before, after) in enumerate(edges, 1):
        if before < 0 or after < 0:
            size = static(x.shape[axis], "the size of an image")
            cut = max(-before, 0)
            x = build.part(x, axis, cut, size - cut - max(-after, 0))
    return x
