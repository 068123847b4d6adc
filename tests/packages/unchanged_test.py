"""Programs that know nothing of the plug-in run on it once its wheel is installed."""

from __future__ import annotations

import os
import pathlib
import textwrap

import pytest

from tests.packages import clean

WHEEL = pathlib.Path(os.environ["WHEEL"]).absolute()

FIT = """
def fit(tf, keras):
    import numpy as np
    x = np.random.default_rng(0).normal(size=(64, 8, 8, 4)).astype(np.float32)
    y = (x.sum((1, 2, 3)) > 0).astype(np.int64)
    losses = []
    for device in (None, "/device:CPU:0"):
        with tf.device(device):
            keras.utils.set_random_seed(1)
            model = keras.Sequential(
                [
                    keras.layers.Conv2D(8, 3, groups=2),
                    keras.layers.Flatten(),
                    keras.layers.Dense(2),
                ]
            )
            model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            losses += model.fit(x, y, epochs=2, verbose=0, shuffle=False).history["loss"]
            where = model.weights[0].value.device
            assert where.endswith(device or "/device:TFP:0"), where
            if device is None:
                assert model.layers[0](x).device.endswith("/device:TFP:0")
    assert max(abs(losses[0] - losses[2]), abs(losses[1] - losses[3])) < 1e-5, losses
"""
"""Trains with grouped convolutions, which Keras always compiles: on the device, as on the CPU."""


def installed(folder: pathlib.Path) -> clean.Venv:
    venv = clean.Venv(folder / "venv")
    venv.link_locked()
    clean.checked(venv.pip("install", "--no-index", "--no-deps", WHEEL))
    return venv


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> clean.Venv:
    return installed(tmp_path_factory.mktemp("clean"))


def program(venv: clean.Venv, folder: pathlib.Path, code: str, **variables: str) -> str:
    """Runs a program; returns its output."""
    file = folder / "program.py"
    file.write_text(FIT + textwrap.dedent(code))
    done = clean.run([venv.python, file], cwd=folder, timeout=900, **variables)
    assert "tfp:" not in done.stderr, done.stderr
    return clean.checked(done)


