"""The conversion as a library: a model file in, the files of a folder out."""

from __future__ import annotations

import contextlib
import gc
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from converters.tf import ir
from converters.tf.describe import features as recorded
from converters.tf.describe.architecture import FOLDER, description_files
from converters.tf.describe.steady import needed, settled, unsettled
from converters.tf.emit.crate import Features, crate_files
from converters.tf.emit.first_values import MOST, is_filled
from converters.tf.emit.model import ModelText, model_text
from converters.tf.emit.open_problems import fixed_sizes, open_problem, text_problem
from converters.tf.emit.options import Options, Profile, RuntimeMode, WeightsMode
from converters.tf.emit.support import problems
from converters.tf.errors import FeaturesError, FileError, shortened, sizes_advised
from converters.tf.ir import budget
from converters.tf.ir.agreeing import differences
from converters.tf.ir.dimensions import all_names, joined
from converters.tf.ir.dimensions import names as named
from converters.tf.ir.expressions import Size, counted
from converters.tf.ir.fixed import open_dims
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.lower.trace import Loaded, Trace
from converters.tf.passes import dynamic
from converters.tf.passes.rounded import WeightType, rounded
from converters.tf.plan.arena import Plan, plan_memory
from tools.codegen.conversion import Problem, UnsupportedError, UsageError

Progress = Callable[[str], None]
# New objects after which Python looks for cycles. A graph of thousands of nodes is some hundred
# thousand objects that stay, and each search looks at them again.
_OBJECTS = 1_000_000
# Largest difference of a generated test from predictions that were made in half precision.
_HALF_TOLERANCE = 2e-2
# The same for int8: a last bit before it can decide to which of 127 steps a number is rounded.
_INT8_TOLERANCE = 1e-2
# Characters of the reason why a model does not convert with open sizes.
_REASON = 160
# What is said of an output that rounding decides for the recorded inputs.
_DOUBTFUL = (
    "rounding decides it for the recorded inputs, such as the order of nearly equal scores, so that"
    " the crate's own test may fail (record other inputs, and pass them as --path_to_fv)"
)
# The same of a logarithm, and what the crate's own test allows then.
_LOGARITHM = (
    "a logarithm of numbers near 0 makes what is rounded before it large, so that the crate's own "
    "test allows differences of"
)


@dataclass(frozen=True)
class Request:
    """What to convert, and how.

    Attributes:
        model: A model file or folder.
        options: What the crate must be like.
        load: How the model is loaded.
        features: Recorded inputs and predictions; made here if not given.
        rustfmt: The program that lays out the text.
        crate_only: Leave out the description of the source model.
        web: Whether the crate is for an npm package, whose sizes are fixed.
    """

    model: Path
    options: Options
    load: LoadOptions = field(default_factory=LoadOptions)
    features: Path | None = None
    rustfmt: str | None = None
    crate_only: bool = False
    web: bool = False


@dataclass(frozen=True)
class Rounding:
    """By how much rounded weights change outputs for the recorded inputs.

    Both numbers are of float outputs, in units of the largest element of each.

    Attributes:
        largest: The largest difference.
        mean: The mean of all elements.
    """

    largest: float
    mean: float


@dataclass(frozen=True)
class Result:
    """A converted model.

    Attributes:
        plan: The memory plan of its graph.
        weights: Where the crate has its weights.
        weight_file_bytes: Bytes of the file with them.
        rounding: What rounded weights change; `None` if they are as the model has them.
        notes: What the user has to know about the crate.
        text: The model as the crate's templates saw it.
        options: How the crate is.
        files: Content by path in the output folder.
    """

    plan: Plan
    weights: WeightsMode
    weight_file_bytes: int
    rounding: Rounding | None
    notes: tuple[str, ...]
    text: ModelText
    options: Options
    files: dict[str, bytes]


