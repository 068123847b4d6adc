"""Models of other formats: their operators are replayed as TensorFlow's, and that is traced."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from converters.tf import ir
from converters.tf.errors import shortened
from converters.tf.ir import Array, Layer
from converters.tf.ir.build import ShapeError
from converters.tf.ir.dimensions import Text
from converters.tf.ir.expressions import OpenSizeError, is_open
from converters.tf.ir.operands import Operands
from converters.tf.ir.symbolic import NotSymbolicError
from converters.tf.load.nodes import placeholder
from converters.tf.load.tracer import node_count, trace_function, uses_half
from converters.tf.lower.hints import hint
from converters.tf.lower.trace import (
    REFUSED,
    TYPED,
    TYPED_NODE,
    Loaded,
    Trace,
    TraceFunction,
    TraceInput,
    TraceNode,
    Variable,
)
from tools.codegen.conversion import ConversionError, Problem, UnsupportedError

# A tensor of the graph that is traced.
Tensor: TypeAlias = Any
Shape: TypeAlias = tuple[int | None, ...] | None


class Refused(Exception):  # noqa: N818 - it names a finding, not a failure of the program
    """An operator has no counterpart in TensorFlow; the message says what it has not."""


@dataclass(frozen=True)
class Port:
    """An input of the model.

    Attributes:
        name: Public name.
        dtype: Element type by its NumPy name.
        shape: Dimensions; `None` for the batch, a text for another one that is open.
    """

    name: str
    dtype: str
    shape: tuple[Text, ...]

    @property
    def known(self) -> list[int | None]:
        """Returns the shape for TensorFlow, which has no names for what is open."""
        return [None if isinstance(d, str) else d for d in self.shape]


@dataclass(frozen=True)
class Step:
    """An operator of a file.

    Attributes:
        where: Where it is, as errors show it.
        name: Name of what it becomes.
        kind: What the format calls it.
        layer: Path of the layer that it belongs to.
        count: How many results it has.
        results: Their element types and shapes; `None` where the file does not say them.
    """

    where: str
    name: str
    kind: str
    layer: str
    count: int
    results: Sequence[tuple[str, Shape]] | None = None


class Missing:
    """The result of an operator that is reported already, or comes after one."""


MISSING = Missing()


class Replay:
    """The operators of a file while they are replayed.

    Attributes:
        problems: What is not supported, of operators whose results the file does not describe.
        variables: The weights so far, by placeholder.
    """

    def __init__(self, constants: tuple[type, ...]) -> None:
        """Begins without operators.

        Args:
            constants: Types of results that are known without computing the graph.
        """
        self.problems: list[Problem] = []
        self._constants = constants
        self._graph = tf.Graph()
        self.variables: dict[str, Variable] = {}
        self._weights: dict[str, tuple[Variable, Tensor]] = {}
        # How many weights wished for a name: thousands of one layer may.
        self._wishes: Counter[str] = Counter()
        # First node, the one after the last, and layer; inner operators come first.
        self._spans: list[tuple[int, int, str]] = []
        self._kinds: dict[str, str] = {}
        self._owned: dict[str, list[str]] = {}
        self._refused: dict[str, tuple[Step, str]] = {}
        self._typed: dict[str, tuple[ir.Op, tuple[ir.DType, ...]]] = {}

    @property
    def inside(self) -> bool:
        """Returns whether this is in a loop or branch of the model."""
        return tf.compat.v1.get_default_graph() is not self._graph

    def weight(self, layer: str, role: str, data: Array) -> Tensor:
        """Returns a new weight; it is known to the conversion and to no shape of TensorFlow.

        Args:
            layer: Path of the layer that has it.
            role: What it is there: `kernel`.
            data: Its value.
        """
        wish = name = f"{layer}/{role}" if layer else role
        while name in self._weights:
            self._wishes[wish] += 1
            name = f"{wish}_{self._wishes[wish]}"
        # No other node is in this scope.
        tensor = placeholder(self._graph, f"weight/{len(self._weights)}", data)
        self.variables[str(tensor.op.name)] = variable = Variable(name, data)
        self._weights[name] = (variable, tensor)
        self._owned.setdefault(layer, []).append(name)
        return tensor

    def typed(self, op: ir.Op, operands: Sequence[Tensor], dtype: ir.DType) -> Tensor:
        """Returns what an op of the typed graph gives, which TensorFlow has no counterpart of.

        TensorFlow calls its meaning in NumPy when the model is predicted.

        Args:
            op: The op, whose shape rule needs no size that is open, but for the batch.
            operands: Its operands, none left out.
            dtype: Element type of its only result.
        """
        (found,) = self.typed_all(op, operands, [dtype])
        return found

    def typed_all(
        self, op: ir.Op, operands: Sequence[Tensor], dtypes: Sequence[ir.DType]
    ) -> list[Tensor]:
        """As `typed`, of an op with a result for each of the element types."""
        sizes = [tuple(ir.Batch() if d is None else d for d in t.shape) for t in operands]
        shapes = op.shapes(sizes) or ((),)
        kinds = [dtype.numpy for dtype in dtypes]

        def meaning(*arrays: Array) -> list[Array]:
            batch = arrays[0].shape[0] if arrays[0].ndim else 1
            at = ir.shape_at(shapes[0], batch)
            results = op.meaning(Operands(arrays), at)
            return [np.asarray(*each) for each in zip(results, kinds, strict=True)]

        found = list(tf.numpy_function(meaning, list(operands), kinds, stateful=False))
        for tensor, shape in zip(found, shapes, strict=True):
            tensor.set_shape([None if isinstance(d, ir.Batch) or is_open(d) else d for d in shape])
        self._typed[str(found[0].op.name)] = (op, tuple(dtypes))
        return found

    def step(self, step: Step, run: Callable[[], Sequence[Any]]) -> list[Any]:
        """Replays an operator: what it gives, or what stands for that if it can't be replayed."""
        graph, inside = tf.compat.v1.get_default_graph(), self.inside
        first = node_count(graph)
        with tf.name_scope(_scope(step.name)):
            try:
                results = list(run())
            except (Refused, ShapeError, OpenSizeError) as err:
                results = self.refused(step, str(err))
            except NotSymbolicError as err:
                results = self.refused(step, f"its result depends on the batch size as {err}")
            except (ConversionError, RecursionError):
                raise
            except Exception as err:  # TensorFlow raises whatever odd operands made it raise.
                results = self.refused(step, f"its operands don't fit: {shortened(err)}")
        if not inside:
            self._spans.append((first, node_count(graph), step.layer))
        if not all(isinstance(r, (*self._constants, Missing)) for r in results):
            self._kinds.setdefault(step.layer, step.kind)
        return results

    def refused(self, step: Step, reason: str) -> list[Any]:
        """Reports an operator; returns what stands for its results.

        If the file says what they are, they are nodes that the conversion refuses, so that the
        report has what it finds after them, too.
        """
        if not step.results:
            self.problems.append(Problem(step.where, reason))
            return [MISSING] * step.count
        number = len(self._refused) + 1
        stand_ins = [tf.raw_ops.Placeholder(dtype=t, shape=s) for t, s in step.results]
        results = tf.raw_ops.IdentityN(input=stand_ins, name=f"refused_{number}")
        self._refused[results[0].op.name] = (step, reason)
        return list(results)

    def loaded(
        self,
        name: str,
        inputs: Sequence[Port],
        outputs: Sequence[str],
        run: Callable[[list[Tensor]], Sequence[Tensor]],
    ) -> Loaded:
        """Traces a model.

        Args:
            name: Its name.
            inputs: Its inputs.
            outputs: Names of its outputs.
            run: Gets the inputs, replays all operators and returns the outputs.

        Raises:
            UnsupportedError: With every operator that can't be replayed, if the file does not
                describe the results of one.
        """
        with self._graph.as_default():
            arguments = [tf.compat.v1.placeholder(p.dtype, p.known, "input") for p in inputs]
            found = run(arguments)
            if self.problems:
                stand_ins = [Problem(step.where, why) for step, why in self._refused.values()]
                batch = any(None in port.shape for port in inputs)
                raise UnsupportedError.of(
                    p if p.advice else replace(p, advice=hint(p.what, batch))
                    for p in (*self.problems, *stand_ins)
                )
            results = [tf.identity(t, "output") for t in found]
        weights = list(self._weights.values())
        known = [*arguments, *(tensor for _, tensor in weights)]
        main, functions = trace_function(name, self._graph, known, results, self._layers())
        main = self._marked(main)
        functions = {key: self._marked(function) for key, function in functions.items()}
        trace = Trace(
            name=name,
            main=main,
            functions=functions,
            inputs=tuple(
                TraceInput(p.name, str(t.op.name), p.dtype, p.shape)
                for p, t in zip(inputs, arguments, strict=True)
            ),
            outputs=tuple(outputs),
            variables=self.variables,
            layers=tuple(Layer(path, kind) for path, kind in self._kinds.items() if path),
            half=uses_half([main, *functions.values()]),
            weights={path: tuple(owned) for path, owned in self._owned.items()},
        )

        def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
            given = {t: arrays[p.name] for t, p in zip(arguments, inputs, strict=True)}
            given |= {tensor: variable.data for variable, tensor in weights}
            return dict(zip(outputs, evaluated(self._graph, results, given), strict=True))

        return Loaded(trace, predict)

    def _layers(self) -> dict[str, str]:
        """Returns the layer of each node, by its name."""
        names = [str(operation.name) for operation in self._graph.get_operations()]
        layers: dict[str, str] = {}
        for first, end, layer in self._spans:
            for name in names[first:end]:
                layers.setdefault(name, layer)
        return layers

    def _marked(self, function: TraceFunction) -> TraceFunction:
        """Returns a function whose stand-ins are nodes that are refused."""
        nodes = {name: self._mark(node) for name, node in function.nodes.items()}
        return replace(function, nodes=nodes)

    def _mark(self, node: TraceNode) -> TraceNode:
        if node.name in self._typed:
            op, dtypes = self._typed[node.name]
            return replace(node, op=TYPED_NODE, attrs={TYPED: op, "dtypes": dtypes})
        found = self._refused.get(node.name)
        if found is None or node.op != "IdentityN":
            return node
        step, reason = found
        return replace(node, op=step.kind, inputs=(), attrs={REFUSED: reason})


def _scope(name: str) -> str:
    """Returns a name that TensorFlow accepts for a scope."""
    parts = [re.sub(r"[^A-Za-z0-9_.]+", "_", part).strip("_.") for part in name.split("/")]
    return "/".join(part for part in parts if part)[:200] or "step"


def evaluated(graph: Any, results: Sequence[Tensor], given: Mapping[Tensor, Any]) -> list[Array]:
    """Returns the values of tensors of a graph, which is computed as it is written.

    TensorFlow's optimizer is off. It joins depthwise convolutions of explicit padding with their
    bias to an op that ends the process. It also takes time that grows with the square of the nodes.
    """
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        return list(session.run(list(results), given))
