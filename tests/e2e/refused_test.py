"""What TensorFlow refuses is refused on the device, too, and nothing is changed by it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

DEVICES = ("/device:TFP:0", "/device:CPU:0")
UNKNOWN = tf.TensorSpec(None, tf.float32)
ROWS = tf.TensorSpec([None], tf.float32)
raw = tf.raw_ops


@pytest.fixture(autouse=True, scope="module")
def _no_soft_placement() -> None:
    tf.config.set_soft_device_placement(False)


def refused(
    make: Callable[[], tuple[list[tf.Variable], Callable[[], Any]]],
    devices: tuple[str, ...] = DEVICES,
) -> None:
    """Asserts that a step is refused on all devices and leaves its variables as they are."""
    for device in devices:
        with tf.device(device):
            variables, step = make()
            before = [v.numpy() for v in variables]
            with pytest.raises(tf.errors.InvalidArgumentError):
                step()
            for variable, value in zip(variables, before, strict=True):
                np.testing.assert_array_equal(variable.numpy(), value, err_msg=device)


@pytest.mark.parametrize("how", ["assign_sub", "assign_add"])
@pytest.mark.parametrize(
    ("shape", "other"), [((1,), (5,)), ((1, 3), (4, 3)), ((1,), (0,))], ids=str
)
def test_a_moving_average_keeps_its_shape(
    how: str, shape: tuple[int, ...], other: tuple[int, ...]
) -> None:
    def make() -> tuple[list[tf.Variable], Callable[[], Any]]:
        v = tf.Variable(tf.ones(shape))
        signature = [tf.TensorSpec([None, *shape[1:]], tf.float32)]

        def step(x: tf.Tensor) -> None:
            getattr(v, how)((v - x) * 0.1)

        graph = tf.function(step, input_signature=signature, jit_compile=False)
        return [v], lambda: graph(tf.zeros(other))

    refused(make)


def test_a_moving_average_of_the_right_shape_moves() -> None:
    for device in DEVICES:
        with tf.device(device):
            v = tf.Variable([1.0, 2.0])

            def step(x: tf.Tensor, v: tf.Variable = v) -> tf.Tensor:
                v.assign_sub((v - x) * 0.5)
                return v * 2.0

            graph = tf.function(step, input_signature=[ROWS], jit_compile=False)
            assert graph(tf.constant([3.0, 0.0])).numpy().tolist() == [4.0, 2.0]
            assert v.numpy().tolist() == [2.0, 1.0]


def test_a_gradient_inside_of_an_expression_does_not_broadcast() -> None:
    def make() -> tuple[list[tf.Variable], Callable[[], Any]]:
        def step(y: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
            return raw.TanhGrad(y=y * 2.0, dy=dy + 1.0) * 3.0

        graph = tf.function(step, input_signature=[ROWS, ROWS], jit_compile=False)
        return [], lambda: graph(tf.ones([1]), tf.ones([4]))

    refused(make)


def test_a_fused_bias_is_a_vector() -> None:
    def make() -> tuple[list[tf.Variable], Callable[[], Any]]:
        def dense(x: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
            return tf.nn.relu(raw.BiasAdd(value=raw.MatMul(a=x, b=w), bias=b))

        graph = tf.function(dense, input_signature=[UNKNOWN] * 3, jit_compile=False)
        return [], lambda: graph(tf.ones([2, 2]), tf.ones([2, 3]), tf.ones([1, 3]))

    # TensorFlow's own fusion for the CPU forgets to check it.
    refused(make, DEVICES[:1])


SPECIAL = np.array([0, -0.0, 2, -2, 0.5, 7, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(
    ("op", "forward", "gradient"),
    [
        *((op, "y", "dy") for op in ("SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad")),
        *((op, "y", "dy") for op in ("SigmoidGrad", "TanhGrad")),
        *((op, "features", "gradients") for op in ("ReluGrad", "Relu6Grad", "SoftplusGrad")),
        *((op, "features", "gradients") for op in ("SoftsignGrad", "LeakyReluGrad")),
        *((op, "outputs", "gradients") for op in ("EluGrad", "SeluGrad")),
    ],
)
def test_gradients_of_special_values(op: str, forward: str, gradient: str, fused: bool) -> None:
    grid = np.meshgrid(SPECIAL, SPECIAL)

    def compute(dy: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        found = getattr(raw, op)(**{forward: y, gradient: dy})
        return tf.abs(found) if fused else found

    results = []
    for device in DEVICES:
        with tf.device(device):
            results.append(tf.function(compute, jit_compile=False)(*grid).numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6, atol=1e-7)


def test_the_gradient_of_a_guarded_root_is_a_number() -> None:
    for device in DEVICES:
        with tf.device(device):
            x = tf.constant([0.0, 1.0, 4.0])
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.where(x > 0, tf.sqrt(x), tf.zeros_like(x)))
            assert tape.gradient(y, x).numpy().tolist() == [0.0, 0.5, 0.25]


STEPS: dict[str, tuple[int, list[str]]] = {
    "ResourceApplyGradientDescent": (0, ["alpha", "delta"]),
    "ResourceApplyMomentum": (1, ["lr", "grad", "momentum"]),
    "ResourceApplyAdagradV2": (1, ["lr", "epsilon", "grad"]),
    "ResourceApplyFtrl": (2, ["grad", "lr", "l1", "l2", "lr_power"]),
    "ResourceSparseApplyAdagrad": (1, ["lr", "grad", "indices"]),
    "ResourceSparseApplyMomentum": (1, ["lr", "grad", "indices", "momentum"]),
    "ResourceSparseApplyProximalGradientDescent": (0, ["alpha", "l1", "l2", "grad", "indices"]),
    "ResourceSparseApplyFtrl": (2, ["grad", "indices", "lr", "l1", "l2", "lr_power"]),
}
"""Optimizers' steps, with their numbers of slots and the inputs after those."""


