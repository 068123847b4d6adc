"""Recorded inputs and predictions: from a file, or made here."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from converters.tf import ir
from converters.tf.emit.crate import Features
from converters.tf.emit.model import feature_keys
from converters.tf.errors import FeaturesError, shortened
from converters.tf.lower.trace import Predict
from tools.codegen.conversion import Problem

# Examples that are made if there is no file.
_EXAMPLES = 3
# Integers that are made for an input of which nothing is known.
_INTEGERS = 10
# Ops whose results have no other elements than their operands; a `Select` chooses between an index
# and what a negative one stands for.
_MOVED = (ir.BroadcastTo, ir.Cast, ir.Concat, ir.Reshape, ir.Select, ir.Slice, ir.Transpose)
_DIVISIONS = (
    ir.BinaryKind.DIV,
    ir.BinaryKind.FLOOR_DIV,
    ir.BinaryKind.FLOOR_MOD,
    ir.BinaryKind.TRUNC_MOD,
)
# Largest difference of a recorded prediction from the model's own, absolute and relative.
_TOLERANCE = 1e-3


def made(graph: ir.Graph, predict: Predict) -> Features:
    """Returns the model's predictions for inputs that are always the same.

    Raises:
        FeaturesError: The model refuses the inputs.
    """
    random = np.random.default_rng(2021)
    inputs = {}
    for port in graph.inputs:
        shape = ir.shape_at(port.value.shape, _EXAMPLES)
        kind = port.value.dtype.numpy
        least, limit = (0, 2) if kind.kind == "b" else _limits(graph, port.value)
        whole = random.integers(least, limit, shape)
        data = random.normal(size=shape) if kind.kind == "f" else whole
        inputs[port.name] = data.astype(kind)
    try:
        return Features(inputs, predict(inputs))
    except Exception as err:  # TensorFlow raises whatever the model's ops make it raise.
        what = f"the model fails for random inputs: {shortened(err)}"
        advice = "record inputs that it takes, and pass them as --path_to_fv"
        raise FeaturesError(Problem("made features", what, advice)) from err


def _limits(graph: ir.Graph, value: ir.Value) -> tuple[int, int]:
    """Returns between which numbers an input must be: a divisor, or an index into tables."""
    least, sizes = 0, []
    same = {value}
    for node in graph.nodes:
        if isinstance(node.op, _MOVED) and same.intersection(node.present):
            same.update(node.outputs)
        second = node.operand(1)
        if second is None or second not in same:
            continue
        if isinstance(node.op, ir.Gather):
            size = node.input.shape[node.op.axis]
            if isinstance(size, int):
                sizes.append(size)
        elif isinstance(node.op, ir.Binary) and node.op.kind in _DIVISIONS:
            least = 1
    return least, max(least + 1, min(sizes, default=_INTEGERS))


def read(path: Path, graph: ir.Graph, predict: Predict) -> Features:
    """Returns recorded features after comparing them with the model.

    Raises:
        FeaturesError: The file can't be read, an array of an input is missing, an array is of
            neither input nor output or has another shape or type, or the predictions are not the
            model's.
    """
    arrays = _arrays(path)
    input_keys, output_keys = feature_keys(graph)
    problems = [*_differences(path, arrays, graph.inputs, input_keys)]
    known = [*input_keys.values(), *output_keys.values()]
    problems += [
        Problem(str(path), f"array {name!r} is nothing of the model; it has {', '.join(known)}")
        for name in arrays
        if name not in known
    ]
    if len(graph.inputs) and not problems:
        sizes = {_examples(p.value, arrays[input_keys[p.name]]) for p in graph.inputs} - {None}
        if len(sizes) > 1:
            what = f"its inputs have {' and '.join(sorted(map(str, sizes)))} examples"
            problems.append(Problem(str(path), what))
    if problems:
        raise FeaturesError.of(problems)
    inputs = {p.name: arrays[input_keys[p.name]].astype(p.value.dtype.numpy) for p in graph.inputs}
    try:
        outputs = predict(inputs)
    except Exception as err:  # As above.
        what = f"the model fails for these inputs: {shortened(err)}"
        raise FeaturesError(Problem(str(path), what)) from err
    for port in graph.outputs:
        key = output_keys[port.name]
        if key in arrays:
            problems += _disagreement(path, key, arrays[key], outputs[port.name])
    if problems:
        raise FeaturesError.of(problems)
    return Features(inputs, outputs)


def _arrays(path: Path) -> dict[str, ir.Array]:
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            what = "holds a single array; expected one per input, as numpy.savez writes them"
            raise FeaturesError(Problem(str(path), what))
        with file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError, KeyError) as err:
        what = f"can't be read as .npz: {err}"
        raise FeaturesError(Problem(str(path), what)) from err


def _differences(
    path: Path,
    arrays: Mapping[str, ir.Array],
    ports: tuple[ir.Port, ...],
    keys: Mapping[str, str],
) -> list[Problem]:
    problems = []
    for port in ports:
        array = arrays.get(keys[port.name])
        if array is None:
            what = f"no array {keys[port.name]!r}; there are {', '.join(arrays) or 'none'}"
            problems.append(Problem(str(path), what))
        elif not _fits(array, port.value):
            expected = f"{port.value.dtype.numpy}{ir.shape_text(port.value.shape)}"
            found = f"{array.dtype}{list(array.shape)}"
            problems.append(
                Problem(str(path), f"array {keys[port.name]!r} is {found}, expected {expected}")
            )
    return problems


def _fits(array: ir.Array, value: ir.Value) -> bool:
    if array.ndim != value.rank or array.dtype.kind not in "biuf":
        return False
    if array.dtype.kind == "f" and value.dtype.numpy.kind != "f":
        return False
    examples = _examples(value, array)
    if examples is None:
        return array.shape == ir.shape_at(value.shape, 1)
    return examples > 0 and array.shape == ir.shape_at(value.shape, examples)


def _examples(value: ir.Value, array: ir.Array) -> int | None:
    for dim, size in zip(value.shape, array.shape, strict=False):
        if isinstance(dim, ir.Batch):
            return int(size) // dim.scale
    return None


def _disagreement(path: Path, key: str, recorded: ir.Array, own: ir.Array) -> list[Problem]:
    if recorded.shape != own.shape:
        what = f"array {key!r} has the shape {list(recorded.shape)}, the model's {list(own.shape)}"
        return [Problem(str(path), what)]
    if recorded.dtype.kind not in "biuf":
        what = f"array {key!r} is {recorded.dtype}, expected {own.dtype}"
        return [Problem(str(path), what)]
    if not np.allclose(recorded, own, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True):
        apart = np.abs(recorded.astype(np.float64) - own)
        known = apart[np.isfinite(apart)]
        by = f"up to {known.max():.3g}" if known.any() else "what is no number"
        what = f"array {key!r} differs from what the model predicts by {by}"
        return [Problem(str(path), what, "record it with this model")]
    return []
