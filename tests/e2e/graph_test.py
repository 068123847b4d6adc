"""The graph optimizer inside TensorFlow: what is fused, what stays, and that values stay."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
from tensorflow.python.eager import context

DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"
RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True, scope="module")
def _no_soft_placement() -> None:
    tf.config.set_soft_device_placement(False)


def normal(*shape: int) -> tf.Tensor:
    return tf.constant(RANDOM.normal(size=shape).astype(np.float32))


def run(function: Callable[..., Any], *inputs: tf.Tensor) -> tuple[Any, collections.Counter[str]]:
    """Calls `function` as a graph on the device.

    Returns:
        Its value, which is within 1e-5 of the CPU's, relative to the largest element, and the ops
        that ran on the device, with their numbers.
    """

    def on(device: str) -> Any:
        def pinned(*arguments: tf.Tensor) -> Any:
            with tf.device(device):
                return function(*arguments)

        return tf.function(pinned, jit_compile=False)(*inputs)

    context.enable_run_metadata()
    found = on(DEVICE)
    graphs = context.export_run_metadata().partition_graphs
    context.disable_run_metadata()
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(on(CPU)), strict=True):
        tolerance = 1e-5 * max(1.0, np.abs(b.numpy()).max(initial=0))
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0, atol=tolerance)
    nodes = (node for graph in graphs for node in graph.node)
    return found, collections.Counter(node.op for node in nodes if node.device.endswith(DEVICE))


def _leaky(x: tf.Tensor) -> tf.Tensor:
    return tf.nn.leaky_relu(x, 0.3)


ACTIVATIONS = [
    tf.nn.elu,
    _leaky,
    tf.nn.relu,
    tf.nn.relu6,
    tf.nn.selu,
    tf.sigmoid,
    tf.nn.softplus,
    tf.nn.softsign,
    tf.tanh,
    None,
]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_dense_layer_is_one_kernel(activation: Callable[..., Any] | None) -> None:
    x, w, b = normal(33, 20), normal(20, 50), normal(50)

    def layer(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        y = tf.nn.bias_add(tf.matmul(x, w), b)
        return activation(y) if activation else y

    _, ops = run(layer, x, w, b)
    assert ops["TfpFusedMatMul"] == 1
    apart = {"MatMul", "BiasAdd", "Elu", "Relu", "Relu6", "Selu", "Sigmoid", "Softplus", "Softsign"}
    assert not (apart | {"LeakyRelu", "Tanh"}) & set(ops)


@pytest.mark.parametrize("approximate", [False, True])
def test_a_unit_of_several_ops_is_one_more_kernel(approximate: bool) -> None:
    """The Gaussian error linear unit, exact and approximate."""

    def layer(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        return tf.nn.gelu(tf.nn.bias_add(tf.matmul(x, w), b), approximate)

    _, ops = run(layer, normal(33, 20), normal(20, 50), normal(50))
    assert (ops["TfpFusedMatMul"], ops["TfpExpression"]) == (1, 1)
    assert ops["Mul"] == ops["AddV2"] == ops["Erf"] == ops["Tanh"] == 0


def test_a_sum_stays_a_sum_where_much_memory_is_needed() -> None:
    """TensorFlow would sum such tensors up in a variable that no plug-in can have."""
    _, ops = run(
        lambda x: tf.add_n([tf.sin(x * float(i)) for i in range(1, 9)]), normal(1000, 8192)
    )
    assert not {"TemporaryVariable", "Assign"} & set(ops)
    assert ops["AddN"] == 1


def _steps(x: tf.Tensor) -> tf.Tensor:
    for _ in tf.range(7):
        if tf.reduce_sum(x) > 0.0 and tf.reduce_all(x < 1e9):
            x = x * 0.5 - 1.0
        else:
            x = x * 2.0 + 0.3
    return x


def _loop(x: tf.Tensor) -> tf.Tensor:
    while tf.reduce_max(x) < 100.0:
        x = tf.abs(x) * 2.0 + 1.0
    return x


def _scan(x: tf.Tensor) -> tf.Tensor:
    return tf.scan(lambda a, row: a * 0.5 + row, x) + tf.map_fn(tf.tanh, x)


@pytest.mark.parametrize("function", [_steps, _loop, _scan])
def test_loops_and_branches_decide_without_a_copy(function: Callable[..., Any]) -> None:
    """TensorFlow would copy each condition to the memory in which it wants that."""
    values = []
    for device in (CPU, DEVICE):
        with tf.device(device):
            x = tf.constant(np.linspace(-2, 3, 20).reshape(5, 4), tf.float32)
            context.enable_run_metadata()
            values.append(tf.function(function, jit_compile=False)(x).numpy())
            graphs = context.export_run_metadata().partition_graphs
            context.disable_run_metadata()
    np.testing.assert_allclose(values[1], values[0], rtol=1e-5)
    ops = {node.op for graph in graphs for node in graph.node}
    assert "TfpToHost" in ops
    assert not {"_Send", "_HostSend", "_Recv", "_HostRecv"} & ops


def test_a_chain_of_elements_is_one_kernel_with_the_same_bits() -> None:
    def adam(m: tf.Tensor, v: tf.Tensor, lr: tf.Tensor, power: tf.Tensor) -> Any:
        alpha = lr * tf.sqrt(1.0 - power)
        return m * alpha / (tf.sqrt(tf.square(v)) + 1e-7)

    inputs = [normal(300, 70), normal(300, 70), tf.constant(0.1), tf.constant(0.9)]
    found, ops = run(adam, *inputs)
    assert ops["TfpExpression"] == 1
    assert ops["Mul"] == ops["RealDiv"] == ops["Sqrt"] == ops["AddV2"] == 0
    with tf.device(DEVICE):
        np.testing.assert_array_equal(found.numpy(), adam(*inputs).numpy())


def test_chains_over_rows_columns_and_unknown_shapes() -> None:
    def chain(x: tf.Tensor, row: tf.Tensor, column: tf.Tensor) -> Any:
        y = tf.nn.relu(x * row - row)
        return y, tf.exp(-(x - column)) * tf.sqrt(tf.abs(row)), (y + column) * column

    inputs = [normal(6, 5), normal(5), normal(6, 1)]
    _, ops = run(chain, *inputs)
    assert ops["TfpExpression"] >= 2
    loose = tf.function(
        chain,
        input_signature=[tf.TensorSpec(None), tf.TensorSpec([None]), tf.TensorSpec([None, 1])],
        jit_compile=False,
    )
    with tf.device(DEVICE):
        found = loose(*inputs)
    for a, b in zip(found, chain(*inputs), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)


def test_a_step_with_any_batch_is_fused_and_takes_any_batch() -> None:
    def pinned(x: tf.Tensor) -> Any:
        with tf.device(DEVICE):
            return tf.nn.relu(x * 2.0 - 1.0) * x

    signature = [tf.TensorSpec([None, 5])]
    step = tf.function(pinned, input_signature=signature, jit_compile=False)
    context.enable_run_metadata()
    for batch in (0, 1, 3, 400):
        x = normal(batch, 5)
        expected = np.maximum(x.numpy() * 2 - 1, 0) * x.numpy()
        np.testing.assert_allclose(step(x).numpy(), expected, rtol=1e-6, atol=1e-6)
    graphs = context.export_run_metadata().partition_graphs
    context.disable_run_metadata()
    assert "TfpExpression" in {node.op for graph in graphs for node in graph.node}


def optimized(make: Callable[[], Any], device: str) -> tuple[Any, collections.Counter[str]]:
    """Runs three steps of an optimizer as a graph.

    Returns:
        The values of the variable and of the optimizer's own, and the ops of a step.
    """
    start = np.linspace(-1, 1, 1200, dtype=np.float32).reshape(40, 30)
    gradients = [tf.constant(start**2 * (turn - 1) + 0.1) for turn in range(3)]
    with tf.device(device):
        v = tf.Variable(start)
        optimizer = make()
        optimizer.build([v])

        def step(gradient: tf.Tensor) -> None:
            with tf.device(device):
                optimizer.apply([gradient], [v])

        run_step = tf.function(step, jit_compile=False)
        context.enable_run_metadata()
        for gradient in gradients:
            run_step(gradient)
        graphs = context.export_run_metadata().partition_graphs
        context.disable_run_metadata()
    values = [v.numpy(), *(np.asarray(each.value) for each in optimizer.variables)]
    step_graph = max((graph.node for graph in graphs), key=len)
    return values, collections.Counter(node.op for node in step_graph)


OPTIMIZERS: dict[str, tuple[Callable[[], Any], int]] = {
    "adam": (lambda: keras.optimizers.Adam(0.1), 1),
    "adamw": (lambda: keras.optimizers.AdamW(0.1), 2),
    "nadam": (lambda: keras.optimizers.Nadam(0.1), 6),
    "rmsprop": (lambda: keras.optimizers.RMSprop(0.1, momentum=0.5), 1),
    "momentum": (lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), 1),
}
"""With the most expressions that a step may have; those of numbers alone count, too."""


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_step_of_an_optimizer_is_one_kernel(name: str) -> None:
    make, most = OPTIMIZERS[name]
    found, ops = optimized(make, DEVICE)
    expected, _ = optimized(make, CPU)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert 1 <= ops["TfpExpression"] <= most, ops
    assert ops["AssignAddVariableOp"] + ops["AssignSubVariableOp"] <= most, ops


def test_a_variable_that_is_written_twice_is_updated_in_order() -> None:
    """Each update begins with what the one before left, and reads see what was written."""

    def compute(device: str) -> list[float]:
        with tf.device(device):
            m = tf.Variable(tf.ones([40]))
            rate = tf.constant(0.5)

        def step(x: tf.Tensor) -> tf.Tensor:
            with tf.device(device):
                m.assign_add((x - m) * rate)
                first = tf.sqrt(m)
                m.assign_add((x - m) * rate)
                m.assign(m * 2.0)
                return first + tf.sqrt(m)

        run_step = tf.function(step, jit_compile=False)
        totals = [float(run_step(tf.fill([40], float(i)))[0]) for i in range(3)]
        return [*totals, float(m[0])]

    np.testing.assert_allclose(compute(DEVICE), compute(CPU), rtol=1e-6)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [1, 2], [0, 1], [0, 0]]])
def test_a_convolution_is_one_kernel(padding: Any) -> None:
    x, w, b = normal(2, 9, 8, 3), normal(3, 3, 3, 7), normal(7)

    def layer(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        y = tf.nn.conv2d(x, w, strides=[1, 2, 1, 1], padding=padding)
        return tf.nn.relu(tf.nn.bias_add(y, b))

    _, ops = run(layer, x, w, b)
    assert ops["TfpFusedConv2D"] == 1
    assert ops["Conv2D"] == ops["BiasAdd"] == ops["Relu"] == 0


@pytest.mark.parametrize("with_norm", [False, True])
def test_a_residual_block_ends_with_its_convolution(with_norm: bool) -> None:
    """The sum may be computed in the memory of what is added, unless that is used again."""
    x, w, b = normal(2, 20, 20, 6), normal(3, 3, 6, 6), normal(6)

    def block(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        y = tf.nn.conv2d(x, w, 1, "SAME")
        y = y * b + w[0, 0, 0] if with_norm else tf.nn.bias_add(y, b)
        return tf.nn.relu(y + x)

    _, ops = run(block, x, w, b)
    assert ops["TfpFusedConv2D"] == 1, ops
    assert not {"AddV2", "Relu", "TfpExpression", "TfpScaleShift"} & set(ops), ops
    _, ops = run(lambda x, w, b: block(tf.exp(x), w, b) * x, x, w, b)
    assert ops["TfpFusedConv2D"] == 1, ops


def test_the_gradient_of_a_fused_layer() -> None:
    x, w, b = normal(5, 6), normal(6, 4), normal(4)

    def gradient(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w, b])
            y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, [x, w, b])

    _, ops = run(gradient, x, w, b)
    assert ops["TfpFusedMatMul"] == 1
    # A step of the chain that the gradient comes through.
    assert ops["ReluGrad"] + ops["TfpExpression"] == 1


def test_a_hash_of_integers_runs_where_its_kernel_is() -> None:
    """TensorFlow joins its two ops to one of which the CPU alone has a kernel."""

    def bucket(x: tf.Tensor) -> tf.Tensor:
        text = tf.strings.as_string(x + 1)
        return tf.strings.to_hash_bucket_fast(text, 10) + tf.ones([], tf.int64)

    # Neither of the two has a kernel of this device.
    tf.config.set_soft_device_placement(True)
    try:
        run(bucket, tf.constant([3, 77, -5], tf.int64))
    finally:
        tf.config.set_soft_device_placement(False)


def test_what_is_returned_or_used_twice_is_computed() -> None:
    x, w, b = normal(5, 6), normal(6, 4), normal(4)

    def layers(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        product = tf.matmul(x, w)
        biased = tf.nn.bias_add(product, b)
        return product, biased, tf.nn.relu(biased)

    _, ops = run(layers, x, w, b)
    assert ops["MatMul"] == ops["BiasAdd"] == ops["Relu"] == 1
    assert ops["TfpFusedMatMul"] == 0


def test_other_types_and_shapes_stay_apart() -> None:
    def layer(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> Any:
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))

    _, ops = run(layer, normal(2, 3, 4), normal(2, 4, 5), normal(5))
    assert ops["TfpFusedMatMul"] == 0


def test_a_bias_that_does_not_fit_is_a_clean_error() -> None:
    def any_size(x: tf.Tensor, b: tf.Tensor) -> Any:
        with tf.device(DEVICE):
            return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, x), b)) + 1.0

    signature = [tf.TensorSpec([None, None]), tf.TensorSpec([None])]
    layer = tf.function(any_size, input_signature=signature, jit_compile=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="bias"):
        layer(tf.ones([3, 3]), tf.ones([4]))
    assert layer(tf.ones([3, 3]), tf.ones([3])).numpy().tolist() == [[5.0] * 3] * 3


def test_sessions_keep_what_they_fetch() -> None:
    graph = tf.Graph()
    with graph.as_default(), tf.device(DEVICE):
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        product = tf.matmul(x, tf.ones([3, 2]))
        biased = tf.nn.bias_add(product, tf.constant([1.0, -9.0]))
        y = tf.identity(tf.nn.relu(biased))
    with tf.compat.v1.Session(graph=graph) as session:
        for fetches in ([y], [y, biased], [product, y], [biased]):
            values = session.run(fetches, {x: np.ones((2, 3), np.float32)})
            by_tensor = dict(zip((f.name for f in fetches), values, strict=True))
            expected = {
                product.name: [[3.0, 3.0]] * 2,
                biased.name: [[4.0, -6.0]] * 2,
                y.name: [[4.0, 0.0]] * 2,
            }
            for name, value in by_tensor.items():
                assert value.tolist() == expected[name], name


def test_a_device_that_is_called_gpu_gets_no_ops_that_it_lacks() -> None:
    """TensorFlow's own passes would put ops of its GPU there."""
    process = child.run(
        """
        from tensorflow.python.eager import context
        @tf.function(jit_compile=False)
        def layers(x, w, v, b):
            with tf.device("/device:GPU:0"):
                y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b))
                y = tf.reshape(tf.nn.max_pool2d(y, 2, 2, "VALID"), [2, -1])
                return tf.nn.relu(tf.nn.bias_add(tf.matmul(y, v), b))
        inputs = tf.ones([2, 4, 4, 3]), tf.ones([3, 3, 3, 5]), tf.ones([20, 5]), tf.ones([5])
        context.enable_run_metadata()
        value = layers(*inputs)
        graphs = context.export_run_metadata().partition_graphs
        ops = {n.op for g in graphs for n in g.node if "GPU" in n.device}
        assert {"TfpFusedConv2D", "TfpFusedMatMul"} <= ops, ops
        assert not [op for op in ops if op.startswith("_Fused")], ops
        assert float(value[0, 0]) > 0
        """,
        TFP_DEVICE_TYPE="GPU",
    )
    child.check(process)


