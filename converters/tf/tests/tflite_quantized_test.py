"""Models in int8 against TFLite's reference kernels: every bit is the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf import ir
from converters.tf.emit.crate import Features, emit_crate
from converters.tf.emit.options import Options, RuntimeMode
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.tflite.quantized import OPS
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import ops, randomize
from converters.tf.tests.crates.crates import compile_and_test, runtime_flags, rustfmt, write
from converters.tf.tests.tflite_files import (
    Operator,
    Subgraph,
    Tensor,
    constant,
    file_of,
    interpreted,
)

# Files of an operator, each with scales, zero points, sizes and weights of its own.
_DRAWS = 12
_FUSED = (0, 1, 2, 3)


class Draw:
    """Random parts of a file of one operator."""

    def __init__(self, seed: int, kind: str = "int8") -> None:
        """Begins a sequence of random numbers, for tensors of a type."""
        self.random = np.random.default_rng(seed)
        self.kind = kind
        self.least = int(np.iinfo(kind).min)

    def size(self, low: int, high: int) -> int:
        """Returns a number below `high`."""
        return int(self.random.integers(low, high))

    def scale(self, low: float = 0.01, high: float = 0.1) -> float:
        """Returns a scale."""
        return float(np.float32(self.random.uniform(low, high)))

    def zero(self) -> int:
        """Returns what stands for 0."""
        return self.size(self.least, self.least + 256)

    def bytes(self, *shape: int) -> ir.Array:
        """Returns numbers of the type."""
        return self.random.integers(self.least, self.least + 256, shape).astype(self.kind)

    def tensor(self, *shape: int, like: Tensor | None = None, scale: float = 0.0) -> Tensor:
        """Returns a computed tensor with a scale of its own, or that of another."""
        if like is not None:
            return replace(like, shape=shape)
        return Tensor(
            shape, self.kind, scale=(scale or self.scale(),), zero=(self.zero(),), open=False
        )

    def weights(self, kernel: ir.Array, axis: int, x: Tensor) -> list[Tensor]:
        """Returns a filter with one scale or several, and its bias."""
        channels = kernel.shape[axis]
        unsigned = self.kind == "uint8"
        count = channels if self.random.integers(2) and not unsigned else 1
        scales = tuple(self.scale(0.001) for _ in range(count))
        bias = self.random.integers(-3000, 3000, channels).astype(np.int32)
        own = tuple(float(np.float32(x.scale[0]) * np.float32(s)) for s in scales)
        zeros = (0,) * count
        middle = (self.zero(),) if unsigned else zeros
        return [
            constant(np.maximum(kernel, self.least + 1), scale=scales, zero=middle, axis=axis),
            constant(bias, scale=own, zero=zeros),
        ]


def _options(kind: str, **values: Any) -> Any:
    made = getattr(schema, f"{kind}OptionsT")()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def _window(d: Draw, x: Sequence[int], taps: Sequence[int], dilated: bool = True) -> Any:
    """Returns how a window moves over an image, with the size of the result."""
    values: dict[str, int] = {"padding": d.size(0, 2)}
    stops = []
    for axis, size, tap in zip("HW", x, taps, strict=True):
        stride = values[f"stride{axis}"] = d.size(1, 3)
        dilation = d.size(1, 3) if dilated and stride == 1 else 1
        if dilated:
            values[f"dilation{axis}Factor"] = dilation
        reach = (tap - 1) * dilation + 1 if values["padding"] else 1
        stops.append(-(-(size - reach + 1) // stride))
    return values, stops


def _conv(d: Draw) -> Any:
    taps, inputs, outputs = (d.size(1, 4), d.size(1, 4)), d.size(1, 40), d.size(1, 50)
    shape = (d.size(1, 3), d.size(7, 12), d.size(7, 12), inputs)
    x = d.tensor(*shape)
    values, stops = _window(d, shape[1:3], taps)
    kernel, bias = d.weights(d.bytes(outputs, *taps, inputs), 0, x)
    y = d.tensor(shape[0], *stops, outputs, scale=d.scale(0.1, 0.5))
    values["fusedActivationFunction"] = d.size(0, 4)
    return "CONV_2D", [x, kernel, bias], [y], _options("Conv2D", **values)


def _depthwise(d: Draw) -> Any:
    taps, channels, more = (d.size(1, 4), d.size(1, 4)), d.size(1, 70), d.size(1, 3)
    shape = (d.size(1, 3), d.size(7, 12), d.size(7, 12), channels)
    x = d.tensor(*shape)
    values, stops = _window(d, shape[1:3], taps)
    kernel, bias = d.weights(d.bytes(1, *taps, channels * more), 3, x)
    y = d.tensor(shape[0], *stops, channels * more)
    values |= {"fusedActivationFunction": d.size(0, 4), "depthMultiplier": more}
    return "DEPTHWISE_CONV_2D", [x, kernel, bias], [y], _options("DepthwiseConv2D", **values)


def _dense(d: Draw) -> Any:
    rows, inputs, outputs = d.size(1, 9), d.size(1, 200), d.size(1, 60)
    x = d.tensor(rows, inputs)
    parts: list[Any] = d.weights(d.bytes(outputs, inputs), 0, x)
    if d.size(0, 2):
        parts[1] = None
    y = d.tensor(rows, outputs, scale=d.scale(0.05, 0.5))
    options = _options("FullyConnected", fusedActivationFunction=d.size(0, 4))
    return "FULLY_CONNECTED", [x, *parts], [y], options


def _pair(kind: str) -> Any:
    def draw(d: Draw) -> Any:
        shape = [d.size(1, 4), d.size(2, 9), d.size(2, 40)]
        other = [size if d.size(0, 3) else 1 for size in shape]
        operands = [d.tensor(*shape), d.tensor(*other)]
        if d.size(0, 2):
            operands.reverse()
        options = _options(kind.capitalize(), fusedActivationFunction=d.size(0, 4))
        return kind, operands, [d.tensor(*shape)], options

    return draw


def _pool(kind: str) -> Any:
    def draw(d: Draw) -> Any:
        taps = (d.size(1, 4), d.size(1, 4))
        shape = (d.size(1, 3), d.size(5, 12), d.size(5, 12), d.size(1, 50))
        x = d.tensor(*shape)
        values, stops = _window(d, shape[1:3], taps, dilated=False)
        values |= {"filterHeight": taps[0], "filterWidth": taps[1]}
        values["fusedActivationFunction"] = d.size(0, 4)
        y = d.tensor(shape[0], *stops, shape[3], like=x)
        return kind, [x], [y], _options("Pool2D", **values)

    return draw


def _mean(d: Draw) -> Any:
    shape = (d.size(1, 4), d.size(1, 9), d.size(1, 9), d.size(1, 50))
    axes, keep = ([1, 2], [3], [2, 3], [1], [-1, -2, -3])[d.size(0, 5)], bool(d.size(0, 2))
    x, places = d.tensor(*shape), {a % 4 for a in axes}
    kept = [1 if i in places else s for i, s in enumerate(shape) if keep or i not in places]
    y = d.tensor(*kept, like=replace(x) if d.size(0, 2) else None)
    return "MEAN", [x, constant(np.array(axes))], [y], _options("Reducer", keepDims=keep)


def _softmax(d: Draw) -> Any:
    x = d.tensor(d.size(1, 9), d.size(2, 200), scale=d.scale(0.01, 0.3))
    y = replace(x, scale=(1 / 256,), zero=(d.least,))
    return "SOFTMAX", [x], [y], _options("Softmax", beta=float(d.random.choice([1.0, 0.5])))


def _function(kind: str, scale: float = 0.0, zero: int = 0) -> Any:
    def draw(d: Draw) -> Any:
        x = d.tensor(2, 300)
        y = d.tensor(2, 300)
        if scale:
            y = replace(x, scale=(scale,), zero=(zero + d.least + 128,))
        options = _options("LeakyRelu", alpha=d.scale(0.05, 1.5)) if kind == "LEAKY_RELU" else None
        return kind, [x], [y], options

    return draw


def _pad(kind: str) -> Any:
    def draw(d: Draw) -> Any:
        shape = (d.size(1, 3), d.size(1, 5), d.size(1, 5), d.size(1, 9))
        x, sizes = d.tensor(*shape), d.random.integers(0, 3, (4, 2))
        sizes[0] = 0
        wide = [s + int(p.sum()) for s, p in zip(shape, sizes, strict=True)]
        border = constant(d.bytes(), scale=x.scale, zero=x.zero)
        operands = [x, constant(sizes), *([border] if kind == "PADV2" else [])]
        return (
            kind,
            operands,
            [d.tensor(*wide, like=x)],
            _options("PadV2" if kind == "PADV2" else "Pad"),
        )

    return draw


def _joined(d: Draw) -> Any:
    first = d.tensor(2, 3, d.size(1, 9))
    second = d.tensor(2, 3, d.size(1, 9), like=first)
    whole = d.tensor(2, 3, first.shape[2] + second.shape[2], like=first)
    return "CONCATENATION", [first, second], [whole], _options("Concatenation", axis=2)


def _turned(d: Draw) -> Any:
    x = d.tensor(2, 3, 5)
    y = d.tensor(2, 5, 3, like=x)
    return "TRANSPOSE", [x, constant(np.array([0, 2, 1]))], [y], _options("Transpose")


def _reshaped(d: Draw) -> Any:
    x = d.tensor(2, 3, 5)
    y = d.tensor(2, 15, like=x)
    return "RESHAPE", [x, constant(np.array([2, 15]))], [y], _options("Reshape", newShape=[2, 15])


def _sliced(d: Draw) -> Any:
    x = d.tensor(2, 7, 5)
    y = d.tensor(2, 4, 3, like=x)
    places = [constant(np.array(a)) for a in ([0, 2, 1], [2, 4, 3])]
    return "SLICE", [x, *places], [y], _options("Slice")


# An operator that gives another one's numbers as they are.
_TESTED: dict[str, Any] = {
    "ADD": _pair("ADD"),
    "AVERAGE_POOL_2D": _pool("AVERAGE_POOL_2D"),
    "CONCATENATION": _joined,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
    "LEAKY_RELU": _function("LEAKY_RELU"),
    "LOGISTIC": _function("LOGISTIC", 1 / 256, -128),
    "MAX_POOL_2D": _pool("MAX_POOL_2D"),
    "MEAN": _mean,
    "MUL": _pair("MUL"),
    "PAD": _pad("PAD"),
    "PADV2": _pad("PADV2"),
    "QUANTIZE": _function("QUANTIZE"),
    "RELU": _function("RELU"),
    "RELU6": _function("RELU6"),
    "RELU_N1_TO_1": _function("RELU_N1_TO_1"),
    "RESHAPE": _reshaped,
    "SLICE": _sliced,
    "SOFTMAX": _softmax,
    "SUB": _pair("SUB"),
    "TANH": _function("TANH", 1 / 128, 0),
    "TRANSPOSE": _turned,
}
# Operators that move numbers by the handlers of real ones, as CONCATENATION does.
_ALIKE = {"EXPAND_DIMS", "PACK", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "UNPACK"}
# Of tflite_test.py.
_KEPT = {"ASSIGN_VARIABLE", "READ_VARIABLE"}


def _file(
    d: Draw, kind: str, operands: Sequence[Any], results: Sequence[Tensor], options: Any
) -> bytes:
    """Returns a file of an operator and, after it, a product that makes the file one of int8."""
    tensors = [t for t in operands if t is not None]
    places = iter(range(len(tensors)))
    inputs = [-1 if t is None else next(places) for t in operands]
    taken = [i for i, t in enumerate(tensors) if t.data is None]
    first = len(tensors)
    rows = Tensor((1, 2), d.kind, scale=(0.1,), zero=(3,), open=False)
    kernel, bias = d.weights(d.bytes(2, 2), 0, rows)
    more = [rows, kernel, bias, replace(rows, zero=(5,))]
    last = first + len(results)
    operators = [
        Operator(kind, inputs, list(range(first, last)), options),
        Operator(
            "FULLY_CONNECTED", [last, last + 1, last + 2], [last + 3], _options("FullyConnected")
        ),
    ]
    outputs = [*range(first, last), last + 3]
    graph = Subgraph([*tensors, *results, *more], operators, [*taken, last], outputs)
    return file_of([graph])


def _same(path: Path, content: bytes, examples: int = 1) -> tuple[ir.Graph, Features]:
    """Compares a model with TFLite's reference kernels; returns its graph and features."""
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    random = np.random.default_rng(len(content))
    found: list[tuple[dict[str, ir.Array], list[ir.Array]]] = []
    for _ in range(examples):
        arrays: dict[str, ir.Array] = {}
        for port in graph.inputs:
            shape = ir.shape_at(port.value.shape, 1)
            kind = port.value.dtype.numpy
            data: ir.Array = random.normal(size=shape) * 2
            if np.dtype(kind).kind in "iu":
                least = np.iinfo(kind).min
                data = random.integers(least, least + 256, shape)
            arrays[port.name] = data.astype(port.value.dtype.numpy)
        expected = interpreted(content, list(arrays.values()), reference=True)
        for results in (interpret(graph, arrays), loaded.predict(arrays)):
            for wanted, result in zip(expected, results.values(), strict=True):
                assert result.dtype == wanted.dtype
                np.testing.assert_array_equal(result, wanted)
        found.append((arrays, expected))
    inputs = {n: np.concatenate([a[n] for a, _ in found]) for n in found[0][0]}
    outputs = {
        port.name: np.concatenate([e[i] for _, e in found]) for i, port in enumerate(graph.outputs)
    }
    return graph, Features(inputs, outputs)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", sorted(_TESTED))
