"""Operators of the user's own: converted, and computed by crates that call their Rust functions."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnx
import pytest
from flatbuffers import flexbuffers
from onnx import TensorProto, helper

from converters.tf import ir
from converters.tf.cli.arguments import parse_custom_ops
from converters.tf.emit.crate import Features, emit_crate
from converters.tf.emit.options import Options, Profile, RuntimeMode
from converters.tf.emit.single_file import crate_root
from converters.tf.errors import FeaturesError
from converters.tf.ir.expressions import unknown
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import TOLERANCE, difference
from converters.tf.tests.crates.crates import compile_and_test, runtime_flags, rustfmt, write
from converters.tf.tests.open_crates import Model, run
from converters.tf.tests.tflite_files import Operator, Subgraph, Tensor, constant, file_of
from converters.tf.tf2rust import Request, graph_of
from converters.tf.tf2rust import run as converted
from tools.codegen.conversion import ConversionError, UnsupportedError, UsageError

# Both results of one operator: the elements within a limit, and what was cut off of each row.
_CLIP = """\
import numpy as np

RUST = "soft_clip.rs"
ARGUMENTS = ("limit", "axes", "way")


def shapes(operands, attributes):
    x, scale = operands
    return [x, (x[0], 1, x[2])]


def compute(operands, attributes):
    x, scale = operands
    limit = np.float32(attributes["limit"])
    clipped = np.clip(x * scale, -limit, limit)
    return [clipped, np.abs(x * scale - clipped).sum(1, keepdims=True)]
"""
_RUST = """\
//! Clips elements.

type Operand<'a> = (&'a [f32], &'a [usize]);

/// Clips `x * scale`, and sums what was cut off along axis 1.
pub fn soft_clip(
    (x, shape): Operand<'_>,
    (scale, _): Operand<'_>,
    limit: f32,
    axes: &[i64],
    way: &str,
    (clipped, _): (&mut [f32], &[usize]),
    (cut, _): (&mut [f32], &[usize]),
) -> Result<(), &'static str> {
    if way != "sum \\"of\\" {}" || axes != [1, -1] {
        return Err("the way that it knows");
    }
    let &[batch, rows, columns] = shape else {
        return Err("three axes");
    };
    if x.iter().any(|x| x.is_nan()) {
        return Err("numbers only");
    }
    cut.fill(0.0);
    for b in 0..batch {
        for row in 0..rows {
            for column in 0..columns {
                let at = (b * rows + row) * columns + column;
                let y = x[at] * scale[column];
                clipped[at] = y.clamp(-limit, limit);
                cut[b * columns + column] += (y - clipped[at]).abs();
            }
        }
    }
    Ok(())
}
"""
_ATTRIBUTES: dict[str, Any] = {"limit": 0.75, "axes": [1, -1], "way": 'sum "of" {}'}
_NAN = """
#[test]
fn what_the_operator_refuses_is_an_error() {
    let error = model().predict(Inputs { x: &[f32::NAN; 12] }).unwrap_err().to_string();
    assert_eq!(error, "layer clip: mine::SoftClip: expected numbers only");
}
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """The module of an operator, with its Rust file beside it."""
    (tmp_path / "soft_clip.rs").write_text(_RUST)
    path = tmp_path / "clip.py"
    path.write_text(_CLIP)
    return path


def _onnx(
    folder: Path,
    shape: Sequence[int | str] = ("batch", 4, 3),
    attributes: dict[str, Any] | None = None,
) -> Path:
    given = _ATTRIBUTES if attributes is None else attributes
    scale = np.array([1.0, -0.5, 2.0], np.float32)
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"], "relu"),
        helper.make_node("Sub", ["x", "positive"], ["negative"], "sub"),
        helper.make_node(
            "SoftClip", ["negative", "scale"], ["y", "cut"], "clip", domain="mine", **given
        ),
        helper.make_node("Tanh", ["cut"], ["z"], "tanh"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "z")],
        [onnx.numpy_helper.from_array(scale, "scale")],
    )
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), path)
    return path


def _options(module: Path, name: str = "mine::SoftClip") -> LoadOptions:
    return LoadOptions(custom_ops=((name, module),))


def _expected(x: ir.Array) -> dict[str, ir.Array]:
    scaled = np.minimum(x, 0) * np.array([1.0, -0.5, 2.0], np.float32)
    clipped = np.clip(scaled, -0.75, 0.75)
    cut = np.abs(scaled - clipped).sum(1, keepdims=True)
    return {"y": clipped, "z": np.tanh(cut)}


