"""Random graphs: fused on the device, op by op on the device, and on the CPU.

A graph is drawn from a seed: its inputs, up to thirty steps of a hundred op types, branches, loops
and variables. As a function it goes through the graph optimizer; op by op it does not. All three
results have to agree. `python -m tests.conformance.random_graphs --first 0 --count 10000` draws
many, with `TF_PLUGGABLE_DEVICE_LIBRARY_PATH` set.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import tensorflow as tf

Tensor = Any
DEVICE: Final = "/device:TFP:0"
CPU: Final = "/device:CPU:0"

TOLERANCES: Final = {"float32": 2e-4, "float16": 3e-2, "bfloat16": 2e-1}
"""Largest difference relative to the largest element of a tensor and 1. Errors of up to thirty
steps add up, and the CPU rounds the parts of sums of 16-bit floats."""

STEPS: Final = 30
"""Steps of a graph, at most."""

LARGEST: Final = 4096
"""Elements of a tensor, at most."""

UNARY: Final[Sequence[Callable[[Tensor], Tensor]]] = (
    tf.abs, tf.atan, tf.cos, tf.nn.elu, tf.math.erf, tf.identity, tf.nn.leaky_relu, tf.negative,
    tf.nn.relu, tf.nn.relu6, tf.nn.selu, tf.sigmoid, tf.sin, tf.nn.softplus, tf.nn.softsign,
    tf.tanh, tf.zeros_like, tf.ones_like, tf.asinh, tf.nn.gelu, tf.nn.silu,
    lambda x: tf.exp(-tf.abs(x)),
    lambda x: tf.math.log1p(tf.abs(x)),
    lambda x: tf.sqrt(tf.abs(x) + 1),
    lambda x: tf.math.rsqrt(tf.abs(x) + 1),
    lambda x: tf.math.reciprocal(tf.abs(x) + 1),
    lambda x: tf.square(tf.tanh(x)),
    lambda x: tf.math.expm1(-tf.abs(x)),
    lambda x: tf.math.erfc(x),
    lambda x: tf.clip_by_value(x, -1, 1),
)  # fmt: skip
BINARY: Final[Sequence[Callable[[Tensor, Tensor], Tensor]]] = (
    tf.add, tf.subtract, tf.maximum, tf.minimum,
    lambda x, y: tf.tanh(x) * y,
    lambda x, y: x / (tf.abs(y) + 1),
    lambda x, y: tf.math.divide_no_nan(x, tf.abs(y) + 1),
    lambda x, y: tf.math.squared_difference(tf.tanh(x), tf.tanh(y)),
    lambda x, y: tf.math.xdivy(x, tf.abs(y) + 1),
    lambda x, y: tf.pow(tf.abs(x) + 0.5, tf.tanh(y)),
    lambda x, y: tf.raw_ops.AddV2(x=x, y=y) * tf.cast(0.5, x.dtype),
)  # fmt: skip
REDUCTIONS: Final = (
    tf.reduce_mean, tf.reduce_max, tf.reduce_min,
    lambda x, axis, keepdims: tf.tanh(tf.reduce_sum(x, axis, keepdims)),
    lambda x, axis, keepdims: tf.reduce_prod(tf.tanh(x), axis, keepdims),
)  # fmt: skip


@dataclasses.dataclass
class Graph:
    """A graph that was drawn.

    Attributes:
        seed: What it was drawn from.
        dtype: The type of its numbers.
        inputs: Arrays.
        variable: What its variable holds first.
        steps: What is done, in order: from all tensors so far and the variable to one more.
    """

    seed: int
    dtype: str
    inputs: list[Any]
    variable: Any
    steps: list[Callable[[list[Tensor], Any], Tensor]]

    def run(self, inputs: Sequence[Tensor], variable: Any) -> list[Tensor]:
        """Returns the last results, and what the variable holds then."""
        tensors = list(inputs)
        for step in self.steps:
            tensors.append(step(tensors, variable))
        return [*tensors[-8:], variable.read_value()]


class _Drawer:
    """Draws the steps of a graph, whose shapes it finds on the way."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.dtype = str(self.rng.choice(["float32", "float32", "float16", "bfloat16"]))
        kind = tf.as_dtype(self.dtype).as_numpy_dtype
        shapes = [tuple(self.rng.integers(1, 7, self.rng.integers(0, 5))) for _ in range(2)]
        shapes += [(int(self.rng.integers(1, 3)), 6, 5, 4), (7, 9)]
        self.inputs = [self.rng.normal(size=shape).astype(kind) for shape in shapes]
        self.variable = self.rng.normal(size=shapes[3]).astype(kind)
        self.shapes = [tuple(array.shape) for array in self.inputs]

    def _pick(self, of: Sequence[Any]) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def _tensor(self) -> int:
        return int(self.rng.integers(len(self.shapes)))

    def _tensor_of(self, rank: int) -> int | None:
        fitting = [i for i, shape in enumerate(self.shapes) if len(shape) == rank]
        return int(self._pick(fitting)) if fitting else None

    def _step(self) -> Callable[[list[Tensor], Any], Tensor] | None:
        kinds = [
            self._unary, self._unary, self._unary, self._binary, self._binary, self._binary,
            self._reduction, self._moved, self._moved, self._product, self._image, self._normalized,
            self._branch, self._loop, self._assigned, self._several, self._chosen, self._mixed,
            self._mixed,
        ]  # fmt: skip
        draw_one: Callable[[], Callable[[list[Tensor], Any], Tensor] | None] = self._pick(kinds)
        return draw_one()

    def _unary(self) -> Any:
        i, op = self._tensor(), self._pick(UNARY)
        return lambda t, v: op(t[i])

    def _binary(self) -> Any:
        i, op = self._tensor(), self._pick(BINARY)
        shape = self.shapes[i]

        def fits(other: tuple[int, ...]) -> bool:
            pairs = zip(other[::-1], shape[::-1], strict=False)
            return all(a == b or 1 in (a, b) for a, b in pairs)

        j = self._pick([j for j, other in enumerate(self.shapes) if fits(other)])
        return (
            (lambda t, v: op(t[i], t[j]))
            if self.rng.random() < 0.5
            else (lambda t, v: op(t[j], t[i]))
        )

    def _reduction(self) -> Any:
        i, op = self._tensor(), self._pick(REDUCTIONS)
        rank = len(self.shapes[i])
        axes = [axis for axis in range(rank) if self.rng.random() < 0.5]
        keep = bool(self.rng.random() < 0.5)
        return lambda t, v: op(t[i], axes, keep)

    def _moved(self) -> Any:
        i = self._tensor()
        shape = self.shapes[i]
        rank = len(shape)
        order = [int(axis) for axis in self.rng.permutation(rank)]
        axis = int(self.rng.integers(rank)) if rank else 0
        some = [int(self.rng.integers(max(1, s))) for s in shape]
        return self._pick([
            lambda t, v: tf.transpose(t[i], order),
            lambda t, v: tf.reshape(t[i], [-1]),
            lambda t, v: tf.concat([t[i], t[i]], axis) if rank else tf.stack([t[i], t[i]]),
            lambda t, v: tf.stack([t[i], -t[i]], axis),
            lambda t, v: tf.slice(t[i], some, [-1] * rank) if rank else t[i],
            lambda t, v: tf.pad(t[i], [[1, 0]] * rank) if rank else t[i],
            lambda t, v: tf.reverse(t[i], [axis]) if rank else t[i],
            lambda t, v: tf.gather(t[i], [0, shape[axis] - 1], axis=axis) if rank else t[i],
            lambda t, v: tf.expand_dims(t[i], axis),
            lambda t, v: tf.squeeze(t[i]),
            lambda t, v: tf.tile(t[i], [1] * (rank - 1) + [2]) if rank else t[i],
            lambda t, v: tf.unstack(t[i], axis=axis)[-1] if rank else t[i],
            lambda t, v: t[i][::-1] if rank else t[i],
            lambda t, v: tf.cumsum(tf.tanh(t[i]), axis) if rank else t[i],
            lambda t, v: tf.cast(tf.cast(t[i], tf.float32), t[i].dtype),
            lambda t, v: tf.broadcast_to(t[i], [2, *shape]),
        ])  # fmt: skip

    def _product(self) -> Any:
        i = self._tensor_of(2)
        if i is None:
            return None
        place: int = i
        columns, bias = self.shapes[i][1], bool(self.rng.random() < 0.6)
        weights = np.asarray(self.rng.normal(size=(columns, 5)) / columns)
        act = self._pick([tf.identity, tf.nn.relu, tf.tanh, tf.sigmoid])

        def made(t: list[Tensor], v: Any) -> Tensor:
            x = tf.matmul(t[place], tf.cast(weights, t[place].dtype))
            return act(tf.nn.bias_add(x, tf.cast(weights[0], x.dtype)) if bias else x)

        return made

    def _image(self) -> Any:
        i = self._tensor_of(4)
        if i is None or min(self.shapes[i][1:3]) < 2:
            return None
        place: int = i
        depth = self.shapes[place][3]
        filters = np.asarray(self.rng.normal(size=(2, 2, depth, 3)) / (4 * depth))
        padding = self._pick(["SAME", "VALID"])

        def cast(t: list[Tensor]) -> Tensor:
            return tf.cast(filters, t[place].dtype)

        def layer(t: list[Tensor], v: Any) -> Tensor:
            product = tf.nn.conv2d(t[place], cast(t), 1, padding)
            return tf.nn.relu(tf.nn.bias_add(product, cast(t)[0, 0, 0]))

        return self._pick([
            lambda t, v: tf.nn.conv2d(t[place], cast(t), 1, padding),
            layer,
            lambda t, v: tf.nn.depthwise_conv2d(t[place], cast(t), [1, 1, 1, 1], padding),
            lambda t, v: tf.nn.max_pool2d(t[place], 2, 2, padding),
            lambda t, v: tf.nn.avg_pool2d(t[place], 2, 1, padding),
        ])  # fmt: skip

    def _normalized(self) -> Any:
        i = self._tensor()
        if not self.shapes[i]:
            return None

        def layer(t: list[Tensor], v: Any) -> Tensor:
            mean, variance = tf.nn.moments(t[i], [-1], keepdims=True)
            return tf.nn.batch_normalization(t[i], mean, variance, None, None, 0.1)

        return self._pick([
            lambda t, v: tf.nn.softmax(t[i]), lambda t, v: tf.nn.log_softmax(tf.tanh(t[i])), layer
        ])  # fmt: skip

    def _mixed(self) -> Any:
        """What models of mixed precision do: float32 between casts."""
        i, op, other = self._tensor(), self._pick(UNARY), self._pick(UNARY)
        shape = self.shapes[i]
        row = np.asarray(self.rng.normal(size=shape[-1:]))
        to = self._pick(["float16", "bfloat16"])
        j = self._tensor_of(4)

        def lost(t: list[Tensor], v: Any) -> Tensor:
            # What a cast loses, of an input, which is the same everywhere: it is 8 times what
            # another rounding changes. Its magnitude has no jump where the rounding has one.
            wide = tf.cast(t[i % len(self.inputs)], tf.float32)
            rest = tf.abs(wide - tf.cast(tf.cast(wide, to), tf.float32))
            return tf.cast(rest * 8.0, self.dtype)

        def between(t: list[Tensor], v: Any) -> Tensor:
            wide = op(tf.cast(t[i], tf.float32)) * tf.cast(row, tf.float32)
            return other(tf.cast(wide + 0.25, t[i].dtype))

        def normed(t: list[Tensor], v: Any) -> Tensor:
            image = t[0 if j is None else j]
            depth = image.shape[-1]
            weights = tf.cast(np.eye(depth)[None, None] * 0.5, image.dtype)
            product = tf.cast(tf.nn.conv2d(image, weights, 1, "SAME"), tf.float32)
            scale = tf.range(1, depth + 1, dtype=tf.float32) / float(depth)
            return tf.nn.relu(tf.cast(product * scale + scale, image.dtype)) + image

        return self._pick([lost, between, between, between if j is None else normed])

    def _branch(self) -> Any:
        i, one, two = self._tensor(), self._pick(UNARY), self._pick(UNARY)
        # Of an input, which is the same everywhere.
        return lambda t, v: tf.cond(
            tf.reduce_sum(tf.cast(t[0], tf.float32)) > 0, lambda: one(t[i]), lambda: two(t[i])
        )

    def _loop(self) -> Any:
        i, op, count = self._tensor(), self._pick(UNARY), int(self.rng.integers(4))

        def made(t: list[Tensor], v: Any) -> Tensor:
            start = (tf.constant(0), tf.tanh(t[i]))
            return tf.while_loop(
                lambda k, x: k < count, lambda k, x: (k + 1, op(x) - tf.tanh(x)), start
            )[1]

        return made

    def _assigned(self) -> Any:
        fitting = [i for i, s in enumerate(self.shapes) if s == self.variable.shape]
        i, add = self._pick(fitting), bool(self.rng.random() < 0.5)

        def made(t: list[Tensor], v: Any) -> Tensor:
            value = tf.tanh(t[i])
            (v.assign_add if add else v.assign)(value)
            return v.read_value() + value

        return made

    def _several(self) -> Any:
        i = self._tensor()
        fitting = [j for j, s in enumerate(self.shapes) if s == self.shapes[i]]
        others = [self._pick(fitting) for _ in range(3)]
        return lambda t, v: tf.add_n([t[i], *(t[j] for j in others)])

    def _chosen(self) -> Any:
        i = self._tensor()
        shape = self.shapes[i]
        mask = self.rng.random(shape) < 0.5
        return lambda t, v: tf.where(mask, t[i], tf.sin(t[i]))


