"""The device of libtfp.so against TensorFlow's own CPU device, in one process.

Every case is a graph that runs on both in turn, with the same number of threads for each; a ratio
is of two runs that follow each other. Tiny ops stand in a chain, each waiting for the one before.
So a time is that of a node with TensorFlow's own work around it.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from absl import app, flags

from tests.bench.machine import processor

_LIBRARY = flags.DEFINE_string("library", "plugin/libtfp.so", "Path of libtfp.so.")
_THREADS = flags.DEFINE_integer(
    "threads", os.cpu_count() or 1, "Threads that compute, on both.", lower_bound=1
)
_ROUNDS = flags.DEFINE_integer("rounds", 21, "Pairs of runs of each case.", lower_bound=4)
_ONLY = flags.DEFINE_list("only", [], "Parts of names; only the cases that have one are run.")
_WRITE = flags.DEFINE_string("write", None, "The page to write.")
_JSON = flags.DEFINE_bool("json", False, "Print JSON in place of tables.")

DEVICES: Final = ("/device:TFP:0", "/device:CPU:0")
TINY_CHAIN: Final = 200
LEAST_SECONDS: Final = 0.004
"""A run is repeated until it takes as long as this on the CPU."""

COMMAND: Final = "tools/bazel run //tests/bench:plugin_vs_cpu -- --write"

PAGE: Final = """\
# The device against TensorFlow's CPU

`{command}` wrote this page: {date}, {machine}, {threads} threads each, TensorFlow {tensorflow}.
There are {rounds} pairs of runs per case, and 7 of the slowest models. Both devices are in one
process and take turns; a ratio is of two runs that follow each other, and above 1 the device of
libtfp.so is faster. Times are medians.
`docs/performance/adapter.md` says where a tiny op's time goes.
A function's int32 results are in host memory, to which the device copies them (`Cast to int32`).

| | this | goal |
|---|---|---|
| large tensors, geometric mean of the ratios | {large:.2f} | at least 1.00 |
| tiny tensors, geometric mean of the device's time over the CPU's | {tiny:.2f} | at most 1.10 |
| models below 1.00 | {losing} | none |

## Models

{models}

## Large tensors

{large_table}

## Tiny tensors

