"""Writes what Python's gradients are: a text file that the Rust test reads.

A line is a word that says what it is, then fields separated by spaces. A case begins with `case`,
and has a line per attribute, input, output gradient and expected gradient, in this order. Lines of
programs follow.
"""

import inspect
import pathlib
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import app, flags

# Each registers gradients.
from tensorflow.python.debug.lib import debug_gradients, dumping_callback  # noqa: F401
from tensorflow.python.framework import op_def_registry, ops

from bindings.client.tests.gradient_cases import cases, graphs, layers, programs, structures
from bindings.client.tests.gradient_cases.case import Case

_OUT = flags.DEFINE_string("out", None, "File to write.", required=True)

# Arguments that tf.raw_ops names otherwise than the op's definition.
_RENAMED = {
    "dim": "axis",
    "e": "y",
    "reduction_indices": "axis",
    "split_dim": "axis",
    "squeeze_dims": "axis",
    "t": "x",
}

_DIFFERENTIABLE = ("f2", "f4", "f8", "c8", "c16")


def _tensor(value: Any) -> str:
    array = np.asarray(value)
    kind = array.dtype.str[1:] if array.dtype != np.bool_ else "b1"
    dims = ",".join(str(dim) for dim in array.shape) or "-"
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], -1).reshape(-1)
    return f"{kind} {dims} " + " ".join(repr(float(item)) for item in flat)


def _attr(value: Any) -> str:
    match value:
        case bool():
            return f"bool {value:d}"
        case int():
            return f"int {value}"
        case float():
            return f"float {value!r}"
        case str() if value in _DIFFERENTIABLE:
            return f"type {value}"
        case str():
            return f"text {value}"
        case list() if value and isinstance(value[0], float):
            return "floats " + " ".join(repr(item) for item in value)
        case list() if value and isinstance(value[0], str):
            return "texts " + " ".join(value)
        case list():
            return "ints " + " ".join(str(item) for item in value)
    raise TypeError(f"an attribute of an unknown kind: {value!r}")


def _python_attr(kind: str, value: Any) -> Any:
    return tf.as_dtype(np.dtype(value)) if kind == "type" else value


def _flat(values: list[Any]) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _seed(name: str, index: int, like: Any) -> Any:
    random = np.random.default_rng(zlib.crc32(f"{name}/{index}".encode()))
    values = random.uniform(-1, 1, like.shape)
    if like.dtype.is_complex:
        values = values + 1j * random.uniform(-1, 1, like.shape)
    return values.astype(like.dtype.as_numpy_dtype)


def _describe(case: Case) -> list[str]:
    """Returns the lines of a case."""
    flags = (case.numeric, case.python, case.second, case.graph)
    lines = [f"case {case.name} {case.op} " + " ".join(f"{flag:d}" for flag in flags)]
    if case.producer:
        lines.append(f"producer {case.producer}")
    if case.slopes is not None:
        lines.append("slopes " + " ".join(str(index) for index in case.slopes))
    if case.symmetric:
        lines.append("symmetric")
    lines += [f"fed {_tensor(value)}" for value in case.fed]
    lines += [f"attr {name} {_attr(value)}" for name, value in case.attrs.items()]
    definition = op_def_registry.get(case.op)
    kinds = {attr.name: attr.type for attr in definition.attr}
    attrs = {name: _python_attr(kinds[name], value) for name, value in case.attrs.items()}
    for value in case.inputs:
        if isinstance(value, list):
            lines.append(f"list {len(value)}")
            lines += [f"item {_tensor(item)}" for item in value]
        else:
            lines.append(f"input {_tensor(value)}")
    call = getattr(tf.raw_ops, case.op)
    accepted = inspect.signature(call).parameters
    python_name = {
        name: name if name in accepted else _RENAMED[name]
        for name in [*(argument.name for argument in definition.input_arg), *attrs]
    }
    names = [python_name[argument.name] for argument in definition.input_arg]
    attrs = {python_name[name]: value for name, value in attrs.items()}
    if case.graph:
        return lines + _in_a_graph(case, call, names, attrs)
    inputs = [
        [tf.constant(item) for item in value] if isinstance(value, list) else tf.constant(value)
        for value in case.inputs
    ]
    flat = _flat(inputs)
    watched = [value for value in flat if value.dtype.is_floating or value.dtype.is_complex]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(watched)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(watched)
            found = call(**dict(zip(names, inputs, strict=True)), **attrs)
        outputs = [found] if isinstance(found, tf.Tensor) else _flat(list(found))
        used = [
            (index, value)
            for index, value in enumerate(outputs)
            if value.dtype.is_floating or value.dtype.is_complex
        ]
        if (
            case.op.startswith("FusedBatchNorm")
            or case.op.endswith(("CrossEntropyWithLogits", "EigV2", "CTCLoss"))
            or not case.attrs.get("compute_uv", True)
            or not case.attrs.get("compute_v", True)
        ):
            # Further outputs are what the gradient needs, or statistics without one.
            used = used[:1]
        if case.op == "LogMatrixDeterminant":
            used = used[1:]
        if case.op.startswith("BlockLSTM"):
            # States have gradients; gates are what the gradient needs.
            used = [used[1], used[6]]
        seeds = {index: _seed(case.name, index, value) for index, value in used}
        for index, seed in seeds.items():
            lines.append(f"dy {index} {_tensor(seed)}")
        if not case.python:
            return lines
        ys = [value for _, value in used]
        grads = inner.gradient(ys, watched, [tf.constant(seeds[index]) for index, _ in used])
        dense = [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]
    for grad in dense:
        lines.append("grad none" if grad is None else f"grad {_tensor(grad.numpy())}")
    if case.second:
        present = [grad for grad in dense if grad is not None]
        weights = [tf.constant(_seed(f"{case.name}/second", i, g)) for i, g in enumerate(present)]
        second = outer.gradient(present, watched, weights)
        lines += [f"weight {_tensor(weight.numpy())}" for weight in weights]
        for grad in second:
            text = "none" if grad is None else _tensor(tf.convert_to_tensor(grad).numpy())
            lines.append(f"second {text}")
    return lines


