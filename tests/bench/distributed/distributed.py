"""Time and bytes per step of data-parallel training, in Rust and in Python.

Python's side is MultiWorkerMirroredStrategy. All workers run on this machine, so they share its
cores: the times tell what the collective ops cost, not how a cluster scales. Bytes are those that
the loopback interface counted.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tests.bench import machine

_TASK = flags.DEFINE_string("task", None, "The program of a Rust worker.", required=True)
_PEER = flags.DEFINE_string("peer", None, "The program of a Python worker.", required=True)
_STEPS = flags.DEFINE_integer("steps", 30, "Steps that are measured.", lower_bound=1)
_SECONDS = flags.DEFINE_float("seconds", 220, "After which nothing more is measured.")
_WORKERS = flags.DEFINE_list("workers", ["1", "2", "4"], "Numbers of workers.")


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


def measure(command: list[str], workers: int, end: float, **variables: str) -> tuple[float, float]:
    """Runs workers, and returns the slowest's median seconds per step, and bytes per step.

    Both are NaN if the workers have not ended at a time of the monotonic clock.
    """
    if time.monotonic() >= end:
        return math.nan, math.nan
    cluster = {"worker": free_addresses(workers)}
    before = loopback_bytes()
    processes = []
    for index in range(workers):
        config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        env = {**os.environ, "TF_CONFIG": json.dumps(config), "TF_CPP_MIN_LOG_LEVEL": "2"}
        env |= variables
        processes.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    medians = []
    for process in processes:
        try:
            out, _ = process.communicate(timeout=max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            for each in processes:
                each.kill()
                each.wait()
            return math.nan, math.nan
        if process.returncode != 0:
            raise RuntimeError(f"{command}: {out}")
        medians.append(statistics.median(map(float, re.findall(r"^second (\S+)", out, re.M))))
    return max(medians), (loopback_bytes() - before) / _STEPS.value


def main(argv: Sequence[str]) -> None:
    """Prints a row for each number of workers."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    print(f"{machine.processor()}; {_STEPS.value} steps; load {os.getloadavg()[0]:.1f}\n")
    columns = ["workers", "eager, ms", "traced, ms", "Python, ms", "traced / Python"]
    print("| " + " | ".join([*columns, "Rust, MB", "Python, MB"]) + " |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    steps = str(_STEPS.value)
    end = time.monotonic() + _SECONDS.value
    for workers in map(int, _WORKERS.value):
        eager, _ = measure([_TASK.value, "bench", steps], workers, end)
        traced, moved = measure([_TASK.value, "bench", steps], workers, end, TRACED="1")
        python, python_moved = measure([_PEER.value, steps], workers, end)
        print(
            f"| {workers} | {eager * 1e3:.2f} | {traced * 1e3:.2f} | {python * 1e3:.2f} "
            f"| {traced / python:.2f} | {moved / 1e6:.2f} | {python_moved / 1e6:.2f} |"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    app.run(main)
