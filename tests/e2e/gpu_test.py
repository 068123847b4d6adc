"""The device on Vulkan: ops with a body for the GPU, training, threads, and what fails without.

The GPU is Mesa's software driver. It takes every call here that its body serves, however small.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import io
import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.e2e import child

os.environ["TFP_BACKEND"] = "vulkan"
os.environ["TFP_GPU_ALL"] = "1"
os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
from tfp_plugin import _gpu, check

from tests.conformance import sweep
from tests.e2e import models

Array = npt.NDArray[Any]
DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"
TOLERANCE = 1e-5
"""Largest difference of the loss of a step, as in `training_test`."""
SAMPLE = 20
"""Calls of each kernel, about; `//tests/conformance:vulkan_sweep_test` makes all of them."""


@pytest.fixture(autouse=True)
def _no_soft_placement() -> None:
    tf.config.set_soft_device_placement(False)


def report() -> _gpu.Report:
    found = _gpu.report(child.library())
    assert found is not None
    return found


def done() -> dict[str, int]:
    """Returns how many calls of each op the GPU has computed."""
    return {op: calls.done for op, calls in report().ops.items()}


def grown(before: dict[str, int]) -> set[str]:
    """Returns the ops that the GPU has computed since `before`."""
    return {op for op, count in done().items() if count > before[op]}


def test_a_gpu_computes() -> None:
    with tf.device(DEVICE):
        before = done()
        y = tf.nn.relu(tf.constant(np.linspace(-1, 1, 1000, dtype=np.float32)))
    np.testing.assert_array_equal(y.numpy(), np.maximum(np.linspace(-1, 1, 1000), 0).astype("f"))
    found = report()
    assert (found.asked, found.gpu, found.problem) == ("vulkan", 0, "")
    assert grown(before) == {"Relu"}


def ops_with_a_body() -> list[str]:
    return sorted(op for op in report().ops if not op.startswith("Tfp"))


@pytest.mark.parametrize("op", ops_with_a_body())
def test_an_op_computes_what_the_cpu_does(op: str) -> None:
    before = done()
    served = {*report().ops[op].types, "float16"}
    kernels = []
    for kernel in sweep.registered("TFP")[op]:
        types = {tf.as_dtype(each).name for each in kernel.types.values()}
        # An op of truth values alone has not a type attribute.
        if not types or types & served:
            kernels.append(kernel)
    assert kernels
    results = [sweep.check(op, kernel, DEVICE, SAMPLE) for kernel in kernels]
    # The body may decline all calls of the sample.
    if op not in grown(before):
        results += [sweep.check(op, kernel, DEVICE) for kernel in kernels]
    assert not [result for result in results if result is None or result.problem]
    assert op in grown(before)


class Losses(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the loss of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.values.append(logs["loss"])


def train(name: str, optimizer: str, device: str) -> list[float]:
    keras.utils.set_random_seed(3)
    x, y = models.data(name)
    losses = Losses()
    with tf.device(device):
        model = models.build(name)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=optimizer, loss=loss, jit_compile=False)
        model.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False, callbacks=[losses])
    return losses.values


LOSS = "SparseSoftmaxCrossEntropyWithLogits"


@pytest.mark.parametrize(
    ("name", "optimizer", "ops"),
    [
        ("mlp", "sgd", {"MatMul", "BiasAddGrad", LOSS}),
        ("mlp", "adam", {"MatMul", LOSS}),
        ("cnn", "adam", {"Conv2DBackpropFilter", "MaxPool", "MaxPoolGrad", "Mean", LOSS}),
        ("transformer", "adam", {"BatchMatMulV2", "GatherV2", "Mean", "Softmax", "SelectV2", LOSS}),
    ],
)
def test_a_training_has_the_losses_of_the_cpu(name: str, optimizer: str, ops: set[str]) -> None:
    # Input pipelines are the CPU's.
    tf.config.set_soft_device_placement(True)
    before = done()
    found = train(name, optimizer, DEVICE)
    expected = train(name, optimizer, CPU)
    assert len(found) == 10
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    assert ops <= grown(before)


def copied() -> dict[str, int]:
    """Returns how many bytes of the GPU's memory were copied for the CPU's kernels, by ops."""
    return {op: reads.copied for op, reads in report().cpu.items()}


MANY = 64 << 10
"""A processor reads as many bytes of a card's own memory in about two milliseconds."""


