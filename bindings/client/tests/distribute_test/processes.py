"""Tasks of a cluster on loopback, each a process: the program `task`, or Python."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

TASK = str(Path(os.environ["TASK"]).absolute())
# Longer than any of these trainings, shorter than the test's own limit.
LIMIT = 150


def free_addresses(count: int) -> list[str]:
    """Returns addresses of loopback that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses


class Tasks:
    """Processes of a test, which end with it."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []

    def end(self) -> None:
        """Ends those that run."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def start(
        self,
        cluster: dict[str, list[str]],
        job: str,
        index: int,
        command: list[str],
        **variables: str,
    ) -> subprocess.Popen[str]:
        """Starts a task of a cluster; one process alone without a cluster."""
        task = {"type": job, "index": index}
        config = {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} if cluster else {}
        process = subprocess.Popen(
            command,
            env={**os.environ, **config, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def workers(self, count: int, *arguments: str, **variables: str) -> list[str]:
        """Runs workers, and returns what they printed."""
        cluster = {"worker": free_addresses(count)}
        command = [TASK, *arguments]
        started = [
            self.start(cluster, "worker", index, command, **variables) for index in range(count)
        ]
        return [finished(process) for process in started]


def finished(process: subprocess.Popen[str], status: int = 0) -> str:
    """Waits for the end of a process, and returns what it printed."""
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == status, f"{process.args!r}: {out}\n{err[-3000:]}"
    return out


def values(text: str) -> list[tuple[str, float]]:
    """Returns all numbers, with the words before them."""
    found = []
    for line in text.splitlines():
        for name, value in re.findall(r"(\w+) (-?\d+\.\d+(?:e-?\d+)?)", line):
            found.append((" ".join([*line.split()[:2], name]), float(value)))
    return found


def assert_alike(found: str, expected: str, atol: float) -> None:
    """Compares what two processes printed."""
    ours, theirs = values(found), values(expected)
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    assert theirs
    for (name, value), (_, other) in zip(ours, theirs, strict=True):
        assert value == pytest.approx(other, abs=atol), name
