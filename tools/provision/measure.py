"""Measures the launcher: provisioning into an empty cache, and what each later start adds.

``python3.11 tools/provision/measure.py`` fetches everything once more into a scratch cache, which
it removes; ``--warm-only`` measures the starts over the cache that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

LAUNCHER = Path(__file__).resolve().parent.parent / "bazel"


@dataclass(frozen=True)
class Report:
    """What was measured.

    Attributes:
        date: the day, in UTC.
        processor: the processor's name and the number of logical ones.
        cold_s: seconds to provision into an empty cache; None if that was left out.
        cached_mb: megabytes that the scratch cache held afterwards.
        start_ms: median of what a start with nothing to do adds, in milliseconds.
        start_spread_ms: smallest and largest of these.
        starts: how many starts that was.
    """

    date: str
    processor: str
    cold_s: float | None
    cached_mb: float | None
    start_ms: float
    start_spread_ms: tuple[float, float]
    starts: int

    def line(self) -> str:
        """The sentence for the README."""
        cold = ""
        if self.cold_s is not None and self.cached_mb is not None:
            cold = f"cold provisioning {self.cold_s:.0f} s ({self.cached_mb:.0f} MB cached), "
        low, high = self.start_spread_ms
        return (
            f"{cold}a later start adds {self.start_ms:.0f} ms (median of {self.starts}, "
            f"{low:.0f} to {high:.0f} ms); {self.processor}, {self.date}"
        )


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name and how many there are, for example ``X at 3 GHz, 2 processors``."""
    name = "unknown processor"
    for line in cpuinfo.read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":", 1)[1].strip()
            break
    return f"{name}, {os.cpu_count()} logical processors"


def timed(argv: Sequence[str], variables: Mapping[str, str]) -> float:
    """Seconds that a program takes.

    Raises:
        CalledProcessError: it failed.
    """
    started = time.perf_counter()
    subprocess.run(argv, env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def measure(
    starts: int,
    cold: bool,
    clock: Callable[[Sequence[str], Mapping[str, str]], float] = timed,
) -> Report:
    """Measures on this machine.

    Args:
        starts: how many later starts to time.
        cold: whether to provision into an empty scratch cache first.
        clock: runs and times one program.
    """
    ready = {"TFP_PROVISION_ONLY": "1"}
    cold_s: float | None = None
    cached: float | None = None
    with tempfile.TemporaryDirectory(prefix="tfp-measure-") as scratch:
        if cold:
            ready["TFP_CACHE"] = scratch
            cold_s = clock([str(LAUNCHER), "version"], ready)
            files = (path for path in Path(scratch).rglob("*") if not path.is_symlink())
            cached = sum(path.stat().st_size for path in files if path.is_file()) / 1e6
        else:
            clock([str(LAUNCHER), "version"], ready)
        times = [clock([str(LAUNCHER), "version"], ready) * 1e3 for _ in range(starts)]
    return Report(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        processor=processor_name(),
        cold_s=cold_s,
        cached_mb=cached,
        start_ms=statistics.median(times),
        start_spread_ms=(min(times), max(times)),
        starts=starts,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the report; exit status 1 if the launcher failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=20, help="later starts to time (20)")
    parser.add_argument("--warm-only", action="store_true", help="no cold provisioning")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        report = measure(max(1, options.starts), not options.warm_only)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"measure: {LAUNCHER} ended with status {error.returncode}\n")
        return 1
    print(json.dumps(asdict(report), indent=1) if options.json else report.line())
    return 0


if __name__ == "__main__":
    sys.exit(main())
