"""Runs a tutorial as a reader would: writes its files, runs its commands, compares their output.

A fenced block with `title="NAME"` is a file. In a block of language `console` a line that begins
with `$ ` is a command. The lines up to the next one are its output. In the output, `...` stands
for any text and, alone on a line, for any lines. Other blocks are for reading.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess
from collections.abc import Mapping
from typing import Final

_FENCE: Final = re.compile(
    r"^```(\w*)(?:[^\n]*?title=\"([^\"]+)\")?[^\n]*\n(.*?)^```$", re.M | re.S
)


@dataclasses.dataclass(frozen=True)
class Step:
    """A file to write or a command to run.

    Attributes:
        line: Line of the page, from 1.
        file: Name of the file; empty for a command.
        text: The file's contents, or the command.
        output: Lines that the command should print.
    """

    line: int
    file: str
    text: str
    output: tuple[str, ...] = ()


class TutorialError(Exception):
    """A step did something else than the page says; the message says where and what."""


def steps(page: str) -> list[Step]:
    """Reads the steps of a page in their order."""
    found = []
    for match in _FENCE.finditer(page):
        language, title, body = match.groups()
        line = page.count("\n", 0, match.start()) + 2
        if title:
            found.append(Step(line, title, body))
        elif language == "console":
            command, at = "", 0
            output: list[str] = []
            for number, text in enumerate([*body.splitlines(), "$ "], line):
                if text.startswith("$ "):
                    if command:
                        found.append(Step(at, "", command, tuple(output)))
                    command, at, output = text[2:], number, []
                else:
                    output.append(text)
    return found


def fits(expected: tuple[str, ...], found: str) -> bool:
    """Whether an output is what a page says."""
    parts = [
        r"(?:.*\n)*?" if line == "..." else r".*?".join(map(re.escape, line.split("..."))) + r" *\n"
        for line in expected
    ]
    text = "".join(f"{line}\n" for line in found.splitlines())
    return re.fullmatch("".join(parts), text) is not None


def run(page: pathlib.Path, folder: pathlib.Path, variables: Mapping[str, str]) -> int:
    """Does what a page says.

    Args:
        page: The tutorial.
        folder: An empty folder to do it in.
        variables: Environment of the commands.

    Returns:
        The number of steps.

    Raises:
        TutorialError: If a command fails or prints something else.
    """
    found = steps(page.read_text(encoding="utf-8"))
    for step in found:
        if step.file:
            target = folder / step.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(step.text, encoding="utf-8")
            continue
        done = subprocess.run(
            ["bash", "-c", step.text],
            cwd=folder,
            env=dict(variables),
            capture_output=True,
            text=True,
            check=False,
        )
        where = f"{page.name}:{step.line}: `{step.text}`"
        if done.returncode:
            raise TutorialError(f"{where} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
        if not fits(step.output, done.stdout):
            expected = "\n".join(step.output)
            raise TutorialError(f"{where} prints\n{done.stdout}\nexpected\n{expected}")
    return len(found)
