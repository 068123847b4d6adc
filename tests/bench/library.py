"""The kernels' shared library, and how calls are timed."""

import ctypes
import pathlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from absl import flags

FLAGS = flags.FLAGS
OURS = "ours"
# Ours with one thread, beside ours with several.
ALONE = "one thread"
COPY = "copy"
UNARY = ["copy", "relu", "exp", "tanh", "sigmoid", "erf", "log", "gelu"]
MLP_CALLS = 1000


def at_line(values: Any) -> Any:
    """Returns a copy of an array that starts at a line of the cache.

    The tensors of TensorFlow and of generated crates do; NumPy's start 16 bytes later, where each
    vector of AVX-512 lies in two lines.
    """
    line = 64
    memory = np.empty(values.nbytes + line, np.uint8)
    start = -memory.ctypes.data % line
    out = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    np.copyto(out, values)
    return out


@dataclass(frozen=True)
class Row:
    """The measurements of one shape.

    Attributes:
        section: one of `SECTIONS`.
        name: the shape, for people.
        threads: threads of every implementation.
        flops: multiplications and additions of one call; 0 where its data count.
        peak: operations per second of as many threads that only multiply and add, measured in turn
            with the others.
        moved: bytes that one call reads and writes; 0 where its operations count.
        compute: seconds that ours takes for as many elements that stay in the cache; 0 where the
            row itself stays there.
        seconds: all calls of each implementation.
    """

    section: str
    name: str
    threads: int
    flops: float
    peak: float
    seconds: dict[str, list[float]]
    moved: float = 0.0
    compute: float = 0.0

    def limit(self) -> float:
        """Seconds below which a call cannot be: those of the copy or of the computation."""
        return max(self.median(COPY), self.compute)

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
    """The kernels' shared library.

    Attributes:
        alone: the library with calls that use one thread; None if these do.
    """

    def __init__(self, path: str, threads: int) -> None:
        """Loads the library at `path`; all calls use `threads` threads."""
        self.alone = Library(path, 1) if threads > 1 else None
        self._library = ctypes.CDLL(str(pathlib.Path(path).absolute()))
        self._threads = ctypes.c_size_t(threads)
        for name in (
            "bench_peak",
            "bench_gemm",
            "bench_conv_pack",
            "bench_conv",
            "bench_conv_training",
            "bench_unary",
            "bench_add",
            "bench_rows",
            "bench_pool",
            "bench_resize",
            "bench_mlp",
        ):
            getattr(self._library, name).restype = ctypes.c_double
        self._library.bench_conv_packed_len.restype = ctypes.c_size_t

    def peak(self) -> float:
        """Seconds per operation of threads that only multiply and add."""
        return float(self._library.bench_peak(self._threads))

    def gemm(self, a: Any, b: Any, c: Any) -> Callable[[], float]:
        """A call of a product that writes `c`, timed like the peers' calls."""
        sizes = [ctypes.c_size_t(x) for x in (a.shape[0], b.shape[1], a.shape[1])]
        arguments = [self._threads, *sizes, _pointer(a), _pointer(b), _pointer(c)]
        return timed(lambda: _checked(self._library.bench_gemm(*arguments)))

    def conv(self, shape: Shape, x: Any, w: Any, bias: Any, y: Any) -> Callable[[], float]:
        """A call of a convolution that writes `y`, timed like the peers' calls."""
        sizes = _sizes(1, shape)
        packed = at_line(np.zeros(self._library.bench_conv_packed_len(sizes), np.float32))
        _checked(self._library.bench_conv_pack(sizes, _pointer(w), _pointer(packed)))

        def call() -> float:
            return _checked(
                self._library.bench_conv(
                    self._threads, sizes, _pointer(x), _pointer(packed), _pointer(bias), _pointer(y)
                )
            )

        return timed(call)

    def conv_training(
        self, direction: int, shape: Shape, arrays: tuple[Any, Any, Any]
    ) -> Callable[[], float]:
        """A call of a convolution without packed weights, or of a gradient.

        Args:
            direction: 0 writes the output, 1 the gradient by the input, 2 that by the filter.
            shape: one image's.
            arrays: input, filter and output.
        """
        sizes = _sizes(len(arrays[0]), shape)
        data = [_pointer(array) for array in arrays]
        arguments = [self._threads, ctypes.c_size_t(direction), sizes, *data]
        return timed(lambda: _checked(self._library.bench_conv_training(*arguments)))

    def unary(self, op: str, x: Any, y: Any) -> Callable[[], float]:
        """A call of an operation of `UNARY` on all elements of `x`."""
        sizes = (ctypes.c_size_t(UNARY.index(op)), ctypes.c_size_t(x.size))
        arguments = [self._threads, *sizes, _pointer(x), _pointer(y)]
        return timed(lambda: _checked(self._library.bench_unary(*arguments)))

    def add(self, x: Any, y: Any, z: Any) -> Callable[[], float]:
        """A call that writes `x + y` to `z`."""
        arguments = [self._threads, ctypes.c_size_t(x.size), _pointer(x), _pointer(y), _pointer(z)]
        return timed(lambda: _checked(self._library.bench_add(*arguments)))

    def rows(self, op: int, x: Any, scale: Any, shift: Any, y: Any) -> Callable[[], float]:
        """A call of softmax (0), layer normalisation (1) or scale and shift (2)."""
        sizes = (ctypes.c_size_t * 2)(*x.shape)
        data = [_pointer(array) for array in (x, scale, shift, y)]
        arguments = [self._threads, ctypes.c_size_t(op), sizes, *data]
        return timed(lambda: _checked(self._library.bench_rows(*arguments)))

    def pool(self, mean: bool, sizes: tuple[int, ...], x: Any, y: Any) -> Callable[[], float]:
        """A call of a pooling of one image: side, channels, window, stride."""
        all_sizes = (ctypes.c_size_t * 5)(int(mean), *sizes)
        arguments = [self._threads, all_sizes, _pointer(x), _pointer(y)]
        return timed(lambda: _checked(self._library.bench_pool(*arguments)))

    def resize(self, bilinear: bool, x: Any, y: Any) -> Callable[[], float]:
        """A call that writes a square image in another size, with the centres of half pixels."""
        sizes = (ctypes.c_size_t * 4)(int(bilinear), x.shape[1], y.shape[1], x.shape[3])
        arguments = [self._threads, sizes, _pointer(x), _pointer(y)]
        return timed(lambda: _checked(self._library.bench_resize(*arguments)))

    def mlp(self, x: Any, weights: Any, y: Any) -> Callable[[], float]:
        """`MLP_CALLS` calls of the small perceptron, as seconds per call."""
        arguments = [ctypes.c_size_t(MLP_CALLS), _pointer(x), _pointer(weights), _pointer(y)]
        return lambda: _checked(self._library.bench_mlp(*arguments)) / MLP_CALLS


