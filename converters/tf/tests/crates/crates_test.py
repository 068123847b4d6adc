"""Generated crates compute what the interpreter does, whatever the profile and the options."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from converters.tf import ir
from converters.tf.emit import crate
from converters.tf.emit.crate import Features, emit_crate
from converters.tf.emit.options import Options, Profile, RuntimeMode, WeightsMode
from converters.tf.emit.support import problems
from converters.tf.ir.expressions import unknown
from converters.tf.ir.fixed import open_dims
from converters.tf.ir.interpret import interpret
from converters.tf.ir.samples import made_texts
from converters.tf.tests.crates.crates import (
    check_crate,
    compile_and_test,
    emitted,
    runtime_flags,
    rustfmt,
    write,
)
from converters.tf.tests.crates.graphs import (
    GRAPHS,
    Sketch,
    blocks,
    in_place,
    layout,
    mlp,
    named,
    products,
    whole,
    wide,
)
from converters.tf.tests.crates.more_graphs import MORE, refused
from converters.tf.tests.crates.text_graphs import (
    chosen_words,
    counted_texts,
    longest_texts,
    open_texts,
    open_words,
    open_written_texts,
    texts,
    whole_texts,
    written_texts,
)

_OK = "test result: ok"


def _run(graph: ir.Graph, options: Options, folder: Path, flags: list[str]) -> str:
    assert problems(graph) == []
    files = emitted(graph, options)
    write(files, folder)
    return compile_and_test(folder, graph.name, flags)


@pytest.mark.parametrize(
    "make",
    (*GRAPHS, *MORE, texts, whole_texts, chosen_words, written_texts, counted_texts),
    ids=lambda make: make.__name__,
)
def test_every_op(make: object, tmp_path: Path) -> None:
    assert callable(make)
    graph: ir.Graph = make()
    options = Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE)
    assert _OK in _run(graph, options, tmp_path, runtime_flags())


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("make", [open_texts, open_words, longest_texts])
def test_texts_with_open_dimensions(
    make: Callable[[], ir.Graph], profile: Profile, tmp_path: Path
) -> None:
    graph = make()
    bare = profile is Profile.NO_STD
    batch, values = 1 if bare else 3, [port.value for port in graph.inputs]
    inputs = {"x": made_texts(graph, values[0], (batch, 1 if len(values) > 1 else 5))}
    inputs |= {"steps": np.ones((batch, 4), np.float32)} if len(values) > 1 else {}
    features = Features(inputs, interpret(graph, inputs))
    options = Options(graph.name, "graphs.py", profile=profile, runtime=RuntimeMode.CRATE)
    options = replace(options, most=tuple((n, 64) for n in open_dims(graph)) if bare else ())
    write(emit_crate(graph, options, features, rustfmt()), tmp_path)
    assert _OK in compile_and_test(tmp_path, graph.name, runtime_flags())


def test_written_texts_with_open_dimensions(tmp_path: Path) -> None:
    graph = open_written_texts()
    x = graph.inputs[0].value
    inputs = {"x": made_texts(graph, x, (3, 5)), "y": np.array(["a b c", "", "d e f"], object)}
    inputs |= {"places": np.arange(15, dtype=np.int32).reshape(3, 5) % 9}
    features = Features(inputs, interpret(graph, inputs))
    options = Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE)
    write(emit_crate(graph, options, features, rustfmt()), tmp_path)
    assert _OK in compile_and_test(tmp_path, graph.name, runtime_flags())


def test_names_that_would_be_code(tmp_path: Path) -> None:
    text = '\n\r\u2028\u202e*/ "#` \\" {{ fn main() { compile_error!("out") } '
    text += "w, p)? self.x weights::y "
    graph = mlp()
    nodes = tuple(replace(node, layer=node.layer + text) for node in graph.nodes)
    graph = ir.Graph("net", graph.inputs, graph.outputs, nodes)
    options = Options("net", text, runtime=RuntimeMode.CRATE)
    assert _OK in _run(graph, options, tmp_path, runtime_flags())


def test_memory_may_be_planned_in_other_ways(tmp_path: Path) -> None:
    for make in (in_place, layout):
        graph = make()
        options = Options(
            graph.name,
            "graphs.py",
            runtime=RuntimeMode.CRATE,
            weights=WeightsMode.FILE,
            inplace=False,
            memdrop=False,
        )
        assert _OK in _run(graph, options, tmp_path / graph.name, runtime_flags())


_WITHOUT_STD = (*GRAPHS, *MORE, mlp, texts, whole_texts, chosen_words)


@functools.cache
def _with_other_ops() -> list[Callable[[], ir.Graph]]:
    """Those of `_WITHOUT_STD` that have an op which none before them has."""
    found, seen = [], set[type]()
    for make in _WITHOUT_STD:
        kinds = {type(node.op) for node in make().nodes}
        if not kinds <= seen:
            found.append(make)
        seen |= kinds
    return found


@pytest.mark.parametrize("make", _WITHOUT_STD, ids=lambda make: make.__name__)
def test_without_std(make: Callable[[], ir.Graph], tmp_path: Path) -> None:
    """The runtime of the build computes, and the crate's own is checked if there is another op."""
    graph = make()
    options = Options(graph.name, "graphs.py", profile=Profile.NO_STD)
    if make in _with_other_ops():
        write(emitted(graph, options), tmp_path / "own")
        check_crate(tmp_path / "own", graph.name)
    linked = replace(options, runtime=RuntimeMode.CRATE)
    assert _OK in _run(graph, linked, tmp_path / "linked", runtime_flags("TFP_BARE_RUNTIME"))


