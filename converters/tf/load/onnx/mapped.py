"""A `Scan` whose iterations need none of each other: its body, written once for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from converters.tf.ir import Array
from converters.tf.load.onnx.file import Graph, Node
from converters.tf.load.onnx.old import AXIS

# Operators whose operands broadcast.
_BROADCASTING = """
    Abs Add And Cast Ceil Cos Div Equal Erf Exp Floor Greater GreaterOrEqual Identity Less
    LessOrEqual Log Max Mean Min Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign Sin Softplus
    Sqrt Sub Sum Tanh Where Xor
"""
_BROADCAST = frozenset(_BROADCASTING.split())
_REDUCING = """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSum ReduceSumSquare
"""
_REDUCTIONS = frozenset(_REDUCING.split())


@dataclass
class _Body:
    """A body while it is written for all iterations.

    Attributes:
        ranks: How many axes values have in one iteration.
        constants: The constants of the body.
        same: Values that are others.
        moved: Values that differ between iterations, which are their first axis.
        nodes: The nodes so far.
    """

    ranks: dict[str, int]
    constants: Mapping[str, Array]
    moved: set[str]
    same: dict[str, str] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> bool:
        """Adds a node for all iterations; returns whether that is possible."""
        known = set(filter(None, node.inputs)) <= self.ranks.keys()
        if not known or len(node.outputs) != 1 or AXIS in node.attrs:
            return False
        (result,) = node.outputs
        if node.op == "Identity":
            (name,) = node.inputs
            self.same[result] = self.same.get(name, name)
        if self.moved.isdisjoint(node.inputs):
            # It is known how many axes it has if its operands broadcast.
            if node.op not in _BROADCAST:
                return False
            self.ranks[result] = max(self.ranks[name] for name in node.inputs if name)
            self.nodes.append(node)
            return True
        self.moved.add(result)
        if node.op in _BROADCAST:
            rank = self.ranks[result] = max(self.ranks[name] for name in node.inputs if name)
            inputs = tuple(self._wide(name, rank, node) for name in node.inputs)
            self.nodes.append(replace(node, inputs=inputs, shapes=()))
            return True
        return node.op in _REDUCTIONS and self._reduce(node, result)

    def _wide(self, name: str, rank: int, node: Node) -> str:
        """Returns an operand with as many axes as others have, after the first one."""
        more = rank - self.ranks.get(name, rank)
        if name not in self.moved or not more:
            return name
        made = f"{name}/wide{rank}"
        if made not in self.ranks:
            self.ranks[made] = rank
            self.moved.add(made)
            axes = {"axes": tuple(range(1, 1 + more))}
            self.nodes.append(Node("", "Unsqueeze", (name,), (made,), axes, node.version))
        return made

    def _reduce(self, node: Node, result: str) -> bool:
        name, *rest = node.inputs
        rank, axes = self.ranks[name], node.attrs.get("axes")
        if axes is None and rest and rest[0]:
            if rest[0] not in self.constants:
                return False
            axes = np.ravel(self.constants[rest[0]])
        if axes is None or not len(axes):
            if node.attrs.get("noop_with_empty_axes", 0):
                return False
            axes = range(rank)
        places = {int(axis) for axis in axes}
        if not all(-rank <= axis < rank for axis in places):
            return False
        places = {axis % rank for axis in places}
        keeps = node.attrs.get("keepdims", 1)
        self.ranks[result] = rank if keeps else rank - len(places)
        attrs = {**node.attrs, "axes": tuple(sorted(axis + 1 for axis in places))}
        if places:
            self.nodes.append(replace(node, inputs=(name,), attrs=attrs, shapes=()))
        return bool(places)


def mapped(body: Graph, states: int, ranks: list[int]) -> Graph | None:
    """Returns a body for all iterations, if what it carries stays and its operators are known.

    Args:
        body: The body of one iteration.
        states: How many values it carries.
        ranks: The axes of its operands in one iteration: of states and of parts of what it reads.

    Returns:
        A graph whose operands after the states, and whose results, have the turns as their first
        axis. It has no results for the states, which stay as they are.
    """
    names = [port.name for port in body.inputs]
    if len(names) != len(ranks):
        return None
    known = {name: data.ndim for name, data in body.constants.items()}
    made = _Body({**known, **dict(zip(names, ranks, strict=True))}, body.constants, set())
    made.moved.update(names[states:])
    if not all(made.add(node) for node in body.nodes):
        return None
    carried, results = body.outputs[:states], body.outputs[states:]
    if [made.same.get(name, name) for name in carried] != names[:states]:
        return None
    if not results or not made.moved.issuperset(results):
        return None
    return Graph(body.inputs, results, body.constants, tuple(made.nodes))
