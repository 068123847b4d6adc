"""Calls of the device's kernels, from the conformance sweep and changed, beside the CPU's.

What TensorFlow's CPU refuses, the device has to refuse; what it computes, the device has to
compute or refuse by an error. The CPU computes last: some calls end its process.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# What oneDNN refuses depends on the processor: float16 convolutions on AVX-512 FP16 check less.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf

from tests.conformance import cases, references, sweep
from tests.fuzz import edits
from tests.fuzz.case import Case, Outcome, Reference, Status, Target

DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"
# Calls of each kernel of the sweep that are bases.
_EACH = 6
# Elements of an argument, at most: the time of a case is that of TensorFlow.
_MOST = 1 << 16
_VALUES = (0, 1, -1, 2, 127, -128, 255, -(1 << 31), -(1 << 40))
# Numbers that are rare: where they are sizes, TensorFlow waits ten seconds for memory.
_LARGE = (1 << 20, (1 << 31) - 1, 1 << 40)
# Ops whose results are as large as numbers say, and take all memory.
_GROWING = (
    *("BroadcastTo", "Empty", "Fill", "LinSpace", "OneHot", "Pad", "Random", "Range"),
    *("Segment", "Split", "Stateless", "Tile", "Unsorted"),
)
_ODD = (0.0, -0.0, 1.0, -1.0, 1e30, -1e30, 1e-40, float("inf"), float("-inf"), float("nan"))
_PLAIN = (0.0, 1.0, -1.0, 0.5, -3.0)
# Numbers for which TensorFlow's own kernels differ: infinity makes its row NaN or 0, and numbers
# below 2^-126 are 0 for some.
_NORMAL = tuple(number for number in _ODD if abs(number) != 1e-40)
_UNLIKE: dict[str, Sequence[float]] = {
    "Softmax": _PLAIN,
    "LogSoftmax": _PLAIN,
    "Log": _NORMAL,
    "FloorMod": _NORMAL,
    "Xlogy": _NORMAL,
}
# Ops whose CPU kernels do not compare the batch and the channels of their arguments.
_CHECKED = ("ResizeBilinearGrad",)
# What the CPU refuses and the device takes, with the reason; a part of what the CPU says.
_WIDER = (
    *sweep.LIMITS,
    "No OpKernel was registered",
    "is not implemented",
    "not supported",
    "Unimplemented",
    "Could not find device for node",
    "Could not satisfy",
    # The device's result is empty, as the image is.
    "image must have at least one channel",
)


class Calls(Target):
    """Runs a call on the device and on the CPU."""

    greedy = True
    most_edits = 3
    input_name = "call.npz"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Reads the sweep's tables."""
        super().__init__(folder, reference)
        tf.config.set_soft_device_placement(False)
        self._calls = self.kept(_calls)

    @property
    def bases(self) -> int:
        """How many calls there are."""
        return len(self._calls)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a call: its arrays, and its op and attributes as JSON."""
        op, call, tolerance = self._calls[case.base]
        numbers = _numbers(op)
        inputs, attributes = dict(call.inputs), dict(call.attributes)
        for seed in case.edits:
            choose = random.Random(seed)
            if attributes and choose.random() < 0.3:
                name = choose.choice(sorted(attributes))
                limit = 1 << 16 if op.startswith(_GROWING) else 1 << 62
                attributes[name] = _attribute(choose, attributes[name], limit)
            elif inputs:
                name = choose.choice(sorted(inputs))
                large = choose.random() < 0.05 and not op.startswith(_GROWING)
                inputs[name] = _argument(choose, inputs[name], large, numbers)
        arrays = {}
        for name, value in inputs.items():
            for place, array in enumerate(value if isinstance(value, list) else [value]):
                key = f"{name}/{place}" if isinstance(value, list) else name
                arrays[f"{key}:{array.dtype.name}"] = _plain(array)
        path = folder / self.input_name
        np.savez(path, **arrays)
        named = {k: [v] if isinstance(v, np.dtype | type) else v for k, v in attributes.items()}
        shown = {
            k: {"dtype": np.dtype(v[0]).name} if k in named and v is not attributes[k] else v
            for k, v in named.items()
        }
        about = {"op": op, "attributes": shown, "tolerance": tolerance}
        (folder / "call.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
        return path

    def check(self, path: Path) -> Outcome:
        """Runs a call."""
        about = json.loads(path.with_suffix(".json").read_text("utf-8"))
        op = about["op"]
        attributes = {
            k: np.dtype(v["dtype"]) if isinstance(v, dict) else v
            for k, v in about["attributes"].items()
        }
        call = cases.Call(_arrays(path), attributes)
        found, mine = _computed(op, call, DEVICE)
        self.reference(True)
        expected, other = _computed(op, call, CPU)
        self.reference(False)
        if expected is None:
            if found is None or any(limit in other for limit in _WIDER):
                return Outcome(Status.REFUSED, other)
            shapes = [f"{a.dtype}{list(a.shape)}" for a in found]
            return Outcome(Status.FAULT, f"{op} gives {shapes}; the CPU: {other}", f"takes {op}")
        if found is None:
            # The CPU's kernel may take more than the op's own function of shapes.
            if op in _CHECKED or not _has_shapes(op, call):
                return Outcome(Status.REFUSED, mine)
            return Outcome(Status.FAULT, f"{op} refuses: {mine}", f"refuses {op}")
        if "FFT" in op and not np.size(call.inputs["input"]):
            # TensorFlow writes no element of the result, which is what the memory held.
            return Outcome(Status.TAKEN)
        self.reference(True)
        gap = sweep.gap_of(op, call, found, expected, about["tolerance"])
        self.reference(False)
        if gap <= about["tolerance"]:
            return Outcome(Status.TAKEN)
        return Outcome(Status.FAULT, f"{op} differs by {gap:g}", f"differs {op}")


def _numbers(op: str) -> Sequence[float]:
    """Returns numbers that are put in place of others."""
    if op in cases.REDUCTIONS or any(op in table for table in sweep.TABLES):
        # In tables and sums, the order decides where there is NaN.
        return _PLAIN
    return _UNLIKE.get(op, _ODD)


def _calls() -> list[tuple[str, cases.Call, float]]:
    found = []
    for op, kernels in sorted(sweep.registered("TFP").items()):
        if op in references.REFERENCES:
            continue
        for kernel in kernels:
            names = [tf.dtypes.as_dtype(t).name for t in kernel.types.values()]
            if any((op, name) in cases.EXCEPTIONS for name in names):
                continue
            if sweep.is_swept(op, kernel.types):
                listed = sweep.calls(op, kernel)
                tolerance = _tolerance(op, kernel.types)
                for call in itertools.islice(listed or (), _EACH):
                    if _size(call) <= _MOST:
                        found.append((op, call, tolerance))
    return found


def _tolerance(op: str, types: Any) -> float:
    names = [tf.dtypes.as_dtype(number).name for number in types.values()]
    narrow = [sweep.NARROW[name] * 4 for name in names if name in sweep.NARROW]
    return max(narrow, default=10 * cases.TOLERANCES.get(op, cases.DEFAULT_TOLERANCE))


def _size(call: cases.Call) -> int:
    values = [v if isinstance(v, list) else [v] for v in call.inputs.values()]
    return max((int(np.size(a)) for value in values for a in value), default=0)


def _plain(array: Any) -> Any:
    """Returns an array of a type that NumPy can store; its own is in its name."""
    return np.asarray(array).view(np.uint16) if array.dtype.name == "bfloat16" else array


def _arrays(path: Path) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    with np.load(path) as file:
        for key in file.files:
            name, _, kind = key.rpartition(":")
            array = file[key]
            if kind == "bfloat16":
                array = array.view(tf.bfloat16.as_numpy_dtype)
            name, _, place = name.partition("/")
            if place:
                inputs.setdefault(name, []).append(array)
            else:
                inputs[name] = array
    return inputs


def _computed(op: str, call: cases.Call, device: str) -> tuple[list[Any] | None, str]:
    """Returns the outputs of a call, or what its error says."""
    try:
        return sweep.compute(op, call, device), ""
    except tf.errors.OpError as err:
        return None, f"{type(err).__name__}: {err.message}"
    except (ValueError, TypeError, OverflowError, MemoryError) as err:
        return None, f"{type(err).__name__}: {err}"


def _has_shapes(op: str, call: cases.Call) -> bool:
    """Returns whether TensorFlow takes a call into a graph, where it knows the shapes."""
    with tf.Graph().as_default(), tf.device(CPU):
        try:
            inputs = {
                name: [tf.constant(v) for v in value]
                if isinstance(value, list)
                else tf.constant(value)
                for name, value in call.inputs.items()
            }
            getattr(tf.raw_ops, op)(**inputs, **call.attributes)
        except (ValueError, TypeError, tf.errors.OpError):
            return False
    return True


def _argument(choose: random.Random, value: Any, large: bool, numbers: Sequence[float]) -> Any:
    """Returns an argument in place of another: of another shape, or with other numbers."""
    if isinstance(value, list):
        items = list(value)
        if not items:
            return items
        at = choose.randrange(len(items))
        if choose.random() < 0.2:
            del items[at]
        elif choose.random() < 0.2:
            items.insert(at, items[at])
        else:
            items[at] = _argument(choose, items[at], large, numbers)
        return items
    array = np.array(value)
    kind = choose.random()
    if kind < 0.45 and array.size:
        return _other_numbers(choose, array, large, numbers)
    shape = list(array.shape)
    if kind < 0.6 and shape:
        at = choose.randrange(len(shape))
        shape[at] = choose.choice((0, 1, 2, shape[at] + 1, max(0, shape[at] - 1), 7))
    elif kind < 0.75:
        shape.insert(choose.randrange(len(shape) + 1), choose.choice((1, 1, 2, 0)))
    elif kind < 0.9 and shape:
        del shape[choose.randrange(len(shape))]
    elif shape:
        choose.shuffle(shape)
    if np.prod(shape, dtype=np.float64) > _MOST:
        return array
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


def _other_numbers(choose: random.Random, array: Any, large: bool, numbers: Sequence[float]) -> Any:
    flat = array.reshape(-1).copy()
    for _ in range(choose.choice((1, 1, 3))):
        at = choose.randrange(flat.size)
        if array.dtype.kind in "iu":
            near = (int(flat[at]) + 1, int(flat[at]) - 1)
            number = choose.choice(_LARGE if large else (*_VALUES, *near))
            info = np.iinfo(array.dtype)
            flat[at] = min(max(number, int(info.min)), int(info.max))
        elif array.dtype.kind == "b":
            flat[at] = not flat[at]
        else:
            with np.errstate(over="ignore"):
                flat[at] = np.asarray(choose.choice(numbers)).astype(array.dtype)
    return flat.reshape(array.shape)


def _attribute(choose: random.Random, value: Any, limit: int) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        new = choose.choice((*_VALUES, *_LARGE, value + 1, value - 1))
        return new if new <= limit else value
    if isinstance(value, float):
        return choose.choice((*_ODD, value * 2))
    if isinstance(value, list | tuple):
        items = list(value)
        if not items or choose.random() < 0.1:
            return [*items, 1]
        at = choose.randrange(len(items))
        if choose.random() < 0.15:
            del items[at]
        else:
            items[at] = _attribute(choose, items[at], limit)
        return items
    if isinstance(value, str):
        return choose.choice(("SAME", "VALID", "EXPLICIT", "NHWC", "NCHW", value, edits.TEXTS[0]))
    return value
