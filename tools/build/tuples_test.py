"""Functions of Rust take few values in tuples: a reader can't tell what the third of five is."""

import os
import pathlib
import re
from collections.abc import Iterator

import pytest

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()

LIMITS = {
    "bindings": 4,
    "kernels": 4,
    "plugin": 4,
    # Generated models call these functions: each operand stands beside its shape, as in the graph.
    "converters/runtime": 8,
}
"""Folder -> most values in the tuples among the parameters of a function."""

VIEW = re.compile(r"&(?:'\w+ )?(?:mut )?\[\w+\], &Shape")
"""The elements of a tensor and its shape: one value."""

_FUNCTION = re.compile(r"\bfn (\w+)")
_CALLABLE = re.compile(r"\b(?:Fn|FnMut|FnOnce|fn)\b")
_TUPLE = re.compile(r"(?<![\w\]])\(")


def split(text: str) -> list[str]:
    """Returns the parts between the commas that no bracket encloses."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}" or (letter == ">" and text[at - 1] not in "-="):
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def enclosed(text: str, at: int) -> str:
    """Returns what the bracket at a place encloses."""
    depth = 0
    for end in range(at, len(text)):
        if text[end] in "([{<":
            depth += 1
        elif text[end] in ")]}" or (text[end] == ">" and text[end - 1] not in "-="):
            depth -= 1
        if depth == 0:
            return text[at + 1 : end]
    raise AssertionError(f"a bracket that nothing closes: {text[at : at + 80]}")


def values(of: str) -> int:
    """Returns how many values a type stands for; 1 unless there is a tuple in it."""
    found = _TUPLE.search(of)
    if found is None or _CALLABLE.search(of[: found.start()]):
        return 1
    inside = " ".join(enclosed(of, found.start()).split()).rstrip(",")
    return 1 if VIEW.fullmatch(inside) else sum(map(values, split(inside))) or 1


def hidden(text: str) -> Iterator[tuple[int, str]]:
    """Yields how many values the tuples of each function have, and its name."""
    text = re.sub(r"//[^\n]*", "", text.split("\n#[cfg(test)]\n")[0])
    for match in _FUNCTION.finditer(text):
        at = match.end()
        if text[at : at + 1] == "<":
            at += len(enclosed(text, at)) + 2
        if text[at : at + 1] != "(":
            continue
        counts = []
        for parameter in split(enclosed(text, at)):
            of = parameter.partition(": ")[2]
            if of and _TUPLE.search(of):
                counts.append(values(of))
        yield sum(count for count in counts if count > 1), match[1]


@pytest.mark.parametrize("folder", LIMITS)
def test_few_values_of_a_function_have_no_name(folder: str) -> None:
    wrong = []
    paths = sorted((TREE / folder).rglob("src/**/*.rs"))
    assert len(paths) > 20
    for path in paths:
        name = path.relative_to(TREE).as_posix()
        if "/tests" in name or name.endswith("_test.rs") or name.startswith("bindings/ops/"):
            continue
        for count, function in hidden(path.read_text(encoding="utf-8")):
            if count > LIMITS[folder]:
                wrong.append(f"{name}: {function} has {count} values in tuples")
    assert not wrong, "at most {}; make structs of them:\n{}".format(
        LIMITS[folder], "\n".join(wrong)
    )


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        ("a: usize, b: &[f32]", 0),
        ("(a, b): (usize, usize), c: u8", 2),
        ("(x, shape): (&[T], &Shape), (y, of): (&'a mut [f32], &Shape)", 0),
        ("(a, (b, c)): (&[f32], (usize, Option<u8>)), (d, e): (u8, Range<usize>)", 5),
        ("task: impl Fn(usize, &mut [T]) + Sync, map: fn(usize, u8) -> u8", 0),
        ("pairs: &[(usize, u8)],", 2),
    ],
)
def test_values_are_counted(parameters: str, count: int) -> None:
    text = f"pub fn f<T: Fn(u8) -> (u8, u8)>(\n{parameters}) -> (u8, u8, u8) {{}}"
    assert list(hidden(text)) == [(count, "f")]
