"""Errors of the conversion: every problem with its place, and an exit code per kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that stands in the way.

    Attributes:
        where: A file, flag, layer or node.
        what: What failed, with what was expected and what was available.
        advice: What to do about it, or empty.
    """

    where: str
    what: str
    advice: str = ""

    def __str__(self) -> str:
        """Returns the problem on one line."""
        advice = f" ({self.advice})" if self.advice else ""
        return f"{self.where}: {self.what}{advice}"


class ConversionError(Exception):
    """The model was not converted and nothing was written.

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
    def of(cls, problems: Iterable[Problem]) -> ConversionError:
        """Returns an error with many problems, each once, in order."""
        return cls(*dict.fromkeys(problems))


class UsageError(ConversionError):
    """The command line makes no sense, or the output can't be written."""

    exit_code = 2
    title = "wrong usage"


class FileError(ConversionError):
    """The model file is missing, damaged or unsafe."""

    exit_code = 3
    title = "the model can't be read"


class FeaturesError(ConversionError):
    """The recorded inputs and predictions don't belong to the model."""

    exit_code = 4
    title = "the recorded features don't match the model"


class UnsupportedError(ConversionError):
    """The model is well formed but needs what there is no kernel for."""

    exit_code = 6
    title = "the model needs what is not supported"
