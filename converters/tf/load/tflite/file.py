"""Reads a TFLite flatbuffer as plain data; every index in it is checked here."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf.errors import FileError, shortened
from converters.tf.ir import Array
from converters.tf.load.tflite.sparse import places_of, whole
from converters.tf.load.tflite.stored import Damaged, array_of, element_name, empty
from tools.codegen.conversion import Problem

T = TypeVar("T")
# Most tables of a file; TFLite's own verifier stops at a million.
_MOST_TABLES = 1_000_000
# Most elements of a tensor.
_MOST_ELEMENTS = 1 << 31
_MOST_AXES = 8
# Element types that may stand for real numbers between operators.
_WHOLE = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class Quantization:
    """How integers stand for real ones: `scale * (number - zero_point)`.

    Attributes:
        scale: One, or one per index of `axis`.
        zero_point: As many.
        axis: The axis of several scales.
    """

    scale: Array
    zero_point: Array
    axis: int


@dataclass(frozen=True)
class Tensor:
    """A tensor of a subgraph.

    Attributes:
        name: Its name.
        dtype: Element type by its NumPy name: `int4` is in int8.
        shape: Its shape; `None` for an axis that the file leaves open.
        data: Its value if it is a constant.
        quantization: What its numbers stand for, if not for themselves.
        variable: Whether it is a state that an operator keeps.
        problem: Why its value can't be read, or empty.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    data: Array | None
    quantization: Quantization | None
    variable: bool = False
    problem: str = ""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Returns the least and the most that its integers stand for, if they do."""
        found = self.quantization
        if found is None or self.dtype not in _WHOLE or found.scale.size != 1:
            return None
        info, scale, zero = np.iinfo(self.dtype), float(found.scale[0]), int(found.zero_point[0])
        ends = sorted(scale * (end - zero) for end in (info.min, info.max))
        return ends[0], ends[1]


@dataclass(frozen=True)
class Operator:
    """An operator of a subgraph.

    Attributes:
        kind: TFLite's name of it, or the name of a custom one.
        custom: Whether it is a custom one.
        inputs: Tensors that it reads; -1 for an optional one that is missing.
        outputs: Tensors that it writes.
        options: Its options, by their names in the schema.
        custom_options: The options of a custom one.
    """

    kind: str
    custom: bool
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]
    custom_options: bytes


@dataclass(frozen=True)
class Subgraph:
    """A function of the model.

    Attributes:
        name: Its name.
        tensors: Its tensors.
        inputs: Which of them are its arguments.
        outputs: Which of them are its results.
        operators: What it computes, operands before users.
    """

    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Signature:
    """Names of a subgraph's inputs and outputs.

    Attributes:
        name: Its name.
        subgraph: Which subgraph it calls.
        inputs: Tensors by name.
        outputs: Tensors by name.
    """

    name: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class Model:
    """What a file holds; the first subgraph is the main one."""

    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...]


_KINDS = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}


def read(path: Path) -> Model:
    """Reads a file.

    Raises:
        FileError: It is damaged, or is none of TFLite.
    """
    try:
        content = path.read_bytes()
    except OSError as err:
        raise FileError(Problem(str(path), f"can't be read: {err.strerror}")) from err
    try:
        return _Reader(content).model()
    except Damaged as err:
        raise FileError(Problem(str(path), f"a damaged .tflite file: {err}")) from err
    except (
        struct.error,
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        TypeError,
        ValueError,
    ) as err:  # What the reader of flatbuffers runs into where an offset is wrong.
        raise FileError(Problem(str(path), f"a damaged .tflite file: {shortened(err)}")) from err


class _Reader:
    """Reads tables of one file and counts them."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.tables = 0

    def model(self) -> Model:
        if len(self.content) < 8:
            raise Damaged(f"it has {len(self.content)} bytes")
        if self.content[4:8] not in (b"TFL3", b"\0\0\0\0"):
            raise Damaged(f"it is marked {self.content[4:8]!r}, not b'TFL3'")
        root = schema.Model.GetRootAs(self.content, 0)
        if root.Version() not in (0, 3):
            raise Damaged(f"version {root.Version()} of the schema; 3 is known")
        codes = self._each(root.OperatorCodesLength(), root.OperatorCodes, self._code)
        buffers = self._each(root.BuffersLength(), root.Buffers, lambda b: b)
        subgraphs = self._each(
            root.SubgraphsLength(), root.Subgraphs, lambda g: self._subgraph(g, codes, buffers)
        )
        if not subgraphs:
            raise Damaged("it has no subgraph")
        signatures = self._each(
            root.SignatureDefsLength(), root.SignatureDefs, lambda s: _signature(s, subgraphs)
        )
        return Model(subgraphs, signatures)

    def _each(
        self, count: int, get: Callable[[int], Any], read_one: Callable[[Any], T]
    ) -> tuple[T, ...]:
        """Returns the parts of a vector of tables."""
        self.tables += count
        if self.tables > _MOST_TABLES or count * 4 > len(self.content):
            raise Damaged(f"a list of {count} tables")
        return tuple(read_one(get(i)) for i in range(count))

    def _code(self, code: Any) -> tuple[str, bool]:
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        kind = _KINDS.get(number)
        if kind is None:
            return f"builtin operator {number}", False
        if kind == "CUSTOM":
            return _text(code.CustomCode()), True
        return kind, False

    def _subgraph(
        self, graph: Any, codes: Sequence[tuple[str, bool]], buffers: Sequence[Any]
    ) -> Subgraph:
        tensors = self._each(
            graph.TensorsLength(), graph.Tensors, lambda t: self._tensor(t, buffers)
        )
        count = len(tensors)
        operators = self._each(
            graph.OperatorsLength(), graph.Operators, lambda o: _operator(o, codes, count)
        )
        inputs = _indices(graph.InputsAsNumpy(), count, "the inputs of a subgraph")
        outputs = _indices(graph.OutputsAsNumpy(), count, "the outputs of a subgraph")
        written = {*inputs, *(i for o in operators for i in o.outputs)}
        tensors = tuple(t if i in written else _empty(t) for i, t in enumerate(tensors))
        return Subgraph(_text(graph.Name()), tensors, inputs, outputs, operators)

    def _tensor(self, tensor: Any, buffers: Sequence[Any]) -> Tensor:
        name = _text(tensor.Name())
        shape = tuple(_ints(tensor.ShapeAsNumpy()))
        signature = tuple(_ints(tensor.ShapeSignatureAsNumpy())) or shape
        if len(shape) > _MOST_AXES or len(signature) != len(shape):
            raise Damaged(f"the tensor {name!r} has the shape {shape}, open as {signature}")
        if any(d < 0 for d in shape) or np.prod(shape, dtype=object) > _MOST_ELEMENTS:
            raise Damaged(f"the tensor {name!r} has the shape {shape}")
        dtype = element_name(tensor.Type())
        data, problem = self._data(tensor, name, shape, buffers)
        dims = tuple(None if o == -1 else d for o, d in zip(signature, shape, strict=True))
        quantization = _quantization(tensor.Quantization(), name, shape)
        variable = bool(tensor.IsVariable()) and data is None
        known = dims if data is None else shape
        return Tensor(name, dtype, known, data, quantization, variable, problem)

    def _data(
        self, tensor: Any, name: str, shape: tuple[int, ...], buffers: Sequence[Any]
    ) -> tuple[Array | None, str]:
        """Returns a constant, and why there is none although the file has one."""
        if not 0 <= tensor.Buffer() < len(buffers):
            what = f"the tensor {name!r} is in buffer {tensor.Buffer()} of {len(buffers)}"
            raise Damaged(what)
        buffer = buffers[tensor.Buffer()]
        if tensor.ExternalBuffer():
            return None, "its value is in another file"
        if buffer.Offset() > 1:
            end = buffer.Offset() + buffer.Size()
            if end > len(self.content):
                what = f"the tensor {name!r} ends at byte {end} of {len(self.content)}"
                raise Damaged(what)
            content = self.content[buffer.Offset() : end]
        elif buffer.DataLength():
            content = buffer.DataAsNumpy().tobytes()
        else:
            return None, ""
        if tensor.Sparsity() is not None:
            sparsity = schema.SparsityParametersT.InitFromObj(tensor.Sparsity())
            places = places_of(sparsity, name, shape)
            data, problem = array_of(content, tensor.Type(), name, places.shape)
            return None if data is None else whole(data, places, shape), problem
        return array_of(content, tensor.Type(), name, shape)


