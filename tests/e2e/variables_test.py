"""Ops that read or change a part of a variable, or a variable and its slots at once."""

from __future__ import annotations

import concurrent.futures
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

Array = npt.NDArray[Any]
DEVICE, CPU = "/device:TFP:0", "/device:CPU:0"
VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)
train = tf.compat.v1.train


@pytest.fixture(autouse=True, scope="module")
def _no_soft_placement() -> None:
    tf.config.set_soft_device_placement(False)


def agree(compute: Callable[[], Array]) -> Array:
    """Returns what `compute` gives on the device, which is what it gives on the CPU."""
    with tf.device(DEVICE):
        found = compute()
    with tf.device(CPU):
        expected = compute()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    return found


def call(function: Callable[..., Any], in_graph: bool) -> Callable[..., Any]:
    return tf.function(function, jit_compile=False) if in_graph else function


graph_or_not = pytest.mark.parametrize("in_graph", [True, False], ids=["graph", "eager"])


@graph_or_not
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
def test_slices_are_taken(in_graph: bool, dtype: Any) -> None:
    def compute() -> Array:
        v = tf.Variable(VALUES.astype(dtype))
        take = call(lambda i: tf.gather(v, i), in_graph)
        found: Array = take(tf.constant([[2, 0], [3, 3]])).numpy()
        return found

    assert agree(compute).shape == (2, 2, 3)


@graph_or_not
def test_elements_are_taken(in_graph: bool) -> None:
    def compute() -> Array:
        v = tf.Variable(VALUES)
        take = call(lambda i: tf.gather_nd(v, i), in_graph)
        found: Array = take(tf.constant([[2, 0], [3, 2]], tf.int64)).numpy()
        return found

    assert agree(compute).tolist() == [6.0, 11.0]


@graph_or_not
@pytest.mark.parametrize("how", ["add", "sub", "mul", "div", "min", "max", "update"])
def test_slices_are_changed(in_graph: bool, how: str) -> None:
    """An index that comes twice counts twice."""

    def compute() -> Array:
        v = tf.Variable(VALUES)
        updates = tf.constant([[2.0, 3.0, 4.0]] * 3)
        change = call(
            lambda i: getattr(v, f"scatter_{how}")(tf.IndexedSlices(updates, i)), in_graph
        )
        change(tf.constant([1, 3, 1]))
        found: Array = v.numpy()
        return found

    assert (agree(compute)[0] == VALUES[0]).all()


@graph_or_not
@pytest.mark.parametrize("how", ["add", "sub", "mul", "div", "max", "update"])
@pytest.mark.parametrize(
    "dtype", [tf.float16, tf.bfloat16, tf.int8, tf.uint8, tf.int16, tf.uint32, tf.complex64]
)
def test_slices_of_types_that_only_the_cpu_computes_with(
    in_graph: bool, how: str, dtype: Any
) -> None:
    if how == "max" and dtype.is_complex:
        pytest.skip("complex numbers have no order")

    def compute() -> Array:
        v = tf.Variable(VALUES.astype(dtype.as_numpy_dtype))
        updates = tf.constant(np.array([[2, 3, 4]] * 3, dtype.as_numpy_dtype))
        change = call(
            lambda i: getattr(v, f"scatter_{how}")(tf.IndexedSlices(updates, i)), in_graph
        )
        change(tf.constant([1, 3, 1]))
        elements = call(lambda i, u: (v.scatter_nd_update(i, u), v.scatter_nd_add(i, u)), in_graph)
        two = tf.constant(np.array([2, 3], dtype.as_numpy_dtype))
        elements(tf.constant([[0, 0], [2, 2]]), two)
        found: Array = v.numpy().astype(np.complex64)
        return found

    found = agree(compute)
    assert (found[0, 1:] == VALUES[0, 1:]).all()


@graph_or_not
@pytest.mark.parametrize("how", ["add", "sub", "update"])
def test_elements_are_changed(in_graph: bool, how: str) -> None:
    def compute() -> Array:
        v = tf.Variable(VALUES)
        change = call(
            lambda i: getattr(v, f"scatter_nd_{how}")(i, tf.constant([5.0, 7.0])), in_graph
        )
        change(tf.constant([[1, 0], [3, 2]]))
        found: Array = v.numpy()
        return found

    agree(compute)


