"""The launcher: ``tools/bazel`` hands over to this file, and this file becomes Bazel.

A start with nothing to do reads one plan, compares a few file sizes and replaces this process.
"""

import sys

if sys.version_info[:2] != (3, 11):
    found = ".".join(str(part) for part in sys.version_info[:2])
    sys.stderr.write(
        f"tfp: checking Python failed: {sys.executable} is Python {found}, expected 3.11; put "
        "python3.11 on PATH (Debian: package python3.11) or set TFP_PYTHON to it\n"
    )
    sys.exit(36)

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tools.provision import start

if __name__ == "__main__":
    sys.exit(start.main(sys.argv[1:]))
