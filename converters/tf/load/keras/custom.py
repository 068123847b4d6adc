"""Classes and functions that a model file only names, from Python files of the user."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src.utils import python_utils

from converters.tf.load.user_code import run_file
from tools.codegen.conversion import Problem, UsageError

FLAG = "--custom_objects"
# What Keras writes for a function without a name, where it does not keep its code.
_LAMBDA = "<lambda>"


def custom_objects(files: Sequence[Path]) -> dict[str, Any]:
    """Runs Python files; returns the public classes and functions that they define, by name.

    Those that `keras.saving.register_keras_serializable` registers are found by their registered
    names as well, and a file's only lambda by `<lambda>`. A file may import its neighbours.

    Raises:
        UsageError: A file can't be run, or two files define the same name.
    """
    found: dict[str, Any] = {}
    for number, file in enumerate(files):
        for name, thing in _defined(file, f"_tf2rust_custom_{number}_{file.stem}").items():
            if name in found:
                raise UsageError(Problem(f"{FLAG} {file}", f"another file defines {name} too"))
            found[name] = thing
    return found


def _defined(file: Path, module_name: str) -> dict[str, Any]:
    where = f"{FLAG} {file}"
    module = run_file(where, file, module_name, "the path of a .py file")
    found = {
        name: thing
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module_name
    }
    unnamed = [thing for thing in found.values() if thing.__name__ == _LAMBDA]
    if len(unnamed) == 1:
        found[_LAMBDA] = unnamed[0]
    return found


def know_names(objects: Mapping[str, Any]) -> None:
    """Makes names known to the lambdas of model files, of which Keras stores the code alone.

    Args:
        objects: What the files of the user define; it comes before the names by which programs
            usually import TensorFlow, Keras and NumPy.
    """
    backend = SimpleNamespace(**{**vars(tf.keras.backend), **vars(keras.ops)})
    del backend.repeat  # The two of this name do different things.
    usual = {
        "K": backend,
        "backend": backend,
        "keras": keras,
        "layers": keras.layers,
        "math": math,
        "np": np,
        "numpy": np,
        "ops": keras.ops,
        "tensorflow": tf,
        "tf": tf,
    }
    # Where Keras' `func_load` runs.
    vars(python_utils).update({**usual, **objects})