def draw(seed: int) -> Graph:
    """Draws a graph."""
    drawer = _Drawer(seed)
    steps: list[Callable[[list[Tensor], Any], Tensor]] = []
    with tf.device(CPU):
        variable = tf.Variable(drawer.variable)
        tensors = [tf.constant(array) for array in drawer.inputs]
        for _ in range(int(drawer.rng.integers(5, STEPS + 1))):
            step = drawer._step()
            if step is None:
                continue
            made = step(tensors, variable)
            if made.shape.rank > 6 or int(tf.size(made)) > LARGEST:
                continue
            # What has grown large would drown the errors of everything else.
            if float(tf.reduce_max(tf.abs(tf.cast(made, tf.float32)))) > 50:
                continue
            steps.append(step)
            tensors.append(made)
            drawer.shapes.append(tuple(made.shape))
    return Graph(seed, drawer.dtype, drawer.inputs, drawer.variable, steps)


def _results(graph: Graph, device: str, *, compiled: bool) -> list[Any]:
    with tf.device(device):
        variable = tf.Variable(graph.variable)
        inputs = [tf.constant(array) for array in graph.inputs]

        def run(*tensors: Tensor) -> list[Tensor]:
            with tf.device(device):
                return graph.run(tensors, variable)

        function = tf.function(run, jit_compile=False, autograph=False) if compiled else run
        return [tensor.numpy() for tensor in function(*inputs)]


