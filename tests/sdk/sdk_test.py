"""Every part of the SDK under TensorFlow: sync and async kernels, ops, optimizer, profiler."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import pytest

_LOG = pathlib.Path(tempfile.mkdtemp()) / "log"
os.environ["SDK_LOG"] = str(_LOG)
os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(pathlib.Path(os.environ["SDK"]).absolute())

import tensorflow as tf  # noqa: E402  (reads the variable when it is imported)
from tensorflow.python.eager import context, execute  # noqa: E402
from tensorflow.python.framework import op_def_library, op_def_registry  # noqa: E402

tf.config.set_soft_device_placement(False)
DEVICE = "/device:SDK:0"

ATTRIBUTES: dict[str, Any] = {
    "scale": 2.0,
    "offset": 3,
    "flag": True,
    "text": "hällo",
    "shape": [2, None],
    "shapes": [tf.TensorShape(None), []],
    "numbers": [1, -2],
    "floats": [0.5],
    "types": [tf.int64, tf.bool],
    "texts": [b"a", b"\x00\xff"],
    "flags": [True, False],
    "tensor": tf.make_tensor_proto([1.0, 2.0]),
    "tensors": [tf.make_tensor_proto([1]), tf.make_tensor_proto(1, tf.int64)],
    "function": "one",
    "functions": ["two", "three"],
}


def affine(x: tf.Tensor, **attributes: Any) -> Any:
    return op_def_library.apply_op("SdkAffine", x=x, **{**ATTRIBUTES, **attributes})


def in_graph(function: Any, *arguments: Any) -> Any:
    """Calls `function` as a graph on the device."""

    def pinned(*inner: Any) -> Any:
        with tf.device(DEVICE):
            return function(*inner)

    return tf.function(pinned, jit_compile=False)(*arguments)


def test_registrations_are_checked() -> None:
    lines = dict(line.split(": ", 1) for line in _LOG.read_text(encoding="utf-8").splitlines())
    types = "[float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, "
    assert lines["define"] == lines["define broken"] == lines["define planned"] == "ok"
    assert [lines[f"choice {i}"] for i in range(3)] == ["ok"] * 3
    assert lines["define broken shape"] == "ok"
    assert lines["define again"] == "op SdkAffine exists"
    assert lines["async"] == lines["affine"] == lines["broken"] == lines["planned"] == "ok"
    assert lines["duplicate"] == (
        "op Neg has a kernel for these nodes already: Neg on SDK T=float32"
    )
    assert lines["no op"] == "this TensorFlow has no op NoSuchOp"
    assert lines["no attr"] == 'op Relu has no type attribute U; it has ["T"]'
    assert lines["no type"].startswith(f"op Relu never has T=string; it allows {types}")
    assert lines["no argument"] == (
        'op Relu has no argument nothing; it has ["features", "activations"]'
    )


def test_an_op_has_the_properties_that_it_was_given_and_no_others() -> None:
    def properties(op: str) -> tuple[bool, bool, bool]:
        found = op_def_registry.get(op)
        return found.is_stateful, found.is_commutative, found.is_aggregate

    assert properties("SdkAffine") == (False, False, False)
    assert properties("SdkBroken") == (True, False, False)


def test_an_async_kernel_finishes_on_its_own_thread() -> None:
    with tf.device(DEVICE):
        results = [tf.negative(tf.constant([float(i), 2.0])) for i in range(5)]
    assert [r.numpy().tolist() for r in results] == [[-float(i), -2.0] for i in range(5)]
    with tf.device(DEVICE), pytest.raises(tf.errors.InternalError, match="13 is unlucky"):
        tf.negative(tf.constant([13.0]))
    with tf.device(DEVICE), pytest.raises(tf.errors.InternalError, match="gave up the step"):
        tf.negative(tf.constant([14.0]))
    with tf.device(DEVICE), pytest.raises(tf.errors.InternalError, match="15 is not even begun"):
        tf.negative(tf.constant([15.0]))
    with tf.device(DEVICE), pytest.raises(tf.errors.InternalError, match="16 is begun elsewhere"):
        tf.negative(tf.constant([16.0]))
    with pytest.raises(tf.errors.InternalError, match="input 0 has been forwarded"):
        in_graph(lambda x: tf.negative(affine(x)[0]), tf.constant([7.0]))
    total = in_graph(lambda x: tf.negative(tf.negative(x)), tf.constant([1.0, 2.0]))
    assert total.numpy().tolist() == [1.0, 2.0]


def test_every_kind_of_attribute_arrives() -> None:
    values = np.array([[1.0, 2.0]], np.float32)
    y, _ = in_graph(affine, tf.constant(values))
    np.testing.assert_array_equal(y.numpy(), values * 2 + 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="attributes are"):
        in_graph(lambda x: affine(x, numbers=[5]), tf.constant(values))


def test_a_dying_input_is_forwarded_and_a_living_one_is_not() -> None:
    def graph(x: tf.Tensor) -> Any:
        y, first = affine(x)
        z, second = affine(y)
        return z, first, second

    z, first, second = in_graph(graph, tf.constant([[1.0, 2.0]]))
    assert z.numpy().tolist() == [[13.0, 17.0]]
    assert (first.numpy(), second.numpy()) == (0, 1)


def test_shapes_are_inferred() -> None:
    shapes = []

    def graph(x: tf.Tensor) -> Any:
        with tf.device(DEVICE):
            y, forwarded = affine(x)
        shapes.extend([y.shape, forwarded.shape])
        return y

    signature = [tf.TensorSpec([None, 3])]
    tf.function(graph, input_signature=signature, jit_compile=False)(tf.constant([[1.0] * 3] * 2))
    assert shapes[0].as_list() == [None, 3]
    assert shapes[1].as_list() == []
    with pytest.raises(ValueError, match="rank of x is above 3"):
        in_graph(affine, tf.constant([[[[1.0]]]]))
    with pytest.raises((ValueError, tf.errors.InternalError), match="panic: no shape"):
        in_graph(lambda x: op_def_library.apply_op("SdkBrokenShape", x=x), tf.constant([1.0]))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (0, "refused when constructed"),
        (1, "panic: panicked when constructed"),
        (2, "panic: panicked in a step"),
        (3, "the kernel gives output 0 the type int32, the op expects float32"),
        (4, "is too large"),
        (5, "output 7 of 1 does not exist"),
        (6, "5"),
        (7, "the kernel gives output 0 the type int32, the op expects float32"),
        (8, "output 0 has been given already"),
        (9, "output 0 has been given already"),
        (10, "the kernel gave no output 0 of 1"),
        (11, "output 1 of 1 does not exist"),
        (12, "Missing 0-th output"),
    ],
)
def test_a_broken_kernel_is_an_exception_that_names_it(how: int, message: str) -> None:
    def graph(x: tf.Tensor) -> Any:
        return op_def_library.apply_op("SdkBroken", x=x, how=how, name="culprit")

    with pytest.raises(tf.errors.OpError) as caught:
        in_graph(graph, tf.constant([1.0]))
    assert how == 12 or 'SdkBroken node "culprit"' in str(caught.value)
    assert message in str(caught.value)


def test_an_output_that_is_forgotten_is_an_exception_of_an_eager_op() -> None:
    """TensorFlow itself gives a tensor without elements."""
    with tf.device(DEVICE), pytest.raises(tf.errors.InternalError, match="gave no output 0 of 1"):
        execute.execute(
            b"SdkBroken",
            1,
            inputs=[tf.constant([1.0])],
            attrs=("how", 10),
            ctx=context.context(),
        )


def test_priority_and_label_choose_the_kernel() -> None:
    def choice() -> Any:
        return op_def_library.apply_op("SdkChoice")

    def labelled() -> Any:
        with tf.compat.v1.get_default_graph()._kernel_label_map({"SdkChoice": "two"}):
            return choice()

    assert in_graph(choice).numpy() == 1
    assert in_graph(labelled).numpy() == 2


def planned(x: tf.Tensor, how: int, name: str) -> Any:
    return op_def_library.apply_op("SdkPlanned", x=x, how=how, name=name)


def test_steps_of_the_planned_shape_and_of_others() -> None:
    signature = [tf.TensorSpec([None])]

    @tf.function(input_signature=signature, jit_compile=False)  # type: ignore[untyped-decorator]
    def graph(x: tf.Tensor) -> Any:
        with tf.device(DEVICE):
            return planned(planned(x, 0, "first"), 0, "second")

    for values, more in [([1.0, 2.0], 2), ([3.0, 4.0], 2), ([5.0], 4), ([], 4), ([6.0, 7.0], 2)]:
        assert graph(tf.constant(values, tf.float32)).numpy().tolist() == [x + more for x in values]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (1, "the plan of input 0 is of another node"),
        (2, "the plan of output 0 is of another node"),
        (3, "an input that output 0 may take over has been forwarded already"),
        (4, "input 0 is float32, planned is int32"),
        (5, "input 1 of 1 does not exist"),
        (6, "the kernel gives output 0 the type int32, the op expects float32"),
        (7, "input 1 of 1 does not exist"),
    ],
)
def test_a_plan_serves_its_node_only(how: int, message: str) -> None:
    with pytest.raises(tf.errors.InternalError) as caught:
        in_graph(lambda x: planned(planned(x, 0, "own"), how, "culprit"), tf.constant([1.0]))
    assert f'SdkPlanned node "culprit": {message}' in str(caught.value)


def test_the_optimizer_rewrites_what_it_may() -> None:
    """The kernel of Softsign can't be constructed; where the optimizer makes it Neg, it runs."""

    def graph(x: tf.Tensor) -> Any:
        return tf.identity(tf.raw_ops.Softsign(features=x))

    assert in_graph(graph, tf.constant([1.0, 3.0])).numpy().tolist() == [-1.0, -3.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="no attribute how"):
        in_graph(graph, tf.constant([1.0, 3.0, 5.0]))


