"""A worker that is killed at any moment: the others learn of it, and the training goes on."""

from __future__ import annotations

import os
import random
import re
import select
import subprocess
import time

import pytest

from bindings.client.tests.distribute_test.processes import (
    TASK,
    Tasks,
    assert_alike,
    finished,
    free_addresses,
)

# More with --test_env=KILLS=30.
KILLS = int(os.environ.get("KILLS", "4"))
WORKERS = 3
EPOCHS = "3"
# After the last of these, there is work for all for longer than the worker lives.
STEPS = 13
# Seconds that workers wait for each other at the start.
REGISTER = 20
# Seconds of a start in which a worker is killed, if it makes no step before.
START = 3.0
# Seconds from the death to the last error: the wait at the start, or the silence of a worker for
# 10 s. The rest is for a busy machine.
BOUND = 60


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns what one process prints that nobody kills."""
    folder = str(tmp_path_factory.mktemp("alone"))
    tasks = Tasks()
    try:
        return finished(tasks.start({}, "", 0, [TASK, "train", folder, EPOCHS]))
    finally:
        tasks.end()


def kill(victim: subprocess.Popen[str], step: int, delay: float) -> None:
    """Kills a worker so many seconds after a step; after its start, or at its first step, for 0."""
    assert victim.stdout is not None
    if not step:
        select.select([victim.stdout], [], [], delay)
    while step:
        line = victim.stdout.readline()
        assert line, "the worker ended before"
        if line.startswith(f"step {step} "):
            time.sleep(delay)
            break
    victim.kill()
    victim.wait()


def steps(printed: str) -> list[int]:
    """Returns the numbers of the steps that a worker made."""
    return [int(number) for number in re.findall(r"^step (\d+) ", printed, re.MULTILINE)]


@pytest.mark.parametrize("number", range(KILLS))
def test_a_worker_is_killed(tasks: Tasks, folder: str, alone: str, number: int) -> None:
    draw = random.Random(number)
    dead = number % WORKERS
    # A step takes some milliseconds, and a save with it.
    step, longest = (0, START) if number % 4 == 3 else (draw.randint(1, STEPS), 0.02)
    delay = draw.random() * longest
    variables = {"TRACED": "1"} if number % 2 else {}
    cluster = {"worker": free_addresses(WORKERS)}
    command = [TASK, "train", folder, EPOCHS]
    started = [
        tasks.start(cluster, "worker", index, command, REGISTER=str(REGISTER), **variables)
        for index in range(WORKERS)
    ]
    kill(started[dead], step, delay)
    begin = time.monotonic()
    ended = [process.communicate(timeout=2 * BOUND) for process in started]
    seconds = time.monotonic() - begin
    when = f"{delay * 1000:.0f} ms after step {step}"
    print(f"kill {number}: worker {dead} {when}; the others ended {seconds:.1f} s later")
    assert seconds < BOUND
    name = f"/job:worker/task:{dead} at {cluster['worker'][dead]}"
    made = 0
    for index, (printed, log) in enumerate(ended):
        if index == dead:
            continue
        made = max([made, *steps(printed)])
        assert started[index].returncode == 1, f"worker {index}: {printed}\n{log[-3000:]}"
        (error,) = re.findall(r"^error .*", printed, re.MULTILINE)
        assert name in error
    # Started again with one worker less, they go on from what was saved last. The chief saves after
    # the second and the fourth step of an epoch and at its end. It may die before that, or the
    # others may learn of its death before they have the result of its last step.
    for printed in tasks.workers(WORKERS - 1, *command[1:], **variables):
        words = " ".join(printed.split()[:2])
        assert made - 1 <= int(words.removeprefix("step ")) <= made + 2
        assert_alike(printed, alone[alone.index(f"{words} ") :], atol=1e-5)
