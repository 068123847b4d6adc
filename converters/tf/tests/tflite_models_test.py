from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import flatbuffers
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf import ir
from converters.tf.emit.options import Options
from converters.tf.errors import FileError
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import TOLERANCE, check, difference, inputs_for, ops, randomize
from converters.tf.tests.models import MODELS
from converters.tf.tests.tflite_files import (
    Operator,
    Signature,
    Subgraph,
    Tensor,
    constant,
    file_of,
    interpreted,
    kinds_of,
    single,
)
from converters.tf.tf2rust import Request, run


def _converted(model: Any, **settings: Any) -> bytes:
    """Returns the file that TFLite's converter writes."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    for name, value in settings.items():
        holder, _, last = name.rpartition("__")
        setattr(getattr(converter, holder) if holder else converter, last, value)
    return bytes(converter.convert())


def _agrees(path: Path, content: bytes, batches: tuple[int, ...] = (1, 3)) -> ir.Graph:
    """Converts a file and compares all outputs with TFLite's own."""
    path.write_bytes(content)
    graph = check(load(path, LoadOptions()), batches)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner = tf.lite.Interpreter(model_content=content).get_signature_runner()
    for batch in batches:
        arrays = inputs_for(graph, batch)
        expected = runner(**arrays)
        found = interpret(graph, arrays)
        assert set(found) == set(expected)
        for name, array in found.items():
            assert difference(array, expected[name]) <= TOLERANCE, name
    return graph


