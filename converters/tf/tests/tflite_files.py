"""Small .tflite files, written table by table, and what TFLite computes of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf.ir import Array

_TYPES = {k.lower(): v for k, v in vars(schema.TensorType).items() if isinstance(v, int)}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file.

    Attributes:
        shape: Its shape.
        dtype: Element type by TFLite's name in lower case.
        data: Its value if it is a constant.
        open: Whether its first axis is open.
        scale: Scales of its numbers, if they stand for real ones.
        zero: Zero points of these.
        axis: The axis of several scales.
        name: Its name; one is made if empty.
        variable: Whether it is a state that an operator keeps.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    data: Array | None = None
    open: bool = True
    scale: tuple[float, ...] = ()
    zero: tuple[int, ...] = ()
    axis: int = 0
    name: str = ""
    variable: bool = False


def constant(data: Any, **more: Any) -> Tensor:
    """Returns a constant."""
    array = np.asarray(data)
    array = array.astype(
        {"float64": "float32", "int64": "int32"}.get(array.dtype.name, array.dtype)
    )
    return Tensor(array.shape, more.pop("dtype", array.dtype.name), array, False, **more)


@dataclass(frozen=True)
class Operator:
    """An operator of a file: TFLite's name, numbers of tensors, and options."""

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: Any = None
    custom: bytes = b""


@dataclass(frozen=True)
class Subgraph:
    """A function of a file."""

    tensors: Sequence[Tensor]
    operators: Sequence[Operator]
    inputs: Sequence[int]
    outputs: Sequence[int]


@dataclass(frozen=True)
class Signature:
    """Names of what a subgraph takes and gives."""

    name: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    subgraph: int = 0


@dataclass
class _Writer:
    model: Any = field(default_factory=schema.ModelT)
    codes: dict[str, int] = field(default_factory=dict)

    def code(self, kind: str) -> int:
        if kind not in self.codes:
            code = schema.OperatorCodeT()
            number = getattr(schema.BuiltinOperator, kind, schema.BuiltinOperator.CUSTOM)
            code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
            code.version = 2 if kind == "BROADCAST_TO" else 1
            if number == schema.BuiltinOperator.CUSTOM:
                code.customCode = kind
            self.codes[kind] = len(self.codes)
            self.model.operatorCodes.append(code)
        return self.codes[kind]

    def tensor(self, tensor: Tensor, name: str) -> Any:
        made = schema.TensorT()
        made.name, made.type = tensor.name or name, _TYPES[tensor.dtype]
        made.shape = list(tensor.shape)
        made.hasRank = True
        made.isVariable = tensor.variable
        if tensor.open and tensor.shape and tensor.data is None:
            made.shapeSignature = [-1, *tensor.shape[1:]]
        if tensor.scale:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale = list(tensor.scale)
            made.quantization.zeroPoint = list(tensor.zero or (0,) * len(tensor.scale))
            made.quantization.quantizedDimension = tensor.axis
        if tensor.data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(tensor.data.tobytes(), np.uint8)
            made.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        return made

    def operator(self, operator: Operator) -> Any:
        made = schema.OperatorT()
        made.opcodeIndex = self.code(operator.kind)
        made.inputs, made.outputs = list(operator.inputs), list(operator.outputs)
        if operator.options is not None:
            name = type(operator.options).__name__.removesuffix("T")
            first = getattr(schema.BuiltinOptions, name, None)
            if first is not None:
                made.builtinOptionsType, made.builtinOptions = first, operator.options
            else:
                made.builtinOptions2Type = getattr(schema.BuiltinOptions2, name)
                made.builtinOptions2 = operator.options
        if operator.custom:
            made.customOptions = np.frombuffer(operator.custom, np.uint8)
        return made


def file_of(subgraphs: Sequence[Subgraph], signatures: Sequence[Signature] = ()) -> bytes:
    """Returns the bytes of a file."""
    writer = _Writer()
    model = writer.model
    model.version, model.description = 3, "test"
    model.operatorCodes, model.buffers, model.subgraphs = [], [schema.BufferT()], []
    for number, graph in enumerate(subgraphs):
        made = schema.SubGraphT()
        made.name = f"graph_{number}"
        made.tensors = [writer.tensor(t, f"t{number}_{i}") for i, t in enumerate(graph.tensors)]
        made.inputs, made.outputs = list(graph.inputs), list(graph.outputs)
        made.operators = [writer.operator(o) for o in graph.operators]
        model.subgraphs.append(made)
    model.signatureDefs = []
    for signature in signatures:
        made = schema.SignatureDefT()
        made.signatureKey, made.subgraphIndex = signature.name, signature.subgraph
        made.inputs, made.outputs = [], []
        for ports, into in ((signature.inputs, made.inputs), (signature.outputs, made.outputs)):
            for name, index in ports.items():
                port = schema.TensorMapT()
                port.name, port.tensorIndex = name, index
                into.append(port)
        model.signatureDefs.append(made)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def single(
    kind: str, operands: Sequence[Tensor | None], results: Sequence[Tensor], options: Any = None
) -> bytes:
    """Returns a file of one operator; all operands but constants are inputs."""
    tensors = [t for t in operands if t is not None]
    places = iter(range(len(tensors)))
    inputs = [-1 if t is None else next(places) for t in operands]
    outputs = list(range(len(tensors), len(tensors) + len(results)))
    taken = [i for i, t in enumerate(tensors) if t.data is None and not t.variable]
    operator = Operator(kind, inputs, outputs, options)
    return file_of([Subgraph([*tensors, *results], [operator], taken, outputs)])


def interpreted(content: bytes, arrays: Sequence[Array], reference: bool = False) -> list[Array]:
    """Returns what TFLite computes of a file's inputs, by its reference kernels if asked for."""
    kinds = tf.lite.experimental.OpResolverType
    kind = kinds.BUILTIN_REF if reference else kinds.AUTO
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=content, experimental_op_resolver_type=kind)
    for port, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.resize_tensor_input(port["index"], array.shape)
    interpreter.allocate_tensors()
    for port, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(port["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(p["index"]) for p in interpreter.get_output_details()]


def kinds_of(content: bytes) -> set[str]:
    """Returns the operators of a file."""
    names = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
    model = schema.Model.GetRootAs(content, 0)
    found = set()
    for graph in (model.Subgraphs(i) for i in range(model.SubgraphsLength())):
        for operator in (graph.Operators(i) for i in range(graph.OperatorsLength())):
            code = model.OperatorCodes(operator.OpcodeIndex())
            number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
            custom = code.CustomCode()
            found.add(custom.decode() if custom else names[number])
    return found
