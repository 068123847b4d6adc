"""The frame of the passes: rules that look at a node and its operands' producers.

A rule gives values that stand for the results of its node, or nothing. It may emit nodes; what
nobody needs any more is swept away afterwards. So a rule never has to remove anything, and a wrong
count of users costs speed only.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from converters.tf import ir
from converters.tf.ir.build import Builder
from converters.tf.ir.expressions import OpenSizeError

# Sweeps after which a pass gives up; models need fewer than ten.
_MOST_SWEEPS = 50
# Bytes of a constant that is read whole to tell it from others.
_SMALL = 1 << 12
# Elements of others that are read first.
_SOME = 64


class Match:
    """What a rule may ask and do.

    Attributes:
        build: Emits nodes in front of the node at hand, in its layer.
    """

    def __init__(self, graph: ir.Graph) -> None:
        """Counts the users of every value."""
        self.build = Builder()
        self._users = Counter(
            itertools.chain(
                itertools.chain.from_iterable(node.present for node in graph.nodes),
                (port.value for port in graph.outputs),
            )
        )
        self._rounded = {
            node.input
            for node in graph.nodes
            if isinstance(node.op, ir.Unary) and node.op.function.kind is ir.Fn.ROUND
        }
        self._producers: dict[ir.Value, ir.Node] = {}
        self._seen = 0

    @classmethod
    def whole(cls, graph: ir.Graph) -> Match:
        """Returns a view of all nodes of a graph that is not being rewritten."""
        match = cls(graph)
        match.build.nodes.extend(graph.nodes)
        return match

    def producer(self, value: ir.Value | None) -> ir.Node | None:
        """Returns the node that gives a value; inputs and constants have none."""
        if value is None:
            return None
        if self._seen < len(self.build.nodes):
            self._notice()
        return self._producers.get(value)

    def made_by(self, value: ir.Value | None, kind: type[ir.Op]) -> ir.Node | None:
        """Returns the node that gives a value if its op is of a kind."""
        node = self.producer(value)
        return node if node is not None and isinstance(node.op, kind) else None

    def used_once(self, value: ir.Value) -> bool:
        """Returns whether only one node or output reads a value."""
        return self._users[value] <= 1

    def rounded(self, value: ir.Value) -> bool:
        """Returns whether a value is rounded to integers: nearly the same may give others."""
        return value in self._rounded

    def replaced(self, old: ir.Value, new: ir.Value) -> None:
        """Notes that the users of a value read another one from now on."""
        if old in self._rounded:
            self._rounded.add(new)
        self._users[new] += self._users[old] - (1 if self._users[new] else 0)

    def emit_at(
        self, node: ir.Node, op: ir.Op, inputs: Sequence[ir.Value | None], like: ir.Value
    ) -> ir.Value:
        """Emits a node in the layer of another, with the type and shape of a value."""
        before = self.build.layer
        self.build.layer = node.layer
        try:
            return self.build.emit(op, inputs, like.shape, like.dtype)
        finally:
            self.build.layer = before

    def _notice(self) -> None:
        for node in self.build.nodes[self._seen :]:
            for value in node.outputs:
                self._producers[value] = node
        self._seen = len(self.build.nodes)


Rule: TypeAlias = Callable[[Match, ir.Node], ir.Value | Sequence[ir.Value] | None]
Rules: TypeAlias = Mapping[type, Sequence[Rule]]


def merged(*tables: Rules) -> Rules:
    """Returns the rules of several tables by op."""
    result: dict[type, list[Rule]] = {}
    for table in tables:
        for kind, rules in table.items():
            result.setdefault(kind, []).extend(rules)
    return result


def rewrite(graph: ir.Graph, rules: Rules) -> ir.Graph:
    """Applies rules until none fires.

    Raises:
        RuntimeError: The rules undo each other.
    """
    for _ in range(_MOST_SWEEPS):
        graph, fired = _sweep(graph, rules)
        graph = without_dead_nodes(graph)
        if not fired:
            return graph
    raise RuntimeError("rules undo each other")


def _sweep(graph: ir.Graph, rules: Rules) -> tuple[ir.Graph, bool]:
    match = Match(graph)
    new: dict[ir.Value, ir.Value] = {}
    fired = False
    for node in graph.nodes:
        inputs = tuple(None if v is None else new.get(v, v) for v in node.inputs)
        if inputs != node.inputs:
            node = replace(node, inputs=inputs)
        match.build.layer = node.layer
        results = _apply(match, node, rules)
        if results is None:
            match.build.nodes.append(node)
            continue
        fired = True
        for old, value in zip(node.outputs, results, strict=True):
            new[old] = value
            match.replaced(old, value)
    outputs = tuple(replace(p, value=new.get(p.value, p.value)) for p in graph.outputs)
    return replace(graph, nodes=tuple(match.build.nodes), outputs=outputs), fired


def _apply(match: Match, node: ir.Node, rules: Rules) -> Sequence[ir.Value] | None:
    for rule in rules.get(type(node.op), ()):
        try:
            results = rule(match, node)
        except OpenSizeError:  # Whether it applies, a call decides.
            continue
        if results is not None:
            return (results,) if isinstance(results, ir.Value) else results
    return None


def without_dead_nodes(graph: ir.Graph) -> ir.Graph:
    """Removes nodes whose results nobody needs."""
    needed = {port.value for port in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.outputs):
            kept.append(node)
            needed.update(node.present)
    return replace(graph, nodes=tuple(reversed(kept)))


class _Constants:
    """Constants by their elements; a large one is read whole if another one looks like it."""

    def __init__(self) -> None:
        self._alike: dict[tuple[object, ...], ir.Value] = {}
        self._equal: dict[tuple[object, ...], ir.Value] = {}

    def first(self, value: ir.Value) -> ir.Value:
        """Returns the first constant with the elements of this one, maybe itself."""
        assert value.data is not None
        data = value.data
        kind = (value.dtype.value, value.shape)
        if data.nbytes <= _SMALL or data.dtype.hasobject:
            return self._equal.setdefault((*kind, data.tobytes()), value)
        some = data.flat[:: data.size // _SOME].tobytes()
        alike = self._alike.setdefault((*kind, some), value)
        if alike is value:
            return value
        assert alike.data is not None
        self._equal.setdefault((*kind, _digest(alike.data)), alike)
        return self._equal.setdefault((*kind, _digest(data)), value)


def _digest(data: ir.Array) -> bytes:
    """Returns a hash of an array's bytes, row by row."""
    return hashlib.sha256(np.ascontiguousarray(data).view(np.uint8).data).digest()


def without_twins(graph: ir.Graph) -> ir.Graph:
    """Computes once what several nodes compute, and keeps one of equal constants."""
    constants = _Constants()
    known: dict[tuple[object, ...], ir.Node] = {}
    new: dict[ir.Value, ir.Value] = {}

    def canonical(value: ir.Value | None) -> ir.Value | None:
        if value is None:
            return None
        if value.data is not None and value not in new:
            new[value] = constants.first(value)
        return new.get(value, value)

    nodes = []
    for node in graph.nodes:
        inputs = tuple(canonical(v) for v in node.inputs)
        results = tuple((v.dtype, v.shape) for v in node.outputs)
        first = known.setdefault((node.op, inputs, results), node)
        if first is not node:
            new.update(zip(node.outputs, first.outputs, strict=True))
        else:
            nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
    outputs = tuple(replace(p, value=canonical(p.value) or p.value) for p in graph.outputs)
    return replace(graph, nodes=tuple(nodes), outputs=outputs)
