"""Models, checkpoints, tables and random numbers: Python and Rust give each other theirs.

Python writes into a folder, one Rust program reads that and writes there, Python compares.
"""

import os
import pathlib
import re
import subprocess
import textwrap
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

ENV = os.environ | {
    "TF_LIBRARY_PATH": str(pathlib.Path(tf.__file__).parent),
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
RNG = np.random.default_rng(5)
INPUTS: dict[str, np.ndarray] = {
    "module/x": RNG.normal(size=(3, 2)).astype(np.float32),
    "module/key": np.array([b"b", b"nobody"], object),
    "keras/keras_tensor": RNG.normal(size=(4, 3)).astype(np.float32),
    "keras2/inputs": RNG.normal(size=(4, 3)).astype(np.float32),
}


class Module(tf.Module):  # type: ignore[misc]  # TensorFlow ships no types.
    """A variable, a constant, tables and a file."""

    def __init__(self, vocabulary: str) -> None:
        """Makes the parts."""
        super().__init__()
        self.scale = tf.Variable([2.0, 3.0], name="scale")
        self.offset = tf.constant([5.0, 6.0])
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([10, 20], tf.int64))
        self.table = tf.lookup.StaticHashTable(pairs, -1)
        lines = tf.lookup.TextFileInitializer(
            vocabulary,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self.lines = tf.lookup.StaticHashTable(lines, -1)

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[
            tf.TensorSpec([None, 2], tf.float32, name="x"),
            tf.TensorSpec([None], tf.string, name="key"),
        ]
    )
    def both(self, x: tf.Tensor, key: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns results whose names are not in the order of the arguments."""
        return {
            "scaled": x * self.scale + self.offset,
            "id": self.table.lookup(key),
            "line": self.lines.lookup(key),
        }

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)]
    )
    def rows(self, rows: tf.RaggedTensor) -> tf.RaggedTensor:
        """Takes and returns what is made of several tensors."""
        return rows * 2.0


class Bodies(tf.Module):  # type: ignore[misc]
    """A function that is traced for several shapes and values."""

    def __init__(self) -> None:
        """Makes a variable."""
        super().__init__()
        self.w = tf.Variable(2.0)

    @tf.function  # type: ignore[untyped-decorator]
    def __call__(
        self, x: tf.Tensor, training: bool | tf.Tensor = False, mode: str = "a", *, k: int = 3
    ) -> tf.Tensor:
        """Computes something else for each way of a call."""
        y = x * self.w
        if training:
            y = y + 100.0
        if mode == "b":
            y = -y
        return y * float(k)

    def results(self) -> dict[str, np.ndarray]:
        """Calls the function in every way, and returns what it computes."""
        pair, square = tf.constant([1.0, 2.0]), tf.ones([3, 3])
        results = {
            "usual": self(pair),
            "trained": self(pair, training=True),
            "square": self(square, training=True, mode="b"),
            "four": self(pair, k=4),
            "flag": self(pair, tf.constant(True)),
        }
        return {name: value.numpy() for name, value in results.items()}


class Layer(tf.Module):  # type: ignore[misc]
    """A variable below a module."""

    def __init__(self) -> None:
        """Makes the variable."""
        super().__init__()
        self.w = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="w")


class Outer(tf.Module):  # type: ignore[misc]
    """A module below a module."""

    def __init__(self) -> None:
        """Makes the layer."""
        super().__init__()
        self.layer = Layer()


def network(seed: int) -> keras.Model:
    """Returns a small model with weights that do and do not train."""
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(4, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(2),
        ]
    )
    model.compile(optimizer="sgd", loss="mse", jit_compile=False)
    model.fit(RNG.normal(size=(32, 3)), RNG.normal(size=(32, 2)), verbose=0)
    return model


def write_inputs(prefix: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
    """Writes tensors by name."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(value) for value in tensors.values()],
    )