def _sizes(batch: int, shape: Shape) -> Any:
    return (ctypes.c_size_t * 10)(
        batch,
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


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _checked(seconds: float) -> float:
    if seconds < 0:
        raise RuntimeError("the kernel refused its arguments")
    return float(seconds)


def ours(
    library: Library, call: Callable[[Library], Callable[[], float]]
) -> dict[str, Callable[[], float]]:
    """Our call, and the same with one thread if the library's calls use several."""
    calls = {OURS: call(library)}
    if library.alone is not None:
        calls[ALONE] = call(library.alone)
    return calls


def timed(call: Callable[[], Any]) -> Callable[[], float]:
    """Returns a function that makes the call and returns its seconds."""
    clock = time.process_time if FLAGS.cpu_time else time.perf_counter

    def run() -> float:
        start = clock()
        call()
        return clock() - start

    return run


def fetched(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns the result of a function of TensorFlow as an array."""
    return function(*inputs).numpy()


# Calls of an implementation in a row that count.
TURN = 5
# Seconds after which idle threads of an implementation have gone to sleep.
REST = 0.05


def with_peak(
    library: Library, calls: dict[str, Callable[[], float]], rounds: int
) -> tuple[float, dict[str, list[float]]]:
    """Like `alternate`, with the processor's peak among the others: that first, per second."""
    seconds = alternate({**calls, "peak": library.peak}, rounds)
    return 1 / statistics.median(seconds.pop("peak")), seconds


def alternate(calls: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Calls all in turn until each has made so many calls, after a call to warm up.

    The first call of a turn does not count. So nobody finds its inputs in the caches because the
    one before had the same, and nobody has them taken away by it. With several threads there is a
    rest before each turn: threads of the one before look for work for a while, on a processor that
    the next one needs.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for first in range(0, rounds, TURN):
        for name, call in calls.items():
            if FLAGS.child_threads > 1:
                time.sleep(REST)
            call()
            seconds[name] += [call() for _ in range(min(TURN, rounds - first))]
    return seconds
