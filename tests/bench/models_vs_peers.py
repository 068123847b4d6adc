"""Compares crates that tf2rust writes with TensorFlow, TFLite and onnxruntime on this machine.

Batch 1, float32. Calls of all implementations alternate in one process, with the same input; the
program runs itself once per model and number of threads, because TensorFlow fixes its threads when
it starts. Every result is compared with TensorFlow's before anything is timed. It writes a page
with medians and quartiles.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags

from tests.bench.models.zoo import ZOO, Entry, make, sample

FLAGS = flags.FLAGS
flags.DEFINE_integer("rounds", 21, "Rounds of calls per model.", lower_bound=3)
flags.DEFINE_float("round_seconds", 0.05, "Time of a round of one implementation, about.")
flags.DEFINE_string("output", "docs/performance/models.md", "The page to write.")
flags.DEFINE_bool("json", False, "Print all rows as JSON.")
flags.DEFINE_list("only", [], "Measure only models whose names hold one of these texts.")
flags.DEFINE_list("threads", ["1", "2"], "Numbers of threads.")
flags.DEFINE_string("child", "", "Measure this model and print a JSON line.")
flags.DEFINE_integer("child_threads", 1, "Threads of the child.")
flags.DEFINE_string("folder", "", "Where the child puts generated crates.")

OURS = "tf2rust"


@dataclass(frozen=True)
class Row:
    """The measurements of one model.

    Attributes:
        model: Name of the model.
        threads: Threads of every implementation.
        macs: Multiplications with addition of a call.
        arena: Bytes of memory of a call of ours, without weights.
        weights: Bytes of the weights.
        size: Bytes of the compiled crate, weights included.
        compile: Seconds that rustc took for the crate without the runtime; 0 if it was there.
        peak: Peak memory of compiling in bytes.
        seconds: Calls of each implementation, one number per round.
        missing: Why an implementation is not there.
    """

    model: str
    threads: int
    macs: int
    arena: int
    weights: int
    size: int
    compile: float
    peak: int
    seconds: dict[str, list[float]]
    missing: dict[str, str]

    def median(self, who: str) -> float:
        """Seconds of the median round's call."""
        return statistics.median(self.seconds[who])

    def spread(self, who: str) -> float:
        """Distance of the quartiles as a part of the median."""
        low, _, high = statistics.quantiles(self.seconds[who], n=4)
        return (high - low) / self.median(who)


def _calls_for(run: Callable[[int], float]) -> int:
    """Returns how many calls fill a round."""
    calls = 1
    while True:
        seconds = run(calls)
        if seconds * calls >= FLAGS.round_seconds / 4 or calls >= 1 << 20:
            return max(1, int(FLAGS.round_seconds / max(seconds, 1e-9)))
        calls *= 4