def _large_transformer() -> tuple[keras.Model, list[Array]]:
    """A model with activations of 256 kB and more: masked words, dropout and gathered vectors."""
    layers = keras.layers
    words, known = keras.Input((64,), dtype="int32"), keras.Input((64,), dtype="int32")
    x = layers.Embedding(600, 64)(words) + layers.Embedding(64, 64)(keras.ops.arange(64))
    mask = keras.ops.cast(keras.ops.expand_dims(known, 1), "bool")
    attention = layers.MultiHeadAttention(4, 16, dropout=0.1)
    x = layers.LayerNormalization()(x + attention(x, x, attention_mask=mask, use_causal_mask=True))
    y = layers.Dense(64)(layers.Dense(128, "gelu")(x))
    x = layers.LayerNormalization()(x + layers.Dropout(0.1)(y))
    outputs = layers.Dense(10)(layers.GlobalAveragePooling1D()(x))
    random = np.random.default_rng(2)
    inputs = [random.integers(0, 600, (16, 64)), random.integers(0, 4, (16, 64)) > 0]
    return keras.Model([words, known], outputs), [each.astype(np.int32) for each in inputs]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_training_step_of_a_transformer_leaves_no_large_read_to_the_cpu(optimizer: str) -> None:
    tf.config.set_soft_device_placement(True)
    keras.utils.set_random_seed(3)
    with tf.device(DEVICE):
        model, data = _large_transformer()
        inputs = [tf.constant(each) for each in data]
        labels = tf.constant(np.arange(16) % 10)
        steps = keras.optimizers.get({"class_name": optimizer, "config": {"global_clipnorm": 1.0}})
        steps.build(model.trainable_variables)
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

        @tf.function(jit_compile=False)  # type: ignore[untyped-decorator]
        def step() -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = loss_of(labels, model(inputs, training=True))
            slopes = tape.gradient(loss, model.trainable_variables)
            steps.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
            return loss

        step()
        before = copied()
        assert np.isfinite(step().numpy())
    # What is copied for the CPU's kernels would be read in place without the copy.
    grown_by = {op: count - before.get(op, 0) for op, count in copied().items()}
    assert {op: count for op, count in grown_by.items() if count > MANY} == {}
    in_place = {op: reads.largest for op, reads in report().cpu.items()}
    assert {op: count for op, count in in_place.items() if count > MANY} == {}


def test_a_kernel_of_the_cpu_gets_copies_of_large_inputs() -> None:
    x = np.random.default_rng(1).normal(size=(100, 300)).astype(np.float32)
    before = report().cpu
    with tf.device(DEVICE):
        found = tf.cumsum(tf.constant(x), axis=1)
        # One of TensorFlow's own kernels for the CPU.
        roots = tf.linalg.cholesky(tf.constant(np.eye(100, dtype=np.float32) * 4.0))
    np.testing.assert_allclose(found.numpy(), np.cumsum(x, axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(roots.numpy(), np.eye(100, dtype=np.float32) * 2.0)
    after = report().cpu
    none = _gpu.Reads(calls=0, read=0, largest=0, copied=0)
    for op, size in (("Cumsum", 4 * x.size), ("Cholesky", 40_000)):
        old = before.get(op, none)
        assert after[op].copied - old.copied == size
        assert after[op].read == old.read


def alternating(x: tf.Tensor) -> tf.Tensor:
    """Ops with and without a body by turns, some of them in TensorFlow's own kernels."""
    for _ in range(3):
        x = tf.nn.relu(x - 0.25)
        x = tf.cumsum(x, axis=1)
        x = tf.math.tanh(x * 0.5)
        x = tf.sort(x, axis=0)
        x = tf.einsum("ij,kj->ik", x, x) / 64.0
    return x


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_kernels_of_gpu_and_cpu_take_turns(in_graph: bool) -> None:
    x = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
    function = tf.function(alternating, jit_compile=False) if in_graph else alternating
    before = done()
    with tf.device(DEVICE):
        found = function(tf.constant(x)).numpy()
    with tf.device(CPU):
        expected = alternating(tf.constant(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert len(grown(before)) >= 2


def test_a_variable_has_what_the_gpu_computed() -> None:
    """TensorFlow's own code on the CPU updates variables: it must see finished results."""
    with tf.device(DEVICE):
        v = tf.Variable(tf.zeros([1000]))
        for _ in range(100):
            v.assign_add(tf.nn.relu(tf.ones([1000])))
        assert v.numpy().tolist() == [100.0] * 1000


def test_an_update_in_a_graph_is_the_gpus() -> None:
    """Where the CPU reads the GPU's memory slowly, TensorFlow's own addition would be slow."""
    with tf.device(DEVICE):
        v = tf.Variable(tf.zeros([1000]))

        @tf.function(jit_compile=False)  # type: ignore[untyped-decorator]
        def step(x: tf.Tensor) -> tf.Tensor:
            v.assign_add(x)
            before = v.read_value()
            v.assign_sub(x * 0.5)
            return before

        before = done()
        x = tf.constant(np.arange(1000, dtype=np.float32))
        middle = [step(x).numpy()[10] for _ in range(4)]
    assert middle == [10.0, 15.0, 20.0, 25.0]
    assert v.numpy().tolist() == (np.arange(1000) * 2.0).tolist()
    assert grown(before) & {"AddV2", "Sub", "TfpExpression"}


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: tf.gather(tf.ones([4, 8]), [1, 4]), "indices"),
        (lambda: tf.math.unsorted_segment_sum(tf.ones([2, 8]), [0, 5], 3), "segment"),
        (lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([3], tf.ones([1, 3])), "label"),
    ],
)
def test_a_number_out_of_range_is_an_error(call: Callable[[], tf.Tensor], word: str) -> None:
    with tf.device(DEVICE), pytest.raises(tf.errors.InvalidArgumentError, match=word):
        call()


def test_two_threads_compute() -> None:
    def work(seed: int) -> float:
        x = np.random.default_rng(seed).normal(size=(200, 50)).astype(np.float32)
        with tf.device(DEVICE):
            y = tf.constant(x)
            for _ in range(100):
                y = tf.nn.relu(y + 1.0) - 1.0
        return float(np.abs(y.numpy() - np.maximum(x, -1)).max())

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        gaps = list(pool.map(work, range(8)))
    # Adding and subtracting one rounds once, for numbers below 8.
    assert max(gaps) <= 5e-7


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_many_steps_hold_no_more_memory() -> None:
    def steps(count: int) -> None:
        with tf.device(DEVICE):
            x = tf.ones([64, 64])
            for _ in range(count):
                x = tf.nn.relu(x * 0.5) + 0.5
        assert float(x[0, 0]) == 1.0

    steps(500)
    before = resident()
    steps(3000)
    assert resident() - before < 16 << 20


def test_a_profile_says_how_long_the_gpu_worked(tmp_path: pathlib.Path) -> None:
    with tf.device(DEVICE):
        tf.profiler.experimental.start(str(tmp_path))
        tf.nn.relu(tf.ones([500, 500])).numpy()
        tf.profiler.experimental.stop()
    [file] = tmp_path.glob("**/*.xplane.pb")
    assert b"gpu_nanoseconds" in file.read_bytes()


def test_check_lists_the_gpu() -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert check.main(["--ops"]) == 0
    text = output.getvalue()
    assert "backend     Vulkan, GPU 0 (TFP_BACKEND=vulkan)" in text
    assert "llvmpipe" in text and "software): usable" in text
    assert "  Relu (float32)" in text


SUM = """
with tf.device("/device:TFP:0"):
    print(float(tf.reduce_sum(tf.nn.relu(tf.ones([1000])))))
"""
CHECK = "from tfp_plugin import check; raise SystemExit(check.main([]))"


def ours(process: Any) -> list[str]:
    """The lines of the plug-in in the errors of a process."""
    return [line for line in process.stderr.splitlines() if line.startswith("tfp: ")]


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({"VK_DRIVER_FILES": "/nowhere", "VK_ICD_FILENAMES": "/nowhere"}, "Vulkan"),
        ({"TFP_GPU": "Banana"}, 'TFP_GPU="Banana" is none of 0 "llvmpipe'),
        ({"TFP_BACKEND": "cuda"}, "expected auto, cpu or vulkan"),
    ],
)
def test_what_can_not_be_had_costs_one_line(variables: dict[str, Any], word: str) -> None:
    process = child.run(SUM, **variables)
    assert child.check(process) == "1000.0\n"
    [line] = ours(process)
    assert word in line and "the CPU computes" in line


