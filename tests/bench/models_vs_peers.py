"""Compares crates that tf2rust writes with TensorFlow, TFLite, onnxruntime and tract.

Batch 1, float32. Every implementation has a process of its own and the same input, and they take
turns: while one runs, the others are stopped, so that no thread of theirs is in its way. Every
result is compared with TensorFlow's before anything is timed. It writes a page with medians and
quartiles.

tract takes part where `--tract` names its library, which Cargo makes from a hundred crates that it
fetches: `cargo build --release --manifest-path tests/bench/tract/Cargo.toml`, then
`tests/bench/tract/target/release/libtract_peer.so`.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from absl import app, flags

from tests.bench.machine import processor
from tests.bench.models.peers import LOADERS, OURS, TRACT
from tests.bench.models.worker import Worker, WorkerError, serve
from tests.bench.models.zoo import ZOO

if TYPE_CHECKING:
    from tests.bench.models.prepare import Facts

FLAGS = flags.FLAGS
flags.DEFINE_integer("rounds", 9, "Rounds of calls per model.", lower_bound=3)
flags.DEFINE_float("round_seconds", 0.15, "Time of a round of one implementation, about.")
flags.DEFINE_string("output", "docs/performance/models.md", "The page to write.")
flags.DEFINE_bool("json", False, "Print all rows as JSON.")
flags.DEFINE_list("only", [], "Measure only models whose names hold one of these texts.")
flags.DEFINE_list("threads", ["1", "2"], "Numbers of threads.")
flags.DEFINE_string("folder", "", "Keep the prepared models here, and use those that are here.")
flags.DEFINE_bool("measure", True, "Measure, after the models are prepared.")
flags.DEFINE_string("tract", "", "The library of tract; without it tract is left out.")
flags.DEFINE_string("worker", "", "Be the process of this implementation.")


# Ours with one thread, beside all others with several.
ALONE = "ours with one thread"


@dataclass(frozen=True)
class Row:
    """The measurements of one model.

    Attributes:
        model: Name of the model.
        threads: Threads of every implementation.
        facts: What was known before.
        seconds: Calls of each implementation, one number per round.
        memory: Bytes that the process of each implementation grew by.
        missing: Why an implementation is not there.
    """

    model: str
    threads: int
    facts: Facts
    seconds: dict[str, list[float]]
    memory: dict[str, int]
    missing: dict[str, str]

    def median(self, who: str) -> float:
        """Seconds of the median round's call."""
        return statistics.median(self.seconds[who])

    def spread(self, who: str) -> float:
        """Distance of the quartiles as a part of the median."""
        low, _, high = statistics.quantiles(self.seconds[who], n=4)
        return (high - low) / self.median(who)


class Pool:
    """The processes of all implementations, each started when it is needed."""

    def __init__(self) -> None:
        """Starts nothing."""
        self._workers: dict[tuple[str, int], Worker] = {}

    def of(self, who: str, threads: int) -> Worker:
        """The process of an implementation; TensorFlow has one for each number of threads."""
        key = (who, threads if who == "TensorFlow" else 0)
        if key not in self._workers or not self._workers[key].is_there():
            os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
            name = OURS if who == ALONE else who
            self._workers[key] = Worker([sys.executable, sys.argv[0], f"--worker={name}"])
        return self._workers[key]

    def end(self) -> None:
        """Ends all."""
        for worker in self._workers.values():
            worker.end()


def measure(pool: Pool, model: str, facts: Facts, folder: Path, threads: int) -> Row:
    """Measures one model."""
    row = Row(model, threads, facts, {}, {}, dict(facts.missing))
    counts = {}
    for who in (*LOADERS, ALONE) if threads > 1 else LOADERS:
        if who in row.missing or (who == "tract" and not FLAGS.tract):
            continue
        worker = pool.of(who, threads)
        try:
            memory = worker.ask({"load": str(folder), "threads": 1 if who == ALONE else threads})[
                "memory"
            ]
            counts[who] = _calls_for(worker)
        except WorkerError as error:
            row.missing[who] = str(error)
            continue
        row.memory[who] = memory
        row.seconds[who] = []
    for _ in range(FLAGS.rounds):
        for who, calls in list(counts.items()):
            try:
                answer = pool.of(who, threads).ask({"calls": calls})
            except WorkerError as error:
                row.missing[who] = str(error)
                del counts[who], row.seconds[who], row.memory[who]
                continue
            row.seconds[who].append(answer["seconds"])
    print(_line(row), file=sys.stderr)
    return row


def _calls_for(worker: Worker) -> int:
    """Returns how many calls fill a round."""
    calls = 1
    while True:
        seconds = worker.ask({"calls": calls})["seconds"]
        if seconds * calls >= FLAGS.round_seconds / 4 or calls >= 1 << 20:
            return max(1, int(FLAGS.round_seconds / max(seconds, 1e-9)))
        calls *= 4


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    return f"{seconds * 1e3:.3g} ms"


def _line(row: Row) -> str:
    times = ", ".join(f"{who} {_time(row.median(who))}" for who in row.seconds)
    return f"{row.model}, {row.threads} threads: {times} {row.missing or ''}"