def test_fusion_can_be_turned_off() -> None:
    process = child.run(
        """
        from tensorflow.python.eager import context
        @tf.function(jit_compile=False)
        def layer(x):
            with tf.device("/device:TFP:0"):
                return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, x), x[0]))
        context.enable_run_metadata()
        layer(tf.ones([3, 3]))
        ops = {n.op for g in context.export_run_metadata().partition_graphs for n in g.node}
        assert {"MatMul", "BiasAdd", "Relu"} <= ops, ops
        """,
        TFP_FUSION="0",
    )
    child.check(process)


def batch_norm(x: tf.Tensor, *statistics: tf.Tensor) -> tf.Tensor:
    mean, variance, offset, scale = statistics
    return tf.nn.batch_normalization(x, mean, tf.square(variance), offset, scale, 1e-3)


@pytest.mark.parametrize(("side", "folded"), [(20, True), (3, False)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_a_batch_norm_becomes_part_of_the_convolution(
    side: int, folded: bool, with_bias: bool
) -> None:
    """Of a large image into its weights; of a small one into one op after it."""
    x, w, b = normal(2, side, side, 8), normal(3, 3, 8, 6), normal(6)
    statistics = [normal(6) for _ in range(4)]

    def block(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor, *statistics: tf.Tensor) -> Any:
        y = tf.nn.conv2d(x, w, strides=1, padding="SAME")
        if with_bias:
            y = tf.nn.bias_add(y, b)
        return tf.nn.relu(batch_norm(y, *statistics))

    _, ops = run(block, x, w, b, *statistics)
    assert ops["TfpFusedConv2D"] == (folded or with_bias)
    assert ops["TfpScaleShift"] == (not folded)
    assert ops["Relu"] == ops["BiasAdd"] == 0
    assert ops["Conv2D"] == (not folded and not with_bias)


@pytest.mark.parametrize("axis", [-1, 3])
@pytest.mark.parametrize(("side", "apart"), [(16, 0), (2, 1)])
def test_the_batch_norm_of_keras_is_no_kernel_of_its_own(side: int, apart: int, axis: int) -> None:
    """It is part of a convolution, unless that has more weights than the image has pixels.

    With axis 3, as in keras.applications, its scale and shift have four axes.
    """

    def make(device: str) -> Any:
        keras.utils.set_random_seed(3)
        with tf.device(device):
            inputs = keras.Input((side, side, 8))
            y = keras.layers.Conv2D(8, 3, padding="same")(inputs)
            y = keras.layers.ReLU()(keras.layers.BatchNormalization(axis)(y))
            y = keras.layers.BatchNormalization(axis)(keras.layers.Conv2D(8, 1)(y))
            model = keras.Model(inputs, keras.layers.ReLU()(keras.layers.Add()([inputs, y])))
            for number, weight in enumerate(model.weights):
                shape = weight.shape
                weight.assign(tf.random.stateless_uniform(shape, [number, 1], 0.5, 1.5))
        return model

    models = {device: make(device) for device in (DEVICE, CPU)}
    x = normal(4, side, side, 8)

    def apply(device: str) -> Any:
        def pinned(x: tf.Tensor) -> Any:
            with tf.device(device):
                return models[device](x, training=False)

        return tf.function(pinned, jit_compile=False)(x)

    context.enable_run_metadata()
    found = apply(DEVICE).numpy()
    graphs = context.export_run_metadata().partition_graphs
    context.disable_run_metadata()
    expected = apply(CPU).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    ops = collections.Counter(node.op for graph in graphs for node in graph.node)
    assert (ops["TfpFusedConv2D"], ops["TfpScaleShift"]) == (2, apart), ops


def test_a_batch_norm_in_training_keeps_its_gradient() -> None:
    x, w = normal(2, 9, 9, 3), normal(3, 3, 3, 6)
    offset, scale = normal(6), normal(6)

    def gradient(x: tf.Tensor, w: tf.Tensor, offset: tf.Tensor, scale: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w, offset, scale])
            y = tf.nn.conv2d(x, w, strides=1, padding="SAME")
            mean, variance = tf.nn.moments(y, [0, 1, 2])
            y = tf.nn.batch_normalization(y, mean, variance, offset, scale, 1e-3)
            loss = tf.reduce_sum(tf.nn.relu(y) * y)
        return tape.gradient(loss, [w, offset, scale])

    _, ops = run(gradient, x, w, offset, scale)
    assert ops["Conv2D"] == 1
    assert ops["TfpFusedConv2D"] == 0


def test_a_product_that_broadcasts_otherwise_stays() -> None:
    def scaled(x: tf.Tensor, row: tf.Tensor, shift: tf.Tensor) -> Any:
        return tf.nn.relu(x * row + shift)

    _, ops = run(scaled, normal(3, 1), normal(3, 4), normal(4))
    assert ops["TfpScaleShift"] == 0
