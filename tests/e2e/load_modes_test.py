"""However the plug-in is loaded, `import tensorflow` works."""

from __future__ import annotations

import pathlib
import shutil
import socket

from tests.e2e import child

RELU = """
with tf.device("/device:TFP:0"):
    y = tf.nn.relu(tf.constant([-1.0, 2.0]))
assert y.device.endswith("/device:TFP:0"), y.device
assert y.numpy().tolist() == [0.0, 2.0]
"""


def test_several_loads_give_one_device(tmp_path: pathlib.Path) -> None:
    """The same path twice, a link, a folder, and two copies: one device that works."""
    link = tmp_path / "link.so"
    link.symlink_to(child.library())
    copies = [tmp_path / "copy_a.so", tmp_path / "copy_b.so"]
    for copy in copies:
        shutil.copyfile(child.library(), copy)
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copyfile(child.library(), folder / "libother.so")
    paths = [child.library(), child.library(), link, *copies, folder]
    process = child.run(
        f"""
        from tensorflow.python.framework import load_library
        for path in {[str(path) for path in paths]}:
            load_library.load_pluggable_device_library(path)
        assert len(tf.config.list_physical_devices("TFP")) == 1
        assert len(tf.config.list_physical_devices()) == 2, tf.config.list_physical_devices()
        """
        + RELU.replace("\n", "\n        ")
    )
    child.check(process)


def test_no_registration_contradicts_an_op_def() -> None:
    """One that did would be left out, with a line that says why."""
    process = child.run('assert tf.config.list_physical_devices("TFP")')
    child.check(process)
    assert "tfp:" not in process.stderr


def test_no_table_of_passes_is_printed_for_each_function() -> None:
    """TensorFlow prints one wherever a plug-in has turned a pass off that is on by default."""
    process = child.run(
        """
        print(tf.function(lambda x: tf.nn.relu(x) + 1.0)(tf.ones([3])).device)
        """,
        TF_CPP_MIN_LOG_LEVEL="0",
    )
    assert "TFP:0" in child.check(process)
    assert "Plugin optimizer for device_type TFP" in process.stderr
    assert "Config of optimizers" not in process.stderr


def test_disabled_means_absent() -> None:
    process = child.run(
        """
        assert tf.config.list_physical_devices("TFP") == []
        print(tf.nn.relu(tf.constant([-1.0, 2.0])).device)
        """,
        TFP_DISABLE="1",
    )
    assert "CPU" in child.check(process)
    assert "tfp:" not in process.stderr


def test_a_library_alone_keeps_xla_away() -> None:
    """No module of ours is there, and Keras' `fit` compiles by default."""
    process = child.run(
        """
        import importlib.util
        import sys
        import keras
        import numpy as np

        sys.path = [entry for entry in sys.path if not entry.endswith("plugin/python")]
        assert importlib.util.find_spec("tfp_plugin") is None
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
        model.compile("sgd", "mse")
        model.fit(np.ones((8, 4), np.float32), np.ones((8, 2), np.float32), verbose=0)
        assert model.jit_compile
        assert model.weights[0].value.device.endswith("/device:TFP:0")
        function = tf.function(lambda x: x + 1.0, jit_compile=True)
        assert function(tf.constant(1.0)).device.endswith("/device:TFP:0")
        """
    )
    child.check(process)
    assert "tfp:" not in process.stderr


def test_a_type_that_tensorflow_has_kernels_of_is_left_to_it() -> None:
    """As GPU is in a TensorFlow for CUDA; every TensorFlow has kernels of CPU."""
    process = child.run(
        """
        assert tf.config.list_physical_devices("TFP")
        assert len(tf.config.list_physical_devices("CPU")) == 1
        function = tf.function(lambda x: x + 1.0, jit_compile=True)
        assert function(tf.constant(1.0)).device.endswith("/device:TFP:0")
        """
        + RELU.replace("\n", "\n        "),
        TFP_DEVICE_TYPE="CPU",
    )
    child.check(process)
    (line,) = [line for line in process.stderr.splitlines() if "tfp:" in line]
    assert line == (
        "tfp: TFP_DEVICE_TYPE=CPU: this TensorFlow has kernels of its own for CPU (as `tensorflow` "
        "has for GPU; `tensorflow-cpu` has none), so the device is TFP:0"
    )


def test_a_configuration_that_means_nothing_is_one_line() -> None:
    """And is written at once, so that what other threads write does not come in between."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        process = child.run(
            """
            assert tf.config.list_physical_devices("TFP") == []
            """,
            stderr=theirs.fileno(),
            TFP_NUM_DEVICES="many",
        )
        theirs.close()
        writes = list(iter(lambda: ours.recv(1 << 16), b""))
    assert process.returncode == 0, writes
    lines = [write for write in writes if b"tfp:" in write]
    expected = b'tfp: no devices: TFP_NUM_DEVICES="many": expected a number from 0 to 64\n'
    assert lines == [expected], writes


def test_type_number_and_memory_can_be_chosen() -> None:
    process = child.run(
        """
        assert len(tf.config.list_physical_devices("MY_DEVICE")) == 2
        for i in range(2):
            with tf.device(f"/device:MY_DEVICE:{i}"):
                y = tf.nn.relu(tf.constant([-1.0, 2.0])) + 1.0
            assert y.device.endswith(f"/device:MY_DEVICE:{i}"), y.device
            assert y.numpy().tolist() == [1.0, 3.0]
        with tf.device("/device:MY_DEVICE:0"):
            try:
                tf.zeros([2**28]) + tf.ones([2**28])
            except tf.errors.ResourceExhaustedError as error:
                assert "OOM" in str(error), error
            else:
                raise AssertionError("2 GiB fit into 512 MiB")
            # The next step works.
            assert (tf.ones([3]) + 1.0).numpy().tolist() == [2.0, 2.0, 2.0]
        """,
        TFP_DEVICE_TYPE="MY_DEVICE",
        TFP_NUM_DEVICES="2",
        TFP_NUM_THREADS="1",
        TFP_MEMORY_LIMIT="512M",
    )
    child.check(process)


def test_a_panic_in_a_kernel_is_a_python_exception() -> None:
    process = child.run(
        """
        with tf.device("/device:TFP:0"):
            x = tf.constant([-1.0, 2.0])
            for _ in range(3):
                try:
                    tf.nn.relu(x, name="broken")
                except tf.errors.InternalError as error:
                    text = str(error)
                    assert "Relu node" in text and "injected by TFP_FAULT" in text, text
                else:
                    raise AssertionError("no error")
            assert (x + 1.0).numpy().tolist() == [0.0, 3.0]
        """,
        TFP_FAULT="panic:Relu",
    )
    child.check(process)