def test_keras_before_tensorflow(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    program(
        venv,
        tmp_path,
        """
        import keras
        import tensorflow as tf

        fit(tf, keras)
        """,
    )


def test_imported_late_and_in_a_thread(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    program(
        venv,
        tmp_path,
        """
        import concurrent.futures

        def work():
            import tensorflow as tf
            fit(tf, tf.keras)

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(work).result()
        """,
    )


def test_in_the_cells_of_a_notebook(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    """As Jupyter's kernel does it: a cell is executed in `__main__`, inside of a loop that runs."""
    program(
        venv,
        tmp_path,
        """
        import asyncio

        CELLS = ("import keras", "import tensorflow as tf", "fit(tf, keras)", "fit(tf, tf.keras)")

        async def kernel():
            for number, cell in enumerate(CELLS):
                exec(compile(cell, f"<cell {number}>", "exec"), globals())
                await asyncio.sleep(0)

        asyncio.run(kernel())
        """,
    )


def test_in_child_processes(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    """Fork before TensorFlow has begun to compute: its threads are not in the child."""
    program(
        venv,
        tmp_path,
        """
        import multiprocessing
        import tensorflow as tf

        def work(queue):
            function = tf.function(lambda x: x + 1.0, jit_compile=True)
            answer = function(tf.constant(1.0))
            queue.put((float(answer), answer.device))

        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                context = multiprocessing.get_context(method)
                queue = context.SimpleQueue()
                child = context.Process(target=work, args=(queue,))
                child.start()
                value, device = queue.get()
                child.join()
                assert child.exitcode == 0
                assert value == 2.0 and device.endswith("/device:TFP:0"), (method, value, device)
        """,
    )


SAVE = """
import tensorflow as tf

class Scale(tf.Module):
    def __init__(self):
        self.by = tf.Variable([2.0, 3.0])

    @tf.function(input_signature=[tf.TensorSpec([None, 2])], jit_compile=True)
    def inner(self, x):
        return x * self.by

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def outer(self, x):
        return self.inner(x) + 1.0

module = Scale()
tf.saved_model.save(module, "model", signatures=module.outer)
"""


def test_functions_and_saved_models_with_functions_that_are_compiled(
    venv: clean.Venv, tmp_path: pathlib.Path
) -> None:
    """Called, differentiated, in a session, from a graph; elsewhere they are compiled as ever."""
    program(venv, tmp_path, SAVE, TFP_DISABLE="1")
    program(
        venv,
        tmp_path,
        """
        import logging

        logging.basicConfig(filename="log", format="%(name)s:%(message)s", level=logging.DEBUG)
        import tensorflow as tf

        def compiled(function):
            attributes = function.function_def.attr
            return "_XlaMustCompile" in attributes and attributes["_XlaMustCompile"].b

        x = tf.constant([[1.0, 2.0]])
        model = tf.saved_model.load("model")
        with tf.GradientTape() as tape:
            y = model.inner(x)
        assert y.device.endswith("/device:TFP:0"), y.device
        assert y.numpy().tolist() == [[2.0, 6.0]]
        assert tape.gradient(y, model.by).numpy().tolist() == [1.0, 2.0]
        assert model.outer(x).numpy().tolist() == [[3.0, 7.0]]
        served = model.signatures["serving_default"](x=x)
        assert [each.numpy().tolist() for each in served.values()] == [[[3.0, 7.0]]]
        with tf.device("/device:CPU:0"):
            elsewhere = tf.saved_model.load("model")
            assert compiled(elsewhere.inner.concrete_functions[0])
            assert elsewhere.inner(x).numpy().tolist() == [[2.0, 6.0]]
        with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
            info = tf.compat.v1.saved_model.load(session, ["serve"], "model")
            signature = info.signature_def["serving_default"]
            (x_info,), (y_info,) = signature.inputs.values(), signature.outputs.values()
            assert session.run(y_info.name, {x_info.name: [[1.0, 2.0]]}).tolist() == [[3.0, 7.0]]

        here = tf.function(lambda x: x + 1.0, jit_compile=True)
        scalar = tf.TensorSpec([])
        assert here(tf.constant(1.0)).device.endswith("/device:TFP:0")
        assert not compiled(here.get_concrete_function(scalar))
        for scope in ("/device:CPU:0", "/cpu:0", tf.DeviceSpec(device_type="CPU")):
            there = tf.function(lambda x: x + 2.0, jit_compile=True)

            @tf.function
            def outer(x):
                with tf.device(scope):
                    return there(x)

            assert outer(tf.constant(1.0)).numpy() == 3.0
            (call,) = [
                node
                for node in outer.get_concrete_function(scalar).graph.as_graph_def().node
                if node.op.endswith("PartitionedCall")
            ]
            assert call.attr["_XlaMustCompile"].b
            with tf.device(scope):
                assert there(tf.constant(1.0)).device.endswith("/device:CPU:0")
        (said,) = [line for line in open("log") if line.startswith("tfp_plugin:")]
        assert said == "tfp_plugin:functions with jit_compile=True run on TFP without XLA\\n"
        """,
    )


def test_switched_off_xla_is_asked_for_until_enabled(
    venv: clean.Venv, tmp_path: pathlib.Path
) -> None:
    program(
        venv,
        tmp_path,
        """
        import keras
        import tensorflow as tf
        import tfp_plugin

        try:
            tf.function(lambda x: x + 1.0, jit_compile=True)(tf.constant(1.0))
        except tf.errors.InvalidArgumentError as error:
            assert "No JIT device registered for TFP" in str(error), error
        else:
            raise AssertionError("compiled")
        assert tfp_plugin.enable() == tfp_plugin.enable() == ["TFP:0"]
        fit(tf, keras)
        """,
        TFP_AUTO="0",
    )


def test_the_former_name_says_so_once(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    output = program(
        venv,
        tmp_path,
        """
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            import tfp
            import tfp as again
        (warning,) = caught
        assert warning.category is DeprecationWarning
        assert warning.filename == __file__
        import tfp_plugin

        assert tfp.enable is tfp_plugin.enable and tfp.__version__ == tfp_plugin.__version__
        print(warning.message)
        """,
    )
    assert output == "the module tfp is called tfp_plugin now, and goes with the next release\n"
    done = clean.run([venv.python, "-W", "ignore", "-m", "tfp.check", "--version"])
    assert clean.checked(done).startswith("tfp_plugin 0.")


def test_programs_without_tensorflow_do_nothing_more(tmp_path: pathlib.Path) -> None:
    """The library tells TensorFlow, so Python need not run anything of ours when it starts."""
    bare = clean.Venv(tmp_path / "bare")
    clean.checked(bare.pip("install", "--no-index", "--no-deps", WHEEL))
    assert not list(bare.packages.glob("*.pth"))
    code = "import sys; print([name for name in sys.modules if name.startswith('tfp')])"
    assert clean.checked(clean.run([bare.python, "-c", code])) == "[]\n"