def step_of(
    op: str, change: dict[str, Any], **attributes: Any
) -> tuple[list[tf.Variable], Callable[[], Any]]:
    """Returns the variables of a step, and the step with some inputs changed."""
    slots, names = STEPS[op]
    variables = [
        tf.Variable(tf.fill(change.get(str(i), (4, 2)), 0.5 + i)) for i in range(slots + 1)
    ]
    sparse = "indices" in names
    usual = {
        "grad": tf.fill((3, 2) if sparse else (4, 2), 0.3),
        "delta": tf.fill((4, 2), 0.3),
        "indices": tf.constant([0, 3, 1]),
        "lr_power": tf.constant(-0.5),
    }
    inputs = [change.get(name, usual.get(name, tf.constant(0.1))) for name in names]
    return variables, lambda: call_of(op, [v.handle for v in variables], inputs, attributes)


def call_of(op: str, handles: list[Any], inputs: list[Any], attributes: dict[str, Any]) -> Any:
    """Calls a step of variables, slots and the inputs after those."""
    keys = list(getattr(raw, op).__signature__.parameters)
    return getattr(raw, op)(**dict(zip(keys, [*handles, *inputs], strict=False)), **attributes)


def changes_of(op: str) -> list[dict[str, Any]]:
    """Returns inputs of a step of which one does not fit each; a number names a slot."""
    slots, names = STEPS[op]
    changes: list[dict[str, Any]] = [{str(i + 1): (3, 2)} for i in range(slots)]
    for name in names:
        if name == "indices":
            changes += [{name: tf.constant([0, 1, 4])}, {name: tf.constant([0, -1, 1])}]
            changes += [{name: tf.constant([0, 1])}, {name: tf.constant([[0, 1, 2]])}]
        elif name in ("grad", "delta"):
            changes += [{name: tf.ones(shape)} for shape in ((1,), (1, 2), (), (4, 3))]
        else:
            changes.append({name: tf.constant([0.1])})
    return changes


@pytest.mark.parametrize("op", STEPS)
def test_steps_refuse_what_does_not_fit(op: str) -> None:
    for change in changes_of(op):
        # TensorFlow's CPU ends the process where a gradient has too few axes, and has changed
        # slices before it comes to an index out of range.
        devices = DEVICES if change.keys() - {"grad", "delta", "indices"} else DEVICES[:1]
        refused(lambda change=change: step_of(op, change), devices)  # type: ignore[misc]


