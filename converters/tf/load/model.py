"""Loads and traces a model of any format; the door to TensorFlow."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np
import tensorflow as tf

from converters.tf.errors import FileError, shortened
from converters.tf.ir import Array
from converters.tf.load.custom_ops import FLAG as OP_FLAG
from converters.tf.load.custom_ops import CustomOp, custom_ops
from converters.tf.load.effects import check_trace
from converters.tf.load.files import Kind, kind_of
from converters.tf.load.input_values import with_values
from converters.tf.load.keras.custom import FLAG, custom_objects, know_names
from converters.tf.load.keras.legacy import readable
from converters.tf.load.keras.legacy_layers import CUSTOM_OBJECTS
from converters.tf.load.keras.model import trace_keras
from converters.tf.load.keras.own import layers as own_layers
from converters.tf.load.onnx.trace import trace_onnx
from converters.tf.load.outputs import with_outputs
from converters.tf.load.saved_model.file import trace_graph_def, trace_saved_model
from converters.tf.load.shapes import FixedShapes
from converters.tf.load.stateful import FLAG as STATEFUL
from converters.tf.load.stateful import carried_notes, stateful
from converters.tf.load.tflite.model import trace_tflite
from converters.tf.lower.assigned import carried
from converters.tf.lower.trace import Loaded, Predict, Trace
from tools.codegen.conversion import ConversionError, Problem, UnsupportedError, UsageError

# Longest name of an input or output; a member of a zip archive has at most 65535 bytes.
_LONGEST_NAME = 1000
# How Keras prints in bold.
_BOLD = re.compile(r"\x1b\[\d*m")
# What Keras says of a class or function that it does not know; the second form is that of .h5.
_MISSING = re.compile(
    r"Could not locate (?P<kind>class|function) '(?P<name>[^']+)'"
    r"|Unknown (?P<kind_2>\w+): '(?P<name_2>[^']+)'"
    r"|Could not interpret (?P<kind_3>[a-z ]+) identifier: (?P<name_3><lambda>|\w+(>\w+)*)$",
    re.MULTILINE,
)
# What functions without a name are called in a file that does not hold their code.
_LAMBDA = "<lambda>"
# What the meaning of an operator of the user says in TensorFlow's report.
_MEANING = re.compile(r"compute\(\) of [^\n]+")


@dataclass(frozen=True)
class LoadOptions:
    """How to load.

    Attributes:
        shapes: Dimensions that the model leaves open.
        allow_custom_code: Whether code that is stored in the model file may run, and ops that do
            more than compute.
        custom_objects: Python files with the classes and functions that the model file names; only
            with `allow_custom_code`.
        signature: Signature of a SavedModel or a .tflite file; empty for the default.
        integer: Whether a .tflite or .onnx file with quantized numbers of 8 bits computes in
            integers.
        custom_ops: Operators of the user: the name of each, and its Python module, which runs.
        values: Inputs that become constants, by name: their elements as text.
        stateful: Whether variables that the model carries from call to call become inputs and
            outputs, which steps carry on.
        outputs: Outputs that are wanted, or tensors of a frozen graph; all if not given.
    """

    shapes: FixedShapes = field(default_factory=FixedShapes)
    allow_custom_code: bool = False
    custom_objects: tuple[Path, ...] = ()
    signature: str = ""
    integer: bool = True
    custom_ops: tuple[tuple[str, Path], ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    stateful: bool = False
    outputs: tuple[str, ...] = ()


def load(path: Path, options: LoadOptions) -> Loaded:
    """Loads a model file and traces it.

    Raises:
        FileError: The file is missing, damaged or unsafe.
        UsageError: A dimension other than the batch stays open, or the code of the user can't run.
        UnsupportedError: TensorFlow itself can't trace the model for inference.
    """
    kind = kind_of(path)
    if options.custom_objects and not options.allow_custom_code:
        what = "it is code, which runs only if that is allowed"
        raise UsageError(Problem(FLAG, what, "pass --allow_custom_code if you trust it"))
    if options.signature and kind not in (Kind.SAVED_MODEL, Kind.TFLITE):
        what = f"only a SavedModel and a .tflite file have signatures; {path} is {kind.value}"
        raise UsageError(Problem("--signature", what, "leave it out"))
    if options.custom_ops and kind not in (Kind.KERAS, Kind.HDF5, Kind.ONNX, Kind.TFLITE):
        what = (
            "only Keras models, ONNX and TFLite files may have operators of yours; "
            f"{path} is {kind.value}"
        )
        raise UsageError(Problem(OP_FLAG, what, "leave it out"))
    ops = custom_ops(options.custom_ops)
    with _quiet():
        try:
            loaded = _traced(path, kind, options, ops)
        except ConversionError:
            raise
        except RecursionError as err:
            raise FileError(Problem(str(path), "its parts are nested too deep")) from err
        except Exception as err:  # TensorFlow raises whatever a damaged part made it raise.
            what = f"can't be traced: {type(err).__name__}: {shortened(err)}"
            raise FileError(Problem(str(path), what)) from err
    if kind is not Kind.GRAPH_DEF:  # There they decide what is traced.
        loaded = with_outputs(loaded, options.outputs)
    if kind is not Kind.ONNX:  # As above.
        loaded = with_values(loaded, options.values)
    if options.stateful:
        loaded = loaded if loaded.states else stateful(loaded)
        if not loaded.states:
            what = f"{path} carries no variable from call to call"
            raise UsageError(Problem(STATEFUL, what, "leave it out"))
    if not options.allow_custom_code:
        check_trace(path, loaded.trace)
    if ops:
        loaded = replace(loaded, predict=_predict(loaded))
        _check_ops(path, ops)
    _check_names(path, loaded.trace)
    _check_weights(path, loaded)
    names = [loaded.trace.variables[name].name for name in carried(loaded.trace)]
    notes = (*options.shapes.assumed, *loaded.notes, *carried_notes(names, "TensorFlow"))
    return replace(loaded, notes=notes)


def _traced(path: Path, kind: Kind, options: LoadOptions, ops: Mapping[str, CustomOp]) -> Loaded:
    trusted = options.allow_custom_code
    if kind is Kind.SAVED_MODEL:
        return trace_saved_model(path, options.signature, options.shapes, trusted)
    if kind is Kind.GRAPH_DEF:
        return trace_graph_def(path, options.shapes, trusted, options.outputs)
    if kind is Kind.TFLITE:
        return trace_tflite(
            path, options.signature, options.shapes, options.integer, ops, options.stateful
        )
    if kind is Kind.ONNX:
        return trace_onnx(path, options.shapes, ops, options.integer, options.values)
    return trace_model(load_keras(path, kind, options, ops), options.shapes)


def _check_ops(path: Path, ops: Mapping[str, CustomOp]) -> None:
    """Refuses an operator of the user that the model has not."""
    unused = [
        Problem(f"{OP_FLAG} {name}", f"{path} has no node of this operator")
        for name, op in ops.items()
        if not op.calls
    ]
    if unused:
        raise UsageError.of(unused)


def _predict(loaded: Loaded) -> Predict:
    """Returns what runs a model with operators of the user; their errors are on one line."""

    def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
        try:
            return loaded.predict(arrays)
        except tf.errors.OpError as err:
            found = _MEANING.search(str(err))
            raise ValueError(found[0] if found else shortened(err)) from err

    return predict


def _check_names(path: Path, trace: Trace) -> None:
    """Refuses names of inputs and outputs that no array of `features.npz` can have."""
    names = [
        *(("input", port.name) for port in trace.inputs),
        *(("output", n) for n in trace.outputs),
    ]
    problems = [
        Problem(str(path), f"the {kind} {name!r} has a name of {len(name)} characters")
        if len(name) > _LONGEST_NAME
        else Problem(str(path), f"the name of the {kind} {name!r} can't be printed")
        for kind, name in names
        if len(name) > _LONGEST_NAME or not name.isprintable()
    ]
    if problems:
        raise FileError.of(problems)


def _check_weights(path: Path, loaded: Loaded) -> None:
    """Refuses weights of a training that went wrong."""
    problems = []
    for variable in loaded.trace.variables.values():
        if variable.data is None or variable.data.dtype.kind != "f":
            continue
        count = int(np.isnan(variable.data).sum())
        if count:
            what = f"{count} of the {variable.data.size} numbers of the weight {variable.name} are"
            problems.append(Problem(str(path), f"{what} not a number"))
    if problems:
        raise FileError.of(problems)


def trace_model(model: Any, shapes: FixedShapes | None = None) -> Loaded:
    """Traces a Keras model that is in memory.

    Raises:
        UsageError: A dimension other than the batch stays open.
        UnsupportedError: Keras can't trace it for inference.
    """
    try:
        return trace_keras(model, shapes or FixedShapes())
    except ConversionError:
        raise
    except Exception as err:  # The model's own code runs, and raises whatever it likes.
        what = f"Keras can't trace it: {_without_frame(err)}"
        raise UnsupportedError(Problem(f"model {model.name}", what, _advice(model))) from err


def _advice(model: Any) -> str:
    """Returns what may help where Keras' own layers need numbers."""
    shapes = [tuple(tensor.shape) for tensor in getattr(model, "inputs", None) or ()]
    if not any(None in shape[1:] for shape in shapes):
        return ""
    return "if a layer needs a number for an open size, give the sizes with --input_shape"