def measure(entry: Entry, threads: int) -> Row:
    """Measures one model in this process."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from converters.tf.convert import convert
    from converters.tf.load.model import trace_model
    from converters.tf.plan import plan_memory
    from tests.bench.models.ours import Ours
    from tests.bench.models.peers import PEERS, timed, value_of

    model = make(entry)
    x = sample(model)
    graph = convert(trace_model(model).trace)
    expected = np.asarray(model(x, training=False))
    folder = Path(FLAGS.folder) / "".join(c if c.isalnum() else "_" for c in entry.name)
    start = time.perf_counter()
    ours = Ours(graph, x, expected, folder, threads)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    runs: dict[str, Callable[[int], float]] = {OURS: ours.run}
    ours.run(1)
    _check(OURS, ours.output, expected)
    missing = {}
    for name, peer in PEERS.items():
        try:
            call = peer(model, x, graph, threads)
            _check(name, value_of(call), expected)
        # A converter may fail in any way; the table says how.
        except Exception as err:
            missing[name] = f"{type(err).__name__}: {str(err).strip().splitlines()[0][:120]}"
            continue
        runs[name] = lambda calls, call=call: timed(call, calls)  # type: ignore[misc]
    counts = {name: _calls_for(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(FLAGS.rounds):
        for name, run in runs.items():
            times[name].append(run(counts[name]))
    plan = plan_memory(graph)
    weights = sum(v.data.nbytes for v in graph.constants() if v.data is not None)
    return Row(
        entry.name,
        threads,
        plan.macs,
        plan.arena_bytes,
        weights,
        ours.size,
        seconds,
        peak,
        times,
        missing,
    )


def _check(who: str, found: Any, expected: Any) -> None:
    difference = float(np.max(np.abs(np.asarray(found).reshape(expected.shape) - expected)))
    limit = 1e-4 * max(1.0, float(np.max(np.abs(expected))))
    if not difference <= limit:
        raise RuntimeError(f"{who} differs from Keras by {difference}")


def child(entry: Entry, threads: int, folder: str, argv: Sequence[str]) -> Row | None:
    """The row of this program, run again for one model."""
    environment = dict(os.environ)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        environment[name] = str(threads)
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
    command = [
        sys.executable,
        *argv,
        f"--child={entry.name}",
        f"--child_threads={threads}",
        f"--folder={folder}",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        print(f"{entry.name}: {done.stderr.strip()[-2000:]}", file=sys.stderr)
        return None
    row = Row(**json.loads(lines[-1]))
    print(_line(row), file=sys.stderr)
    return row


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    return f"{seconds * 1e3:.3g} ms"


def _line(row: Row) -> str:
    times = ", ".join(f"{who} {_time(row.median(who))}" for who in row.seconds)
    return f"{row.model}, {row.threads} threads: {times} {row.missing or ''}"


def page(rows: Sequence[Row]) -> str:
    """The page: one table per number of threads, and one of sizes."""
    cpu = platform.processor() or "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    lines = [
        "# Models against their peers",
        "",
        f"Measured {time.strftime('%Y-%m-%d')} on {cpu}, {os.cpu_count()} cores, by",
        "`tools/bazel run //tests/bench:models_vs_peers`. Batch 1, float32, random weights. Calls",
        "of all implementations alternate in one process with the same input; a time is the median",
        f"of {FLAGS.rounds} rounds, each the mean of as many calls as fill",
        f"{FLAGS.round_seconds:g} s. A ratio is the peer's time over ours, so above 1 ours is",
        "faster; the spread is the distance of the quartiles of our times over their median. Ours",
        "is called from Rust, the peers from Python, which costs each call about a microsecond.",
        "onnxruntime gets the graph that tf2rust has found.",
    ]
    peers = list(dict.fromkeys(who for row in rows for who in row.seconds if who != OURS))
    for threads in sorted({row.threads for row in rows}):
        heads = " | ".join(f"{peer} | ratio" for peer in peers)
        lines += [
            "",
            f"## {threads} thread{'s' if threads > 1 else ''}",
            "",
            f"| model | ours | spread | GMAC/s | {heads} |",
            "|---|---|---|---|" + "---|---|" * len(peers),
        ]
        for row in (row for row in rows if row.threads == threads):
            ours = row.median(OURS)
            cells = []
            for peer in peers:
                if peer in row.seconds:
                    cells += [_time(row.median(peer)), f"{row.median(peer) / ours:.2f}"]
                else:
                    cells += ["fails", ""]
            lines.append(
                f"| {row.model} | {_time(ours)} | {row.spread(OURS):.0%} "
                f"| {row.macs / ours / 1e9:.1f} | {' | '.join(cells)} |"
            )
    lines += _speedups(rows)
    lines += [
        "",
        "## Sizes",
        "",
        "The library is the compiled crate with weights and runtime. A call needs the memory of",
        "its workspace; a model has its weights a second time, packed, beside those that are in",
        "the program.",
        "",
        "| model | MACs | weights | workspace | library | rustc | memory of rustc |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in (row for row in rows if row.compile > 0 and row.threads == rows[0].threads):
        lines.append(
            f"| {row.model} | {row.macs / 1e6:.4g} M | {row.weights / 1e6:.3g} MB "
            f"| {row.arena / 1e6:.3g} MB | {row.size / 1e6:.3g} MB | {row.compile:.1f} s "
            f"| {row.peak / 1e6:.0f} MB |"
        )
    failures = dict.fromkeys(
        f"* {row.model}, {who}: {why}" for row in rows for who, why in row.missing.items()
    )
    if failures:
        lines += ["", "## What fails", "", *failures]
    return "\n".join(lines) + "\n"


def _speedups(rows: Sequence[Row]) -> list[str]:
    times = {(row.model, row.threads): row.median(OURS) for row in rows}
    found = [
        f"{row.model} {times[row.model, 1] / times[row.model, 2]:.2f}"
        for row in rows
        if row.threads == 2 and (row.model, 1) in times
    ]
    return ["", f"Two threads over one: {', '.join(found)}."] if found else []


def main(argv: Sequence[str]) -> None:
    """Runs the child's or the parent's part."""
    if FLAGS.child:
        entry = next(entry for entry in ZOO if entry.name == FLAGS.child)
        print(json.dumps(asdict(measure(entry, FLAGS.child_threads))), flush=True)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for entry in ZOO:
            if FLAGS.only and not any(text.lower() in entry.name.lower() for text in FLAGS.only):
                continue
            for threads in FLAGS.threads:
                row = child(entry, int(threads), folder, sys.argv[:1] + sys.argv[1:])
                if row is not None:
                    rows.append(row)
    if not rows:
        raise SystemExit("nothing was measured")
    if FLAGS.json:
        print(json.dumps([asdict(row) for row in rows]))
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    (root / FLAGS.output).write_text(page(rows), "utf-8")
    print(f"written: {FLAGS.output}", file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