@pytest.mark.parametrize("profile", Profile)
def test_what_a_model_is_given_may_be_what_it_gives(profile: Profile, tmp_path: Path) -> None:
    s = Sketch("same")
    s.outputs.append(ir.Port("y", s.input("x", (ir.Batch(), 3))))
    graph = s.graph()
    options = Options(graph.name, "graphs.py", profile=profile, runtime=RuntimeMode.CRATE)
    assert _OK in _run(graph, options, tmp_path, runtime_flags())


@pytest.mark.parametrize("profile", Profile)
def test_no_layers_and_no_weights(profile: Profile, tmp_path: Path) -> None:
    """What the model computes then reads no constant."""
    s = Sketch("weightless")
    x = s.input("x", (ir.Batch(), 3))
    s.op(ir.Unary(ir.Function(ir.Fn.NEG)), [x], x.shape)
    graph = s.graph()
    options = Options(graph.name, "graphs.py", profile=profile, runtime=RuntimeMode.CRATE)
    assert _OK in _run(graph, options, tmp_path, runtime_flags())


@pytest.mark.parametrize("profile", [Profile.STD, Profile.NO_STD])
def test_states_are_carried_from_step_to_step(tmp_path: Path, profile: Profile) -> None:
    s = Sketch("stepping")
    # Names that the interface has itself.
    x, h = s.input("state", (ir.Batch(), 3)), s.input("next", (ir.Batch(), 3))
    count = s.input("count", (2,), ir.DType.I32)
    s.op(ir.Binary(ir.BinaryKind.ADD), [x, h], x.shape, name="h_next")
    one = ir.constant(np.array([1, 2], np.int32))
    s.op(ir.Binary(ir.BinaryKind.ADD), [count, one], (2,), ir.DType.I32, name="count_next")
    s.op(ir.Unary(ir.Function(ir.Fn.TANH)), [h], x.shape, name="y")
    options = Options(
        "stepping",
        "graphs.py",
        profile=profile,
        runtime=RuntimeMode.CRATE,
        states=(("next", "h_next"), ("count", "count_next")),
    )
    std = profile is Profile.STD
    flags = runtime_flags("TFP_RUNTIME" if std else "TFP_BARE_RUNTIME")
    assert _OK in _run(s.graph(), options, tmp_path, flags)
    text = (tmp_path / "src/lib.rs").read_text("utf-8")
    assert not std or "State, StepInputs, StepOutputs" in text


_GROWN = """
#[test]
fn a_state_grows() {
    let model = model();
    let mut state = State::zeroed(&Sizes { batch: 2, past: 1, steps: 7 }).unwrap();
    for step in 1..5 {
        let x = [step as f32; 12];
        let inputs = StepInputs { x: View::new(&x, [2, 3, 2]) };
        let outputs = model.step(&mut state, inputs).unwrap();
        assert_eq!(state.past.shape, [2, 1 + 3 * step, 2]);
        let sum = (1..=step).map(|s| 3.0 * s as f32).sum::<f32>();
        assert_eq!(outputs.y.data, [sum; 4]);
    }
    let before = state.clone();
    let wrong = StepInputs { x: View::new(&[0.0; 2], [1, 1, 2]) };
    let error = model.step(&mut state, wrong).unwrap_err().to_string();
    assert!(error.contains("axis 0 of input x has 1 elements, expected 2 as axis 0"), "{error}");
    assert_eq!(state, before);
}
"""


