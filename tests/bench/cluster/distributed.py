"""Time and bytes per step of data-parallel training, in Rust and in Python.

Python's side is MultiWorkerMirroredStrategy. All workers run on this machine, so they share its
cores: the times tell what the collective ops cost, not how a cluster scales. Bytes are those that
the loopback interface counted between the first and the last step, also of other programs.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from absl import app, flags

from tests.bench import report

_TASK = flags.DEFINE_string("task", None, "The program of a Rust worker.", required=True)
_PEER = flags.DEFINE_string("peer", None, "The program of a Python worker.", required=True)
_STEPS = flags.DEFINE_integer("steps", 30, "Steps that are measured.", lower_bound=3)
_LIMIT = flags.DEFINE_float("limit", 90, "Seconds after which workers are given up.")
_WORKERS = flags.DEFINE_list("workers", ["1", "2", "4"], "Numbers of workers.")
_WRITE = flags.DEFINE_string(
    "write", None, "The page to write, such as docs/performance/distributed.md."
)

SIZES: Final = (784, 512, 512, 10)
"""Inputs, hidden layers and classes of the network of both sides."""

PAGE: Final = """\
# Training steps on several workers

`tools/bazel run -c opt //tests/bench:distributed -- --write docs/performance/distributed.md` trains
a network of {weights:,} weights on 1, 2 and 4 workers, each a process with a batch of 64. Rust
has `MultiWorker`, eager and with traced steps. Python has `MultiWorkerMirroredStrategy` in a
`tf.function`. A time is the median of {steps} steps of the slowest worker.

{where}.
All workers share these cores, so more of them are slower: the table tells what the collective ops
cost, not how a cluster scales.

{table}

The bytes of a step are those that the loopback interface counted. A ring over n workers has to send
2 (n - 1) times the gradients, which are {megabytes:.2f} MB.
"""


@dataclasses.dataclass(frozen=True)
class Side:
    """A program whose workers are measured."""

    name: str
    command: Sequence[str]
    variables: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Reading:
    """What workers took for a step: seconds, and bytes that all of them sent."""

    seconds: float
    bytes: float


class WorkersError(Exception):
    """Workers that did not end, or ended with an error."""


class Worker:
    """A worker's process. A thread reads what it prints, a line for each step."""

    def __init__(self, command: Sequence[str], env: dict[str, str], errors: Path) -> None:
        self.seconds: list[float] = []
        self.sent: list[int] = []
        self._errors = errors
        self._others: list[str] = []
        with errors.open("w") as file:
            self._process = subprocess.Popen(
                command,
                env=env,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.match(r"second (\S+)$", line)
            if found:
                self.sent.append(loopback_bytes())
                self.seconds.append(float(found.group(1)))
            else:
                self._others.append(line)

    def is_done(self, steps: int) -> bool:
        """Whether the worker has made its steps.

        Raises:
            WorkersError: it ended before.
        """
        if len(self.seconds) < steps and self._process.poll() is not None:
            self._reader.join(timeout=10)
            if len(self.seconds) < steps:
                status = self._process.returncode
                raise WorkersError(f"a worker ended with status {status}: {self.say()}")
        return len(self.seconds) >= steps

    def say(self) -> str:
        """Returns how far the worker is, and the end of what it printed otherwise."""
        told = "".join(self._others) + self._errors.read_text(errors="replace")
        return f"{len(self.seconds)} steps; {told[-2000:].strip() or 'it printed nothing'}"

    def end(self) -> None:
        """Ends the process: the end of TensorFlow's cluster would wait for the other workers."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(timeout=10)


def loopback_bytes() -> int:
    """Returns the bytes that the loopback interface has sent since the start of the machine."""
    text = Path("/proc/net/dev").read_text(encoding="utf-8")
    found = re.search(r"^\s*lo:\s*(\d+)", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def free_addresses(count: int) -> list[str]:
    """Returns addresses of loopback that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses


def measure(side: Side, workers: int, steps: int, limit: float) -> Reading:
    """Runs workers: the median seconds of the slowest worker's steps, and the bytes of a step.

    Raises:
        WorkersError: a worker ended with an error, or was not done after `limit` seconds.
    """
    cluster = {"worker": free_addresses(workers)}
    begun = time.monotonic()
    is_training = False
    with tempfile.TemporaryDirectory() as folder:
        running: list[Worker] = []
        try:
            for index in range(workers):
                config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
                env = {**os.environ, "TF_CONFIG": json.dumps(config), **side.variables}
                env.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
                running.append(Worker(side.command, env, Path(folder, f"{index}.txt")))
            # All are asked: one that is gone may stand behind another that waits for it.
            while not all([worker.is_done(steps) for worker in running]):  # noqa: C419
                spent = time.monotonic() - begun
                if not is_training and all(worker.seconds for worker in running):
                    is_training = True
                    report.tell(f"  steps begin after {spent:.0f} s")
                if spent > limit:
                    far = "\n".join(worker.say() for worker in running)
                    raise WorkersError(f"workers are not done after {limit:.0f} s:\n{far}")
                time.sleep(0.05)
            first = running[0]
            sent = (first.sent[steps - 1] - first.sent[0]) / (steps - 1)
            slowest = max(statistics.median(worker.seconds[:steps]) for worker in running)
            return Reading(slowest, sent)
        finally:
            for worker in running:
                worker.end()


def row(workers: int, found: Sequence[Reading | None]) -> str:
    """Returns a row of the table: workers, then the readings of eager, traced and Python."""
    _, traced, python = found
    times = [f"{one.seconds * 1e3:.2f}" if one else "-" for one in found]
    ratio = f"{traced.seconds / python.seconds:.2f}" if traced and python else "-"
    sent = [f"{one.bytes / 1e6:.2f}" if one else "-" for one in (traced, python)]
    return f"| {' | '.join([str(workers), *times, ratio, *sent])} |"


def main(argv: Sequence[str]) -> int:
    """Measures and prints the table, and returns the exit status: 1 if a measurement failed."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    steps = str(_STEPS.value)
    # On a busy machine a worker may be silent for more than the usual ten seconds at its start.
    patient = {"HEARTBEAT": "60"}
    sides = (
        Side("Rust, eager", [_TASK.value, "bench", steps], patient),
        Side("Rust, traced", [_TASK.value, "bench", steps], patient | {"TRACED": "1"}),
        Side("Python", [_PEER.value, steps]),
    )
    where, status = report.when_and_where(), 0
    columns = ["workers", "eager, ms", "traced, ms", "Python, ms", "traced / Python"]
    lines = [f"| {' | '.join([*columns, 'Rust, MB', 'Python, MB'])} |", "|---:" * 7 + "|"]
    for workers in map(int, _WORKERS.value):
        found: list[Reading | None] = []
        for side in sides:
            report.tell(f"{workers} workers, {side.name}")
            try:
                one = measure(side, workers, _STEPS.value, _LIMIT.value)
                report.tell(f"  {one.seconds * 1e3:.2f} ms and {one.bytes / 1e6:.2f} MB per step")
                found.append(one)
            except WorkersError as failure:
                report.tell(f"  {failure}")
                found.append(None)
                status = 1
        lines.append(row(workers, found))
    table = "\n".join(lines)
    print(table, flush=True)
    if _WRITE.value and status == 0:
        weights = sum((rows + 1) * columns for rows, columns in itertools.pairwise(SIZES))
        page = PAGE.format(
            weights=weights,
            megabytes=weights * 4 / 1e6,
            steps=steps,
            where=where,
            table=table,
        )
        report.write(_WRITE.value, page)
    return status


if __name__ == "__main__":
    app.run(main)
