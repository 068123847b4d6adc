"""Where Cargo finds a crate."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.codegen.cargo import CratePlace
from tools.codegen.conversion import UsageError

settings.register_profile("tfp", deadline=None, derandomize=True, database=None)
settings.load_profile("tfp")


@given(st.text())
def test_a_place_reads_back_or_is_refused(value: str) -> None:
    try:
        place = CratePlace.parse(f"path={value}", "--from", "")
    except UsageError:
        assert not value or not value.isprintable()
        return
    assert tomllib.loads(place.toml()) == {"path": value}


@pytest.mark.parametrize("value", ["a\x7fb", "a\nb", "a\udcffb", "a\u202eb", ""])
def test_a_place_that_can_not_be_written_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="expected path=FOLDER"):
        CratePlace.parse(f"path={value}", "--from", "")
