"""Recorded inputs and predictions: from a file, or made here."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from converters.tf import ir
from converters.tf.emit.crate import Features
from converters.tf.emit.model import feature_keys
from converters.tf.errors import FeaturesError, shortened
from converters.tf.ir.expressions import Size, names_of
from converters.tf.ir.fixed import fixed, multiples, open_dims, sizes_of
from converters.tf.ir.longest import longest_dims
from converters.tf.ir.samples import made_texts
from converters.tf.lower.trace import Predict
from tools.codegen.conversion import Problem

# Examples that are made if there is no file.
_EXAMPLES = 3
# What open dimensions are if there is no file: the first that the model takes. An image is larger
# than the windows of a deep network, which halves it five times.
_SIZES = (7, 19, 67, 259, 1031, 4099, 16411)
_SIDES = (67, 131, 259, 19, 7, 1031, 4099)
# The rank of an image, how many of its dimensions are open then, and its numbers of channels.
_IMAGE, _CHANNELS = (4, 2), (1, 3, 4)
# Integers that are made for an input of which nothing is known.
_INTEGERS = 10
# The same for further attempts, after which only 0 is left.
_FEWER = (_INTEGERS, _INTEGERS, 5, 2)
# Ops whose results have no other elements than their operands; a `Select` chooses between an index
# and what a negative one stands for.
_MOVED = (ir.BroadcastTo, ir.Cast, ir.Concat, ir.Reshape, ir.Select, ir.Slice, ir.Transpose)
# Functions that leave integers as they are.
_ROUNDED = (ir.Fn.ABS, ir.Fn.CEIL, ir.Fn.FLOOR, ir.Fn.ROUND)
_DIVISIONS = (
    ir.BinaryKind.DIV,
    ir.BinaryKind.FLOOR_DIV,
    ir.BinaryKind.FLOOR_MOD,
    ir.BinaryKind.TRUNC_MOD,
)
# Elements of an input that are made, at most: 2 GiB as they are drawn.
_MOST_ELEMENTS = 1 << 28
# Largest difference of a recorded prediction from the model's own, absolute and relative.
_TOLERANCE = 1e-3


def with_sizes(
    graph: ir.Graph, path: Path | None, most: Mapping[str, int] = MappingProxyType({})
) -> ir.Graph:
    """Returns a graph with numbers for its open dimensions: those of a file, or typical ones.

    Without a file, those that texts decide stay open.

    Args:
        graph: The graph.
        path: The file; without one, typical sizes are taken.
        most: The most that a dimension may be, by its name.

    Raises:
        FeaturesError: The file can't be read, or the model takes no typical size; arrays of the
            file contradict each other or the model, or are larger than they may be.
    """
    if path is not None:
        arrays = _arrays(path)
        keys, _ = feature_keys(graph)
        problems = [
            Problem(str(path), f"no array {key!r}; there are {', '.join(arrays) or 'none'}")
            for key in keys.values()
            if key not in arrays
        ]
        if problems:
            raise FeaturesError.of(problems)
        try:
            sizes = sizes_of(graph, {n: arrays[k] for n, k in keys.items()})
            for name, size in sizes.items():
                if size > most.get(name, size):
                    raise ValueError(f"{name} is {size}, and may be {most[name]} at most")
            return fixed(graph, sizes)
        except ValueError as err:
            raise FeaturesError(Problem(str(path), str(err))) from err
    told = longest_dims(graph)
    names = [name for name in open_dims(graph) if name not in told]
    sides, steps = _sides(graph), multiples(graph)
    for least, side in zip(_SIZES, _SIDES, strict=True):
        sizes = {}
        for place, name in enumerate(names):
            step = steps.get(name, 1)
            size = max((side if name in sides else least) // step, 1) + place
            sizes[name] = min(size, most.get(name, size * step) // step) * step
        try:
            return fixed(graph, sizes)
        except ValueError:
            continue
    tried = " x ".join(str(size) for size in sizes.values())
    what = f"the model takes no inputs whose {', '.join(names)} are {tried}"
    advice = (
        "record inputs that it takes, and pass them as --path_to_fv, or give sizes by --input_shape"
    )
    raise FeaturesError(Problem("made features", what, advice))


def _sides(graph: ir.Graph) -> frozenset[str]:
    """Returns the names of open dimensions that are sides of images."""
    found: set[str] = set()
    for port in graph.inputs:
        dims = [dim for dim in port.value.shape[1:] if isinstance(dim, Size)]
        channels = any(dim in _CHANNELS for dim in port.value.shape[1:] if isinstance(dim, int))
        if (port.value.rank, len(dims)) == _IMAGE and channels:
            found.update(name for dim in dims for name in names_of(dim))
    return frozenset(found)


def made(
    graph: ir.Graph,
    predict: Predict,
    attempt: int = 0,
    bounds: Mapping[str, int] = MappingProxyType({}),
) -> Features:
    """Returns the model's predictions for inputs that are always the same.

    Args:
        graph: The graph.
        predict: The model.
        attempt: Other inputs for every number; integers of which nothing is known become smaller.
        bounds: The most that a dimension which texts decide may be, by its name.

    Raises:
        FeaturesError: The model refuses the inputs, or they are too large to be made.
    """
    random = np.random.default_rng(2021 + attempt)
    most = _FEWER[attempt] if attempt < len(_FEWER) else 1
    inputs = {}
    for port in graph.inputs:
        shape = ir.shape_at(port.value.shape, _EXAMPLES)
        if math.prod(shape) > _MOST_ELEMENTS:
            what = f"{_EXAMPLES} examples of {port.name!r} have the shape {list(shape)}"
            advice = "record inputs, and pass them as --path_to_fv"
            raise FeaturesError(Problem("made features", f"{what}, too much to make", advice))
        kind = port.value.dtype.numpy
        if port.value.dtype is ir.DType.STR:
            texts = made_texts(graph, port.value, shape, attempt)
            for name, longest in longest_dims(graph).items():
                if longest.port.name == port.name and name in bounds:
                    texts = longest.within(texts, bounds[name])
            inputs[port.name] = texts
            continue
        least, limit, table = _limits(graph, port.value, most)
        if kind.kind == "b":
            least, limit = 0, 2
        whole = random.integers(least, limit, shape)
        data = random.normal(size=shape) if kind.kind == "f" and not table else whole
        inputs[port.name] = data.astype(kind)
    try:
        return Features(inputs, _readable(predict(inputs)))
    except Exception as err:  # TensorFlow raises whatever the model's ops make it raise.
        what = f"the model fails for random inputs: {shortened(err)}"
        advice = "record inputs that it takes, and pass them as --path_to_fv"
        raise FeaturesError(Problem("made features", what, advice)) from err


def _limits(graph: ir.Graph, value: ir.Value, most: int) -> tuple[int, int, bool]:
    """Returns between which integers an input must be, and whether it is an index into tables."""
    least, sizes = _needs(graph, {value})
    return least, max(least + 1, min(sizes, default=most)), bool(sizes)


def _needs(graph: ir.Graph, same: set[ir.Value]) -> tuple[int, list[int]]:
    """Returns the least number that some values may be, and the sizes of what they index.

    Args:
        graph: A graph, or the body of a loop.
        same: The values; what has the same elements is added.
    """
    least = 0
    sizes: list[int] = []
    for node in graph.nodes:
        op = node.op
        if moves(op) and same.intersection(node.present):
            same.update(node.outputs)
        if isinstance(op, ir.Loop):
            inner = {
                port.value
                for port, carried in zip(op.body.inputs[1:], node.present, strict=True)
                if carried in same
            }
            within, more = _needs(op.body, inner)
            least, sizes = max(least, within), sizes + more
        second = node.operand(1)
        if second is None or second not in same:
            continue
        sizes += [d for d in _indexed(node) if isinstance(d, int)]
        if isinstance(op, ir.Binary) and op.kind in _DIVISIONS:
            least = 1
    return least, sizes


def moves(op: ir.Op) -> bool:
    """Returns whether integers come out of an op as they went in."""
    rounded = isinstance(op, ir.Unary) and op.function.kind in _ROUNDED
    return rounded or isinstance(op, _MOVED)


def _indexed(node: ir.Node) -> Sequence[ir.Dim]:
    """Returns the sizes of the axes that the second operand of a node indexes."""
    op, shape = node.op, node.input.shape
    if isinstance(op, ir.Gather):
        return shape[op.axis : op.axis + 1]
    if isinstance(op, ir.Update):
        return shape[:1]
    if isinstance(op, ir.Scatter):
        depth = node.present[1].shape[-1]
        assert isinstance(depth, int)
        return shape[op.batch_dims : op.batch_dims + depth]
    return ()


def read(path: Path, graph: ir.Graph, predict: Predict) -> Features:
    """Returns recorded features after comparing them with the model.

    Raises:
        FeaturesError: The file can't be read, or an array of an input is missing; an array is of
            neither input nor output, or has another shape or type; the predictions are not the
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
        outputs = _readable(predict(inputs))
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


