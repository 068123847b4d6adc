"""Tries damaged and hostile inputs, and random calls and graphs of the device.

tools/bazel run //tests/fuzz -- --format=onnx --cases=100000 --folder=/tmp/findings
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from tests.fuzz import formats
from tests.fuzz.campaign import Found, Plan, run
from tests.fuzz.worker import Limits
from tools.codegen import program

_FORMAT = flags.DEFINE_multi_enum("format", [], formats.NAMES, "what to try; all if not given")
_CASES = flags.DEFINE_integer("cases", 1000, "cases of each format", 1)
_SEED = flags.DEFINE_integer("seed", 0, "seed of the run: the same cases for the same seed")
_FIRST = flags.DEFINE_integer("first", 0, "number of the first case", 0)
_SECONDS = flags.DEFINE_float("seconds", 0, "seconds for each format; 0 for no limit", 0)
_LIMIT = flags.DEFINE_float(
    "case_seconds", 60, "seconds of a processor for a case; more is a fault", 1
)
_MEMORY = flags.DEFINE_float("case_memory", 6, "GiB of memory that a process may take", 0.5)
_FOLDER = flags.DEFINE_string("folder", "fuzz-findings", "where inputs of faults are written")
_JSON = flags.DEFINE_bool("json", False, "print the counts as JSON")


def _say(text: str) -> None:
    print(f"fuzz: {text}", file=sys.stderr, flush=True)


def main(argv: Sequence[str]) -> int:
    """Runs as the flags say; returns 1 if there are faults."""
    if len(argv) > 1:
        print(f"fuzz: unexpected argument {argv[1]!r}", file=sys.stderr)
        return program.USAGE
    limits = Limits(_LIMIT.value, int(_MEMORY.value * 2**30))
    folder = Path(_FOLDER.value)
    seen: dict[str, Found] = {}
    for name in _FORMAT.value or formats.NAMES:
        worker = formats.worker(name, limits)
        _say(f"{name}: makes the valid inputs")
        plan = Plan(name, _CASES.value, _SEED.value, _FIRST.value, _SECONDS.value, folder)
        try:
            seen[name] = run(plan, worker, _say)
        except RuntimeError as err:
            print(f"fuzz: {name}: {err}", file=sys.stderr)
            return program.USAGE
        finally:
            worker.close()
        if not _JSON.value:
            print(seen[name].summary(name, _SEED.value), flush=True)
            for kind, count in seen[name].kinds.most_common():
                print(f"  {count:,} faults of the kind: {kind}")
            for text, count in seen[name].bounded.most_common(20):
                print(f"  {count:,} ended in TensorFlow: {text}")
    if any(found.faults for found in seen.values()):
        _say(f"inputs of the faults are in {folder.absolute()}")
    if _JSON.value:
        report = {
            name: {"cases": f.cases, "seconds": f.seconds, **f.count, "kinds": f.kinds}
            for name, f in seen.items()
        }
        print(json.dumps(report, indent=2))
    return 1 if any(found.faults for found in seen.values()) else 0


if __name__ == "__main__":
    program.run("fuzz", main)