def inputs_of(op: str, change: dict[str, Any]) -> list[Any]:
    """Returns the inputs of a step after its slots as arrays, some of them changed."""
    names = STEPS[op][1]
    count = 3 if "indices" in names else 4
    usual: dict[str, Any] = {
        "grad": np.full((count, 2), 0.3, np.float32),
        "delta": np.full((4, 2), 0.3, np.float32),
        "indices": np.array([0, 3, 1], np.int32),
        "lr_power": np.float32(-0.5),
    }
    given = {k: v.numpy() for k, v in change.items() if isinstance(v, tf.Tensor)}
    return [given.get(name, usual.get(name, np.float32(0.1))) for name in names]


def starts_of(op: str, change: dict[str, Any]) -> list[Any]:
    """Returns what the variable and the slots of a step hold first."""
    shapes = [change.get(str(i), (4, 2)) for i in range(STEPS[op][0] + 1)]
    return [np.full(shape, 0.5 + i, np.float32) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("op", [op for op in STEPS if "Sparse" in op])
def test_sparse_steps_in_a_function_refuse_what_does_not_fit(op: str) -> None:
    """Nothing is known of the shapes when the function is traced."""
    for change in [{}, *changes_of(op)]:
        with tf.device(DEVICES[0]):
            starts, inputs = starts_of(op, change), inputs_of(op, change)
            variables = [tf.Variable(s, shape=tf.TensorShape(None)) for s in starts]

            def step(*arrays: tf.Tensor, variables: Any = variables) -> None:
                call_of(op, [v.handle for v in variables], list(arrays), {})

            signature = [tf.TensorSpec(None, a.dtype) for a in inputs]
            graph = tf.function(step, input_signature=signature, jit_compile=False)
            if not change:
                graph(*inputs)
                assert not np.array_equal(variables[0].numpy(), starts[0])
                continue
            with pytest.raises(tf.errors.InvalidArgumentError):
                graph(*inputs)
            for variable, start in zip(variables, starts, strict=True):
                np.testing.assert_array_equal(variable.numpy(), start, err_msg=str(change))


@pytest.mark.parametrize("by_rate", [False, True])
@pytest.mark.parametrize("power", [-0.5, -0.4])
@pytest.mark.parametrize("op", ["ResourceApplyFtrl", "ResourceSparseApplyFtrl"])
def test_ftrl_scales_its_linear_part(op: str, power: float, by_rate: bool) -> None:
    found = []
    for device in DEVICES:
        with tf.device(device):
            change = {"lr_power": tf.constant(power)}
            variables, step = step_of(op, change, multiply_linear_by_lr=by_rate)
            step()
            step()
            found.append(np.stack([v.numpy() for v in variables]))
    np.testing.assert_allclose(found[0], found[1], rtol=2e-6, atol=1e-6)


def test_an_integer_is_not_divided_by_zero() -> None:
    def make() -> tuple[list[tf.Variable], Callable[[], Any]]:
        v = tf.Variable(tf.constant([3, 4], tf.int64))
        updates = tf.constant([2, 0], tf.int64)
        return [v], lambda: raw.ResourceScatterDiv(
            resource=v.handle, indices=[0, 1], updates=updates
        )

    refused(make)


def test_attributes_have_32_bits() -> None:
    """TensorFlow's CPU ends the process instead: oneDNN's pass checks that it can read them."""
    x, wide, one = tf.ones([1, 4, 4, 1]), [1, 2**32 + 1, 1, 1], [1] * 4
    for ksize, strides in ((wide, one), (one, wide)):
        with tf.device(DEVICES[0]), pytest.raises(tf.errors.InvalidArgumentError):
            raw.MaxPool(input=x, ksize=ksize, strides=strides, padding="VALID")


def test_pooling_windows_touch_the_image() -> None:
    def make() -> tuple[list[tf.Variable], Callable[[], Any]]:
        pads = [0, 0, 2, 0, 0, 0, 0, 0]
        return [], lambda: raw.MaxPool(
            input=tf.ones([1, 4, 4, 1]),
            ksize=[1, 2, 2, 1],
            strides=[1] * 4,
            padding="EXPLICIT",
            explicit_paddings=pads,
        )

    refused(make)


def test_nothing_takes_no_time() -> None:
    """The other dimensions may be large."""
    many, none = 2**20, tf.zeros([0])
    with tf.device(DEVICES[0]):
        found = raw.DepthwiseConv2dNativeBackpropFilter(
            input=tf.zeros([0, 4, 4, 0]),
            filter_sizes=[many, many, 0, 3],
            out_backprop=tf.zeros([0, 4, 4, 0]),
            strides=[1] * 4,
            padding="SAME",
        )
        assert found.shape == (many, many, 0, 3)
        x = tf.zeros([2**33, 1, 1, 0])
        gradients = raw.FusedBatchNormGradV3(
            y_backprop=x,
            x=x,
            scale=none,
            reserve_space_1=none,
            reserve_space_2=none,
            reserve_space_3=none,
        )
        assert gradients[0].shape == x.shape


NOTHING: dict[str, tuple[str, dict[str, Any]]] = {
    "a cut by a vector": ("Split", {"axis": 0, "value": tf.zeros([0, 3]), "num_split": 3}),
    "rows of no images": ("ResizeBilinear", {"images": tf.zeros([0, 2, 2, 1]), "size": [2, 2]}),
    "a remainder of nothing": (
        "FloorMod",
        {"x": tf.zeros([0], tf.int64), "y": tf.zeros([1], tf.int64)},
    ),
    "a quotient of nothing": (
        "FloorDiv",
        {"x": tf.zeros([2, 0], tf.int64), "y": tf.zeros([], tf.int64)},
    ),
    "an axis of 41 bits": ("ArgMax", {"input": tf.eye(3), "dimension": tf.constant(-(2**40))}),
    "an axis of 33 bits": ("ArgMin", {"input": tf.eye(3), "dimension": tf.constant(2**32 + 1)}),
}
"""Calls that TensorFlow's CPU computes without a look at all that they are given."""


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("name", NOTHING)
def test_what_the_cpu_does_not_look_at_is_not_refused(name: str, in_graph: bool) -> None:
    op, inputs = NOTHING[name]
    tensors = {key: value for key, value in inputs.items() if isinstance(value, tf.Tensor)}
    results = []
    for device in DEVICES:
        # What is known when a graph is made would be refused then.
        def call(given: dict[str, tf.Tensor], device: str = device) -> Any:
            with tf.device(device):
                return getattr(raw, op)(**{**inputs, **given})

        found = tf.function(call, jit_compile=False)(tensors) if in_graph else call(tensors)
        results.append(tf.nest.map_structure(lambda each: each.numpy(), found))
    tf.nest.map_structure(np.testing.assert_array_equal, *results)


TENSOR = tf.zeros([3])
FAR = tf.constant([[1], [7]])
TWO = tf.constant([5.0, 6.0])
BEYOND: dict[str, dict[str, Any]] = {
    "ScatterNd": {"indices": FAR, "updates": TWO, "shape": [3]},
    "TensorScatterAdd": {"tensor": TENSOR, "indices": FAR, "updates": TWO},
    "TensorScatterUpdate": {"tensor": TENSOR, "indices": FAR, "updates": TWO},
    "GatherNd": {"params": TWO, "indices": FAR},
}
"""Calls with an index that is out of range."""


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("op", BEYOND)
def test_what_is_done_with_a_bad_index_can_be_said(op: str, in_graph: bool) -> None:
    def call(policy: str) -> Any:
        def step() -> Any:
            return getattr(raw, op)(**BEYOND[op], bad_indices_policy=policy)

        return tf.function(step, jit_compile=False)() if in_graph else step()

    found = []
    for device in DEVICES:
        with tf.device(device):
            found.append(call("IGNORE").numpy())
            for policy in ("", "DEFAULT", "ERROR", "OTHER"):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    call(policy)
    np.testing.assert_array_equal(*found)


def test_a_slice_has_one_ellipsis() -> None:
    def make() -> tuple[list[tf.Variable], Callable[[], Any]]:
        ends = {"begin": [0, 0], "end": [1, 1], "strides": [1, 1]}
        return [], lambda: raw.StridedSlice(input=tf.eye(3), **ends, ellipsis_mask=3)

    refused(make)


@pytest.mark.parametrize("target", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("source", [tf.float16, tf.float32, tf.float64, tf.int32, tf.int64])
def test_a_cast_that_may_cut_off_bits(source: tf.DType, target: tf.DType) -> None:
    x = tf.cast(tf.constant([1.005, -2.02, 3.185546875, 3615.0, 9470.0, -12654.0]), source)
    found = []
    for device in DEVICES:
        with tf.device(device):
            found.append(raw.Cast(x=x, DstT=target, Truncate=True).numpy())
    np.testing.assert_array_equal(*found)