def test_an_operator_of_an_onnx_file(module: Path, tmp_path: Path) -> None:
    loaded = load(_onnx(tmp_path), _options(module))
    graph = graph_of(loaded)
    x = np.random.default_rng(3).normal(size=(5, 4, 3)).astype(np.float32) * 3
    for found in (interpret(graph, {"x": x}), loaded.predict({"x": x})):
        for name, data in _expected(x).items():
            assert difference(found[name], data) <= TOLERANCE, name


@pytest.mark.parametrize("profile", Profile)
def test_a_crate_calls_the_function(profile: Profile, module: Path, tmp_path: Path) -> None:
    graph = graph_of(load(_onnx(tmp_path), _options(module)))
    options = Options("net", "net.onnx", profile=profile, runtime=RuntimeMode.CRATE)
    x = np.random.default_rng(3).normal(size=(5, 4, 3)).astype(np.float32) * 3
    files = emit_crate(graph, options, Features({"x": x}, _expected(x)), rustfmt())
    assert files["src/custom/soft_clip.rs"].decode() == _RUST
    if profile is Profile.STD:
        files["tests/golden.rs"] += _NAN.encode()
    write(files, tmp_path / "crate")
    assert "test result: ok" in compile_and_test(tmp_path / "crate", "net", runtime_flags())


def test_a_crate_in_one_file(module: Path, tmp_path: Path) -> None:
    """As the rule of Bazel has it."""
    graph = graph_of(load(_onnx(tmp_path), _options(module)))
    x = np.random.default_rng(3).normal(size=(2, 4, 3)).astype(np.float32)
    options = Options("net", "net.onnx", runtime=RuntimeMode.CRATE)
    files = emit_crate(graph, options, Features({"x": x}, _expected(x)), rustfmt())
    root = crate_root(files).encode()
    kept = {path: data for path, data in files.items() if not path.startswith("src/")}
    write({**kept, "src/lib.rs": root}, tmp_path / "crate")
    assert "test result: ok" in compile_and_test(tmp_path / "crate", "net", runtime_flags())


def test_open_dimensions_reach_the_function(module: Path, tmp_path: Path) -> None:
    path = _onnx(tmp_path, ("batch", "steps", 3))
    graph = graph_of(load(path, _options(module)))
    random = np.random.default_rng(3)
    inputs = [random.normal(size=(2, n, 3)).astype(np.float32) * 3 for n in (4, 1, 33)]
    cases = [Features({"x": x}, _expected(x)) for x in inputs]
    assert "1 passed" in run([Model("net", graph, cases)], tmp_path, TOLERANCE)


def test_a_layer_of_keras_that_nothing_defines(module: Path, tmp_path: Path) -> None:
    @keras.saving.register_keras_serializable("mine")
    class SoftClip(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types.
        def call(self, x: Any, scale: Any) -> Any:
            return keras.ops.clip(x * scale, -0.75, 0.75), keras.ops.sum(x, 1, keepdims=True)

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), **_ATTRIBUTES}

    x, scale = keras.Input((4, 3), name="x"), keras.Input(batch_shape=(3,), name="scale")
    clipped, cut = SoftClip(name="clip")(x, scale)
    model = keras.Model([x, scale], {"y": clipped, "z": keras.layers.Activation("tanh")(cut)})
    for suffix in (".keras", ".h5"):
        model.save(tmp_path / f"net{suffix}")
    for key in ("mine>SoftClip",):
        del keras.saving.get_custom_objects()[key]
    given = np.random.default_rng(3).normal(size=(5, 4, 3)).astype(np.float32) * 3
    arrays = {"x": np.minimum(given, 0), "scale": np.array([1.0, -0.5, 2.0], np.float32)}
    for suffix in (".keras", ".h5"):
        path = tmp_path / f"net{suffix}"
        with pytest.raises(ConversionError, match="SoftClip"):
            load(path, LoadOptions())
        loaded = load(path, _options(module))
        found = interpret(convert(loaded.trace), arrays)
        for name, data in _expected(given).items():
            assert difference(found[name], data) <= TOLERANCE, name


def test_layers_of_keras_are_its_own(module: Path, tmp_path: Path) -> None:
    """`mine::Dense` is no other layer than `mine>Dense`."""
    x = keras.Input((4,))
    path = tmp_path / "net.h5"
    keras.Model(x, keras.layers.Dense(2)(x)).save(path)
    with pytest.raises(UsageError, match="--custom_op Dense: tf2rust converts this layer itself"):
        load(path, _options(module, "Dense"))
    with pytest.raises(UsageError, match=r"--custom_op mine::Dense: .* has no node"):
        load(path, _options(module, "mine::Dense"))


def test_the_whole_conversion(module: Path, tmp_path: Path) -> None:
    options = Options("net", "net.onnx", runtime=RuntimeMode.CRATE)
    request = Request(_onnx(tmp_path), options, _options(module), rustfmt=rustfmt())
    files = converted(request).files
    prefix = "rust_generated_code/"
    crate = {path.removeprefix(prefix): data for path, data in files.items() if prefix in path}
    write(crate, tmp_path / "crate")
    assert "test result: ok" in compile_and_test(tmp_path / "crate", "net", runtime_flags())


