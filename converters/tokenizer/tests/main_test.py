"""The program: what it prints, writes and exits with."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = os.environ["PROGRAM"]
BERT = Path(__file__).parent / "golden/bert"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_writes_a_crate_and_says_so(tmp_path: Path) -> None:
    done = run(BERT, "--out", tmp_path / "crate", "--recorded", BERT / "recorded.json", "--json")
    assert done.returncode == 0, done.stderr
    assert f"wrote the crate bert_tokenizer to {tmp_path / 'crate'} (WordPiece" in done.stderr
    report = json.loads(done.stdout)
    assert report["ok"]
    assert report["pad"] == 0
    written = {
        str(file.relative_to(tmp_path / "crate")) for file in (tmp_path / "crate").rglob("*.*")
    }
    assert set(report["files"]) == {path for path in written if "." in path}
    # A second run replaces what the first one wrote.
    assert run(BERT, "--out", tmp_path / "crate").returncode == 0
    assert not (tmp_path / "crate/tests").exists()


def test_it_replaces_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    done = run(BERT, "--out", tmp_path)
    assert done.returncode == 2
    assert "did not make" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "expected one folder or file"),
        ([BERT], 2, "--out"),
        ([BERT, "--split=gpt2", "--out=x"], 2, "--split"),
        ([BERT / "recorded.json", "--out=x"], 2, "save_to_preset"),
        (["nowhere", "--out=x"], 3, "nowhere"),
        ([BERT, "--nonsense"], 2, "nonsense"),
    ],
)
def test_errors_have_codes_and_sentences(arguments: list[str | Path], code: int, said: str) -> None:
    done = run(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert not Path("x").exists()


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_it_says_what_it_is(flag: str) -> None:
    done = run(flag)
    assert done.returncode == 0
    assert done.stdout