def _without_frame(err: Exception) -> str:
    """Returns an error's first line of its own: Keras writes in which call it was before it."""
    text = str(err.args[0]) if err.args else ""
    lines = [line.strip() for line in _BOLD.sub("", text).splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith("Exception encountered when calling ")]
    return (own or lines or [type(err).__name__])[0]


def load_keras(
    path: Path,
    kind: Kind,
    options: LoadOptions,
    ops: Mapping[str, CustomOp] = MappingProxyType({}),
) -> Any:
    """Loads a model that Keras wrote, without its loss and optimizer.

    Args:
        path: The file.
        kind: What `kind_of` says of it, which reads all of it.
        options: How it is loaded.
        ops: Operators of the user, by name.

    Raises:
        FileError: The file is damaged or unsafe, or names what is not part of Keras.
        UsageError: The code of the user can't run.
    """
    own = custom_objects(options.custom_objects)
    objects = {**CUSTOM_OBJECTS, **own, **own_layers(ops)}
    if options.allow_custom_code:
        know_names(own)
    with tempfile.TemporaryDirectory() as folder:
        try:
            # Layers inside of layers are looked up in the scope alone.
            with keras.saving.custom_object_scope(objects):
                return keras.saving.load_model(
                    str(_acceptable(path, kind, Path(folder))),
                    custom_objects=objects,
                    compile=False,
                    safe_mode=not options.allow_custom_code,
                )
        except RecursionError as err:
            raise FileError(Problem(str(path), "its description is cyclic or too deep")) from err
        except Exception as err:  # Keras raises whatever the damaged part made it raise.
            raise FileError(_explained(path, err, options.allow_custom_code)) from err


