"""The device inside one TensorFlow process: values, placement, errors, concurrency, memory."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TFP_NUM_THREADS", "4")

import tensorflow as tf

DEVICE = "/device:TFP:0"


@pytest.fixture(autouse=True, scope="module")
def _no_soft_placement() -> None:
    tf.config.set_soft_device_placement(False)


def on_device(function: Callable[[], Any]) -> Any:
    with tf.device(DEVICE):
        return function()


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_the_device_is_listed_once() -> None:
    assert [d.name for d in tf.config.list_physical_devices("TFP")] == ["/physical_device:TFP:0"]


def test_a_result_carries_the_device_and_the_value() -> None:
    y = on_device(lambda: tf.nn.relu(tf.constant([-1.0, 2.0])))
    assert y.device.endswith(DEVICE)
    assert y.numpy().tolist() == [0.0, 2.0]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5, 7), (2,) * 8])
def test_empty_and_deep_tensors(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    y = on_device(lambda: tf.constant(values) * 2.0 + tf.constant(values))
    np.testing.assert_array_equal(y.numpy(), values * 2 + values)


DEEP = np.arange(512, dtype=np.float32).reshape((2,) * 9)
"""Of more axes than the kernels serve."""


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: tf.reduce_sum(x, [0, 3, 8]),
        lambda x: tf.reduce_max(tf.stack([x[0], x[1]])),
        lambda x: tf.transpose(x),
        lambda x: tf.concat([x, x], 3),
        lambda x: tf.fill(tf.shape(x), 2.0),
        lambda x: tf.split(x, 2, 4)[1],
        lambda x: tf.cast(tf.nn.relu(x), tf.int64),
        lambda x: tf.nn.relu(x * 2.0 - 3.0),
    ],
)
def test_more_axes_than_the_kernels_serve(
    compute: Callable[[tf.Tensor], tf.Tensor], in_graph: bool
) -> None:
    function = tf.function(compute, jit_compile=False, autograph=False) if in_graph else compute
    x = tf.constant(DEEP)
    found = on_device(lambda: function(tf.identity(x)))
    with tf.device("/device:CPU:0"):
        expected = compute(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_the_gradient_of_a_repetition_has_twice_the_axes(in_graph: bool) -> None:
    def compute(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.repeat(tf.repeat(x, 2, axis=1), 3, axis=2) ** 2
        return tape.gradient(y, x)

    function = tf.function(compute, jit_compile=False) if in_graph else compute
    x = np.random.default_rng(5).normal(size=(2, 3, 4, 5, 2)).astype(np.float32)
    found = on_device(lambda: function(tf.constant(x)))
    np.testing.assert_allclose(found.numpy(), 12.0 * x, rtol=1e-6)


def test_shapes_that_do_not_fit_are_a_clean_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        on_device(lambda: tf.raw_ops.AddV2(x=tf.ones([2]), y=tf.ones([3])))
    assert "AddV2 node" in str(caught.value)
    assert "[2]" in str(caught.value) and "[3]" in str(caught.value)
    assert on_device(lambda: tf.ones([2]) + 1.0).numpy().tolist() == [2.0, 2.0]


def test_forwarding_writes_into_a_dying_input_and_into_no_other() -> None:
    """A chain in a function reuses its buffers; an input that is used again keeps its value."""

    def chain(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        kept = x + 1.0
        a = tf.nn.relu(kept)
        b = a * 2.0
        c = tf.negative(b) - 3.0
        return kept, c, x * x

    x = np.linspace(-4, 4, 1001, dtype=np.float32)
    kept, c, square = on_device(lambda: tf.function(chain, jit_compile=False)(tf.constant(x)))
    np.testing.assert_array_equal(kept.numpy(), x + 1)
    np.testing.assert_array_equal(c.numpy(), -(np.maximum(x + 1, 0) * 2) - 3)
    np.testing.assert_array_equal(square.numpy(), x * x)


SMALL: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "add": lambda x: x + 0.0,
    "divide": lambda x: x / 0.5,
    "exponential": lambda x: tf.exp(x - 90.0),
    "logarithm": tf.math.log,
    "logarithm of 16 bits": lambda x: tf.math.log(tf.cast(x, tf.bfloat16)),
    "product": lambda x: x * 3.0,
    "product with a logarithm": lambda x: tf.math.xlogy(tf.ones_like(x), x),
    "remainder": lambda x: tf.math.floormod(x, 1.0),
    "root": tf.sqrt,
    "rounded": lambda x: tf.cast(tf.cast(x * 1e2, tf.float16), tf.float32) * 1e-2,
    "sums of rows": lambda x: tf.reduce_sum(tf.reshape(x, [-1, 4]), 1),
}
"""Functions of numbers below 2^-126 that differ if those are taken as 0."""


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("name", SMALL)
def test_a_subnormal_number_is_the_same_for_every_thread(name: str, in_graph: bool) -> None:
    """The process has threads that compute beside the caller; each has a part of the elements."""
    compute = SMALL[name]
    function = tf.function(compute, jit_compile=False) if in_graph else compute

    def results(count: int) -> Any:
        filled = on_device(lambda: function(tf.fill([count], np.float32(1e-40))))
        return np.unique(filled.numpy())

    for _ in range(3):
        few, many = results(4), results(1 << 22)
        assert few.tobytes() == many.tobytes(), (few, many)


def test_random_numbers_equal_the_cpu_bit_by_bit() -> None:
    def draw() -> list[np.ndarray[Any, Any]]:
        tf.random.set_seed(7)
        return [tf.random.normal([n]).numpy() for n in (1, 4, 1000, 4096)]

    found = on_device(draw)
    with tf.device("/device:CPU:0"):
        expected = draw()
    for a, b in zip(found, expected, strict=True):
        assert a.tobytes() == b.tobytes()


def test_a_variable_is_read_after_what_it_depends_on() -> None:
    def step() -> tf.Tensor:
        v = tf.Variable([1.0, 2.0])
        for _ in range(100):
            v.assign_add(tf.nn.relu(tf.constant([1.0, -1.0])))
        return v.read_value()

    assert on_device(step).numpy().tolist() == [101.0, 2.0]


def test_threads_share_kernels_and_device() -> None:
    def body(x: tf.Tensor) -> tf.Tensor:
        for _ in range(10):
            x = tf.nn.relu(x * 1.5 - 0.25) + 0.125
        return x

    values = np.random.default_rng(2).normal(size=(8, 257)).astype(np.float32)
    work = tf.function(body, jit_compile=False)

    def result(i: int) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = on_device(lambda: work(tf.constant(values[i % 8]))).numpy()
        return found

    expected = [result(i) for i in range(8)]

    def call(i: int) -> bool:
        return bool((result(i) == expected[i % 8]).all())

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(400)))


def test_sessions_of_several_threads_run_at_the_same_time() -> None:
    """Three sessions of one graph, two threads in each; the numbers are exact in any order."""
    sessions, threads, turns = 3, 2, 40
    with tf.Graph().as_default() as graph, tf.device(DEVICE):
        x = tf.compat.v1.placeholder(tf.float32, [257])
        total = tf.Variable(tf.zeros([257]))
        y = x
        for _ in range(8):
            y = tf.nn.relu(y * 2.0 - 1.0)
        add = total.assign_add(y, read_value=False)
    values = np.arange(257, dtype=np.float32) % 3
    expected = values
    for _ in range(8):
        expected = np.maximum(expected * 2 - 1, 0)
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(tf.compat.v1.Session(graph=graph)) for _ in range(sessions)]
        for session in running:
            session.run(total.initializer)

        def call(number: int) -> bool:
            found, _ = running[number % sessions].run([y, add], {x: values})
            return bool((found == expected).all())

        with concurrent.futures.ThreadPoolExecutor(sessions * threads) as pool:
            assert all(pool.map(call, range(sessions * turns)))
        for session in running:
            np.testing.assert_array_equal(session.run(total.read_value()), expected * turns)


def test_memory_info_is_honest() -> None:
    gc.collect()
    before = tf.config.experimental.get_memory_info("TFP:0")["current"]
    x = on_device(lambda: tf.ones([1 << 20]) + 0.0)
    during = tf.config.experimental.get_memory_info("TFP:0")["current"]
    assert during - before >= 4 << 20
    del x
    gc.collect()
    after = tf.config.experimental.get_memory_info("TFP:0")["current"]
    assert after <= before + 4096


def test_steps_leak_nothing() -> None:
    """Less than 1 MB over 10,000 eager steps of six ops and 4 kB each."""
    x = on_device(lambda: tf.ones([1024]))

    def steps(count: int) -> None:
        for _ in range(count):
            y = tf.nn.relu(x * 2.0 - 1.0)
            tf.reduce_all(y < 10.0)
            tf.abs(y + x)

    on_device(lambda: steps(1_000))
    gc.collect()
    before = resident()
    on_device(lambda: steps(10_000))
    gc.collect()
    assert resident() - before < 1 << 20


def test_training_steps_leak_nothing() -> None:
    """Less than 1 MB over 10,000 steps of a graph with fused nodes and replaced updates."""
    with tf.device(DEVICE):
        x, w = tf.ones([16, 8]), tf.Variable(tf.fill([8, 8], 0.01))
        table = tf.Variable(tf.zeros([32, 8]))
        optimizer = tf.compat.v1.train.MomentumOptimizer(1e-4, 0.9)

        def step(i: tf.Tensor) -> None:
            with tf.GradientTape() as tape:
                y = tf.tanh(tf.nn.bias_add(x @ w, tf.gather(table, i)))
                loss = tf.reduce_mean(tf.sqrt(y * y + 1.0) / 2.0)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            table.scatter_add(tf.IndexedSlices(y[:1] * 1e-3, i[tf.newaxis]))

        run = tf.function(step, jit_compile=False)
        number = tf.constant(3)
        for _ in range(1_000):
            run(number)
        gc.collect()
        before = resident()
        for _ in range(10_000):
            run(number)
        gc.collect()
        assert resident() - before < 1 << 20
        assert np.isfinite(w.numpy()).all() and np.isfinite(table.numpy()).all()
