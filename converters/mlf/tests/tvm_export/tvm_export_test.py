"""Current TVM: exported archives become crates that compute what the model's own runtime computes.

ONNX against onnxruntime, TFLite against TFLite's interpreter, Keras models against Keras, other
SavedModels against TensorFlow. Floats within 1e-5 + 1e-5 * |expected|; int8 within one step, since
TFLite rounds in fixed point.

Run with: tools/bazel test //converters/mlf/tests/tvm_export:tvm_export_test
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.mlf.convert import Request, convert
from converters.mlf.tests.build import build, run_rust
from converters.mlf.tvm_export_lower import load_model, plan_module
from converters.mlf.tvm_export_plan import archive_files, archive_tar
from converters.mlf.tvm_export_tensorflow import fixed_batch
from tools.codegen.conversion import UnsupportedError, UsageError

keras: Any = importlib.import_module("keras")
tensorflow: Any = importlib.import_module("tensorflow")
lite = tensorflow.lite
onnx: Any = importlib.import_module("onnx")
onnxruntime: Any = importlib.import_module("onnxruntime")
helper = onnx.helper
RNG = np.random.default_rng(7)


def tensor(name: str, values: np.ndarray) -> Any:
    """Returns an ONNX initializer."""
    return onnx.numpy_helper.from_array(values, name)


def save(path: Path, nodes: list[Any], inputs: Any, outputs: Any, weights: list[Any]) -> None:
    """Writes a checked ONNX model of float inputs and outputs."""

    def infos(items: Any) -> list[Any]:
        kind = onnx.TensorProto.FLOAT
        return [helper.make_tensor_value_info(n, kind, s) for n, s in items]

    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs), weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def weights(*shape: int) -> np.ndarray:
    """Returns reproducible random float32 values."""
    return (RNG.standard_normal(shape) * 0.3).astype(np.float32)


def mlp(path: Path) -> None:
    """Dense, relu, dense, softmax."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"], axis=1),
    ]
    values = {"w1": weights(8, 16), "b1": weights(16), "w2": weights(16, 4), "b2": weights(4)}
    items = [tensor(n, v) for n, v in values.items()]
    save(path, nodes, [("x", [1, 8])], [("y", [1, 4])], items)