def _gaps(found: list[Any], expected: list[Any], tolerance: float) -> dict[int, str]:
    """Returns how results differ, by place."""
    problems = {}
    for place, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            problems[place] = f"{a.dtype}{a.shape}, {b.dtype}{b.shape}"
            continue
        wide, other = a.astype(np.float64), b.astype(np.float64)
        scale = max(1.0, float(np.abs(other).max(initial=0.0)))
        gap = float(np.abs(wide - other).max(initial=0.0)) / scale
        if not gap <= tolerance:
            problems[place] = f"differs by {gap:.2g}"
    return problems


def check(seed: int) -> str:
    """Returns how the results of a graph differ; nothing if they agree.

    What TensorFlow's own optimizer also changes on the CPU does not count as a difference. For
    example, it takes `max(x, 4 * x)` for a leaky ReLU.
    """
    graph = draw(seed)
    tolerance = TOLERANCES[graph.dtype]
    expected = _results(graph, CPU, compiled=False)
    problems = []
    for name, compiled in (("fused", True), ("op by op", False)):
        found = _results(graph, DEVICE, compiled=compiled)
        gaps = _gaps(found, expected, tolerance)
        if gaps and compiled:
            too = _gaps(found, _results(graph, CPU, compiled=True), tolerance)
            gaps = {place: gap for place, gap in gaps.items() if place in too}
        problems += [f"{name}, result {place}: {gap}" for place, gap in gaps.items()]
    if not problems:
        return ""
    return f"seed {seed} ({graph.dtype}, {len(graph.steps)} steps): {'; '.join(problems)}"


def main() -> int:
    """Runs the program; returns its exit status: 1 if a graph differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=300, help="number of graphs")
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.first, options.first + options.count):
        problem = check(seed)
        if problem:
            wrong += 1
            print(problem, flush=True)
        done = seed - options.first + 1
        if done % 100 == 0:
            print(f"{done} graphs, {wrong} differ", file=sys.stderr, flush=True)
    print(f"{options.count} graphs from seed {options.first}: {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
