"""Whole models, every file format, and the files that describe them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from converters.tf import ir
from converters.tf.describe.architecture import description_files, layer_connections, overview_rows
from converters.tf.errors import FileError
from converters.tf.ir.fixed import open_dims
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load, trace_model
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import (
    TOLERANCE,
    check,
    checked,
    difference,
    inputs_for,
    model_of,
    ops,
    randomize,
)
from converters.tf.tests.models import MODELS, mlp, siamese, text_cnn, unet
from converters.tf.tf2rust import graph_of
from tools.codegen.conversion import ConversionError, UnsupportedError, UsageError

V1: Any = tf.compat.v1


def test_inputs_of_tensorflow_1_have_the_names_of_the_signature(tmp_path: Path) -> None:
    """Its placeholders have others, even that of another input."""
    folder = tmp_path / "m"
    with V1.Graph().as_default(), V1.Session() as session:
        a, b, c = (V1.placeholder("float32", [None, 2], name) for name in ("a", "b", "Placeholder"))
        given = {"a": b, "b": a, "inputs": c}
        signature = V1.saved_model.predict_signature_def(given, {"y": a - 2 * b + 4 * c})
        builder = V1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()
    graph = check(load(folder, LoadOptions()), (1, 3))
    arrays = {
        name: np.array([[n, n]], np.float32)
        for name, n in (("a", 1.0), ("b", 10.0), ("inputs", 100.0))
    }
    (found,) = interpret(graph, arrays).values()
    assert found.tolist() == [[408.0, 408.0]]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_model(name: str) -> None:
    model = MODELS[name]()
    randomize(model)
    graph = check(model, (1, 3))
    assert graph.name == name


def test_an_embedding_used_with_a_mask_and_states_is_small() -> None:
    model = MODELS["seq2seq"]()
    randomize(model)
    assert ops(check(model, (3,))).count("Lstm") == 2


@pytest.mark.parametrize("suffix", [".keras", ".h5", ""])
def test_file_formats_agree(tmp_path: Path, suffix: str) -> None:
    model = unet()
    randomize(model)
    path = tmp_path / f"model{suffix}"
    if suffix:
        model.save(path)
    else:
        model.export(path, verbose=False)
    loaded = load(path, LoadOptions())
    graph = check(loaded, (1, 3))
    assert graph.inputs[0].name == "image"
    assert graph.outputs[0].name == ("mask" if suffix else "output_0")


def test_inputs_without_a_name_are_numbered_in_the_model() -> None:
    """Keras numbers them in the process, so that a name would tell what was made before."""
    inputs = [keras.Input((2,), name=name) for name in (None, "input", None, "ids", None)]
    model = keras.Model(inputs, keras.layers.Add()(inputs))
    names = [port.name for port in trace_model(model).trace.inputs]
    assert names == ["input_2", "input", "input_3", "ids", "input_4"]
    alone = keras.Input((2,))
    trace = trace_model(keras.Model(alone, keras.layers.ReLU()(alone))).trace
    assert [port.name for port in trace.inputs] == ["input"]


def test_inputs_without_a_name_are_numbered_in_a_saved_model(tmp_path: Path) -> None:
    """Its signature has them by the alphabet, a tenth one before the ninth."""
    known = keras.Input((20,), name="known")
    inputs = [keras.Input((size,)) for size in range(1, 12)]
    model = keras.Model([*inputs, known], layers.Concatenate()([*inputs, known]))
    model.export(tmp_path / "m", verbose=False)
    graph = check(load(tmp_path / "m", LoadOptions()), (3,))
    assert len({port.name for port in graph.inputs}) == 12
    sizes = {port.name: port.value.shape[1] for port in graph.inputs}
    numbered = [f"input_{i}" if i > 1 else "input" for i in range(1, 12)]
    assert sizes == {name: i + 1 for i, name in enumerate(numbered)} | {"known": 20}
    assert [port.name for port in graph.inputs if port.name != "known"] == numbered


def frozen_graph(model: Any) -> Any:
    """Returns the graph of a model of one or more inputs, its weights constants."""
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2,
    )

    specs = [tf.TensorSpec(i.shape, i.dtype, name=i.name) for i in model.inputs]
    function = tf.function(lambda *x: model(x if len(x) > 1 else x[0], training=False))
    concrete = function.get_concrete_function(*specs)
    return convert_variables_to_constants_v2(concrete).graph.as_graph_def()


def test_frozen_graph(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(frozen_graph(text_cnn()).SerializeToString())
    check(load(path, LoadOptions()), (1, 3))


def test_all_results_of_the_last_op_of_a_frozen_graph(tmp_path: Path) -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, (None, 4), name="x")
        tf.math.top_k(x, 2, name="best")
        image = tf.reshape(x, (-1, 2, 2, 1))
        one = tf.ones(1)
        tf.compat.v1.nn.fused_batch_norm(image, one, one, one, one, is_training=False, name="norm")
    (tmp_path / "m.pb").write_bytes(graph.as_graph_def().SerializeToString())
    found = check(load(tmp_path / "m.pb", LoadOptions()), (1, 3))
    assert [port.name for port in found.outputs] == ["best", "best:1", "norm"]


class _Module(tf.Module):  # type: ignore[misc]
    """A model without Keras, with a branch and a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(np.eye(4, 3, dtype=np.float32), name="w")

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[
            tf.TensorSpec((None, 4), tf.float32, name="a"),
            tf.TensorSpec((), tf.bool, name="b"),
        ]
    )
    def run(self, a: Any, b: Any) -> dict[str, Any]:
        y = tf.nn.relu(a @ self.w)
        total = tf.zeros_like(y)
        for i in tf.range(3):
            total += y * tf.cast(i + 1, tf.float32)
        chosen = tf.cond(b, lambda: total, lambda: -y)
        return {"sum": total, "chosen": chosen, "width": tf.nn.softmax(a)}


