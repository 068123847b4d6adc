"""Whole models as ONNX files, as PyTorch exports them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from converters.tf import ir
from converters.tf.emit.options import Options, RuntimeMode
from converters.tf.errors import FileError
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import ops
from converters.tf.tests.onnx_graphs import Dims, Network, agree, saved
from converters.tf.tf2rust import Request, run
from tools.codegen.conversion import UnsupportedError, UsageError


def _moved(graph: ir.Graph) -> int:
    """Returns the number of transpositions."""
    return ops(graph).count("Transpose")


def _resnet() -> Any:
    net = Network(17)
    x = net("Relu", net.conv("image", (3, 8), 7, "/conv1", 2), name="/relu/Relu")
    x = net(
        "MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, name="/maxpool/MaxPool"
    )
    for index, (inputs, outputs, stride) in enumerate(((8, 8, 1), (8, 16, 2), (16, 16, 1))):
        path = f"/layer{index + 1}/layer{index + 1}.0"
        y = net("Relu", net.conv(x, (inputs, outputs), 3, f"{path}/conv1", stride))
        y = net.conv(y, (outputs, outputs), 3, f"{path}/conv2")
        if inputs != outputs:
            x = net.conv(x, (inputs, outputs), 1, f"{path}/downsample/downsample.0", stride)
        x = net("Relu", net("Add", y, x, name=f"{path}/Add"), name=f"{path}/relu_1/Relu")
    x = net("GlobalAveragePool", x, name="/avgpool/GlobalAveragePool")
    x = net("Flatten", x, axis=1, name="/Flatten")
    x = net.linear(x, (16, 10), "/fc")
    return net.model({"image": ["batch", 3, 32, 32]}, [x])


def test_resnet(tmp_path: Path) -> None:
    graph = agree(_resnet(), tmp_path)
    assert _moved(graph) == 1
    assert ops(graph).count("Conv") == 8
    names = {v.name for n in graph.nodes for v in n.present if v.is_constant}
    assert {"layer2.0/conv1/weight", "layer2.0/downsample.0/bias", "fc/weight"} <= names
    layers = {n.layer for n in graph.nodes}
    assert {"conv1", "layer2.0/conv1", "layer2.0/downsample.0", "fc"} <= layers


def test_mobilenet(tmp_path: Path) -> None:
    net = Network(13)

    def clipped(x: str) -> str:
        return net("Clip", x, net.constant(np.float32(0)), net.constant(np.float32(6)))

    x = clipped(net.conv("input", (3, 8), 3, "/features/features.0", 2))
    for index, stride in enumerate((1, 2, 1)):
        path = f"/features/features.{index + 1}/conv"
        y = clipped(net.conv(x, (8, 24), 1, f"{path}/conv.0"))
        y = clipped(net.conv(y, (24, 24), 3, f"{path}/conv.1", stride, 24))
        y = net.conv(y, (24, 8), 1, f"{path}/conv.2")
        x = net("Add", x, y) if stride == 1 else y
    x = net("ReduceMean", x, axes=[2, 3], keepdims=0, name="/ReduceMean")
    x = net.linear(x, (8, 5), "/classifier")
    graph = agree(net.model({"input": ["N", 3, 32, 32]}, [x]), tmp_path)
    assert _moved(graph) == 1


def test_squeeze_and_excitation(tmp_path: Path) -> None:
    net = Network(17)
    x = net("HardSwish", net.conv("x", (3, 8), 3, "/stem"))
    pooled = net("GlobalAveragePool", x)
    gate = net("Relu", net.conv(pooled, (8, 4), 1, "/se/fc1"))
    gate = net("HardSigmoid", net.conv(gate, (4, 8), 1, "/se/fc2"), alpha=1 / 6, beta=0.5)
    x = net("Mul", gate, x)
    graph = agree(net.model({"x": [None, 3, 8, 8]}, [net("ReduceMean", x, axes=[2, 3])]), tmp_path)
    assert _moved(graph) == 1


def test_a_flattened_image_is_not_transposed(tmp_path: Path) -> None:
    """The rows of the dense layer's weights are in the order of the image instead."""
    net = Network(17)
    x = net("Relu", net.conv("x", (1, 6), 5, "/conv1"))
    x = net("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.linear(net("Flatten", x), (6 * 5 * 4, 7), "/fc1")
    graph = agree(net.model({"x": ["N", 1, 10, 8]}, [x]), tmp_path)
    assert _moved(graph) == 0


def test_unet(tmp_path: Path) -> None:
    net = Network(17)
    top = net("Relu", net.conv("x", (3, 6), 3, "/enc1"))
    low = net("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2])
    low = net("Relu", net.conv(low, (6, 8), 3, "/enc2"))
    weight, bias = net.weight("up.weight", 8, 6, 2, 2), net.weight("up.bias", 6)
    up = net("ConvTranspose", low, weight, bias, kernel_shape=[2, 2], strides=[2, 2])
    joined = net("Concat", up, top, axis=1)
    out = net("Sigmoid", net.conv(net("Relu", net.conv(joined, (12, 6), 3, "/d")), (6, 2), 1, "/o"))
    graph = agree(net.model({"x": ["N", 3, 16, 12]}, [out]), tmp_path)
    assert _moved(graph) == 2
    assert graph.outputs[0].value.shape[1:] == (2, 16, 12)


def test_convnext_normalizes_channels_without_transposing(tmp_path: Path) -> None:
    net = Network(20)
    x = net.conv("x", (3, 8), 3, "/stem")
    y = net("Transpose", net.conv(x, (8, 8), 7, "/block/dw", 1, 8), perm=[0, 2, 3, 1])
    y = net("LayerNormalization", y, net.weight("norm.w", 8), net.weight("norm.b", 8), axis=-1)
    y = net("Add", net("MatMul", y, net.weight("pw1.w", 8, 16)), net.weight("pw1.bias", 16))
    y = net("MatMul", net("Gelu", y), net.weight("pw2.w", 16, 8))
    y = net("Mul", net.weight("gamma", 8), y)
    x = net("Add", x, net("Transpose", y, perm=[0, 3, 1, 2]))
    model = net.model({"x": ["N", 3, 8, 8]}, [net("GlobalAveragePool", x)])
    assert _moved(agree(model, tmp_path)) == 1


def test_transposed_inputs_need_no_transposition(tmp_path: Path) -> None:
    """Files made of TensorFlow's models transpose around convolutions."""
    net = Network(17)
    x = net("Transpose", "x", perm=[0, 3, 1, 2])
    x = net("Relu", net.conv(x, (3, 4), 3, "/conv"))
    x = net("Transpose", x, perm=[0, 2, 3, 1])
    assert _moved(agree(net.model({"x": ["N", 6, 5, 3]}, [x]), tmp_path)) == 0


def _dimension(net: Network, x: str, index: int) -> str:
    place = net.constant(np.array(index, np.int64))
    return net("Gather", net("Shape", x), place, axis=0)


def _listed(net: Network, *dims: str | int) -> str:
    parts = [net.ints(d) if isinstance(d, int) else net("Unsqueeze", d, net.ints(0)) for d in dims]
    return net("Concat", *parts, axis=0)


def _attention(net: Network, x: str, width: int, heads: int, flat: bool) -> str:
    """Attention as PyTorch exports `view`, `permute` and `reshape` of dynamic sizes."""
    batch, steps = _dimension(net, x, 0), _dimension(net, x, 1)
    parts = []
    for name in "qkv":
        weight = net.weight(f"attn.{name}.weight", width, width)
        y = net("Add", net("MatMul", x, weight), net.weight(f"attn.{name}.bias", width))
        y = net("Reshape", y, _listed(net, batch, steps, heads, width // heads))
        parts.append(net("Transpose", y, perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]))
    if flat:
        both = net("Mul", batch, net.constant(np.array(heads, np.int64)))
        each = width // heads
        sizes: list[list[str | int]] = [[both, steps, each], [both, each, steps]]
        shapes = [_listed(net, *sizes[0]), _listed(net, *sizes[1]), _listed(net, *sizes[0])]
        parts = [net("Reshape", p, s) for p, s in zip(parts, shapes, strict=True)]
    q, k, v = parts
    scale = net("Sqrt", net("Cast", _dimension(net, q, -1), to=TensorProto.FLOAT))
    scores = net("Div", net("MatMul", q, k), scale)
    y = net("MatMul", net("Softmax", scores, axis=-1), v)
    if flat:
        y = net("Reshape", y, _listed(net, batch, heads, steps, width // heads))
    y = net("Transpose", y, perm=[0, 2, 1, 3])
    return net("Reshape", y, _listed(net, batch, steps, width))


@pytest.mark.parametrize("flat", [False, True])
def test_transformer(tmp_path: Path, flat: bool) -> None:
    net = Network(20)
    width = 12
    tokens = net("Gather", net.weight("embed.weight", 20, width), "tokens")
    places = net("Slice", net.weight("pos.weight", 1, 16, width), net.ints(0), net.ints(7),
                 net.ints(1))  # fmt: skip
    x = net("Add", tokens, places)
    norm = [net.weight("norm1.weight", width), net.weight("norm1.bias", width)]
    y = _attention(net, net("LayerNormalization", x, *norm, axis=-1), width, 3, flat)
    x = net("Add", x, y)
    y = net("Gelu", net("MatMul", x, net.weight("mlp.fc1.weight", width, 24)))
    x = net("Add", x, net("MatMul", y, net.weight("mlp.fc2.weight", 24, width)))
    first = net("Gather", x, net.constant(np.array(0, np.int64)), axis=1)
    model = net.model(
        {"tokens": ["batch", 7]}, [net.linear(first, (width, 4), "/head")], [np.int64]
    )
    graph = agree(model, tmp_path, whole=20)
    assert "Norm" in ops(graph)
    assert flat or "Attention" in ops(graph)


def test_images_become_words_without_transposing(tmp_path: Path) -> None:
    net = Network(17)
    weight, bias = net.weight("patch.weight", 8, 3, 4, 4), net.weight("patch.bias", 8)
    x = net("Conv", "x", weight, bias, strides=[4, 4], kernel_shape=[4, 4])
    batch = _dimension(net, x, 0)
    words = net("Transpose", net("Reshape", x, _listed(net, batch, 8, -1)), perm=[0, 2, 1])
    first = net("Expand", net.weight("cls", 1, 1, 8), _listed(net, batch, 1, 8))
    x = net("Add", net("Concat", first, words, axis=1), net.weight("pos", 1, 5, 8))
    head = net("Gather", x, net.constant(np.array(0, np.int64)), axis=1)
    out = net("Concat", net.linear(head, (8, 3), "/head"), net("ReduceMax", x, axes=[1],
              keepdims=0), axis=1)  # fmt: skip
    assert _moved(agree(net.model({"x": ["N", 3, 8, 8]}, [out]), tmp_path)) == 1


def test_shuffled_channels_stay_last(tmp_path: Path) -> None:
    net = Network(17)
    x = net.conv("x", (3, 8), 3, "/stem")
    y = net("Transpose", net("Reshape", x, net.ints(0, 2, 4, 6, 5)), perm=[0, 2, 1, 3, 4])
    a, b = net.many("Split", 2, net("Reshape", y, net.ints(0, -1, 6, 5)), net.ints(4, 4), axis=1)
    x = net("GlobalAveragePool", net("Concat", a, net.conv(b, (4, 4), 3, "/branch"), axis=1))
    assert _moved(agree(net.model({"x": ["N", 3, 6, 5]}, [x]), tmp_path)) == 2


def test_a_decomposed_norm_and_gelu_are_recognised(tmp_path: Path) -> None:
    net = Network(13)
    mean = net("ReduceMean", "x", axes=[-1])
    apart = net("Sub", "x", mean)
    square = net("Pow", apart, net.constant(np.float32(2)))
    wide = net("Add", net("ReduceMean", square, axes=[-1]), net.constant(np.float32(1e-5)))
    x = net("Div", apart, net("Sqrt", wide))
    x = net("Add", net("Mul", x, net.weight("n.weight", 8)), net.weight("n.bias", 8))
    x = net("MatMul", x, net.weight("fc.weight", 8, 6))
    half = net("Erf", net("Div", x, net.constant(np.float32(2**0.5))))
    x = net("Mul", x, net("Add", half, net.constant(np.float32(1))))
    x = net("Mul", x, net.constant(np.float32(0.5)))
    graph = agree(net.model({"x": ["N", 4, 8]}, [x]), tmp_path)
    assert ops(graph) == ["Norm", "Dense"]


def test_lstm_classifier(tmp_path: Path) -> None:
    net = Network(17)
    x = net("Transpose", "x", perm=[1, 0, 2])
    batch = net("Unsqueeze", _dimension(net, "x", 0), net.ints(0))
    shape = net("Concat", net.ints(2), batch, net.ints(8), axis=0)
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0])
    states = net("ConstantOfShape", shape, value=zero)
    weights = [net.weight("lstm.w", 2, 32, 5), net.weight("lstm.r", 2, 32, 8)]
    weights.append(net.weight("lstm.b", 2, 64))
    options: dict[str, Any] = {"hidden_size": 8, "direction": "bidirectional"}
    y, _, _ = net.many("LSTM", 3, x, *weights, "", states, states, name="/lstm/LSTM", **options)
    y = net("Reshape", net("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, -1))
    y = net("Transpose", y, perm=[1, 0, 2])
    last = net("Gather", y, net.constant(np.array(-1, np.int64)), axis=1)
    model = net.model({"x": ["N", 6, 5]}, [net.linear(last, (16, 3), "/fc")])
    graph = agree(model, tmp_path)
    assert ops(graph).count("Lstm") == 2
    assert "Loop" not in ops(graph)


@pytest.mark.parametrize("after", [0, 1])
def test_gru_is_recognised(tmp_path: Path, after: int) -> None:
    net = Network(17)
    weights = [net.weight("w", 1, 24, 5), net.weight("r", 1, 24, 8), net.weight("b", 1, 48)]
    if not after:
        weights = weights[:2]
    x = net("Transpose", "x", perm=[1, 0, 2])
    y, _ = net.many("GRU", 2, x, *weights, hidden_size=8, linear_before_reset=after)
    y = net("Transpose", net("Squeeze", y, net.ints(1)), perm=[1, 0, 2])
    graph = agree(net.model({"x": ["N", 6, 5]}, [y]), tmp_path)
    assert "Gru" in ops(graph)


def test_sizes_that_are_computed(tmp_path: Path) -> None:
    net = Network(17)
    x = net.conv("x", (3, 4), 3, "/conv")
    batch = _dimension(net, x, 0)
    flat = net("Reshape", x, _listed(net, batch, -1))
    rows = net("Reshape", x, _listed(net, -1, 4))
    size = net("Div", net("Size", x), net.constant(np.array(4 * 36, np.int64)))
    same = net("Equal", _listed(net, batch, 4, 6, 6), net.ints(-1, -1, -1, -1))
    target = net("Where", same, net.ints(1, 1, 1, 1), _listed(net, size, 4, 6, 6))
    wide = net("Expand", net("Slice", x, net.ints(0), net.ints(1), net.ints(1)), target)
    half = net("Div", _dimension(net, x, 2), net.constant(np.array(2, np.int64)))
    part = net("Slice", x, net.ints(0), net("Unsqueeze", half, net.ints(0)), net.ints(2))
    agree(net.model({"x": ["N", 3, 6, 6]}, [flat, rows, wide, part]), tmp_path)


def test_functions_of_the_file_and_branches(tmp_path: Path) -> None:
    branches = []
    for factor in (2.0, 3.0):
        value = numpy_helper.from_array(np.float32(factor), f"f{factor:g}")
        node = helper.make_node("Mul", ["h", f"f{factor:g}"], [f"b{factor:g}"])
        out = helper.make_tensor_value_info(f"b{factor:g}", TensorProto.FLOAT, None)
        branches.append(helper.make_graph([node], "branch", [], [out], [value]))
    relu = helper.make_node("Relu", ["a"], ["b"])
    twice = helper.make_node("Add", ["b", "b"], ["c"])
    body = helper.make_function(
        "mine", "Twice", ["a"], ["c"], [relu, twice], [helper.make_opsetid("", 17)]
    )
    index = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    going = helper.make_tensor_value_info("going", TensorProto.BOOL, [])
    state = helper.make_tensor_value_info("s", TensorProto.FLOAT, None)
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("t", "u")]
    turn = [
        helper.make_node("Add", ["s", "h"], ["t"]),
        helper.make_node("Identity", ["t"], ["u"]),
        helper.make_node("Identity", ["going"], ["on"]),
    ]
    on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    loop = helper.make_graph(turn, "turn", [index, going, state], [on, *results])
    nodes = [
        helper.make_node("Twice", ["x"], ["h"], domain="mine"),
        helper.make_node("If", ["flag"], ["y"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Loop", ["three", "yes", "y"], ["z", "all"], body=loop),
        helper.make_node("Transpose", ["all"], ["w"], perm=[1, 0, 2]),
    ]
    constants = [
        numpy_helper.from_array(np.array(3, np.int64), "three"),
        numpy_helper.from_array(np.array(True), "yes"),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4]),
        helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
    ]
    outputs = [helper.make_empty_tensor_value_info(n) for n in ("y", "z", "w")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, functions=[body], opset_imports=versions, ir_version=9)
    agree(model, tmp_path, batches=(2,), whole=1)
    agree(model, tmp_path, batches=(2,), whole=2)


def test_branches_that_read_an_outer_tensor_in_another_layout(tmp_path: Path) -> None:
    """A copy that the first branch makes is not there for the second one, nor after both."""
    net = Network(17)
    image = net("Relu", "x")
    branches = []
    for name, size in (("then", 1), ("else", 3)):
        weight = net.weight(f"{name}.weight", 4, 4, size, size)
        pads = [(size - 1) // 2] * 4
        node = helper.make_node("Conv", [image, weight], [name], pads=pads, kernel_shape=[size] * 2)
        info = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        branches.append(helper.make_graph([node], name, [], [info]))
    chosen = net("If", "flag", then_branch=branches[0], else_branch=branches[1])
    y = net("Add", chosen, net.conv(image, (4, 4), 3, "/after"))
    inputs: dict[str, Dims] = {"x": ["N", 4, 6, 5], "flag": []}
    model = net.model(inputs, [y, net("Flatten", image)], [np.float32, np.bool_])
    for whole in (1, 2):
        agree(model, tmp_path, batches=(2,), whole=whole)


def test_half_precision_is_computed_in_float32(tmp_path: Path) -> None:
    net = Network(17)
    weight = net.constant(np.eye(4, 3, dtype=np.float16), "fc.weight")
    x = net("MatMul", net("Cast", "x", to=TensorProto.FLOAT16), weight)
    path = saved(net.model({"x": ["N", 4]}, [x]), tmp_path)
    graph = convert(load(path, LoadOptions()).trace)
    assert graph.outputs[0].value.dtype is ir.DType.F32


def test_data_in_a_file_beside_the_model(tmp_path: Path) -> None:
    model = _resnet()
    external_data_helper.convert_model_to_external_data(model, True, "weights.bin", 0)
    onnx.save_model(model, tmp_path / "m.onnx")
    load(tmp_path / "m.onnx", LoadOptions())
    for location in ("../weights.bin", "/etc/passwd", "missing.bin", ""):
        changed = onnx.load(tmp_path / "m.onnx", load_external_data=False)
        changed.graph.initializer[0].external_data[0].value = location
        (tmp_path / "n.onnx").write_bytes(changed.SerializeToString())
        with pytest.raises(FileError, match="no file beside the model"):
            load(tmp_path / "n.onnx", LoadOptions())
    (tmp_path / "weights.bin").write_bytes(bytes(10))
    with pytest.raises(FileError, match="which has 10"):
        load(tmp_path / "m.onnx", LoadOptions())


def test_open_dimensions_that_the_caller_gives(tmp_path: Path) -> None:
    net = Network(17)
    x = net("GlobalAveragePool", net.conv("x", (3, 4), 3, "/conv"))
    model = net.model({"x": ["N", 3, "height", "width"]}, [x])
    agree(model, tmp_path, shapes={"x": (3, 8, 6)})
    fixed = LoadOptions(FixedShapes({"y": (3, 8, 8)}))
    with pytest.raises(UsageError, match="no input has this name"):
        load(tmp_path / "model.onnx", fixed)


def test_a_batch_that_the_file_fixes(tmp_path: Path) -> None:
    net = Network(17)
    x = net("Reshape", net.conv("x", (3, 4), 3, "/conv"), net.ints(2, -1))
    agree(net.model({"x": [2, 3, 5, 5]}, [x]), tmp_path, batches=(2,))


def test_everything_that_is_not_supported_is_named_at_once(tmp_path: Path) -> None:
    net = Network(17)
    a = net("NonZero", "x", name="/a/NonZero")
    b = net("Resize", "x", "roi", net.constant(np.array([1, 1, 2, 2], np.float32)),
            mode="area", name="/b/Resize")  # fmt: skip
    net.constant(np.zeros(8, np.float32), "roi")
    c = net("MaxPool", b, kernel_shape=[2, 2])
    d = net("Reshape", "x", net.ints(7, 9), name="/d/Reshape")
    path = saved(net.model({"x": ["N", 3, 4, 4]}, [a, c, d]), tmp_path)
    with pytest.raises(UnsupportedError) as found:
        load(path, LoadOptions())
    places = [p.where for p in found.value.problems]
    assert places == ["node /a/NonZero (NonZero)", "node /b/Resize (Resize)",
                      "node /d/Reshape (Reshape)"]  # fmt: skip
    assert "mode='area'" in found.value.problems[1].what


def _cyclic(model: Any) -> None:
    model.graph.node[0].input[0] = model.graph.node[-1].output[0]


def _recursive(model: Any) -> None:
    node = helper.make_node("F", ["a"], ["b"], domain="mine")
    model.functions.append(helper.make_function("mine", "F", ["a"], ["b"], [node], []))


DAMAGED: list[tuple[Any, str]] = [
    (lambda m: m.graph.initializer.pop(0), "nothing gives 'conv1.weight'"),
    (_cyclic, "depends on itself"),
    (_recursive, "call themselves: F"),
    (lambda m: m.graph.node.append(m.graph.node[0]), "is computed twice"),
    (lambda m: setattr(m.graph.output[0], "name", "nobody"), "nothing gives the output 'nobody'"),
    (lambda m: setattr(m.graph.initializer[0], "raw_data", b"123"), "does not fit its shape"),
    (lambda m: m.graph.initializer[0].dims.append(-1), "has the shape"),
    (lambda m: m.graph.initializer[0].dims.append(1 << 60), "does not fit its shape"),
    (lambda m: m.graph.initializer.append(m.graph.initializer[0]), "two constants"),
    (lambda m: m.ClearField("graph"), "no version or no graph"),
    (lambda m: m.ClearField("opset_import"), "no version or no graph"),
    (lambda m: setattr(m.opset_import[0], "domain", "mine"), "states no version"),
    (lambda m: m.graph.ClearField("output"), "a graph without outputs"),
]


@pytest.mark.parametrize(("damage", "what"), DAMAGED)
def test_damaged_files(tmp_path: Path, damage: Any, what: str) -> None:
    model = _resnet()
    damage(model)
    with pytest.raises(FileError, match=what) as found:
        load(saved(model, tmp_path), LoadOptions())
    assert len(found.value.problems) == 1


def test_truncated_files(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    content = _resnet().SerializeToString()
    for size in (1, 7, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(FileError):
            load(path, LoadOptions())
    path.write_bytes(content.replace(b"/conv1/Conv", b"/conv1/\xff\xfe\xfd\xfc"))
    with pytest.raises(FileError, match="bytes that are not text"):
        load(path, LoadOptions())
    for text in (b"", b"hello world", bytes(100), b"\x08\x07" * 50):
        path.write_bytes(text)
        with pytest.raises(FileError):
            load(path, LoadOptions())


def test_versions_that_are_not_known(tmp_path: Path) -> None:
    model = _resnet()
    model.opset_import[0].version = 1000
    with pytest.raises(UnsupportedError, match="version 1000 of ONNX's operators"):
        load(saved(model, tmp_path), LoadOptions())


@pytest.mark.parametrize("version", [1, 3, 6])
def test_files_of_old_versions(tmp_path: Path, version: int) -> None:
    """Their operators broadcast along an axis that they name, and had attributes for operands."""
    net = Network(version)
    weight, shift = net.weight("w", 4, 3), net.weight("shift", 3)
    norm = [net.constant(np.abs(net.random.normal(size=3)).astype(np.float32)) for _ in range(4)]
    extra: dict[str, Any] = {"consumed_inputs": [0, 0, 0, 1, 1]} if version == 1 else {}
    x = net("BatchNormalization", "x", *norm, is_test=1, epsilon=1e-3, **extra)
    x = net("Add", x, shift, broadcast=1, axis=1)
    row = net("Reshape", shift, shape=[3, 1]) if version < 5 else shift
    x = net("Sub", x, net("Abs", row), broadcast=1, axis=1)
    x = net("Dropout", x, is_test=1)
    extra = {"consumed_inputs": [0, 0]} if version == 1 else {}
    x = net("PRelu", x, shift, **extra)
    x = net("GlobalAveragePool", x)
    rows = net.ints(-1, 3)
    x = net("Reshape", x, shape=[-1, 3]) if version < 5 else net("Reshape", x, rows)
    y = net("Gemm", x, weight, net.weight("c", 4), broadcast=1, transB=1)
    model = net.model({"x": ["N", 3, 2, 2]}, [y])
    loaded = load(saved(model, tmp_path), LoadOptions())
    graph = convert(loaded.trace)
    given = np.random.default_rng(3).normal(size=(2, 3, 2, 2)).astype(np.float32)
    arrays = {c.name: numpy_helper.to_array(c) for c in net.constants}
    scale, bias, mean, var = (arrays[name].reshape(3, 1, 1) for name in norm)
    shifted = arrays["shift"][:, None, None]
    expected = (given - mean) / np.sqrt(var + 1e-3) * scale + bias + shifted - np.abs(shifted)
    expected = np.where(expected > 0, expected, expected * shifted)
    expected = expected.mean((2, 3)) @ arrays["w"].T + arrays["c"]
    for found in (interpret(graph, {"x": given}), loaded.predict({"x": given})):
        np.testing.assert_allclose(found[y], expected, rtol=1e-5, atol=1e-5)


def test_files_of_old_versions_that_onnx_does_not_convert(tmp_path: Path) -> None:
    net = Network(1)
    model = net.model({"x": ["N", 4]}, [net("Nothing", "x")])
    with pytest.raises(UnsupportedError, match="version 1 of ONNX's operators, which onnx can't"):
        load(saved(model, tmp_path), LoadOptions())


def test_a_constant_that_fills_the_memory(tmp_path: Path) -> None:
    net = Network(17)
    x = net("Expand", "x", net("ConstantOfShape", net.ints(1 << 40)))
    with pytest.raises(UnsupportedError, match="a tensor of 1099511627776 elements"):
        load(saved(net.model({"x": ["N", 3]}, [x]), tmp_path), LoadOptions())


def test_an_input_that_fills_the_memory(tmp_path: Path) -> None:
    """Places for each of its elements would be constants."""
    net = Network(17)
    y = net("ScatterElements", "x", "at", "x", axis=0)
    model = net.model({"at": [1 << 30], "x": [1 << 30]}, [y], [np.int64])
    with pytest.raises(UnsupportedError, match="a tensor of 1073741824 elements"):
        load(saved(model, tmp_path), LoadOptions())


def test_what_a_file_says_of_itself_is_kept(tmp_path: Path) -> None:
    net = Network(3)
    model = net.model({"x": ["batch", 4]}, [net.linear("x", (4, 2), "fc")])
    model.producer_name, model.producer_version, model.doc_string = "pytorch", "2.9", ""
    helper.set_model_props(model, {"names": "{0: 'cat'}", "log": "x" * 16_385, "empty": ""})
    onnx.save(model, tmp_path / "net.onnx")
    loaded = load(tmp_path / "net.onnx", LoadOptions())
    assert loaded.facts == (
        ("producer_name", "pytorch"),
        ("producer_version", "2.9"),
        ("names", "{0: 'cat'}"),
    )
    options = Options("net", "net.onnx", runtime=RuntimeMode.CRATE)
    files = run(Request(tmp_path / "net.onnx", options, crate_only=True)).files
    text = files["rust_generated_code/src/lib.rs"].decode()
    assert '("producer_name", "pytorch"),' in text
