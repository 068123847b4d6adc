"""A run finds every kind of fault, says which, and writes the smallest input of each."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import edits, tables
from tests.fuzz.campaign import Plan, run
from tests.fuzz.case import Case, Outcome, Reference, Status, Target, draw
from tests.fuzz.clock import Clock, used
from tests.fuzz.worker import Limits, Worker


class Faulty(Target):
    """Has a fault of each kind; edits ask for them."""

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Keeps nothing."""
        super().__init__(folder, reference)
        self.memory: list[bytes] = []

    @property
    def bases(self) -> int:
        """One."""
        return 1

    def write(self, case: Case, folder: Path) -> Path:
        """Writes what each edit asks for."""
        path = folder / "todo.json"
        path.write_text(json.dumps([edit % 6 for edit in case.edits]))
        return path

    def check(self, path: Path) -> Outcome:
        """Does the worst of what is asked for."""
        todo = max(json.loads(path.read_text()), default=0)
        if todo == 1:
            raise ValueError("a defect")
        if todo == 2:
            os.abort()
        if todo == 3:
            time.sleep(60)
        if todo == 4:
            self.memory.append(b"x" * (300 << 20))
            time.sleep(60)
        if todo == 5:
            self.reference(True)
            os.abort()
        return Outcome(Status.TAKEN)


def test_every_kind_of_fault_is_found(tmp_path: Path) -> None:
    worker = Worker(Faulty, Limits(seconds=2, memory=256 << 20, patience=2))
    said: list[str] = []
    try:
        found = run(Plan("faulty", 12, folder=tmp_path), worker, said.append)
    finally:
        worker.close()
    assert found.cases == 12
    worst = [max((e % 6 for e in draw(0, n, 1, 4).edits), default=0) for n in range(12)]
    assert set(worst) >= {2, 3, 4, 5}
    assert found.count[Status.BOUNDED] == worst.count(5)
    assert found.faults == sum(w in (1, 2, 3, 4) for w in worst)
    kinds = {
        2: "the process ended with -6",
        3: "not done after 4 s",
        4: "more than 0.25 GiB of memory",
    }
    assert found.kinds == {kind: worst.count(w) for w, kind in kinds.items()}
    for w, kind in kinds.items():
        folder = tmp_path / "faulty" / f"0-{worst.index(w)}"
        assert json.loads((folder / "todo.json").read_text()) == [w]
        assert (folder / "report.txt").read_text().startswith(kind)


class Slow(Target):
    """Computes, or waits, as long as its case says."""

    @property
    def bases(self) -> int:
        """It computes, or it waits."""
        return 2

    def write(self, case: Case, folder: Path) -> Path:
        """Writes which of both."""
        path = folder / "base.txt"
        path.write_text(str(case.base))
        return path

    def check(self, path: Path) -> Outcome:
        """Takes three seconds of a processor, or three seconds."""
        clock = [time.monotonic, time.process_time][int(path.read_text())]
        end = clock() + 3
        while clock() < end:
            time.sleep(0.1) if clock is time.monotonic else sum(range(10000))
        return Outcome(Status.TAKEN)


def test_what_waits_for_a_processor_is_not_late() -> None:
    worker = Worker(Slow, Limits(seconds=1, patience=1000))
    try:
        assert worker.run(Case(0, ())).status is Status.TAKEN
        outcome = worker.run(Case(1, ()))
    finally:
        worker.close()
    assert outcome.status is Status.FAULT
    assert outcome.kind == "not done after 1 s of a processor"


def test_processes_of_a_process_count() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    busy = "import time; end = time.process_time() + 60\nwhile time.process_time() < end: pass"
    with subprocess.Popen([sys.executable, "-c", code, busy]) as process:
        try:
            clock = Clock(process.pid, 1, 1000)
            while not (late := clock.over()):
                time.sleep(0.1)
        finally:
            for child in (
                Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            ):
                os.kill(int(child), signal.SIGKILL)
    assert late == "not done after 1 s of a processor"
    assert used(process.pid) == 0.0


def test_a_defect_is_told_with_its_place() -> None:
    worker = Worker(Faulty, Limits())
    try:
        outcome = worker.run(Case(0, (1,)))
    finally:
        worker.close()
    assert outcome.status is Status.FAULT
    assert outcome.kind.startswith("ValueError at campaign_test.py:")


def test_a_target_that_cannot_start_is_an_error() -> None:
    def make(folder: Path, reference: Reference) -> Target:
        raise OSError("nothing there")

    with pytest.raises(RuntimeError, match="nothing there"):
        Worker(make, Limits()).start()


@pytest.mark.parametrize("seed", range(50))
def test_changed_trees_can_be_written(seed: int) -> None:
    item: Any = {"a": [1, {"b": "c"}, 2.5], "d": None, "e": {"f": [True, []]}}
    choose = random.Random(seed)
    for _ in range(8):
        edits.tree(choose, item)
    json.dumps(item)


def test_tables_are_read_as_they_are_written() -> None:
    entries = {b"": b"header", b"a" * 200: b"", b"b": bytes(range(256))}
    assert tables.read(tables.written(entries.items())) == entries
    # The CRC-32C of nine digits, masked as a table masks it.
    plain = 0xE3069283
    rotated = (plain >> 15 | plain << 17) + 0xA282EAD8
    assert tables.masked_crc(b"123456789") == rotated % 2**32