def write_old_model(folder: pathlib.Path, vocabulary: pathlib.Path) -> dict[str, np.ndarray]:
    """Writes a model as TensorFlow 1 does, and returns its results and its state after a step.

    It has a variable of each kind, one that is not saved, and a table of a file.
    """
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], "x")
        key = v1.placeholder(tf.string, [None], "key")
        w = v1.get_variable("w", initializer=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], use_resource=False)
        b = v1.get_variable("b", initializer=[0.5, -0.5, 1.5], use_resource=True)
        locals_ = [v1.GraphKeys.LOCAL_VARIABLES]
        v1.get_variable("seen", initializer=0, collections=locals_, use_resource=True)
        y = tf.matmul(x, w) + b
        lines = tf.lookup.TextFileInitializer(
            str(vocabulary),
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        line = tf.lookup.StaticHashTable(lines, -1).lookup(key)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        builder = v1.saved_model.Builder(str(folder))
        signature = v1.saved_model.predict_signature_def(
            {"x": x, "key": key}, {"y": y, "line": line}
        )
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signature_def_map={"serving_default": signature},
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            main_op=v1.tables_initializer(),
        )
        builder.save()
        step = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y * y))
        fed = {x: INPUTS["module/x"], key: INPUTS["module/key"]}
        before = session.run({"y": y, "line": line}, fed)
        session.run(step, fed)
        after: dict[str, np.ndarray] = session.run({"changed_y": y, "changed_line": line}, fed)
        return {**before, **after}


class Shared:
    """The folder in which both worked, and what each found."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Writes what Rust reads, and starts it."""
        self.folder = folder
        vocabulary = folder / "vocabulary.txt"
        vocabulary.write_text("a\nb\nc\n")
        write_inputs(folder / "inputs", INPUTS)
        module = Module(str(vocabulary))
        tf.saved_model.save(
            module, str(folder / "module"), signatures={"serving_default": module.both}
        )
        self.keras = network(1)
        self.keras.export(str(folder / "keras"), verbose=False)
        tf.saved_model.save(network(2), str(folder / "keras2"))
        bodies = Bodies()
        self.bodies = bodies.results()
        tf.saved_model.save(bodies, str(folder / "bodies"))
        self.old = write_old_model(folder / "old", vocabulary)
        self.random = tf.random.Generator.from_seed(77)
        self.checkpoint = tf.train.Checkpoint(
            model=Outer(), step=tf.Variable(41, dtype=tf.int64), random=self.random
        )
        self.checkpoint.save(str(folder / "checkpoints" / "python"))
        done = subprocess.run(
            [os.environ["WRAPPERS"], str(folder)],
            capture_output=True,
            text=True,
            check=False,
            env=ENV,
        )
        assert done.returncode == 0, done.stderr
        reader = tf.train.load_checkpoint(str(folder / "found"))
        self.found: dict[str, Any] = {
            name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
        }

    def below(self, name: str) -> dict[str, Any]:
        """Returns the tensors whose names begin with a name and a slash."""
        start = f"{name}/"
        return {key[len(start) :]: v for key, v in self.found.items() if key.startswith(start)}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Returns what one run of the Rust program left."""
    return Shared(tmp_path_factory.mktemp("wrappers"))


def call(folder: pathlib.Path, name: str) -> dict[str, np.ndarray]:
    """Calls a model in Python with the inputs of a name."""
    start = f"{name}/"
    arguments = {k[len(start) :]: tf.constant(v) for k, v in INPUTS.items() if k.startswith(start)}
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    return {key: value.numpy() for key, value in signature(**arguments).items()}


@pytest.mark.parametrize("name", ["module", "keras", "keras2"])
def test_models_of_python_run_in_rust(shared: Shared, name: str) -> None:
    """A signature gives Python's values; so does a function by its path."""
    found = shared.below(name)
    if name == "module":
        np.testing.assert_array_equal(found.pop("by_path"), [1, -1])
        np.testing.assert_array_equal(found.pop("rows"), [2, 4, 6])
        np.testing.assert_array_equal(found.pop("splits"), [0, 2, 2, 3])
    expected = call(shared.folder / name, name)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-6, atol=1e-6)


