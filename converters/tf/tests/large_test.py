"""Parts of the conversion whose short cuts are for graphs of thousands of nodes; no TensorFlow."""

from __future__ import annotations

import io
import itertools
import random
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from converters.tf import ir
from converters.tf.emit.blocks import Blocks
from converters.tf.emit.context import Field
from converters.tf.emit.npz import npz_bytes
from converters.tf.emit.statements import Code, Kind, Name, code
from converters.tf.emit.weights import lay_out
from converters.tf.ir import Batch, BinaryKind, Fn
from converters.tf.ir.build import Builder
from converters.tf.ir.expressions import unknown
from converters.tf.passes.patterns import is_number, number
from converters.tf.passes.rewrite import without_twins
from converters.tf.plan.arena import Plan, plan_memory


def _branches(length: ir.Dim, count: int) -> Plan:
    """Returns the plan of functions of one input that are added at the end, in reverse."""
    x, build = ir.Value(ir.DType.F32, (Batch(), length), None, "x"), Builder()
    parts = [build.unary(Fn.SIN if i % 2 else Fn.COS, x) for i in range(count)]
    total = parts.pop()
    while parts:
        total = build.binary(BinaryKind.ADD, total, parts.pop())
    ports = (ir.Port("x", x),), (ir.Port("y", total),)
    return plan_memory(ir.Graph("g", *ports, tuple(build.nodes)), inplace=False)


def _spans(plan: Plan) -> dict[ir.Value, tuple[int, int]]:
    """Returns the first and the last step that needs each result."""
    spans: dict[ir.Value, tuple[int, int]] = {}
    for index, step in enumerate(plan.steps):
        for value in (*step.node.outputs, *step.node.present):
            if value in plan.places:
                spans[value] = spans.get(value, (index, index))[0], index
    return spans


@pytest.mark.parametrize("length", [24, 1 << 60])
def test_results_that_are_needed_together_lie_apart(length: int) -> None:
    """Also those whose bytes no integer of 64 bits counts."""
    plan = _branches(length, 9)
    spans = _spans(plan)
    assert plan.arena_bytes >= 9 * 4 * length
    for (a, first), (b, second) in itertools.combinations(spans.items(), 2):
        if first[0] <= second[1] and second[0] <= first[1]:
            mine, other = plan.places[a], plan.places[b]
            assert mine.end <= other.at or other.end <= mine.at


def test_open_results_that_are_needed_together_have_regions_of_their_own() -> None:
    plan = _branches(unknown("n"), 9)
    spans = _spans(plan)
    assert len(plan.regions) == 10
    for (a, first), (b, second) in itertools.combinations(spans.items(), 2):
        if first[0] <= second[1] and second[0] <= first[1]:
            assert plan.places[a].at != plan.places[b].at


@pytest.mark.parametrize(
    ("numbers", "same"),
    [
        ([2.0, 2.0, 2.0], 2.0),
        ([2.0, 3.0, 2.0], None),
        ([2.0, 2.0, 3.0], None),
        ([np.nan, np.nan], None),
        ([-0.0, 0.0], 0.0),
        ([], None),
    ],
)
def test_a_constant_is_a_number_if_all_elements_are(
    numbers: list[float], same: float | None
) -> None:
    value = ir.constant(np.asarray(numbers, np.float32))
    assert number(value) == same
    assert is_number(value, 2.0) == (same == 2.0)


def _statements(seed: int) -> tuple[list[Code], list[Field]]:
    """Returns layers in groups that repeat, now and then with another one between them."""
    choose = random.Random(seed)
    lines: list[Code] = []
    fields: list[Field] = []
    kinds = [choose.choice(["dense", "conv"]) for _ in range(choose.randrange(2, 5))]
    for turn in range(choose.randrange(2, 9)):
        for place, kind in enumerate(kinds):
            if choose.random() < 0.05:
                lines.append(code("other({});", Name(Kind.SLOT, "S0", "f32")))
            field = Field(f"stage{turn}_{kind}{place}", "Layer", "layer", "a: b", code("x"), 0)
            fields.append(field)
            slots = (f"S{len(lines) % 3}", f"S{(len(lines) + 1) % 3}")
            names = [Name(Kind.FIELD, field.name, field.type)]
            names += [Name(Kind.SLOT, slot, "f32") for slot in slots]
            lines.append(code(f"{kind}({{}}, {{}}, {{}});", *names))
    return lines, fields


def _renamed(lines: Sequence[Code]) -> list[object]:
    """Returns statements with numbers in place of names, by the order in which these come."""
    numbers: dict[Name, int] = {}
    return [
        piece if isinstance(piece, str) else numbers.setdefault(piece, len(numbers))
        for line in lines
        for piece in line.pieces
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_uses_of_a_block_differ_in_names_alone(seed: int) -> None:
    lines, fields = _statements(seed)
    taken: set[int] = set()
    for block in Blocks(lines, fields, []).find():
        length = len(block.lines)
        runs = [lines[use.start : use.start + length] for use in block.uses]
        assert len(runs) > 1
        assert all(_renamed(run) == _renamed(runs[0]) for run in runs)
        places = {use.start + i for use in block.uses for i in range(length)}
        assert len(places) == len(runs) * length
        assert taken.isdisjoint(places)
        taken |= places


def test_layers_that_repeat_become_a_block() -> None:
    found = [Blocks(*_statements(seed), []).find() for seed in range(40)]
    assert sum(map(bool, found)) > 20


def _wide(*tables: ir.Array) -> ir.Graph:
    """Returns products with constant tables of one size, one after the other."""
    x, build = ir.Value(ir.DType.F32, (Batch(), len(tables[0])), None, "x"), Builder()
    total = x
    for table in tables:
        total = build.emit(ir.Dense(), [total, ir.constant(table)])
    return ir.Graph("wide", (ir.Port("x", x),), (ir.Port("y", total),), tuple(build.nodes))


def _grown(compute: Callable[[], object]) -> int:
    """Returns by how many bytes Python's memory grew at most, the result's among them."""
    tracemalloc.start()
    try:
        result = compute()
        peak = tracemalloc.get_traced_memory()[1]
        del result
        return peak
    finally:
        tracemalloc.stop()


def test_weights_are_copied_once_into_a_file() -> None:
    tables = [np.full((1024, 1024), i, np.float32) for i in range(8)]
    graph, size = _wide(*tables), 8 << 22
    assert _grown(lambda: lay_out(graph, (), rounded=False)) < 1.3 * size
    arrays = dict(zip("abcdefgh", tables, strict=True))
    # A list of bytes grows in place or not, as the system has it.
    assert _grown(lambda: npz_bytes(arrays)) < 2.3 * size
    with np.load(io.BytesIO(npz_bytes(arrays))) as found:
        assert all(np.array_equal(found[name], table) for name, table in arrays.items())


def test_equal_constants_are_found_without_copies() -> None:
    random = np.random.default_rng(3)
    first = random.normal(size=(1024, 1024)).astype(np.float32)
    # Those that differ in one element look alike.
    other = first.copy()
    other[500, 77] += 1
    graph = _wide(first, first.copy(), other, first.T, np.ascontiguousarray(first.T))
    found = [node.inputs[1] for node in without_twins(graph).nodes]
    assert [found.index(value) for value in found] == [0, 0, 2, 3, 3]
    assert _grown(lambda: without_twins(graph)) < 1.5 * first.nbytes
