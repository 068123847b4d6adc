"""The launcher: ``tools/bazel`` hands over to this file, and this file becomes Bazel.

A start with nothing to do reads one plan, compares a few file sizes and replaces this process.
"""

import sys

# This file alone must be read by every Python; what it imports is for 3.9 and later.
if sys.version_info < (3, 9):  # noqa: UP036
    found = ".".join(map(str, sys.version_info[:2]))
    sys.stderr.write(
        "tfp: checking Python failed: "
        + sys.executable
        + " is Python "
        + found
        + ", expected 3.9 or "
        "newer; put a newer python3 on PATH or set TFP_PYTHON to one\n"
    )
    sys.exit(36)

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tools.provision import start

if __name__ == "__main__":
    sys.exit(start.main(sys.argv[1:]))