def _acceptable(path: Path, kind: Kind, folder: Path) -> Path:
    """Returns a file that Keras 3 accepts: with the suffix of its content, and of version 3."""
    wanted = ".keras" if kind is Kind.KERAS else ".h5"
    if wanted == ".h5":
        path = readable(path, folder)
    if path.suffix in (wanted, ".hdf5" if wanted == ".h5" else wanted):
        return path
    link = folder / f"link{wanted}"
    link.symlink_to(path.resolve())
    return link


def _explained(path: Path, err: BaseException, code: bool) -> Problem:
    text = " ".join(str(err).split())
    lowered = text.lower()
    if "'module': 'tf_keras" in lowered or "'tf_ker" in lowered:
        what = "a .keras file of Keras 2 (tf_keras), whose weights Keras 3 does not find"
        return Problem(str(path), what, "save it as .h5 or as a SavedModel")
    if "no model config found" in lowered:
        advice = "build the model in Python, load_weights into it, and save the whole model"
        return Problem(str(path), "it holds weights alone, and no model", advice)
    package = _package(err)
    if package:
        return Problem(
            str(path),
            f"it needs the Python package {package}, which is not installed here",
            "install it beside tf2rust, or export the model as a SavedModel, which carries its "
            "computation",
        )
    missing = _missing(err)
    if _LAMBDA in missing:
        return Problem(
            str(path),
            f"it needs the {missing}, whose code it does not hold",
            "write it into a Python file as `activation = lambda x: ...`, name the file by "
            f"{FLAG}, and pass --allow_custom_code",
        )
    if missing:
        return Problem(
            str(path),
            f"it needs the {missing}, which is not part of Keras",
            f"name its Python file by {FLAG} and pass --allow_custom_code if you trust it, "
            "or export the model as a SavedModel, which carries its computation",
        )
    if re.search(r"safe_mode|unsafe|\b(__)?lambda(__)?\b", lowered):
        if code:
            return Problem(
                str(path),
                f"Keras can't read the code that it holds: {shortened(_first(err))}",
                "export the model as a SavedModel, which carries its computation",
            )
        return Problem(
            str(path),
            f"it holds code of its own, which was not run: {shortened(err)}",
            "pass --allow_custom_code if you trust it, or export it as a SavedModel",
        )
    if "could not be deserialized properly" in text:  # That is of every layer around.
        err = _first(err)
    return Problem(str(path), f"{type(err).__name__}: {shortened(err)}")


def _first(err: BaseException) -> BaseException:
    """Returns the error that all others came from."""
    while (before := err.__cause__ or err.__context__) is not None:
        err = before
    return err


def _package(err: BaseException | None) -> str:
    """Returns the package whose import failed, of those that Keras imports for a file."""
    while err is not None:
        if isinstance(err, ModuleNotFoundError) and err.name:
            return err.name.partition(".")[0]
        err = err.__cause__ or err.__context__
    return ""


def _missing(err: BaseException | None) -> str:
    """Returns the class or function that Keras looked for in vain: `class 'Mine'`, or nothing."""
    while err is not None:
        found = _MISSING.search(str(err))
        if found is not None:
            parts = {name[:4]: text for name, text in found.groupdict().items() if text}
            return f"{parts['kind']} '{parts['name']}'"
        err = err.__cause__ or err.__context__
    return ""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the warnings of TensorFlow's loaders away from the user's terminal."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
