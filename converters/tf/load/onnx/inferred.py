"""Shapes of what TensorFlow computes, where more is open than TensorFlow has names for.

The conversion itself says them: the nodes between a result and tensors of known shapes are lowered,
and what becomes of them is thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from converters.tf import ir
from converters.tf.ir.symbolic import Symbol
from converters.tf.load.saved_model.replay import Refused
from converters.tf.load.tracer import trace_node
from converters.tf.lower.graph import Lowering, Unsupported, element_type
from converters.tf.lower.graph import Tensor as Lowered
from converters.tf.lower.ops.registry import HANDLERS
from converters.tf.lower.trace import Trace, TraceFunction, Variable

# A tensor: its graph, the operation and which result of it.
_Key: TypeAlias = tuple[Any, str, int]


class Shapes:
    """What is known of the tensors of a graph that grows."""

    def __init__(self, variables: Mapping[str, Variable]) -> None:
        """Begins with weights, by placeholder; later ones count, too."""
        main = TraceFunction("", (), {}, ())
        self._low = Lowering(Trace("", main, {}, (), (), variables), HANDLERS)
        self._known: dict[_Key, Lowered] = {}

    def state(self, tensor: Any, shape: ir.Shape) -> None:
        """Takes the shape of a tensor."""
        try:
            kind = element_type(str(tensor.dtype.name))
        except Unsupported:  # Whoever reads it is refused.
            return
        self._known[_key(tensor)] = ir.Value(kind, shape)

    def of(self, tensor: Any) -> ir.Shape:
        """Returns the shape of a tensor.

        Raises:
            Refused: It depends on more than the open dimensions.
        """
        found = self._lowered(tensor)
        if isinstance(found, ir.Value):
            return found.shape
        if isinstance(found, Symbol):
            return tuple(found.dims.shape)
        if isinstance(found, Variable) and found.data is not None:
            return tuple(found.data.shape)
        raise Refused("the shape of its result is not known")

    def _lowered(self, tensor: Any) -> Lowered:
        stack = [tensor]
        while stack:
            last = stack[-1]
            if _key(last) in self._known:
                stack.pop()
                continue
            needed = _outer(last)
            missing = [t for t in needed or last.op.inputs if _key(t) not in self._known]
            if missing:
                stack += missing
            elif needed:
                self._known[_key(last)] = self._known[_key(needed[0])]
            else:
                self._lower(last.op)
        return self._known[_key(tensor)]

    def _lower(self, operation: Any) -> None:
        args = tuple(self._known[_key(t)] for t in operation.inputs)
        results = self._low.one(trace_node(operation, ""), args)
        if self._low.problems:
            reason = self._low.problems[0].what
            self._low.problems.clear()
            raise Refused(reason)
        for tensor, result in zip(operation.outputs, results, strict=False):
            self._known[_key(tensor)] = result


def _key(tensor: Any) -> _Key:
    return tensor.graph, str(tensor.op.name), int(tensor.value_index)


def _outer(tensor: Any) -> list[Any]:
    """Returns what a graph inside of another one has from there under another name."""
    captures = getattr(tensor.graph, "captures", ())
    return [outer for outer, inner in captures if inner is tensor]
