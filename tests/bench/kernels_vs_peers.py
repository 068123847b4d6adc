"""Compares the kernels with OpenBLAS, TensorFlow's oneDNN and onnxruntime on this machine.

Every measurement alternates: one call of ours, one of each peer, and again, with the same inputs.
The program runs itself once per number of threads, because TensorFlow and OpenBLAS fix theirs
when they start, and writes a page with medians and quartiles.
"""

import ctypes
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("library", None, "The kernels' shared library.", required=True)
flags.DEFINE_integer("rounds", 15, "Calls of each implementation per row.", lower_bound=3)
flags.DEFINE_string("output", "docs/performance/kernels.md", "The page to write.")
flags.DEFINE_bool("json", False, "Print all rows as JSON.")
flags.DEFINE_list("only", [], "Measure only these sections: gemm, conv.")
flags.DEFINE_integer("limit", 0, "Measure only so many rows of each section; 0 for all.")
flags.DEFINE_bool(
    "cpu_time",
    False,
    "Measure processor time instead of time: for one thread on a machine that does other work.",
)
flags.DEFINE_integer("child_threads", 0, "Measure with so many threads and print JSON lines.")

GEMMS = [(256,) * 3, (384,) * 3, (512,) * 3, (768,) * 3, (1024,) * 3, (1536,) * 3, (2048,) * 3]
MODELS = ["ResNet50", "MobileNetV2", "EfficientNetB0"]
OURS = "ours"


@dataclass(frozen=True)
class Row:
    """The measurements of one shape.

    Attributes:
        section: `gemm` or `conv`.
        name: the shape, for people.
        threads: threads of every implementation.
        flops: multiplications and additions of one call.
        peak: operations per second of one thread that only multiplies and adds, measured here.
        seconds: all calls of each implementation.
    """

    section: str
    name: str
    threads: int
    flops: float
    peak: float
    seconds: dict[str, list[float]]

    def median(self, who: str) -> float:
        """Seconds of the median call."""
        return statistics.median(self.seconds[who])

    def spread(self, who: str) -> float:
        """Distance of the quartiles as a part of the median."""
        low, _, high = statistics.quantiles(self.seconds[who], n=4)
        return (high - low) / self.median(who)


