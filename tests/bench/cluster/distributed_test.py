"""The table of workers ends, whatever a worker does."""

from __future__ import annotations

import sys
import time

import pytest

from tests.bench.cluster.distributed import Reading, Side, WorkersError, measure, row

# A worker that makes the steps of its argument, in no time, then what its rank says.
WORKER = """
import json, os, sys, time
rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
for step in range(int(sys.argv[1])):
    print(f"second 0.0{rank + 1}", flush=True)
end = sys.argv[2 + rank]
if end == "hang":
    time.sleep(600)
print(f"worker {rank} ends", file=sys.stderr)
sys.exit(int(end))
"""


def side(steps: int, *ends: str) -> Side:
    return Side("fake", [sys.executable, "-c", WORKER, str(steps), *ends])


def test_the_time_is_that_of_the_slowest_worker() -> None:
    assert measure(side(5, "0", "0"), 2, 5, 60).seconds == 0.02


def test_nobody_waits_for_workers_that_have_made_their_steps() -> None:
    begun = time.monotonic()
    measure(side(5, "hang", "0"), 2, 5, 300)
    assert time.monotonic() - begun < 300


@pytest.mark.parametrize("gone", [0, 1])
def test_a_worker_that_is_gone_ends_the_others(gone: int) -> None:
    ends = ["hang", "hang"]
    ends[gone] = "7"
    with pytest.raises(WorkersError, match=f"status 7: 4 steps; worker {gone} ends"):
        measure(side(4, *ends), 2, 5, 300)


def test_workers_that_hang_are_given_up() -> None:
    with pytest.raises(WorkersError, match="not done after 1 s") as caught:
        measure(side(4, "hang", "hang"), 2, 5, 1)
    assert str(caught.value).count(" steps; ") == 2


def test_a_row_has_a_place_for_what_was_not_measured() -> None:
    one = Reading(0.002, 3e6)
    assert row(2, [one, one, Reading(0.004, 6e6)]) == (
        "| 2 | 2.00 | 2.00 | 4.00 | 0.50 | 3.00 | 6.00 |"
    )
    assert row(4, [one, one, None]) == "| 4 | 2.00 | 2.00 | - | - | 3.00 | - |"