{tiny_table}
"""


@dataclasses.dataclass(frozen=True)
class Result:
    """One case.

    Attributes:
        group: `large`, `tiny` or `model`.
        name: What was run.
        tfp: Median time on the device, in microseconds.
        cpu: Median time on the CPU, in microseconds.
        ratio: Lower quartile, median and upper quartile of the CPU's time over the device's.
    """

    group: str
    name: str
    tfp: float
    cpu: float
    ratio: tuple[float, float, float]

    def row(self) -> str:
        """Returns the line of the table."""
        low, middle, high = self.ratio
        mark = "" if middle >= 1 else " loses"
        return (
            f"| {self.name} | {_time(self.tfp)} | {_time(self.cpu)} | {middle:.2f}{mark} | "
            f"{low:.2f} to {high:.2f} |"
        )


def _time(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{microseconds:.1f} µs"
    return f"{microseconds / 1000:.2f} ms"


def _chain(call: Callable[..., Any], inputs: Sequence[Any], device: str, length: int) -> Any:
    """Returns a function that runs `length` copies of an op, one after the other."""
    import tensorflow as tf

    with tf.device(device):
        placed = [tf.identity(tf.constant(each)) for each in inputs]

    def body() -> Any:
        with tf.device(device):
            result = call(*placed)
            for _ in range(length - 1):
                with tf.control_dependencies([result]):
                    result = call(*placed)
        return result

    function = tf.function(body, autograph=False, jit_compile=False).get_concrete_function()
    return lambda: function()


def compare(
    group: str, name: str, runs: Sequence[Callable[[], Any]], nodes: int, most: int = 0
) -> Result:
    """Times two functions in turn.

    Args:
        group: The case's group.
        name: Its name.
        runs: What runs it on the device and on the CPU.
        nodes: How many nodes a run has; times are per node.
        most: Pairs of runs, at most; 0 for as many as asked for.
    """
    for run in runs:
        for _ in range(3):
            run()
    start = time.perf_counter()
    runs[1]()
    repeat = max(1, math.ceil(LEAST_SECONDS / (time.perf_counter() - start)))

    def seconds(run: Callable[[], Any]) -> float:
        start = time.perf_counter()
        for _ in range(repeat):
            run()
        return (time.perf_counter() - start) / repeat

    times: list[list[float]] = [[], []]
    for turn in range(min(_ROUNDS.value, most or _ROUNDS.value)):
        order = (0, 1) if turn % 2 else (1, 0)
        for index in order:
            times[index].append(seconds(runs[index]) / nodes * 1e6)
    ratios = [cpu / tfp for tfp, cpu in zip(*times, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    medians = [statistics.median(found) for found in times]
    return Result(group, name, medians[0], medians[1], (low, middle, high))


def measure() -> Iterable[Result]:
    """Runs every case."""
    import tensorflow as tf

    from tests.bench import plugin_cases as cases
    from tests.bench import plugin_models

    wanted = [part.lower() for part in _ONLY.value]

    def chosen(name: str) -> bool:
        return not wanted or any(part in name.lower() for part in wanted)

    # Chains are of equal nodes, which an optimizer would take apart.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    for group, length in (("large", 1), ("tiny", TINY_CHAIN)):
        for case in cases.OPS:
            if chosen(case.name):
                inputs = case.large if group == "large" else case.tiny
                runs = [_chain(case.call, inputs, device, length) for device in DEVICES]
                yield compare(group, case.name, runs, length)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    for model in plugin_models.MODELS:
        if chosen(model.name):
            runs = [_step(model.make, model.is_graph, device) for device in DEVICES]
            yield compare("model", model.name, runs, 1, model.rounds)


def _step(make: Callable[[], Callable[[], Any]], is_graph: bool, device: str) -> Callable[[], Any]:
    import tensorflow as tf

    with tf.device(device):
        step = make()
    if not is_graph:

        def run() -> Any:
            with tf.device(device):
                return step()

        return run

    def body() -> Any:
        with tf.device(device):
            return step()

    function = tf.function(body, autograph=False, jit_compile=False).get_concrete_function()
    return lambda: function()


def geometric(results: Sequence[Result]) -> float:
    """Returns the geometric mean of the median ratios; NaN for none."""
    if not results:
        return math.nan
    return math.exp(statistics.fmean(math.log(result.ratio[1]) for result in results))


def _table(results: Sequence[Result]) -> str:
    heading = "| case | TFP | CPU | ratio | middle half of the ratios |\n|---|---|---|---|---|"
    return "\n".join([heading, *(result.row() for result in results)])


def page(results: Sequence[Result], tensorflow: str) -> str:
    """Writes the page."""
    of = {
        group: [result for result in results if result.group == group]
        for group in ("model", "large", "tiny")
    }
    return PAGE.format(
        command=f"{COMMAND} {_WRITE.value}",
        date=datetime.datetime.now(datetime.UTC).date(),
        machine=processor(),
        threads=_THREADS.value,
        tensorflow=tensorflow,
        rounds=_ROUNDS.value,
        large=geometric(of["large"]),
        tiny=1 / geometric(of["tiny"]),
        losing="; ".join(each.name for each in of["model"] if each.ratio[1] < 1) or "none",
        models=_table(of["model"]),
        large_table=_table(of["large"]),
        tiny_table=_table(of["tiny"]),
    )


def main(argv: Sequence[str]) -> int:
    """Measures; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    library = pathlib.Path(_LIBRARY.value).absolute()
    if not library.is_file():
        print(f"plugin_vs_cpu: no plug-in at {library}: give --library", file=sys.stderr)
        return 2
    os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(library)
    os.environ["TFP_NUM_THREADS"] = str(_THREADS.value)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(_THREADS.value)
    if not tf.config.list_physical_devices("TFP"):
        print(f"plugin_vs_cpu: {library} offers no device", file=sys.stderr)
        return 2
    tf.config.set_soft_device_placement(False)
    results = []
    for result in measure():
        results.append(result)
        print(result.group, result.row(), file=sys.stderr, flush=True)
    if _JSON.value:
        print(json.dumps([dataclasses.asdict(result) for result in results], indent=1))
    if _WRITE.value:
        base = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        (base / _WRITE.value).write_text(page(results, str(tf.__version__)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    app.run(main)
