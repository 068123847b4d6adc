"""The launcher: ``tools/bazel`` hands over to this file, and this file becomes Bazel.

A start with nothing to do reads one plan, compares a few file sizes and replaces this process.
"""

import sys

if sys.version_info[:2] != (3, 11):
    sys.stderr.write(
        "tfp: checking Python failed: %s is Python %d.%d, expected 3.11; put python3.11 on PATH "
        "(Debian: package python3.11) or set TFP_PYTHON to it\n"
        % ((sys.executable,) + tuple(sys.version_info[:2]))
    )
    sys.exit(36)

import os  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tools.provision import start  # noqa: E402

if __name__ == "__main__":
    sys.exit(start.main(sys.argv[1:]))
