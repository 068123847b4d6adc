"""The installed plug-in, from inside an environment that has nothing else of this repository."""

import json
import pathlib
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tfp_plugin
from tfp_plugin import check

DEVICE = "/device:TFP:0"


def test_tensorflow_has_loaded_the_file_of_the_wheel() -> None:
    library = tfp_plugin.library()
    assert library is not None
    assert library.parts[-2:] == ("tensorflow-plugins", "libtfp.so")
    assert tfp_plugin.__version__[0].isdigit()
    assert str(library) in pathlib.Path("/proc/self/maps").read_text()
    assert [d.name for d in tf.config.list_physical_devices("TFP")] == ["/physical_device:TFP:0"]


def test_enable_returns_the_devices_and_keras_trains() -> None:
    """Without a word on XLA: compiled, and not compiled yet."""
    x = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    y = (x.sum(1) > 0).astype(np.int64)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2)])
    assert tfp_plugin.enable() == ["TFP:0"]
    assert tfp_plugin.enable() == ["TFP:0"]
    model.predict(x, verbose=0)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(x, y, epochs=4, verbose=0).history["loss"]
    assert history[-1] < history[0]
    assert all(weight.value.device.endswith(DEVICE) for weight in model.weights)


def test_functions_are_compiled_elsewhere_only() -> None:
    """However often `enable` is called."""
    functions = [tf.function(lambda x: x + 1.0, jit_compile=True)]
    assert tfp_plugin.enable() == ["TFP:0"]
    functions.append(tf.function(lambda x: x + 2.0, jit_compile=True))
    one = tf.TensorSpec([])
    for i, function in enumerate(functions):
        assert function(tf.constant(1.0)).numpy() == 2.0 + i
        assert not _is_compiled(function.get_concrete_function(one))
    with tf.device("/device:CPU:0"):
        elsewhere = tf.function(lambda x: x + 3.0, jit_compile=True)
        assert elsewhere(tf.constant(1.0)).numpy() == 4.0
        assert _is_compiled(elsewhere.get_concrete_function(one))
    with tf.device(DEVICE):
        here = tf.function(lambda x: x + 4.0, jit_compile=True)
        assert here(tf.constant(1.0)).numpy() == 5.0


