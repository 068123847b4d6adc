"""A step of a kernel allocates nothing in libtfp.so once it has seen the shapes of its inputs.

The steps forward a buffer, allocate outputs, need scratch memory, read host memory and have three
inputs. TensorFlow allocates for each of them; only calls that come from the library's code count.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

PROGRAM = os.environ["STEPS"]
PLUGIN = os.environ["PLUGIN"]
COUNTER = os.environ["COUNTER"]


def allocations(steps: int) -> int:
    """Returns how often libtfp.so asked for memory in a process that runs so many steps."""
    env = {
        **os.environ,
        "COUNT_LIBRARY": Path(PLUGIN).name,
        "LD_PRELOAD": str(Path(COUNTER).absolute()),
    }
    command = [PROGRAM, PLUGIN, str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    found = re.findall(r"^allocations (\d+)$", done.stderr, re.MULTILINE)
    assert len(found) == 1, done.stderr
    return int(found[0])


def test_steps_allocate_nothing() -> None:
    few, many, failing = allocations(2), allocations(98), allocations(202)
    # The counter sees the library: registration allocates, and so does every hundredth step, which
    # fails and copies to the host.
    assert 0 < few < failing
    assert many == few
