"""From a traced model to the graph that the emitters take."""

from __future__ import annotations

from collections.abc import Callable

from converters.tf import ir
from converters.tf.lower.graph import lower
from converters.tf.lower.ops.registry import HANDLERS
from converters.tf.lower.trace import Trace
from converters.tf.passes.pipeline import optimize


def convert(trace: Trace, progress: Callable[[int], None] | None = None) -> ir.Graph:
    """Returns the optimized graph of a model.

    Args:
        trace: The model; `load.model.load` gives it.
        progress: Called with the number of TensorFlow nodes that are done.

    Raises:
        UnsupportedError: With everything in the model that is not supported.
    """
    return optimize(lower(trace, HANDLERS, progress))
