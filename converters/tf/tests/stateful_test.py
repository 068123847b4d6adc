"""Models that carry values from call to call, and the steps of their crates."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf import ir
from converters.tf.emit.first_values import MOST, first_values
from converters.tf.emit.options import Options, Profile, RuntimeMode
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.shapes import FixedShapes
from converters.tf.lower.convert import convert
from converters.tf.lower.trace import Loaded
from converters.tf.tests.checks import TOLERANCE, difference, randomize
from converters.tf.tests.crates.crates import compile_and_test, runtime_flags, rustfmt, write
from converters.tf.tests.tflite_files import Operator, Subgraph, Tensor, constant, file_of, single
from converters.tf.tests.tflite_ops import CASES, Case, lstms
from converters.tf.tf2rust import Request, run
from tools.codegen.conversion import UnsupportedError, UsageError

_STATEFUL = LoadOptions(stateful=True)
_STEPS = 5
_OK = "test result: ok"


def _steps(loaded: Loaded, inputs: Sequence[ir.Array]) -> list[ir.Array]:
    """Returns the first output of every step, of a model with one input besides its states."""
    graph = convert(loaded.trace)
    name = next(p.name for p in graph.inputs if p.name not in {s.given for s in loaded.states})
    state: Mapping[str, ir.Array] = {s.given: s.first for s in loaded.states}
    results = []
    for x in inputs:
        arrays = {name: x, **state}
        found = interpret(graph, arrays)
        known = loaded.predict(arrays)
        assert found.keys() == known.keys()
        for key, value in known.items():
            assert difference(found[key], value) <= TOLERANCE, key
        state = {s.given: found[s.following] for s in loaded.states}
        results.append(found[graph.outputs[0].name])
    return results


def _frames(shape: Sequence[int], count: int = _STEPS) -> list[ir.Array]:
    random = np.random.default_rng(4)
    return [random.normal(size=shape).astype(np.float32) for _ in range(count)]


def _equal(found: Sequence[ir.Array], expected: Sequence[ir.Array]) -> None:
    for step, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert difference(a, np.asarray(b)) <= TOLERANCE, step


_KINDS: dict[str, Callable[..., Any]] = {
    "lstm": keras.layers.LSTM,
    "gru": keras.layers.GRU,
    "simple": keras.layers.SimpleRNN,
}


def _recurrent(kind: str) -> Any:
    x = keras.Input(batch_shape=(2, 3, 4), name="x")
    y = _KINDS[kind](5, stateful=True, return_sequences=True, name="first")(x)
    y = _KINDS[kind](3, stateful=True, name="second")(y)
    model = keras.Model(x, keras.layers.Dense(2, name="head")(y), name=kind)
    randomize(model)
    for layer in model.layers:
        if getattr(layer, "stateful", False):
            layer.reset_states()
    return model


@pytest.mark.parametrize("kind", _KINDS)
def test_recurrent_layers_of_keras(tmp_path: Path, kind: str) -> None:
    model = _recurrent(kind)
    model.save(tmp_path / "m.keras")
    frames = _frames((2, 3, 4))
    expected = [np.asarray(model(x)) for x in frames]
    assert difference(np.asarray(_recurrent(kind)(frames[1])), expected[1]) > 0.01
    loaded = load(tmp_path / "m.keras", _STATEFUL)
    assert len(loaded.states) == (4 if kind == "lstm" else 2)
    assert loaded.notes == ()
    _equal(_steps(loaded, frames), expected)


def test_an_exported_model_calls_what_writes_its_variables(tmp_path: Path) -> None:
    model = _recurrent("gru")
    model.export(tmp_path / "m", verbose=False)
    frames = _frames((2, 3, 4))
    expected = [np.asarray(model(x)) for x in frames]
    with pytest.raises(UnsupportedError, match=r"2 examples in each call, fix .* by --batch 2"):
        convert(load(tmp_path / "m", _STATEFUL).trace)
    options = LoadOptions(FixedShapes(batch=2), stateful=True)
    loaded = load(tmp_path / "m", options)
    assert len(loaded.states) == 2
    _equal(_steps(loaded, frames), expected)


def _function(call: Callable[[Any], Any], size: int, dtype: Any = tf.float32) -> Any:
    return tf.function(call, input_signature=[tf.TensorSpec([size], dtype, "x")])


def _mean() -> Any:
    """Returns a running mean that is written twice in a call, by a function of its own."""
    module = tf.Module()
    module.mean = tf.Variable([1.0, -2.0, 0.5], name="mean")
    module.count = tf.Variable(3, name="count")
    module.calls = tf.Variable(0, name="calls")

    def move(x: Any) -> Any:
        module.mean.assign(0.5 * module.mean + x)
        before = tf.identity(module.mean)
        module.mean.assign_sub(0.1 * x)
        return before

    inner = tf.function(move)

    def call(x: Any) -> Any:
        module.calls.assign_add(1)
        y = module.mean * 2.0
        before = inner(x)
        module.count.assign_add(2)
        return {"y": y + before + module.mean * tf.cast(module.count, tf.float32)}

    module.call = _function(call, 3)
    return module


def test_what_a_function_writes_is_seen_after_it(tmp_path: Path) -> None:
    module = _mean()
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    loaded = load(tmp_path / "m", _STATEFUL)
    # Nothing reads `calls`.
    assert [s.given for s in loaded.states] == ["count", "mean"]
    assert [s.following for s in loaded.states] == ["count_next", "mean_next"]
    frames = _frames((3,))
    _equal(_steps(loaded, frames), [module.call(x)["y"] for x in frames])


def test_a_variable_that_changes_in_a_branch_is_refused(tmp_path: Path) -> None:
    module = tf.Module()
    module.last = tf.Variable([1.0], name="last")

    def call(x: Any) -> Any:
        y = x + module.last
        if tf.reduce_sum(x) > 0.0:
            module.last.assign(x)
        return {"y": y}

    module.call = _function(call, 1)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    with pytest.raises(UnsupportedError, match="variable last: it changes in a loop or a branch"):
        load(tmp_path / "m", _STATEFUL)


def test_a_model_without_states_has_none(tmp_path: Path) -> None:
    x = keras.Input((3,))
    keras.Model(x, keras.layers.Dense(2)(x)).save(tmp_path / "m.keras")
    with pytest.raises(UsageError, match=r"--stateful: .* carries no variable from call to call"):
        load(tmp_path / "m.keras", _STATEFUL)


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    module = tf.Module()
    module.x = tf.Variable([1.0], name="x")

    def call(x: Any) -> Any:
        y = x + module.x
        module.x.assign(y)
        return {"x_next": y}

    module.call = _function(call, 1)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    loaded = load(tmp_path / "m", _STATEFUL)
    assert [(s.given, s.following) for s in loaded.states] == [("x_2", "x_next_2")]
    assert [port.name for port in loaded.trace.inputs] == ["x", "x_2"]


class _Stream:
    """A TFLite interpreter that keeps its variables."""

    def __init__(self, content: bytes) -> None:
        kind = tf.lite.experimental.OpResolverType.BUILTIN_REF
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._interpreter = tf.lite.Interpreter(
                model_content=content, experimental_op_resolver_type=kind
            )
        self._interpreter.allocate_tensors()

    def __call__(self, x: ir.Array) -> Any:
        (given,) = self._interpreter.get_input_details()
        self._interpreter.set_tensor(given["index"], x)
        self._interpreter.invoke()
        return self._interpreter.get_tensor(self._interpreter.get_output_details()[0]["index"])


def _ring(dtype: str = "float32") -> bytes:
    """Returns a model that keeps the last elements and multiplies them."""
    options, once = schema.VarHandleOptionsT(), schema.CallOnceOptionsT()
    options.sharedName, once.initSubgraphIndex = "heard", 1
    handle = Tensor((), "resource", open=False)
    scaled: dict[str, Any] = {} if dtype == "float32" else {"scale": (0.1,), "zero": (5,)}

    def tensor(*shape: int) -> Tensor:
        return Tensor(shape, dtype, open=False, **scaled)

    random = np.random.default_rng(3)
    if dtype == "float32":
        kernel, bias = constant(random.normal(size=(3, 4))), constant([1.0, 0.0, -2.0])
        start = np.array([[0.5, -1.0, 2.0, 0.25]], np.float32)
    else:
        codes = random.integers(-90, 90, (3, 4)).astype(dtype)
        kernel = constant(codes, scale=(0.02,), zero=(0,))
        bias = constant(np.array([3, -700, 90], np.int32), scale=(0.002,), zero=(0,))
        start = np.array([[7, -8, 100, 4]], dtype)
    concatenation = schema.ConcatenationOptionsT()
    concatenation.axis = 1
    tensors = [tensor(1, 1), handle, tensor(1, 4), tensor(1, 5), tensor(1, 4)]
    tensors += [constant([0, 1]), constant([1, 5]), constant([1, 1]), kernel, bias, tensor(1, 3)]
    operators = [
        Operator("CALL_ONCE", [], [], once),
        Operator("VAR_HANDLE", [], [1], options),
        Operator("READ_VARIABLE", [1], [2]),
        Operator("CONCATENATION", [2, 0], [3], concatenation),
        Operator("STRIDED_SLICE", [3, 5, 6, 7], [4], schema.StridedSliceOptionsT()),
        Operator("ASSIGN_VARIABLE", [1, 4], []),
        Operator("FULLY_CONNECTED", [4, 8, 9], [10], schema.FullyConnectedOptionsT()),
    ]
    first = Subgraph(
        [handle, Tensor((1, 4), dtype, start, False, **scaled)],
        [Operator("VAR_HANDLE", [], [0], options), Operator("ASSIGN_VARIABLE", [0, 1], [])],
        [],
        [],
    )
    return file_of([Subgraph(tensors, operators, [0], [10]), first])


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_variables_of_tflite(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_ring(dtype))
    loaded = load(path, _STATEFUL)
    (state,) = loaded.states
    assert state.given == "heard"
    assert state.first.tolist() == [
        [0.5, -1.0, 2.0, 0.25] if dtype == "float32" else [7, -8, 100, 4]
    ]
    frames = _frames((1, 1), 7)
    if dtype == "int8":
        frames = [np.rint(x * 40).astype(np.int8) for x in frames]
    stream = _Stream(path.read_bytes())
    expected = [stream(x) for x in frames]
    found = _steps(loaded, frames)
    if dtype == "int8":
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    _equal(found, expected)


_STATES = {
    "SVDF": 1,
    "UNIDIRECTIONAL_SEQUENCE_RNN": 1,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": 2,
    "BIDIRECTIONAL_SEQUENCE_LSTM": 4,
}
_RECURRENT = [case for case in [*CASES, *lstms()] if case.kind in _STATES]


@pytest.mark.parametrize("case", _RECURRENT, ids=lambda case: str(case.kind).lower())
def test_states_of_tflites_recurrent_operators(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "m.tflite"
    results = [Tensor((1, 1), dtype) for dtype in case.results]
    content = single(case.kind, case.operands, results, case.options)
    path.write_bytes(content)
    (note,) = load(path, LoadOptions()).notes
    assert "TFLite carries them from call to call" in note
    shape = case.operands[0].shape if case.operands[0] is not None else ()
    frames = _frames(shape)
    stream = _Stream(content)
    expected = [stream(x) for x in frames]
    loaded = load(path, _STATEFUL)
    assert len(loaded.states) == _STATES[case.kind]
    _equal(_steps(loaded, frames), expected)


def _steps_of(units: int) -> list[Tensor]:
    """Returns the operands of a recurrent layer after its input; every state has one name."""
    random = np.random.default_rng(units)
    sizes = ((units, 3), (units, units), (units,))
    weights = [constant(random.normal(size=size)) for size in sizes]
    return [*weights, Tensor((1, units), open=False, variable=True, name="state")]


def _of_rnn() -> Any:
    options = schema.SequenceRNNOptionsT()
    options.fusedActivationFunction = 4
    return options


def test_states_of_one_name_are_told_apart(tmp_path: Path) -> None:
    tensors = [Tensor((1, 2, 3), open=False), *_steps_of(3), Tensor((1, 2, 3)), *_steps_of(3)]
    tensors += [Tensor((1, 2, 3))]
    operators = [
        Operator("UNIDIRECTIONAL_SEQUENCE_RNN", [0, 1, 2, 3, 4], [5], _of_rnn()),
        Operator("UNIDIRECTIONAL_SEQUENCE_RNN", [5, 6, 7, 8, 9], [10], _of_rnn()),
    ]
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of([Subgraph(tensors, operators, [0], [10])]))
    loaded = load(path, _STATEFUL)
    assert [state.given for state in loaded.states] == ["state", "state_2"]
    frames = _frames((1, 2, 3))
    stream = _Stream(path.read_bytes())
    _equal(_steps(loaded, frames), [stream(x) for x in frames])


def test_a_state_that_changes_in_a_branch_is_refused(tmp_path: Path) -> None:
    options = schema.IfOptionsT()
    options.thenSubgraphIndex, options.elseSubgraphIndex = 1, 2
    x, y = Tensor((1, 2, 3), open=False), Tensor((1, 2, 3), open=False)
    chosen = Subgraph(
        [constant(np.array([True])), x, y], [Operator("IF", [0, 1], [2], options)], [1], [2]
    )
    operator = Operator("UNIDIRECTIONAL_SEQUENCE_RNN", [0, 1, 2, 3, 4], [5], _of_rnn())
    then = Subgraph([x, *_steps_of(3), y], [operator], [0], [5])
    negated = Subgraph([x, y], [Operator("NEG", [0], [1], schema.NegOptionsT())], [0], [1])
    path = tmp_path / "m.tflite"
    path.write_bytes(file_of([chosen, then, negated]))
    (note,) = load(path, LoadOptions()).notes
    assert "variables state: TFLite carries them" in note
    with pytest.raises(UnsupportedError, match="a variable changes in a loop or branch"):
        convert(load(path, _STATEFUL).trace)


_CARRIES = """
#[test]
fn steps_are_those_of_the_model() {{
    let model = {type}::new().unwrap();
    let mut state = State::initial({batch});
    for (x, expected) in [{cases}] {{
        {body}
    }}
}}
"""
_STD = """let outputs = model.step(&mut state, StepInputs { x: &x }).unwrap();
        let found: &[f32] = &outputs.y;"""
_NO_STD = """let mut y = Y::new();
        let mut outputs = StepOutputs { y: &mut y };
        let workspace = &mut Workspace::new();
        model.step(&mut state, &StepInputs { x: &X(x) }, &mut outputs, workspace).unwrap();
        let found: &[f32] = &y.0;"""
_CLOSE = """
        let expected: [f32; 3] = expected;
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4), "{found:?}");"""


@pytest.mark.parametrize("profile", [Profile.STD, Profile.NO_STD])
def test_steps_of_a_crate(tmp_path: Path, profile: Profile) -> None:
    module = _mean()
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    options = Options("mean", "m", profile=profile, runtime=RuntimeMode.CRATE)
    request = Request(tmp_path / "m", options, load=_STATEFUL, rustfmt=rustfmt(), crate_only=True)
    files = run(request).files
    crate = {k.removeprefix("rust_generated_code/"): v for k, v in files.items()}
    std = profile is Profile.STD
    cases = [(x, np.asarray(module.call(x)["y"])) for x in _frames((3,))]
    test = _CARRIES.format(
        type="Mean",
        batch="1" if std else "",
        cases=", ".join(f"({a.tolist()}, {b.tolist()})" for a, b in cases),
        body=(_STD if std else _NO_STD) + _CLOSE,
    )
    crate["tests/golden.rs"] += test.encode()
    write(crate, tmp_path / "crate")
    flags = runtime_flags() if std else runtime_flags("TFP_BARE_RUNTIME")
    printed = compile_and_test(tmp_path / "crate", "mean", flags)
    assert _OK in printed
    assert "steps_are_those_of_the_model ... ok" in printed


def test_first_values_are_literals() -> None:
    assert first_values(None) is None
    assert first_values(np.zeros((2, 3), np.float32)) is None
    assert first_values(np.full((2, 3), -128, np.int8)) == "[-128; 6]"
    assert first_values(np.array([True, False])) == "[true, false]"
    assert first_values(np.array([0.1, -0.0, 1e-45], np.float32)) == "[0.1, -0.0, 1e-45]"
    assert first_values(np.array([0.1 + 0.2, np.inf])) == "[0.30000000000000004, f64::INFINITY]"
    assert first_values(np.full(2, np.nan, np.float32)) == "[f32::NAN, f32::NAN]"
    assert first_values(np.array([2**63 - 1, 1])) == "[9223372036854775807, 1]"


def test_many_different_first_values_are_refused(tmp_path: Path) -> None:
    module = tf.Module()
    module.last = tf.Variable(tf.range(MOST + 1), name="last")

    def call(x: Any) -> Any:
        y = x + module.last
        module.last.assign(y)
        return {"y": y}

    module.call = _function(call, 1, tf.int32)
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    request = Request(tmp_path / "m", Options("many", "m"), load=_STATEFUL)
    with pytest.raises(UsageError, match=re.escape("'last' has 65537 elements, not all the same")):
        run(request)
    module.last.assign(tf.fill([MOST + 1], 9))
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.call)
    files = run(replace(request, rustfmt=rustfmt())).files
    assert b"vec![9; 65537]" in files["rust_generated_code/src/model.rs"]
