"""Runs every kernel of the device beside the CPU's and collects the errors.

Every registered (op, dtype) runs pinned to the device, twice, and pinned to the CPU. The two runs
on the device have to be equal in every bit; the error against the CPU has to be within the
tolerance that `cases` states. What the CPU refuses, the device has to refuse.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels as registry
from tensorflow.python.framework import op_def_library, op_def_registry

from tests.conformance import (
    cases,
    chance,
    hosted,
    images,
    indexed,
    recurrent,
    references,
    structured,
    volumes,
    wide,
)

TABLES = (
    structured.CALLS,
    indexed.CALLS,
    images.CALLS,
    chance.CALLS,
    hosted.CALLS,
    recurrent.CALLS,
    volumes.CALLS,
)


@dataclasses.dataclass(frozen=True)
class Result:
    """What the calls of one kernel gave.

    Attributes:
        op: Op type.
        dtype: Its type attributes.
        calls: Number of calls that were compared.
        error: Largest error relative to `max(1, |expected|)`.
        tolerance: What is accepted.
        problem: What is wrong, or empty.
    """

    op: str
    dtype: str
    calls: int
    error: float
    tolerance: float
    problem: str


LIMITS = (
    "only supports NHWC",
    "not yet supported",
    "NHWC is supported",
    "only support NHWC",
    "do not yet support dilation rates",
    "only supports equal length strides",
    "Could not satisfy device specification",
)
"""What the CPU says where it refuses what TensorFlow's own GPU takes, such as channels first, and
where it has no kernel of a type."""

NARROW: Mapping[str, float] = {"float16": 1e-3, "bfloat16": 8e-3}
"""The 16-bit floats, with the distance of two neighbours: what is accepted."""


SHOWN = 4
"""Problems of a kernel that are told."""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A registered kernel.

    Attributes:
        types: Its type attributes.
        host: Its arguments in the host's memory.
    """

    types: Mapping[str, int]
    host: frozenset[str]


def registered(device_type: str) -> dict[str, list[Kernel]]:
    """Returns every kernel of the device, by op."""
    found: dict[str, list[Kernel]] = {}
    for kernel in registry.get_all_registered_kernels().kernel:
        if kernel.device_type == device_type and not kernel.label:
            types = {c.name: c.allowed_values.list.type[0] for c in kernel.constraint}
            host = frozenset(kernel.host_memory_arg)
            found.setdefault(kernel.op, []).append(Kernel(types, host))
    return found


def is_swept(op: str, types: Mapping[str, int]) -> bool:
    """Returns whether calls can be made with arrays and give some: not for variables and variants.

    `TfpStepFits`, which gives nothing, is compared by `tests/e2e/steps_test.py`.
    """
    others = {tf.variant.as_datatype_enum, tf.resource.as_datatype_enum}
    definition = op_def_registry.get(op)
    if op == "TfpStepFits":
        return False
    arguments = [*definition.input_arg, *definition.output_arg]
    return not others & {*types.values(), *(argument.type for argument in arguments)}


def calls(op: str, kernel: Kernel) -> Iterator[cases.Call] | None:
    """Returns the calls of a kernel, or None if no table knows the op."""
    usual = _usual(op, kernel.types)
    if usual is None:
        return None
    # TensorFlow's own kernel computes what is in this table, and ends the process for some calls.
    if op in hosted.CALLS:
        return usual
    few = list(itertools.islice(usual, wide.CALLS))
    usual = itertools.chain(few, usual)
    changed = wide.host_arguments(op, kernel.host, few)
    if op in references.REFERENCES:
        # Ops of the CPU in their place refuse other attributes.
        return itertools.chain(usual, changed)
    return itertools.chain(usual, changed, wide.attributes(op, few))


def _usual(op: str, types: Mapping[str, int]) -> Iterator[cases.Call] | None:
    dtypes = {name: np.dtype(tf.dtypes.as_dtype(t).as_numpy_dtype) for name, t in types.items()}
    dtype = dtypes.get("T", np.dtype(np.bool_))
    for table in TABLES:
        if op in table:
            return table[op](dtypes)
    if op in cases.BINARY:
        return itertools.chain(cases.binary(op, dtype), wide.elementwise(op, ["x", "y"], dtype))
    if op in cases.REDUCTIONS:
        return cases.reduction(dtype, dtypes["Tidx"])
    definition = op_def_registry.get(op)
    arguments = [argument.name for argument in definition.input_arg]
    plain = all(
        (argument.type_attr == "T" or argument.type == tf.bool.as_datatype_enum)
        and not argument.number_attr
        for argument in definition.input_arg
    )
    required = [attr for attr in definition.attr if not attr.HasField("default_value")]
    if plain and [attr.name for attr in required] in (["T"], []) and len(arguments) <= 2:
        return itertools.chain(
            cases.elementwise(op, arguments, dtype), wide.elementwise(op, arguments, dtype)
        )
    return None