def conv(path: Path) -> None:
    """Convolution, pooling, reshape, dense; two outputs."""
    nodes = [
        helper.make_node("Conv", ["x:0", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    items = [tensor("k", weights(4, 3, 3, 3)), tensor("w", weights(64, 5))]
    save(path, nodes, [("x:0", [1, 3, 8, 8])], [("y", [1, 5]), ("f", [1, 64])], items)


def names(path: Path) -> None:
    """Names that are not C's: slashes, blanks, digits, keywords, and two that become one."""
    nodes = [
        helper.make_node("Add", ["model/x", "my input"], ["h/1"]),
        helper.make_node("Mul", ["int", "1x"], ["float"]),
        helper.make_node("Sub", ["model/x", "model_x"], ["out:0"]),
        helper.make_node("Relu", ["h/1"], ["out/0"]),
        helper.make_node("Add", ["h/1", "linux"], ["y"]),
    ]
    inputs = ["model/x", "my input", "int", "1x", "model_x", "linux"]
    outputs = ["float", "out:0", "out/0", "y"]
    save(path, nodes, [(n, [1, 8]) for n in inputs], [(n, [1, 8]) for n in outputs], [])


def int8_qdq(path: Path) -> None:
    """A dense layer between quantize and dequantize, as quantizers write it."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "z"], ["qx"]),
        helper.make_node("DequantizeLinear", ["qx", "sx", "z"], ["dx"]),
        helper.make_node("DequantizeLinear", ["qw", "sw", "z"], ["dw"]),
        helper.make_node("MatMul", ["dx", "dw"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "sy", "z"], ["qy"]),
        helper.make_node("DequantizeLinear", ["qy", "sy", "z"], ["y"]),
    ]
    items = [
        tensor("sx", np.array(0.05, np.float32)),
        tensor("sw", np.array(0.02, np.float32)),
        tensor("sy", np.array(0.125, np.float32)),
        tensor("z", np.array(0, np.int8)),
        tensor("qw", RNG.integers(-127, 128, (8, 4)).astype(np.int8)),
    ]
    save(path, nodes, [("x", [1, 8])], [("y", [1, 4])], items)


def check(
    path: Path,
    feeds: list[np.ndarray],
    wanted: list[np.ndarray],
    signature: str = "serving_default",
) -> None:
    """Exports a model, converts and builds it, and compares one run with `wanted`."""
    folder = path.parent
    plan = plan_module(load_model(path, signature), "net")
    files = archive_files(plan)
    assert archive_tar(files) == archive_tar(files)
    (folder / "net.tar").write_bytes(archive_tar(files))
    golden: Mapping[str, np.ndarray] = {
        f"net_input_{t.name}": v for t, v in zip(plan.inputs, feeds, strict=True)
    } | {f"net_output_{t.name}": v for t, v in zip(plan.outputs, wanted, strict=True)}
    np.savez(folder / "golden.npz", allow_pickle=False, **golden)
    result = convert(Request(mlf=folder / "net.tar", golden=folder / "golden.npz"))
    built = build(result, folder / "crate")
    test = built.folder / "tests" / "golden.rs"
    if wanted[0].dtype == np.int8:
        exact = 'assert_eq!(got, want, "element {index}");'
        close = 'assert!(got.abs_diff(want) <= 1, "element {index}: {got}, expected {want}");'
        text = test.read_text(encoding="utf-8")
        assert exact in text
        test.write_text(text.replace(exact, close), encoding="utf-8")
    assert "1 passed" in run_rust(built, test, test=True)


@pytest.mark.parametrize("make", [mlp, conv, int8_qdq, names])
def test_onnx_equals_onnxruntime(make: Any, tmp_path: Path) -> None:
    """Archive, crate and run give what onnxruntime gives."""
    path = tmp_path / "model.onnx"
    make(path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {i.name: weights(*i.shape) * 4 for i in session.get_inputs()}
    check(path, list(feeds.values()), session.run(None, feeds))


def keras_mlp() -> Any:
    """Dense, relu, dense, softmax."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8,), name="x"),
            layers.Dense(16, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


def keras_conv() -> Any:
    """Convolution, pooling, dense; its `Flatten` needs the batch size at run time."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 3), name="x"),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )


def to_tflite(model: Any, int8: bool) -> bytes:
    """Converts with TFLite's converter; int8 is calibrated with random data and int8 throughout."""
    converter = lite.TFLiteConverter.from_keras_model(model)
    if int8:
        shape = (1, *model.inputs[0].shape[1:])
        samples = [[RNG.standard_normal(shape).astype(np.float32)] for _ in range(50)]
        converter.optimizations = [lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: iter(samples)
        converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tensorflow.int8
        converter.inference_output_type = tensorflow.int8
    return bytes(converter.convert())


@pytest.mark.parametrize("int8", [False, True], ids=["float32", "int8"])
@pytest.mark.parametrize("make", [keras_mlp, keras_conv])
def test_tflite_equals_its_interpreter(make: Any, int8: bool, tmp_path: Path) -> None:
    """Archive, crate and run give what TFLite's reference kernels give."""
    keras.utils.set_random_seed(11)
    content = to_tflite(fixed_batch(make()), int8)
    interpreter = lite.Interpreter(
        model_content=content,
        experimental_op_resolver_type=lite.experimental.OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    shape = tuple(source["shape"])
    real = RNG.standard_normal(shape)
    if int8:
        scale, zero = source["quantization"]
        feed = np.clip(np.round(real / scale) + zero, -128, 127).astype(np.int8)
    else:
        feed = real.astype(np.float32)
    interpreter.set_tensor(source["index"], feed)
    interpreter.invoke()
    wanted = interpreter.get_tensor(result["index"])
    assert len(np.unique(wanted)) > 3, wanted
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    check(path, [feed], [wanted])


@pytest.mark.parametrize("name", ["model.keras", "model.h5", "saved_model"])
@pytest.mark.parametrize("make", [keras_mlp, keras_conv])
def test_a_saved_model_equals_keras(make: Any, name: str, tmp_path: Path) -> None:
    """A Keras file or an exported SavedModel of any batch size gives what Keras gives."""
    keras.utils.set_random_seed(12)
    model = make()
    path = tmp_path / name
    if path.suffix:
        model.save(str(path))
    else:
        model.export(str(path), verbose=False)
    feed = RNG.standard_normal((1, *model.inputs[0].shape[1:])).astype(np.float32)
    check(path, [feed], [np.asarray(model(feed))])


def save_two_signatures(path: Path) -> Any:
    """Saves a model that Keras has no part in; returns its signature `mix`.

    `mix` has two inputs and two outputs and any batch size; `grow` takes rows of any length.
    """
    module = tensorflow.Module()
    module.weight = tensorflow.Variable(weights(6, 4))

    def mix(left: Any, right: Any) -> dict[str, Any]:
        joined = tensorflow.concat([left, right], axis=1)
        product = tensorflow.linalg.matmul(joined, module.weight)
        return {"score": tensorflow.nn.tanh(product), "joined": joined}

    def grow(left: Any) -> dict[str, Any]:
        return {"sum": tensorflow.reduce_sum(left, axis=1)}

    def spec(size: int | None, name: str) -> Any:
        return tensorflow.TensorSpec([None, size], tensorflow.float32, name)

    signatures = {
        "mix": tensorflow.function(mix, [spec(4, "left"), spec(2, "right")]),
        "grow": tensorflow.function(grow, [spec(None, "left")]),
    }
    tensorflow.saved_model.save(module, str(path), signatures)
    return mix


def test_a_signature_equals_tensorflow(tmp_path: Path) -> None:
    """The signature that is named becomes the model."""
    path = tmp_path / "saved_model"
    mix = save_two_signatures(path)
    left, right = weights(1, 4), weights(1, 2)
    wanted = {k: v.numpy() for k, v in mix(left, right).items()}
    check(path, [left, right], [wanted[name] for name in sorted(wanted)], "mix")


def test_a_signature_that_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    """Errors name the signatures that there are, and the input of unknown size."""
    path = tmp_path / "saved_model"
    save_two_signatures(path)
    with pytest.raises(UsageError, match="'serving_default'; there are: grow, mix"):
        load_model(path)
    with pytest.raises(UnsupportedError, match=r"input left: shape \(None, None\) is not static"):
        load_model(path, "grow")
    with pytest.raises(UsageError, match="nor the folder of a SavedModel"):
        load_model(tmp_path)


def test_a_dynamic_shape_is_refused(tmp_path: Path) -> None:
    """Error and advice name the file and the batch size."""
    path = tmp_path / "model.tflite"
    path.write_bytes(to_tflite(keras_conv(), False))
    with pytest.raises(UnsupportedError, match="batch size"):
        plan_module(load_model(path), "net")


def test_outputs_keep_their_names(tmp_path: Path) -> None:
    """As far as C has them; a Keras model's are those of its signature."""
    path = tmp_path / "model.onnx"
    names(path)
    plan = plan_module(load_model(path), "net")
    assert [t.name for t in plan.outputs] == ["float_", "out_0", "out_0_", "y"]
    assert [t.name for t in plan.inputs] == [
        "model_x", "my_input", "int_", "input_1x", "model_x_", "linux_",
    ]  # fmt: skip
    saved = tmp_path / "saved_model"
    save_two_signatures(saved)
    plan = plan_module(load_model(saved, "mix"), "net")
    assert [t.name for t in plan.inputs] == ["left", "right"]
    assert [t.name for t in plan.outputs] == ["joined", "score"]


def dynamic(path: Path) -> None:
    """A sequence of any length, as exporters of attention write it."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"]),
    ]
    save(path, nodes, [("x", [1, "n", 8])], [("y", [1, "n", "n"])], [])


def dynamic_inside(path: Path) -> None:
    """Static inputs; how many elements are not 0, only a run knows."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["i"]),
        helper.make_node("Cast", ["i"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    save(path, nodes, [("x", [1, 8])], [("y", [2, "n"])], [])


def missing_operator(path: Path) -> None:
    """TVM's frontend has no LSTM."""
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)]
    items = [tensor("w", weights(1, 16, 8)), tensor("r", weights(1, 16, 4))]
    save(path, nodes, [("x", [3, 1, 8])], [("y", [3, 1, 1, 4])], items)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (dynamic, r"input 'x': shape \(1, n, 8\) is not static \(shapes have to be static"),
        (dynamic_inside, r"model\.onnx: .*static"),
        (missing_operator, r"OpNotImplemented: .*LSTM \(TVM has no such operator"),
    ],
)
def test_what_tvm_cannot_compile_is_one_line(make: Any, message: str, tmp_path: Path) -> None:
    """A typed error, whatever TVM raises."""
    path = tmp_path / "model.onnx"
    make(path)
    with pytest.raises(UnsupportedError, match=message) as caught:
        plan_module(load_model(path), "net")
    assert str(caught.value).count("\n") == 0


def test_the_program(tmp_path: Path) -> None:
    """The command writes the archive; a missing file is an error on stderr."""
    path = tmp_path / "model.onnx"
    mlp(path)
    program = Path(__file__).parents[2] / "tvm_export.py"

    def run(model: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(program), f"--model={model}", f"--out={tmp_path}/m.tar"]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)

    done = run(path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.tar").stat().st_size > 0
    dynamic(path)
    refused = run(path)
    assert refused.returncode == 6 and "Traceback" not in refused.stderr, refused.stderr
    assert len(refused.stderr.splitlines()) == 2
    missing = run(tmp_path / "none.onnx")
    assert missing.returncode == 2
    assert "none.onnx" in missing.stderr