def run(request: Request, progress: Progress = lambda _: None) -> Result:
    """Converts a model; writes nothing.

    Args:
        request: What to convert.
        progress: Called with what is done next.

    Raises:
        ConversionError: See `errors.py`.
    """
    options = request.options
    bare = options.profile is Profile.NO_STD
    if bare and options.weight_type is not WeightType.FLOAT32 and not _multiplies_bytes(request):
        what = f"crates without std read weights in place, and can't widen {options.weight_type}"
        raise UsageError(
            Problem("--weight_type", what, "leave it out, or leave out --profile=no_std")
        )
    if bare and options.weights in (WeightsMode.FILE, WeightsMode.BYTES):
        what = f"crates without std embed their weights; {options.weights.value} needs std"
        raise UsageError(Problem("--weights", what, "leave it out, or leave out --profile=no_std"))
    if bare and options.binary:
        what = "crates without std have no confidence levels"
        advice = "leave it out, or leave out --profile=no_std"
        raise UsageError(Problem("--binary_classification", what, advice))
    if not options.pack and options.runtime is RuntimeMode.CRATE:
        what = "the crate of the runtime packs weights, and only a copy of it does not"
        raise UsageError(Problem("--nopack_weights", what, "leave out --runtime=crate"))
    if options.most:
        if not bare:
            what = "crates with std take open dimensions of any size"
            raise UsageError(Problem("--max", what, "leave it out, or pass --profile=no_std"))
        shapes = replace(request.load.shapes, batch=request.load.shapes.batch or 1)
        request = replace(request, load=replace(request.load, shapes=shapes))
    with _few_searches():
        try:
            return _sized(request, progress)
        except MemoryError as err:
            what = f"the conversion needs more memory than there is: {shortened(err)}"
            raise FileError(Problem(str(request.model), what)) from err


def _sized(request: Request, progress: Progress) -> Result:
    """Converts a model; images of open size get the usual one if they can't stay open."""
    needed = fixed_sizes(request.options, request.web)
    request = _with_sides(request, needed)
    try:
        return _limited(request, progress)
    except (UnsupportedError, UsageError, FeaturesError) as err:
        recorded_wrong = isinstance(err, FeaturesError) and request.features is not None
        if needed or not request.load.shapes.opened or recorded_wrong:
            raise
        refused = err
    _forget(refused)
    progress("open sizes of images are refused: load again")
    first = refused.problems[0]
    why = f"{first.where}: {shortened(first.what, _REASON)}"
    request = _with_sides(request, f"the model does not convert with an open size: {why}")
    try:
        return _limited(request, progress)
    except UsageError:  # A flag that needs what is open, such as `--max`.
        raise refused from None


def _with_sides(request: Request, why: str) -> Request:
    """Returns a request where images of open size get the usual one, with a reason, or none."""
    shapes = request.load.shapes.with_sides(why)
    return replace(request, load=replace(request.load, shapes=shapes))


def _limited(request: Request, progress: Progress) -> Result:
    """Converts a model within the budget for its constants."""
    with budget.limited(_stored(request.model), lambda where: _passed(request.model, where)):
        return _converted(request, progress)


def _forget(err: BaseException | None) -> None:
    """Lets go of the model that the frames of an error hold."""
    while err is not None:
        traceback.clear_frames(err.__traceback__)
        err = err.__cause__ or err.__context__
    gc.collect()