@graph_or_not
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_ranges_are_assigned(in_graph: bool, dtype: Any) -> None:
    def compute() -> Array:
        v = tf.Variable(VALUES.astype(dtype))

        def change(x: tf.Tensor) -> None:
            v[1:3].assign(tf.tile(x[tf.newaxis], [2, 1]))
            v[::-2, 1].assign(x[:2] * 2)
            v[0, 2].assign(x[0])
            v[..., 0].assign(x[0] + 3)

        call(change, in_graph)(tf.constant([7, 8, 9], dtype))
        found: Array = v.numpy()
        return found

    assert (agree(compute) != VALUES).any()


def together(step: Callable[[int], None], threads: int, turns: int) -> None:
    """Runs `step` that many times in each of the threads."""
    barrier = threading.Barrier(threads)

    def work(number: int) -> None:
        barrier.wait()
        for _ in range(turns):
            step(number)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for each in [pool.submit(work, number) for number in range(threads)]:
            each.result()


@graph_or_not
@pytest.mark.parametrize("how", ["add", "sub", "nd_add", "mul", "update"])
def test_updates_of_several_threads_are_all_there(in_graph: bool, how: str) -> None:
    """Each thread changes rows of its own, sums change one of all threads, too.

    Threads compute no int32, of which TensorFlow's eager runtime may give them each other's
    (docs/memory.md).
    """
    threads, turns = 4, 25
    with tf.device(DEVICE):
        v = tf.Variable(tf.ones([threads + 1, 300]))
        sums = how.endswith(("add", "sub"))

        def change(rows: tf.Tensor, ones: tf.Tensor) -> None:
            if how == "nd_add":
                v.scatter_nd_add(rows[:, tf.newaxis], ones)
            elif how == "mul":
                v.scatter_mul(tf.IndexedSlices(ones * 1.25, rows))
            elif how == "update":
                v.scatter_update(tf.IndexedSlices(tf.gather(v, rows) + 1.0, rows))
            else:
                getattr(v, f"scatter_{how}")(tf.IndexedSlices(ones, rows))

        run = call(change, in_graph)
        numbers = [[i, threads] if sums else [i] for i in range(threads)]
        arguments = [(tf.constant(rows, tf.int64), tf.ones([len(rows), 300])) for rows in numbers]
        run(*arguments[0])
        v.assign(tf.ones([threads + 1, 300]))

        def step(number: int) -> None:
            with tf.device(DEVICE):
                run(*arguments[number])

        together(step, threads, turns)
        sign = -1 if how == "sub" else 1
        own = 1.25**turns if how == "mul" else 1 + sign * turns
        np.testing.assert_allclose(v.numpy()[:-1], own, rtol=1e-5)
        np.testing.assert_array_equal(v.numpy()[-1], 1 + sign * turns * threads if sums else 1)


@graph_or_not
def test_a_locked_update_is_one_step_for_others(in_graph: bool) -> None:
    with tf.device(DEVICE):
        v, slot = tf.Variable(tf.zeros([300])), tf.Variable(tf.zeros([300]))

        def change() -> None:
            tf.raw_ops.ResourceApplyMomentum(
                var=v.handle,
                accum=slot.handle,
                lr=1.0,
                grad=tf.ones([300]),
                momentum=1.0,
                use_locking=True,
            )

        run = call(change, in_graph)

        def step(_: int) -> None:
            with tf.device(DEVICE):
                run()

        together(step, 4, 25)
        # Each step adds 1 to the slot, and then the slot's value to the variable's decrease.
        np.testing.assert_array_equal(slot.numpy(), 100.0)
        np.testing.assert_array_equal(v.numpy(), -100.0 * 101 / 2)


