"""Compares the kernels with numpy, OpenBLAS, TensorFlow's oneDNN and onnxruntime on this machine.

Every measurement alternates: some calls of ours, of each peer, and again, with the same inputs; the
first call of a turn does not count.
The program runs itself once per number of threads, because TensorFlow and OpenBLAS fix theirs
when they start. It writes a page with medians and quartiles.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from absl import app, flags

from tests.bench.arithmetic import conv_rows, gemm_rows, line_rows, thin_rows
from tests.bench.bandwidth import elementwise_rows, mlp_rows, pooling_rows, row_rows
from tests.bench.images import resize_rows, training_rows
from tests.bench.library import ALONE, OURS, Library, Row
from tests.bench.machine import processor

SECTIONS = {
    "gemm": gemm_rows,
    "thin": thin_rows,
    "conv": conv_rows,
    "conv1d": line_rows,
    "elementwise": elementwise_rows,
    "rows": row_rows,
    "pooling": pooling_rows,
    "training": training_rows,
    "resize": resize_rows,
    "mlp": mlp_rows,
}

FLAGS = flags.FLAGS
flags.DEFINE_string("library", None, "The kernels' shared library.", required=True)
flags.DEFINE_integer("rounds", 15, "Calls of each implementation per row.", lower_bound=3)
flags.DEFINE_string("output", "docs/performance/kernels.md", "The page to write.")
flags.DEFINE_bool("json", False, "Print all rows as JSON.")
flags.DEFINE_list("only", [], f"Measure only these sections: {', '.join(SECTIONS)}.")
flags.DEFINE_integer("limit", 0, "Measure only so many rows of each section; 0 for all.")
flags.DEFINE_bool(
    "cpu_time",
    False,
    "Measure processor time instead of time: for one thread on a machine that does other work.",
)
flags.DEFINE_integer("child_threads", 0, "Measure with so many threads and print JSON lines.")

# Operations of a call that two threads should halve the time of, and of one where they may.
LARGE, MIDDLE = 1e7, 1e6


def measure(threads: int) -> None:
    """Measures all sections with so many threads and prints one JSON object per row."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    library = Library(FLAGS.library, threads)
    for name, rows in SECTIONS.items():
        if FLAGS.only and name not in FLAGS.only:
            continue
        for row in rows(library, threads):
            print(json.dumps(asdict(row)), flush=True)


def child(threads: int, argv: Sequence[str]) -> list[Row]:
    """The rows of this program, run again with so many threads."""
    environment = dict(os.environ)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        environment[name] = str(threads)
    environment["TF_CPP_MIN_LOG_LEVEL"] = "2"
    command = [sys.executable, *argv, f"--child_threads={threads}"]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                row = Row(**json.loads(line))
                rows.append(row)
                print(_line(row), file=sys.stderr)
    if process.returncode:
        raise SystemExit(f"the run with {threads} thread(s) failed: exit {process.returncode}")
    return rows


def _line(row: Row) -> str:
    ours = row.median(OURS)
    peers = " ".join(
        f"{name} {row.median(name) / ours:.2f}x" for name in row.seconds if name != OURS
    )
    rate, unit = (row.moved, "GB/s") if row.moved else (row.flops, "GFLOP/s")
    return f"{row.threads} {row.section} {row.name}: {rate / ours / 1e9:.1f} {unit}, {peers}"


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


def _peers(rows: Sequence[Row]) -> list[str]:
    """All peers of some rows, in order."""
    return list(dict.fromkeys(name for row in rows for name in row.seconds if name != OURS))


def _threads(rows: Sequence[Row]) -> list[str]:
    """How many times faster ours is with two threads, by how much a call computes."""
    sizes: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if ALONE in row.seconds:
            large = row.flops >= LARGE
            size = (
                "10 MFLOP or more" if large else "1 to 10 MFLOP" if row.flops >= MIDDLE else "less"
            )
            sizes.setdefault((row.section, size), []).append(row.median(ALONE) / row.median(OURS))
    if not sizes:
        return []
    return [
        "",
        "## Two threads against one",
        "",
        "| section | operations of a call | shapes | geometric mean | worst | best |",
        "|---|---|---|---|---|---|",
        *(
            f"| {section} | {size} | {len(ratios)} | {geometric_mean(ratios):.2f} "
            f"| {min(ratios):.2f} | {max(ratios):.2f} |"
            for (section, size), ratios in sizes.items()
        ),
    ]


