"""Random graphs: what the graph optimizer makes of them is what they say."""

from __future__ import annotations

import os

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from tests.conformance import random_graphs

COUNT = 300


def test_fused_and_op_by_op_agree_with_the_cpu() -> None:
    problems = [problem for seed in range(COUNT) if (problem := random_graphs.check(seed))]
    assert not problems, "\n".join(problems)


def test_graphs_are_drawn_alike_and_of_many_ops() -> None:
    first, second = random_graphs.draw(7), random_graphs.draw(7)
    assert (first.dtype, len(first.steps)) == (second.dtype, len(second.steps))
    assert len({random_graphs.draw(seed).dtype for seed in range(12)}) == 3