def test_plain_module(tmp_path: Path) -> None:
    module = _Module()
    tf.saved_model.save(module, tmp_path / "m", signatures={"run": module.run})
    loaded = load(tmp_path / "m", LoadOptions())
    graph = check(loaded, (1, 3), whole=2)
    assert [p.name for p in graph.outputs] == ["chosen", "sum", "width"]
    with pytest.raises(FileError, match="no signature 'walk'; available: run"):
        load(tmp_path / "m", LoadOptions(signature="walk"))


def test_a_signature_of_what_has_none_is_refused(tmp_path: Path) -> None:
    mlp().save(tmp_path / "m.keras")
    with pytest.raises(
        UsageError,
        match=r"--signature: only a SavedModel and a .tflite file have signatures; .*keras",
    ):
        load(tmp_path / "m.keras", LoadOptions(signature="run"))


class _Assigns(tf.Module):  # type: ignore[misc]
    """Variables that change while the model computes."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(np.full((4, 4), 0.5, np.float32), name="w")
        self.n = tf.Variable(np.zeros(4, np.float32), name="n")

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[tf.TensorSpec((None, 4), tf.float32, name="a")]
    )
    def run(self, a: Any) -> dict[str, Any]:
        before = a @ self.w
        self.w.assign(tf.linalg.band_part(self.w, -1, 0))
        between = a @ self.w
        self.w.assign_add(tf.eye(4))
        self.w.assign_sub(tf.ones((4, 4)))
        self.n.assign_add([1.0, 2.0, 3.0, 4.0])
        return {"before": before, "between": between, "after": a @ self.w + self.n}

    @tf.function  # type: ignore[untyped-decorator]
    def grow(self) -> None:
        self.n.assign_add([1.0, 2.0, 3.0, 4.0])

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[tf.TensorSpec((None, 4), tf.float32, name="a")]
    )
    def inside(self, a: Any) -> dict[str, Any]:
        self.grow()
        return {"a": a + self.n}


def test_a_variable_is_read_as_it_was_assigned(tmp_path: Path) -> None:
    module = _Assigns()
    signatures = {"run": module.run, "inside": module.inside}
    tf.saved_model.save(module, tmp_path / "m", signatures=signatures)
    # Every call of TensorFlow changes the file's variables once more: one is compared.
    check(load(tmp_path / "m", LoadOptions(signature="run")), (3,))
    with pytest.raises(UnsupportedError, match="it assigns to a variable that is read after it"):
        convert(load(tmp_path / "m", LoadOptions(signature="inside")).trace)


class _Masked(layers.Layer):  # type: ignore[misc]
    """A convolution that sees the pixels before its own, as its author wrote it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = layers.Conv2D(2, 3, padding="same")

    def build(self, shape: Any) -> None:
        self.conv.build(shape)
        self.mask = np.ones(self.conv.kernel.shape, np.float32)
        self.mask[1, 1:] = self.mask[2:] = 0

    def call(self, x: Any) -> Any:
        self.conv.kernel.assign(self.conv.kernel * self.mask)
        return self.conv(x)


