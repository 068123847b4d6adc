"""Programs speak the field's own words, in short sentences: CONTRIBUTING.md, "Words"."""

import ast
import functools
import os
import pathlib

import pytest

from tools.build.docstrings import docstrings, parts, strings
from tools.build.words import long_sentences, misused

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()

SKIPPED = {
    # Path: why its text is not judged.
    "tools/build/words.py": "lists the words",
}


def programs() -> dict[str, list[str]]:
    """Returns all Python files but those of pytest, by the folder that they are in."""
    found: dict[str, list[str]] = {}
    for path in sorted(TREE.rglob("*.py")):
        name = path.relative_to(TREE)
        of_pytest = path.name.endswith("_test.py") or path.name == "conftest.py"
        if not of_pytest and str(name) not in SKIPPED:
            found.setdefault("/".join(name.parts[:2]), []).append(str(name))
    return found


PROGRAMS = programs()


@functools.cache
def tree(name: str) -> ast.Module:
    return ast.parse((TREE / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", PROGRAMS)
def test_words_of_docstrings_are_those_of_the_field(folder: str) -> None:
    found = [
        f"{name}:{said.line}: {problem}"
        for name in PROGRAMS[folder]
        for said in docstrings(tree(name))
        for problem in misused(said.text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", PROGRAMS)
def test_sentences_of_docstrings_are_read_once(folder: str) -> None:
    found = [
        f"{name}:{said.line}: {problem}"
        for name in PROGRAMS[folder]
        for said in docstrings(tree(name))
        for problem in long_sentences(said.text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", PROGRAMS)
def test_words_of_flags_and_messages_are_those_of_the_field(folder: str) -> None:
    found = [
        f"{name}:{said.line}: {problem}"
        for name in PROGRAMS[folder]
        for said in strings(tree(name))
        for problem in misused(said.text)
    ]
    assert not found, "\n".join(found)


def test_every_kind_of_program_is_judged() -> None:
    assert {
        "converters/mlf",
        "converters/tf",
        "converters/tokenizer",
        "plugin/python",
        "tests/fuzz",
        "tools/ffigen",
        "tools/opgen",
    } <= PROGRAMS.keys()
    assert all((TREE / name).is_file() for name in SKIPPED)


BAD = ast.parse('''
"""Computes products of matrices."""

JOBS = flags.DEFINE_integer("jobs", 2, "Compilers that run at once.")
LIMIT = 3
"""How many turns, a whole number."""


class _Private:
    """What is no tensor."""

    def method(self):
        """Returns it.

        Args:
            first: A file and the like.
                The next line of it.
            second: It is fine.

        Raises:
            ValueError: The value is to be a number.
        """
        raise ValueError(f"{name} is no file: {1}")
''')


def test_bad_words_of_docstrings_are_found() -> None:
    problems = [(said.line, problem) for said in docstrings(BAD) for problem in misused(said.text)]
    found = [(line, problem.partition(":")[0]) for line, problem in problems]
    assert sorted(found) == [
        (2, "“products of matrices”"),
        (6, "“whole number”"),
        (10, "“What is no tensor”"),
        (10, "“is no ”"),
        (13, "“and the like”"),
        (13, "“is to be”"),
    ]


def test_bad_words_of_flags_and_messages_are_found() -> None:
    found = [(said.line, problem) for said in strings(BAD) for problem in misused(said.text)]
    assert [(line, problem.partition(":")[0]) for line, problem in sorted(found)] == [
        (4, "“at once”"),
        (23, "“is no ”"),
    ]
    assert "VALUE is no file: VALUE" in [said.text for said in strings(BAD)]


def test_long_sentences_are_found() -> None:
    short, long = (f"It has {'word ' * count}here." for count in (22, 23))
    assert not long_sentences(short)
    (problem,) = long_sentences(f"First. {long} Last.")
    assert problem.startswith("26 words, at most 25: It has word word ")
    assert not long_sentences(f"It has `{'word ' * 40}` and x [batch, height, width, channels].")


def test_parts_are_paragraphs_bullets_and_entries() -> None:
    docstring = """Does a thing
    in two lines.

        python -m code

    - a bullet
      goes on
    - another

    ```
    fenced code
    ```

    >>> prompt()

    Args:
      first: It
        goes on.
      second: Other.

        More of it.

    Returns:
      A value
      in two lines.
    """
    assert list(parts(docstring)) == [
        "Does a thing in two lines.",
        "- a bullet goes on",
        "- another",
        "first: It goes on.",
        "second: Other.",
        "More of it.",
        "A value in two lines.",
    ]
