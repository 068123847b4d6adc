"""Runs pytest on the files named on the command line, as Bazel's test runner expects it.

A compiler that the test's `env` names as CC comes first on PATH, where rustc and Cargo look for a
linker. Honours `--test_filter` (as pytest's `-k`) and writes the XML report that Bazel shows.
"""

import gc
import os
import sys
from pathlib import Path

import pytest


class _Frozen:
    """Leaves what tests have imported out of searches for garbage.

    TensorFlow and Keras are a million objects, which a search goes through in half a second.
    """

    def pytest_collection_finish(self) -> None:
        gc.freeze()


def main() -> int:
    """Returns pytest's exit code; no collected test is a failure."""
    if compiler := os.environ.get("CC"):
        path = Path(compiler).absolute()
        os.environ["CC"] = str(path)
        os.environ["PATH"] = f"{path.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    arguments = ["-p", "no:cacheprovider", "--import-mode=importlib", "-ra", *sys.argv[1:]]
    if report := os.environ.get("XML_OUTPUT_FILE"):
        arguments.append(f"--junitxml={report}")
    if pattern := os.environ.get("TESTBRIDGE_TEST_ONLY"):
        arguments += ["-k", pattern]
    return int(pytest.main(arguments, [_Frozen()]))


if __name__ == "__main__":
    sys.exit(main())