@contextlib.contextmanager
def _few_searches() -> Iterator[None]:
    """Lets Python look for cycles rarely; what is there before, a program may freeze itself."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _OBJECTS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _stored(model: Path) -> int:
    """Returns the bytes of a model file or folder."""
    files = model.rglob("*") if model.is_dir() else [model]
    return sum(file.stat().st_size for file in files if file.is_file())


def _passed(model: Path, where: str) -> FileError:
    """Returns the error for a model whose constants take too long to compute."""
    place = f" at {where}" if where else ""
    what = f"computing its constants passes the limit for a model of its size{place}"
    return FileError(
        Problem(str(model), what, "let the program that exports the model compute its constants")
    )


def _converted(request: Request, progress: Progress) -> Result:
    options = request.options
    progress("load")
    loaded = load(request.model, request.load)
    options = replace(
        options,
        states=(*options.states, *((s.given, s.following) for s in loaded.states)),
        first={s.given: s.first for s in loaded.states},
        facts=loaded.facts,
    )
    graph = graph_of(loaded, progress)
    if _multiplies_bytes(request):
        graph = dynamic.quantized(graph)
        if dynamic.is_quantized(graph):
            options = replace(options, tolerance=max(options.tolerance, _INT8_TOLERANCE))
    if options.profile is Profile.NO_STD:
        options = replace(options, weight_type=WeightType.FLOAT32)
    graph = rounded(graph, options.weight_type)
    progress("plan memory")
    # As a crate with std has it.
    plan = plan_memory(graph, options.inplace, options.memdrop, packed=options.pack)
    if loaded.trace.half:
        options = replace(options, tolerance=max(options.tolerance, _HALF_TOLERANCE))
    if any(v.data is not None and v.data.dtype == "int8" for v in loaded.trace.variables.values()):
        options = replace(options, tolerance=max(options.tolerance, _INT8_TOLERANCE))
    if problem := text_problem(graph, options) or open_problem(graph, options):
        raise UsageError(problem)
    if wrong := _state_problems(graph, options):
        raise UsageError.of(wrong)
    progress("predict, and check what rounding decides")
    features, rounding, doubtful = _features(request, graph, loaded, options.tolerance)
    notes = [*loaded.notes, *(f"output {name}: {_DOUBTFUL}" for name in doubtful)]
    if not doubtful:
        tolerance = needed(graph, features, options.tolerance)
        if tolerance > options.tolerance:
            notes.append(f"{_LOGARITHM} {tolerance:.1e}")
            options = replace(options, tolerance=tolerance)
    progress("write Rust")
    text = model_text(graph, options)
    try:
        crate = crate_files(text, graph, options, features, request.rustfmt)
    except OSError as err:
        raise UsageError(Problem(str(request.rustfmt), f"can't be started: {err}")) from err
    files = {f"rust_generated_code/{path}": content for path, content in crate.items()}
    if not request.crate_only:
        progress("describe the source model")
        for name, content in description_files(loaded.trace).items():
            files[f"{FOLDER}/{name}"] = content
    size = len(crate["model/model_weights.bin"])
    weights = options.weights_for(size)
    return Result(
        plan, weights, size, rounding, tuple(notes), text, options, dict(sorted(files.items()))
    )


def _multiplies_bytes(request: Request) -> bool:
    """Returns whether float32 layers are to multiply int8 numbers."""
    return request.options.weight_type is WeightType.INT8 and request.load.integer


def _graph(trace: Trace) -> ir.Graph:
    """Converts a trace; open dimensions that have to be the same become one."""
    while True:
        with differences() as found:
            try:
                return convert(trace)
            except UnsupportedError as err:
                if not found or not _is_given(trace, found[0]):
                    names = all_names([port.shape for port in trace.inputs])
                    raise sizes_advised(err, names) from err
                shapes = joined([port.shape for port in trace.inputs], *found[0])
        inputs = zip(trace.inputs, shapes, strict=True)
        trace = replace(trace, inputs=tuple(replace(port, shape=shape) for port, shape in inputs))


def _is_given(trace: Trace, sizes: Sequence[Size]) -> bool:
    """Returns whether inputs have the dimensions of some sizes, which texts may decide instead."""
    known = {name for port in trace.inputs for dim in port.shape for name in named(dim)}
    return all(name in known for size in sizes for name in named(str(size)))


def _state_problems(graph: ir.Graph, options: Options) -> list[Problem]:
    """Returns why the model has no such states."""
    found: list[Problem] = []
    flag = "--stateful" if options.first else "--state"

    def wrong(what: str, advice: str = "") -> None:
        found.append(Problem(flag, what, advice))

    if options.states and options.profile is Profile.NO_STD and open_dims(graph):
        wrong("crates without std have no states of open dimensions", "fix them by --input_shape")
    for name, first in options.first.items():
        if first.size > MOST and not is_filled(first):
            what = f"the first value of {name!r} has {first.size} elements, not all the same"
            wrong(f"{what}; at most {MOST} are supported")
    inputs, outputs = ({p.name: p for p in ps} for ps in (graph.inputs, graph.outputs))
    for given, next_ in options.states:
        for side, name, ports in (("input", given, inputs), ("output", next_, outputs)):
            if name not in ports:
                wrong(f"no {side} {name!r}; there are {', '.join(ports)}")
        if given in inputs and next_ in outputs:
            a, b = inputs[given], outputs[next_]
            if a.dtype is ir.DType.STR:
                wrong(f"input {given!r} is text", "carry the numbers of words on")
            if a.dtype is not b.dtype or not _carries(a.value.shape, b.value.shape):
                kinds = [f"{p.dtype.value} {ir.shape_text(p.value.shape)}" for p in (a, b)]
                wrong(f"input {given!r} is {kinds[0]}, and output {next_!r} is {kinds[1]}")
    for names in zip(*options.states, strict=True):
        for name in sorted({name for name in names if names.count(name) > 1}):
            wrong(f"{name!r} is given twice")
    if options.states and not inputs.keys() - {given for given, _ in options.states}:
        wrong("all inputs are states, so that a step reads nothing", "leave out one of them")
    return found


def _carries(given: ir.Shape, following: ir.Shape) -> bool:
    """Returns whether an input takes what an output of a shape is; an open size takes any."""
    if len(given) != len(following):
        return False
    for a, b in zip(given, following, strict=True):
        free = isinstance(a, Size) and a.name and not isinstance(b, ir.Batch) and not counted(b)
        if a != b and not free:
            return False
    return True


def _features(
    request: Request, graph: ir.Graph, loaded: Loaded, tolerance: float
) -> tuple[Features, Rounding | None, tuple[str, ...]]:
    """Returns the features, by how much rounded weights change them, and what rounding decides."""
    most = dict(request.options.most)
    if open_dims(graph):
        graph = recorded.with_sizes(graph, request.features, most)
    differences: dict[int, Rounding] = {}

    def draw(attempt: int) -> Features:
        if request.features is None:
            features = recorded.made(graph, loaded.predict, attempt, most)
        else:
            features = recorded.read(request.features, graph, loaded.predict)
        if request.options.weight_type is WeightType.FLOAT32:
            return features
        own = Features(features.inputs, interpret(graph, features.inputs))
        differences[id(own)] = _difference(own, features)
        return own

    if request.features is None:
        features, doubtful = settled(graph, draw, tolerance)
    else:
        features = draw(0)
        doubtful = unsettled(graph, features, tolerance)
    return features, differences.get(id(features)), doubtful


def _advice(reason: str) -> str:
    if reason.endswith(("two axes that depend on the batch size", "square of the batch size")):
        return (
            "examples of a call must not meet each other: end the model at what each of them "
            "gives, and compare those in the program, or fix the batch by --batch 1"
        )
    return ""


def _difference(found: Features, expected: Features) -> Rounding:
    """Returns the differences of float outputs, in units of the largest element of each."""
    apart = [np.zeros(0)]
    for name, data in expected.outputs.items():
        if data.dtype.kind == "f" and data.size:
            wide = np.asarray(data, np.float64)
            with np.errstate(invalid="ignore"):
                own = np.nan_to_num(np.abs(found.outputs[name] - wide), nan=0.0)
            scale = np.max(np.abs(wide), initial=0.0, where=np.isfinite(wide))
            apart.append(own.reshape(-1) / (scale or 1.0))
    every = np.concatenate(apart)
    return Rounding(float(every.max(initial=0.0)), float(every.mean()) if every.size else 0.0)


def graph_of(loaded: Loaded, progress: Progress = lambda _: None) -> ir.Graph:
    """Returns the graph of a loaded model that the emitters take.

    Raises:
        UnsupportedError: With everything that is not supported.
    """
    total = sum(len(f.nodes) for f in (loaded.trace.main, *loaded.trace.functions.values()))
    progress(f"convert {total} nodes")
    graph = _graph(loaded.trace)
    refused = [
        Problem(f"layer {layer}" if layer else "model", reason, _advice(reason))
        for layer, reason in problems(graph)
    ]
    if refused:
        raise UnsupportedError.of(refused)
    return graph
