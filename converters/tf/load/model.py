"""Loads and traces a model of any format; the door to TensorFlow."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import tensorflow as tf

from converters.tf.errors import FileError
from converters.tf.load.files import Kind, kind_of
from converters.tf.load.keras_model import trace_keras
from converters.tf.load.legacy import CUSTOM_OBJECTS, readable
from converters.tf.load.saved_model import trace_graph_def, trace_saved_model
from converters.tf.load.shapes import FixedShapes
from converters.tf.trace import Loaded
from tools.codegen.conversion import ConversionError, Problem, UnsupportedError


@dataclass(frozen=True)
class LoadOptions:
    """How to load.

    Attributes:
        shapes: Dimensions that the model leaves open.
        allow_custom_code: Whether code that is stored in the model file may run.
        signature: Signature of a SavedModel; empty for the default.
    """

    shapes: FixedShapes = field(default_factory=FixedShapes)
    allow_custom_code: bool = False
    signature: str = ""


def load(path: Path, options: LoadOptions) -> Loaded:
    """Loads a model file and traces it.

    Raises:
        FileError: The file is missing, damaged or unsafe.
        UsageError: A dimension other than the batch stays open.
        UnsupportedError: TensorFlow itself can't trace the model for inference.
    """
    kind = kind_of(path)
    with _quiet():
        if kind is Kind.SAVED_MODEL:
            return trace_saved_model(path, options.signature, options.shapes)
        if kind is Kind.GRAPH_DEF:
            return trace_graph_def(path, options.shapes)
        model = _load_keras(path, options)
        return trace_model(model, options.shapes)


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
    except (ValueError, TypeError, NotImplementedError, AttributeError, tf.errors.OpError) as err:
        first = str(err).strip().splitlines() or [type(err).__name__]
        raise UnsupportedError(
            Problem(f"model {model.name}", f"Keras can't trace it: {first[0]}")
        ) from err


def _load_keras(path: Path, options: LoadOptions) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return keras.saving.load_model(
                str(_acceptable(path, Path(folder))),
                custom_objects=dict(CUSTOM_OBJECTS),
                compile=False,
                safe_mode=not options.allow_custom_code,
            )
        except RecursionError as err:
            raise FileError(Problem(str(path), "its description is cyclic or too deep")) from err
        except Exception as err:  # Keras raises whatever the damaged part made it raise.
            raise FileError(_explained(path, err)) from err


def _acceptable(path: Path, folder: Path) -> Path:
    """Returns a file that Keras 3 accepts: with the suffix of its content, and of version 3."""
    wanted = ".keras" if kind_of(path) is Kind.KERAS else ".h5"
    if wanted == ".h5":
        path = readable(path, folder)
    if path.suffix in (wanted, ".hdf5" if wanted == ".h5" else wanted):
        return path
    link = folder / f"link{wanted}"
    link.symlink_to(path.resolve())
    return link


def _explained(path: Path, err: Exception) -> Problem:
    text = " ".join(str(err).split())
    lowered = text.lower()
    if "'module': 'tf_keras" in lowered or "'tf_ker" in lowered:
        what = "a .keras file of Keras 2 (tf_keras), whose weights Keras 3 does not find"
        return Problem(str(path), what, "save it as .h5 or as a SavedModel")
    missing = "could not locate class" in lowered or "unknown layer" in lowered
    if not missing and any(w in lowered for w in ("safe_mode", "unsafe", "lambda")):
        return Problem(
            str(path),
            f"it holds code of its own, which was not run: {_shortened(text)}",
            "pass --allow_custom_code if you trust it, or export it as a SavedModel",
        )
    if missing:
        return Problem(
            str(path),
            f"it needs a class that is not part of Keras: {_shortened(text)}",
            "export it as a SavedModel, which carries its computation",
        )
    return Problem(str(path), f"{type(err).__name__}: {_shortened(text)}")


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else text[:300] + " ..."


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
