"""The machine that a measurement was made on, as its page says it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def processor() -> str:
    """Returns the processor's name, family and model, and the number of its cores.

    A virtual machine's name often hides which processor it is: `X (family 26, model 2), 2 cores`.
    """
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name, family, model = (_field(text, name) for name in ("model name", "cpu family", "model"))
    kind = f" (family {family}, model {model})" if family and model else ""
    return f"{name or platform.machine()}{kind}, {os.cpu_count()} cores"


def _field(text: str, name: str) -> str | None:
    found = re.search(rf"^{name}\s*: (.*)$", text, re.MULTILINE)
    return found.group(1) if found else None