def _computation(
    op: str, inputs: Mapping[str, Any], attributes: Mapping[str, Any], device: str
) -> Callable[[], Any]:
    """Returns a function that gives the outputs of one call as tensors."""
    if op not in references.REFERENCES:
        return lambda: getattr(tf.raw_ops, op)(**inputs, **attributes)
    if device.startswith("/device:CPU"):
        return lambda: references.REFERENCES[op](**inputs, **attributes)

    def graph() -> Any:
        with tf.device(device):
            return op_def_library.apply_op(op, **inputs, **attributes)

    traced: Callable[[], Any] = tf.function(graph, jit_compile=False, autograph=False)
    return traced


def computation(
    op: str, call: cases.Call, device: str, host: frozenset[str] = frozenset()
) -> Callable[[], list[Any]]:
    """Returns a function that gives the outputs of one call as arrays.

    Those that mean nothing are left out. The function can be called again with the same inputs.

    Args:
        op: The op.
        call: The call.
        device: Where it runs.
        host: Inputs that the device reads in the host's memory, and that stay there.
    """
    inputs = {}
    for name, value in call.inputs.items():
        with tf.device("/device:CPU:0" if name in host else device):
            inputs[name] = (
                [tf.constant(v) for v in value] if isinstance(value, list) else tf.constant(value)
            )
    outputs_of = _computation(op, inputs, call.attributes, device)

    def compute_again() -> list[Any]:
        with tf.device(device):
            outputs = outputs_of()
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        outputs = outputs[: cases.told(op, call.attributes)]
        for output in outputs:
            assert output.device.endswith(device), f"{op} ran on {output.device}"
        return [output.numpy() for output in outputs]

    return compute_again


def compute(
    op: str, call: cases.Call, device: str, host: frozenset[str] = frozenset()
) -> list[Any]:
    """Returns the outputs of one call as arrays, as `computation` does."""
    return computation(op, call, device, host)()


