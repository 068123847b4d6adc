"""What the proof of remote execution counts and writes."""

from __future__ import annotations

import os
import pathlib

import pytest

from tests.hermetic import remote_build
from tests.hermetic.checkouts import Build


def test_a_difference_is_another_digest_or_a_file_that_one_side_lacks() -> None:
    assert remote_build.differences({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == []
    assert remote_build.differences({"a": "1", "b": "2"}, {"a": "3", "c": "2"}) == ["a", "b", "c"]


def test_actions_are_counted_by_what_ran_them() -> None:
    spawns = [{"runner": "remote"}, {"runner": "linux-sandbox"}, {"runner": "remote"}]
    build = Build(0, 1.0, "", spawns)
    assert remote_build.runners(build) == {"remote": 2, "linux-sandbox": 1}


def test_the_page_has_a_place_for_the_table() -> None:
    page = pathlib.Path(os.environ["PAGE"]).read_text(encoding="utf-8")
    once = remote_build.replace_table(page, "| new \\1 |")
    assert "| new \\1 |" in once
    assert remote_build.replace_table(once, "| newer |") == once.replace("| new \\1 |", "| newer |")
    with pytest.raises(ValueError, match="the page has no"):
        remote_build.replace_table("", "")
