"""Does the same again and again, for minutes: the device keeps no memory that the CPU does not.

tools/bazel run //tests/memory:over_time -- --minutes=10

Each work runs in a process of its own, once on the device for the time that is given, and as often
on the CPU. TensorFlow keeps something of every trace and model, on every device, so that the CPU
says how much is TensorFlow's own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from absl import app, flags

from tests.e2e import child

Round = Callable[[], object]

# Rounds before the memory is looked at: what is made once. Also the fewest rounds after it.
_WARM = 20
# Rounds whose time is measured before the number of rounds is set.
_PROBE = 10
# Bytes by which the device may grow more than the CPU: pages that its allocator keeps, and a table
# that doubles.
_SLACK = 12 << 20


@dataclass(frozen=True)
class Growth:
    """How the memory of a process grew.

    Attributes:
        rounds: How often the work was done.
        seconds: Seconds of all rounds.
        first: Resident bytes after the first rounds.
        last: Resident bytes after the last one.
    """

    rounds: int
    seconds: float
    first: int
    last: int

    @property
    def bytes(self) -> int:
        """Returns by how much the memory grew."""
        return self.last - self.first


def resident() -> int:
    """Returns the resident bytes of this process."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def grown(work: Round, rounds: int, seconds: float) -> Growth:
    """Does a work again and again.

    Args:
        work: A round of it.
        rounds: How often; 0 for as often as fits into the seconds.
        seconds: Seconds that it may take if the number is not given.
    """
    for _ in range(_WARM):
        work()
    start = time.monotonic()
    if not rounds:
        for _ in range(_PROBE):
            work()
        rounds = max(_WARM, int(seconds * _PROBE / (time.monotonic() - start)))
    first = resident()
    start = time.monotonic()
    for _ in range(rounds):
        work()
    return Growth(rounds, time.monotonic() - start, first, resident())


def _eager(tf: Any) -> Round:
    v = tf.Variable(tf.ones([64, 64]))

    def work() -> None:
        for _ in range(20):
            v.assign(tf.nn.relu(v @ v) / 64.0 + tf.reduce_mean(v))

    return work


def _graph(tf: Any) -> Round:
    v = tf.Variable(tf.ones([64, 64]))

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ v) - 1.0))
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return loss

    def work() -> None:
        for rows in (8, 16, 8):
            step(tf.ones([rows, 64]))

    return work


def _model(tf: Any) -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((12, 12, 3)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10, activation="softmax"),
        ]
    )


def _fit(tf: Any) -> Round:
    model = _model(tf)
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    x, y = tf.random.normal([64, 12, 12, 3], seed=1), tf.zeros([64], tf.int64)
    return lambda: model.fit(x, y, batch_size=32, epochs=1, verbose=0)


def _predict(tf: Any) -> Round:
    model = _model(tf)
    x = tf.random.normal([48, 12, 12, 3], seed=1)
    return lambda: model.predict(x, batch_size=32, verbose=0)


def _load(tf: Any) -> Round:
    folder = tempfile.mkdtemp(prefix="over_time.")
    _model(tf).export(folder, verbose=False)
    x = tf.ones([2, 12, 12, 3])
    return lambda: tf.saved_model.load(folder).serve(x)


def _trace(tf: Any) -> Round:
    def work() -> None:
        v = tf.Variable(tf.ones([16]))
        step = tf.function(lambda x: v.assign_add(tf.tanh(x * v) + x))
        step(tf.ones([16]))

    return work


WORKS: Mapping[str, Callable[[Any], Round]] = {
    "eager": _eager,
    "graph": _graph,
    "fit": _fit,
    "predict": _predict,
    "load": _load,
    "trace": _trace,
}
"""What is done, by name."""


def _serve(name: str, device: str, rounds: int, seconds: float, pipe: Any) -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    if device != "CPU":
        os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
    import tensorflow as tf

    with tf.device(f"/device:{device}:0"):
        growth = grown(WORKS[name](tf), rounds, seconds)
    pipe.send(growth)


def measure(name: str, device: str, rounds: int, seconds: float) -> Growth:
    """Returns how the memory of a process grows that does a work.

    Raises:
        RuntimeError: The process ended.
    """
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_serve, args=(name, device, rounds, seconds, theirs))
    process.start()
    theirs.close()
    try:
        found: Growth = mine.recv()
    except EOFError:
        raise RuntimeError(f"{name} on {device}: the process ended") from None
    finally:
        process.join()
    return found


def problem(device: Growth, cpu: Growth) -> str:
    """Returns what is wrong, or nothing."""
    more = device.bytes - max(0, cpu.bytes)
    if more <= _SLACK:
        return ""
    return f"the device keeps {more / 2**20:.1f} MiB more than the CPU in {device.rounds:,} rounds"


def _results(names: Sequence[str], device: str, seconds: float) -> Iterator[tuple[str, str]]:
    for name in names:
        mine = measure(name, device, 0, seconds)
        cpu = measure(name, "CPU", mine.rounds, 0)
        row = {
            "work": name,
            "rounds": mine.rounds,
            "seconds": round(mine.seconds),
            **{
                f"{where} MiB": [round(b / 2**20, 1) for b in (growth.first, growth.last)]
                for where, growth in (("device", mine), ("CPU", cpu))
            },
        }
        yield json.dumps(row), problem(mine, cpu)


def main(argv: Sequence[str]) -> int:
    """Runs as the flags say; returns 1 if memory grows."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    code = 0
    for row, wrong in _results(_WORK.value or list(WORKS), _DEVICE.value, 60 * _MINUTES.value):
        print(row, wrong, flush=True)
        code |= bool(wrong)
    return code


_MINUTES = flags.DEFINE_float("minutes", 10, "minutes of each work on the device", 0.01)
_WORK = flags.DEFINE_multi_enum("work", [], list(WORKS), "what to do; all if not given")
_DEVICE = flags.DEFINE_string("device", "TFP", "the device's type")

if __name__ == "__main__":
    app.run(main)
