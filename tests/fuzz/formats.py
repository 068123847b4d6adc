"""The programs under test by name; a target is imported in the process that runs it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fuzz.case import Reference, Target
from tests.fuzz.worker import Limits, Make, Worker

_TARGETS: Mapping[str, tuple[str, str]] = {
    "onnx": ("onnx_files", "Onnx"),
    "tflite": ("tflite", "Tflite"),
    "keras": ("keras_files", "Keras"),
    "h5": ("h5_files", "H5"),
    "custom-op": ("custom_ops", "CustomOps"),
    "frozen-graph": ("graphs", "FrozenGraph"),
    "saved-model": ("graphs", "SavedModel"),
    "mlf": ("mlf", "Mlf"),
    "tokenizer": ("tokenizers", "Tokenizers"),
    "checkpoint": ("client", "Checkpoint"),
    "client": ("client", "ClientSavedModel"),
    "client-keras": ("client_files", "ClientKeras"),
    "client-h5": ("client_files", "ClientH5"),
    "weights": ("client_files", "Weights"),
    "records": ("client_files", "Records"),
    "calls": ("calls", "Calls"),
    "graphs": ("device_graphs", "Graphs"),
}
"""The module and the class of each."""

NAMES = tuple(_TARGETS)


def maker(name: str) -> Make:
    """Returns what makes a target in a process."""

    def make(folder: Path, reference: Reference) -> Target:
        target: Target = _class(name)(folder, reference)
        return target

    return make


def worker(name: str, limits: Limits) -> Worker:
    """Returns what runs the cases of a format; starts nothing yet."""

    def load() -> None:
        _class(name)

    return Worker(maker(name), limits, load)


def _class(name: str) -> Any:
    module, kind = _TARGETS[name]
    return getattr(importlib.import_module(f"tests.fuzz.targets.{module}"), kind)
