"""How long a process has computed: its seconds of a processor, however busy the machine is."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


class Clock:
    """Measures what a process does from now on."""

    def __init__(self, pid: int, seconds: float, patience: float) -> None:
        """Begins.

        Args:
            pid: The process; the processes that it has started count, too.
            seconds: Seconds of a processor that it may take.
            patience: How many times as long it may last, since it may also wait for ever.
        """
        self._pid = pid
        self._seconds = seconds
        self._longest = seconds * patience
        self._began = time.monotonic()
        self._used = used(pid)

    def over(self) -> str:
        """Returns which limit was passed; nothing if none was."""
        if used(self._pid) - self._used > self._seconds:
            return f"not done after {self._seconds:g} s of a processor"
        if time.monotonic() - self._began > self._longest:
            return f"not done after {self._longest:g} s"
        return ""


def used(pid: int) -> float:
    """Returns the seconds of a processor that a process and its own have taken; 0 if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        lists = list(Path(f"/proc/{pid}/task").glob("*/children"))
        children = [child for each in lists for child in each.read_text("ascii").split()]
    except OSError:
        return 0.0
    # The name before the last parenthesis may hold spaces. The parent counts those that ended.
    fields = re.split(r"\s+", stat[stat.rindex(")") + 2 :])
    return sum(map(int, fields[11:15])) / _TICKS + sum(used(int(child)) for child in children)
