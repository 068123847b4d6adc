"""Sizes that a call decides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from converters.tf import ir
from converters.tf.ir.agreeing import agreed, differ, differences
from converters.tf.ir.dimensions import joined, parsed
from converters.tf.ir.expressions import (
    OpenSizeError,
    is_open,
    largest,
    maximum,
    minimum,
    multiple,
    size_at,
    smallest,
    surely,
    unknown,
)
from converters.tf.ir.fixed import fixed, open_dims, sizes_of

T: Any = unknown("t")
S: Any = unknown("s")
# Numbers for the two, far enough apart to tell expressions from each other.
_CALLS = [{"t": t, "s": s} for t in (1, 2, 3, 4, 7, 12, 31) for s in (1, 2, 5, 8)]


def test_one_form_for_what_is_equal() -> None:
    assert T + T == 2 * T
    assert T - T == 0
    assert (T + 1) * (T - 1) == T * T - 1
    assert (6 * T) // 3 == 2 * T
    assert (T // 2) // 3 == T // 6
    half = -(-T // 2)
    assert -(-half // 2) == -(-T // 4)
    assert (4 * T * S) // (2 * S) == 2 * T
    assert (T * T - 1) // (T - 1) == T + 1
    assert (5 * T) % 5 == 0
    assert len({T + 1, 1 + T, T}) == 2
    assert T != 3


def test_texts() -> None:
    assert str(2 * T - 1) == "2*t - 1"
    assert str((T + 1) // 2) == "(t + 1) // 2"
    assert str(T // 2) == "t // 2"
    assert str(ir.Batch(T + 1)) == "batch*(t + 1)"


def test_the_larger_and_the_smaller_of_two() -> None:
    assert maximum(T, 1) == T
    assert minimum(T, 0) == 0
    assert maximum(T, 5) == maximum(5, T)
    assert minimum(T, S) == minimum(S, T)
    assert minimum(T, S) + maximum(T, S) == T + S
    assert maximum(T // 3, T // 2) == T // 2
    assert str(minimum(T, 5)) == "t - max(t - 5, 0)"
    assert parsed(str(minimum(T, 5))) == minimum(T, 5)
    assert 1 <= minimum(T, 5) <= 5
    assert minimum(T, 5) <= T
    assert maximum(T, 5) >= T
    assert maximum(T, 5) >= 5
    assert minimum(T, S) >= 1
    assert minimum(T // 2, 3) >= 0
    assert not surely(lambda: minimum(T, 5) >= 2)
    fourths: Any = multiple("t", 4)
    shorter: Any = minimum(T, 5)
    assert shorter.with_atoms({"t": fourths}) <= fourths


def test_many_choices_are_refused() -> None:
    most: Any = 0
    with pytest.raises(OpenSizeError, match="the larger of"):
        for number in range(40):
            most = maximum(most - 3, unknown(f"n{number}"))


def test_comparisons_that_hold_for_every_call() -> None:
    assert T >= 1
    assert T > 0
    assert T + 1 > T
    assert not T < 1
    assert T * S >= T
    assert (T + 1) // 2 >= 1
    assert -(-T // 2) * 2 >= T
    assert bool(T)
    assert max(T, 0) == T
    assert largest(T + 1, T) == T + 1
    assert smallest(T + 1, T) == T


@pytest.mark.parametrize(
    "question",
    [
        lambda: T > 1,
        lambda: T >= S,
        lambda: bool(T - 1),
        lambda: max(T, 5),
        lambda: range(T),
        lambda: np.zeros(T),
        lambda: int(T),
        lambda: f"{T}",
        lambda: T // S,
        lambda: 5 // T,
        lambda: T / 2,
    ],
)
def test_what_calls_differ_in_is_refused(question: Callable[[], Any]) -> None:
    with pytest.raises((OpenSizeError, TypeError)):
        question()
    assert largest(T, S) == T + S
    assert smallest(5, T) == 5
    assert not surely(lambda: T > 1)


_SIZES = st.recursive(
    st.one_of(st.integers(-9, 9), st.just(T), st.just(S)),
    lambda inner: st.one_of(
        st.tuples(st.just("+"), inner, inner),
        st.tuples(st.just("-"), inner, inner),
        st.tuples(st.just("*"), inner, inner),
        st.tuples(st.just("//"), inner, st.integers(1, 5)),
        st.tuples(st.just("%"), inner, st.integers(1, 5)),
        st.tuples(st.sampled_from(("max", "min")), inner, inner),
    ),
    max_leaves=6,
)


def _made(tree: Any, call: dict[str, int] | None) -> Any:
    """Computes a tree with expressions, or with the numbers of a call."""
    if not isinstance(tree, tuple):
        return tree if call is None else size_at(tree, call)
    kind, left, right = tree
    a, b = _made(left, call), _made(right, call)
    kinds: dict[str, Callable[[], Any]] = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "//": lambda: a // b,
        "%": lambda: a % b,
        "max": lambda: maximum(a, b),
        "min": lambda: minimum(a, b),
    }
    return kinds[kind]()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(_SIZES)
def test_expressions_are_what_the_numbers_give(tree: Any) -> None:
    size = _made(tree, None)
    for call in _CALLS:
        assert size_at(size, call) == _made(tree, call)
    if is_open(size):
        assert size.with_atoms({}) == size
        assert size.with_atoms({"t": 4, "s": 3}) == size.at({"t": 4, "s": 3})


@settings(derandomize=True, deadline=None, max_examples=60)
@given(_SIZES, _SIZES)
def test_answers_hold_for_every_call(left: Any, right: Any) -> None:
    a, b = _made(left, None), _made(right, None)
    if not is_open(a) and not is_open(b):
        return
    for question in (operator.ge, operator.lt):
        try:
            answer = question(a, b)
        except OpenSizeError:
            continue
        found = {question(size_at(a, call), size_at(b, call)) for call in _CALLS}
        assert found == {answer}
    if a == b:
        assert all(size_at(a, call) == size_at(b, call) for call in _CALLS)


def test_dimensions_that_had_to_be_the_same_are_noted() -> None:
    with differences() as found:
        differ(T, S)
        differ(T, T)
        differ(T + 1, S)
        differ(T + 1, S + 1)
        differ(T + 1, T)
        differ(T, 3)
    assert found == [(T, S), (T + 1, S)]
    differ(T, S)


def test_a_dimension_that_has_to_be_a_multiple() -> None:
    size: Any = multiple("t", 32)
    assert str(size) == "32*(t/32)"
    assert parsed(str(size)) == size
    assert size.whole == ("t", 32)
    assert (size + 31) // 32 * 2 == (size + 15) // 16
    assert size // 32 >= 1
    assert size_at(size, {"t": 64}) == 64
    assert size.with_atoms({"t": multiple("t", 64)}) == multiple("t", 64)
    with pytest.raises(ValueError, match="t is 33, which is not a multiple of 32"):
        size.with_atoms({"t": 33})


@pytest.mark.parametrize(
    ("one", "other", "by"),
    [
        ((T + 15) // 16, (T + 31) // 32 * 2, 32),
        (T, T // 2 * 2, 2),
        (T // 3 * 3, T, 3),
        (T // 2 * 2, T // 4 * 4, 4),
        ((T + 1) // 2, (T + 3) // 4 * 2, 4),
    ],
)
def test_scales_that_meet_again(one: Any, other: Any, by: int) -> None:
    change = agreed(one, other)
    assert change == {"t": multiple("t", by)}
    assert one.with_atoms(change) == other.with_atoms(change)
    assert joined([("t", "u")], one, other) == [(f"{by}*(t/{by})", "u")]


def test_sizes_that_no_multiple_makes_the_same() -> None:
    assert agreed(T + 1, T) == {}
    assert agreed(T * T, 2 * T) == {}
    assert agreed(T // 2 * 2, S // 2) == {}


def _graph() -> ir.Graph:
    x = ir.Value(ir.DType.F32, (ir.Batch(), T, 4), None, "x")
    part = ir.Value(ir.DType.F32, (ir.Batch(), T - 2, 4), None, "part")
    node = ir.Node(ir.Slice((0, T - (T - 2), 0), (1, 1, 1)), (x,), (part,))
    last = ir.Value(ir.DType.F32, (ir.Batch(), 1, 4), None, "last")
    end = ir.Node(ir.Slice((0, T - 3, 0), (1, 1, 1)), (part,), (last,))
    return ir.Graph("g", (ir.Port("x", x),), (ir.Port("last", last),), (node, end))


def test_a_graph_for_some_sizes() -> None:
    graph = _graph()
    assert open_dims(graph) == ("t",)
    assert sizes_of(graph, {"x": np.zeros((2, 5, 4))}) == {"t": 5}
    found = fixed(graph, {"t": 5})
    assert [v.shape for n in found.nodes for v in n.outputs] == [
        (ir.Batch(), 3, 4),
        (ir.Batch(), 1, 4),
    ]
    assert found.nodes[1].op == ir.Slice((0, 2, 0), (1, 1, 1))
    assert found.nodes[1].input is found.nodes[0].output
    with pytest.raises(ValueError, match=r"the sizes are too small: part of .* is \[batch, 0, 4\]"):
        fixed(graph, {"t": 2})
    with pytest.raises(ValueError, match="input x has shape"):
        sizes_of(graph, {"x": np.zeros((2, 5))})