@graph_or_not
@pytest.mark.parametrize("op", ["AdagradV2", "Momentum"])
def test_sparse_steps_of_several_threads_are_all_there(in_graph: bool, op: str) -> None:
    """Each thread changes rows of its own, of the variable and of its slot; again without int32."""
    threads, turns = 4, 25
    with tf.device(DEVICE):
        v, slot = (tf.Variable(tf.zeros([threads, 300])) for _ in range(2))
        rates = {"epsilon": 0.0} if op == "AdagradV2" else {"momentum": 1.0}

        ones = tf.ones([1, 300])

        def change(indices: tf.Tensor) -> None:
            definition = getattr(tf.raw_ops, f"ResourceSparseApply{op}")
            handles = {"var": v.handle, "accum": slot.handle}
            definition(**handles, **rates, lr=1.0, grad=ones, indices=indices)

        run = call(change, in_graph)
        rows = [tf.constant([i], tf.int64) for i in range(threads)]

        def step(number: int) -> None:
            with tf.device(DEVICE):
                run(rows[number])

        together(step, threads, turns)
        np.testing.assert_array_equal(slot.numpy(), turns)
        slots = np.arange(1, turns + 1, dtype=np.float64)
        steps = 1 / np.sqrt(slots) if op == "AdagradV2" else slots
        np.testing.assert_allclose(v.numpy(), -steps.sum(), rtol=1e-5)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: train.GradientDescentOptimizer(0.1),
    "momentum": lambda: train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: train.AdamOptimizer(0.1),
    "rmsprop": lambda: train.RMSPropOptimizer(0.1, momentum=0.5),
    "centered": lambda: train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
    "adagrad": lambda: train.AdagradOptimizer(0.1),
    "adadelta": lambda: train.AdadeltaOptimizer(1.0),
    "ftrl": lambda: train.FtrlOptimizer(
        0.1, l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.02
    ),
    "adagrad_da": lambda: train.AdagradDAOptimizer(
        0.1, tf.constant(3, tf.int64), l1_regularization_strength=0.01
    ),
    "proximal": lambda: train.ProximalGradientDescentOptimizer(
        0.1, l1_regularization_strength=0.01
    ),
    "proximal_adagrad": lambda: train.ProximalAdagradOptimizer(
        0.1, l1_regularization_strength=0.01
    ),
}


@graph_or_not
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_version_one_optimizers_train(in_graph: bool, sparse: bool, name: str) -> None:
    def compute() -> Array:
        v = tf.Variable(VALUES)
        optimizer = OPTIMIZERS[name]()

        def step() -> None:
            with tf.GradientTape() as tape:
                x = tf.gather(v, [1, 3, 1]) if sparse else v.read_value()
                loss = tf.reduce_sum(x * x * 0.5)
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])

        run = call(step, in_graph)
        for _ in range(3):
            run()
        found: Array = v.numpy()
        return found

    assert (agree(compute) != VALUES).any()


RAW: dict[str, tuple[int, dict[str, float]]] = {
    "ResourceApplyKerasMomentum": (1, {"lr": 0.1, "momentum": 0.9}),
    "ResourceApplyAdaMax": (
        2,
        {"beta1_power": 0.9, "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-7},
    ),
    "ResourceApplyAdamWithAmsgrad": (
        3,
        {
            "beta1_power": 0.9,
            "beta2_power": 0.99,
            "lr": 0.1,
            "beta1": 0.9,
            "beta2": 0.99,
            "epsilon": 1e-7,
        },
    ),
    "ResourceApplyAdagradDA": (
        2,
        {"lr": 0.1, "l1": 0.01, "l2": 0.02, "global_step": 3},
    ),
    "ResourceApplyAdagradV2": (1, {"lr": 0.1, "epsilon": 1e-7}),
    "ResourceApplyAddSign": (1, {"lr": 0.1, "alpha": 1.0, "sign_decay": 0.5, "beta": 0.9}),
    "ResourceApplyPowerSign": (1, {"lr": 0.1, "logbase": 1.0, "sign_decay": 0.5, "beta": 0.9}),
}
"""Steps that no optimizer of version 1 takes: number of slots, and scalars by name."""


@graph_or_not
@pytest.mark.parametrize("op", RAW)
def test_other_steps(in_graph: bool, op: str) -> None:
    def compute() -> Array:
        slots, scalars = RAW[op]
        variables = [tf.Variable(VALUES - 5.0)]
        variables += [tf.Variable(np.full_like(VALUES, 0.5 + i)) for i in range(slots)]
        definition = tf.raw_ops.__dict__[op]
        names = [n for n in definition.__signature__.parameters if n not in scalars]
        handles = dict(zip(names, (v.handle for v in variables), strict=False))

        def step(gradient: tf.Tensor) -> None:
            definition(**handles, **scalars, grad=gradient)

        run = call(step, in_graph)
        for i in range(2):
            run(tf.constant(VALUES * 0.25 + i - 1.0))
        return np.stack([v.numpy() for v in variables])

    agree(compute)


@graph_or_not
@pytest.mark.parametrize("index", [-1, 4])
def test_a_bad_index_is_a_clean_error_and_changes_nothing(in_graph: bool, index: int) -> None:
    with tf.device(DEVICE):
        v = tf.Variable(VALUES)
        change = call(lambda i: v.scatter_add(tf.IndexedSlices(tf.ones([1, 3]), i)), in_graph)
        for function in (change, call(lambda i: tf.gather(v, i), in_graph)):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"{index}"):
                function(tf.constant([index]))
        np.testing.assert_array_equal(v.numpy(), VALUES)
        change(tf.constant([3]))
        np.testing.assert_array_equal(v.numpy()[3], VALUES[3] + 1)