BUILTIN = {
    "mlp": {"FULLY_CONNECTED", "SOFTMAX"},
    "text_cnn": {"GATHER", "CONV_2D", "REDUCE_MAX", "CONCATENATION"},
    "mobile_block": {"CONV_2D", "DEPTHWISE_CONV_2D", "HARD_SWISH", "MEAN", "MUL", "RESHAPE"},
    "unet": {"MAX_POOL_2D", "TRANSPOSE_CONV", "RESIZE_BILINEAR", "LOGISTIC"},
    "siamese": {"SUB", "ABS"},
    "causal_stack": {"SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "TANH"},
    "transformer": {"BATCH_MATMUL", "SOFTMAX", "RSQRT", "GELU"},
    "autoencoder": {"TRANSPOSE_CONV"},
    "nested": {"ELU"},
}


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_a_model(tmp_path: Path, name: str) -> None:
    model = MODELS[name]()
    randomize(model)
    content = _converted(model)
    assert kinds_of(content) >= BUILTIN[name]
    graph = _agrees(tmp_path / f"{name}.tflite", content)
    assert graph.name == name
    if name == "transformer":
        assert ops(graph).count("Attention") == 2
    if name == "causal_stack":  # Dilated convolutions are what they were.
        assert "Transpose" not in ops(graph)


@pytest.mark.parametrize("name", ["seq2seq", "video"])
def test_operators_of_tensorflow(tmp_path: Path, name: str) -> None:
    model = MODELS[name]()
    randomize(model)
    sets = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    content = _converted(
        model, target_spec__supported_ops=sets, _experimental_lower_tensor_list_ops=False
    )
    assert kinds_of(content) >= {"WHILE", "FlexTensorListReserve"}
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    graph = check(load(path, LoadOptions()), (1, 3))
    assert "Lstm" in ops(graph)
    arrays = inputs_for(graph, 3)
    (found,) = interpret(graph, arrays).values()
    expected = np.asarray(model([arrays[i.name] for i in model.inputs]))
    assert difference(found, expected) <= TOLERANCE


@pytest.mark.parametrize(
    ("layer", "op"),
    [
        (layers.LSTM(5), "Lstm"),
        (layers.LSTM(5, return_sequences=True), "Lstm"),
        (layers.GRU(5, return_sequences=True), "Gru"),
        (layers.GRU(5, reset_after=False), "Gru"),
        (layers.SimpleRNN(5), "SimpleRnn"),
        (layers.Bidirectional(layers.LSTM(5, return_sequences=True)), "Lstm"),
    ],
)
def test_a_recurrent_layer_of_one_example_is_one_op(tmp_path: Path, layer: Any, op: str) -> None:
    x = keras.Input((6, 3), batch_size=1)
    model = keras.Model(x, layer(x))
    randomize(model)
    content = _converted(model)
    assert "WHILE" in kinds_of(content)
    graph = _agrees(tmp_path / "m.tflite", content, (1,))
    twice = isinstance(layer, layers.Bidirectional)
    assert ops(graph).count(op) == 1 + twice
    assert not {"Loop", "Dense"} & set(ops(graph))
    assert graph.inputs[0].value.shape == (1, 6, 3)


def _image_model() -> Any:
    return keras.Sequential(
        [
            keras.Input((12, 12, 3), name="image"),
            layers.Conv2D(16, 3, activation="relu", name="stem"),
            layers.DepthwiseConv2D(3, name="depth"),
            layers.Flatten(),
            layers.Dense(32, activation="relu", name="hidden"),
            layers.Dense(4, activation="softmax", name="scores"),
        ],
        name="images",
    )


def test_weights_in_half_precision(tmp_path: Path) -> None:
    model = _image_model()
    randomize(model)
    content = _converted(
        model,
        optimizations=[tf.lite.Optimize.DEFAULT],
        target_spec__supported_types=[tf.float16],
    )
    assert "DEQUANTIZE" in kinds_of(content)
    _agrees(tmp_path / "m.tflite", content)


def test_weights_in_int8_with_floats_between(tmp_path: Path) -> None:
    model = _image_model()
    randomize(model)
    path = tmp_path / "m.tflite"
    path.write_bytes(_converted(model, optimizations=[tf.lite.Optimize.DEFAULT]))
    loaded = load(path, LoadOptions())
    graph = check(loaded, (1, 3))
    arrays = inputs_for(graph, 3)
    (found,) = interpret(graph, arrays).values()
    # Half a step of 127 in the largest layer's weights; TFLite rounds its activations as well.
    assert 1e-5 < difference(found, np.asarray(model(arrays["image"]))) <= 1e-2
    names = {v.name for v in loaded.trace.variables.values()}
    assert {"stem_1/kernel", "depth_1/kernel", "hidden_1/kernel", "hidden_1/bias"} <= names


@pytest.mark.parametrize("axis", [0, None])
def test_numbers_that_stand_for_others(tmp_path: Path, axis: int | None) -> None:
    whole = np.arange(-12, 12, dtype=np.int8).reshape(4, 6)
    scale = (0.5, 0.25, 2.0, 1.0) if axis == 0 else (0.5,)
    zero = (0, 1, -3, 2) if axis == 0 else (7,)
    weights = constant(whole, scale=scale, zero=zero, axis=axis or 0)
    path = tmp_path / "m.tflite"
    options = schema.FullyConnectedOptionsT()
    path.write_bytes(
        single("FULLY_CONNECTED", [Tensor((1, 6)), weights, None], [Tensor((1, 4))], options)
    )
    graph = check(load(path, LoadOptions()), (1, 3))
    arrays = inputs_for(graph, 3)
    (found,) = interpret(graph, arrays).values()
    real = np.reshape(scale, (-1, 1)) * (whole.astype(float) - np.reshape(zero, (-1, 1)))
    (x,) = arrays.values()
    assert difference(found, (x @ real.T).astype(np.float32)) <= TOLERANCE


def test_numbers_of_four_bits(tmp_path: Path) -> None:
    whole = np.arange(-8, 7, dtype=np.int8).reshape(3, 5)
    flat = np.append(whole.reshape(-1), 0).astype(np.uint8) & 15
    packed = constant((flat[::2] | flat[1::2] << 4).astype(np.uint8), dtype="int4", scale=(0.5,))
    weights = Tensor((3, 5), "int4", packed.data, False, (0.5,))
    path = tmp_path / "m.tflite"
    options = schema.FullyConnectedOptionsT()
    path.write_bytes(
        single("FULLY_CONNECTED", [Tensor((1, 5)), weights, None], [Tensor((1, 3))], options)
    )
    graph = check(load(path, LoadOptions()), (3,))
    arrays = inputs_for(graph, 3)
    (found,), (x,) = interpret(graph, arrays).values(), arrays.values()
    assert difference(found, (x @ (whole * 0.5).T).astype(np.float32)) <= TOLERANCE


@pytest.mark.parametrize("whole", [False, True])
def test_activations_in_int8_may_be_floats(tmp_path: Path, whole: bool) -> None:
    model = _image_model()
    randomize(model)
    images = np.random.default_rng(3).normal(size=(4, 1, 12, 12, 3)).astype(np.float32)
    settings: dict[str, Any] = {}
    if whole:
        settings["inference_input_type"] = settings["inference_output_type"] = tf.int8
    content = _converted(
        model,
        optimizations=[tf.lite.Optimize.DEFAULT],
        representative_dataset=lambda: ([image] for image in images),
        target_spec__supported_ops=[tf.lite.OpsSet.TFLITE_BUILTINS_INT8],
        **settings,
    )
    assert ("QUANTIZE" in kinds_of(content)) is not whole
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    graph = check(load(path, LoadOptions(integer=False)), (1, 3))
    assert {p.value.dtype for p in (*graph.inputs, *graph.outputs)} == {ir.DType.F32}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=content)
    (port,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    for image in images:
        (found,) = interpret(graph, {graph.inputs[0].name: image}).values()
        given = image
        if whole:
            scale, zero = port["quantization"]
            given = np.clip(np.round(image / scale) + zero, -128, 127).astype(np.int8)
        interpreter.allocate_tensors()
        interpreter.set_tensor(port["index"], given)
        interpreter.invoke()
        expected = interpreter.get_tensor(result["index"]).astype(np.float32)
        if whole:
            scale, zero = result["quantization"]
            expected = (expected - zero) * scale
        # TFLite rounds what every operator gives; a step of the last one is 1 / 256.
        assert np.abs(found - expected).max() <= 3 / 256


def test_what_would_be_whole_numbers_ends_where_they_do(tmp_path: Path) -> None:
    whole = np.arange(-12, 12, dtype=np.int8).reshape(4, 6)
    options = schema.FullyConnectedOptionsT()
    options.fusedActivationFunction = 1
    tensors = [
        Tensor((1, 6)),
        Tensor((1, 6), "int8", scale=(0.01,), zero=(10,)),
        constant(whole, scale=(0.125,), zero=(0,)),
        constant(np.array([8, -8, 0, 4], np.int32), scale=(0.00125,), zero=(0,)),
        Tensor((1, 4), "int8", scale=(0.004,), zero=(-128,)),
        Tensor((1, 4)),
    ]
    operators = [
        Operator("QUANTIZE", [0], [1]),
        Operator("FULLY_CONNECTED", [1, 2, 3], [4], options),
        Operator("DEQUANTIZE", [4], [5]),
    ]
    path = tmp_path / "m.tflite"
    content = file_of([Subgraph(tensors, operators, [0], [5])])
    path.write_bytes(content)
    graph = check(load(path, LoadOptions(integer=False)), (1, 3))
    arrays = inputs_for(graph, 3)
    (found,), (x,) = interpret(graph, arrays).values(), arrays.values()
    inside = np.clip(x, -1.38, 1.17)
    assert (inside != x).any()
    sums = inside @ (whole * 0.125).T + np.array([0.01, -0.01, 0, 0.005])
    expected = np.clip(sums, 0, 1.02).astype(np.float32)
    assert {0.0, np.float32(1.02)} <= set(np.round(found.reshape(-1), 6))
    assert difference(found, expected) <= TOLERANCE
    (known,) = interpreted(content, [x])
    # Half a step of the inputs times the weights, and one of the results.
    allowed = 0.005 * np.abs(whole * 0.125).sum(1) + 0.004
    assert (np.abs(found - known) <= allowed).all()


def test_loops_and_branches(tmp_path: Path) -> None:
    def body(a: Any, n: Any) -> dict[str, Any]:
        for i in tf.range(n):
            a = tf.tanh(a * tf.cast(i + 2, tf.float32))
        return {"a": a, "b": tf.cond(n > 2, lambda: a * 2, lambda: tf.exp(a))}

    specs = [tf.TensorSpec((1, 3), tf.float32, "a"), tf.TensorSpec((), tf.int32, "n")]
    function = tf.function(body).get_concrete_function(*specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    content = bytes(converter.convert())
    assert kinds_of(content) >= {"WHILE", "IF"}
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    graph = check(load(path, LoadOptions()), (1,))
    assert "Loop" in ops(graph)
    arrays = inputs_for(graph, 1)
    for turns in (-1, 1, 4):
        given = {p.name: arrays[p.name] for p in graph.inputs} | {"n": np.asarray(turns, np.int32)}
        expected = interpreted(content, list(given.values()))
        for found, wanted in zip(interpret(graph, given).values(), expected, strict=True):
            assert difference(found, wanted) <= TOLERANCE


def _dense(weights: float) -> tuple[list[Tensor], Operator]:
    options = schema.FullyConnectedOptionsT()
    tensors = [Tensor((1, 2)), constant(np.full((3, 2), weights)), Tensor((1, 3))]
    return tensors, Operator("FULLY_CONNECTED", [0, 1, -1], [2], options)


def test_signatures(tmp_path: Path) -> None:
    graphs = []
    for weights in (1.0, 2.0):
        tensors, operator = _dense(weights)
        graphs.append(Subgraph(tensors, [operator], [0], [2]))
    signatures = [Signature(n, {"x": 0}, {f"y_{n}": 2}, i) for i, n in enumerate(("one", "two"))]
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of(graphs, signatures))
    for name, factor in (("one", 1.0), ("two", 2.0)):
        graph = convert(load(path, LoadOptions(signature=name)).trace)
        (found,) = interpret(graph, {"x": np.ones((1, 2), np.float32)}).values()
        assert found.tolist() == [[2 * factor] * 3]
        assert [p.name for p in graph.outputs] == [f"y_{name}"]
    with pytest.raises(FileError, match="no default signature; available: one, two"):
        load(path, LoadOptions())
    with pytest.raises(FileError, match="no signature 'three'; available: one, two"):
        load(path, LoadOptions(signature="three"))
    path.write_bytes(file_of(graphs))
    with pytest.raises(FileError, match="no signature 'one'; available: none"):
        load(path, LoadOptions(signature="one"))


def test_names_without_signatures(tmp_path: Path) -> None:
    names = ("serving_default_image:0", "net/head/MatMul;net/head/BiasAdd", "Identity")
    options = schema.FullyConnectedOptionsT()
    tensors = [
        Tensor((1, 2), name=names[0]),
        constant(np.ones((3, 2)), name="arith.constant"),
        Tensor((1, 3), name=names[1]),
        Tensor((1, 3), name=names[2]),
    ]
    operators = [
        Operator("FULLY_CONNECTED", [0, 1, -1], [2], options),
        Operator("SOFTMAX", [2], [3], schema.SoftmaxOptionsT()),
    ]
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of([Subgraph(tensors, operators, [0], [3])]))
    loaded = load(path, LoadOptions())
    assert [p.name for p in loaded.trace.inputs] == ["image"]
    assert loaded.trace.outputs == ("output_0",)
    assert [v.name for v in loaded.trace.variables.values()] == ["head/kernel"]