def test_an_operator(kind: str, dtype: str, tmp_path: Path) -> None:
    served = 0
    for seed in range(_DRAWS):
        d = Draw(seed, dtype)
        graph, _ = _same(tmp_path / "m.tflite", _file(d, *_TESTED[kind](d)))
        served += not {"Quantize", "Dequantize"} & set(ops(graph))
    assert served == _DRAWS


def test_all_operators_are_tested() -> None:
    assert OPS.keys() == _TESTED.keys() | _ALIKE | _KEPT


def _block(x: Any, outputs: int, stride: int) -> Any:
    channels = x.shape[-1]
    y = layers.ReLU(6)(layers.BatchNormalization()(layers.Conv2D(channels * 6, 1)(x)))
    y = layers.DepthwiseConv2D(3, strides=stride, padding="same")(y)
    y = layers.ReLU(6)(layers.BatchNormalization()(y))
    y = layers.BatchNormalization()(layers.Conv2D(outputs, 1)(y))
    return layers.Add()([x, y]) if stride == 1 and channels == outputs else y


def mobile() -> keras.Model:
    """Returns inverted residuals, as MobileNetV2 has them."""
    image = keras.Input((24, 24, 3))
    x = layers.Conv2D(16, 3, strides=2)(layers.ZeroPadding2D(((0, 1), (0, 1)))(image))
    x = _block(layers.ReLU(6)(x), 16, 1)
    x = _block(_block(x, 24, 2), 24, 1)
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(64, 1)(x))
    return keras.Model(image, layers.Dense(10, activation="softmax")(x))


