"""Measures how long mlf2rust takes, from the start of its process to its end.

Run with: tools/bazel run //converters/mlf/tests:generation_times
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from converters.mlf.parse.archive import read_archive
from converters.mlf.tests.dialects import tar_of
from converters.mlf.tests.requests import REAL, TESTDATA

RUNS = 5
POOL_BYTES = 1 << 20
_HEADER = "codegen/host/include/tvmgen_default.h"
_DATA = re.compile(r"(_CONSTANT_POOL_DATA)(?: \\\n[^\n]*)+")


def large_archive() -> bytes:
    """Returns `constant_pool.tar` with a constant pool of `POOL_BYTES` bytes."""
    files = dict(read_archive(TESTDATA / "constant_pool.tar").files)
    text = files[_HEADER].decode()
    size = re.search(r"CONSTANT_POOL_SIZE (\d+)", text)
    assert size is not None
    row = ", ".join(f"0x{b:02x}" for b in range(16))
    rows = "".join(f" \\\n    {row}," for _ in range(POOL_BYTES // 16)).rstrip(",")
    text = _DATA.sub(lambda found: found[1] + rows, text)
    files[_HEADER] = text.encode()
    return tar_of({n: c.replace(size[1].encode(), b"%d" % POOL_BYTES) for n, c in files.items()})


def seconds(program: str, archive: Path, folder: Path) -> float:
    """Returns the shortest of `RUNS` runs."""
    command = [program, "--mlf", str(archive), "--out", str(folder / "crate")]
    if program.endswith(".py"):
        command.insert(0, sys.executable)
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, env={**os.environ, "BUILD_WORKING_DIRECTORY": ""})
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Prints a line per archive."""
    program = str(Path(sys.argv[1]).absolute())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = folder / "large.tar"
        large.write_bytes(large_archive())
        for archive in (*(TESTDATA / f"{name}.tar" for name in REAL), large):
            kib = archive.stat().st_size / 1024
            took = seconds(program, archive, folder)
            print(f"{archive.name}: {kib:.0f} KiB, {took:.2f} s")


if __name__ == "__main__":
    main()
