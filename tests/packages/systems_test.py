"""What the program that makes bare systems writes."""

from __future__ import annotations

import datetime
import pathlib

import pytest
from absl import flags

from tests.packages import systems

RESULT = systems.Result("Fedora 42", "trixie", "3.13.5", "2.41", "provision", 60, "Python 3.11", "")
DATE = datetime.date(2026, 11, 25)


def test_a_row_of_the_page_is_replaced() -> None:
    page = "last run on 2020-01-01\n| Fedora 42 | old |\n| Fedora 42 itself | kept |\n"
    assert systems.replace_rows(page, [RESULT], DATE) == (
        "last run on 2026-11-25\n"
        "| Fedora 42 | trixie, no apt | 3.13.5 | 2.41 | provision | 60 | yes | Python 3.11 |\n"
        "| Fedora 42 itself | kept |\n"
    )
    with pytest.raises(ValueError, match="no row for Fedora 42"):
        systems.replace_rows("", [RESULT], DATE)


def test_another_distribution_is_played_without_apt() -> None:
    flags.FLAGS(["systems", "--mirror=http://mirror.invalid/debian"])
    base, home = pathlib.Path("/base"), pathlib.Path("/home/x")
    (fedora,) = (system for system in systems.SYSTEMS if system.name == "Fedora 42")
    (debian,) = (system for system in systems.SYSTEMS if system.name == "Debian 13")
    text = systems.script(fedora, base, home, "true")
    assert "mount --bind /home/x.release /base/etc/os-release" in text
    assert "mount --bind /dev/null /base/usr/bin/apt-get" in text
    assert "TFP_DEBIAN_MIRROR=http://mirror.invalid/debian" in text
    assert "apt-get" not in systems.script(debian, base, home, "true")


def test_a_problem_cannot_break_the_table() -> None:
    row = systems.Result("Debian 13", "trixie", "", "", "quickstart", 1, "", "a | b").row()
    assert row.count("|") == 9
    assert row.endswith("| no | a / b |")