def test_the_profile_reaches_the_trace(tmp_path: pathlib.Path) -> None:
    tf.profiler.experimental.start(str(tmp_path))
    with tf.device(DEVICE):
        for _ in range(3):
            tf.negative(tf.constant([1.0])).numpy()
    tf.profiler.experimental.stop()
    (trace,) = tmp_path.rglob("*.xplane.pb")
    contents = trace.read_bytes()
    assert b"/device:SDK:0" in contents
    assert b"all steps" in contents


def alone(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, with TensorFlow as `tf` and the plug-in loaded."""
    head = "import tensorflow as tf\nfrom tensorflow.python.framework import load_library\n"
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", head + program],
        env={**os.environ, **paths, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("way", ["same", "link", "copy"])
def test_a_second_load_offers_nothing_and_harms_nothing(way: str, tmp_path: pathlib.Path) -> None:
    first = os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"]
    second = tmp_path / "second.so"
    if way == "link":
        second.symlink_to(first)
    elif way == "copy":
        shutil.copy(first, second)
    path = first if way == "same" else str(second)
    done = alone(
        f"load_library.load_pluggable_device_library({path!r})\n"
        "print(len(tf.config.list_physical_devices('SDK')))\n"
        "with tf.device('/device:SDK:0'):\n"
        "    print(tf.function(tf.negative, jit_compile=False)(tf.constant([2.0])).numpy())\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["1", "[-2.]"]
    assert done.stderr.count("no devices: platform SDK is loaded already") == 1


def test_a_device_that_can_not_be_made_is_an_exception_at_every_use() -> None:
    """TensorFlow itself would wait forever at the second use."""
    done = alone(
        "for _ in range(2):\n"
        "    try:\n"
        "        with tf.device('/device:SDK:0'):\n"
        "            tf.negative(tf.constant([2.0]))\n"
        "    except tf.errors.OpError as error:\n"
        "        print(type(error).__name__)\n",
        SDK_FAULT="create_device",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["UnknownError"] * 2
    assert "device 0 can't be used: create_device is broken" in done.stderr


def test_a_profiler_that_fails_leaves_a_profile_without_the_device(tmp_path: pathlib.Path) -> None:
    done = alone(
        f"tf.profiler.experimental.start({str(tmp_path)!r})\n"
        "tf.profiler.experimental.stop()\nprint('stopped')\n",
        SDK_FAULT="collect",
    )
    assert done.returncode == 0 and "stopped" in done.stdout, done.stderr
