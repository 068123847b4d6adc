"""Steps of optimizers refuse what TensorFlow's CPU refuses, however they are run.

Each input of each op gets shapes that do not fit. A refused step changes nothing.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_registry

DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"
ROWS, COLUMNS = 4, 2
INDICES = np.array([0, 3, 1], np.int32)
USUAL = {"lr_power": -0.5, "global_step": 2, "beta1_power": 0.9, "beta2_power": 0.99}
UNKNOWN = tf.TensorShape(None)

STRICTER = {
    ("ResourceApplyAdadelta", "accum_update"),
    ("ResourceApplyAdamWithAmsgrad", "vhat"),
    ("ResourceApplyAddSign", "sign_decay"),
    ("ResourceApplyPowerSign", "sign_decay"),
}
"""Inputs whose shapes TensorFlow's CPU forgets to check: it reads and writes beside them."""

Arrays = list[np.ndarray]


@pytest.fixture(autouse=True, scope="module")
def _no_soft_placement() -> None:
    tf.config.set_soft_device_placement(False)


def _definition(op: str) -> Any:
    return op_def_registry.get(op)


def _names() -> list[str]:
    """Returns the ops: those of variables as resources, which the device knows."""
    ops = tf.raw_ops.__dict__
    steps = [op for op in ops if op.startswith(("ResourceApply", "ResourceSparseApply"))]
    return sorted(steps)


STEPS = _names()


def inputs_of(op: str) -> dict[str, np.ndarray]:
    """Returns inputs that fit, by name; those that come first are the variable and its slots."""
    sparse = "Sparse" in op
    found: dict[str, np.ndarray] = {}
    value: np.ndarray
    for place, arg in enumerate(_definition(op).input_arg):
        if arg.type == tf.resource.as_datatype_enum or arg.is_ref:
            value = np.full((ROWS, COLUMNS), 0.5 + place, np.float32)
        elif arg.name in ("grad", "delta"):
            value = np.full((len(INDICES) if sparse else ROWS, COLUMNS), 0.3, np.float32)
        elif arg.name == "indices":
            value = INDICES
        else:
            is_count = arg.type == tf.int64.as_datatype_enum
            value = np.asarray(USUAL.get(arg.name, 0.1), np.int64 if is_count else np.float32)
        found[arg.name] = value
    return found


def variables_of(op: str) -> list[str]:
    """Returns the inputs of an op that are variables."""
    resource = tf.resource.as_datatype_enum
    return [a.name for a in _definition(op).input_arg if a.is_ref or a.type == resource]


def filled(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns an array of the shape with the first number of another."""
    return np.full(shape, value.flat[0], value.dtype)


def changes_of(op: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yields an input of an op, and what it is instead."""
    variables = variables_of(op)
    for place, (name, value) in enumerate(inputs_of(op).items()):
        if name in variables:
            shapes: Sequence[tuple[int, ...]] = [(3, 2), (1, 2), (4, 1), (4, 2, 1)]
            # TensorFlow's CPU ends the process for a variable of fewer axes than its gradient.
            shapes = shapes if place else shapes[:1]
        elif name in ("grad", "delta"):
            shapes = [(1, 2), (4, 3), (1, 1), (len(value), 1)]
        elif name == "indices":
            yield name, np.array([0, 1], np.int32)
            yield name, np.array([[0, 1, 2]], np.int32)
            continue
        else:
            shapes = [(1,), (2,), (1, 1), (0,), (4, 2)]
        for shape in shapes:
            yield name, filled(value, shape)


def attributes_of(op: str) -> dict[str, list[bool]]:
    """Returns the attributes that say how an op computes."""
    attrs = [a for a in _definition(op).attr if a.type == "bool" and a.name != "use_locking"]
    return {a.name: [False, True] for a in attrs}


def run(op: str, handles: Sequence[Any], rest: dict[str, Any], attributes: dict[str, bool]) -> Any:
    """Calls an op of variables and other inputs."""
    names = variables_of(op)
    return getattr(tf.raw_ops, op)(**dict(zip(names, handles, strict=True)), **rest, **attributes)


def eager(op: str, starts: Arrays, rest: dict[str, np.ndarray], attributes: Any) -> Arrays | None:
    """Returns what the variables hold after the step; `None` if it is refused."""
    variables = [tf.Variable(s) for s in starts]
    given = {k: tf.constant(v) for k, v in rest.items()}
    return _after(
        variables, starts, lambda: run(op, [v.handle for v in variables], given, attributes)
    )


def known(op: str, starts: Arrays, rest: dict[str, np.ndarray], attributes: Any) -> Arrays | None:
    """The same in a function that knows all shapes."""
    variables = [tf.Variable(s) for s in starts]
    graph = _traced(
        op,
        variables,
        list(rest),
        [tf.TensorSpec(v.shape, v.dtype) for v in rest.values()],
        attributes,
    )
    return _after(variables, starts, lambda: graph(*map(tf.constant, rest.values())))


def unknown(op: str, starts: Arrays, rest: dict[str, np.ndarray], attributes: Any) -> Arrays | None:
    """The same in a function that knows nothing of shapes."""
    variables, graph = _of_any_shape(op, _device(), tuple(attributes.items()))
    for variable, start in zip(variables, starts, strict=True):
        variable.assign(start)
    return _after(variables, starts, lambda: graph(*map(tf.constant, rest.values())))


def _traced(
    op: str, variables: Sequence[Any], names: Sequence[str], signature: Any, how: Any
) -> Any:
    def step(*given: tf.Tensor) -> None:
        run(op, [v.handle for v in variables], dict(zip(names, given, strict=True)), how)

    return tf.function(step, input_signature=signature, jit_compile=False)


def _device() -> str:
    """Returns the device of the scope."""
    return str(tf.constant(0.0).device)


# A graph that knows no shape serves all changes of an op, on the device and on the CPU.
@functools.lru_cache(maxsize=2)
def _of_any_shape(op: str, device: str, how: tuple[tuple[str, bool], ...]) -> tuple[Any, Any]:
    starts, rest = split(op, None)
    with tf.device(device):
        variables = [tf.Variable(v, shape=UNKNOWN) for v in starts]
    signature = [tf.TensorSpec(None, v.dtype) for v in rest.values()]
    return variables, _traced(op, variables, list(rest), signature, dict(how))


def session(op: str, starts: Arrays, rest: dict[str, np.ndarray], attributes: Any) -> Any:
    """The same in a session of TensorFlow 1, which knows nothing of shapes."""
    running, fed, (assign, step, reads) = _opened(op, _device(), tuple(attributes.items()))
    feeds, kept = fed
    running.run(assign, dict(zip(kept, starts, strict=True)))
    refused = False
    try:
        running.run(step, dict(zip(feeds, rest.values(), strict=True)))
    except tf.errors.InvalidArgumentError:
        refused = True
    after = running.run(reads)
    if refused and DEVICE in step.device:
        _unchanged(after, starts)
    return None if refused else after


@functools.lru_cache(maxsize=2)
def _opened(op: str, device: str, how: tuple[tuple[str, bool], ...]) -> tuple[Any, Any, Any]:
    """Returns a session, what it is fed, and its nodes."""
    starts, rest = split(op, None)
    with tf.Graph().as_default(), tf.device(device):
        feeds = [tf.compat.v1.placeholder(v.dtype, None) for v in rest.values()]
        variables = [_handle(f"v{i}") for i in range(len(starts))]
        kept = [tf.compat.v1.placeholder(tf.float32, None) for _ in starts]
        assign = [
            tf.raw_ops.AssignVariableOp(resource=v, value=k)
            for v, k in zip(variables, kept, strict=True)
        ]
        reads = [tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32) for v in variables]
        step = run(op, variables, dict(zip(rest, feeds, strict=True)), dict(how))
        return tf.compat.v1.Session(), (feeds, kept), (assign, step, reads)


