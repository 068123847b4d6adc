"""Crates for firmware that have the traits of `tfp-embedded`."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from converters.tf import ir
from converters.tf.emit.options import Options, Profile, RuntimeMode
from converters.tf.tests.crates.crates import compile_crate, emitted, must, program, write
from converters.tf.tests.crates.graphs import Sketch, mlp
from tools.codegen.cargo import CratePlace

SOURCE = Path("converters/embedded/src/lib.rs")
# Runs a model that it knows by its traits alone, and calls it as the crate's test does.
_GENERIC = """
mod by_traits {
    use tfp_embedded::{Model, Tensor};

    pub fn run<M>(mut model: M, samples: &[f32]) -> Vec<f32>
    where
        M: Model,
        M::Input: Tensor<Element = f32>,
        M::Output: Tensor<Element = f32>,
    {
        let (mut input, mut output) = (M::Input::default(), M::Output::default());
        assert_eq!(input.elements().len(), M::Input::LEN);
        input.elements_mut().copy_from_slice(samples);
        let mut told = Vec::new();
        let mut profiler = |call: tfp_embedded::Call<'_>| told.push((call.index, call.ticks));
        model.run_profiled(&input, &mut output, &|| 7, &mut profiler).expect("a run");
        assert_eq!(told, [(None, 0)]);
        output.elements().to_vec()
    }
}

#[test]
fn traits_give_what_the_methods_give() {
    let mut workspace = Workspace::new();
    let mut output = Probabilities::new();
    let input = X::from([0.5, -1.0, 2.0, 0.25, 0.0, 1.0]);
    MODEL::new().unwrap()
        .run(&Inputs::new(&input), &mut Outputs::new(&mut output), &mut workspace)
        .unwrap();
    let runner = Runner::new(MODEL::new().unwrap(), &mut workspace);
    assert_eq!(by_traits::run(runner, &input.0), output.0);
    assert_eq!(<Probabilities as tfp_embedded::Tensor>::NAME, "probabilities");
}
"""
_SEVERAL = """
#[test]
fn several_tensors_are_tuples() {
    use tfp_embedded::Model as _;
    let mut workspace = Workspace::new();
    let mut runner = Runner::new(RunnerModel::new().unwrap(), &mut workspace);
    let input = (RunnerTensor::from([1.0, 2.0]), H::from([3.0, 5.0]));
    let mut output = <(Sum, Product)>::default();
    runner.run(&input, &mut output).unwrap();
    assert_eq!((output.0.0, output.1.0), ([4.0, 7.0], [3.0, 10.0]));
}

#[test]
fn the_memory_of_the_crate_is_taken_once() {
    // The other test of this file may have taken it.
    let _ = Runner::take();
    assert!(Runner::take().is_none());
}
"""


def embedded_flags(folder: Path) -> list[str]:
    """Compiles the crate of the traits; returns the flags that link it."""
    rustc = program("RUSTC", "rustc")
    command = [rustc, "--edition=2024", "--crate-name=tfp_embedded", "--crate-type=rlib"]
    library = folder / "libtfp_embedded.rlib"
    must([*command, "-Dwarnings", str(SOURCE.absolute()), "-o", str(library)], folder)
    return [f"--extern=tfp_embedded={library}", f"-Ldependency={folder}"]


def _options(name: str) -> Options:
    place = CratePlace("path", "../embedded")
    return Options(name, "graphs.py", profile=Profile.NO_STD, embedded=place)


def _run(graph: ir.Graph, test: str, folder: Path) -> str:
    files = emitted(graph, _options(graph.name))
    golden = files["tests/golden.rs"].decode()
    files["tests/golden.rs"] = (golden + test).encode()
    write(files, folder)
    flags = [*embedded_flags(folder), "-Adead_code"]
    linking = compile_crate(folder, graph.name, flags)
    must([*linking, "--test", "tests/golden.rs", "-o", "golden_test"], folder, _environment(folder))
    return must(["./golden_test", "--test-threads=1"], folder, _environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}


def test_one_input_and_one_output(tmp_path: Path) -> None:
    printed = _run(mlp(), _GENERIC.replace("MODEL", "Mlp"), tmp_path)
    assert "test result: ok. 2 passed" in printed


def test_several_inputs_and_names_that_are_taken(tmp_path: Path) -> None:
    s = Sketch("runner")
    x, h = s.input("runner", (ir.Batch(), 2)), s.input("h", (ir.Batch(), 2))
    s.op(ir.Binary(ir.BinaryKind.ADD), [x, h], x.shape, name="sum")
    s.op(ir.Binary(ir.BinaryKind.MUL), [x, h], x.shape, name="product")
    assert "test result: ok. 3 passed" in _run(s.graph(), _SEVERAL, tmp_path)


def test_the_dependency_is_only_where_it_is_asked_for() -> None:
    plain = emitted(mlp(), Options("mlp", "graphs.py", profile=Profile.NO_STD))
    assert not [path for path, content in plain.items() if b"embedded::" in content]
    assert "dependencies" not in tomllib.loads(plain["Cargo.toml"].decode())
    asked = emitted(mlp(), _options("mlp"))
    manifest = tomllib.loads(asked["Cargo.toml"].decode())
    assert manifest["dependencies"] == {"tfp-embedded": {"path": "../embedded"}}
    assert "depends on the crate `tfp-embedded`." in asked["README.md"].decode()
    place = CratePlace("version", "1.0.0", "ours")
    both = Options("mlp", "m", profile=Profile.NO_STD, runtime=RuntimeMode.CRATE, embedded=place)
    manifest = tomllib.loads(emitted(mlp(), both)["Cargo.toml"].decode())
    assert set(manifest["dependencies"]) == {"tfp-embedded", "tfp-runtime"}