@dataclass(frozen=True)
class Shape:
    """A convolution: channels last, square stride, without dilation."""

    height: int
    width: int
    in_channels: int
    out_channels: int
    rows: int
    columns: int
    stride: int
    same: bool
    groups: int

    def name(self) -> str:
        """The shape, for people."""
        kind = "depthwise " if self.groups > 1 else ""
        return (
            f"{kind}{self.height}x{self.width}x{self.in_channels} -> {self.out_channels}, "
            f"{self.rows}x{self.columns}/{self.stride} {'SAME' if self.same else 'VALID'}"
        )

    def output(self) -> tuple[int, int]:
        """Height and width of the output."""
        if self.same:
            return -(-self.height // self.stride), -(-self.width // self.stride)
        return (
            (self.height - self.rows) // self.stride + 1,
            (self.width - self.columns) // self.stride + 1,
        )

    def flops(self) -> float:
        """Multiplications and additions."""
        height, width = self.output()
        taps = self.rows * self.columns * self.in_channels / self.groups
        return 2.0 * height * width * self.out_channels * taps


class Library:
    """The kernels' shared library."""

    def __init__(self, path: str, threads: int) -> None:
        """Loads the library at `path`; all calls use `threads` threads."""
        self._library = ctypes.CDLL(str(pathlib.Path(path).absolute()))
        self._threads = ctypes.c_size_t(threads)
        for name in ("bench_peak", "bench_gemm", "bench_conv_pack", "bench_conv"):
            getattr(self._library, name).restype = ctypes.c_double
        self._library.bench_conv_packed_len.restype = ctypes.c_size_t

    def peak(self) -> float:
        """Operations per second of one thread that only multiplies and adds."""
        return float(self._library.bench_peak())

    def gemm(self, a: Any, b: Any, c: Any) -> Callable[[], float]:
        """A call of a product that writes `c`, timed like the peers' calls."""
        sizes = [ctypes.c_size_t(x) for x in (a.shape[0], b.shape[1], a.shape[1])]
        arguments = [self._threads, *sizes, _pointer(a), _pointer(b), _pointer(c)]
        return _timed(lambda: _checked(self._library.bench_gemm(*arguments)))

    def conv(self, shape: Shape, x: Any, w: Any, bias: Any, y: Any) -> Callable[[], float]:
        """A call of a convolution that writes `y`, timed like the peers' calls."""
        sizes = (ctypes.c_size_t * 10)(
            1,
            shape.height,
            shape.width,
            shape.in_channels,
            shape.out_channels,
            shape.rows,
            shape.columns,
            shape.stride,
            int(shape.same),
            shape.groups,
        )
        packed = np.zeros(self._library.bench_conv_packed_len(sizes), np.float32)
        _checked(self._library.bench_conv_pack(sizes, _pointer(w), _pointer(packed)))

        def call() -> float:
            return _checked(
                self._library.bench_conv(
                    self._threads, sizes, _pointer(x), _pointer(packed), _pointer(bias), _pointer(y)
                )
            )

        return _timed(call)


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _checked(seconds: float) -> float:
    if seconds < 0:
        raise RuntimeError("the kernel refused its arguments")
    return float(seconds)


def _timed(call: Callable[[], Any]) -> Callable[[], float]:
    clock = time.process_time if FLAGS.cpu_time else time.perf_counter

    def run() -> float:
        start = clock()
        call()
        return clock() - start

    return run


def _fetched(function: Callable[..., Any], *inputs: Any) -> Any:
    return function(*inputs).numpy()


def alternate(calls: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Calls all in turn, `rounds` times after three rounds of warming up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for round_number in range(rounds + 3):
        for name, call in calls.items():
            elapsed = call()
            if round_number >= 3:
                seconds[name].append(elapsed)
    return seconds


def _session(model: Any, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _onnx_model(node: Any, inputs: dict[str, Any], weights: dict[str, Any], out: Any) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    def value(name: str, array: Any) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)

    graph = helper.make_graph(
        [node],
        "row",
        [value(name, array) for name, array in inputs.items()],
        [value("y", out)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def gemm_rows(library: Library, threads: int) -> Iterable[Row]:
    """Square products."""
    import tensorflow as tf

    rng = np.random.default_rng(1)
    for m, n, k in _limited(GEMMS):
        a = rng.standard_normal((m, k), np.float32)
        b = rng.standard_normal((k, n), np.float32)
        c, d = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
        ta, tb = tf.constant(a), tf.constant(b)
        multiply = tf.function(tf.matmul)
        calls = {
            OURS: library.gemm(a, b, c),
            "OpenBLAS": _timed(partial(np.matmul, a, b, out=d)),
            "TensorFlow": _timed(partial(_fetched, multiply, ta, tb)),
        }
        seconds = alternate(calls, FLAGS.rounds)
        np.testing.assert_allclose(c, d, rtol=1e-3, atol=1e-3)
        name = f"{m} x {k} x {n}"
        yield Row("gemm", name, threads, 2.0 * m * n * k, library.peak(), seconds)


def conv_shapes() -> list[Shape]:
    """Every distinct convolution of the models."""
    import keras

    shapes: dict[Shape, None] = {}
    for name in MODELS:
        model = getattr(keras.applications, name)(weights=None)
        for layer in model.layers:
            depthwise = isinstance(layer, keras.layers.DepthwiseConv2D)
            if not depthwise and type(layer) is not keras.layers.Conv2D:
                continue
            _, height, width, channels = layer.input.shape
            shapes[
                Shape(
                    height,
                    width,
                    channels,
                    layer.output.shape[-1],
                    layer.kernel_size[0],
                    layer.kernel_size[1],
                    layer.strides[0],
                    layer.padding == "same",
                    channels if depthwise else 1,
                )
            ] = None
    return list(shapes)


def conv_rows(library: Library, threads: int) -> Iterable[Row]:
    """Convolutions with a bias, batch 1, weights packed or constant."""
    import tensorflow as tf
    from onnx import helper

    rng = np.random.default_rng(1)
    for shape in _limited(conv_shapes()):
        x = rng.standard_normal((1, shape.height, shape.width, shape.in_channels), np.float32)
        depth = shape.in_channels // shape.groups
        w = rng.standard_normal(
            (shape.rows, shape.columns, depth, shape.out_channels), np.float32
        ) / np.float32(math.sqrt(shape.rows * shape.columns * depth))
        bias = rng.standard_normal(shape.out_channels, np.float32)
        y = np.empty((1, *shape.output(), shape.out_channels), np.float32)

        node = helper.make_node(
            "Conv",
            ["x", "w", "bias"],
            ["y"],
            auto_pad="SAME_UPPER" if shape.same else "VALID",
            group=shape.groups,
            strides=[shape.stride, shape.stride],
        )
        first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
        weights = np.ascontiguousarray(w.transpose(3, 2, 0, 1))
        model = _onnx_model(
            node, {"x": first}, {"w": weights, "bias": bias}, y.transpose(0, 3, 1, 2)
        )
        session = _session(model, threads)

        tx, tb = tf.constant(x), tf.constant(bias)
        padding = "SAME" if shape.same else "VALID"
        if shape.groups > 1:
            tw = tf.constant(w.transpose(0, 1, 3, 2))

            def compute(x: Any, w: Any, b: Any, s: int = shape.stride, p: str = padding) -> Any:
                return tf.nn.bias_add(tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], p), b)
        else:
            tw = tf.constant(w)

            def compute(x: Any, w: Any, b: Any, s: int = shape.stride, p: str = padding) -> Any:
                return tf.nn.bias_add(tf.nn.conv2d(x, w, s, p), b)

        function = tf.function(compute, autograph=False)
        calls = {
            OURS: library.conv(shape, x, w, bias, y),
            "onnxruntime": _timed(partial(session.run, None, {"x": first})),
            "TensorFlow": _timed(partial(_fetched, function, tx, tw, tb)),
        }
        seconds = alternate(calls, FLAGS.rounds)
        expected = session.run(None, {"x": first})[0].transpose(0, 2, 3, 1)
        np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-3)
        yield Row("conv", shape.name(), threads, shape.flops(), library.peak(), seconds)


def _limited(rows: Sequence[Any]) -> Sequence[Any]:
    return rows[: FLAGS.limit] if FLAGS.limit else rows


SECTIONS = {"gemm": gemm_rows, "conv": conv_rows}


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
    return f"{row.threads} {row.section} {row.name}: {row.flops / ours / 1e9:.1f} GFLOP/s, {peers}"


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


def page(rows: Sequence[Row]) -> str:
    """The page: a summary, then every row."""
    cpu = platform.processor() or "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    lines = [
        "# Kernels against their peers",
        "",
        f"Measured {time.strftime('%Y-%m-%d')} on {cpu}, {os.cpu_count()} cores, by",
        "`tools/bazel run //tests/bench:kernels_vs_peers`. Calls of all implementations alternate",
        "in one process with the same inputs, and the machine may have done other work meanwhile:",
        "compare the ratios, not the times. A ratio is the peer's median time over ours, so above",
        "1 ours is faster; the spread is the distance of the quartiles of our times over their",
        "median. All are called from Python, which costs each some microseconds per call.",
        *(["Times are processor time, because the machine was busy."] if FLAGS.cpu_time else []),
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
        for peer in [name for name in group[0].seconds if name != OURS]:
            ratios = [row.median(peer) / row.median(OURS) for row in group]
            mean = geometric_mean(ratios)
            lines.append(
                f"| {section} | {threads} | {peer} | {mean:.2f} "
                f"| {min(ratios):.2f} | {max(ratios):.2f} |"
            )
    for (section, threads), group in groups.items():
        peers = [name for name in group[0].seconds if name != OURS]
        heads = " | ".join(f"{peer} ratio" for peer in peers)
        lines += [
            "",
            f"## {section}, {threads} thread{'s' if threads > 1 else ''}",
            "",
            f"| shape | ms | spread | GFLOP/s | of peak | {heads} |",
            "|---|---|---|---|---|" + "---|" * len(peers),
        ]
        for row in group:
            ours = row.median(OURS)
            rate = row.flops / ours
            cells = " | ".join(f"{row.median(peer) / ours:.2f}" for peer in peers)
            lines.append(
                f"| {row.name} | {ours * 1e3:.3f} | {row.spread(OURS):.0%} | {rate / 1e9:.1f} "
                f"| {rate / row.peak / row.threads:.0%} | {cells} |"
            )
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
