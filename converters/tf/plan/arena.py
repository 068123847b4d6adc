"""The memory plan: a place in one arena for every tensor of a graph, and what each op costs.

Places are for one example; a call with a batch multiplies them, so that places that are apart stay
apart. A tensor without a batch axis has a place too and uses the front of it. A `Reshape` moves
nothing: both its ends share a place, and so do those of a `Slice` of columns whose readers find
them in the rows of the whole. The results and the scratch memory of one op lie side by side:
an op writes one piece of the arena and reads around it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from converters.tf import ir
from converters.tf.ir.bounds import most_of
from converters.tf.ir.expressions import size_at, unknown
from converters.tf.ir.fixed import counted_dims, open_dims
from converters.tf.ir.ops.packing import DIRECT_ROWS
from converters.tf.ir.sizes import elements, has_open, is_fixed, numbers
from converters.tf.ir.values import shape_at
from converters.tf.passes.chains import with_chains
from converters.tf.passes.parallel import read_by_attention, with_joined_products
from converters.tf.passes.scaled import with_scaled_products

ALIGN = 64


@dataclass(frozen=True)
class Place:
    """Where a tensor lies.

    Attributes:
        at: First byte for one example, a multiple of 64.
        elements: Elements of one example, or of the tensor if it is fixed.
        fixed: Whether the tensor has no batch axis.
        dtype: Type of an element.
    """

    at: int
    elements: int
    fixed: bool
    dtype: ir.DType

    @property
    def end(self) -> int:
        """Returns the first byte after the tensor and its padding."""
        return self.at + _padded(self.elements * self.dtype.bytes)


@dataclass(frozen=True)
class Step:
    """What the plan says about one node.

    Attributes:
        node: The node.
        scratch: Its scratch memory, after its last output; of size 0 if it needs none.
        onto: Index of the operand whose place the output takes, or `None`.
        macs: Multiplications with addition for one example.
        weight_bytes: Bytes of constants that it reads.
        body: The steps of a loop's turn.
    """

    node: ir.Node
    scratch: Place
    onto: int | None
    macs: int
    weight_bytes: int
    body: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The memory plan of a graph.

    Attributes:
        graph: The graph.
        steps: Its nodes that compute something, in their order.
        places: The place of every value that a step writes, and of those that share it.
        roots: The value whose elements a reshaped value has: a result, an input or a constant.
        columns: Of a value that is columns of its root, the first and how many a row has.
        arena_bytes: Bytes of the arena for one example; 0 where dimensions are open.
        regions: Where dimensions are open, the regions of the arena in their order: each is as
            large as the largest of these sizes in bytes, and its first byte is `region(index)`.
    """

    graph: ir.Graph
    steps: tuple[Step, ...]
    places: Mapping[ir.Value, Place]
    roots: Mapping[ir.Value, ir.Value]
    columns: Mapping[ir.Value, tuple[int, int]]
    arena_bytes: int
    regions: tuple[tuple[int, ...], ...] = ()

    def root(self, value: ir.Value) -> ir.Value:
        """Returns the value that holds the elements of `value`."""
        return self.roots.get(value, value)

    @property
    def macs(self) -> int:
        """Returns the multiplications with addition for one example."""
        return sum(step.macs for step in self.steps)


@dataclass
class _Part:
    """A piece of a block: `size` bytes at `offset`, needed from step `first` to step `last`."""

    offset: int
    size: int
    first: int
    last: int


@dataclass
class _Block:
    """What one step allocates, as one piece of the arena."""

    parts: list[_Part] = field(default_factory=list)
    at: int = -1

    @property
    def size(self) -> int:
        return self.parts[-1].offset + self.parts[-1].size if self.parts else 0

    @property
    def span(self) -> tuple[int, int]:
        """Returns the first and the last step that need a part of it."""
        return min(p.first for p in self.parts), max(p.last for p in self.parts)


def plan_memory(
    graph: ir.Graph,
    inplace: bool = True,
    memdrop: bool = True,
    packed: bool = True,
    single: bool = False,
) -> Plan:
    """Plans the memory of a graph.

    Args:
        graph: The graph.
        inplace: Whether elementwise ops may write over their operand.
        memdrop: Whether a place is free again after its last use; else every tensor has its own.
        packed: Whether matrices of weights are packed beforehand, or in scratch memory each time.
        single: Whether calls have one example.

    Returns:
        The plan of a graph that computes the same; its nodes may be others.
    """
    graph = with_joined_products(graph)
    if packed:
        graph = with_chains(with_scaled_products(graph))
    planner = _Planner(graph, inplace, memdrop, packed, packed or single)
    return planner.plan()