def error_of(found: Any, expected: Any) -> float:
    """Returns the largest error relative to `max(1, |expected|)`.

    It is infinite if shape, type or the place of a NaN or an infinity differs.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if found.size == 0:
        return 0.0
    if found.dtype.kind in "biu":
        return 0.0 if (found == expected).all() else float("inf")
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), expected.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b) / np.maximum(1.0, np.abs(b)))
    return float(np.where(np.isnan(gap), np.inf, gap).max())


def _gap(found: list[Any], expected: list[Any]) -> float:
    """Returns the largest error of all outputs."""
    return max((error_of(a, b) for a, b in zip(found, expected, strict=True)), default=0.0)


def _in_float32(op: str, call: cases.Call) -> list[Any]:
    """Returns what the CPU gives for the same numbers as float32; nothing if it refuses."""

    def widened(value: Any) -> Any:
        if isinstance(value, list):
            return [widened(each) for each in value]
        is_narrow = isinstance(value, (np.ndarray, np.generic)) and value.dtype.name in NARROW
        return value.astype(np.float32) if is_narrow else value

    inputs = {name: widened(value) for name, value in call.inputs.items()}
    attributes = {
        name: np.float32 if isinstance(value, np.dtype) and value.name in NARROW else value
        for name, value in call.attributes.items()
    }
    try:
        return compute(op, cases.Call(inputs, attributes), "/device:CPU:0")
    except tf.errors.OpError:
        return []


def gap_of(
    op: str, call: cases.Call, found: list[Any], expected: list[Any], tolerance: float
) -> float:
    """Returns the largest error of the outputs of a call.

    Args:
        op: The op.
        call: The call.
        found: What the device gives.
        expected: What the CPU gives.
        tolerance: The error from which 16-bit floats are compared with the CPU's float32: the CPU
            rounds on the way, each part of a sum for one.
    """
    gap = _gap(found, expected)
    if gap > tolerance and any(a.dtype.name in NARROW for a in expected):
        wide = _in_float32(op, call)
        if wide:
            gap = min(gap, _gap(found, _rounded(wide, found)))
    return gap


def _rounded(outputs: list[Any], like: list[Any]) -> list[Any]:
    """Returns outputs with the types of others."""
    return [a.astype(b.dtype) for a, b in zip(outputs, like, strict=True)]


def _shown(call: cases.Call) -> str:
    """Returns a call as text, with the values of small arguments."""

    def text(value: Any) -> str:
        array = np.asarray(value) if not isinstance(value, list) else value
        if isinstance(array, list) or array.size > 12:
            return str([np.shape(v) for v in array] if isinstance(array, list) else array.shape)
        return f"{array.dtype}{array.tolist()}"

    inputs = ", ".join(f"{name}={text(value)}" for name, value in call.inputs.items())
    return f"({inputs}, {dict(call.attributes)})"


def _not_refused(op: str, call: cases.Call, device: str, host: frozenset[str]) -> str:
    """Returns what a device did that has to refuse a call, or nothing if it refused."""
    try:
        found = compute(op, call, device, host)
    except (tf.errors.OpError, ValueError):
        # A graph refuses a wrong shape when it is made.
        return ""
    return f"gives {[f'{a.dtype}{list(a.shape)}' for a in found]}"


def sample(todo: Iterable[cases.Call], most: int) -> list[cases.Call]:
    """Returns some of the calls of a kernel, in their order: the same ones each time.

    They are `most` calls at equal distances, the first and the last among them. The first call
    with each value of an attribute is there too, so that every kernel keeps every kind of call.

    Args:
        todo: All calls.
        most: How many are taken at equal distances, at least two.
    """
    found = list(todo)
    if len(found) <= most:
        return found
    kept = {number * (len(found) - 1) // (most - 1) for number in range(most)}
    kinds = [{(name, repr(value)) for name, value in call.attributes.items()} for call in found]
    seen = set().union(*(kinds[at] for at in kept))
    for at, kind in enumerate(kinds):
        if not kind <= seen:
            kept.add(at)
            seen |= kind
    return [found[at] for at in sorted(kept)]


def check(op: str, kernel: Kernel, device: str, most: int = 0) -> Result | None:
    """Compares one kernel with the CPU's.

    Args:
        op: The op.
        kernel: Its kernel.
        device: The device, such as `/device:TFP:0`.
        most: About how many of the calls are made, as `sample` takes them; all of them if 0.

    Returns:
        What the calls gave; None if no table knows the op.
    """
    todo, types = calls(op, kernel), kernel.types
    if todo is None:
        return None
    if most:
        todo = iter(sample(todo, most))
    names = {name: tf.dtypes.as_dtype(number).name for name, number in types.items()}
    dtype = names.get("T") or next(iter(names.values()), "bool")
    label = ", ".join(f"{name}={value}" for name, value in sorted(names.items()))
    tolerance = cases.TOLERANCES.get(op, cases.DEFAULT_TOLERANCE)
    narrow = next((name for name in names.values() if name in NARROW), None)
    if narrow is not None:
        tolerance = NARROW[narrow]
    problems, count, largest = [], 0, 0.0
    for call in todo:
        try:
            expected, is_wide = compute(op, call, "/device:CPU:0"), False
        except (tf.errors.OpError, ValueError) as error:
            refused = isinstance(error, (tf.errors.InvalidArgumentError, ValueError))
            if refused and not any(limit in str(error) for limit in LIMITS):
                found = _not_refused(op, call, device, kernel.host)
                if found:
                    problems.append(f"{_shown(call)} {found}; the CPU: {error}")
                continue
            # The CPU has no kernel of this type: one of float32 has to do, if there is one.
            expected, is_wide = _in_float32(op, call) if narrow is not None else [], True
            if not expected:
                continue
        try:
            again = computation(op, call, device, kernel.host)
            first = again()
            # A stateful op goes on where the call before ended.
            stateful = op_def_registry.get(op).is_stateful
            second = first if stateful else again()
        except tf.errors.OpError as error:
            if not wide.may_refuse(op, call.changed):
                problems.append(f"{_shown(call)}: {error.message}")
            continue
        count += 1
        if any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True)):
            problems.append(f"{_shown(call)}: two runs differ")
        if is_wide:
            expected = _rounded(expected, first)
        gap = gap_of(op, call, first, expected, tolerance)
        largest = max(largest, gap)
        if gap > tolerance and (op, dtype) not in cases.EXCEPTIONS:
            problems.append(f"{_shown(call)}: error {gap:g} is above {tolerance:g}")
    return Result(op, label, count, largest, tolerance, "; ".join(problems[:SHOWN]))
