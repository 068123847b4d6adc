"""Every TensorFlow op that is supported, with the function that lowers it."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf.lower import Handler
from converters.tf.ops import (
    bits,
    colors,
    composed,
    control,
    detection,
    elementwise,
    gradients,
    indexing,
    known_places,
    linear,
    matrices,
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
    windows,
)
from converters.tf.ops.complex_numbers import with_complex_numbers

_FAMILIES = (
    bits,
    colors,
    composed,
    control,
    detection,
    elementwise,
    gradients,
    indexing,
    known_places,
    linear,
    matrices,
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
    windows,
)

HANDLERS: Mapping[str, Handler] = with_complex_numbers(
    {op: handler for family in _FAMILIES for op, handler in family.OPS.items()}
)
