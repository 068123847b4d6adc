"""What was measured of models, and the page that shows it."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.bench.models.facts import Facts
from tests.bench.models.peers import OURS

# Ours with one thread, beside all others with several.
ALONE = "ours with one thread"


@dataclass(frozen=True)
class Row:
    """The measurements of one model.

    Attributes:
        model: Name of the model.
        batch: Examples of a call.
        threads: Threads of every implementation.
        facts: What was known before.
        seconds: Calls of each implementation, one number per round.
        memory: Bytes that the process of each implementation grew by.
        missing: Why an implementation is not there.
    """

    model: str
    batch: int
    threads: int
    facts: Facts
    seconds: dict[str, list[float]] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def median(self, who: str) -> float:
        """Seconds of the median round's call."""
        return statistics.median(self.seconds[who])

    def example(self, who: str) -> str:
        """Time of an example of the median round's call, for people."""
        seconds = self.median(who) / self.batch
        return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"

    def spread(self, who: str) -> float:
        """Distance of the quartiles as a part of the median."""
        low, _, high = statistics.quantiles(self.seconds[who], n=4)
        return (high - low) / self.median(who)

    def ratio(self, who: str) -> float:
        """Time of a peer over ours."""
        return self.median(who) / self.median(OURS)

    def peers(self) -> list[str]:
        """Who was measured beside ours."""
        return [who for who in self.seconds if who != OURS]

    def line(self) -> str:
        """All in one line."""
        times = ", ".join(f"{who} {self.example(who)}" for who in self.seconds)
        head = f"{self.model}, batch {self.batch}, {_threads(self.threads)}"
        return f"{head}: {times} {self.missing or ''}"


@dataclass(frozen=True)
class How:
    """How the rows of a page were measured.

    Attributes:
        processor: Of the machine.
        command: What measured them.
        rounds: Of each row.
        round_seconds: Of a round of one implementation, about.
    """

    processor: str
    command: str
    rounds: int
    round_seconds: float


def page(rows: Sequence[Row], how: How) -> str:
    """The page: a summary, one table per number of threads and batch, and tables of sizes."""
    lines = [
        "# Models against their peers",
        "",
        f"Measured {time.strftime('%Y-%m-%d')} on {how.processor}, by",
        f"`{how.command}`.",
        "Float32, random weights. Times are those of an example: of a call, divided by the batch.",
        "Every implementation has its own process and the same input. They alternate: while one",
        "runs, the others are stopped.",
        "",
        f"- A time is the median of {how.rounds} rounds, each the mean of as many calls as fill"
        f" {how.round_seconds:g} s.",
        "- A ratio is the peer's time over ours: above 1, ours is faster; one below 1 is bold.",
        "- The spread is the distance of the quartiles of our times over their median.",
        "- With two threads, ours with one thread is among the peers.",
        "- Ours and tract are called from Rust, the others from Python, which costs about a",
        "  microsecond per call.",
        "- Peers get a graph of the batch. Our crate serves every batch.",
        "- onnxruntime and tract get the graph that tf2rust traced. tract's library is made by",
        "  `cargo build --release --manifest-path tests/bench/tract/Cargo.toml`.",
        "",
        "## Summary",
        "",
        "The best peer of each model; not ours with one thread.",
        "",
        "| threads | batch | models | geometric mean | worst |",
        "|---|---|---|---|---|",
    ]
    groups: dict[tuple[int, int], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.threads, row.batch)):
        groups.setdefault((row.threads, row.batch), []).append(row)
    lines += [_summary(*key, group) for key, group in groups.items()]
    for (threads, batch), group in groups.items():
        lines += ["", f"## {_threads(threads)}, batch {batch}", "", *_times(group)]
    first = next(iter(groups.values()), [])
    lines += ["", *_sizes(first)]
    for (threads, batch), group in groups.items():
        if threads == first[0].threads:
            lines += ["", f"## Memory, batch {batch}", "", *_memory(group)]
    failures = dict.fromkeys(
        f"* {row.model}, batch {row.batch}, {who}: {why}"
        for row in rows
        for who, why in row.missing.items()
    )
    if failures:
        lines += ["", "## What fails", "", *failures]
    return "\n".join(lines) + "\n"


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _marked(ratio: float) -> str:
    return f"**{ratio:.2f}**" if ratio < 1 else f"{ratio:.2f}"


def _peers(rows: Sequence[Row]) -> list[str]:
    """All peers of some rows, in order."""
    return list(dict.fromkeys(who for row in rows for who in row.peers()))


def _summary(threads: int, batch: int, rows: Sequence[Row]) -> str:
    """A line of the summary."""
    best = [
        min(row.ratio(who) for who in row.peers() if who != ALONE)
        for row in rows
        if set(row.peers()) - {ALONE}
    ]
    head = f"| {threads} | {batch} | {len(best)} "
    if not best:
        return f"{head}| - | - |"
    mean = math.exp(sum(math.log(ratio) for ratio in best) / len(best))
    return f"{head}| {_marked(mean)} | {_marked(min(best))} |"


def _times(rows: Sequence[Row]) -> list[str]:
    """The table of the times of an example."""
    peers = _peers(rows)
    heads = "".join(f" {peer} | ratio |" for peer in peers)
    lines = [
        f"| model | ours | spread | GMAC/s |{heads}",
        "|---|---|---|---|" + "---|---|" * len(peers),
    ]
    for row in rows:
        cells = [row.model, row.example(OURS), f"{row.spread(OURS):.0%}"]
        cells.append(f"{row.facts.macs * row.batch / row.median(OURS) / 1e9:.1f}")
        for peer in peers:
            if peer in row.seconds:
                cells += [row.example(peer), _marked(row.ratio(peer))]
            else:
                cells += ["fails", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _sizes(rows: Sequence[Row]) -> list[str]:
    """The section of what is known of models."""
    lines = [
        "## Sizes",
        "",
        "The library is the compiled crate with its runtime and its file of weights. A call needs",
        "the memory of its workspace. MACs and workspace are those of one example.",
        "",
        "| model | MACs | weights | workspace | library | rustc |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        facts = row.facts
        lines.append(
            f"| {row.model} | {facts.macs / 1e6:.4g} M | {facts.weights / 1e6:.3g} MB "
            f"| {facts.arena / 1e6:.3g} MB | {facts.size / 1e6:.3g} MB | {facts.compile:.1f} s |"
        )
    return lines


def _memory(rows: Sequence[Row]) -> list[str]:
    """The table of what processes grew by."""
    peers = _peers(rows)
    lines = [
        "What the process grew by, at most, from before it loaded the model until its first calls",
        "had run; the implementation's own library was loaded before, if it has one. A process",
        "serves one model after the other, and may use memory again that it had not given back.",
        "",
        f"| model | {' | '.join(['ours', *peers])} |",
        "|---|---|" + "---|" * len(peers),
    ]
    for row in rows:
        cells = [
            f"{row.memory[who] / 1e6:.3g} MB" if who in row.memory else "" for who in (OURS, *peers)
        ]
        lines.append(f"| {row.model} | {' | '.join(cells)} |")
    return lines
