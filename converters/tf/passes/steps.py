"""Steps of a sequence that do the same without knowing of each other: one step for all of them.

`TimeDistributed` is traced as a copy of its layer for every step. The steps become examples of a
larger batch: ops work example by example, so that nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from converters.tf import ir
from converters.tf.ir.sizes import elements
from converters.tf.passes.rewrite import Match, rewrite

# Bytes that all steps of an example may have together. Of more, each op would find nothing of what
# the one before it wrote in the second cache, where the largest of a single step still is.
_NEAR_BYTES = 2 << 20
# Ops that work row by row, also where the number of examples is fixed and could be any other axis.
_ROWS = (ir.Conv, ir.Dense, ir.GroupNorm, ir.Norm, ir.Pool, ir.ScaleShift, ir.Unary)


def with_joined_steps(graph: ir.Graph) -> ir.Graph:
    """Returns a graph in which equal steps along the axis beside the batch are one."""
    return rewrite(graph, {ir.Concat: [_joined]})


def _joined(m: Match, node: ir.Node) -> ir.Value | None:
    """Computes results of steps that are stacked; each is the results' part of its own step."""
    assert isinstance(node.op, ir.Concat)
    axis, parts = node.op.axis, node.present
    like = parts[0].shape
    if axis > 1 or len(parts) < 2 or like[axis] != 1 or {p.shape for p in parts} != {like}:
        return None
    made = [m.made_by(part, ir.Reshape) for part in parts]
    results = tuple(p if n is None else n.input for p, n in zip(parts, made, strict=True))
    examples, *rest = _without(like, axis) or (1,)
    steps = _Steps(m, len(parts), examples)
    if not steps.fits(results):
        return None
    apart = m.build.reshape(steps.emit(results), (examples, len(parts), *rest))
    return apart if axis == 1 else m.build.transpose(apart, _swapped(apart))


def _without(shape: ir.Shape, axis: int) -> ir.Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _swapped(x: ir.Value) -> tuple[int, ...]:
    return (1, 0, *range(2, x.rank))


@dataclass
class _Steps:
    """Values of all steps side by side, and what stands for them.

    Attributes:
        match: The graph.
        count: Number of steps.
        examples: Examples of a step.
    """

    match: Match
    count: int
    examples: ir.Dim
    _fitting: set[tuple[ir.Value | None, ...]] = field(default_factory=set)
    _joined: dict[tuple[ir.Value | None, ...], ir.Value] = field(default_factory=dict)
    _entered: bool = False

    def fits(self, results: tuple[ir.Value | None, ...]) -> bool:
        """Returns whether all steps do the same, each with its own part of one sequence."""
        return self._all_fit(results) and self._entered

    def _all_fit(self, results: tuple[ir.Value | None, ...]) -> bool:
        waiting = [results]
        while waiting:
            values = waiting.pop()
            if values in self._fitting:
                continue
            self._fitting.add(values)
            first = values[0]
            if all(v is first for v in values):
                if first is not None and not first.is_constant:
                    return False
                continue
            if self._entry(values) is not None:
                self._entered = True
                continue
            nodes = self._nodes(values)
            if nodes is None or not self._by_example(nodes[0]) or self._is_far(nodes[0]):
                return False
            operands = [n.inputs for n in nodes]
            waiting.extend(zip(*operands, strict=True))
        return True

    def _nodes(self, values: tuple[ir.Value | None, ...]) -> list[ir.Node] | None:
        """Returns the nodes that give these values if they do the same."""
        nodes = [self.match.producer(v) for v in values]
        first = nodes[0]
        if first is None or isinstance(first.op, ir.Loop):
            return None
        place = first.outputs.index(values[0]) if values[0] in first.outputs else 0
        like = [(v.dtype, v.shape) for v in first.outputs]
        found = []
        for value, node in zip(values, nodes, strict=True):
            same = node is not None and node.op == first.op and node.outputs[place] is value
            if node is None or not same or len(node.inputs) != len(first.inputs):
                return None
            if [(v.dtype, v.shape) for v in node.outputs] != like:
                return None
            found.append(node)
        return found

    def _is_far(self, node: ir.Node) -> bool:
        """Returns whether what all steps write here is more than the second cache holds."""
        sizes = (elements(v.shape) * v.dtype.bytes for v in node.outputs)
        return self.count * max(sizes) > _NEAR_BYTES

    def _by_example(self, node: ir.Node) -> bool:
        """Returns whether a node computes every example by itself."""
        if isinstance(self.examples, ir.Batch):
            return True
        varying = [v for v in node.present if not v.is_constant]
        if any(not v.rank or v.shape[0] != self.examples for v in (*varying, *node.outputs)):
            return False
        if isinstance(node.op, ir.Binary):
            rank = node.output.rank
            return all(v.rank < rank or v.shape[0] == 1 for v in node.present if v.is_constant)
        return isinstance(node.op, _ROWS)

    def _entry(self, values: tuple[ir.Value | None, ...]) -> tuple[ir.Value, int] | None:
        """Returns the sequence of which step `i` reads part `i`, and its axis of steps."""
        found: set[tuple[ir.Value, int]] = set()
        for step, value in enumerate(values):
            reshaped = self.match.made_by(value, ir.Reshape)
            part = self.match.made_by(reshaped.input if reshaped else value, ir.Slice)
            if part is None:
                return None
            assert isinstance(part.op, ir.Slice)
            begin, shape = part.op.begin, part.input.shape
            axis = next((i for i, d in enumerate(part.output.shape) if d != shape[i]), -1)
            expected = tuple(step if i == axis else 0 for i in range(len(shape)))
            if begin != expected or set(part.op.strides) != {1} or part.output.shape[axis] != 1:
                return None
            found.add((part.input, axis))
        (sequence, axis), *others = found
        fits = axis in (0, 1) and sequence.shape[axis] == self.count
        if others or not fits or _without(sequence.shape, axis)[:1] != (self.examples,):
            return None
        return sequence, axis

    def emit(self, values: tuple[ir.Value | None, ...]) -> ir.Value:
        """Emits what gives the values of all steps: as examples, one step of each after another."""
        if values in self._joined:
            return self._joined[values]
        build, first = self.match.build, values[0]
        entry = self._entry(values)
        if entry is not None and first is not None:
            sequence, axis = entry
            by_example = sequence if axis else build.transpose(sequence, _swapped(sequence))
            value = build.reshape(by_example, self._shape(first.shape))
            self._joined[values] = value
            return value
        nodes = self._nodes(values)
        if nodes is None:
            raise ValueError("steps that do not fit")
        operands: list[ir.Value | None] = []
        for several in zip(*(n.inputs for n in nodes), strict=True):
            same = all(v is several[0] for v in several)
            operands.append(several[0] if same else self.emit(several))
        layer, build.layer = build.layer, nodes[0].layer
        shapes = [(v.dtype, self._shape(v.shape)) for v in nodes[0].outputs]
        results = build.emit_many(nodes[0].op, operands, shapes)
        build.layer = layer
        for place, result in enumerate(results):
            self._joined[tuple(n.outputs[place] for n in nodes)] = result
        return self._joined[values]

    def _shape(self, shape: ir.Shape) -> ir.Shape:
        if isinstance(self.examples, int):
            place = shape.index(self.examples)
            return (*shape[:place], self.examples * self.count, *shape[place + 1 :])
        return tuple(
            replace(d, scale=d.scale * self.count) if isinstance(d, ir.Batch) else d for d in shape
        )
