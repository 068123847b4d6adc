"""Writes out loops that are not a recurrent layer: the iterations one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from converters.tf import ir
from converters.tf.ir.build import Builder, static
from converters.tf.ir.expressions import is_open

# Nodes that a loop may become; above, it stays a loop.
_MOST_NODES = 3000


@dataclass(frozen=True)
class _List:
    """A stacked tensor of which some slices are known by themselves."""

    base: ir.Value
    parts: Mapping[int, ir.Value]


class _Unroller:
    """The values of a body's names in the turn at hand."""

    def __init__(self, build: Builder) -> None:
        self.build = build
        self.now: dict[ir.Value, ir.Value | _List] = {}

    def whole(self, value: ir.Value) -> ir.Value:
        """Returns a value as one tensor."""
        found = self.now.get(value, value)
        return self.joined(found) if isinstance(found, _List) else found

    def joined(self, parts: _List) -> ir.Value:
        """Returns a list as one tensor."""
        length = parts.base.shape[0]
        assert isinstance(length, int)
        rows = [
            self.build.reshape(parts.parts[i], (1, *parts.base.shape[1:]))
            if i in parts.parts
            else self.build.part(parts.base, 0, i, 1)
            for i in range(length)
        ]
        return self.build.concat(rows, 0)

    def run(self, node: ir.Node) -> None:
        """Adds a node of the body."""
        self.build.layer = node.layer
        if isinstance(node.op, ir.Update) and self._update(node):
            return
        if isinstance(node.op, ir.Gather) and self._read(node):
            return
        operands = [None if v is None else self.whole(v) for v in node.inputs]
        results = self.build.emit_many(
            node.op, operands, [(v.dtype, v.shape) for v in node.outputs]
        )
        self.now.update(zip(node.outputs, results, strict=True))

    def _update(self, node: ir.Node) -> bool:
        target, index, item = node.present
        place = self.whole(index).data
        if place is None:
            return False
        found = self.now.get(target, target)
        known = found if isinstance(found, _List) else _List(found, {})
        parts = {**known.parts, int(place): self.whole(item)}
        self.now[node.output] = _List(known.base, parts)
        return True

    def _read(self, node: ir.Node) -> bool:
        source, index = node.present
        place = self.whole(index).data
        op = node.op
        if not isinstance(op, ir.Gather) or op.batch_dims or place is None or place.ndim:
            return False
        at = int(place)
        size = source.shape[op.axis]
        if op.wrap and at < 0 and isinstance(size, int):
            at += size
        found = self.now.get(source, source)
        if isinstance(found, _List):
            if op.axis == 0 and at in found.parts:
                self.now[node.output] = found.parts[at]
                return True
            found = found.base if op.axis == 0 else self.joined(found)
        if not isinstance(size, int) or not 0 <= at < size:
            return False  # An error of the call, not of the conversion.
        row = self.build.part(found, op.axis, at, 1)
        self.now[node.output] = self.build.reshape(row, node.output.shape)
        return True


def without_loops(graph: ir.Graph) -> ir.Graph:
    """Writes out every loop that does not become too long."""
    build = Builder()
    new: dict[ir.Value, ir.Value] = {}
    for node in graph.nodes:
        node = replace(
            node, inputs=tuple(None if v is None else new.get(v, v) for v in node.inputs)
        )
        if not isinstance(node.op, ir.Loop) or not _short(node.op):
            build.nodes.append(node)
            continue
        build.layer = node.layer
        results = _turns(build, node.op, node.present)
        new.update(zip(node.outputs, results, strict=True))
    outputs = tuple(replace(p, value=new.get(p.value, p.value)) for p in graph.outputs)
    return replace(graph, nodes=tuple(build.nodes), outputs=outputs)


def _short(loop: ir.Loop) -> bool:
    inner = any(isinstance(n.op, ir.Loop) for n in loop.body.nodes)
    if inner or loop.going is not None or isinstance(loop.trips, ir.Batch):
        return False
    if is_open(loop.trips):
        return False
    return loop.trips * len(loop.body.nodes) <= _MOST_NODES


def _turns(build: Builder, loop: ir.Loop, starts: tuple[ir.Value, ...]) -> list[ir.Value]:
    carried: list[ir.Value | _List] = list(starts)
    unroller = _Unroller(build)
    for turn in range(static(loop.trips, "the number of turns")):
        unroller.now = {loop.body.inputs[0].value: build.scalar(turn, ir.DType.I32)}
        for port, value in zip(loop.body.inputs[1:], carried, strict=True):
            unroller.now[port.value] = value
        for node in loop.body.nodes:
            unroller.run(node)
        carried = [unroller.now.get(p.value, p.value) for p in loop.body.outputs]
    return [unroller.joined(c) if isinstance(c, _List) else c for c in carried]
