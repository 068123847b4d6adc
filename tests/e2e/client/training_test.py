"""The training examples learn what they say."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess


def start(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs an example."""
    return subprocess.run(
        [os.environ[name], *arguments], capture_output=True, text=True, check=False
    )


def test_xor_is_learned_by_hand() -> None:
    """All four rows are right."""
    done = start("XOR")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 xor 0 = 0\n0 xor 1 = 1\n1 xor 0 = 1\n1 xor 1 = 0\n"


def test_digits_are_recognized_in_both_modes() -> None:
    """At least 97 of 100 digits that the model has not seen."""
    for mode in ("graph", "eager"):
        done = start("DIGITS", os.environ["DIGITS_CSV"], mode, "6")
        assert done.returncode == 0, done.stderr
        share = re.fullmatch(r"([\d.]+) % of 360 digits recognized\n", done.stdout)
        assert share, done.stdout
        assert float(share[1]) >= 97, done.stdout
        assert "epoch 6/6" in done.stderr


def test_a_rhyme_is_learned() -> None:
    """Most of the text comes back, letter by letter."""
    done = start("CHAR_LSTM")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("twinkle, twinkle, little star, how i wonder"), done.stdout


def test_bad_arguments_are_refused(tmp_path: pathlib.Path) -> None:
    """Errors go to stderr, and name file, line or mode."""
    assert "usage" in start("DIGITS").stderr
    assert start("DIGITS", "--help").returncode == 0
    missing = start("DIGITS", str(tmp_path / "nothing.csv"))
    assert missing.returncode == 1
    assert "nothing.csv" in missing.stderr
    file = tmp_path / "short.csv"
    file.write_text("1,2,3\n")
    assert "line 1 has 3 numbers, expected 65" in start("DIGITS", str(file)).stderr
    assert "no mode 'fast'" in start("DIGITS", str(file), "fast").stderr.replace('"', "'")