def page(rows: Sequence[Row]) -> str:
    """The page: a summary, then every row."""
    lines = [
        "# Kernels against their peers",
        "",
        f"Measured {time.strftime('%Y-%m-%d')} on {processor()}, by",
        f"`tools/bazel run //tests/bench:kernels_vs_peers -- --output={FLAGS.output}`.",
        "Calls of all implementations alternate in one process with the same inputs, five at a",
        "time after a warm-up call. Inputs start at a cache line; with several threads there is",
        "a rest between calls. The machine may have done other work: compare the ratios, not",
        "the times.",
        "",
        "- A ratio is the peer's median time over ours: above 1, ours is faster.",
        "- The spread is the distance of the quartiles of our times over their median.",
        "- With two threads, ours with one thread is among the peers.",
        "- All are called from Python, which costs some microseconds per call. Our calls of the",
        "  perceptron (mlp) are the exception.",
        "- `copy` is the C library's copy of as many bytes as the operation moves, on one",
        "  thread. Its ratio is the part of that bandwidth that is reached.",
        '- "Peak" is measured in the same run: the same number of threads, doing only register',
        "  FMAs.",
        "- Where no cache holds the data, the limit is the time of that copy. If it is longer,",
        "  the limit is our own time for as many elements in a cache. The column is the",
        "  part of that speed.",
        "- Images of onnxruntime are channels first.",
        *(["- Times are processor time, because the machine was busy."] if FLAGS.cpu_time else []),
        "",
        "## Summary",
        "",
        "| section | threads | peer | geometric mean | worst | best |",
        "|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.section, row.threads), []).append(row)
    for (section, threads), group in groups.items():
        for peer in _peers(group):
            ratios = [row.median(peer) / row.median(OURS) for row in group if peer in row.seconds]
            mean = geometric_mean(ratios)
            lines.append(
                f"| {section} | {threads} | {peer} | {mean:.2f} "
                f"| {min(ratios):.2f} | {max(ratios):.2f} |"
            )
        far = [row.limit() / row.median(OURS) for row in group if row.compute]
        if far:
            lines.append(
                f"| {section} | {threads} | limit | {geometric_mean(far):.2f} "
                f"| {min(far):.2f} | {max(far):.2f} |"
            )
    lines += _threads(rows)
    for (section, threads), group in groups.items():
        peers = _peers(group)
        bounded = any(row.compute for row in group)
        heads = " | ".join(f"{peer} ratio" for peer in peers)
        unit = "GB/s |" if group[0].moved else "GFLOP/s | of peak |"
        lines += [
            "",
            f"## {section}, {threads} thread{'s' if threads > 1 else ''}",
            "",
            f"| shape | ms | spread | {unit} {heads} |{' of limit |' if bounded else ''}",
            "|---" * (unit.count("|") + 3 + len(peers) + bounded) + "|",
        ]
        for row in group:
            ours = row.median(OURS)
            rate = (row.moved or row.flops) / ours
            cells = [row.name, f"{ours * 1e3:.6g}" if ours < 1e-5 else f"{ours * 1e3:.3f}"]
            cells += [f"{row.spread(OURS):.0%}", f"{rate / 1e9:.1f}"]
            if not row.moved:
                cells.append(f"{rate / row.peak:.0%}")
            for peer in peers:
                known = peer in row.seconds
                cells.append(f"{row.median(peer) / ours:.2f}" if known else "-")
            if bounded:
                cells.append(f"{row.limit() / ours:.0%}" if row.compute else "-")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str]) -> None:
    """Runs the program."""
    if FLAGS.child_threads:
        measure(FLAGS.child_threads)
        return
    arguments = [sys.argv[0], *sys.argv[1:]]
    del argv
    counts = (1,) if FLAGS.cpu_time else (1, 2)
    rows = [row for threads in counts for row in child(threads, arguments)]
    if FLAGS.json:
        print(json.dumps([asdict(row) for row in rows]))
    output = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), FLAGS.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(rows))
    print(f"wrote {output}", file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
