"""The generated text of every archive, compared with the files in `golden/`.

Update all of them with: tools/bazel run //converters/mlf/tests:update_golden
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from converters.mlf.tests.build import program
from converters.mlf.tests.golden_files import GOLDEN, UPDATE, golden_names, golden_texts


@pytest.mark.parametrize("name", golden_names())
def test_golden(name: str, tmp_path: Path) -> None:
    texts = golden_texts(name, tmp_path)
    folder = GOLDEN / name
    on_disk = {
        str(p.relative_to(folder)): p.read_text(encoding="utf-8")
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }
    assert texts == on_disk, f"generated text changed; to accept it run: {UPDATE}"


@pytest.mark.parametrize("name", golden_names())
def test_same_input_same_bytes(name: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert golden_texts(name, tmp_path / "a") == golden_texts(name, tmp_path / "b")


@pytest.mark.parametrize("name", golden_names())
def test_generated_rust_is_formatted(name: str, tmp_path: Path) -> None:
    files = []
    for path, text in golden_texts(name, tmp_path).items():
        if path.endswith(".rs"):
            target = tmp_path / "out" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            if target.name != "lib.rs":
                files.append(str(target))
    command = [program("RUSTFMT", "rustfmt"), "--check", "--edition=2024", *files]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stdout + done.stderr
