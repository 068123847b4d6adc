"""Prints how many Bazel tests passed and failed, from a file of build events."""

import json
import pathlib
import sys


def main() -> None:
    """Reads the file named on the command line."""
    lines = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    summaries = [event["testSummary"] for event in map(json.loads, lines) if "testSummary" in event]
    passed = sum(summary["overallStatus"] == "PASSED" for summary in summaries)
    print(f"{passed} passed, {len(summaries) - passed} failed")


if __name__ == "__main__":
    main()
