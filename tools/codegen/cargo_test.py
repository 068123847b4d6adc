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


@given(st.text())
def test_a_version_of_a_registry_reads_back_or_is_refused(value: str) -> None:
    try:
        place = CratePlace.parse(f"registry=ours,version={value}", "--from", "")
    except UsageError:
        assert not value or not value.isprintable()
        return
    table = tomllib.loads(f"table = {{ {place.toml()} }}")["table"]
    assert table == {"version": value, "registry": "ours"}


@pytest.mark.parametrize("text", ["version=0.1.0", "registry=crates-io,version=0.1.0"])
def test_a_stranger_can_not_register_what_is_depended_on(text: str) -> None:
    """The public index has none of our names, so that anybody may take them there."""
    with pytest.raises(UsageError) as refused:
        CratePlace.parse(text, "--from", "")
    (problem,) = refused.value.problems
    assert problem.where == "--from"
    assert problem.what.startswith(f"{text} would be a package of the public index")
    assert problem.advice.startswith("expected registry=NAME,version=0.1.0 with a registry of")


@pytest.mark.parametrize("registry", ["", "crates-io"])
def test_no_version_is_of_the_public_index(registry: str) -> None:
    with pytest.raises(ValueError, match="expected path=FOLDER"):
        CratePlace("version", "0.1.0", registry)


@pytest.mark.parametrize(
    "text",
    [
        "registry=ours",
        "registry=,version=1",
        "registry=ours,version=",
        "registry=ours,path=a",
        "registry=our s,version=1",
        "registry=9,version=1",
        "registry=a\nb,version=1",
    ],
)
def test_a_registry_that_cargo_does_not_take_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected path=FOLDER, git=URL or registry=NAME,version="):
        CratePlace.parse(text, "--from", "")


@pytest.mark.parametrize("value", ["a\x7fb", "a\nb", "a\udcffb", "a\u202eb", ""])
def test_a_place_that_can_not_be_written_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="expected path=FOLDER"):
        CratePlace.parse(f"path={value}", "--from", "")
