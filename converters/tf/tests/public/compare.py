"""Converts a published model and compares it with who else computes it."""

from __future__ import annotations

import dataclasses
import os
import resource
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from converters.tf import ir
from converters.tf.emit.options import Options
from converters.tf.ir.expressions import Size
from converters.tf.ir.fixed import fixed, multiples, open_dims, sizes_of
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import load
from converters.tf.lower.trace import Loaded
from converters.tf.tests.checks import difference
from converters.tf.tests.public.archives import taken
from converters.tf.tests.public.entry import Entry, Kind
from converters.tf.tests.public.tflite import by_tflite, rounded
from converters.tf.tf2rust import Request, graph_of, run
from tools.codegen.conversion import ConversionError

# Sizes of an open batch in the two calls.
_BATCHES = (1, 3)
_REASON_CHARACTERS = 200


class CrateError(Exception):
    """The test of a crate fails."""


@dataclasses.dataclass(frozen=True)
class Found:
    """What became of a model.

    Attributes:
        name: Its name.
        dims: Dimensions that the crate leaves open.
        nodes: Nodes of the graph.
        difference: Largest difference of an element, as of `checks.difference`.
        largest: Largest element of the expected outputs.
        seconds: The processor's time of `cargo test`; 0 if nobody asked.
        refused: Why tf2rust refuses it, or empty.
        error: What failed, or empty.
    """

    name: str
    dims: tuple[str, ...] = ()
    nodes: int = 0
    difference: float = float("nan")
    largest: float = 0.0
    seconds: float = 0.0
    refused: str = ""
    error: str = ""


def attempt(entry: Entry, folder: Path, cargo: str | None = None) -> Found:
    """Converts a model and compares it.

    Args:
        entry: The model.
        folder: Where its archive lies, or comes to lie.
        cargo: The program that runs the test of its crate; none to leave that out.

    Raises:
        ArchiveError: The archive can't be fetched, is another one, or lacks the model.
        CrateError: The test of its crate fails.
        AssertionError: An output has another shape or element type, or is not finite.
        ValueError: The list lacks a size, or there are more or fewer outputs.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path = taken(entry, folder, Path(scratch))
        found = Found(entry.name)
        try:
            loaded = load(path, entry.options())
            graph = graph_of(loaded)
        except ConversionError as err:
            # The folder is another one in each run.
            reason = str(err.problems[0]).replace(f"{scratch}/", "")
            return dataclasses.replace(found, refused=_short(reason))
        apart, largest = _compared(entry, path, loaded, graph)
        found = dataclasses.replace(
            found,
            dims=_dims(graph),
            nodes=len(graph.nodes),
            difference=apart,
            largest=largest,
        )
        if cargo is not None:
            try:
                return dataclasses.replace(found, seconds=_tested(entry, path, cargo))
            except ConversionError as err:
                return dataclasses.replace(found, error=_short(str(err.problems[0])))
        return found


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _REASON_CHARACTERS else f"{text[:_REASON_CHARACTERS]} ..."


def _dims(graph: ir.Graph) -> tuple[str, ...]:
    """Returns the open dimensions as the page names them."""
    sizes = (dim for port in graph.inputs for dim in port.value.shape)
    batch = any(isinstance(dim, ir.Batch) for dim in sizes)
    by = multiples(graph)
    names = [f"{name} (times {by[name]})" if name in by else name for name in open_dims(graph)]
    return (*(["batch"] if batch else []), *names)


def inputs(entry: Entry, graph: ir.Graph, call: int) -> dict[str, ir.Array]:
    """Returns random inputs for one of the two calls.

    Raises:
        ValueError: The list has no size for an open dimension.
    """
    random = np.random.default_rng(call)
    low, high = entry.span
    missing = [name for name in open_dims(graph) if name not in entry.sizes]
    if missing:
        raise ValueError(f"the list has no sizes for {', '.join(missing)}")
    sizes = {name: both[call] for name, both in entry.sizes.items()}
    arrays = {}
    for port in graph.inputs:
        dims = ir.shape_at(port.value.shape, _BATCHES[call])
        shape = [d.at(sizes) if isinstance(d, Size) else d for d in dims]
        if port.value.dtype is ir.DType.STR:
            arrays[port.name] = random.choice(np.array(entry.texts, object), shape)
            continue
        kind = port.value.dtype.numpy
        data: ir.Array = np.asarray(random.uniform(low, high, shape))
        if kind.kind != "f":
            data = np.asarray(random.integers(int(low), int(high) + 1, shape))
        arrays[port.name] = data.astype(kind)
    return arrays


def _compared(entry: Entry, path: Path, loaded: Loaded, graph: ir.Graph) -> tuple[float, float]:
    """Returns the largest difference and the largest element of the outputs of two calls."""
    worst = largest = 0.0
    for call in range(len(_BATCHES)):
        given = inputs(entry, graph, call)
        expected = _expected(entry, path, loaded, given)
        found = interpret(fixed(graph, sizes_of(graph, given)), given)
        if entry.kind is Kind.TFLITE:
            found = rounded(path, found)
        if len(found) != len(expected):
            raise ValueError(f"outputs {', '.join(found)}, expected {', '.join(expected)}")
        # TFLite's own names are not those of the signature; the order is the same.
        named = found.keys() == expected.keys()
        for own, (name, array) in zip(found.values(), expected.items(), strict=True):
            wanted = np.asarray(array)
            worst = max(worst, difference(found[name] if named else own, wanted))
            if wanted.dtype != object:
                largest = max(largest, float(np.abs(wanted, dtype=np.float64).max(initial=0)))
    return worst, largest


def _expected(
    entry: Entry, path: Path, loaded: Loaded, given: dict[str, ir.Array]
) -> Mapping[str, ir.Array]:
    """Returns the outputs that the model ought to have.

    Where TFLite rounds inputs, `given` has the rounded ones then.
    """
    if entry.kind is Kind.ONNX:
        return _by_onnxruntime(path, {**_constants(entry), **given})
    if entry.kind is Kind.TFLITE:
        return by_tflite(path, given)
    return loaded.predict(given)


def _constants(entry: Entry) -> dict[str, ir.Array]:
    """Returns the inputs that the crate has not."""
    return {name: np.array(int(text)) for name, text in entry.options().values.items()}


def _by_onnxruntime(path: Path, given: Mapping[str, ir.Array]) -> dict[str, ir.Array]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(given)), strict=True))


def _processor() -> float:
    """Returns the seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tested(entry: Entry, path: Path, cargo: str) -> float:
    """Writes the crate and runs its own test; returns the processor's seconds.

    Raises:
        CrateError: The test fails.
        ConversionError: See `converters/tf/errors.py`.
    """
    result = run(Request(path, Options("Net", path.name), entry.options(), crate_only=True))
    with tempfile.TemporaryDirectory() as scratch:
        for name, content in result.files.items():
            file = Path(scratch, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        start = _processor()
        done = subprocess.run(
            [cargo, "test", "--release", "--offline"],
            cwd=Path(scratch, "rust_generated_code"),
            env={**os.environ, "CARGO_TARGET_DIR": str(Path(scratch, "target"))},
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = _processor() - start
    if done.returncode != 0:
        raise CrateError(" ".join(f"{done.stdout[-400:]} {done.stderr[-200:]}".split()))
    return seconds
