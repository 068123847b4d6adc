"""Errors of a generator: what failed, where, what was expected, what was available."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tools.codegen.conversion import Problem


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


Finding: TypeAlias = tuple[Location, str]
"""A place in the input, and what failed there: what was expected, what was available."""


class CodegenError(Exception):
    """Every problem that one stage found in its input; the stage wrote nothing.

    Attributes:
        found: The places and what failed there, sorted, never empty.
    """

    def __init__(self, found: Iterable[Finding]) -> None:
        """Sorts what was found by place.

        Args:
            found: At least one place with what failed there.

        Raises:
            ValueError: There is none.
        """
        self.found = tuple(sorted(found))
        if not self.found:
            raise ValueError("CodegenError needs at least one problem")
        super().__init__("\n".join(str(p) for p in self.problems))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The same for people: `file:line`, and `error: text` as compilers print it."""
        return tuple(Problem(str(where), f"error: {what}") for where, what in self.found)

    @classmethod
    def at(cls, where: Location, what: str) -> CodegenError:
        """Returns an error with a single problem.

        Args:
            where: The place in the input.
            what: What failed.
        """
        return cls([(where, what)])


class Collector:
    """Collects problems, so that one report names every unsupported item."""

    def __init__(self) -> None:
        """Starts with no problem."""
        self._found: list[Finding] = []

    def add(self, where: Location, what: str) -> None:
        """Notes a problem.

        Args:
            where: The place in the input.
            what: What failed.
        """
        self._found.append((where, what))

    def extend(self, error: CodegenError) -> None:
        """Notes every problem of an error.

        Args:
            error: The error that a part of the work raised.
        """
        self._found.extend(error.found)

    def check(self) -> None:
        """Raises what was collected.

        Raises:
            CodegenError: At least one problem was noted.
        """
        if self._found:
            raise CodegenError(self._found)