def growing() -> ir.Graph:
    """Returns a cache that becomes longer in each step, and its sum."""
    s = Sketch("growing")
    past, steps = unknown("past"), unknown("steps")
    cache, x = s.input("past", (ir.Batch(), past, 2)), s.input("x", (ir.Batch(), steps, 2))
    present = s.op(ir.Concat(1), [cache, x], (ir.Batch(), past + steps, 2), name="present")
    s.op(ir.Reduce(ir.ReduceKind.SUM, (1,), False), [present], (ir.Batch(), 2), name="y")
    return s.graph()


def test_a_state_may_grow(tmp_path: Path) -> None:
    graph = growing()
    random = np.random.default_rng(5)
    shapes = {"past": (3, 4, 2), "x": (3, 2, 2)}
    inputs = {name: random.normal(size=s).astype(np.float32) for name, s in shapes.items()}
    states = (("past", "present"),)
    options = Options("growing", "graphs.py", runtime=RuntimeMode.CRATE, states=states)
    files = emit_crate(graph, options, Features(inputs, interpret(graph, inputs)), rustfmt())
    test = files["tests/golden.rs"].decode().replace("Outputs, State", "Outputs, Sizes, State")
    files["tests/golden.rs"] = (test + _GROWN).encode()
    write(files, tmp_path)
    assert _OK in compile_and_test(tmp_path, graph.name, runtime_flags())


_TIMES = """
#[cfg(feature = "profile")]
#[test]
fn every_layer_has_a_time() {
    let features = npz::Npz::open(&path("FEATURES", "testdata/features.npz"));
    let given = features.array::<f32>("GIVEN");
    let (_, times) = model().predict_profiled(Inputs { GIVEN: &given }).unwrap();
    let layers: Vec<&str> = times.iter().map(|time| time.layer).collect();
    assert_eq!(layers, LAYERS);
    assert!(times.iter().any(|time| time.nanoseconds > 0));
}
"""


@pytest.mark.parametrize("make", [mlp, blocks], ids=lambda make: make.__name__)
def test_layers_have_times(make: Callable[[], ir.Graph], tmp_path: Path) -> None:
    """Also those of the parts that a model repeats."""
    graph = make()
    files = emitted(graph, Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE))
    layers = dict.fromkeys(node.layer or type(node.op).__name__ for node in graph.nodes)
    test = _TIMES.replace("GIVEN", graph.inputs[0].name).replace("LAYERS", str(list(layers)))
    files["tests/golden.rs"] += test.replace("'", '"').encode()
    write(files, tmp_path)
    flags = [*runtime_flags(), "--cfg", 'feature="profile"']
    assert _OK in compile_and_test(tmp_path, graph.name, flags)


def test_a_tensor_and_a_place_may_have_one_name(tmp_path: Path) -> None:
    """The type of the input `x` and the constant of the layer `x` would both be `X`."""
    s = Sketch("letters")
    x = s.input("x", (ir.Batch(), 3))
    twice = s.op(ir.Unary(ir.Function(ir.Fn.EXP)), [x], x.shape, name="x")
    s.op(ir.Unary(ir.Function(ir.Fn.NEG)), [twice], x.shape, name="y")
    s.outputs.pop(0)
    graph = s.graph()
    options = Options(graph.name, "graphs.py", profile=Profile.NO_STD, runtime=RuntimeMode.CRATE)
    assert _OK in _run(graph, options, tmp_path, runtime_flags())


def test_examples_that_are_mixed_are_not_compared_one_at_a_time(tmp_path: Path) -> None:
    s = Sketch("mixed")
    x = s.input("x", (ir.Batch(), 6))
    turned = s.op(ir.Transpose((1, 0)), [x], (6, ir.Batch()))
    flat = s.op(ir.Reshape(), [turned], (ir.Batch(6),))
    s.op(ir.Unary(ir.Function(ir.Fn.NEG)), [flat], (ir.Batch(6),))
    s.outputs[:] = s.outputs[2:]
    whole = Sketch("apart")
    y = whole.input("x", (ir.Batch(), 6))
    whole.op(ir.Reshape(), [y], (ir.Batch(6),))
    for graph, count in ((s.graph(), 0), (whole.graph(), 1)):
        options = Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE)
        folder = tmp_path / graph.name
        assert _run(graph, options, folder, runtime_flags()).count("one_example_at_a") == count


_REFUSED = """
#[test]
fn what_has_no_result_is_an_error() {
    use whole::Error;
    let model = model();
    let call = |x: &[i32], y: &[i32]| model.predict(Inputs { x, y });
    for (x, y, reason) in [
        ([1, 2], [1, 0], "layer zip: y: expected no zero: integer division by zero"),
        ([1, -4], [1, 2], "layer zip: y: expected no negative value"),
    ] {
        let error = call(&x, &y).err().expect("no result");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(matches!(error, Error::Layer { .. }));
    }
    assert_eq!(call(&[7, 9], &[3, 9]).unwrap().binary_1, [49, 9]);
}
"""


