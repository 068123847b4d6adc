"""Training on several machines: tasks of a cluster on loopback, beside one process and Python.

Addresses are free ports of this machine. Each task is a process: the program `task`, or Python.
"""

from __future__ import annotations

import random
import re
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from bindings.client.tests.distribute_test.processes import (
    LIMIT,
    TASK,
    Tasks,
    assert_alike,
    finished,
    free_addresses,
)

PYTHON_WORKER = Path(__file__).with_name("python_worker.py")
# Seconds of a round of asynchronous training, also when a task dies, on a busy machine.
BOUND = 60

BY_OPS_AND_FUNCTIONS = pytest.mark.parametrize(
    "variables", [{}, {"TRACED": "1"}], ids=["ops", "traced"]
)


@pytest.mark.parametrize(("count", "traced"), [(2, False), (4, False), (2, True)])
def test_workers_train_as_one_process(tasks: Tasks, folder: str, count: int, traced: bool) -> None:
    # The last batch has 6 samples, and that of the validation 1: some parts are empty.
    alone = finished(tasks.start({}, "", 0, [TASK, "train", folder, "2"]))
    variables = {"TRACED": "1"} if traced else {}
    together = tasks.workers(count, "train", folder, "2", **variables)
    assert alone.count("step") == 10
    for worker in together:
        assert_alike(worker, alone, atol=1e-5)


def test_moving_means_are_alike(tasks: Tasks, folder: str) -> None:
    first, second = tasks.workers(2, "train", folder, "2", WITH_STATE="1")
    assert "moving_mean" in first
    assert first == second
    other = str(Path(folder) / "traced")
    traced, _ = tasks.workers(2, "train", other, "2", WITH_STATE="1", TRACED="1")
    assert_alike(traced, first, atol=1e-5)


@pytest.mark.parametrize("count", [2, 4])
def test_collective_ops(tasks: Tasks, count: int) -> None:
    for printed in tasks.workers(count, "reduce"):
        assert printed.endswith("reduced\n")


def test_a_cluster_of_one_trains_alone(tasks: Tasks, folder: str) -> None:
    alone = finished(tasks.start({}, "", 0, [TASK, "train", folder, "1"]))
    (one,) = tasks.workers(1, "train", folder, "1")
    assert_alike(one, alone, atol=1e-6)


@BY_OPS_AND_FUNCTIONS
def test_the_others_learn_of_a_dead_worker_and_go_on(
    tasks: Tasks, folder: str, variables: dict[str, str]
) -> None:
    alone = finished(tasks.start({}, "", 0, [TASK, "train", folder, "3"]))
    cluster = {"worker": free_addresses(3)}
    command = [TASK, "train", folder, "3"]
    started = [
        tasks.start(cluster, "worker", index, command, **more, **variables)
        for index, more in enumerate([{}, {"DIE_AT": "8"}, {}])
    ]
    finished(started[1], status=-signal.SIGABRT)
    begin = time.monotonic()
    for index in (0, 2):
        printed = finished(started[index], status=1)
        assert f"error /job:worker/task:1 at {cluster['worker'][1]}: " in printed
        assert "the worker is gone" in printed
        assert "step 8" in printed and "step 9" not in printed
    # The bound is the heartbeat, 10 s, and asking the workers; the rest is for a busy machine.
    assert time.monotonic() - begin < 60
    # All are started again, with one worker less, and end as if nobody had died. The chief saved
    # after step 7, the second of its epoch.
    for printed in tasks.workers(2, *command[1:], **variables):
        lines = printed.splitlines()
        assert lines[0].startswith("step 8 ")
        rest = alone[alone.index("step 8 ") :]
        assert_alike(printed, rest, atol=1e-5)


@BY_OPS_AND_FUNCTIONS
def test_a_worker_that_hangs_is_an_error_in_time(
    tasks: Tasks, folder: str, variables: dict[str, str]
) -> None:
    cluster = {"worker": free_addresses(2)}
    command, variables = [TASK, "train", folder, "2"], {**variables, "COLLECTIVE": "5"}
    tasks.start(cluster, "worker", 1, command, HANG_AT="3", **variables)
    printed = finished(tasks.start(cluster, "worker", 0, command, **variables), status=1)
    assert "kind DeadlineExceeded" in printed
    assert f"/job:worker/task:1 at {cluster['worker'][1]}" in printed
    assert "is too slow" in printed


def test_an_address_that_is_taken(tasks: Tasks) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        cluster = {"worker": [*free_addresses(1), address], "ps": free_addresses(1)}
        printed = finished(tasks.start(cluster, "worker", 1, [TASK, "reduce"]), status=1)
        assert f"error /job:worker/task:1 at {address}: AlreadyExists: can't listen" in printed
        cluster = {"worker": free_addresses(1), "ps": [address]}
        printed = finished(tasks.start(cluster, "ps", 0, [TASK, "server"]), status=1)
        assert f"error /job:ps/task:0 at {address}: AlreadyExists: can't listen" in printed


def test_a_worker_that_does_not_come(tasks: Tasks) -> None:
    cluster = {"worker": free_addresses(2)}
    began = tasks.start(cluster, "worker", 1, [TASK, "reduce"], REGISTER="3")
    printed = finished(began, status=1)
    assert f"error /job:worker/task:0 at {cluster['worker'][0]}: " in printed
    assert "nothing listens" in printed


