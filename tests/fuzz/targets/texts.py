"""What an error of a converter has to be."""

from __future__ import annotations

from tests.fuzz.case import Outcome, Status
from tools.codegen.conversion import ConversionError

# Longest text of an error: `Problem` keeps each of its texts short, and a hundred are shown.
_LONGEST = 400_000


def refused(err: ConversionError, program: str) -> Outcome:
    """Returns the outcome of an error, which has to be one that a person can read."""
    text = err.text(program)
    if not all(c.isprintable() or c == "\n" for c in text):
        return Outcome(Status.FAULT, f"an error can't be printed: {text!r}", "unprintable")
    if len(text) > _LONGEST or not err.problems:
        return Outcome(Status.FAULT, f"an error of {len(text)} characters", "long")
    return Outcome(Status.REFUSED, text)
