"""Errors of the converters: every problem with its place, and an exit code per kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Self

from tools.codegen.rust import one_line

# Problems that a terminal shows.
_SHOWN = 100


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that stands in the way.

    What can't be printed is shown as Rust escapes it, and the end of long texts is left out.

    Attributes:
        where: A file, line, flag, layer or node.
        what: What failed, with what was expected and what was available.
        advice: What to do about it, or empty.
    """

    where: str
    what: str
    advice: str = ""

    def __post_init__(self) -> None:
        """Makes each text fit a terminal: it may quote a file of a stranger."""
        for name, longest in (("where", 500), ("what", 2000), ("advice", 500)):
            object.__setattr__(self, name, one_line(getattr(self, name), longest))

    def __str__(self) -> str:
        """Returns the problem on one line."""
        advice = f" ({self.advice})" if self.advice else ""
        return f"{self.where}: {self.what}{advice}"


class ConversionError(Exception):
    """The input was not converted and nothing was written.

    Attributes:
        problems: What stands in the way, never empty.
    """

    exit_code = 1
    title = "the conversion failed"

    def __init__(self, *problems: Problem) -> None:
        """Keeps the problems.

        Args:
            *problems: At least one.

        Raises:
            ValueError: There is none.
        """
        if not problems:
            raise ValueError("an error needs a problem")
        self.problems = problems
        super().__init__("\n".join(str(p) for p in problems))

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """Returns an error with many problems, each once, in order."""
        return cls(*dict.fromkeys(problems))

    def text(self, program: str) -> str:
        """Returns what a program prints before it exits: its name, the title, a problem a line."""
        shown = [f"  {p}" for p in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            shown.append(f"  and {len(self.problems) - _SHOWN} more; --json shows all")
        return "\n".join([f"{program}: {self.title}", *shown])

    def report(self) -> dict[str, object]:
        """Returns the same for scripts, as JSON values."""
        problems = [asdict(p) for p in self.problems]
        return {"ok": False, "error": type(self).__name__, "problems": problems}


class UsageError(ConversionError):
    """The command line makes no sense, or the output can't be written."""

    exit_code = 2
    title = "wrong usage"


class UnsupportedError(ConversionError):
    """The input is well formed, and there is no way to convert it."""

    exit_code = 6
    title = "not supported"
