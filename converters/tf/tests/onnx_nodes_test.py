"""A fixed share of ONNX's own test suite; `onnx_nodes` runs all of it."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from converters.tf.tests.onnx_cases import cases
from converters.tf.tests.onnx_nodes import EXPECTED
from converters.tf.tests.onnx_outcomes import Kind, Outcome, outcome
from converters.tf.tests.onnx_page import Row, expected, page, unexpected, write_expected

# Every so many cases are run, sorted by name.
_SHARE = 8


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("folder", ["node", "simple", "pytorch-converted", "pytorch-operator"])
def test_a_share_of_the_suite(folder: str) -> None:
    chosen = cases(folder)[::_SHARE]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [Row.of(case, outcome(case)) for case in chosen]
    assert unexpected(rows, expected(EXPECTED)) == []
    assert len(rows) > 2


def test_every_name_is_a_case() -> None:
    names = {(folder, c.name) for folder in ("node", "simple") for c in cases(folder)}
    assert {key for key in expected(EXPECTED) if key[0] in ("node", "simple")} <= names


def test_a_case_that_stops_passing_is_named(tmp_path: Path) -> None:
    case = next(c for c in cases("node") if c.name == "abs")
    rows = [Row.of(case, Outcome(Kind.REFUSED, "node (Abs): no"))]
    assert unexpected(rows, {}) == ["node/abs: expected pass, found refused: node (Abs): no"]
    write_expected(tmp_path / "known", rows)
    assert unexpected(rows, expected(tmp_path / "known")) == []
    fine = [Row.of(case, Outcome(Kind.PASS))]
    assert unexpected(fine, expected(tmp_path / "known")) == [
        "node/abs: expected refused, found pass"
    ]


def test_the_page_counts_by_operator_and_version() -> None:
    named = {c.name: c for c in cases("node") if c.name in ("abs", "equal_string")}
    rows = [
        Row.of(named["abs"], Outcome(Kind.PASS)),
        Row.of(named["equal_string"], Outcome(Kind.REFUSED, "tensor x: element type string")),
    ]
    text = page(rows, 7, 5e-4, 1e-2)
    assert "| `node` | 2 | 1 | 0 | 1 | 0 |" in text
    assert "| Abs | 13 | 1 | 1 | 0 | 0 | 0 |  |" in text
    assert "| Equal | 19 | 1 | 0 | 0 | 1 | 0 | element type string |" in text
    assert "7 of the cases were compiled" in text
