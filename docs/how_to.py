"""Does the steps of a how-to page on a copy of the repository.

A comment of Markdown before a fenced block says what a reader does with the block:

- `<!-- write PATH -->`: the block is a new file.
- `<!-- insert PATH after LINE -->`: the lines of the block follow that line, which stands once in
  the file, and are indented like it.
- `<!-- check FOLDER: COMMAND -->` has no block: the command passes in that folder of the copy.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess
import textwrap
from collections.abc import Mapping
from typing import Final

_MARK: Final = re.compile(r"^ *<!-- (write|insert|check)\b(.*?) ?-->\n", re.M)
_ARGUMENTS: Final = {
    "write": re.compile(r" (\S+)()"),
    "insert": re.compile(r" (\S+) after (.+)"),
    "check": re.compile(r" (\S+): (.+)"),
}
_BLOCK: Final = re.compile(r"( *)```\w*\n(.*?)^\1```$", re.M | re.S)


@dataclasses.dataclass(frozen=True)
class Step:
    """Something that a page says to do.

    Attributes:
        line: Line of the page, from 1.
        kind: `write`, `insert` or `check`.
        path: A file, or the folder of a check; from the root of the repository.
        argument: The line to insert after, or the command.
        text: The lines of the block.
    """

    line: int
    kind: str
    path: str
    argument: str
    text: str


class HowToError(Exception):
    """A step can't be done or a check fails; the message says where and what."""


def steps(name: str, page: str) -> list[Step]:
    """Reads the steps of a page in their order.

    Args:
        name: Name of the page, for errors.
        page: Its text.

    Raises:
        HowToError: If a mark lacks a path, a command or its block.
    """
    found = []
    for mark in _MARK.finditer(page):
        kind, rest = mark.groups()
        line = page.count("\n", 0, mark.start()) + 1
        arguments = _ARGUMENTS[kind].fullmatch(rest)
        block = _BLOCK.match(page, mark.end())
        if arguments is None or (block is None and kind != "check"):
            raise HowToError(f"{name}:{line}: not a step: `{mark[0].strip()}`, then a block")
        text = textwrap.dedent(block[2]) if block is not None and kind != "check" else ""
        found.append(Step(line, kind, arguments[1], arguments[2], text))
    return found


def do(step: Step, tree: pathlib.Path, variables: Mapping[str, str]) -> None:
    """Does a step.

    Args:
        step: The step.
        tree: A copy of the repository.
        variables: Environment of a check.

    Raises:
        HowToError: If it can't be done, or the check fails.
    """
    target = tree / step.path
    if step.kind == "write":
        if target.exists() or not target.parent.is_dir():
            raise HowToError(f"{step.path} is there already, or its folder is not")
        target.write_text(step.text, encoding="utf-8")
    elif step.kind == "insert":
        if not target.is_file():
            raise HowToError(f"there is no file {step.path}")
        lines = target.read_text(encoding="utf-8").splitlines()
        places = [at for at, line in enumerate(lines) if line.strip() == step.argument]
        if len(places) != 1:
            raise HowToError(f"{step.path} has the line `{step.argument}` {len(places)} times")
        (at,) = places
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        lines.insert(at + 1, textwrap.indent(step.text, indent).rstrip("\n"))
        target.write_text("\n".join([*lines, ""]), encoding="utf-8")
    else:
        done = subprocess.run(
            ["bash", "-c", step.argument],
            cwd=target,
            env=dict(variables),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise HowToError(
                f"`{step.argument}` ends with {done.returncode}:\n{done.stdout}{done.stderr}"
            )


def run(page: pathlib.Path, tree: pathlib.Path, variables: Mapping[str, str]) -> int:
    """Does what a page says.

    Args:
        page: The page.
        tree: A copy of the repository, which is changed.
        variables: Environment of the checks.

    Returns:
        The number of checks.

    Raises:
        HowToError: If a step can't be done or a check fails.
    """
    found = steps(page.name, page.read_text(encoding="utf-8"))
    for step in found:
        try:
            do(step, tree, variables)
        except HowToError as error:
            raise HowToError(f"{page.name}:{step.line}: {error}") from None
    return sum(step.kind == "check" for step in found)
