"""Errors of converters."""

from __future__ import annotations

import pytest

from tools.codegen.conversion import ConversionError, Problem, UnsupportedError, UsageError

FIRST = Problem("--out", "no folder given")
SECOND = Problem("node a", "op Foo has no kernel", "leave it out")


def test_an_error_tells_every_problem_once() -> None:
    error = UnsupportedError.of([SECOND, FIRST, SECOND])
    assert type(error) is UnsupportedError
    assert error.problems == (SECOND, FIRST)
    assert str(error) == "node a: op Foo has no kernel (leave it out)\n--out: no folder given"


def test_programs_print_and_report_it() -> None:
    error = UsageError(FIRST)
    assert error.text("tool") == "tool: wrong usage\n  --out: no folder given"
    problem = {"where": "--out", "what": "no folder given", "advice": ""}
    assert error.report() == {"ok": False, "error": "UsageError", "problems": [problem]}


def test_kinds_have_exit_codes_of_their_own() -> None:
    kinds = (ConversionError, UsageError, UnsupportedError)
    assert len({kind.exit_code for kind in kinds}) == len(kinds)


def test_an_error_needs_a_problem() -> None:
    with pytest.raises(ValueError, match="needs a problem"):
        ConversionError()


def test_texts_of_a_stranger_fit_a_terminal() -> None:
    problem = Problem("a\nb", "\x1b[31m" + "x" * 70_000, "\u202e")
    assert str(problem).isprintable()
    assert len(str(problem)) < 3000
    many = ConversionError.of(Problem(str(i), "what") for i in range(1000))
    assert many.text("p").endswith("  and 900 more; --json shows all")
    assert len(many.problems) == 1000
