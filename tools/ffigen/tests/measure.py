"""Prints how long ffigen takes over all headers of the installed TensorFlow.

python -m tools.ffigen.tests.measure --runs=7
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from absl import app, flags

from tools.ffigen.tests.suite import rustfmt
from tools.ffigen.tests.wheel import include_dir

_RUNS = flags.DEFINE_integer("runs", 7, "How often.", lower_bound=1)


def seconds(*arguments: str) -> tuple[float, float]:
    """Returns wall time and CPU time of one run of the program, with the start of Python."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "tools.ffigen.main", f"--out={out}", *arguments]
        before, start = os.times(), time.perf_counter()
        subprocess.run([*command, f"--include_dir={include_dir()}"], check=True)
        wall, after = time.perf_counter() - start, os.times()
    user = after.children_user - before.children_user
    return wall, user + after.children_system - before.children_system


def main(argv: Sequence[str]) -> None:
    """Runs with and without rustfmt, in turns."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    kinds = {"without rustfmt": [], "with rustfmt": [f"--rustfmt={rustfmt()}"]}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    for _ in range(_RUNS.value):
        for name, arguments in kinds.items():
            times[name].append(seconds(*arguments))
    for name, found in times.items():
        for what, values in zip(("wall", "CPU"), zip(*found, strict=True), strict=True):
            middle, low, high = statistics.median(values), min(values), max(values)
            print(f"{name}, {what}: median {middle:.2f} s, {low:.2f} to {high:.2f} s")


if __name__ == "__main__":
    app.run(main)