def problems(graph: ir.Graph) -> list[tuple[str, str]]:
    """Returns the layer and the reason for every tensor that has no place in the plan."""
    found = []
    for node in graph.nodes:
        if any(isinstance(inner.op, ir.Chosen) for inner in node.op.inner()):
            found.append((node.layer, "the size of a result of each turn depends on its values"))
    for node in graph.all_nodes():
        for value in node.outputs:
            if sum(isinstance(d, ir.Batch) for d in value.shape) > 1:
                shape = ir.shape_text(value.shape)
                found.append((node.layer, f"{shape} grows with the square of the batch size"))
    return found


def _padded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


@dataclass(frozen=True)
class _Event:
    """A moment of the computation: a node, or the end of a turn of a loop."""

    node: ir.Node
    ends: bool = False

    @property
    def reads(self) -> tuple[ir.Value, ...]:
        """Returns what is read; the end of a turn reads all that the loop carries, before too."""
        if not self.ends:
            return self.node.present
        body = _body(self.node)
        return tuple(p.value for p in (*body.outputs, *body.inputs[1:]))

    @property
    def writes(self) -> tuple[ir.Value, ...]:
        """Returns what is written; a loop writes what its body reads, and has its results there."""
        if self.ends:
            return ()
        if isinstance(self.node.op, ir.Loop):
            return tuple(p.value for p in _body(self.node).inputs)
        return self.node.outputs


def _kept(body: ir.Graph) -> Iterator[ir.Node]:
    """Yields what writes a slice of a carried value that nothing else in the body reads."""
    carried = dict(zip((p.value for p in body.outputs), body.inputs[1:], strict=True))
    read = [v for node in body.all_nodes() for v in node.present]
    read += [port.value for port in body.outputs]
    for node in body.nodes:
        if isinstance(node.op, ir.Update) and node.output in carried:
            x = carried[node.output].value
            if node.input is x and read.count(x) == 1 == read.count(node.output):
                yield node


def _body(node: ir.Node) -> ir.Graph:
    assert isinstance(node.op, ir.Loop)
    return node.op.body


