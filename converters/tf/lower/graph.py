"""From a trace to the typed graph, node by node; collects everything that is not supported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import Builder, ShapeError
from converters.tf.ir.dimensions import parsed
from converters.tf.ir.expressions import OpenSizeError
from converters.tf.ir.symbolic import NotSymbolicError, Objects, Symbol, objects
from converters.tf.lower.assigned import WRITERS, written_before
from converters.tf.lower.hints import hint
from converters.tf.lower.tensors import (
    Bits,
    Bounds,
    Classes,
    Complex,
    Crossed,
    Numbered,
    Partition,
    Rows,
    Seed,
    Several,
    Spelled,
    Spread,
    TensorList,
    Tokens,
    Unknown,
    Written,
)
from converters.tf.lower.trace import (
    REFUSED,
    WRITE,
    Attr,
    Trace,
    TraceFunction,
    TraceNode,
    Variable,
)
from tools.codegen.conversion import Problem, UnsupportedError

_DTYPES = {
    "float32": ir.DType.F32,
    "half": ir.DType.F32,
    "float16": ir.DType.F32,
    "bfloat16": ir.DType.F32,
    "float64": ir.DType.F64,
    "int8": ir.DType.I8,
    "int16": ir.DType.I16,
    "int32": ir.DType.I32,
    "int64": ir.DType.I64,
    "uint8": ir.DType.U8,
    "uint16": ir.DType.U16,
    "uint32": ir.DType.U32,
    "uint64": ir.DType.U64,
    "bool": ir.DType.BOOL,
    "string": ir.DType.STR,
    "object": ir.DType.STR,
}


class Unsupported(Exception):  # noqa: N818 - it names a finding, not a failure of the program
    """A node needs what there is no kernel for; the message says what."""


@dataclass(frozen=True)
class _Poison:
    """The result of a node that is reported already, or comes after one."""


POISON = _Poison()

Tensor: TypeAlias = (
    ir.Value
    | Symbol
    | Variable
    | TensorList
    | Bits
    | Bounds
    | Rows
    | Numbered
    | Several
    | Seed
    | Complex
    | Tokens
    | Classes
    | Spelled
    | Written
    | Partition
    | Crossed
    | Unknown
    | _Poison
)
Result: TypeAlias = Tensor | tuple[Tensor, ...]
T = TypeVar("T")


@dataclass
class Context:
    """One node with its operands, for the function that lowers it.

    Attributes:
        low: The whole lowering.
        node: The node.
        args: Operands.
    """

    low: Lowering
    node: TraceNode
    args: tuple[Tensor, ...]

    @property
    def build(self) -> Builder:
        """Returns the builder of nodes."""
        return self.low.build

    def attr(self, name: str, default: Attr = None) -> Attr:
        """Returns an attribute."""
        value = self.node.attrs.get(name)
        return default if value is None else value

    def dtype(self, name: str) -> ir.DType:
        """Returns an element type that an attribute names."""
        return element_type(self.attr(name, "float32"))

    def value(self, index: int) -> ir.Value:
        """Returns an operand as a tensor of the model; open dimensions are counted at each call.

        Raises:
            Unsupported: It is a multiple of the batch size, a list or a resource.
        """
        arg = self.args[index]
        if isinstance(arg, Symbol):
            return self._counted(arg)
        if isinstance(arg, ir.Value):
            return arg
        if isinstance(arg, Variable) and arg.data is not None:
            return self.low.weight(arg)
        if isinstance(arg, Bounds):
            raise Unsupported("the batch is reduced")
        if isinstance(arg, Rows | Numbered):
            raise Unsupported("the number of an example in the batch is used as data")
        if isinstance(arg, Several):
            raise Unsupported("it depends on the batch size whether it is more than 1")
        raise Unsupported(f"operand {index} is a {type(arg).__name__}")

    def _counted(self, symbol: Symbol) -> ir.Value:
        known = symbol.known()
        if known is not None:
            return ir.constant(known)
        if any(isinstance(d, ir.Batch) for d in symbol.dims.flat):
            raise Unsupported("the batch size is used as data")
        dtype = element_type(symbol.dtype)
        parts = [self.build.length(d, dtype) for d in symbol.dims.flat]
        parts = [self.build.reshape(part, (1,)) for part in parts]
        return self.build.reshape(self.build.concat(parts, 0), symbol.dims.shape)

    @property
    def values(self) -> list[ir.Value]:
        """Returns all operands."""
        return [self.value(i) for i in range(len(self.args))]

    def array(self, index: int) -> ir.Array:
        """Returns an operand that must be known now.

        Raises:
            Unsupported: It depends on the model's inputs or on the batch size.
        """
        data = self.value(index).data
        if data is None:
            raise Unsupported(f"operand {index} is computed from the model's inputs")
        return data

    def ints(self, index: int) -> list[int]:
        """Returns a known operand as numbers."""
        return [int(i) for i in np.ravel(self.array(index))]

    def integer(self, index: int) -> int:
        """Returns a known operand as one number."""
        (number,) = self.ints(index)
        return number

    def dims(self, index: int) -> Objects:
        """Returns an operand whose elements are dimensions.

        Raises:
            Unsupported: It depends on the model's inputs.
        """
        arg = self.args[index]
        return arg.dims if isinstance(arg, Symbol) else objects(self.array(index))

    def axis(self, index: int, rank: int) -> int:
        """Returns a known operand as an axis that is not negative."""
        return self.integer(index) % rank if rank else 0

    @property
    def symbolic(self) -> bool:
        """Returns whether an operand depends on the batch size and all others are known."""
        known = all(
            isinstance(a, Symbol) or (isinstance(a, ir.Value) and a.is_constant) for a in self.args
        )
        return known and any(isinstance(a, Symbol) for a in self.args)


def element_type(name: str) -> ir.DType:
    """Returns our element type.

    Raises:
        Unsupported: There is none.
    """
    dtype = _DTYPES.get(name)
    if dtype is None:
        raise Unsupported(f"element type {name}")
    return dtype


Handler: TypeAlias = Callable[[Context], Result]


@dataclass
class Lowering:
    """The state of a lowering.

    Attributes:
        trace: What is lowered.
        handlers: Functions by TensorFlow's op.
        build: The nodes so far.
        problems: What is not supported so far.
        progress: Called with the number of nodes that are done.
        done: Number of nodes that are done.
        probing: Whether this is a trial whose nodes vanish.
        spread: Images that `SpaceToBatchND` made.
        turns: How many loops the node is in.
        counts: Names of what each call counts.
        chosen: The places that masks choose.
        longest: The open dimensions that tokens decide.
    """

    trace: Trace
    handlers: Mapping[str, Handler]
    build: Builder = field(default_factory=Builder)
    problems: list[Problem] = field(default_factory=list)
    progress: Callable[[int], None] = lambda _: None
    done: int = 0
    probing: bool = False
    spread: dict[ir.Value, Spread] = field(default_factory=dict)
    turns: int = 0
    counts: set[str] = field(default_factory=set)
    chosen: dict[ir.Value, ir.Value] = field(default_factory=dict)
    longest: list[tuple[Tokens, int]] = field(default_factory=list)
    # With what an id belongs to: another one may get the id of one that is gone.
    _weights: dict[int, tuple[object, ir.Value]] = field(default_factory=dict)
    _orders: dict[str, tuple[list[str], dict[str, dict[int, str]]]] = field(default_factory=dict)

    def hint(self, what: str) -> str:
        """Returns what to do about a finding, or nothing."""
        dims = {d for port in self.trace.inputs for d in port.shape}
        # With another open size, that may be what has to be known.
        mixed = " as " in what and any(isinstance(d, str) for d in dims)
        return hint(what, None in dims and not mixed)

    def weight(self, variable: Variable) -> ir.Value:
        """Returns a variable's value, the same object every time.

        Raises:
            Unsupported: It holds no tensor, or one of an element type that has no counterpart.
        """
        if variable.data is None:
            raise Unsupported("a resource that is not a variable, such as a table")
        return self._kept(variable, variable.data, variable.name)

    def literal(self, node: TraceNode, data: ir.Array) -> ir.Value:
        """Returns the constant of a node, the same object every time."""
        return self._kept(node, data, node.name if data.size > 1 else "")

    def _kept(self, owner: object, data: ir.Array, name: str) -> ir.Value:
        found = self._weights.get(id(owner))
        if found is None:
            data = data.astype(object) if data.dtype.kind in "SU" else data
            element_type(data.dtype.name)
            found = self._weights[id(owner)] = (owner, ir.constant(data, name))
        return found[1]

    @contextlib.contextmanager
    def inside(self) -> Iterator[Builder]:
        """Collects nodes in a builder of their own, for the body of a loop."""
        before, self.build = self.build, Builder()
        self.turns += 1
        try:
            yield self.build
        finally:
            self.build = before
            self.turns -= 1

    @contextlib.contextmanager
    def apart(self) -> Iterator[list[Problem]]:
        """Lowers on trial: nodes vanish, and problems go to the list that this gives."""
        before, self.problems = self.problems, []
        probing, self.probing = self.probing, True
        try:
            with self.inside():
                yield self.problems
        finally:
            self.problems, self.probing = before, probing

    def call(
        self, function: TraceFunction, args: Sequence[Tensor], layer: str = ""
    ) -> list[Tensor]:
        """Lowers the body of a function for the given arguments; returns its results."""
        env: dict[tuple[str, int], Tensor] = {
            (name, 0): arg for name, arg in zip(function.arguments, args, strict=True)
        }
        order, written = self._order(function)
        for name in order:
            node = function.nodes[name]
            if (name, 0) in env:
                continue
            inputs = [env[(r.node, r.index)] for r in node.inputs]
            for place, writer in written.get(name, {}).items():
                inputs[place] = self._written(function.nodes[writer], env.get((writer, 0)), layer)
            results = self._node(node, tuple(inputs), layer)
            for index, result in enumerate(results):
                env[(name, index)] = result
            self.done += 0 if self.probing else 1
            self.progress(self.done)
        return [env.get((r.node, r.index), POISON) for r in function.results]

    def one(self, node: TraceNode, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Lowers a node that is part of no function; what is not supported is in `problems`."""
        return self._node(node, args, "")

    def _order(self, function: TraceFunction) -> tuple[list[str], dict[str, dict[int, str]]]:
        """Returns what is lowered, in order, and what reads variables after they were written."""
        known = self._orders.get(function.name)
        if known is None:
            written = written_before(function, self.trace.functions)
            known = self._orders[function.name] = (needed(function, written), written)
        return known

    def _written(self, writer: TraceNode, result: Tensor | None, layer: str) -> Tensor:
        if writer.op in WRITERS and result is not None:
            return result
        what = "it assigns to a variable that is read after it"
        self.problems.append(Problem(_place(writer, writer.layer or layer), what))
        return POISON

    def _node(self, node: TraceNode, args: tuple[Tensor, ...], layer: str) -> tuple[Tensor, ...]:
        if node.op == "Placeholder" and node.name in self.trace.variables:
            return (self.trace.variables[node.name],)
        if any(isinstance(a, _Poison) for a in args):
            return (POISON,) * 32
        handler = self.handlers.get(node.op)
        path = node.layer or layer
        before, self.build.layer = self.build.layer, path
        try:
            if handler is None:
                reason = node.attrs.get(REFUSED, f"there is no kernel for the op {node.op}")
                raise Unsupported(reason)
            result = handler(Context(self, node, args))
            return result if isinstance(result, tuple) else (result,)
        except (Unsupported, ShapeError, NotSymbolicError, OpenSizeError) as err:
            what = str(err)
            if isinstance(err, NotSymbolicError):
                what = f"its result depends on the batch size as {what}"
            self.problems.append(Problem(_place(node, path), what, self.hint(what)))
            return (POISON,) * 32
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as err:
            what = f"it is not as TensorFlow writes it: {type(err).__name__}: {err}"
            self.problems.append(Problem(_place(node, path), what))
            return (POISON,) * 32
        finally:
            self.build.layer = before