def test_the_body_of_a_function_follows_from_its_arguments(shared: Shared) -> None:
    """By shapes, by values of Python, and by default."""
    found = shared.below("bodies")
    for name, expected in shared.bodies.items():
        np.testing.assert_array_equal(found[name], expected, err_msg=name)
    np.testing.assert_array_equal(found["named"], shared.bodies["trained"])
    parts = (
        "the arguments (float32 [3,3]) fit no body of function '__call__', which has "
        "(x: float32 [2], k=3, mode='a', training=False) and "
        "(x: float32 [2], training: bool [], k=3, mode='a')",
        "argument 'x' of function '__call__'",
        "mode='c'",
    )
    for at, part in enumerate(parts):
        assert part in found[f"error{at}"].decode()


@pytest.mark.parametrize("name", ["module", "keras", "keras2"])
def test_models_that_rust_changed_run_in_python(shared: Shared, name: str) -> None:
    """A model that Rust loaded, changed and saved gives Rust's values in Python."""
    found = shared.below(f"{name}_changed")
    expected = call(shared.folder / f"{name}_changed", name)
    assert found.keys() == expected.keys()
    before = shared.below(name)
    assert any(np.any(before[key] != found[key]) for key in found)
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-6, atol=1e-6)


def test_keras_layer_of_a_model_that_rust_changed(shared: Shared) -> None:
    """Keras wraps it, with its trainable weights, and a table still finds its file."""
    layer = keras.layers.TFSMLayer(
        str(shared.folder / "keras_changed"), call_endpoint="serving_default"
    )
    x = INPUTS["keras/keras_tensor"]
    (value,) = layer(x).values()
    (expected,) = shared.below("keras_changed").values()
    np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)
    assert len(layer.trainable_weights) >= 6


def test_checkpoints_go_both_ways(shared: Shared) -> None:
    """Rust restored Python's variables, and Python restores Rust's."""
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(shared.found["checkpoint/w"], w)
    assert shared.found["checkpoint/step"] == 41
    expected = tf.random.Generator.from_seed(77).normal([3])
    np.testing.assert_array_equal(shared.found["checkpoint/random"], expected)
    latest = tf.train.latest_checkpoint(str(shared.folder / "checkpoints"))
    assert latest is not None and latest.endswith("rust-2")
    status = shared.checkpoint.restore(latest)
    status.assert_consumed()
    np.testing.assert_array_equal(shared.checkpoint.model.layer.w, w + 1)
    assert shared.checkpoint.step == 42
    assert shared.checkpoint.save_counter == 2
    advanced = tf.random.Generator.from_seed(77)
    advanced.normal([3])
    np.testing.assert_array_equal(shared.random.normal([2]), advanced.normal([2]))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        restored = tf.compat.v1.get_variable("layer/w", [2, 3])
        step = tf.compat.v1.get_variable("step", [], tf.int64)
        tf.compat.v1.train.Saver().restore(session, str(shared.folder / "by_name"))
        values = session.run([restored, step])
    np.testing.assert_array_equal(values[0], w + 1)
    assert values[1] == 42


