"""Pages and rustdoc use the field's own words, in short sentences: CONTRIBUTING.md, "Words"."""

import os
import pathlib
import re
from collections.abc import Iterator

import pytest

from tools.build.words import long_sentences, misused, plain

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()

LONGEST_BULLET = 40

PUBLIC_CRATES = (
    "bindings/client/src",
    "bindings/core/src",
    "bindings/derive/src",
    "bindings/plugin/src",
    "bindings/wire/src",
    "converters/embedded/src",
    "converters/runtime/src",
    # What generated crates say of themselves.
    "converters/mlf/templates",
    "converters/tf/templates",
    "converters/tokenizer/templates",
    "gpu/src",
    "kernels/src",
)

SKIPPED = {
    # Prefix of a path: why its text is not judged.
    "docs/ops.md": "written by the conformance sweep",
}


def pages() -> list[str]:
    found = [str(path.relative_to(TREE)) for path in sorted(TREE.rglob("*.md"))]
    judged = [name for name in found if not name.startswith(tuple(SKIPPED))]
    assert "README.md" in judged
    return judged


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Gives the paragraphs, bullets and cells of a page, with their line; code is left out."""
    text = re.sub(r"^```.*?^```$", lambda m: "\n" * m.group().count("\n"), text, flags=re.S | re.M)
    # The page that lists the words has to name them.
    words = r"^## Words\n.*?(?=^## )"
    text = re.sub(words, lambda m: "\n" * m.group().count("\n"), text, flags=re.S | re.M)
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fresh = not line.strip() or re.match(r"\s*(?:[-*] |\d+\. |#|\||<)", line)
        if fresh and block:
            yield start, " ".join(block)
            block = []
        if line.lstrip().startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line):
                yield number, cell.strip()
        elif line.strip():
            start = start if block else number
            block.append(line.strip())


@pytest.mark.parametrize("name", pages())
def test_words_are_those_of_the_field(name: str) -> None:
    found = [
        f"{name}:{line}: {problem}"
        for line, block in prose((TREE / name).read_text(encoding="utf-8"))
        for problem in misused(block)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", pages())
def test_sentences_are_read_once(name: str) -> None:
    long = [
        f"{name}:{line}: {problem}"
        for line, block in prose((TREE / name).read_text(encoding="utf-8"))
        for problem in long_sentences(block)
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("name", pages())
def test_bullets_are_short(name: str) -> None:
    long = [
        f"{name}:{line}: {len(words)} words, at most {LONGEST_BULLET}; make it a heading: {block}"
        for line, block in prose((TREE / name).read_text(encoding="utf-8"))
        if re.match(r"[-*] |\d+\. ", block) and len(words := plain(block).split()) > LONGEST_BULLET
    ]
    assert not long, "\n".join(long)


def rustdoc(text: str) -> Iterator[tuple[int, str]]:
    """Gives the documentation of each item of a Rust file, with its first line."""
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if match := re.match(r"\s*//[/!](.*)", line):
            block.append(match.group(1).strip())
        elif block:
            yield number - len(block), " ".join(block)
            block = []


@pytest.mark.parametrize("folder", PUBLIC_CRATES)
def test_words_of_public_crates_are_those_of_the_field(folder: str) -> None:
    every = sorted((TREE / folder).rglob("*"))
    files = [file for file in every if file.suffix in (".rs", ".j2")]
    assert files
    found = [
        f"{file.relative_to(TREE)}:{line}: {problem}"
        for file in files
        for line, block in rustdoc(file.read_text(encoding="utf-8"))
        for problem in misused(block)
    ]
    assert not found, "\n".join(found)


def test_code_and_links_are_not_judged() -> None:
    text = "# A\n\n```\nat once\n```\n\n- see [x](at-once.md) `at once`\n  and more\n| a | b |\n"
    assert next(prose(text)) == (1, "# A")
    blocks = [plain(block) for _, block in prose(text)]
    assert blocks == ["A", "see x CODE and more", "", "a", "b", ""]


def test_every_reason_to_skip_is_needed() -> None:
    names = [str(path.relative_to(TREE)) for path in TREE.rglob("*.md")]
    assert not [prefix for prefix in SKIPPED if not any(name.startswith(prefix) for name in names)]
