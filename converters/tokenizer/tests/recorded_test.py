"""Crates give the numbers and the texts that KerasHub gave, and those of a damaged model no panic.

`tools/bazel run //converters/tokenizer/tests/record` makes what they are compared with.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from converters.tokenizer.convert import Request, convert
from converters.tokenizer.emit import Example, crate_files
from converters.tokenizer.load import preset
from converters.tokenizer.model import SentencePiece, Split

GOLDEN = Path(__file__).parent / "golden"
# Folders with texts, and which one has their tokenizer.
NAMES = sorted(path.name for path in GOLDEN.iterdir())
SPLITS = {"gpt2_gpt2": Split.GPT2, "gpt2_llama3": Split.LLAMA3}


def compile_and_test(files: dict[str, bytes], crate: str, folder: Path) -> tuple[int, str]:
    """Returns the exit code of a crate's test, and what it printed."""
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    rustc = [str(Path(os.environ["RUSTC"]).absolute()), "--edition=2024", "-Dwarnings"]
    linker = f"-Clinker={Path(os.environ['CC']).absolute()}"
    library = f"lib{crate}.rlib"
    first = [*rustc, "--crate-type=rlib", f"--crate-name={crate}", "src/lib.rs"]
    for command in (
        [*first, "-o", library],
        [
            *rustc,
            linker,
            f"--extern={crate}={library}",
            "--test",
            "tests/recorded.rs",
            "-o",
            "test",
        ],
        [*rustc, linker, f"--extern={crate}={library}", "examples/encode.rs", "-o", "encode"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(
        ["./test"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def request(name: str) -> Request:
    folder = "gpt2" if name in SPLITS else name
    recorded = GOLDEN / name / "recorded.json"
    return Request(GOLDEN / folder, "tokens", SPLITS.get(name), recorded)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_the_library(name: str, tmp_path: Path) -> None:
    result = convert(request(name))
    assert result.examples > 80
    code, said = compile_and_test(result.files, "tokens", tmp_path)
    assert code == 0, said
    done = subprocess.run(
        ["./encode", "the\n"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_another_number_fails(tmp_path: Path) -> None:
    result = convert(request("bert"))
    examples = [Example("the quick fox", (1, 2, 3))]
    files = crate_files(result.tokenizer, "tokens", examples, "1")
    code, said = compile_and_test(files, "tokens", tmp_path)
    assert code != 0
    assert "the quick fox" in said


def test_another_text_fails(tmp_path: Path) -> None:
    result = convert(request("bert"))
    example = Example("[CLS]", (2,), "[SEP]")
    files = crate_files(result.tokenizer, "tokens", [example], "1")
    code, said = compile_and_test(files, "tokens", tmp_path)
    assert code != 0
    assert "[SEP]" in said


def test_a_map_of_characters_may_be_anything(tmp_path: Path) -> None:
    read = preset.read(GOLDEN / "t5", None)
    assert isinstance(read.model, SentencePiece)
    whole = read.model.charsmap
    noise = bytes(7 * at % 251 for at in range(4096))
    for at, charsmap in enumerate((b"\x01", whole[:1000], whole[:4] + noise, noise)):
        model = replace(read, model=replace(read.model, charsmap=charsmap), length=None)
        # A text of spaces has no token, whatever the map is, or those that it makes of them.
        files = crate_files(model, "tokens", [Example("", ())], "1")
        folder = tmp_path / str(at)
        code, said = compile_and_test(files, "tokens", folder)
        assert code == 0, said
        texts = ["naïve ﬁne ½ \u0344 東京", "a b  c", "\u2126"]
        done = subprocess.run(
            ["./encode", *texts], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
