"""Runs folders of tests on the device and on TensorFlow's CPU, and compares them test by test."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import Progress

from tests.keras_suite.page import Folder
from tests.keras_suite.running import Outcome, RunError, Runner


def compare(name: str, files: Sequence[pathlib.Path], cpu: Runner, device: Runner) -> Folder:
    """Runs the files of a folder on both; what differs runs once more, alone.

    Where each file has a process of its own, what differs in a file runs together.
    """
    tests = [str(file) for file in files]
    folder = Folder(name, cpu.run(tests), device.run(tests), device.suite.may_skip)
    again = dict(folder.device)
    differing = sorted(folder.differing())
    if device.suite.apart:
        groups = [list(group) for _, group in itertools.groupby(differing, _file)]
    else:
        groups = [[test] for test in differing]
    for group in groups:
        found = device.run([str(device.suite.root / _known(test)) for test in group])
        again |= {test: _result(found, test, folder) for test in group}
    return dataclasses.replace(folder, device=again)


def _known(test: str) -> str:
    """Returns what pytest knows a test by: all cases of one whose name has a place in memory."""
    return test.partition("[")[0] if "0x" in test else test


def _file(test: str) -> str:
    return test.partition("::")[0]


def _result(found: dict[str, Outcome], test: str, before: Folder) -> Outcome:
    return found.get(test, before.on_device(test))


def compare_all(
    cpu: Runner, device: Runner, jobs: int, date: str, write: Callable[[list[Folder]], None]
) -> list[Folder]:
    """Runs all folders of a suite; returns them by name.

    Args:
        cpu: Where tests run without the plug-in.
        device: Where the same tests run with it.
        jobs: How many folders run at a time.
        date: The day that the lines of progress name.
        write: Called with what is done after each folder, so that a run that is ended leaves its
            page.

    Raises:
        RunError: If a process ends outside of a test.
    """
    found: list[Folder] = []
    folders = device.suite.folders
    with (
        Progress(console=Console(stderr=True)) as progress,
        concurrent.futures.ThreadPoolExecutor(jobs) as pool,
    ):
        task = progress.add_task("folders", total=len(folders))
        running = [pool.submit(compare, *each, cpu, device) for each in folders.items()]
        for future in concurrent.futures.as_completed(running):
            try:
                folder = future.result()
            except RunError:
                pool.shutdown(cancel_futures=True)
                raise
            found.append(folder)
            print(folder.row(date), file=sys.stderr, flush=True)
            progress.advance(task)
            found.sort(key=lambda folder: folder.name)
            write(found)
    return found