def test_the_chief_does_not_wait_for_ever(tasks: Tasks) -> None:
    """TensorFlow itself keeps it longer than this test allows."""
    cluster = {"worker": free_addresses(2)}
    printed = finished(tasks.start(cluster, "worker", 0, [TASK, "reduce"], REGISTER="3"), status=1)
    assert f"error /job:worker/task:1 at {cluster['worker'][1]}: DeadlineExceeded: " in printed
    assert "the 2 workers did not meet" in printed


def test_a_malformed_config(tasks: Tasks) -> None:
    for text in ("{", '{"cluster": {"worker": "a:1"}}', '{"cluster": {"worker": ["a:1"]}}'):
        began = tasks.start({}, "", 0, [TASK, "reduce"], TF_CONFIG=text)
        printed = finished(began, status=1)
        assert printed.startswith("error TF_CONFIG: ")
        assert "kind InvalidArgument" in printed


@pytest.mark.parametrize("python", [0, 1])
def test_a_python_worker_beside_a_rust_worker(tasks: Tasks, python: int) -> None:
    cluster = {"worker": free_addresses(2)}
    commands = [[TASK, "mixed", "5"], [TASK, "mixed", "5"]]
    commands[python] = [sys.executable, str(PYTHON_WORKER), "5"]
    started = [
        tasks.start(cluster, "worker", index, command) for index, command in enumerate(commands)
    ]
    first, second = (finished(process) for process in started)
    losses = [float(value) for value in re.findall(r"loss (\S+)", first)]
    assert len(losses) == 5 and losses[-1] < losses[0]
    others = [float(value) for value in re.findall(r"loss (\S+)", second)]
    assert losses == pytest.approx(others, abs=1e-6)


class Coordinated:
    """Two servers, two workers and their coordinator, the chief, each a process."""

    def __init__(self, tasks: Tasks, folder: str, variables: dict[str, str]) -> None:
        addresses = free_addresses(5)
        self.cluster = {"ps": addresses[:2], "worker": addresses[2:4], "chief": addresses[4:]}
        self._servers = {
            (job, index): tasks.start(self.cluster, job, index, [TASK, "server"])
            for job in ("ps", "worker")
            for index in range(2)
        }
        self._folder = Path(folder)
        command = [TASK, "coordinate", folder]
        self._chief = tasks.start(self.cluster, "chief", 0, command, **variables)

    def kill(self, job: str, index: int) -> None:
        """Kills a task in the second round of the training, or soon afterwards."""
        latest, begin = self._folder / "checkpoint", time.monotonic()
        while not (latest.exists() and "line-" in latest.read_text()):
            assert self._chief.poll() is None, self.finished()
            assert time.monotonic() - begin < LIMIT
            time.sleep(0.01)
        # Later in some runs than in others.
        time.sleep(random.random() * 0.05)
        self._servers[job, index].kill()
        self._servers[job, index].wait()

    def finished(self, status: int = 0) -> str:
        """Waits for the end of the chief, and returns what it printed: no round took long."""
        printed = finished(self._chief, status)
        seconds = [float(found) for found in re.findall(r"round \d+ after (\S+) s", printed)]
        assert seconds and max(seconds) < BOUND
        return printed


def assert_line(printed: str) -> None:
    """Checks what the coordinator has learned."""
    found = dict(re.findall(r"(slope|offset) (\S+)", printed))
    assert float(found["slope"]) == pytest.approx(3, abs=0.05)
    assert float(found["offset"]) == pytest.approx(-1, abs=0.05)


@BY_OPS_AND_FUNCTIONS
def test_asynchronous_workers(tasks: Tasks, folder: str, variables: dict[str, str]) -> None:
    printed = Coordinated(tasks, folder, variables).finished()
    for line in (
        "on /job:ps/replica:0/task:0/device:CPU:0",
        "on /job:ps/replica:0/task:1/device:CPU:0",
        "used /job:worker/replica:0/task:0/device:CPU:0",
        "used /job:worker/replica:0/task:1/device:CPU:0",
    ):
        assert line in printed
    assert_line(printed)


@BY_OPS_AND_FUNCTIONS
def test_an_asynchronous_worker_that_dies(
    tasks: Tasks, folder: str, variables: dict[str, str]
) -> None:
    """The other one does its work."""
    running = Coordinated(tasks, folder, variables)
    running.kill("worker", 1)
    printed = running.finished()
    assert "saved round 9 " in printed
    assert "used /job:worker/replica:0/task:0/device:CPU:0" in printed
    assert_line(printed)


@BY_OPS_AND_FUNCTIONS
def test_a_parameter_server_that_dies(tasks: Tasks, folder: str, variables: dict[str, str]) -> None:
    """It is named, and not the workers that used its variable. Then the training goes on."""
    running = Coordinated(tasks, folder, variables)
    running.kill("ps", 1)
    printed = running.finished(status=1)
    saved = printed.count("saved round ")
    assert f"error /job:ps/task:1 at {running.cluster['ps'][1]}: " in printed
    assert "the server is gone with its variables" in printed
    assert "job:worker/task" not in printed[printed.index("error ") :].partition("(")[0]
    printed = Coordinated(tasks, folder, variables).finished()
    assert f"begins at round {saved}\n" in printed
    assert_line(printed)


def test_a_coordinator_without_a_server(tasks: Tasks, folder: str) -> None:
    addresses = free_addresses(3)
    cluster = {"ps": addresses[:1], "worker": addresses[1:2], "chief": addresses[2:]}
    tasks.start(cluster, "ps", 0, [TASK, "server"])
    began = tasks.start(cluster, "chief", 0, [TASK, "coordinate", folder], REGISTER="3")
    printed = finished(began, status=1)
    assert f"/job:worker/task:0 at {addresses[1]}" in printed
    assert "nothing listens" in printed