def test_a_result_that_nobody_reads_has_a_place(module: Path, tmp_path: Path) -> None:
    path = _onnx(tmp_path)
    model = onnx.load(path)
    del model.graph.output[0]
    onnx.save(model, path)
    graph = graph_of(load(path, _options(module)))
    x = np.random.default_rng(3).normal(size=(2, 4, 3)).astype(np.float32)
    options = Options("net", "net.onnx", runtime=RuntimeMode.CRATE)
    features = Features({"x": x}, {"z": _expected(x)["z"]})
    write(emit_crate(graph, options, features, rustfmt()), tmp_path / "crate")
    assert "test result: ok" in compile_and_test(tmp_path / "crate", "net", runtime_flags())


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("import numpy", "import numpi", "it fails: ModuleNotFoundError"),
        ("def shapes", "def shape", "it has no function shapes"),
        ('RUST = "soft_clip.rs"', "", "RUST is None, expected the name of a Rust file"),
        ('"soft_clip.rs"', '"none.rs"', "RUST is 'none.rs', expected the name"),
        ('RUST = "', 'FUNCTION = "other"\nRUST = "', "has no `pub fn other`"),
        ('RUST = "', 'FUNCTION = "a(b)"\nRUST = "', r"FUNCTION is 'a\(b\)', no name of a Rust"),
        ("ARGUMENTS = (", "ARGUMENTS = 3, (", "ARGUMENTS is"),
    ],
)
def test_modules_that_lack_something(
    old: str, new: str, what: str, module: Path, tmp_path: Path
) -> None:
    module.write_text(_CLIP.replace(old, new, 1))
    with pytest.raises(UsageError, match=what):
        load(_onnx(tmp_path), _options(module))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("x[0], 1", "x[0], -1", r"shapes\(\) of mine::SoftClip gives the size -1"),
        ("x[0], 1", "x[0] + 1, 1", r"shapes\(\) of mine::SoftClip fails: TypeError"),
        ("x, scale = operands", "x, = operands", r"shapes\(\) of mine::SoftClip fails: ValueError"),
        ("return [x, (x[0], 1, x[2])]", "return []", "gives no shape"),
        ('"limit", "axes"', '"limits"', "has no attribute limits; it has"),
    ],
)
def test_rules_that_fail(old: str, new: str, what: str, module: Path, tmp_path: Path) -> None:
    module.write_text(_CLIP.replace(old, new, 1))
    with pytest.raises(UnsupportedError, match=what):
        load(_onnx(tmp_path), _options(module))


def test_types_that_the_module_says(module: Path, tmp_path: Path) -> None:
    types = "def dtypes(operands, attributes):\n    return ['int32', 'int32']\n"
    module.write_text(_CLIP + types)
    model = onnx.load(_onnx(tmp_path))
    del model.graph.node[3], model.graph.output[1]
    onnx.save(model, tmp_path / "net.onnx")
    graph = graph_of(load(tmp_path / "net.onnx", _options(module)))
    assert graph.outputs[0].value.dtype is ir.DType.I32
    module.write_text(_CLIP + types.replace("'int32']", "'float32']"))
    with pytest.raises(UnsupportedError, match="expected one type for all 2 shapes"):
        load(tmp_path / "net.onnx", _options(module))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("return [clipped, ", "raise OSError('no')\n    return [", "fails: OSError: no"),
        ("keepdims=True", "keepdims=False", r"gives the shapes .*, and shapes\(\)"),
    ],
)
def test_meanings_that_fail(old: str, new: str, what: str, module: Path, tmp_path: Path) -> None:
    module.write_text(_CLIP.replace(old, new, 1))
    request = Request(_onnx(tmp_path), Options("net", "net.onnx"), _options(module))
    with pytest.raises(FeaturesError, match=what):
        converted(request)


def test_names_that_the_model_has_not(module: Path, tmp_path: Path) -> None:
    path = _onnx(tmp_path)
    with pytest.raises(UnsupportedError, match=r"clip \(mine.SoftClip\)"):
        load(path, LoadOptions())
    both = LoadOptions(custom_ops=(("mine::SoftClip", module), ("mine::Other", module)))
    with pytest.raises(UsageError, match=r"--custom_op mine::Other: .* has no node"):
        load(path, both)
    twice = LoadOptions(custom_ops=(("mine::SoftClip", module), ("mine::SoftClip", module)))
    with pytest.raises(UsageError, match="has a module already"):
        load(path, twice)
    for name in ("Relu", "ai.onnx::Relu"):
        with pytest.raises(UsageError, match="converts this operator itself"):
            load(path, _options(module, name))