def test_what_whole_numbers_refuse(tmp_path: Path) -> None:
    graph = whole()
    options = Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE)
    random = np.random.default_rng(5)
    inputs = {n: random.integers(1, 9, (3, 2)).astype(np.int32) for n in ("x", "y")}
    features = Features(inputs, interpret(graph, inputs))
    files = emit_crate(graph, options, features, rustfmt())
    files["tests/golden.rs"] += _REFUSED.encode()
    write(files, tmp_path)
    assert _OK in compile_and_test(tmp_path, graph.name, runtime_flags())


_NO_RESULT = """
#[test]
fn what_has_no_result_is_an_error() {
    use refused::Error;
    let model = model();
    let call = |matrix: &[f32], place: &[i32]| model.predict(Inputs { matrix, place });
    let two = [1.0, 0.0, 0.0, 1.0, 3.0, 1.0, 1.0, 2.0];
    for (place, reason) in [(2, "place 2"), (-1, "place -1"), (i32::MIN, "place -2147483648")] {
        let error = call(&two, &[0, place]).err().expect("no result");
        assert!(matches!(error, Error::Layer { layer: "scatter", .. }), "{reason}: {error}");
    }
    for bad in [[0.0, 0.0, 1.0, 1.0], [f32::NAN, 0.0, 0.0, 1.0]] {
        let mut both = two;
        both[4..].copy_from_slice(&bad);
        let error = call(&both, &[0, 0]).err().expect("no result");
        assert!(error.to_string().contains("a matrix that has an inverse"), "{error}");
    }
    let (mut none, mut outputs) = (model.workspace(usize::MAX), Outputs::zeroed(2));
    let inputs = Inputs { matrix: &two, place: &[0, 1] };
    let error = model.predict_into(inputs, &mut none, outputs.as_mut()).unwrap_err();
    assert!(matches!(error, Error::Workspace { found: 0, .. }), "{error}");
    assert_eq!(call(&two, &[0, 1]).unwrap().added, [2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 2.0, 3.0]);
}
"""


def test_places_and_systems_without_a_result(tmp_path: Path) -> None:
    graph = refused()
    options = Options(graph.name, "more_graphs.py", runtime=RuntimeMode.CRATE)
    matrix = np.random.default_rng(5).normal(size=(3, 2, 2)).astype(np.float32)
    inputs = {"matrix": matrix, "place": np.array([[[1]], [[0]], [[1]]], np.int32)}
    features = Features(inputs, interpret(graph, inputs))
    files = emit_crate(graph, options, features, rustfmt())
    files["tests/golden.rs"] += _NO_RESULT.encode()
    write(files, tmp_path)
    assert _OK in compile_and_test(tmp_path, graph.name, runtime_flags())


def test_layers_made_by_several_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crate, "_GROUP", 2)
    graph = products()
    options = Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE)
    files = emitted(graph, options)
    assert b"fn layers_3(" in files["src/model.rs"]
    write(files, tmp_path)
    assert _OK in compile_and_test(tmp_path, graph.name, runtime_flags())


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("name", ["weights", "workspace", "result", "named", "tensor", "default"])
def test_a_block_with_a_name_that_is_taken(name: str, profile: Profile, tmp_path: Path) -> None:
    """Layers may be called as what the generated modules import or declare."""
    graph = named(name)
    options = Options(graph.name, "graphs.py", profile=profile, runtime=RuntimeMode.CRATE)
    files = emitted(graph, options)
    assert f"pub struct {name.capitalize()}Block {{" in files["src/blocks.rs"].decode()
    write(files, tmp_path)
    assert _OK in compile_and_test(tmp_path, graph.name, runtime_flags())


def test_many_weights_where_the_compiler_embeds_them(tmp_path: Path) -> None:
    """As on Windows, where the assembler has no place for them."""
    graph = wide()
    options = Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE)
    files = emitted(graph, options)
    text = files["src/weights.rs"].decode()
    assert ".incbin" in text
    assert text.count('target_os = "windows"') == 3
    system = "linux" if sys.platform == "linux" else "macos"
    files["src/weights.rs"] = text.replace('"windows"', f'"{system}"').encode()
    write(files, tmp_path)
    assert _OK in compile_and_test(tmp_path, graph.name, runtime_flags())
