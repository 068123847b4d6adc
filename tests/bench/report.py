"""What a benchmark says while it runs, and the page that it writes."""

from __future__ import annotations

import datetime
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.machine import processor


def tell(text: str) -> None:
    """Prints a line of progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def when_and_where() -> str:
    """Returns the day, the processor and the load of the last minute, as a page says them."""
    day = datetime.datetime.now(tz=datetime.UTC).date()
    return f"{day}, {processor()}, load average {os.getloadavg()[0]:.1f} at the start"


def cell(readings: Sequence[float], digits: int = 0) -> str:
    """Returns the median of readings with their quartiles, as a table has them."""
    low, middle, high = statistics.quantiles(readings, n=4)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def write(page: str, text: str) -> None:
    """Writes a page; its path begins at the root of the checkout."""
    path = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), page)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    tell(f"wrote {path}")