def test_models_of_rust_run_in_python(shared: Shared) -> None:
    """Python loads, calls, trains and saves again what Rust made."""
    found = shared.below("rust_model")
    np.testing.assert_allclose(found["again"], found["y"], rtol=1e-6)
    np.testing.assert_allclose(found["session"], 3 * found["y"], rtol=1e-6)
    assert found["count"] == 1
    folder = str(shared.folder / "rust_model")
    x = INPUTS["keras/keras_tensor"]
    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]
    assert set(signature.structured_input_signature[1]) == {"x"}
    results = signature(x=tf.constant(x))
    assert results.keys() == {"y", "scaled"}
    np.testing.assert_allclose(results["y"], found["y"], rtol=1e-6)
    np.testing.assert_allclose(results["scaled"], 3 * found["y"], rtol=1e-6)
    np.testing.assert_allclose(found["branch"], [0.5, -1.0])
    branch = model.signatures["branch"]
    x_branch = tf.constant([2.0, 4.0])
    for flag, expected in ((True, [0.5, -1.0]), (False, [-2.0, -4.0])):
        chosen = branch(flag=tf.constant(flag), x=x_branch)["chosen"]
        np.testing.assert_allclose(chosen, expected)
    # What the signature does besides its results happens, and once per call.
    assert model.signatures["calls"]()["count"] == 1
    assert [v.name for v in model.trainable_variables] == [
        "calls:0",
        "dense/bias:0",
        "dense/kernel:0",
    ]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(signature(x=tf.constant(x))["y"])
    (gradient,) = tape.gradient(loss, [model.dense.kernel])
    y = found["y"]
    np.testing.assert_allclose(gradient, x.T @ (1 - y * y), rtol=1e-5, atol=1e-6)
    again = str(shared.folder / "again")
    tf.saved_model.save(model, again, signatures={"serving_default": signature})
    loaded = tf.saved_model.load(again).signatures["serving_default"]
    np.testing.assert_allclose(loaded(x=tf.constant(x))["y"], y, rtol=1e-6)
    layer = keras.layers.TFSMLayer(folder, call_endpoint="serving_default")
    np.testing.assert_allclose(layer(x)["y"], y, rtol=1e-6)
    np.testing.assert_allclose(
        call_one(shared.folder / "rust_graph_model", x),
        shared.found["rust_graph_model/y"],
        rtol=1e-6,
    )
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        info = meta.signature_def["serving_default"]
        value = session.run(info.outputs["y"].name, {info.inputs["x"].name: x})
    np.testing.assert_allclose(value, y, rtol=1e-6)


def test_tables_of_rust_are_found_in_python(shared: Shared) -> None:
    """Python finds in the tables what Rust does: at once, saved again and in a session."""
    key = INPUTS["module/key"]
    expected: dict[str, dict[str, Any]] = {
        name: {
            "word": [first + 1, -1],
            "line": [2, -1],
            "count": [count, -1],
            "pair": [pair, [-1, -2]],
        }
        for name, first, count, pair in (
            ("rust_tables", 10, 12, [1.5, 2.5]),
            ("rust_tables_other", 50, 52, [1.5, 2.5]),
            ("rust_graph_tables", 70, 4, [-1, -2]),
        )
    }
    loaded = {name: tf.saved_model.load(str(shared.folder / name)) for name in expected}
    for name, results in expected.items():
        found = shared.below(name)
        again = str(shared.folder / f"{name}_again")
        signature = loaded[name].signatures["serving_default"]
        tf.saved_model.save(loaded[name], again, signatures=signature)
        python = signature(key=tf.constant(key))
        resaved = tf.saved_model.load(again).signatures["serving_default"](key=tf.constant(key))
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            meta = tf.compat.v1.saved_model.load(session, ["serve"], str(shared.folder / name))
            info = meta.signature_def["serving_default"]
            outputs = {result: tensor.name for result, tensor in info.outputs.items()}
            old = session.run(outputs, {info.inputs["key"].name: key})
        for result, value in results.items():
            ways = (found[result], found[f"session_{result}"], python[result], old[result])
            for way in (*ways, resaved[result]):
                np.testing.assert_array_equal(way, value, err_msg=f"{name}: {result}")
    # What changes stays changeable.
    model = loaded["rust_tables"]
    assert model.signatures["add"](key=tf.constant(["b", "new"]))["size"] == 3
    counts = model.signatures["serving_default"](key=tf.constant(["b", "new"]))["count"]
    np.testing.assert_array_equal(counts, [1, 1])