def _readable(outputs: Mapping[str, ir.Array]) -> dict[str, ir.Array]:
    """Returns outputs, of which text is Python's strings."""
    return {name: _strings(x) if x.dtype.kind in "OSU" else x for name, x in outputs.items()}


def _strings(texts: ir.Array) -> ir.Array:
    found = [ir.as_bytes(text).decode(errors="replace") for text in texts.ravel()]
    return np.array(found, object).reshape(texts.shape)


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
            text = port.value.dtype is ir.DType.STR
            kind = "text" if text else port.value.dtype.numpy
            expected = f"{kind}{ir.shape_text(port.value.shape)}"
            found = f"{array.dtype}{list(array.shape)}"
            problems.append(
                Problem(str(path), f"array {keys[port.name]!r} is {found}, expected {expected}")
            )
    return problems


def _fits(array: ir.Array, value: ir.Value) -> bool:
    if array.ndim != value.rank or array.dtype.kind not in "biufU":
        return False
    if (array.dtype.kind == "U") != (value.dtype is ir.DType.STR):
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
    if recorded.dtype.kind == "U" and own.dtype.kind == "O":
        if np.array_equal(recorded.astype(object), own):
            return []
        what = f"array {key!r} has other text than the model gives"
        return [Problem(str(path), what, "record it with this model")]
    if recorded.dtype.kind not in "biuf" or own.dtype.kind == "O":
        what = f"array {key!r} is {recorded.dtype}, expected {own.dtype}"
        return [Problem(str(path), what)]
    if not np.allclose(recorded, own, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True):
        apart = np.abs(recorded.astype(np.float64) - own)
        known = apart[np.isfinite(apart)]
        by = f"up to {known.max():.3g}" if known.any() else "NaN or infinity"
        what = f"array {key!r} differs from what the model predicts by {by}"
        return [Problem(str(path), what, "record it with this model")]
    return []