def test_check_says_why_the_cpu_computes() -> None:
    nowhere: dict[str, Any] = {"VK_DRIVER_FILES": "/nowhere", "VK_ICD_FILENAMES": "/nowhere"}
    output = child.check(child.run(CHECK, **nowhere))
    assert "backend     the CPU (TFP_BACKEND=vulkan)" in output
    assert "Vulkan" in output.partition("(TFP_BACKEND=vulkan)")[2]


@pytest.mark.parametrize("backend", ["", "cpu", "auto"])
def test_software_computes_only_if_it_is_asked_for(backend: str) -> None:
    """The default loads no driver; `auto` looks at it, and leaves it alone without a word."""
    code = SUM + "print('libvulkan_lvp' in open('/proc/self/maps').read())\n"
    process = child.run(code, TFP_BACKEND=backend)
    assert child.check(process).split() == ["1000.0", str(backend == "auto")]
    assert not ours(process)


def test_a_full_device_is_an_error_and_goes_on() -> None:
    code = """
    with tf.device("/device:TFP:0"):
        kept = tf.ones([1 << 20])
        try:
            tf.fill([1 << 26], 1.0)
        except tf.errors.ResourceExhaustedError:
            print("full")
        print(float(tf.reduce_sum(tf.nn.relu(kept))))
    """
    process = child.run(code, TFP_MEMORY_LIMIT="64M")
    assert child.check(process) == f"full\n{float(1 << 20)}\n"


def test_a_kernel_that_takes_too_long_is_an_error_and_not_an_end() -> None:
    code = """
    ops = (
        lambda: tf.matmul(tf.ones([1500, 1500]), tf.ones([1500, 1500])),
        lambda: tf.ones([64]),
        lambda: tf.linalg.cholesky(tf.eye(3)),
    )
    for op in ops:
        try:
            with tf.device("/device:TFP:0"):
                print(op().numpy())
        except tf.errors.InternalError as error:
            print("Start the process anew" in error.message)
    with tf.device("/device:CPU:0"):
        print(float(tf.reduce_sum(tf.ones([3]))))
    """
    process = child.run(code, TFP_GPU_PATIENCE="1e-9")
    assert child.check(process) == "True\nTrue\nTrue\n3.0\n"