def test_constants_are_computed_by_the_converter(module: Path, tmp_path: Path) -> None:
    model = onnx.load(_onnx(tmp_path))
    data = np.random.default_rng(5).normal(size=(2, 4, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.minimum(data, 0), "table"))
    model.graph.node[2].input[0] = "table"
    onnx.save(model, tmp_path / "net.onnx")
    graph = graph_of(load(tmp_path / "net.onnx", _options(module)))
    assert not any(isinstance(node.op, ir.Custom) for node in graph.all_nodes())
    for port in graph.outputs:
        assert port.value.data is not None
        assert difference(port.value.data, _expected(data)[port.name]) <= TOLERANCE


def test_two_files_of_one_name(module: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for file in (module, module.with_name("soft_clip.rs")):
        shutil.copy(file, other)
    both = (("mine::SoftClip", module), ("mine::Other", other / "clip.py"))
    with pytest.raises(UsageError, match=r"soft_clip.rs is also the name of another file"):
        load(_onnx(tmp_path), LoadOptions(custom_ops=both))


def test_the_flag() -> None:
    assert parse_custom_ops(["a::B=c=d.py"]) == (("a::B", Path("c=d.py")),)
    for wrong in ("a::B", "=c.py", "a::B="):
        with pytest.raises(UsageError, match=r"expected domain::Name=module\.py"):
            parse_custom_ops([wrong])


def test_open_sizes_are_numbers_to_a_rule(module: Path, tmp_path: Path) -> None:
    rule = "    return [x, (x[0], x[1] // 2 + 1, x[2])]\n"
    module.write_text(_CLIP.replace("    return [x, (x[0], 1, x[2])]\n", rule))
    loaded = load(_onnx(tmp_path, ("batch", "steps", 3)), _options(module))
    shape = convert(loaded.trace).outputs[1].value.shape
    assert shape == (ir.Batch(), unknown("steps") // 2 + 1, 3)


def _tflite(folder: Path, options: bytes | None = None) -> Path:
    """Returns a file with an operator that TFLite does not know."""
    scale = np.array([1.0, -0.5, 2.0], np.float32)
    tensors = [
        Tensor((1, 4, 3), name="x"),
        constant(scale),
        Tensor((1, 4, 3), name="negative"),
        Tensor((1, 4, 3), name="y"),
        Tensor((1, 1, 3), name="cut"),
        Tensor((1, 1, 3), name="z"),
    ]
    zero = constant(np.zeros((), np.float32))
    own = flexbuffers.Dumps(_ATTRIBUTES) if options is None else options
    operators = [
        Operator("MINIMUM", [0, 6], [2]),
        Operator("SoftClip", [2, 1], [3, 4], custom=bytes(own)),
        Operator("TANH", [4], [5]),
    ]
    path = folder / "net.tflite"
    path.write_bytes(file_of([Subgraph([*tensors, zero], operators, [0], [3, 5])]))
    return path


def test_an_operator_of_a_tflite_file(module: Path, tmp_path: Path) -> None:
    loaded = load(_tflite(tmp_path), _options(module, "SoftClip"))
    graph = graph_of(loaded)
    (port,) = graph.inputs
    x = np.random.default_rng(3).normal(size=(5, 4, 3)).astype(np.float32) * 3
    for found in (interpret(graph, {port.name: x}), loaded.predict({port.name: x})):
        for data, expected in zip(found.values(), _expected(x).values(), strict=True):
            assert difference(data, expected) <= TOLERANCE
    assert sum(isinstance(node.op, ir.Custom) for node in graph.nodes) == 1


def test_options_that_are_no_map(module: Path, tmp_path: Path) -> None:
    """The module gets their bytes."""
    source = module.read_text()
    module.write_text(source.replace('("limit", "axes", "way")', '("options",)'))
    graph = graph_of(load(_tflite(tmp_path, b"\x07\x00\xff"), _options(module, "SoftClip")))
    (own,) = (node.op.own for node in graph.nodes if isinstance(node.op, ir.Custom))
    assert own.arguments == ((7, 0, 255),)


def test_a_tflite_operator_is_refused(module: Path, tmp_path: Path) -> None:
    path = _tflite(tmp_path)
    with pytest.raises(UnsupportedError, match="SoftClip; --custom_op takes one of your own"):
        graph_of(load(path, LoadOptions()))
    with pytest.raises(UsageError, match="has no node of this operator"):
        load(path, LoadOptions(custom_ops=(("SoftClip", module), ("Other", module))))
    with pytest.raises(UnsupportedError, match="no attribute limit"):
        graph_of(load(_tflite(tmp_path, flexbuffers.Dumps({"a": 1})), _options(module, "SoftClip")))
