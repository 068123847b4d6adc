"""Errors of generators."""

from __future__ import annotations

import pytest

from tools.codegen.errors import CodegenError, Collector, Location


def test_locations_read_as_compilers_print_them() -> None:
    assert str(Location("a.h")) == "a.h"
    assert str(Location("a.h", 3)) == "a.h:3"
    assert str(Location("a.h", 3, 9)) == "a.h:3:9"


def test_a_collector_reports_everything_in_order() -> None:
    collector = Collector()
    collector.check()
    collector.add(Location("b.h", 2), "second")
    collector.extend(CodegenError.at(Location("a.h", 10), "first"))
    with pytest.raises(CodegenError) as caught:
        collector.check()
    assert str(caught.value) == "a.h:10: error: first\nb.h:2: error: second"


def test_an_error_has_a_problem() -> None:
    with pytest.raises(ValueError, match="at least one problem"):
        CodegenError([])
