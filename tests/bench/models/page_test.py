"""The page of models says times of an example and marks what is behind."""

from __future__ import annotations

from tests.bench.models.facts import Facts
from tests.bench.models.page import ALONE, How, Row, page

_HOW = How("Some processor, 2 cores", "COMMAND", rounds=4, round_seconds=0.5)


def _row(model: str, batch: int, threads: int, **seconds: float) -> Row:
    facts = Facts(macs=10**6, arena=1000, weights=2000, size=3000, compile=1.5, missing={})
    times = {who: [time] * 4 for who, time in seconds.items()}
    return Row(model, batch, threads, facts, times, dict.fromkeys(times, 5_000_000))


def test_times_are_those_of_an_example() -> None:
    text = page([_row("Some", 8, 1, tf2rust=0.016, onnxruntime=0.024)], _HOW)
    assert "## 1 thread, batch 8" in text
    # 8 million multiplications in 16 ms.
    assert "| Some | 2 ms | 0% | 0.5 | 3 ms | 1.50 |" in text


def test_the_summary_has_the_best_peer() -> None:
    rows = [
        _row("First", 1, 2, tf2rust=0.001, TFLite=0.004, onnxruntime=0.002),
        _row("Second", 1, 2, tf2rust=0.001, onnxruntime=0.008, **{ALONE: 0.0005}),
        _row("Third", 32, 2, tf2rust=0.002, onnxruntime=0.001),
        _row("First", 1, 1, tf2rust=0.001),
    ]
    text = page(rows, _HOW)
    summary = text[text.index("## Summary") :].split("\n\n")[2].splitlines()[2:]
    assert summary == [
        "| 1 | 1 | 0 | - | - |",
        "| 2 | 1 | 2 | 4.00 | 2.00 |",
        "| 2 | 32 | 1 | **0.50** | **0.50** |",
    ]
    assert "**0.50**" in text[text.index("## 2 threads, batch 1") :]
    # Sizes and memory are those of the first number of threads.
    assert text.count("## Memory") == 1


def test_what_fails_is_named_with_its_batch() -> None:
    row = _row("Some", 8, 1, tf2rust=0.001)
    row.missing["TFLite"] = "no such op"
    assert "* Some, batch 8, TFLite: no such op" in page([row], _HOW)