class _Planner:
    def __init__(
        self, graph: ir.Graph, inplace: bool, memdrop: bool, packed: bool, alike: bool
    ) -> None:
        self.graph = graph
        self.inplace = inplace
        self.memdrop = memdrop
        self.packed = packed
        # Whether each example needs as much scratch memory as one alone.
        self.alike = alike
        self.roots: dict[ir.Value, ir.Value] = {}
        self.columns: dict[ir.Value, tuple[int, int]] = {}
        self.kept: set[ir.Node] = set()
        self.read_by_columns = read_by_attention(graph)
        self.events = list(self._events(graph))
        self.last: dict[ir.Value, int] = {}
        self.read: set[ir.Value] = set()
        for index, event in enumerate(self.events):
            for value in event.reads:
                self.last[self.root(value)] = index
                self.read.add(self.root(value))
        for node in graph.nodes:
            if isinstance(node.op, ir.WRITING):
                # It is written when the outputs are handed over.
                self.last |= {self.root(v): len(self.events) for v in node.present}
        for port in graph.outputs:
            self.last[self.root(port.value)] = len(self.events)
            self.read.add(self.root(port.value))
        self.homes: dict[ir.Value, tuple[_Block, _Part]] = {}
        self.blocks: list[_Block] = []

    def root(self, value: ir.Value) -> ir.Value:
        return self.roots.get(value, value)

    def _shares(self, node: ir.Node) -> bool:
        """Returns whether the result lies in the operand; notes in which columns."""
        op, out = node.op, node.outputs[0]
        if isinstance(op, ir.Reshape):
            if node.input in self.columns:
                self.columns[out] = self.columns[node.input]
            return True
        if not isinstance(op, ir.Slice) or out not in self.read_by_columns:
            return False
        (*others, first), last = op.begin, node.input.shape[-1]
        whole = node.input.shape[:-1] == out.shape[:-1] and not any(others)
        if not whole or set(op.strides) != {1} or not isinstance(last, int):
            return False
        self.columns[out] = (first, last)
        return True

    def _events(self, graph: ir.Graph) -> Iterator[_Event]:
        """Yields the moments in their order, and notes which values share a place."""
        for node in graph.nodes:
            if self._shares(node):
                self.roots[node.output] = self.root(node.input)
                continue
            yield _Event(node)
            if isinstance(node.op, ir.Loop):
                carried = node.op.body.inputs[1:]
                self.roots |= {v: port.value for v, port in zip(node.outputs, carried, strict=True)}
                for update in _kept(node.op.body) if self.inplace else ():
                    self.kept.add(update)
                    self.roots[update.output] = update.input
                yield from self._events(node.op.body)
                yield _Event(node, ends=True)

    def plan(self) -> Plan:
        scratches: dict[ir.Node, tuple[_Block, _Part] | None] = {}
        ontos: dict[ir.Node, int | None] = {}
        for index, event in enumerate(self.events):
            if event.ends:
                continue
            node = event.node
            ontos[node] = self._onto(node, index) if self.inplace else None
            if node in self.kept:
                ontos[node] = 0
            scratches[node] = self._allocate(event, index, ontos[node])
        regions: tuple[tuple[int, ...], ...] = ()
        if open_dims(self.graph) or counted_dims(self.graph):
            regions = _regions(self.blocks)
        else:
            _pack(self.blocks)
        places = {v: self._place(v) for event in self.events for v in event.writes}
        for value, root in self.roots.items():
            if root in places:
                places[value] = places[root]

        def steps(graph: ir.Graph) -> Iterator[Step]:
            for node in graph.nodes:
                if self._shares(node):
                    continue
                found = scratches[node]
                if found is None:
                    place = Place(places[node.outputs[-1]].end, 0, False, ir.DType.F32)
                else:
                    block, part = found
                    place = Place(block.at + part.offset, part.size // 4, False, ir.DType.F32)
                inner = tuple(steps(node.op.body)) if isinstance(node.op, ir.Loop) else ()
                constants = {v for v in node.present if v.data is not None}
                size = sum(v.data.nbytes for v in constants if v.data is not None)
                size += sum(step.weight_bytes for step in inner)
                # One turn is counted of a loop that the inputs end.
                turns = 1
                if isinstance(node.op, ir.Loop) and node.op.going is None:
                    (turns,) = numbers((node.op.trips,))
                cost = node.op.macs(node) + turns * sum(step.macs for step in inner)
                yield Step(node, place, ontos[node], cost, size, inner)

        size = 0 if regions else max((b.at + b.size for b in self.blocks), default=0)
        done = tuple(steps(self.graph))
        return Plan(self.graph, done, places, self.roots, self.columns, size, regions)

    def _place(self, value: ir.Value) -> Place:
        block, part = self.homes[value]
        count = elements(value.shape) if part.size != 0 else 0
        return Place(block.at + part.offset, count, is_fixed(value.shape), value.dtype)

    def _end(self, value: ir.Value, index: int) -> int:
        return self.last.get(value, index) if self.memdrop else len(self.events)

    def _allocate(self, event: _Event, index: int, onto: int | None) -> tuple[_Block, _Part] | None:
        node = event.node
        if onto is not None:
            operand = node.operand(onto)
            assert operand is not None
            block, part = self.homes[self.root(operand)]
            part.last = max(part.last, self._end(node.output, index))
            self.homes[node.output] = (block, part)
            return None
        block = _Block()
        offset = 0
        for place, value in enumerate(event.writes):
            unread = value not in self.read and place == 0 and len(event.writes) > 1
            unread = unread and not node.op.writes_all
            unread = unread or value.dtype is ir.DType.STR
            size = 0 if unread else _padded(most_of(elements(value.shape)) * value.dtype.bytes)
            part = _Part(offset, size, index, self._end(value, index))
            block.parts.append(part)
            self.homes[value] = (block, part)
            offset += size
        self.blocks.append(block)
        size = _padded(4 * most_of(self._scratch(node)))
        if size == 0:
            return None
        part = _Part(offset, size, index, index)
        block.parts.append(part)
        return block, part

    def _scratch(self, node: ir.Node) -> int:
        """Returns the elements of scratch memory for each example of any number of them."""
        one = node.op.scratch(node, self.packed)
        shapes = [value.shape for value in (*node.present, *node.outputs)]
        if self.alike or any(map(has_open, shapes)):
            return one
        # Few rows are multiplied without scratch memory; from so many examples on none are few.
        some = range(2, DIRECT_ROWS + 2)
        return max(one, *(-(-node.op.scratch(_of(node, n), self.packed) // n) for n in some))

    def _onto(self, node: ir.Node, index: int) -> int | None:
        """Returns the operand that may be overwritten, because nobody reads it afterwards."""
        out = node.outputs[0]
        if self._scratch(node) != 0:
            return None
        for operand in node.op.overwritten(node):
            value = node.operand(operand)
            if value is None or value.dtype != out.dtype:
                continue
            root = self.root(value)
            if root not in self.homes or self.last.get(root) != index:
                continue
            others = [v for i, v in enumerate(node.inputs) if v is not None and i != operand]
            if any(self.root(v) is root for v in others):
                continue
            if elements(value.shape) == elements(out.shape) and _same_batch(value, out):
                return operand
        return None


def _of(node: ir.Node, examples: int) -> ir.Node:
    """Returns a node whose operands and results have so many examples."""

    def fixed(value: ir.Value) -> ir.Value:
        return (
            value
            if is_fixed(value.shape)
            else replace(value, shape=shape_at(value.shape, examples))
        )

    inputs = tuple(value and fixed(value) for value in node.inputs)
    return replace(node, inputs=inputs, outputs=tuple(map(fixed, node.outputs)))


def _same_batch(a: ir.Value, b: ir.Value) -> bool:
    return is_fixed(a.shape) == is_fixed(b.shape)


def region(index: int) -> int:
    """Returns the first byte of a region for one example, which a call computes."""
    return unknown(f"region_{index}")


# How large the blocks of a plan are that a call computes is compared for this open size.
_TYPICAL = 128


def _typical(size: int) -> int:
    return size_at(size, defaultdict(lambda: _TYPICAL))


def _regions(blocks: list[_Block]) -> tuple[tuple[int, ...], ...]:
    """Gives every block a region that no other has at the same time, the large ones first."""
    spans: list[list[tuple[int, int]]] = []
    sizes: list[dict[int, None]] = []
    for block in sorted(blocks, key=lambda b: (-_typical(b.size), b.parts[0].first)):
        if block.size == 0:
            block.at = 0
            continue
        places = (_free_place(taken, *block.span) for taken in spans)
        index, place = next(((i, p) for i, p in enumerate(places) if p >= 0), (len(spans), 0))
        if index == len(spans):
            spans.append([])
            sizes.append({})
        spans[index].insert(place, block.span)
        sizes[index][block.size] = None
        block.at = region(index)
    return tuple(map(tuple, sizes))


def _free_place(taken: list[tuple[int, int]], first: int, last: int) -> int:
    """Returns where a span goes among spans in order, or -1 if one of them meets it."""
    place = bisect_left(taken, (first, first))
    before = place == 0 or taken[place - 1][1] < first
    after = place == len(taken) or last < taken[place][0]
    return place if before and after else -1


def _pack(blocks: list[_Block]) -> None:
    """Gives every block a place, the large ones first."""
    # Of what has a place: from and to in bytes, the first and the last step.
    large = sum(block.size for block in blocks) > np.iinfo(np.int64).max
    count = sum(len(block.parts) for block in blocks)
    placed = np.zeros((4, count), object if large else np.int64)
    count = 0
    for block in sorted(blocks, key=lambda b: (-b.size, b.parts[0].first)):
        taken: list[tuple[int, int]] = []
        for part in block.parts:
            if part.size == 0:
                continue
            lows, highs, firsts, lasts = placed[:, :count]
            meets = (firsts <= part.last) & (part.first <= lasts)
            begins, ends = lows[meets] - part.offset - part.size, highs[meets] - part.offset
            taken += zip(begins.tolist(), ends.tolist(), strict=True)
        at = 0
        for low, high in sorted(taken):
            if low < at < high:
                at = high
        block.at = at
        for part in block.parts:
            if part.size:
                low = block.at + part.offset
                placed[:, count] = low, low + part.size, part.first, part.last
                count += 1
