"""What valgrind finds in a process that has TensorFlow in it, which has findings of its own."""

from __future__ import annotations

import pathlib
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterable

# What valgrind puts in the place of the C library, the library, and the linker.
C_LIBRARY = ("vgpreload", "libc.so", "libstdc++.so", "ld-linux")


def valgrind(report: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program under valgrind, which writes its findings as XML."""
    command = [
        "valgrind",
        "--leak-check=full",
        "--show-leak-kinds=definite,indirect",
        "--num-callers=40",
        "--xml=yes",
        f"--xml-file={report}",
    ]
    command += arguments
    return subprocess.run(command, capture_output=True, text=True, check=False)


def read(report: pathlib.Path) -> list[ET.Element]:
    """Returns the findings of a report."""
    return list(ET.parse(report).getroot().iter("error"))


def describe(error: ET.Element) -> str:
    """Kind and stack of a finding, one frame per line."""
    lines = [error.findtext("kind", "?") + ": " + error.findtext("what", "")]
    lines[0] += error.findtext("xwhat/text", "")
    for stack in error.iter("stack"):
        for frame in stack.iter("frame"):
            where = pathlib.Path(frame.findtext("obj", "?")).name
            lines.append(f"    {frame.findtext('fn', '???')} ({where})")
    return "\n".join(lines)


def objects(stack: ET.Element) -> list[str]:
    """The names of the files in which the frames of a stack lie, innermost first."""
    return [pathlib.Path(frame.findtext("obj", "")).name for frame in stack.iter("frame")]


def is_inside(error: ET.Element, library: str) -> bool:
    """Whether a frame of the finding lies in a library."""
    return any(library in objects(stack) for stack in error.iter("stack"))


def is_by(error: ET.Element, program: str, depth: int = 1) -> bool:
    """Whether a program did it itself: the first frame outside the C library lies in it.

    With a `depth` of 2 also whether a function that the program called did it, as one does that
    returns an object.
    """
    for stack in error.iter("stack"):
        names = [name for name in objects(stack) if not name.startswith(C_LIBRARY)]
        if program in names[:depth]:
            return True
    return False


def is_leak(error: ET.Element) -> bool:
    """Whether the finding is memory that nothing refers to at the end."""
    return error.findtext("kind", "").startswith("Leak_")


def functions(error: ET.Element) -> set[str]:
    """The names of all functions in the stacks of a finding."""
    return {frame.text or "" for frame in error.iter("fn")}


def report_of(errors: Iterable[ET.Element]) -> str:
    """All findings as text."""
    return "\n".join(describe(error) for error in errors)
