"""Features whose outputs don't depend on rounding, so that a crate gives what the model does.

Scores that are nearly equal have another order in every implementation, and `argmax`, `top_k`, a
rounded number or a comparison turn that into another result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from converters.tf import ir
from converters.tf.describe.features import moves
from converters.tf.emit.crate import Features
from converters.tf.errors import FeaturesError
from converters.tf.ir import Array
from converters.tf.ir.expressions import surely
from converters.tf.ir.interpret import interpret

# Sets of inputs that are tried. One that the model takes is enough for a graph of very many
# multiplications, or inputs of very many elements: those take minutes.
_ATTEMPTS = 5
_HUGE, _MANY_ELEMENTS = 5_000_000_000, 20_000_000
# How often a graph is computed with other rounding, and one of many multiplications, which takes
# seconds.
_TRIALS, _TRIALS_OF_LARGE = 3, 1
_LARGE = 100_000_000
# By how much results are changed, in units of the largest element: more than a sum rounds.
_ROUNDING = 1e-6
_JUMPS = (ir.ArgExtreme, ir.Chosen, ir.Introsort, ir.Suppress, ir.TopK)
_STEPS = (ir.Fn.CEIL, ir.Fn.FLOOR, ir.Fn.ROUND, ir.Fn.SIGN)
_LEVELS = (ir.DynamicLevels, ir.Quantize)
_PLACES = (ir.Gather, ir.Scatter, ir.Update)
# How much more than the model's own outputs a crate's may differ from the exact ones: it adds in
# another order. More than `_WIDEST` is no rounding.
_SPREAD, _WIDEST = 8.0, 1e-3


def settled(
    graph: ir.Graph, draw: Callable[[int], Features], tolerance: float
) -> tuple[Features, tuple[str, ...]]:
    """Returns the first features whose outputs don't depend on rounding.

    Args:
        graph: The graph.
        draw: Makes features; gets the number of the attempt.
        tolerance: Largest difference of a float output, in units of its largest element or 1.

    Returns:
        The features, and the outputs that depend on rounding all the same: those of the first
        attempt if all do.

    Raises:
        FeaturesError: The model refuses the inputs of every attempt.
    """
    first: tuple[Features, tuple[str, ...]] | None = None
    refused: FeaturesError | None = None
    huge = _multiplies(graph, _HUGE) or _reads(graph, _MANY_ELEMENTS)
    for attempt in range(_ATTEMPTS):
        try:
            features = draw(attempt)
        except FeaturesError as err:
            refused = refused or err
            continue
        doubtful = unsettled(graph, features, tolerance)
        if not doubtful:
            return features, ()
        if first is None or len(doubtful) < len(first[1]):
            first = features, doubtful
        if huge:
            break
    if first is None:
        assert refused is not None
        raise refused
    return first


def unsettled(graph: ir.Graph, features: Features, tolerance: float) -> tuple[str, ...]:
    """Returns outputs that depend on rounding, or all if the graph refuses the inputs."""
    if not _jumps(graph, {port.value for port in graph.inputs}):
        return ()
    found: set[str] = set()
    for seed in range(_TRIALS_OF_LARGE if _multiplies(graph, _LARGE) else _TRIALS):
        rounding = functools.partial(_rounded, np.random.default_rng(seed))
        try:
            outputs = interpret(graph, features.inputs, rounding)
        except (ArithmeticError, ValueError):
            return tuple(port.name for port in graph.outputs)
        found |= {
            name
            for name, expected in features.outputs.items()
            if not _close(outputs[name], expected, tolerance)
        }
        if found:
            break
    return tuple(port.name for port in graph.outputs if port.name in found)


def _multiplies(graph: ir.Graph, count: int) -> bool:
    """Returns whether an example takes more than so many multiplications, whatever its size."""
    return surely(lambda: sum(node.op.macs(node) for node in graph.nodes) > count)


def _reads(graph: ir.Graph, count: int) -> bool:
    """Returns whether the inputs of an example have more than so many elements."""
    shapes = [ir.shape_at(port.value.shape, 1) for port in graph.inputs]
    return surely(lambda: sum(map(math.prod, shapes)) > count)


def needed(graph: ir.Graph, features: Features, tolerance: float) -> float:
    """Returns the tolerance that outputs need whose last digits a logarithm makes large.

    The logarithm of a number near 0, such as of a quiet band of a spectrogram, is unsteady. It
    changes by what is rounded before it, in units of that number. So the model's own outputs are
    away from the exact ones, and a crate's are elsewhere.

    Args:
        graph: The graph.
        features: Inputs, and what the model gives for them.
        tolerance: Of other models, in units of the largest element of an output or 1.
    """
    if not _logarithms(graph):
        return tolerance
    exact = interpret(graph, features.inputs)
    apart = [tolerance]
    for name, found in features.outputs.items():
        finite = np.isfinite(found) & np.isfinite(exact[name]) if found.dtype.kind == "f" else ()
        if found.shape == exact[name].shape and np.any(finite):
            scale = max(1.0, float(np.abs(found[finite]).max()))
            far = np.abs(exact[name][finite].astype(np.float64) - found[finite]).max() / scale
            apart.append(min(_WIDEST, _SPREAD * float(far)))
    return max(apart)


def _logarithms(graph: ir.Graph) -> bool:
    """Returns whether a logarithm is computed."""
    for node in graph.nodes:
        functions = (getattr(node.op, name, None) for name in ("function", "activation"))
        if any(isinstance(f, ir.Function) and f.kind is ir.Fn.LOG for f in functions):
            return True
        if isinstance(node.op, ir.Loop) and _logarithms(node.op.body):
            return True
    return False


def _close(found: Array, expected: Array, tolerance: float) -> bool:
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind != "f":
        return bool(np.array_equal(found, expected))
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return False
    scale = max(1.0, float(np.abs(expected[finite]).max(initial=0)))
    apart = np.abs(found[finite].astype(np.float64) - expected[finite])
    return bool(apart.max(initial=0) <= tolerance * scale)


def _rounded(random: np.random.Generator, _: ir.Node, x: Array) -> Array:
    """Returns a result as another implementation may round it; integers are exact everywhere."""
    if x.dtype != np.float32 or not x.size:
        return x
    with np.errstate(invalid="ignore"):
        inexact = np.isfinite(x) & (x != np.rint(x))
        scale = np.abs(x).max(initial=0, where=inexact)
        noise = random.uniform(-_ROUNDING, _ROUNDING, x.shape) * scale
        return np.where(inexact, x + noise, x).astype(np.float32)


def _jumps(graph: ir.Graph, given: set[ir.Value]) -> bool:
    """Returns whether a small difference can become a large one, or an error.

    Args:
        graph: A graph, or the body of a loop.
        given: Inputs of the model, to which what has the same elements is added.
    """
    for node in graph.nodes:
        if moves(node.op) and all(v.is_constant or v in given for v in node.present):
            given.update(node.outputs)
        elif _jump(node, given):
            return True
    return False


def _jump(node: ir.Node, given: set[ir.Value]) -> bool:
    op = node.op
    if isinstance(op, ir.Loop):
        carried = zip(op.body.inputs[1:], node.present, strict=True)
        return _jumps(op.body, {port.value for port, value in carried if value in given})
    if isinstance(op, _PLACES):
        place = node.present[1]
        return not (place.is_constant or place in given)
    if isinstance(op, _JUMPS):
        return True
    floats = any(v.dtype.numpy.kind == "f" and v not in given for v in node.present)
    if isinstance(op, ir.Unary):
        return floats and op.function.kind in _STEPS
    if isinstance(op, _LEVELS):
        return floats
    if isinstance(op, ir.Cast):
        return floats and node.output.dtype.numpy.kind != "f"
    return floats and isinstance(op, ir.Compare)
