"""A run of many cases: progress, counts, and the smallest input of each fault."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.fuzz.case import Case, Outcome, Status, draw
from tests.fuzz.worker import Worker

# Seconds between two lines of progress.
_PROGRESS = 10.0
# Seconds of a case that are told.
_SLOW = 5.0
# Faults of a kind that are written.
_OF_A_KIND = 3


@dataclass
class Found:
    """What a run saw.

    Attributes:
        cases: How many cases ran.
        seconds: How long they took.
        count: How many ended how.
        kinds: How many faults had the same cause.
        bounded: Ends of TensorFlow's process, by what was said.
    """

    cases: int = 0
    seconds: float = 0.0
    count: Counter[Status] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    bounded: Counter[str] = field(default_factory=Counter)

    @property
    def faults(self) -> int:
        """How many cases are faults."""
        return self.count[Status.FAULT]

    def summary(self, name: str, seed: int) -> str:
        """Returns one line."""
        parts = ", ".join(f"{self.count[s]:,} {s}" for s in Status if s is not Status.FAULT)
        return (
            f"{name}: {self.cases:,} cases of seed {seed} in {self.seconds:,.0f} s: {parts}, "
            f"{self.faults:,} faults"
        )


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        name: The format.
        cases: How many cases.
        seed: The seed of the run.
        first: The number of the first case.
        seconds: Seconds after which it ends; 0 for none.
        folder: Where inputs of faults are written.
    """

    name: str
    cases: int
    seed: int = 0
    first: int = 0
    seconds: float = 0.0
    folder: Path | None = None


def run(plan: Plan, worker: Worker, say: Callable[[str], None]) -> Found:
    """Runs cases; writes the smallest input of each fault.

    Args:
        plan: What to run.
        worker: Runs a case.
        say: Called with lines of progress and with each fault.
    """
    found = Found()
    worker.start()
    start = told = time.monotonic()
    for number in range(plan.first, plan.first + plan.cases):
        case = draw(plan.seed, number, worker.bases, worker.most_edits)
        began = time.monotonic()
        outcome = worker.run(case)
        if time.monotonic() - began > _SLOW:
            say(f"{plan.name}: case {number} took {time.monotonic() - began:.0f} s")
        found.cases += 1
        found.count[outcome.status] += 1
        if outcome.status is Status.BOUNDED:
            found.bounded[_plain(outcome.text)] += 1
        if outcome.status is Status.FAULT:
            found.kinds[outcome.kind] += 1
            if found.kinds[outcome.kind] <= _OF_A_KIND:
                smaller, outcome = smallest(case, outcome, worker.run)
                say(f"{plan.name}: case {number}: {outcome.text.strip().splitlines()[-1]}")
                if plan.folder is not None:
                    _keep(plan, number, smaller, outcome, worker)
        now = time.monotonic()
        found.seconds = now - start
        if now - told > _PROGRESS:
            told = now
            say(f"{found.summary(plan.name, plan.seed)} so far")
        if 0 < plan.seconds < found.seconds:
            break
    return found


def smallest(
    case: Case, outcome: Outcome, run_case: Callable[[Case], Outcome]
) -> tuple[Case, Outcome]:
    """Leaves out the edits without which a fault stays the same kind."""
    for edit in case.edits:
        tried = replace(case, edits=tuple(e for e in case.edits if e != edit))
        again = run_case(tried)
        if (again.status, again.kind) == (outcome.status, outcome.kind):
            case, outcome = tried, again
    return case, outcome


def _keep(plan: Plan, number: int, case: Case, outcome: Outcome, worker: Worker) -> None:
    """Writes the input of a fault, and what was wrong."""
    assert plan.folder is not None
    folder = plan.folder.absolute() / plan.name / f"{plan.seed}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    worker.write(case, folder)
    again = f"--format={plan.name} --seed={plan.seed} --first={number} --cases=1"
    text = f"{outcome.kind}\n{case}\ntools/bazel run //tests/fuzz -- {again}\n\n{outcome.text}\n"
    (folder / "report.txt").write_text(text, encoding="utf-8", errors="backslashreplace")


def _plain(text: str) -> str:
    """Returns a text without its numbers, so that alike ones are counted together."""
    return re.sub(r"\d+", "N", text)[:160]
