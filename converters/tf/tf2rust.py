"""The conversion as a library: a model file in, the files of a folder out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from converters.tf import features as recorded
from converters.tf import ir
from converters.tf.architecture import FOLDER, description_files
from converters.tf.convert import convert
from converters.tf.emit.crate import emit_crate
from converters.tf.emit.options import Options, WeightsMode
from converters.tf.emit.support import problems
from converters.tf.load.model import LoadOptions, load
from converters.tf.plan import Plan, plan_memory
from converters.tf.trace import Loaded
from tools.codegen.conversion import Problem, UnsupportedError, UsageError

Progress = Callable[[str], None]
# Largest difference of a generated test from predictions that were made in half precision.
_HALF_TOLERANCE = 2e-2
# The same for int8: a last bit before it can decide to which of 127 steps a number is rounded.
_INT8_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Request:
    """What to convert, and how.

    Attributes:
        model: A model file or folder.
        options: How the crate is to be.
        load: How the model is loaded.
        features: Recorded inputs and predictions; made here if not given.
        rustfmt: The program that lays out the text.
        crate_only: Leave out the description of the source model.
    """

    model: Path
    options: Options
    load: LoadOptions = field(default_factory=LoadOptions)
    features: Path | None = None
    rustfmt: str | None = None
    crate_only: bool = False


@dataclass(frozen=True)
class Result:
    """A converted model.

    Attributes:
        plan: The memory plan of its graph.
        weights: Where the crate has its weights.
        files: Content by path in the output folder.
    """

    plan: Plan
    weights: WeightsMode
    files: dict[str, bytes]


def run(request: Request, progress: Progress = lambda _: None) -> Result:
    """Converts a model; writes nothing.

    Args:
        request: What to convert.
        progress: Called with what is done next.

    Raises:
        ConversionError: See `errors.py`.
    """
    progress("load")
    loaded = load(request.model, request.load)
    graph = graph_of(loaded, progress)
    progress("plan memory")
    plan = plan_memory(graph, request.options.inplace, request.options.memdrop)
    progress("predict")
    if request.features is None:
        features = recorded.made(graph, loaded.predict)
    else:
        features = recorded.read(request.features, graph, loaded.predict)
    progress("write Rust")
    options = request.options
    if loaded.trace.half:
        options = replace(options, tolerance=max(options.tolerance, _HALF_TOLERANCE))
    if any(v.data is not None and v.data.dtype == "int8" for v in loaded.trace.variables.values()):
        options = replace(options, tolerance=max(options.tolerance, _INT8_TOLERANCE))
    try:
        crate = emit_crate(graph, options, features, request.rustfmt)
    except OSError as err:
        raise UsageError(Problem(str(request.rustfmt), f"can't be started: {err}")) from err
    files = {f"rust_generated_code/{path}": content for path, content in crate.items()}
    if not request.crate_only:
        progress("describe the source model")
        for name, content in description_files(loaded.trace).items():
            files[f"{FOLDER}/{name}"] = content
    weights = options.weights_for(len(crate["model/model_weights.bin"]))
    return Result(plan, weights, dict(sorted(files.items())))


def graph_of(loaded: Loaded, progress: Progress = lambda _: None) -> ir.Graph:
    """Returns the graph of a loaded model that the emitters take.

    Raises:
        UnsupportedError: With everything that is not supported.
    """
    total = sum(len(f.nodes) for f in (loaded.trace.main, *loaded.trace.functions.values()))
    progress(f"convert {total} nodes")
    graph = convert(loaded.trace)
    refused = [
        Problem(f"layer {layer}" if layer else "model", reason) for layer, reason in problems(graph)
    ]
    if refused:
        raise UnsupportedError.of(refused)
    return graph
