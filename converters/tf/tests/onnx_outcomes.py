"""What becomes of a case of ONNX's test suite."""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir import Array
from converters.tf.ir.interpret import interpret
from converters.tf.ir.ops.moving import OutsideError
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_cases import Case, arrays, with_constants
from tools.codegen.conversion import ConversionError

# The largest differences, relative to the element: of float32, and of types of 16 bits or less.
RELATIVE: Final = 5e-4
NARROW: Final = 1e-2
# And relative to the largest element of the tensor.
_OF_LARGEST: Final = 2e-6
# Types of floats of 16 bits or less, as ONNX numbers them.
_NARROW_TYPES: Final = frozenset([10, 16, 17, 18, 19, 20, 23, 24])
# What messages say of one case only.
_PLACE: Final = re.compile(r"^node \S+( \S+)*? \(")


class Kind(StrEnum):
    """What becomes of a case."""

    PASS = "pass"
    CONSTANTS = "pass with constants"
    REFUSED = "refused"
    WRONG = "wrong"
    CRASH = "crash"


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a case.

    Attributes:
        kind: What.
        reason: Why it is not what it ought to be.
        graph: What it was converted to.
        given: The inputs of a case that passes, by name.
    """

    kind: Kind
    reason: str = ""
    graph: ir.Graph | None = None
    given: Mapping[str, Array] = dataclasses.field(default_factory=dict)


def outcome(case: Case) -> Outcome:
    """Converts a case and computes it by the interpreter.

    Inputs are inputs; where that is refused, once more with some of them as constants, such as all
    integers. If nothing else is left, all are: then the model has an input that nobody reads.
    """
    first = _tried(case, None)
    if first.kind is not Kind.REFUSED:
        return first
    sets = case.sets()
    given = arrays(sets[0][0]) if sets else None
    if not given or not all(p.type.HasField("tensor_type") for p in case.model.graph.input):
        return first
    floats = tuple(i for i, a in enumerate(given) if a.dtype.kind == "f")
    last = len(given) - 1
    for kept in dict.fromkeys([floats, (0, last), (0,), (last,), ()]):
        if len(set(kept)) < len(given):
            again = _tried(case, tuple(sorted(set(kept))))
            if again.kind is Kind.PASS:
                return dataclasses.replace(again, kind=Kind.CONSTANTS, reason=first.reason)
            if again.kind is not Kind.REFUSED:
                return again
    return first


def _tried(case: Case, kept: Sequence[int] | None) -> Outcome:
    """Returns what becomes of a case of which some inputs stay inputs."""
    sets = case.sets()
    model = case.model if kept is None else with_constants(case, sets[0][0], kept)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            graph = convert(load(path, LoadOptions()).trace)
    except ConversionError as err:
        return Outcome(Kind.REFUSED, _reason(err.problems[0].where, err.problems[0].what))
    except Exception as err:
        return Outcome(Kind.CRASH, f"{type(err).__name__}: {err}"[:200])
    refused = problems(graph)
    if refused:
        return Outcome(Kind.REFUSED, _reason(*refused[0]), graph)
    given: dict[str, Array] = {}
    for inputs, expected in sets:
        read = inputs if kept is None else [inputs[i] for i in kept] or [np.zeros(1, np.float32)]
        given = {port.name: a for port, a in zip(graph.inputs, read, strict=True)}
        try:
            wrong = _compared(case, graph, given, expected)
        except OutsideError as err:
            return Outcome(Kind.REFUSED, f"the call is an error: {err}", graph)
        if wrong:
            return Outcome(Kind.WRONG, wrong, graph, given)
    return Outcome(Kind.PASS, "", graph, given)


def _reason(where: str, what: str) -> str:
    place = _PLACE.sub("node (", where)
    return f"{place}: {what}".replace("\n", " ")[:160]


def _compared(
    case: Case, graph: ir.Graph, given: Mapping[str, Array], expected: Sequence[Any]
) -> str:
    """Returns how the results differ from those expected, or nothing.

    Raises:
        OutsideError: The graph refuses the call.
    """
    try:
        found = interpret(graph, given)
    except OutsideError:
        raise
    except Exception as err:
        return f"{type(err).__name__}: {err}"[:200]
    for port, name, wanted in zip(case.model.graph.output, found, expected, strict=True):
        narrow = port.type.tensor_type.elem_type in _NARROW_TYPES
        wrong = _apart(found[name], np.asarray(wanted), narrow, case.atol)
        if wrong:
            return f"{name}: {wrong}"
    return ""


def _apart(found: Array, wanted: Array, narrow: bool, atol: float) -> str:
    """Returns how a tensor differs from what is wanted, or nothing."""
    if wanted.dtype.kind in "OSU" and found.dtype == object:
        same = found.shape == wanted.shape and found.tolist() == wanted.astype(str).tolist()
        return "" if same else "text differs"
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{list(found.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind != "f":
        return "" if np.array_equal(found, wanted) else "integers differ"
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "infinities or NaN differ"
    a, b = a[finite], b[finite]
    largest = float(np.abs(b).max(initial=0.0))
    allowed = atol + (NARROW if narrow else RELATIVE) * np.abs(b) + _OF_LARGEST * largest
    if narrow:
        allowed = allowed + 1e-3 * largest
    worst = float((np.abs(a - b) / np.maximum(allowed, 1e-300)).max(initial=0.0))
    return "" if np.all(np.abs(a - b) <= allowed) else f"{worst:.1f} times the allowed difference"
