"""Typed errors of mlf2rust: each says what failed, where, what was expected and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One reason to refuse an input.

    Attributes:
      where: file, line or key the problem was seen at.
      what: the problem, with the expected and the found value.
      advice: what the user can change; may be empty.
    """

    where: str
    what: str
    advice: str = ""

    def __str__(self) -> str:
        """Returns one line: place, problem, advice."""
        tail = f" ({self.advice})" if self.advice else ""
        return f"{self.where}: {self.what}{tail}"


class MlfError(Exception):
    """Base of all errors; carries every problem found, never only the first."""

    exit_code = 1
    title = "mlf2rust failed"

    def __init__(self, problems: Problem | Sequence[Problem]) -> None:
        """Wraps one problem or several."""
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__("\n".join(str(p) for p in self.problems))


class UsageError(MlfError):
    """The command line or a rule attribute cannot be used."""

    exit_code = 2
    title = "wrong usage"


class ArchiveError(MlfError):
    """The archive is damaged or unsafe."""

    exit_code = 3
    title = "archive refused"


class FormatError(MlfError):
    """A member of the archive does not have the form that TVM writes."""

    exit_code = 4
    title = "input not understood"


class MismatchError(MlfError):
    """Two members of the archive disagree; the message names both values."""

    exit_code = 5
    title = "the archive contradicts itself"


class UnsupportedError(MlfError):
    """The input is well formed, and mlf2rust cannot make a crate of it."""

    exit_code = 6
    title = "not supported"