def _handle(name: str) -> Any:
    return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=UNKNOWN, shared_name=name)


def _after(variables: Sequence[Any], starts: Arrays, step: Any) -> Arrays | None:
    try:
        step()
    except (tf.errors.InvalidArgumentError, ValueError):
        # TensorFlow's CPU has changed slices before it comes to an index out of range.
        if variables[0].device.endswith(DEVICE):
            _unchanged([v.numpy() for v in variables], starts)
        return None
    return [v.numpy() for v in variables]


def _unchanged(after: Arrays, starts: Arrays) -> None:
    for found, start in zip(after, starts, strict=True):
        np.testing.assert_array_equal(found, start)


WAYS = {"eager": eager, "known": known, "unknown": unknown, "session": session}


def split(op: str, change: tuple[str, np.ndarray] | None) -> tuple[Arrays, dict[str, np.ndarray]]:
    """Returns the starts of an op's variables, and its other inputs, of which one is changed."""
    inputs = inputs_of(op)
    if change:
        inputs[change[0]] = change[1]
    names = variables_of(op)
    return [inputs[n] for n in names], {k: v for k, v in inputs.items() if k not in names}


def compare(way: str, op: str, change: Any, attributes: dict[str, bool]) -> None:
    """Asserts that the device does what TensorFlow's CPU does."""
    starts, rest = split(op, change)
    found = []
    stricter = change is not None and (op, change[0]) in STRICTER
    for device in (DEVICE,) if stricter else (DEVICE, CPU):
        with tf.device(device):
            found.append(WAYS[way](op, starts, rest, attributes))
    text = f"{op} {attributes} {way} {change and (change[0], change[1].shape)}"
    refusals = [result is None for result in found]
    if stricter:
        assert refusals == [True], text
        return
    assert refusals[0] == refusals[1], f"{text}: refused by device, CPU: {refusals}"
    for ours, theirs in zip(found[0] or [], found[1] or [], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6, err_msg=text)


@pytest.mark.parametrize("op", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_what_does_not_fit_is_refused(way: str, op: str) -> None:
    for change in changes_of(op):
        compare(way, op, change, {})


@pytest.mark.parametrize("op", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_what_fits_is_computed(way: str, op: str) -> None:
    compare(way, op, None, {})
    for name, values in attributes_of(op).items():
        for value in values:
            compare(way, op, None, {name: value})


@pytest.mark.parametrize("op", [op for op in STEPS if "Sparse" not in op])
def test_a_step_of_known_shapes_is_not_checked_again(op: str) -> None:
    starts, rest = split(op, None)
    counts = []
    # A function is measured as it is traced.
    _of_any_shape.cache_clear()
    for way in (known, unknown):
        with tf.device(DEVICE):
            context.enable_run_metadata()
            way(op, starts, rest, {})
            graphs = context.export_run_metadata().partition_graphs
            context.disable_run_metadata()
        counts.append(sum(node.op == "TfpStepFits" for graph in graphs for node in graph.node))
    assert counts == [0, 1]
