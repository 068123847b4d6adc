"""Every TensorFlow op that is supported, with the function that lowers it."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf.lower.graph import Handler
from converters.tf.lower.ops import custom, refused, typed
from converters.tf.lower.ops.control import control
from converters.tf.lower.ops.image import colors, detection, resampling, sampling, windows
from converters.tf.lower.ops.index import chosen, indexing, scatter, segments, sorting, tables
from converters.tf.lower.ops.math import (
    bits,
    composed,
    elementwise,
    gradients,
    linear,
    matrices,
    random,
    reductions,
    spectra,
    systems,
)
from converters.tf.lower.ops.math.complex_numbers import with_complex_numbers
from converters.tf.lower.ops.shape import known_places, shapes
from converters.tf.lower.ops.text.texts import with_texts

_FAMILIES = (
    bits,
    chosen,
    colors,
    composed,
    control,
    custom,
    detection,
    elementwise,
    gradients,
    indexing,
    known_places,
    linear,
    matrices,
    random,
    reductions,
    refused,
    resampling,
    sampling,
    scatter,
    segments,
    shapes,
    sorting,
    spectra,
    systems,
    tables,
    typed,
    windows,
)

HANDLERS: Mapping[str, Handler] = with_texts(
    with_complex_numbers(
        {op: handler for family in _FAMILIES for op, handler in family.OPS.items()}
    )
)
