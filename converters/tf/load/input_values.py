"""Inputs that the caller makes constants: sampling rates, flags of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from converters.tf.ir import Array
from converters.tf.lower.trace import Loaded, Predict
from tools.codegen.conversion import Problem, UsageError

FLAG = "--input_value"
_TYPES = frozenset(
    ["bool", "float16", "float32", "float64"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
_TRUTH = {"true": True, "false": False}


def arrays_of(
    values: Mapping[str, str], inputs: Sequence[tuple[str, str, Sequence[int | str | None]]]
) -> dict[str, Array]:
    """Returns the values of inputs as arrays.

    Args:
        values: The elements of inputs, by name: one for all of them, or as many as there are.
        inputs: All inputs of the model: name, element type, shape.

    Raises:
        UsageError: With all that is wrong: no such input, one whose size is open, text that is not
            a number of the input's type, or not as many.
    """
    known = {name: (dtype, shape) for name, dtype, shape in inputs}
    found: dict[str, Array] = {}
    problems = []
    for name, text in values.items():
        try:
            if name not in known:
                raise ValueError(f"no input has this name; the inputs are {', '.join(known)}")
            found[name] = _array(text, *known[name])
        except ValueError as err:
            problems.append(Problem(f"{FLAG} {name}={text}", str(err)))
    if problems:
        raise UsageError.of(problems)
    if found and len(found) == len(known):
        raise UsageError(Problem(FLAG, "no input would be left"))
    return found


def _array(text: str, dtype: str, shape: Sequence[int | str | None]) -> Array:
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) < len(shape):
        what = ", ".join("?" if size is None else str(size) for size in shape)
        raise ValueError(f"its shape, [{what}], is open; fix it by --input_shape or --batch")
    if dtype not in _TYPES:
        raise ValueError(f"an input of {dtype} can't have a value")
    parts = text.split(",")
    try:
        with np.errstate(over="raise"):
            data = np.array([_element(part, dtype) for part in parts]).astype(dtype)
    except (KeyError, ValueError, OverflowError, FloatingPointError) as err:
        raise ValueError(f"expected values of {dtype}") from err
    count = math.prod(sizes)
    if len(parts) not in (1, count):
        raise ValueError(f"{len(parts)} elements of {count}")
    return np.broadcast_to(data.reshape(sizes if len(parts) > 1 else ()), sizes)


def _element(text: str, dtype: str) -> bool | int | float:
    """Returns an element of a type.

    Raises:
        KeyError: It is not a truth value.
        ValueError: It is not a number of the type, or not finite.
    """
    if dtype == "bool":
        return _TRUTH[text.strip().lower()]
    if "int" in dtype:
        number = int(text)
        ends = np.iinfo(dtype)
        if not ends.min <= number <= ends.max:
            raise ValueError(text)
        return number
    if not math.isfinite(found := float(text)):
        raise ValueError(text)
    return found


def with_values(loaded: Loaded, values: Mapping[str, str]) -> Loaded:
    """Returns a model of which some inputs are constants.

    Raises:
        UsageError: As `arrays_of`.
    """
    if not values:
        return loaded
    trace = loaded.trace
    found = arrays_of(values, [(port.name, port.dtype, port.shape) for port in trace.inputs])
    return Loaded(replace(trace, constants=found), predicting(loaded.predict, found), loaded.notes)


def predicting(predict: Predict, values: Mapping[str, Array]) -> Predict:
    """Returns what runs a model whose other inputs have these values."""
    return lambda arrays: predict({**arrays, **values})