def _empty(tensor: Tensor) -> Tensor:
    """Returns a tensor that nothing writes: a constant if it has no elements, so no bytes."""
    if tensor.data is not None or tensor.variable or tensor.problem or 0 not in tensor.shape:
        return tensor
    data = empty(tensor.dtype, tuple(d or 0 for d in tensor.shape))
    return replace(tensor, data=data, shape=tensor.shape if data is None else data.shape)


def _operator(operator: Any, codes: Sequence[tuple[str, bool]], tensors: int) -> Operator:
    place = operator.OpcodeIndex()
    if not 0 <= place < len(codes):
        raise Damaged(f"an operator has the code {place} of {len(codes)}")
    kind, custom = codes[place]
    options: dict[str, Any] = {}
    for table, made in (
        (operator.BuiltinOptions(), schema.BuiltinOptionsCreator),
        (operator.BuiltinOptions2(), schema.BuiltinOptions2Creator),
    ):
        if table is not None:
            number = (
                operator.BuiltinOptionsType()
                if made is schema.BuiltinOptionsCreator
                else operator.BuiltinOptions2Type()
            )
            found = made(number, table)
            options |= vars(found) if found is not None else {}
    inputs = _indices(operator.InputsAsNumpy(), tensors, f"the inputs of {kind}", missing=True)
    outputs = _indices(operator.OutputsAsNumpy(), tensors, f"the outputs of {kind}")
    content = operator.CustomOptionsAsNumpy() if operator.CustomOptionsLength() else b""
    return Operator(kind, custom, inputs, outputs, options, bytes(content))