def _in_a_graph(
    case: Case, call: Callable[..., Any], names: list[str], attrs: dict[str, Any]
) -> list[str]:
    """Returns the lines of what a graph gives: seeds and gradients."""
    v1 = tf.compat.v1
    feeds: dict[Any, Any] = {}
    watched: list[Any] = []

    def enter(value: Any) -> Any:
        if value.dtype.kind not in "fc":
            return tf.constant(value)
        if case.op.startswith("Ref"):
            watched.append(v1.Variable(value, use_resource=False).op.outputs[0])
        else:
            watched.append(v1.placeholder(value.dtype, value.shape))
            feeds[watched[-1]] = value
        return watched[-1]

    # An op without a kernel is not placed where nothing needs it.
    config = v1.ConfigProto(graph_options=v1.GraphOptions(place_pruned_graph=True))
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        if case.producer:
            tf.import_graph_def(v1.GraphDef(versions={"producer": case.producer}), name="")
        inputs = [
            [enter(item) for item in value] if isinstance(value, list) else enter(value)
            for value in case.inputs
        ]
        if case.op == "DebugGradientIdentity":
            found = debug_gradients.GradientsDebugger().identify_gradient(*inputs)
        else:
            found = call(**dict(zip(names, inputs, strict=True)), **attrs)
        outputs = [found] if isinstance(found, tf.Tensor) else _flat(list(found))
        feeds |= dict(zip(outputs, case.fed, strict=False))
        # Further outputs are what the gradient needs.
        used = outputs[:1]
        seeds = [_seed(case.name, 0, value) for value in used]
        lines = [f"dy {index} {_tensor(seed)}" for index, seed in enumerate(seeds)]
        if case.python:
            given = [tf.constant(seed) for seed in seeds]
            if case.op == "TopK":
                # The function returns one gradient more than the op has inputs.
                grads = ops.get_gradient_function(used[0].op)(used[0].op, *given, None)[:1]
            else:
                grads = tf.gradients(used, watched, given)
            session.run(v1.global_variables_initializer())
            lines += [f"grad {_tensor(value)}" for value in session.run(grads, feeds)]
    return lines


def main(argv: Sequence[str]) -> None:
    """Writes every case; stops at none that fails, and names all that did."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    lines, failed = [], []
    groups = (cases, layers, structures, graphs)
    for case in [case for group in groups for case in group.cases()]:
        try:
            lines += _describe(case)
        except Exception as error:  # Any case may fail in its own way; all are reported.
            failed.append(f"{case.name}: {error}")
    if failed:
        sys.exit("cases that Python can't compute:\n" + "\n".join(failed))
    lines += programs.lines()
    # What Python differentiates; other ops have an entry that says that they are constant.
    registry = ops.gradient_registry
    lines += [f"registered {op}" for op in sorted(registry.list()) if registry.lookup(op)]
    pathlib.Path(_OUT.value).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