def test_a_layer_may_mask_its_weights_when_it_is_called() -> None:
    model = model_of([(5, 6, 1)], _Masked())
    (node,) = check(model, (1, 3)).nodes
    assert isinstance(node.op, ir.Conv)


class _Loops(tf.Module):  # type: ignore[misc]
    """Loops that the inputs end."""

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[
            tf.TensorSpec((None, 3), tf.float32, name="a"),
            tf.TensorSpec((4,), tf.float32, name="b"),
            tf.TensorSpec((), tf.int32, name="n"),
        ]
    )
    def run(self, a: Any, b: Any, n: Any) -> dict[str, Any]:
        for i in tf.range(n):
            a = tf.tanh(a * tf.cast(i + 2, tf.float32))
        turns = 0
        while tf.reduce_max(tf.abs(b)) > 0.1 and turns < 50:
            b *= 0.5
            turns += 1
        return {"a": a, "b": b, "turns": turns}

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[tf.TensorSpec((None, 3), tf.float32, name="a")]
    )
    def mixed(self, a: Any) -> dict[str, Any]:
        while tf.reduce_max(tf.abs(a)) > 0.1:
            a *= 0.5
        return {"a": a}


def test_the_inputs_may_end_a_loop(tmp_path: Path) -> None:
    module = _Loops()
    signatures = {"run": module.run, "mixed": module.mixed}
    tf.saved_model.save(module, tmp_path / "m", signatures=signatures)
    loaded = load(tmp_path / "m", LoadOptions(signature="run"))
    graph = check(loaded, (1, 3), whole=4)
    assert ops(graph).count("Loop") == 2
    for size, turns in ((0.0, 0), (0.05, 0), (0.11, 1), (1e9, 34)):
        arrays = inputs_for(graph, 1)
        arrays |= {"b": np.full(4, -size, np.float32), "n": np.asarray(-1, np.int32)}
        check(loaded, given=arrays)
        assert interpret(graph, arrays)["turns"] == turns
    with pytest.raises(UnsupportedError, match="the batch is reduced"):
        convert(load(tmp_path / "m", LoadOptions(signature="mixed")).trace)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("reduced", [tf.reduce_max, tf.reduce_min, tf.reduce_sum])
def test_examples_that_decide_together_are_refused(dtype: str, reduced: Any) -> None:
    def body(x: Any) -> Any:
        return tf.cond(reduced(x) > 3, lambda: x * 2, lambda: x)

    with pytest.raises(UnsupportedError) as caught:
        convert(trace_model(model_of([(4,)], layers.Lambda(body, name="chosen"), [dtype])).trace)
    (problem,) = caught.value.problems
    assert "layer chosen, node " in problem.where
    assert problem.what == "the batch is reduced"
    assert "make what is chosen or ended by it an input" in problem.advice
    assert "fix the batch by --batch 1" in problem.advice


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_an_output_of_all_examples_is_refused(dtype: str) -> None:
    model = model_of([(4,)], lambda x: [x * 2, keras.ops.max(x)], [dtype])
    with pytest.raises(UnsupportedError, match=r"the batch is reduced \(examples of a call"):
        convert(trace_model(model).trace)


