"""Errors of a generator: what failed, where, what was expected, what was available."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Location:
    """A place in an input: a file and, where known, a line and a column (both from 1)."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Returns `file`, `file:line` or `file:line:column`, as compilers print it."""
        parts = [self.file]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


@dataclass(frozen=True)
class Problem:
    """One thing in the input that the generator refuses.

    Attributes:
        where: The place in the input.
        what: What failed, with what was expected and what was available.
    """

    where: Location
    what: str

    def __str__(self) -> str:
        """Returns the problem on one line: `place: error: text`."""
        return f"{self.where}: error: {self.what}"


class CodegenError(Exception):
    """Every problem that one stage found in its input; the stage wrote nothing.

    Attributes:
        problems: The problems, sorted by place, never empty.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Sorts the problems by place.

        Args:
            problems: At least one problem.

        Raises:
            ValueError: There is no problem.
        """
        self.problems = tuple(sorted(problems, key=lambda p: (p.where, p.what)))
        if not self.problems:
            raise ValueError("CodegenError needs at least one problem")
        super().__init__("\n".join(str(p) for p in self.problems))

    @classmethod
    def at(cls, where: Location, what: str) -> CodegenError:
        """Returns an error with a single problem.

        Args:
            where: The place in the input.
            what: What failed.
        """
        return cls([Problem(where, what)])


class Collector:
    """Collects problems, so that one report names every unsupported item."""

    def __init__(self) -> None:
        """Starts with no problem."""
        self._problems: list[Problem] = []

    def add(self, where: Location, what: str) -> None:
        """Notes a problem.

        Args:
            where: The place in the input.
            what: What failed.
        """
        self._problems.append(Problem(where, what))

    def extend(self, error: CodegenError) -> None:
        """Notes every problem of an error.

        Args:
            error: The error that a part of the work raised.
        """
        self._problems.extend(error.problems)

    def check(self) -> None:
        """Raises what was collected.

        Raises:
            CodegenError: At least one problem was noted.
        """
        if self._problems:
            raise CodegenError(self._problems)