def page(rows: Sequence[Row]) -> str:
    """The page: one table per number of threads, and one of sizes."""
    lines = [
        "# Models against their peers",
        "",
        f"Measured {time.strftime('%Y-%m-%d')} on {processor()}, by",
        f"`tools/bazel run //tests/bench:models_vs_peers -- --rounds={FLAGS.rounds}",
        f"--output={FLAGS.output}`" + (" with `--tract=LIBRARY`." if FLAGS.tract else "."),
        "Batch 1, float32, random weights.",
        "Every implementation has its own process and the same input. They alternate: while one",
        "runs, the others are stopped.",
        "",
        f"- A time is the median of {FLAGS.rounds} rounds, each the mean of as many calls as fill"
        f" {FLAGS.round_seconds:g} s.",
        "- A ratio is the peer's time over ours: above 1, ours is faster.",
        "- The spread is the distance of the quartiles of our times over their median.",
        "- With two threads, ours with one thread is among the peers.",
        "- Ours and tract are called from Rust, the others from Python, which costs about a",
        "  microsecond per call.",
        "- onnxruntime and tract get the graph that tf2rust traced. tract's library is made by",
        "  `cargo build --release --manifest-path tests/bench/tract/Cargo.toml`.",
    ]
    for threads in sorted({row.threads for row in rows}):
        group = [row for row in rows if row.threads == threads]
        peers = _peers(group)
        heads = " | ".join(f"{peer} | ratio" for peer in peers)
        lines += [
            "",
            f"## {threads} thread{'s' if threads > 1 else ''}",
            "",
            f"| model | ours | spread | GMAC/s | {heads} |",
            "|---|---|---|---|" + "---|---|" * len(peers),
        ]
        for row in group:
            ours = row.median(OURS)
            cells = []
            for peer in peers:
                if peer in row.seconds:
                    cells += [_time(row.median(peer)), f"{row.median(peer) / ours:.2f}"]
                else:
                    cells += ["fails", ""]
            lines.append(
                f"| {row.model} | {_time(ours)} | {row.spread(OURS):.0%} "
                f"| {row.facts.macs / ours / 1e9:.1f} | {' | '.join(cells)} |"
            )
    lines += [
        "",
        "## Sizes",
        "",
        "The library is the compiled crate with weights and runtime. A call needs the memory of",
        "its workspace; a model has its weights a second time, packed, beside those that are in",
        "the program.",
        "",
        "| model | MACs | weights | workspace | library | rustc |",
        "|---|---|---|---|---|---|",
    ]
    first = [row for row in rows if row.threads == rows[0].threads]
    peers = _peers(first)
    for row in first:
        facts = row.facts
        lines.append(
            f"| {row.model} | {facts.macs / 1e6:.4g} M | {facts.weights / 1e6:.3g} MB "
            f"| {facts.arena / 1e6:.3g} MB | {facts.size / 1e6:.3g} MB | {facts.compile:.1f} s |"
        )
    lines += [
        "",
        "## Memory",
        "",
        "What the process grew by, at most, from before it loaded the model until its first calls",
        "had run; the implementation's own library was loaded before, if it has one. A process",
        "serves one model after the other, and may use memory again that it had not given back.",
        "",
        f"| model | {' | '.join(['ours', *peers])} |",
        "|---|---|" + "---|" * len(peers),
    ]
    for row in first:
        cells = [
            f"{row.memory[who] / 1e6:.3g} MB" if who in row.memory else "" for who in (OURS, *peers)
        ]
        lines.append(f"| {row.model} | {' | '.join(cells)} |")
    failures = dict.fromkeys(
        f"* {row.model}, {who}: {why}" for row in rows for who, why in row.missing.items()
    )
    if failures:
        lines += ["", "## What fails", "", *failures]
    return "\n".join(lines) + "\n"


def _peers(rows: Sequence[Row]) -> list[str]:
    """All peers of some rows, in order."""
    return list(dict.fromkeys(who for row in rows for who in row.seconds if who != OURS))


def main(argv: Sequence[str]) -> None:
    """Runs the worker's or the parent's part."""
    del argv
    if FLAGS.worker:
        serve(FLAGS.worker)
        return
    base = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    if FLAGS.tract:
        os.environ[TRACT] = str((base / FLAGS.tract).absolute())
    # It imports TensorFlow, which most workers do without.
    from tests.bench.models.prepare import prepared_in

    entries = [
        entry
        for entry in ZOO
        if not FLAGS.only or any(text.lower() in entry.name.lower() for text in FLAGS.only)
    ]
    if not entries:
        raise SystemExit("no model has such a name")
    rows = []
    pool = Pool()
    with tempfile.TemporaryDirectory() as temporary:
        folder = base / FLAGS.folder if FLAGS.folder else Path(temporary)
        prepared = []
        for entry in entries:
            place = folder / re.sub(r"\W+", "_", entry.name)
            prepared.append((entry.name, prepared_in(entry, place), place))
        if not FLAGS.measure:
            return
        try:
            for name, facts, place in prepared:
                for threads in FLAGS.threads:
                    rows.append(measure(pool, name, facts, place, int(threads)))
        finally:
            pool.end()
    if FLAGS.json:
        print(json.dumps([asdict(row) for row in rows]))
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    (root / FLAGS.output).write_text(page(rows), "utf-8")
    print(f"written: {FLAGS.output}", file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
