"""What the processor has that runs the tests."""

from __future__ import annotations

from pathlib import Path


def processor_flags() -> frozenset[str]:
    """Returns the names of its instruction sets as Linux has them, such as `avx512_vnni`."""
    return frozenset(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