def cnn() -> keras.Model:
    """Returns convolutions, pools and products."""
    image = keras.Input((12, 12, 3))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(image)
    x = layers.concatenate([layers.MaxPooling2D()(x), layers.AveragePooling2D(2)(x)])
    x = layers.Conv2D(24, 3, strides=2, activation="relu")(x)
    x = layers.Dense(20, activation="relu")(layers.Flatten()(x))
    return keras.Model(image, layers.Dense(10, activation="softmax")(x))


def mlp() -> keras.Model:
    """Returns products and functions of one number."""
    x = keras.Input((20,))
    y = layers.Dense(30, activation="tanh")(layers.Dense(40, activation="relu")(x))
    return keras.Model(x, layers.Dense(4, activation="sigmoid")(y))


def content_of(model: keras.Model, kind: Any = None) -> bytes:
    """Returns the int8 file of a model with random weights.

    Args:
        model: The model.
        kind: Element type of its inputs and outputs; floats if not given.
    """
    randomize(model)
    random = np.random.default_rng(3)
    shape = (1, *model.inputs[0].shape[1:])
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.representative_dataset = lambda: (
        [random.normal(size=shape).astype(np.float32)] for _ in range(8)
    )
    if kind is not None:
        converter.inference_input_type = converter.inference_output_type = kind
    return bytes(converter.convert())