def test_inside_of_loops_and_branches() -> None:
    """Each turn sees what the turn before wrote."""

    def compute() -> Array:
        v = tf.Variable(VALUES)

        def run(turns: tf.Tensor) -> tf.Tensor:
            total = tf.zeros([3])
            for i in tf.range(turns):
                row = tf.gather(v, [i % 4])
                if i % 2 == 0:
                    v.scatter_add(tf.IndexedSlices(row * 0.5, [(i + 1) % 4]))
                else:
                    v.scatter_sub(tf.IndexedSlices(row * 0.25, [(i + 2) % 4]))
                total += tf.reduce_sum(tf.gather(v, [0, 3]), 0)
            return total

        total = tf.function(run, jit_compile=False)(tf.constant(7)).numpy()
        return np.concatenate([v.numpy().ravel(), total])

    agree(compute)


def test_what_was_read_before_an_update_stays_as_it_was() -> None:
    """In graphs and eagerly: an update never shows in a tensor that was read before it."""
    with tf.device(DEVICE):
        for in_graph in (True, False):
            v = tf.Variable(VALUES)
            before = v.read_value()
            change = call(
                lambda i, v=v: v.scatter_update(tf.IndexedSlices(tf.zeros([1, 3]), i)),
                in_graph,
            )
            change(tf.constant([1]))
            np.testing.assert_array_equal(before.numpy(), VALUES)
            assert v.numpy()[1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("how", ["max", "update"])
def test_a_session_changes_slices_of_its_own_variables(how: str) -> None:
    def compute() -> Array:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            v = tf.compat.v1.get_variable("v", initializer=VALUES, use_resource=True)
            slices = tf.IndexedSlices(tf.constant([[2.0, 9.0, 4.0]]), tf.constant([1]))
            change = getattr(v, f"scatter_{how}")(slices)
            session.run(v.initializer)
            session.run(change)
            found: Array = session.run(v.read_value())
            return found

    agree(compute)


def test_a_session_runs_locked_steps() -> None:
    def compute() -> Array:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            v = tf.compat.v1.get_variable("v", initializer=VALUES, use_resource=True)
            step = train.GradientDescentOptimizer(0.5, use_locking=True)
            change = step.apply_gradients([(tf.ones_like(v), v)])
            session.run(v.initializer)
            session.run(change)
            found: Array = session.run(v.read_value())
            return found

    assert (agree(compute) == VALUES - 0.5).all()


def test_infinities_and_nan_can_be_overwritten() -> None:
    with tf.device(DEVICE):
        v = tf.Variable([[np.inf], [np.nan], [1.0]])
        v.scatter_update(tf.IndexedSlices(tf.constant([[2.0], [-0.0]]), tf.constant([0, 1])))
        assert v.numpy().tolist() == [[2.0], [0.0], [1.0]]
        assert np.signbit(v.numpy()[1, 0])


@pytest.mark.parametrize("algorithm", [1, 3], ids=["philox", "auto"])
@pytest.mark.parametrize("delta", [0, 1, 5, 2**24, 2**56, 2**63])
@pytest.mark.parametrize("state", [[1, 2, 3], [-1, 2, 3], [-1, -1, 3], [-(2**63), 5, 7]])
def test_a_generator_reads_its_state_and_skips(
    state: list[int], delta: int, algorithm: int
) -> None:
    def compute() -> Array:
        v = tf.Variable(state, dtype=tf.int64)
        skipped = tf.constant(delta, tf.uint64)
        old = tf.raw_ops.RngReadAndSkip(resource=v.handle, alg=algorithm, delta=skipped)
        assert old.numpy().tolist() == state
        tf.raw_ops.RngSkip(
            resource=v.handle,
            algorithm=tf.constant(1, tf.int64),
            delta=tf.constant(delta >> 1, tf.int64),
        )
        found: Array = v.numpy()
        return found

    agree(compute)


@pytest.fixture
def _soft_placement() -> Iterator[None]:
    tf.config.set_soft_device_placement(True)
    yield
    tf.config.set_soft_device_placement(False)


@graph_or_not
@pytest.mark.usefixtures("_soft_placement")  # a generator casts to uint64, which the CPU does
def test_a_generator_gives_the_numbers_of_the_cpu(in_graph: bool) -> None:
    def compute() -> Array:
        generator = tf.random.Generator.from_seed(5)

        def draw() -> tf.Tensor:
            drawn = [
                generator.normal([7]),
                generator.truncated_normal([7], mean=1.0),
                generator.uniform([7]),
                tf.cast(generator.uniform([7], 3, 90, tf.int32), tf.float32),
                tf.cast(generator.uniform_full_int([7], tf.int64), tf.float32) * 2.0**-60,
                tf.cast(generator.binomial([7], 9.0, 0.25), tf.float32),
            ]
            return tf.stack(drawn)

        draw = call(draw, in_graph)
        found: Array = np.stack([draw().numpy(), draw().numpy()])
        generator.skip(tf.constant(100, tf.uint64))
        return np.concatenate([found.ravel(), generator.state.numpy() / 2.0**40])

    agree(compute)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.float16])
