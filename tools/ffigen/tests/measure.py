"""Prints how long ffigen takes over all headers of the installed TensorFlow.

    python -m tools.ffigen.tests.measure --runs=7
"""

from __future__ import annotations

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


def seconds(*arguments: str) -> float:
    """Returns the wall time of one run of the program, with the start of Python."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "tools.ffigen.main", f"--out={out}", *arguments]
        start = time.perf_counter()
        subprocess.run([*command, f"--include_dir={include_dir()}"], check=True)
        return time.perf_counter() - start


def main(argv: Sequence[str]) -> None:
    """Runs with and without rustfmt, in turns."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    kinds = {"without rustfmt": [], "with rustfmt": [f"--rustfmt={rustfmt()}"]}
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(_RUNS.value):
        for name, arguments in kinds.items():
            times[name].append(seconds(*arguments))
    for name, found in times.items():
        middle, low, high = statistics.median(found), min(found), max(found)
        print(f"{name}: median {middle:.2f} s, {low:.2f} to {high:.2f} s over {len(found)} runs")


if __name__ == "__main__":
    app.run(main)
