"""What TFLite computes, in real numbers where the crate has these."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from converters.tf import ir


def by_tflite(path: Path, given: dict[str, ir.Array]) -> dict[str, ir.Array]:
    """Returns what TFLite computes, with the variables as they are in the file.

    Args:
        path: The file.
        given: The inputs in the order of the file. Floats for an input of integers are real
            numbers, in whose place come those that its integers stand for.

    Raises:
        RuntimeError: TFLite can't run the file.
        ValueError: An input has another type.
    """
    interpreter = _opened(path)
    ports = interpreter.get_input_details()
    for port, array in zip(ports, given.values(), strict=True):
        if tuple(port["shape"]) != array.shape:
            interpreter.resize_tensor_input(port["index"], array.shape)
    interpreter.allocate_tensors()
    real = False
    for port, (name, array) in zip(ports, list(given.items()), strict=True):
        stored = array
        if _stands(port, array):
            real = True
            stored = _stored(port, array)
            given[name] = _real(port, stored)
        interpreter.set_tensor(port["index"], stored)
    interpreter.invoke()
    outputs = interpreter.get_output_details()
    arrays = ((port, interpreter.get_tensor(port["index"])) for port in outputs)
    return {port["name"]: _real(port, array) if real else array for port, array in arrays}


def rounded(path: Path, found: Mapping[str, ir.Array]) -> dict[str, ir.Array]:
    """Returns outputs as TFLite rounds them, where it has integers and they are real numbers.

    Args:
        path: The file.
        found: The outputs in the order of the file.

    Raises:
        ValueError: The file has another number of outputs.
    """
    ports = _opened(path).get_output_details()
    return {
        name: _real(port, _stored(port, array)) if _stands(port, array) else array
        for port, (name, array) in zip(ports, found.items(), strict=True)
    }


def _opened(path: Path) -> Any:
    import tensorflow as tf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tf.lite.Interpreter(str(path))


def _stands(port: Mapping[str, Any], array: ir.Array) -> bool:
    """Returns whether an array has the real numbers of a port's integers."""
    return array.dtype.kind == "f" and np.dtype(port["dtype"]).kind in "iu"


def _stored(port: Mapping[str, Any], array: ir.Array) -> ir.Array:
    """Returns the integers that are nearest to real numbers."""
    scale, zero = port["quantization"]
    ends = np.iinfo(port["dtype"])
    nearest: ir.Array = np.clip(np.round(array / scale) + zero, ends.min, ends.max)
    return nearest.astype(port["dtype"])


def _real(port: Mapping[str, Any], array: ir.Array) -> ir.Array:
    """Returns the real numbers that a tensor stands for."""
    scale, zero = port["quantization"]
    if not scale:
        return array
    real: ir.Array = np.float32(scale) * (array.astype(np.float32) - np.float32(zero))
    return real
