"""The machine that a measurement was made on, as its page says it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def processor() -> str:
    """Returns the processor's name and the number of its cores: `X at 3 GHz, 2 cores`."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return f"{found.group(1) if found else platform.machine()}, {os.cpu_count()} cores"
