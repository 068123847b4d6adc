"""Elements per second of pipelines of the client and of Python's tf.data, in turn.

Both read the same file with the same steps, and the sums of what they read are compared. The sides
change which one begins a round. Prints a table of elements per second, with medians and quartiles,
and the median of the ratios of rounds.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from absl import app, flags

from tests.bench import report

_ROUNDS = flags.DEFINE_integer("rounds", 9, "How often each side is timed.", lower_bound=3)
_SECONDS = flags.DEFINE_float("seconds", 60, "After which a row ends, with three rounds or more.")
_IMAGES = flags.DEFINE_integer("images", 640, "Images of a file, a multiple of 32.")
_NUMBERS = flags.DEFINE_integer("numbers", 2000, "Numbers of a reading.")
_RUST = flags.DEFINE_string("rust", None, "The Rust side's program.", required=True)
_WRITE = flags.DEFINE_string("write", None, "The page to write, such as docs/performance/data.md.")

BATCH = 32

PAGE: Final = """\
# Pipelines of data

`tools/bazel run -c opt //tests/bench/client:data_vs_python -- --write docs/performance/data.md`
reads the same pipelines by `tfp::data` and by Python's `tf.data`, in turn. Both build them of the
same ops with the same attributes, so TensorFlow's kernels do the same work. The time of a reading
begins before its iterator is made, and ends after its last element.

{where}.
Medians of up to {rounds} rounds with quartiles; the ratio is the median of those of the rounds.

{table}

- `images` reads {images} records, parses them, decodes JPEGs of 96 by 128 pixels, resizes them to
  64 by 64 and scales them. A batch has 32 of them. `map` is parallel, and TensorFlow tunes it.
- `numbers` reads {numbers} integers, adds one to each in `map` and shuffles them. An element has
  one number, so its row tells what an element costs.
"""


def write_images(path: pathlib.Path, count: int) -> None:
    """Writes records of JPEG images of 96 x 128 pixels, which noise makes as large as photos."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(1)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for label in range(count):
            smooth = random.integers(0, 256, (12, 16, 3)).repeat(8, 0).repeat(8, 1)
            pixels = np.clip(smooth + random.integers(-9, 10, smooth.shape), 0, 255)
            jpeg = tf.io.encode_jpeg(pixels.astype(np.uint8)).numpy()
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def pipeline(name: str, file: str) -> Any:
    """Returns the pipeline of `data_readings.rs` in Python."""
    import tensorflow as tf

    if name == "numbers":
        return tf.data.Dataset.range(int(file)).map(lambda n: n + 1).shuffle(1000, seed=7)
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def image(record: Any) -> tuple[Any, Any]:
        fields = tf.io.parse_single_example(record, spec)
        pixels = tf.io.decode_image(fields["image"], 3, expand_animations=False)
        return tf.image.resize(pixels, [64, 64]) / 255.0, fields["label"]

    data = tf.data.TFRecordDataset(file).map(image, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(BATCH, drop_remainder=True).prefetch(2)


def _tensorflow() -> str:
    """Returns the folder of Python's TensorFlow, which both sides load."""
    import tensorflow as tf

    return str(pathlib.Path(tf.__file__).parent)


def _python(name: str, file: str) -> Callable[[], tuple[float, int]]:
    data = pipeline(name, file)

    def read() -> tuple[float, int]:
        begun, total = time.perf_counter_ns(), 0
        for element in data:
            last = element[-1] if isinstance(element, tuple) else element
            total += int(last.numpy().sum())
        return time.perf_counter_ns() - begun, total

    return read


def _client(rust: subprocess.Popen[str], name: str, file: str) -> Callable[[], tuple[float, int]]:
    def read() -> tuple[float, int]:
        if not rust.stdin or not rust.stdout:
            raise RuntimeError("the Rust side has no pipes")
        rust.stdin.write(f"{name} {file}\n")
        answer = rust.stdout.readline().split()
        if len(answer) != 2:
            raise RuntimeError(f"the Rust side ended while it read {name}")
        return float(answer[0]), int(answer[1])

    return read


def main(argv: Sequence[str]) -> None:
    """Measures both sides in turn and prints the table."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    where = report.when_and_where()
    report.tell("importing TensorFlow, writing images")
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder) / "images.tfrecord"
        write_images(records, _IMAGES.value)
        os.environ.setdefault("TF_LIBRARY_PATH", _tensorflow())
        rust = subprocess.Popen(
            [_RUST.value],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        lines = ["| elements per second | Python | client | client / Python |", "|---|---|---|---|"]
        for name, file, count in (
            ("images", str(records), _IMAGES.value),
            ("numbers", str(_NUMBERS.value), _NUMBERS.value),
        ):
            sides = (_python(name, file), _client(rust, name, file))
            rates: tuple[list[float], list[float]] = ([], [])
            end = time.monotonic() + _SECONDS.value
            for turn in range(_ROUNDS.value + 1):
                if turn > 3 and time.monotonic() > end:
                    break
                sums, pairs = set(), list(zip(sides, rates, strict=True))
                for read, found in reversed(pairs) if turn % 2 else pairs:
                    nanoseconds, total = read()
                    sums.add(total)
                    # The first reading of each side begins cold.
                    if turn > 0:
                        found.append(count / nanoseconds * 1e9)
                if len(sums) != 1:
                    raise RuntimeError(f"the sides read other elements of {name}: {sums}")
                if turn > 0:
                    pair = ", ".join(f"{found[-1]:.0f}" for found in rates)
                    report.tell(f"{name}, round {turn} of {_ROUNDS.value}: {pair} elements/s")
            lines.append(_row(name, *rates))
        if rust.stdin:
            rust.stdin.close()
        rust.wait()
    table = "\n".join(lines)
    print(table, flush=True)
    if _WRITE.value:
        page = PAGE.format(
            where=where,
            rounds=_ROUNDS.value,
            images=_IMAGES.value,
            numbers=_NUMBERS.value,
            table=table,
        )
        report.write(_WRITE.value, page)


def _row(name: str, python: list[float], client: list[float]) -> str:
    ratio = statistics.median(c / p for p, c in zip(python, client, strict=True))
    return f"| {name} | {report.cell(python)} | {report.cell(client)} | {ratio:.2f} |"


if __name__ == "__main__":
    app.run(main)