@pytest.mark.parametrize("name", ["export_graph", "export_eager"])
def test_trained_models_run_in_python(shared: Shared, name: str) -> None:
    """Python and Keras compute what the training in Rust does, for batches of any size."""
    x = INPUTS["keras/keras_tensor"]
    expected = shared.found[f"{name}/y"]
    folder = shared.folder / name
    np.testing.assert_allclose(call_one(folder, x), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(call_one(folder, x[:1]), expected[:1], rtol=1e-5, atol=1e-6)
    layer = keras.layers.TFSMLayer(str(folder), call_endpoint="serving_default")
    np.testing.assert_allclose(layer(x)["y"], expected, rtol=1e-5, atol=1e-6)
    assert "lstm_recurrent_kernel:0" in [weight.name for weight in layer.trainable_weights]


def call_one(folder: pathlib.Path, x: np.ndarray) -> np.ndarray:
    """Calls a model with one argument `x` and one result `y`."""
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    return np.asarray(signature(x=tf.constant(x))["y"])


def test_a_model_of_tensorflow_1_is_called_trained_and_saved(shared: Shared) -> None:
    """Rust has Python's results, and Python those of the model that Rust changed."""
    found = shared.below("old")
    assert (found["variables"], found["references"]) == (b"b,seen", b"w")
    np.testing.assert_allclose(found["y"], shared.old["y"], rtol=1e-6)
    np.testing.assert_array_equal(found["line"], shared.old["line"])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        folder = str(shared.folder / "old_changed")
        meta = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        info = meta.signature_def["serving_default"]
        y, line = session.run(
            [info.outputs["y"].name, info.outputs["line"].name],
            {
                info.inputs["x"].name: INPUTS["module/x"],
                info.inputs["key"].name: INPUTS["module/key"],
            },
        )
    np.testing.assert_allclose(y, shared.old["changed_y"], rtol=1e-5)
    np.testing.assert_array_equal(line, shared.old["changed_line"])


@pytest.mark.parametrize("seed", [1234, -5])
def test_random_numbers_are_those_of_python(shared: Shared, seed: int) -> None:
    """Equal seeds give equal numbers of every kind, one after the other."""
    found = shared.below(f"random/{seed}")
    generator = tf.random.Generator.from_seed(seed)
    expected = {
        "normal": generator.normal([2, 3]),
        "uniform": generator.uniform([3], dtype=tf.float64),
        "int": generator.uniform([4], 0, 10, tf.int32),
        "full": generator.uniform_full_int([2], tf.uint64),
        "truncated": generator.truncated_normal([4]),
        "binomial": generator.binomial([2], counts=[10.0, 20.0], probs=[0.5, 0.25]),
    }
    for at, part in enumerate(generator.split(2)):
        expected[f"split{at}"] = part.normal([2])
    expected["state"] = generator.state
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_sparse_ragged_and_tables_are_those_of_python(shared: Shared) -> None:
    """The same calls give the same numbers."""
    dense = np.array([[0, 1.5, 0, -2], [0, 0, 0, 0], [3, 0, 0.5, 0]], np.float32)
    other = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    sparse = tf.sparse.from_dense(dense)
    filled, empty = tf.sparse.fill_empty_rows(sparse, 7.0)
    joined = tf.sparse.concat(0, [tf.sparse.add(sparse, sparse), sparse])
    ragged = tf.RaggedTensor.from_row_lengths([1.0, 2, 3, 4, 5, 6], [3, 0, 1, 2])
    expected = {
        "sparse/indices": sparse.indices,
        "sparse/dense": tf.sparse.to_dense(sparse, 9.0),
        "sparse/mat_mul": tf.sparse.sparse_dense_matmul(sparse, other),
        "sparse/sum": tf.sparse.reduce_sum(sparse, [1]),
        "sparse/softmax": tf.sparse.softmax(sparse).values,
        "sparse/transposed": dense.T,
        "sparse/concat": tf.sparse.to_dense(tf.sparse.slice(joined, [1, 0], [4, 3])),
        "sparse/reshaped": tf.sparse.reshape(sparse, [2, 6]).indices,
        "sparse/filled": filled.values,
        "sparse/empty": empty,
        "sparse/product": (sparse * dense).values,
        "sparse/added": dense + dense,
        "ragged/dense": ragged.to_tensor(-1.0),
        "ragged/lengths": ragged.row_lengths(),
        "ragged/ids": ragged.value_rowids(),
        "ragged/sums": tf.reduce_sum(ragged, 1),
        "ragged/gathered": tf.gather(tf.square(ragged), [3, 0]).to_tensor(),
        "ragged/sparse": ragged.to_sparse().indices,
        "table/found": [1, -1, 2],
        "table/lines": [1, 2, -1],
    }
    kinds = ("sparse", "ragged", "table")
    found = {name: v for name, v in shared.found.items() if name.split("/")[0] in kinds}
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_gradients_of_a_keras_model(shared: Shared) -> None:
    """A tape over a loaded signature finds what Python's finds."""
    found = shared.below("gradient")
    folder = str(shared.folder / "keras")
    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]
    with tf.GradientTape() as tape:
        (value,) = signature(keras_tensor=tf.constant(INPUTS["keras/keras_tensor"])).values()
        loss = tf.reduce_sum(tf.square(value))
    used = [variable for variable in signature.variables if variable.trainable]
    gradients = tape.gradient(loss, used)
    expected = {v.name.removesuffix(":0"): g for v, g in zip(used, gradients, strict=True)}
    assert len(expected) == 6
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-5, atol=1e-6, err_msg=name)