_PORTS = {tf.int8: ir.DType.I8, tf.uint8: ir.DType.U8, None: ir.DType.F32}


@pytest.mark.parametrize("kind", list(_PORTS), ids=["whole", "unsigned", "real"])
@pytest.mark.parametrize("make", [mlp, cnn, mobile], ids=lambda make: make.__name__)
def test_models_and_their_crates(make: Any, kind: Any, tmp_path: Path) -> None:
    name = f"{make.__name__}_{_PORTS[kind]}"
    graph, features = _same(tmp_path / f"{name}.tflite", content_of(make(), kind), examples=20)
    assert not {"Conv", "Dense"} & set(ops(graph))
    ports = {port.value.dtype for port in (*graph.inputs, *graph.outputs)}
    assert ports == {_PORTS[kind]}
    options = Options(name, f"{name}.tflite", runtime=RuntimeMode.CRATE, tolerance=0.0)
    files = emit_crate(graph, options, features, rustfmt())
    write(files, tmp_path / "crate")
    assert "test result: ok" in compile_and_test(tmp_path / "crate", name, runtime_flags())


def test_other_operators_compute_in_float32(tmp_path: Path) -> None:
    d = Draw(1)
    x = d.tensor(2, 40)
    content = _file(d, "ABS", [x], [replace(x, zero=(-128,))], None)
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    assert {"Quantize", "Dequantize", "QuantizedConv"} <= set(ops(graph))
    arrays = {p.name: d.bytes(*ir.shape_at(p.value.shape, 1)) for p in graph.inputs}
    found, expected = (
        interpret(graph, arrays),
        interpreted(content, list(arrays.values()), reference=True),
    )
    for result, wanted in zip(found.values(), expected, strict=True):
        # A step: real numbers are rounded once, where TFLite rounds a factor, too.
        assert np.abs(result.astype(int) - wanted).max() <= 1


def test_a_model_may_compute_in_float32(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(content_of(mlp(), tf.int8))
    graph = convert(load(path, LoadOptions(integer=False)).trace)
    assert "Dense" in ops(graph)
    assert {port.value.dtype for port in graph.inputs} == {ir.DType.F32}


def test_several_examples_of_a_call(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(content_of(cnn(), tf.int8))
    graph = convert(load(path, LoadOptions()).trace)
    images = np.random.default_rng(4).integers(-128, 128, (3, 12, 12, 3)).astype(np.int8)
    name = graph.inputs[0].name
    (together,) = interpret(graph, {name: images}).values()
    alone = [next(iter(interpret(graph, {name: image[None]}).values())) for image in images]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    assert math.prod(together.shape) == 30
