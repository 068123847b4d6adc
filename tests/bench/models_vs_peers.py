"""Compares crates that tf2rust writes with TensorFlow, TFLite, onnxruntime and tract.

Float32, some batches; peers get a graph of each. Every implementation has a process of its own and
the same input, and they take turns: while one runs, the others are stopped, so that no thread of
theirs is in its way. Every result is compared with TensorFlow's before anything is timed. It writes
a page with medians and quartiles of the time of an example.

tract takes part where `--tract` names its library, which Cargo makes from a hundred crates that it
fetches: `cargo build --release --manifest-path tests/bench/tract/Cargo.toml`, then
`tests/bench/tract/target/release/libtract_peer.so`.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from absl import app, flags

from tests.bench.machine import processor
from tests.bench.models.files import batch_folder
from tests.bench.models.page import ALONE, How, Row, page
from tests.bench.models.peers import LOADERS, OURS, TRACT
from tests.bench.models.worker import Worker, WorkerError, serve
from tests.bench.models.zoo import ZOO

FLAGS = flags.FLAGS
flags.DEFINE_integer("rounds", 9, "Rounds of calls per model.", lower_bound=3)
flags.DEFINE_float("round_seconds", 0.15, "Time of a round of one implementation, about.")
flags.DEFINE_string("output", "docs/performance/models.md", "The page to write.")
flags.DEFINE_bool("json", False, "Print all rows as JSON.")
flags.DEFINE_list("only", [], "Measure only models whose names hold one of these texts.")
flags.DEFINE_list("threads", ["1", "2"], "Numbers of threads.")
flags.DEFINE_list("batches", ["1", "8", "32"], "Examples of a call.")
flags.DEFINE_string("folder", "", "Keep the prepared models here, and use those that are here.")
flags.DEFINE_bool("measure", True, "Measure, after the models are prepared.")
flags.DEFINE_string("tract", "", "The library of tract; without it tract is left out.")
flags.DEFINE_string("worker", "", "Be the process of this implementation.")


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


def measure(pool: Pool, row: Row, folder: Path) -> None:
    """Measures one model; `folder` is that of the batch."""
    threads = row.threads
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
    print(row.line(), file=sys.stderr)


def _calls_for(worker: Worker) -> int:
    """Returns how many calls fill a round."""
    calls = 1
    while True:
        seconds = worker.ask({"calls": calls})["seconds"]
        if seconds * calls >= FLAGS.round_seconds / 4 or calls >= 1 << 20:
            return max(1, int(FLAGS.round_seconds / max(seconds, 1e-9)))
        calls *= 4


def _how() -> How:
    """How this program measures."""
    given = [f"--rounds={FLAGS.rounds}", f"--batches={','.join(FLAGS.batches)}"]
    given += [f"--output={FLAGS.output}", *(["--tract=LIBRARY"] if FLAGS.tract else [])]
    command = f"tools/bazel run //tests/bench:models_vs_peers -- {' '.join(given)}"
    return How(processor(), command, FLAGS.rounds, FLAGS.round_seconds)


def main(argv: Sequence[str]) -> None:
    """Runs the worker's or the parent's part."""
    del argv
    if FLAGS.worker:
        serve(FLAGS.worker)
        return
    base = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    if FLAGS.tract:
        os.environ[TRACT] = str((base / FLAGS.tract).absolute())
    # They import TensorFlow, which most workers do without.
    from tests.bench.models.prepare import prepared_in

    batches = [int(batch) for batch in FLAGS.batches]
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
            prepared.append((entry.name, prepared_in(entry, place, batches), place))
        if not FLAGS.measure:
            return
        try:
            for name, facts, place in prepared:
                for batch, threads in itertools.product(batches, map(int, FLAGS.threads)):
                    part = batch_folder(batch)
                    missing = dict(facts.missing[part])
                    row = Row(name, batch, threads, facts, missing=missing)
                    measure(pool, row, place / part)
                    rows.append(row)
        finally:
            pool.end()
    if FLAGS.json:
        print(json.dumps([asdict(row) for row in rows]))
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    (root / FLAGS.output).write_text(page(rows, _how()), "utf-8")
    print(f"written: {FLAGS.output}", file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