def _is_compiled(function: Any) -> bool:
    attributes = function.function_def.attr
    return "_XlaMustCompile" in attributes and bool(attributes["_XlaMustCompile"].b)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Models: one that fits, one with eigenvalues and one with a pinned node, in two formats."""
    folder = tmp_path_factory.mktemp("models")
    fits = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    fits.save(folder / "fits.keras")
    fits.export(str(folder / "fits"), verbose=False)
    square = keras.Input((4, 4), name="square")
    keras.Model(square, keras.ops.real(keras.ops.eig(square)[0])).save(folder / "eig.keras")

    class Module(tf.Module):  # type: ignore[misc]
        @tf.function(  # type: ignore[untyped-decorator]
            input_signature=[tf.TensorSpec([None, 4], tf.float32)]
        )
        def __call__(self, x: tf.Tensor) -> tf.Tensor:
            with tf.device("/device:CPU:0"):
                pinned = tf.nn.relu(x, name="pinned")
            return tf.cond(
                tf.reduce_sum(x) > 0.0,
                lambda: tf.cast(tf.bitwise.invert(tf.cast(pinned, tf.uint8)), tf.float32),
                lambda: x,
            )

    module = Module()
    tf.saved_model.save(module, str(folder / "branches"), signatures=module.__call__)
    return folder


def answer(path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Returns what `python -m tfp_plugin.check --json` prints."""
    assert check.main(["--json", str(path)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", ["fits.keras", "fits"])
def test_a_model_that_fits_falls_back_nowhere(
    folder: pathlib.Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = answer(folder / name, capsys)["entries"]
    assert entries
    for entry in entries:
        assert entry["placement"]["nodes"] > 10
        assert entry["placement"]["fallbacks"] == []


def test_a_node_without_a_kernel_is_named_with_its_reason(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = answer(folder / "eig.keras", capsys)["entries"]
    reasons = {each["op"]: each["reason"] for each in entry["placement"]["fallbacks"]}
    assert reasons["Eig"] == "TFP has no kernel of this op"


def test_pinned_nodes_and_nodes_of_branches_are_found(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = answer(folder / "branches", capsys)["entries"]
    found = {each["op"]: each for entry in entries for each in entry["placement"]["fallbacks"]}
    assert found["Relu"]["reason"] == "the model pins it to CPU:0"
    assert found["Invert"]["function"]


def test_ops_on_variables_are_said_to_be_replaced(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Table(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rows = tf.Variable(tf.ones([4, 3]))
            self.short = tf.Variable(tf.ones([4], tf.int16))

        @tf.function(  # type: ignore[untyped-decorator]
            input_signature=[tf.TensorSpec([None], tf.int32)]
        )
        def __call__(self, i: tf.Tensor) -> tf.Tensor:
            self.rows.scatter_add(tf.IndexedSlices(tf.ones([1, 3]), i))
            return tf.gather(self.rows, i), tf.gather(self.short, i)

    table = Table()
    tf.saved_model.save(table, str(tmp_path / "table"), signatures=table.__call__)
    (entry,) = answer(tmp_path / "table", capsys)["entries"]
    assert entry["placement"]["fallbacks"] == []
    said = {(each["op"], each["how"]) for each in entry["placement"]["replaced"]}
    assert ("ResourceScatterAdd", _ON_DEVICE) in said
    assert ("ResourceGather", _ON_DEVICE) in said
    assert (
        "ResourceGather",
        "reads and assigns on the device, computes int16 on the CPU",
    ) in said
    assert check.main([str(tmp_path / "table")]) == 0
    text = capsys.readouterr().out
    assert f"  ResourceScatterAdd: {_ON_DEVICE}; " in text
    assert "all on the device" in text


_ON_DEVICE = "runs as ops that read the variable, compute and assign, all on the device"


def test_the_answer_is_what_tensorflow_does() -> None:
    """Static placement against the devices that TensorFlow's own run reports."""

    @tf.function(autograph=False, jit_compile=False)  # type: ignore[untyped-decorator]
    def mixed(x: tf.Tensor) -> tf.Tensor:
        y = tf.nn.relu(x) * 2.0 + tf.cast(tf.strings.length(tf.strings.as_string(x)), tf.float32)
        square = tf.matmul(y, y, transpose_b=True)
        z = tf.linalg.lu(square + tf.constant([[1.0, 0.0], [0.0, 2.0]]))[0]
        return tf.reduce_sum(tf.cast(z, tf.bfloat16))

    function = mixed.get_concrete_function(tf.TensorSpec([2, 4], tf.float32))
    expected = {fallback.op for fallback in check.fallbacks(function)}
    assert {"AsString", "Lu"} <= expected
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 4])
        y = mixed.python_function(x)
    config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    metadata = tf.compat.v1.RunMetadata()
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        session.run(y, {x: np.ones([2, 4])}, options=options, run_metadata=metadata)
    own = {operation.name: operation.type for operation in graph.get_operations()}
    on_cpu = {
        own[node.name]
        for part in metadata.partition_graphs
        for node in part.node
        if node.name in own and "CPU" in node.device
    }
    assert expected <= on_cpu
    # TensorFlow puts small constants and the inputs of nodes on the CPU beside them.
    assert on_cpu - expected <= {"Const", "Placeholder", "Identity"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "does not exist"),
        ("empty", "has no saved_model.pb"),
        ("text.txt", "is not a model that is known here"),
        ("torn.keras", "can't load"),
        ("torn/saved_model.pb", "can't be read"),
    ],
)
def test_what_is_no_model_is_one_line(
    tmp_path: pathlib.Path, name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn").mkdir()
    for file in ("text.txt", "torn.keras", "torn/saved_model.pb"):
        (tmp_path / file).write_text("no model")
    assert check.main([str(tmp_path / name)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tfp_plugin.check: ")
    assert said in line


def test_the_answer_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["--ops"]) == 0
    text = capsys.readouterr().out
    assert f"TensorFlow  {tf.__version__}\n" in text
    assert "devices     TFP:0\n" in text
    assert "\n  Conv2D (" in text
