"""Crates of models with open dimensions, each compiled once and run at several sizes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from converters.tf import ir
from converters.tf.emit.crate import Features, crate_files
from converters.tf.emit.model import ModelText, model_text
from converters.tf.emit.npz import npz_bytes
from converters.tf.emit.options import Options, RuntimeMode
from converters.tf.tests.crates.crates import compile_crate, must, runtime_flags, rustfmt, write

_NPZ = Path(__file__).parent.parent / "templates/npz.rs"
_HEAD = """
mod npz;

fn close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0_f64, |scale, x| scale.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * scale, "{what}[{i}]: {a}, expected {b}");
    }
}

fn wide<T: Copy + Into<f64>>(x: &[T]) -> Vec<f64> {
    x.iter().map(|&x| x.into()).collect()
}
"""


@dataclass(frozen=True)
class Model:
    """A model, and what it computes at several sizes.

    Attributes:
        name: Name of its crate.
        graph: What is converted.
        cases: Inputs and outputs of each call, by name.
        refused: Expressions of inputs that a call refuses, each with a part of the error's text;
            `@0` is the first input.
    """

    name: str
    graph: ir.Graph
    cases: Sequence[Features]
    refused: Sequence[tuple[str, str]] = ()


def run(models: Sequence[Model], folder: Path, tolerance: float) -> str:
    """Compiles models and a program that tests all of them; returns what that prints.

    Raises:
        AssertionError: One does not compile, or computes something else.
    """
    tests, externs = [_HEAD], []
    linking: list[str] = []
    (folder / "npz.rs").write_text(_NPZ.read_text("utf-8"), "utf-8")
    for model in models:
        options = Options(model.name, "open_models.py", runtime=RuntimeMode.CRATE)
        text = model_text(model.graph, options)
        files = crate_files(text, model.graph, options, model.cases[0], rustfmt())
        write(files, folder / model.name)
        *linking, extern = compile_crate(folder / model.name, model.name, runtime_flags())
        externs.append(extern)
        tests.append(_test(model, text, folder, tolerance))
    (folder / "all.rs").write_text("\n".join(tests), "utf-8")
    program = str(folder / "all_test.exe")
    must([*linking, *externs, "--test", "all.rs", "-o", program], folder, {**os.environ})
    return must([program, "--test-threads=1"], folder)


def _test(model: Model, text: ModelText, folder: Path, tolerance: float) -> str:
    """Writes what the calls read and give; returns the test that makes them."""
    name = model.name
    lines = [
        "#[test]",
        f"fn {name}_at_all_sizes() {{",
        f"    use {name}::{{Inputs, {text.type}, View}};",
        "    for threads in [1, 2] {",
        f"        let model = {text.type}::new().unwrap().with_threads(threads);",
    ]
    for number, case in enumerate(model.cases):
        path = folder / f"{name}_{number}.npz"
        path.write_bytes(npz_bytes(_arrays(case)))
        lines.append(f'        let file = npz::Npz::open("{path}");')
        given = [
            f'{port.field}: View::new(&file.array::<{port.type}>("in_{i}"), {list(data.shape)})'
            for i, (port, data) in enumerate(zip(text.inputs, case.inputs.values(), strict=True))
        ]
        given_text = ", ".join(given)
        lines.append(f"        let found = model.predict(Inputs {{ {given_text} }}).unwrap();")
        for i, (port, data) in enumerate(zip(text.outputs, case.outputs.values(), strict=True)):
            field, what = f"found.{port.field}", f'"{name}, call {number}, {port.field}"'
            lines.append(f"        assert_eq!({field}.shape, {list(data.shape)});")
            if port.type not in ("f32", "f64"):
                wanted = f'file.array::<{port.type}>("out_{i}")'
                lines.append(f"        assert_eq!({field}.data, {wanted}, {what});")
                continue
            ends = f'&file.floats("out_{i}"), {tolerance}, {what}'
            lines.append(f"        close(&wide(&{field}.data), {ends});")
    for pair in model.refused:
        call, error = (_named(part, text) for part in pair)
        lines.append(f"        let found = model.predict(Inputs {{ {call} }});")
        lines.append("        let error = found.unwrap_err().to_string();")
        lines.append(f'        assert!(error.contains("{error}"), "{{error}}");')
    return "\n".join([*lines, "    }", "}"])


def _named(part: str, text: ModelText) -> str:
    for place, port in enumerate(text.inputs):
        part = part.replace(f"@{place}", port.field)
    return part


def _arrays(case: Features) -> Mapping[str, ir.Array]:
    found = {f"in_{i}": np.asarray(data) for i, data in enumerate(case.inputs.values())}
    outputs = (np.asarray(data) for data in case.outputs.values())
    return {**found, **{f"out_{i}": data for i, data in enumerate(outputs)}}