def _place(node: TraceNode, layer: str) -> str:
    """Returns where a problem is."""
    place = f"layer {layer}, node {node.name}" if layer else f"node {node.name}"
    return f"{place} ({node.op})"


def needed(
    function: TraceFunction, written: Mapping[str, Mapping[int, str]] = MappingProxyType({})
) -> list[str]:
    """Returns the nodes that the results need, operands before users.

    Args:
        function: The function.
        written: Operands that another node writes, by name of the node that reads them.

    Raises:
        UnsupportedError: The nodes form a cycle, as loops of TensorFlow 1 do.
    """
    order: list[str] = []
    state: dict[str, bool] = {}
    for result in function.results:
        stack = [(result.node, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                state[name] = True
                order.append(name)
                continue
            if name in state:
                if not state[name]:
                    problem = Problem(
                        f"node {name}",
                        "it depends on itself",
                        "loops of TensorFlow 1 are not supported; freeze with control flow v2",
                    )
                    raise UnsupportedError(problem)
                continue
            state[name] = False
            stack.append((name, True))
            before = [ref.node for ref in function.nodes[name].inputs]
            before += written.get(name, {}).values()
            stack.extend((n, False) for n in before if not state.get(n, False))
    return order


def lower(
    trace: Trace, handlers: Mapping[str, Handler], progress: Callable[[int], None] | None = None
) -> ir.Graph:
    """Lowers a traced model.

    Args:
        trace: The model.
        handlers: Functions by TensorFlow's op.
        progress: Called with the number of nodes that are done.

    Raises:
        UnsupportedError: With every node that is not supported.
    """
    low = Lowering(trace, handlers)
    if progress is not None:
        low.progress = progress
    inputs = []
    args: list[Tensor] = []
    for port in trace.inputs:
        if port.name in trace.constants:
            args.append(ir.constant(trace.constants[port.name]))
            continue
        try:
            kind = element_type(port.dtype)
        except Unsupported as err:
            what = str(err)
            low.problems.append(Problem(f"input {port.name}", what, low.hint(what)))
            continue
        shape = tuple(
            ir.Batch() if d is None else parsed(d) if isinstance(d, str) else d for d in port.shape
        )
        inputs.append(ir.Port(port.name, ir.Value(kind, shape, None, port.name)))
        args.append(inputs[-1].value)
    if low.problems:
        raise UnsupportedError.of(low.problems)
    names = trace.main.arguments[len(args) :]
    args.extend(trace.variables[n] for n in names)
    results = low.call(trace.main, args)
    outputs = []
    for name, result in zip(trace.outputs, results, strict=True):
        try:
            result = _written(low, result)
            found = _as_value(low, result)
        except Unsupported as err:
            what = str(err)
            low.problems.append(Problem(f"output {name}", what, low.hint(what)))
            continue
        if found is not None:
            words = result.words if isinstance(result, Spelled) else None
            outputs.append(ir.Port(name, found, words))
    if low.problems:
        raise UnsupportedError.of(low.problems)
    return ir.Graph(trace.name, tuple(inputs), tuple(outputs), tuple(low.build.nodes), trace.layers)


def _written(low: Lowering, result: Tensor) -> Tensor:
    """Returns an output as it is, or as text that the call writes, or the lengths of such."""
    chosen = isinstance(result, Spelled) and bool(result.texts)
    given = isinstance(result, ir.Value) and result.dtype is ir.DType.STR
    lengths = isinstance(result, Partition) and result.form == "lengths"
    if not (chosen or given or lengths or isinstance(result, Tokens)):
        return result
    node = TraceNode(WRITE, WRITE, (), {})
    found = low.handlers[WRITE](Context(low, node, (result,)))
    assert not isinstance(found, tuple)
    return found


def _as_value(low: Lowering, result: Tensor) -> ir.Value | None:
    if isinstance(result, _Poison):
        return None
    if isinstance(result, ir.Value):
        return result
    if isinstance(result, Symbol) and (known := result.known()) is not None:
        return ir.constant(known)
    if isinstance(result, Spelled):
        return result.places
    if isinstance(result, Written):
        return result.value
    if isinstance(result, Variable):
        return low.weight(result)
    if isinstance(result, Bounds):
        raise Unsupported("the batch is reduced")
    if isinstance(result, Complex):
        raise Unsupported("a complex number")
    raise Unsupported("it is the batch size, or no tensor")