def test_older_ops_on_the_state_of_a_generator(dtype: Any) -> None:
    def compute() -> Array:
        v = tf.Variable([4, 5, 6], dtype=tf.int64)
        shape, algorithm = tf.constant([5], tf.int64), tf.constant(1, tf.int64)
        arguments = {"resource": v.handle, "algorithm": algorithm, "shape": shape}
        real = ("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal")
        drawn = [getattr(tf.raw_ops, op)(**arguments, dtype=dtype) for op in real]
        whole = tf.raw_ops.StatefulUniformInt(
            **arguments, minval=tf.constant(-9, tf.int64), maxval=tf.constant(9, tf.int64)
        )
        full = tf.raw_ops.StatefulUniformFullInt(**arguments, dtype=tf.uint64)
        assert full.dtype == tf.uint64
        parts = [*drawn, whole, v.read_value()]
        return np.concatenate([part.numpy().astype(np.float64) for part in parts])

    agree(compute)


@pytest.mark.parametrize(
    ("state", "algorithm", "said"),
    [
        ([1, 2], 1, "at least 3"),
        ([[1, 2, 3]], 1, "one and only one dimension"),
        ([1, 2, 3], 2, "ThreeFry"),
        ([1, 2, 3], 7, "algorithm id: 7"),
        ([1.0, 2.0, 3.0], 1, "int64"),
    ],
)
def test_a_state_that_is_none_is_refused(state: list[Any], algorithm: int, said: str) -> None:
    with tf.device(DEVICE):
        v = tf.Variable(state, dtype=tf.float32 if isinstance(state[0], float) else tf.int64)
        with pytest.raises(tf.errors.OpError, match=said):
            tf.raw_ops.RngReadAndSkip(
                resource=v.handle, alg=algorithm, delta=tf.constant(1, tf.uint64)
            )
        assert v.numpy().tolist() == state


@pytest.mark.usefixtures("_soft_placement")
def test_threads_that_share_a_generator_get_numbers_of_their_own() -> None:
    with tf.device(DEVICE):
        generator = tf.random.Generator.from_seed(5)

        @tf.function(jit_compile=False)  # type: ignore[untyped-decorator]
        def draw() -> tf.Tensor:
            return generator.uniform([], dtype=tf.float64)

        drawn = [float(draw())]

    def draw_many(_: int) -> list[float]:
        return [float(draw()) for _ in range(50)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        drawn += [x for part in pool.map(draw_many, range(4)) for x in part]
    assert len(set(drawn)) == 201
