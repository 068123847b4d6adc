"""Runs pytest on the files named on the command line, as Bazel's test runner expects it.

Honours `--test_filter` (as pytest's `-k`) and writes the XML report that Bazel shows.
"""

import os
import sys

import pytest


def main() -> int:
    """Returns pytest's exit code; no collected test is a failure."""
    arguments = ["-p", "no:cacheprovider", "--import-mode=importlib", "-ra", *sys.argv[1:]]
    if report := os.environ.get("XML_OUTPUT_FILE"):
        arguments.append(f"--junitxml={report}")
    if pattern := os.environ.get("TESTBRIDGE_TEST_ONLY"):
        arguments += ["-k", pattern]
    return int(pytest.main(arguments))


if __name__ == "__main__":
    sys.exit(main())
