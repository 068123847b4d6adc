"""What is tried, and what came of it."""

from __future__ import annotations

import pickle
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """A valid input, and what is changed in it.

    Attributes:
        base: The number of the valid input, of those that the target has.
        edits: The seed of each change, in order. Without some of them, it is a smaller case.
    """

    base: int
    edits: tuple[int, ...]


def draw(seed: int, number: int, bases: int, most: int) -> Case:
    """Returns a case of a run; the same for the same numbers.

    Args:
        seed: The seed of the run.
        number: The number of the case in it.
        bases: How many valid inputs there are.
        most: Changes, at most; none in one case of sixteen.
    """
    choose = random.Random(f"{seed} {number}")
    count = 0 if choose.random() < 1 / 16 else choose.randint(min(1, most), most)
    return Case(choose.randrange(bases), tuple(choose.getrandbits(32) for _ in range(count)))


class Status(StrEnum):
    """How a case ended."""

    TAKEN = "taken"
    """It was computed, and where there is something to compare with, that is equal."""
    REFUSED = "refused"
    """A typed error."""
    BOUNDED = "ended in TensorFlow"
    """TensorFlow ended its process, where a process around it turns that into an error."""
    FAULT = "fault"
    """Anything else."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        status: How it ended.
        text: What is wrong, or what the error said.
        kind: Faults with the same kind have the same cause.
    """

    status: Status
    text: str = ""
    kind: str = ""


Reference = Callable[[bool], None]
"""Told when a program that is not ours begins to compute (true), and when it ends (false)."""


class Target(ABC):
    """A program under test; lives in a process of its own."""

    contained = False
    """Whether users have a process around it, so that its end by a signal is an error of theirs."""
    greedy = False
    """Whether results are as large as the input says, so that too much memory is not a fault."""
    most_edits = 4
    input_name = ""
    """What the file or folder is called that `write` writes."""

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Takes an empty folder for its files."""
        self.folder = folder
        self.reference = reference

    def kept(self, make: Callable[[], T]) -> T:
        """Returns what `make` returns, which only the first process of a run calls."""
        path = self.folder / "kept.pickle"
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_bytes(pickle.dumps(make()))
            part.replace(path)
        found: T = pickle.loads(path.read_bytes())
        return found

    @property
    @abstractmethod
    def bases(self) -> int:
        """How many valid inputs there are."""

    @abstractmethod
    def write(self, case: Case, folder: Path) -> Path:
        """Writes the input of a case into an empty folder; returns its path."""

    @abstractmethod
    def check(self, path: Path) -> Outcome:
        """Runs the program on an input that `write` wrote, or that is in the corpus."""
