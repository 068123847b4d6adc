"""Models of other formats: their operators are replayed as TensorFlow's, and that is traced."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from converters.tf.errors import shortened
from converters.tf.ir import Array, Layer
from converters.tf.load.captures import captured
from converters.tf.load.tracer import trace_function, uses_half
from converters.tf.trace import REFUSED, Loaded, Trace, TraceFunction, TraceInput, TraceNode

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
        shape: Dimensions; `None` for the batch.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class Step:
    """An operator of a file.

    Attributes:
        name: Name in the file, which errors show.
        kind: What the format calls it.
        layer: Path of the layer that it belongs to.
        results: Element types and shapes of what it gives, as the file says.
    """

    name: str
    kind: str
    layer: str
    results: Sequence[tuple[str, Shape]]


class Replay:
    """The operators of a file while they are replayed."""

    def __init__(self) -> None:
        self._weights: dict[str, Any] = {}
        self._layers: dict[tuple[int, int], str] = {}
        self._kinds: dict[str, str] = {}
        self._owned: dict[str, list[str]] = {}
        self._refused: dict[str, tuple[Step, str]] = {}

    def weight(self, layer: str, role: str, data: Array) -> Callable[[], Tensor]:
        """Returns what reads a new weight.

        Args:
            layer: Path of the layer that has it.
            role: What it is there: `kernel`.
            data: Its value.
        """
        name, count = f"{layer}/{role}", 1
        while name in self._weights:
            name, count = f"{layer}/{role}_{count}", count + 1
        with tf.init_scope():
            variable = tf.Variable(data, trainable=False, name="weight")
        self._weights[name] = variable
        self._owned.setdefault(layer, []).append(name)
        return lambda: variable.read_value()

    def step(self, step: Step, run: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
        """Replays an operator; one that can't be is reported when the graph is converted."""
        graph = tf.compat.v1.get_default_graph()
        first = len(graph.get_operations())
        with tf.name_scope(_scope(step.name)):
            try:
                results = [tf.convert_to_tensor(t) for t in run()]
            except Refused as err:
                results = self._refuse(step, str(err))
            except RecursionError:
                raise
            except Exception as err:  # TensorFlow raises whatever odd operands made it raise.
                results = self._refuse(step, f"it does not fit its operands: {shortened(err)}")
        for index in range(first, len(graph.get_operations())):
            self._layers.setdefault((id(graph), index), step.layer)
        self._kinds.setdefault(step.layer, step.kind)
        return results

    def _refuse(self, step: Step, reason: str) -> list[Tensor]:
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
        """
        specs = [tf.TensorSpec(p.shape, p.dtype, f"input_{i}") for i, p in enumerate(inputs)]

        def body(*tensors: Tensor) -> list[Tensor]:
            return [tf.identity(t) for t in run(list(tensors))]

        concrete = tf.function(body, autograph=False, jit_compile=False).get_concrete_function(
            *specs
        )
        graph = concrete.graph
        operations = graph.get_operations()
        layer_of = {
            op.name: self._layers.get((id(graph), i), "") for i, op in enumerate(operations)
        }
        arguments = graph.inputs[: len(specs)]
        main, functions = trace_function(name, graph, graph.inputs, graph.outputs, layer_of)
        main = self._marked(main)
        functions = {key: self._marked(function) for key, function in functions.items()}
        names = {id(v.handle): weight for weight, v in self._weights.items()}
        trace = Trace(
            name=name,
            main=main,
            functions=functions,
            inputs=tuple(
                TraceInput(p.name, str(t.op.name), p.dtype, p.shape)
                for p, t in zip(inputs, arguments, strict=True)
            ),
            outputs=tuple(outputs),
            variables=captured(graph, names),
            layers=tuple(Layer(path, kind) for path, kind in self._kinds.items() if path),
            half=uses_half([main, *functions.values()]),
            weights={path: tuple(owned) for path, owned in self._owned.items()},
        )

        def predict(arrays: Mapping[str, Array]) -> dict[str, Array]:
            given = [tf.constant(arrays[p.name], p.dtype) for p in inputs]
            return {n: np.asarray(t) for n, t in zip(outputs, concrete(*given), strict=True)}

        return Loaded(trace, predict)

    def _marked(self, function: TraceFunction) -> TraceFunction:
        """Returns a function whose stand-ins are nodes that are refused."""
        nodes = {name: self._mark(node) for name, node in function.nodes.items()}
        return replace(function, nodes=nodes)

    def _mark(self, node: TraceNode) -> TraceNode:
        found = self._refused.get(node.name)
        if found is None or node.op != "IdentityN":
            return node
        step, reason = found
        return replace(node, op=step.kind, inputs=(), attrs={REFUSED: reason})


def _scope(name: str) -> str:
    """Returns a name that TensorFlow accepts for a scope."""
    parts = [re.sub(r"[^A-Za-z0-9_.]+", "_", part).strip("_.") for part in name.split("/")]
    return "/".join(part for part in parts if part)[:200] or "step"