def _signature(signature: Any, subgraphs: Sequence[Subgraph]) -> Signature:
    place = signature.SubgraphIndex()
    if place >= len(subgraphs):
        raise Damaged(f"a signature is of subgraph {place} of {len(subgraphs)}")
    graph = subgraphs[place]
    maps: list[dict[str, int]] = []
    for count, get, known in (
        (signature.InputsLength(), signature.Inputs, graph.inputs),
        (signature.OutputsLength(), signature.Outputs, graph.outputs),
    ):
        if count > len(known):
            raise Damaged(f"a signature has {count} names for {len(known)} tensors")
        pairs = {_text(get(i).Name()): int(get(i).TensorIndex()) for i in range(count)}
        if len(pairs) != count or not set(pairs.values()) <= set(known):
            raise Damaged(f"a signature names the tensors {sorted(pairs)}")
        maps.append(pairs)
    return Signature(_text(signature.SignatureKey()), place, maps[0], maps[1])


def _quantization(found: Any, name: str, shape: tuple[int, ...]) -> Quantization | None:
    if found is None or not found.ScaleLength():
        return None
    scale = np.array(found.ScaleAsNumpy(), np.float32)
    zero = np.array(_ints(found.ZeroPointAsNumpy()), np.int64)
    axis = int(found.QuantizedDimension())
    count = shape[axis] if 0 <= axis < len(shape) else 1
    if scale.size not in (1, count) or zero.size not in (0, 1, scale.size):
        what = f"{scale.size} scales and {zero.size} zero points for the shape {shape}"
        raise Damaged(f"the tensor {name!r} has {what}")
    if not np.isfinite(scale).all():
        raise Damaged(f"the tensor {name!r} has the scale {scale[~np.isfinite(scale)][0]}")
    return Quantization(scale, np.broadcast_to(zero if zero.size else 0, scale.shape), axis)


def _indices(found: Any, count: int, what: str, *, missing: bool = False) -> tuple[int, ...]:
    indices = tuple(_ints(found))
    if any(not (-1 if missing else 0) <= i < count for i in indices):
        raise Damaged(f"{what} are the tensors {indices[:8]} of {count}")
    return indices


def _ints(found: Any) -> list[int]:
    """Returns a vector of numbers; the reader gives 0 where there is none."""
    return [int(i) for i in found] if isinstance(found, np.ndarray) else []


def _text(found: bytes | None) -> str:
    return (found or b"").decode("utf-8", "replace")
