"""Traces a TFLite model: every operator is replayed as TensorFlow's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import tensorflow as tf

from converters.tf.errors import FileError
from converters.tf.load.custom_ops import CustomOp
from converters.tf.load.saved_model.replay import Port, Refused, Replay, Step, Tensor
from converters.tf.load.shapes import FixedShapes
from converters.tf.load.stateful import carried_notes
from converters.tf.load.symbols import Named, opened
from converters.tf.load.tflite import (
    control,
    detection,
    elementwise,
    file,
    mediapipe,
    own,
    quantized,
    recurrent,
    shapes,
    whole,
    windows,
)
from converters.tf.load.tflite.call import (
    Call,
    Constant,
    Firsts,
    Handler,
    Kept,
    Value,
    Variables,
    label,
)
from converters.tf.load.tflite.names import layers, port_names
from converters.tf.load.tflite.stored import real
from converters.tf.lower.states import named
from converters.tf.lower.trace import Loaded
from tools.codegen.conversion import Problem, UnsupportedError

HANDLERS: dict[str, Handler] = {
    **control.OPS,
    **elementwise.OPS,
    **recurrent.OPS,
    **shapes.OPS,
    **windows.OPS,
}
_CUSTOM: dict[str, Handler] = {**detection.OPS, **mediapipe.OPS}
_DEFAULT = "serving_default"
# Calls of subgraphs that are replayed at most: they may double at every level.
_MOST_CALLS = 500
_DEEPEST = 20
# Operators whose results stay between the ends of their operands, or between ends of their own.
_INSIDE = frozenset(
    [
        "CONCATENATION",
        "DEQUANTIZE",
        "EMBEDDING_LOOKUP",
        "EXPAND_DIMS",
        "GATHER",
        "GATHER_ND",
        "LOGISTIC",
        "LOG_SOFTMAX",
        "PACK",
        "RESHAPE",
        "SLICE",
        "SOFTMAX",
        "SPLIT",
        "SPLIT_V",
        "SQUEEZE",
        "STRIDED_SLICE",
        "TANH",
        "TILE",
        "TRANSPOSE",
        "UNPACK",
    ]
)


def trace_tflite(
    path: Path,
    signature: str,
    fixed: FixedShapes,
    integer: bool = True,
    ops: Mapping[str, CustomOp] = MappingProxyType({}),
    stateful: bool = False,
) -> Loaded:
    """Traces a signature of a TFLite model.

    Args:
        path: File.
        signature: Its name; empty for the default or only one, or for the main subgraph.
        fixed: Dimensions that the file leaves open.
        integer: Whether a model that multiplies int8 numbers computes in integers; else it
            computes in float32.
        ops: Operators of the user, by their names.
        stateful: Whether variables that TFLite carries from call to call are inputs and outputs.

    Raises:
        FileError: The file is damaged, or has no such signature.
        UnsupportedError: It has no input or no output.
    """
    model = file.read(path)
    chosen = _signature(path, model, signature)
    graph = model.subgraphs[chosen.subgraph]
    places = {place: name for name, place in chosen.inputs.items()}
    names = [places[i] for i in graph.inputs]
    if not names or not chosen.outputs:
        what = f"{len(names)} inputs and {len(chosen.outputs)} outputs"
        raise UnsupportedError(Problem(str(path), what, "a model needs one of each"))
    tensors = [graph.tensors[i] for i in graph.inputs]
    found = opened(fixed, [Named(n, t.shape) for n, t in zip(names, tensors, strict=True)])
    sizes = (d for shape in found for d in shape)
    known = not any(isinstance(d, str) for d in sizes)
    integer = integer and known and whole.computes_whole(model)
    outputs = sorted(chosen.outputs, key=lambda n: graph.outputs.index(chosen.outputs[n]))

    def traced(states: Firsts) -> tuple[Loaded, Firsts]:
        """Traces it with some variables as inputs; returns those that TFLite carries, too."""
        run = _Run(path, model, integer, ops)
        ports = [
            Port(name, run.dtype(tensor), shape)
            for name, tensor, shape in zip(names, tensors, found, strict=True)
        ]
        firsts = [(label(key), first) for key, (_, first) in states.items()]
        kept = named(firsts, [*names, *outputs])
        ports += [
            Port(state.given, str(state.first.dtype.name), shape)
            for state, (shape, _) in zip(kept, states.values(), strict=True)
        ]

        def body(inputs: list[Tensor]) -> Sequence[Tensor]:
            given = [
                whole.from_unsigned(value) if run.is_shifted(tensor) else value
                for value, tensor in zip(inputs, tensors, strict=False)
            ]
            run.variables.given = dict(zip(states, inputs[len(tensors) :], strict=True))
            run.variables.values |= run.variables.given
            places = [chosen.outputs[name] for name in outputs]
            results = [run.in_graph(v) for v in run.subgraph(chosen.subgraph, given, places)]
            # A constant is float32 in any case.
            shifted = [run.is_shifted(graph.tensors[place]) for place in places]
            after = [run.in_graph(run.variables.values[key]) for key in states]
            return [
                whole.to_unsigned(value) if own and value.dtype == tf.int8 else value
                for value, own in zip(results, shifted, strict=True)
            ] + after

        ends = [*outputs, *(state.following for state in kept)]
        loaded = run.replay.loaded(path.stem, ports, ends, body)
        return replace(loaded, states=tuple(kept)), run.variables.carried()

    loaded, carried = traced({})
    if stateful and carried:
        return traced(carried)[0]
    return replace(loaded, notes=carried_notes(map(label, carried), "TFLite"))


def _signature(path: Path, model: file.Model, wanted: str) -> file.Signature:
    available = {s.name: s for s in model.signatures}
    names = ", ".join(available) or "none"
    if wanted:
        if wanted not in available:
            raise FileError(Problem(str(path), f"no signature {wanted!r}; available: {names}"))
        found = available[wanted]
    elif _DEFAULT in available:
        found = available[_DEFAULT]
    elif len(available) > 1:
        what = f"no default signature; available: {names}"
        raise FileError(Problem(str(path), what, "give --signature"))
    else:
        found = next(iter(available.values()), file.Signature("", 0, {}, {}))
    graph = model.subgraphs[found.subgraph]
    inputs = found.inputs if len(found.inputs) == len(graph.inputs) else {}
    if not inputs:
        known = port_names((graph.tensors[i].name for i in graph.inputs), "input")
        inputs = dict(zip(known, graph.inputs, strict=True))
    outputs = found.outputs
    if not outputs:
        known = port_names((graph.tensors[i].name for i in graph.outputs), "output")
        outputs = dict(zip(known, graph.outputs, strict=True))
    return file.Signature(found.name, found.subgraph, inputs, outputs)


@dataclass
class _Run:
    """The state of a replay.

    Attributes:
        path: The file.
        model: What it holds.
        integer: Whether int8 numbers that stand for real ones are int8 in the graph.
        ops: Operators of the user, by their names.
        replay: What is replayed.
        variables: The variables that the model keeps.
        active: Subgraphs that are replayed at the moment.
        calls: Calls of subgraphs so far.
    """

    path: Path
    model: file.Model
    integer: bool = False
    ops: Mapping[str, CustomOp] = field(default_factory=dict)
    replay: Replay = field(default_factory=lambda: Replay((Constant, control.Handle)))
    variables: Variables = field(default_factory=Variables)
    active: list[int] = field(default_factory=list)
    calls: int = 0
    _constants: dict[tuple[int, int], Constant] = field(default_factory=dict)

    def subgraph(
        self, number: int, arguments: Sequence[Value], outputs: Sequence[int] | None = None
    ) -> list[Value]:
        """Replays a subgraph; returns some of its tensors, or what it returns.

        Raises:
            FileError: It calls itself, or reads what nothing has written.
            Refused: It has other arguments.
        """
        graph = self.graph(number)
        if number in self.active or len(self.active) >= _DEEPEST:
            raise FileError(Problem(str(self.path), f"the subgraph {graph.name!r} calls itself"))
        self.calls += 1
        if self.calls > _MOST_CALLS:
            what = f"its subgraphs call each other more than {_MOST_CALLS} times"
            raise FileError(Problem(str(self.path), what))
        if len(arguments) != len(graph.inputs):
            what = f"{len(arguments)} arguments for the subgraph {graph.name!r} of "
            raise Refused(f"{what}{len(graph.inputs)}")
        self.active.append(number)
        try:
            env: dict[int, Value] = dict(zip(graph.inputs, arguments, strict=True))
            for operator, layer in zip(graph.operators, layers(graph), strict=True):
                self._operator(number, operator, layer, env)
            wanted = graph.outputs if outputs is None else outputs
            return [self._value(number, index, env) for index in wanted]
        finally:
            self.active.pop()

    def graph(self, number: int) -> file.Subgraph:
        """Returns a subgraph.

        Raises:
            FileError: There is none.
        """
        if not 0 <= number < len(self.model.subgraphs):
            what = f"a call of subgraph {number} of {len(self.model.subgraphs)}"
            raise FileError(Problem(str(self.path), what))
        return self.model.subgraphs[number]

    def in_graph(self, value: Value) -> Tensor:
        """Returns a value as a tensor of the graph."""
        if isinstance(value, Constant):
            return value.tensor(self.replay, "output", "value")
        return value

    def dtype(self, tensor: file.Tensor) -> str:
        """Returns the element type that a tensor has in the graph."""
        if tensor.quantization is None or (self.integer and whole.is_whole(tensor)):
            return tensor.dtype
        return "float32"

    def is_shifted(self, tensor: file.Tensor) -> bool:
        """Returns whether a tensor's numbers are of uint8 in the file, and int8 in the graph."""
        return self.integer and whole.is_whole(tensor) and whole.is_unsigned(tensor)

    def _value(self, number: int, index: int, env: dict[int, Value]) -> Value:
        if index in env:
            return env[index]
        tensor = self.model.subgraphs[number].tensors[index]
        if tensor.problem:
            raise Refused(f"the constant {tensor.name!r}: {tensor.problem}")
        if tensor.data is None:
            what = f"the tensor {tensor.name!r} is read before it is written"
            raise FileError(Problem(str(self.path), what))
        key = (number, index)
        if key not in self._constants:
            data = tensor.data
            if tensor.quantization is not None and data.dtype.kind in "iu":
                found = tensor.quantization
                data = real(data, found.scale, found.zero_point, found.axis)
            elif data.dtype == "float16":
                data = data.astype("float32")
            self._constants[key] = Constant(data)
        return self._constants[key]

    def _operator(
        self, number: int, operator: file.Operator, layer: str, env: dict[int, Value]
    ) -> None:
        graph = self.model.subgraphs[number]
        results = [graph.tensors[i] for i in operator.outputs]

        def run() -> list[Value]:
            places = list(enumerate(operator.inputs))
            kept = {p: i for p, i in places if i >= 0 and graph.tensors[i].variable}
            operands = [
                None if i < 0 or p in kept else self._value(number, i, env) for p, i in places
            ]
            call = Call(
                self.replay,
                operator,
                layer,
                operands,
                results,
                lambda other, args: [self.in_graph(v) for v in self.subgraph(other, args)],
                lambda other: [self.graph(other).tensors[i] for i in self.graph(other).inputs],
                self.variables,
                {p: Kept(graph.tensors[i].name, number, i) for p, i in kept.items()},
            )
            tensors = [None if i < 0 else graph.tensors[i] for i in operator.inputs]
            between = [t for t in (*tensors, *results) if t is not None]
            if self.integer and any(map(whole.is_whole, between)):
                return _counted(results, self._quantized(whole.Whole(call, tensors)))
            values = _counted(results, self._handler(call)(call))
            return [
                _held(operator, tensor, value)
                for tensor, value in zip(results, values, strict=True)
            ]

        name = results[0].name.split(";")[0] if results else layer
        where = f"layer {layer}, node {name} ({operator.kind})"
        declared = [("int8" if self.is_shifted(t) else self.dtype(t), t.shape) for t in results]
        step = Step(where, name, operator.kind, layer, len(results), declared)
        env.update(zip(operator.outputs, self.replay.step(step, run), strict=True))

    def _quantized(self, int8: whole.Whole) -> list[Value]:
        """Replays an operator with int8 numbers: in float32 if nothing computes it in int8."""
        call = int8.call
        try:
            found = quantized.replayed(int8)
        except whole.NotServed:
            operands = [
                whole.dequantized(self.replay, value, tensor)
                if tensor is not None and whole.is_whole(tensor) and not isinstance(value, Constant)
                else value
                for value, tensor in zip(call.operands, int8.tensors, strict=True)
            ]
            call = replace(call, operands=operands)
            values = _counted(call.results, self._handler(call)(call))
            return [
                whole.quantized(self.replay, self.in_graph(value), tensor)
                if whole.is_whole(tensor)
                else _held(call.operator, tensor, value)
                for value, tensor in zip(values, call.results, strict=True)
            ]
        return _counted(call.results, found)

    def _handler(self, call: Call) -> Handler:
        """Returns what replays an operator.

        Raises:
            Refused: Nothing does.
        """
        if call.operator.custom and call.operator.kind in self.ops:
            return own.handler(self.ops[call.operator.kind])
        if control.is_flex(call):
            return control.flex
        found = (_CUSTOM if call.operator.custom else HANDLERS).get(call.operator.kind)
        if found is None:
            what = "custom operator" if call.operator.custom else "operator"
            advice = "; --custom_op takes one of your own" if call.operator.custom else ""
            raise Refused(f"there is nothing for the {what} {call.operator.kind}{advice}")
        return found


def _counted(results: Sequence[file.Tensor], found: Value | Sequence[Value]) -> list[Value]:
    values = list(found) if isinstance(found, list | tuple) else [found]
    if len(values) != len(results):
        raise Refused(f"it has {len(results)} results, of {len(values)}")
    return values


def _held(operator: file.Operator, tensor: file.Tensor, value: Value) -> Value:
    """Returns a result between the ends of the integers that would stand for it."""
    if isinstance(value, Constant | control.Handle):
        return value
    bounds = tensor.bounds
    inside = operator.kind in _INSIDE or "fusedActivationFunction" in operator.options
    if bounds is None or inside:
        return tf.convert_to_tensor(value)
    return tf.clip_by_value(value, *bounds)
