"""Runs every kernel of the device beside the CPU's and collects the errors.

Every registered (op, dtype) runs pinned to the device, twice, and pinned to the CPU. The two runs
on the device have to be equal in every bit; the error against the CPU has to be within the
tolerance that `cases` states.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels as registry
from tensorflow.python.framework import op_def_library, op_def_registry

from tests.conformance import cases, chance, hosted, images, indexed, references, structured

TABLES = (structured.CALLS, indexed.CALLS, images.CALLS, chance.CALLS, hosted.CALLS)


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


def registered(device_type: str) -> dict[str, list[dict[str, int]]]:
    """Returns the type constraints of every kernel of the device, by op."""
    found: dict[str, list[dict[str, int]]] = {}
    for kernel in registry.get_all_registered_kernels().kernel:
        if kernel.device_type == device_type and not kernel.label:
            types = {c.name: c.allowed_values.list.type[0] for c in kernel.constraint}
            found.setdefault(kernel.op, []).append(types)
    return found


def is_swept(op: str, types: Mapping[str, int]) -> bool:
    """Returns whether calls can be made with arrays: not for variables and variants."""
    others = {tf.variant.as_datatype_enum, tf.resource.as_datatype_enum}
    definition = op_def_registry.get(op)
    arguments = [*definition.input_arg, *definition.output_arg]
    return not others & {*types.values(), *(argument.type for argument in arguments)}


def calls(op: str, types: Mapping[str, int]) -> Iterator[cases.Call] | None:
    """Returns the calls of a kernel, or None if no table knows the op."""
    dtypes = {name: np.dtype(tf.dtypes.as_dtype(t).as_numpy_dtype) for name, t in types.items()}
    dtype = dtypes.get("T", np.dtype(np.bool_))
    for table in TABLES:
        if op in table:
            return table[op](dtypes)
    if op in cases.BINARY:
        return cases.binary(op, dtype)
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
        return cases.elementwise(op, arguments, dtype)
    return None


def _call(op: str, inputs: Mapping[str, Any], attributes: Mapping[str, Any], device: str) -> Any:
    """Returns the outputs of one call as tensors."""
    if op not in references.REFERENCES:
        return getattr(tf.raw_ops, op)(**inputs, **attributes)
    if device.startswith("/device:CPU"):
        return references.REFERENCES[op](**inputs, **attributes)

    def graph() -> Any:
        with tf.device(device):
            return op_def_library.apply_op(op, **inputs, **attributes)

    return tf.function(graph, jit_compile=False)()


def compute(op: str, call: cases.Call, device: str) -> list[Any]:
    """Returns the outputs of one call as arrays, without those that mean nothing."""
    with tf.device(device):
        inputs = {
            name: [tf.constant(v) for v in value] if isinstance(value, list) else tf.constant(value)
            for name, value in call.inputs.items()
        }
        outputs = _call(op, inputs, call.attributes, device)
    if not isinstance(outputs, (list, tuple)):
        outputs = [outputs]
    outputs = outputs[: cases.OUTPUTS.get(op, len(outputs))]
    for output in outputs:
        assert output.device.endswith(device), f"{op} ran on {output.device}"
    return [output.numpy() for output in outputs]


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


def check(op: str, types: Mapping[str, int], device: str) -> Result | None:
    """Compares one kernel with the CPU's; None if no table knows the op."""
    todo = calls(op, types)
    if todo is None:
        return None
    names = {name: tf.dtypes.as_dtype(number).name for name, number in types.items()}
    dtype = names.get("T") or next(iter(names.values()), "bool")
    label = ", ".join(f"{name}={value}" for name, value in sorted(names.items()))
    tolerance = cases.TOLERANCES.get(op, cases.DEFAULT_TOLERANCE)
    if dtype in ("float16", "bfloat16"):
        tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2}[dtype]
    count, largest = 0, 0.0
    for call in todo:
        try:
            expected = compute(op, call, "/device:CPU:0")
        except tf.errors.OpError:
            # The CPU refuses the call or has no kernel of this type: nothing to compare with.
            continue
        try:
            first = compute(op, call, device)
            # A stateful op goes on where the call before ended.
            stateful = op_def_registry.get(op).is_stateful
            second = first if stateful else compute(op, call, device)
        except tf.errors.OpError as error:
            shapes = {k: np.shape(v) for k, v in call.inputs.items()}
            return Result(op, label, count, np.inf, tolerance, f"{shapes}: {error.message}")
        for a, b in zip(first, second, strict=True):
            if a.tobytes() != b.tobytes():
                return Result(op, label, count, np.inf, tolerance, "two runs differ")
        count += 1
        largest = max([largest, *(error_of(a, b) for a, b in zip(first, expected, strict=True))])
    accepted = largest <= tolerance or (op, dtype) in cases.EXCEPTIONS
    problem = "" if accepted else f"error {largest:g} is above {tolerance:g}"
    return Result(op, label, count, largest, tolerance, problem)