# Pages, the programs that they show, and what these print.
SHOWN = {
    "client": (
        "tour",
        [
            "graph: [5.0, 13.0]",
            "eager: [5.0, 13.0]",
            "gradient: 12",
            "trained: 3.00",
            "restored: 3.00",
            "model: y = [7.0, 10.0]",
            'outputs: ["class", "age"]',
            "weights: hidden/0/kernel",
            "from [8] to [4]",
            "loss scale: 32768",
        ],
    ),
    "client-data": (
        "pipeline",
        [
            "written: 256 records",
            "loaded: 2 variables loaded",
            "kernel: [2.0, -1.0]",
            "csv: Ulm 478",
            "csv: Rome 0",
            "bucketed: [2,2]",
            "bucketed: [2,4]",
            "from Rust: [1.0, 1.0, 2.0, 2.0]",
            "from Rust: [3.0, 3.0]",
        ],
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_shows_the_program(name: str) -> None:
    """Each piece of Rust on the page is in the program that it names, which runs."""
    example, printed = SHOWN[name]
    page = pathlib.Path(f"docs/{name}.md").read_text()
    program = textwrap.dedent(pathlib.Path(f"examples/client/{example}.rs").read_text())
    lines = "\n".join(line.strip() for line in program.splitlines())
    pieces = re.findall(r"```rust\n(.*?)```", page, re.DOTALL)
    assert len(pieces) >= 5
    for piece in pieces:
        assert "\n".join(line.strip() for line in piece.splitlines()) in lines, piece
    done = subprocess.run(
        [os.environ[example.upper()]], capture_output=True, text=True, check=False, env=ENV
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed


def test_example_fine_tunes_a_keras_model(tmp_path: pathlib.Path) -> None:
    """A model that was trained for one task learns another one in Rust, and Keras takes it back."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse", jit_compile=False)
    x = np.random.default_rng(4).uniform(-1, 1, (256, 2)).astype(np.float32)
    old, new = 2 * x[:, :1] - x[:, 1:], 2 * x[:, :1] - x[:, 1:] + 1
    model.fit(x, old, epochs=20, verbose=0)
    model.export(str(tmp_path / "model"), verbose=False)
    done = subprocess.run(
        [os.environ["FINE_TUNE"], str(tmp_path / "model"), str(tmp_path / "tuned")],
        capture_output=True,
        text=True,
        check=False,
        env=ENV,
    )
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "loss" and float(last[1]) > 0.5 and float(last[3]) < 0.02
    before = keras.layers.TFSMLayer(str(tmp_path / "model"), call_endpoint="serving_default")
    after = keras.layers.TFSMLayer(str(tmp_path / "tuned"), call_endpoint="serving_default")
    (old_value,), (new_value,) = before(x).values(), after(x).values()
    assert np.mean(np.square(old_value - new)) > 0.5
    assert np.mean(np.square(new_value - new)) < 0.02
    missing = subprocess.run(
        [os.environ["FINE_TUNE"], str(tmp_path / "nothing"), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        env=ENV,
    )
    assert missing.returncode == 1 and "nothing" in missing.stderr
