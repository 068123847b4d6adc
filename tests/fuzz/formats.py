"""The programs under test by name; a target is imported in the process that runs it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

from tests.fuzz.case import Reference, Target
from tests.fuzz.worker import Make

_TARGETS: Mapping[str, tuple[str, str]] = {
    "onnx": ("onnx_files", "Onnx"),
    "tflite": ("tflite", "Tflite"),
    "keras": ("keras_files", "Keras"),
    "frozen-graph": ("graphs", "FrozenGraph"),
    "saved-model": ("graphs", "SavedModel"),
    "mlf": ("mlf", "Mlf"),
    "checkpoint": ("client", "Checkpoint"),
    "client": ("client", "ClientSavedModel"),
    "calls": ("calls", "Calls"),
    "graphs": ("device_graphs", "Graphs"),
}
"""The module and the class of each."""

NAMES = tuple(_TARGETS)


def maker(name: str) -> Make:
    """Returns what makes a target in a process."""
    module, kind = _TARGETS[name]

    def make(folder: Path, reference: Reference) -> Target:
        found = getattr(importlib.import_module(f"tests.fuzz.targets.{module}"), kind)
        target: Target = found(folder, reference)
        return target

    return make