def test_a_weight_that_two_operators_read_is_one(tmp_path: Path) -> None:
    tensors, operator = _dense(1.0)
    again = Operator("FULLY_CONNECTED", [3, 1, -1], [4], operator.options)
    tensors += [Tensor((1, 2)), Tensor((1, 3))]
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of([Subgraph(tensors, [operator, again], [0, 3], [2, 4])]))
    assert len(load(path, LoadOptions()).trace.variables) == 1


def test_dimensions_that_stay_open(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    tensors = [Tensor((1, 7, 3)), Tensor((1, 7, 3))]
    content = file_of([Subgraph(tensors, [Operator("RELU", [0], [1])], [0], [1])])
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    for tensor in model.subgraphs[0].tensors:
        tensor.shapeSignature = [-1, -1, 3]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    graph = convert(load(path, LoadOptions()).trace)
    assert ir.shape_text(graph.outputs[0].value.shape) == "[batch, steps, 3]"
    check(load(path, LoadOptions(FixedShapes({"": (5, 3)}))), (1, 3))


def _variables(changed: bool) -> bytes:
    """Returns a model that adds a variable to its input; it may add 1 to the variable before."""
    options = schema.VarHandleOptionsT()
    options.sharedName = "v"
    once = schema.CallOnceOptionsT()
    once.initSubgraphIndex = 1
    handle = Tensor((), "resource", open=False)
    value = Tensor((2,), open=False)
    tensors = [Tensor((1, 2)), handle, value, Tensor((1, 2)), constant([1.0, 1.0]), value, value]
    change = [
        Operator("ADD", [2, 4], [5], schema.AddOptionsT()),
        Operator("ASSIGN_VARIABLE", [1, 5], []),
    ]
    operators = [
        Operator("CALL_ONCE", [], [], once),
        Operator("VAR_HANDLE", [], [1], options),
        Operator("READ_VARIABLE", [1], [2]),
        *(change if changed else []),
        Operator("READ_VARIABLE", [1], [6]),
        Operator("ADD", [0, 6], [3], schema.AddOptionsT()),
    ]
    first = Subgraph(
        [handle, constant([3.0, 5.0])],
        [Operator("VAR_HANDLE", [], [0], options), Operator("ASSIGN_VARIABLE", [0, 1], [])],
        [],
        [],
    )
    return file_of([Subgraph(tensors, operators, [0], [3]), first])


@pytest.mark.parametrize("changed", [False, True])
def test_variables_start_every_call_where_the_file_has_them(tmp_path: Path, changed: bool) -> None:
    path = tmp_path / "m.tflite"
    content = _variables(changed)
    path.write_bytes(content)
    graph = check(load(path, LoadOptions()), (1,))
    arrays = inputs_for(graph, 1)
    (expected,) = interpreted(content, list(arrays.values()))
    (found,) = interpret(graph, arrays).values()
    assert difference(found, expected) <= TOLERANCE


def test_writing_again_gives_the_same_bytes(tmp_path: Path) -> None:
    model = MODELS["unet"]()
    randomize(model)
    path = tmp_path / "net.tflite"
    path.write_bytes(_converted(model))
    files = run(Request(path, Options("net", "net.tflite"))).files
    assert files == run(Request(path, Options("net", "net.tflite"))).files
    text = files["rust_generated_code/src/model.rs"].decode()
    assert len(re.findall(r"^    conv2d_\d+_1: Conv,$", text, re.M)) == 3
    assert re.search(r"^    conv2d_transpose(_\d+)?_1: ConvTranspose,$", text, re.M)
    assert "pub image: &'a [f32]" in text
