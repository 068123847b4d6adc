"""The cases of ONNX's own test suite: a model, what it is given, and what it has to give."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader
from onnx.backend.test.case import node as suite

from converters.tf.ir import Array
from converters.tf.load.onnx.file import wider

FOLDERS: Final = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")
"""The folders of the suite that the package carries; those of `real` are names of downloads."""


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A case.

    Attributes:
        name: Its name, without `test_`.
        folder: The folder of the suite.
        model: The model.
        sets: Reads pairs of inputs and expected outputs; an array each, or anything but a tensor.
        atol: The difference that the suite allows.
    """

    name: str
    folder: str
    model: Any
    sets: Callable[[], Sequence[tuple[list[Any], list[Any]]]]
    atol: float

    @property
    def operator(self) -> str:
        """Returns the operator of a model of one node, else what the folder is called."""
        nodes = self.model.graph.node
        if self.folder != "node":
            return f"({self.folder})"
        if len(nodes) != 1:
            return "(several nodes)"
        domain = nodes[0].domain
        return f"{domain}.{nodes[0].op_type}" if domain else str(nodes[0].op_type)

    @property
    def version(self) -> int:
        """Returns the operator set that its operators are of."""
        domain = self.model.graph.node[0].domain if self.model.graph.node else ""
        same = ("", "ai.onnx")
        return next(
            int(o.version)
            for o in self.model.opset_import
            if o.domain == domain or (domain in same and o.domain in same)
        )


def cases(folder: str) -> list[Case]:
    """Returns the cases of a folder by their names."""
    read = {"node": _nodes, "light": _light}.get(folder, lambda: _stored(folder))
    found = read()
    return sorted(found, key=lambda case: case.name)


def _nodes() -> list[Case]:
    # Making them prints, and computes with infinity.
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed = suite.collect_testcases(None)
    return [
        Case(c.name.removeprefix("test_"), "node", c.model, _given(c.data_sets), c.atol)
        for c in listed
    ]


def _given(sets: Any) -> Callable[[], Sequence[tuple[list[Any], list[Any]]]]:
    return lambda: [([plain(v) for v in i], [plain(v) for v in o]) for i, o in sets]


def _stored(folder: str) -> list[Case]:
    found = []
    for case in loader.load_model_tests(kind=folder):
        if case.model_dir is None:
            continue
        place = Path(case.model_dir)
        model = onnx.load(place / "model.onnx")
        name = case.name.removeprefix("test_")
        found.append(Case(name, folder, model, _read(place, model), case.atol))
    return found


def _light() -> list[Case]:
    """Returns large networks, whose weights are constants that their files compute."""
    found = []
    for path in sorted((Path(loader.DATA_DIR) / "light").glob("*.onnx")):
        model = onnx.load(path)
        output = path.with_name(f"{path.stem}_output_0.pb")
        found.append(Case(path.stem, "light", model, _rising(model, output), 1e-7))
    return found


def _rising(model: Any, output: Path) -> Callable[[], Sequence[tuple[list[Any], list[Any]]]]:
    constants = {tensor.name for tensor in model.graph.initializer}

    def read() -> Sequence[tuple[list[Any], list[Any]]]:
        inputs = []
        for port in model.graph.input:
            if port.name not in constants:
                shape = [d.dim_value or 1 for d in port.type.tensor_type.shape.dim]
                count = int(np.prod(shape))
                # The suite's own runner gives numbers that rise from 0 to 1.
                inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
        return [(inputs, [plain(onnx.load_tensor(output))])]

    return read


def _read(place: Path, model: Any) -> Callable[[], Sequence[tuple[list[Any], list[Any]]]]:
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [port for port in model.graph.input if port.name not in constants]

    def read() -> Sequence[tuple[list[Any], list[Any]]]:
        return [
            (
                [_value(folder / f"input_{i}.pb", port) for i, port in enumerate(inputs)],
                [_value(folder / f"output_{i}.pb", p) for i, p in enumerate(model.graph.output)],
            )
            for folder in sorted(place.glob("test_data_set_*"))
        ]

    return read


def _value(path: Path, port: Any) -> Any:
    if not port.type.HasField("tensor_type"):
        return None
    return plain(onnx.load_tensor(path))


def plain(value: Any) -> Any:
    """Returns a value as tf2rust has it: an array of the type that its type is computed in.

    Anything but a tensor stays as it is.
    """
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    return array.astype(wider(str(array.dtype.name))) if array.dtype.kind not in "OSU" else array


def with_constants(case: Case, given: Sequence[Any], kept: Sequence[int]) -> Any:
    """Returns the model of which only some inputs stay inputs; the others have what they are given.

    Args:
        case: The case.
        given: Its inputs.
        kept: Which stay.
    """
    model = type(case.model)()
    model.CopyFrom(case.model)
    ports = list(model.graph.input)
    names = [p.name for p in ports if p.name not in {t.name for t in model.graph.initializer}]
    for index, name in enumerate(names):
        if index in kept:
            continue
        port = next(p for p in ports if p.name == name)
        kind = port.type.tensor_type.elem_type
        data = np.asarray(given[index]).astype(onnx.helper.tensor_dtype_to_np_dtype(kind))
        model.graph.initializer.append(numpy_helper.from_array(data, name))
        if numpy_helper.to_array(model.graph.initializer[-1]).dtype != data.dtype:
            model.graph.initializer[-1].data_type = kind
        model.graph.input.remove(port)
    if not kept:
        model.graph.input.append(onnx.helper.make_tensor_value_info("unread", 1, [1]))
    return model


def arrays(values: Sequence[Any]) -> list[Array] | None:
    """Returns values that are all tensors of numbers, or nothing."""
    fine = all(isinstance(v, np.ndarray) and v.dtype.kind in "biuf" for v in values)
    return list(values) if fine else None