class Subclassed(keras.Model):  # type: ignore[misc]
    """A model that is code."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [layers.Dense(5, activation="tanh") for _ in range(2)]
        self.rnn = layers.Bidirectional(layers.GRU(3))

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x) + x
        return self.rnn(x)


def test_subclassed_model_as_saved_model(tmp_path: Path) -> None:
    model = Subclassed()
    model(np.zeros((2, 6, 5), "float32"))
    randomize(model)
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = tf.TensorSpec((None, 6, 5), tf.float32, name="x")
    archive.add_endpoint("serve", lambda x: model(x, training=False), input_signature=[spec])
    archive.write_out(tmp_path / "m", verbose=False)
    graph = check(load(tmp_path / "m", LoadOptions()), (1, 3))
    assert ops(graph).count("Gru") == 2


@pytest.mark.parametrize("suffix", [".keras", ""])
def test_lookup_tables_of_files(tmp_path: Path, suffix: str) -> None:
    def body(x: Any) -> Any:
        words = layers.IntegerLookup(vocabulary=[4, 2, 3, 10**12])(x)
        return [words, layers.Embedding(5, 3)(words)]

    model = model_of([(5,)], body, ["int64"])
    path = tmp_path / f"m{suffix}"
    if suffix:
        model.save(path)
    else:
        model.export(path, verbose=False)
    asked = np.array([[4, 2, 3, 10**12, 7], [-(2**63), 2**63 - 1, 0, 1, 5]], np.int64)
    loaded = load(path, LoadOptions())
    check(loaded, given={loaded.trace.inputs[0].name: asked})


def test_open_dimensions_are_fixed(tmp_path: Path) -> None:
    model = model_of([(None, 4)], layers.GRU(3))
    check(trace_model(model, FixedShapes({"": (5, 4)})), (1, 3))
    with pytest.raises(UsageError, match="the model's input has the shape"):
        trace_model(model, FixedShapes({"": (5, 3)}))
    image = model_of([(None, None, 3)], layers.GlobalAveragePooling2D())
    given = FixedShapes({"": (224, 160, 3)})
    assert check(trace_model(image, given), (1,)).inputs[0].value.shape[1:] == (224, 160, 3)


def test_examples_that_are_compared_with_each_other() -> None:
    """As models of images and texts do that were trained to tell their pairs."""
    model = model_of([(3,), (3,)], lambda x, y: keras.ops.matmul(x, keras.ops.transpose(y)))
    with pytest.raises(UnsupportedError) as caught:
        graph_of(trace_model(model))
    assert all("compare those in the program" in p.advice for p in caught.value.problems)


def _open_files(folder: Path) -> list[tuple[str, list[str]]]:
    """Writes a model of two inputs with open dimensions; returns its files and their inputs."""
    a, b = keras.Input((None, 4), name="a"), keras.Input((None, 4), name="b")
    model = keras.Model([a, b], layers.GlobalMaxPooling1D()(layers.Add()([a, b])))
    model.save(folder / "m.keras")
    model.export(folder / "saved", verbose=False)
    frozen = frozen_graph(model)
    (folder / "m.pb").write_bytes(frozen.SerializeToString())
    names = [node.name for node in frozen.node if node.op == "Placeholder"]
    return [("m.keras", ["a", "b"]), ("saved", ["a", "b"]), ("m.pb", names)]


def test_open_dimensions_stay_open_in_every_format(tmp_path: Path) -> None:
    for file, _ in _open_files(tmp_path):
        assert len(open_dims(graph_of(load(tmp_path / file, LoadOptions())))) == 1


def test_all_open_dimensions_have_names() -> None:
    inputs: list[tuple[str, tuple[int | None, ...]]] = [(n, (None, None, 4)) for n in "ab"]
    with pytest.raises(UsageError, match=r"--input_shape a=5,3.*the shape \[\?, \?, 4\]"):
        FixedShapes({"a": (5, 3)}).named(inputs)
    named = [(None, f"{name}_steps", 4) for name in "ab"]
    assert FixedShapes().named(inputs) == named
    foreign = [("a\n*/`", (None, None)), ("A_", (None, None)), ("", (None, None))]
    assert [dim for _, dim in FixedShapes().named(foreign)] == ["a_steps", "a_steps_2", "steps"]
    partly = FixedShapes({"a": (5, 4), "b": (None, 4)})
    assert partly.named(inputs) == [(None, 5, 4), (None, "steps", 4)]


def test_a_shape_that_the_model_can_not_have() -> None:
    """As more tokens than there are positions."""

    class Positions(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x + tf.slice(tf.ones([6, 4]), [0, 0], tf.shape(x)[1:])

    model = model_of([(None, 4)], lambda x: Positions()(x))
    check(trace_model(model, FixedShapes({"": (5, 4)})), (1,))
    with pytest.raises(UnsupportedError, match="places 0 to 7 of an axis of 6"):
        check(trace_model(model, FixedShapes({"": (7, 4)})), (1,))


def test_shapes_of_no_input(tmp_path: Path) -> None:
    for file, known in _open_files(tmp_path):

        def shapes(given: dict[str, tuple[int | None, ...]], file: str = file) -> LoadOptions:
            return LoadOptions(FixedShapes(given))

        whole: dict[str, tuple[int | None, ...]] = dict.fromkeys(known, (5, 4))
        with pytest.raises(UsageError) as unknown:
            load(tmp_path / file, shapes({**whole, "c": (5, 4)}))
        assert "no input has this name" in str(unknown.value)
        assert f"the model's inputs are {', '.join(known)}" in str(unknown.value)
        with pytest.raises(UsageError, match=r"--input_shape 5,4: which input is meant\?"):
            load(tmp_path / file, shapes({"": (5, 4)}))
        load(tmp_path / file, shapes(whole))


class Raising(keras.layers.Layer):  # type: ignore[misc]
    """A layer whose code fails in its own way after it was built."""

    error: Exception | None = None

    def call(self, x: Any) -> Any:
        if self.error is not None:
            raise self.error
        return x


@pytest.mark.parametrize("error", [KeyError("k"), ZeroDivisionError("z"), AssertionError()])
def test_a_model_whose_own_code_fails_is_unsupported(error: Exception) -> None:
    layer = Raising()
    model = model_of([(4,)], layer)
    layer.error = error
    with pytest.raises(UnsupportedError, match="Keras can't trace it: ") as caught:
        trace_model(model)
    assert "Exception encountered when calling" not in str(caught.value)


def test_a_reshape_that_mixes_examples_is_refused() -> None:
    def straight(x: Any) -> Any:
        count = tf.shape(x)[0]
        ones = tf.reshape(tf.ones([count, 4]), [4, count])
        turned = tf.reshape(tf.transpose(x), [2, 2, count])
        return tf.transpose(turned, [2, 0, 1]) + tf.transpose(ones)[:, :2, None]

    checked([(4,)], straight)
    for body in (
        lambda x: tf.transpose(tf.reshape(x, [4, -1])),
        lambda x: tf.transpose(tf.reshape(tf.reshape(x, [-1]), [4, -1])),
        lambda x: tf.reshape(tf.transpose(x), [-1, 4]),
    ):
        with pytest.raises(
            UnsupportedError, match=r"mixes the batch elements \(it moves the batch"
        ):
            checked([(4,)], body)


def test_everything_unsupported_is_reported_at_once() -> None:
    def body(x: Any) -> list[Any]:
        first = layers.Lambda(lambda t: tf.random.categorical(t, 2), name="first")(x)
        second = layers.Lambda(lambda t: tf.math.special.expint(t), name="second")(x)
        third = layers.Lambda(lambda t: t[0], name="third")(x)
        return [first, second, layers.Dense(2)(second), third]

    with pytest.raises(UnsupportedError) as caught:
        check(model_of([(4,)], body))
    text = str(caught.value)
    assert len(caught.value.problems) == 3
    for name in ("layer first", "layer second", "layer third"):
        assert name in text
    assert "there is no kernel for the op Expint" in text
    assert "random numbers (make them an input of the model" in text
    assert "batch elements are taken apart" in text


def test_code_in_a_file_does_not_run(tmp_path: Path) -> None:
    model = model_of([(4,)], layers.Lambda(lambda x: x * 2))
    model.save(tmp_path / "m.keras")
    with pytest.raises(FileError, match=r"was not run.*--allow_custom_code"):
        load(tmp_path / "m.keras", LoadOptions())
    check(load(tmp_path / "m.keras", LoadOptions(allow_custom_code=True)), (1,))


@pytest.mark.parametrize("name", ["net.weights.h5", "net.h5"])
def test_weights_alone_are_no_model(name: str, tmp_path: Path) -> None:
    saved = mlp()
    saved.save_weights(tmp_path / "net.weights.h5")
    (tmp_path / "net.weights.h5").rename(tmp_path / name)
    with pytest.raises(FileError, match=r"weights alone, and no model \(build the model"):
        load(tmp_path / name, LoadOptions())


def test_code_that_keras_can_not_read_although_it_may(tmp_path: Path) -> None:
    model = model_of([(4,)], layers.Dense(2, activation=lambda x: x * 2))
    model.save(tmp_path / "m.keras")
    with pytest.raises(FileError, match="Could not interpret activation") as caught:
        load(tmp_path / "m.keras", LoadOptions(allow_custom_code=True))
    assert "--allow_custom_code" not in str(caught.value)


@pytest.mark.parametrize("kind", ["cut", "flipped", "empty"])
@pytest.mark.parametrize("suffix", [".keras", ".h5", ""])
def test_damaged_files_give_one_error(tmp_path: Path, suffix: str, kind: str) -> None:
    path = tmp_path / f"model{suffix}"
    if suffix:
        mlp().save(path)
    else:
        mlp().export(path, verbose=False)
    victim = path if suffix else path / "saved_model.pb"
    data = bytearray(victim.read_bytes())
    if kind == "cut":
        data = data[: len(data) // 2]
    elif kind == "flipped":
        for at in range(0, len(data), 37):
            data[at] ^= 0x5A
    else:
        data = bytearray()
    victim.write_bytes(bytes(data))
    with pytest.raises(ConversionError) as caught:
        check(load(path, LoadOptions()), (1,))
    assert isinstance(caught.value, FileError)
    assert len(caught.value.problems) == 1


def test_a_missing_weight_is_one_error(tmp_path: Path) -> None:
    import h5py

    path = tmp_path / "m.h5"
    mlp().save(path)
    with h5py.File(path, "r+") as file:
        for name in list(file["model_weights"]):
            if name.startswith("dense"):
                del file["model_weights"][name]
    with pytest.raises(FileError):
        load(path, LoadOptions())


def test_descriptions_of_the_source_model() -> None:
    model = siamese()
    files = description_files(trace_model(model).trace)
    graph = json.loads(files["computation_graph.json"])
    assert graph["tower"]["inbounds"] == ["left", "right"]
    assert graph["left"]["outbounds"] == ["tower"]
    described = json.loads(files["model_architecture.json"])
    assert described["layers"]["tower"]["class_name"] == "Sequential"
    again = description_files(trace_model(model).trace)
    assert again == files


def test_the_picture_has_every_layer_with_shape_and_weights() -> None:
    model = siamese()
    trace = trace_model(model).trace
    rows = {row.name: row for row in overview_rows(trace, layer_connections(trace))}
    assert {layer.name for layer in model.layers} <= set(rows)
    assert rows["left"].kind == rows["right"].kind == "input"
    tower = model.get_layer("tower")
    assert rows["tower"].kind == "Sequential"
    assert rows["tower"].parameters == tower.count_params()
    dims = ", ".join(str(d) for d in tower.output.shape[1:])
    assert rows["tower"].shape == f"[batch, {dims}]"
    (output,) = [row for row in rows.values() if row.kind == "output"]
    assert output.before
    content = description_files(trace)["model_overview.png"]
    assert content.startswith(b"\x89PNG")


def test_h5_of_keras_2(tmp_path: Path) -> None:
    import h5py

    def body(x: Any) -> Any:
        return layers.MultiHeadAttention(2, 3)(*[layers.LSTM(4, return_sequences=True)(x)] * 2)

    path = tmp_path / "m.h5"
    model_of([(5, 4)], body).save(path)
    with h5py.File(path, "r+") as file:
        config = json.loads(file.attrs["model_config"])
        for layer in config["config"]["layers"]:
            if layer["class_name"] == "LSTM":
                layer["config"]["time_major"] = False
            if layer["class_name"] == "MultiHeadAttention":
                layer["config"] |= {"query_shape": [None, 5, 4], "softmax_robust_masking": False}
        file.attrs["model_config"] = json.dumps(config)
    check(load(path, LoadOptions()), (1, 3))


@pytest.mark.parametrize("sequential", [True, False])
def test_layers_with_several_axes_in_h5(tmp_path: Path, sequential: bool) -> None:
    """Keras forgets the axes of such a layer in an .h5 file."""
    several = [
        layers.LayerNormalization(axis=[1, 2]),
        layers.UnitNormalization(axis=[1, 2]),
        layers.Softmax(axis=[1, 2]),
        layers.TimeDistributed(layers.Softmax(axis=[1, 2])),
    ]
    for layer in several:
        wide = isinstance(layer, layers.TimeDistributed)
        shape = (3, 5, 4) if wide else (5, 4)
        model = model_of([shape], layer)
        if sequential:
            model = keras.Sequential([keras.Input(shape), layer])
        path = tmp_path / f"{layer.name}.h5"
        model.save(path)
        graph = check(load(path, LoadOptions()), (3,))
        arrays = inputs_for(graph, 3)
        (found,), (given,) = interpret(graph, arrays).values(), arrays.values()
        assert difference(found, np.asarray(model(given))) <= TOLERANCE


def test_thresholded_relu_of_keras_2(tmp_path: Path) -> None:
    from converters.tf.load.keras.legacy_layers import ThresholdedReLU

    path = tmp_path / "m.h5"
    model_of([(5,)], ThresholdedReLU(theta=0.4)).save(path)
    (node,) = check(load(path, LoadOptions()), (3,)).nodes
    assert "threshold" in repr(node.op)
