"""Emits the test of a crate: recorded inputs through the model, compared with recorded outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from converters.mlf.api import CrateApi, ModelApi, TensorApi
from converters.mlf.model import PoolKind
from converters.mlf.render import render
from converters.mlf.rust_text import called


@dataclass(frozen=True)
class GoldenCase:
    """Recorded values of one model: tensor name -> bytes (little-endian, row-major)."""

    model: str
    inputs: Mapping[str, bytes]
    outputs: Mapping[str, bytes]


def emit_golden_test(
    crate: CrateApi, cases: tuple[GoldenCase, ...]
) -> tuple[str, dict[str, bytes]]:
    """Returns the test's text and its data files.

    A float passes when it differs by at most 1e-5 + 1e-5 * |expected|; everything else is exact.
    """
    data: dict[str, bytes] = {}
    tests = []
    by_name = {m.model.name: m for m in crate.models}
    for case in cases:
        api = by_name[case.model]
        lines = []
        for tensor in api.inputs:
            data[_file(api, tensor)] = case.inputs[tensor.tensor.name]
        for tensor in api.outputs:
            data[_file(api, tensor)] = case.outputs[tensor.tensor.name]
        lines += body_lines(crate.name, api)
        lines += check_lines(api, "golden")
        tests.append({"name": f"{api.module}_equals_golden", "lines": lines})
    return render("golden_test.rs.j2", tests=tests), data


def compare(tensor: TensorApi) -> list[str]:
    """Returns statements that compare `got` with `want` at `index`."""
    if tensor.element in ("f32", "f64"):
        return [
            "let close = (got - want).abs() <= 1e-5 + 1e-5 * want.abs();",
            'assert!(close, "element {index}: {got}, expected {want}");',
        ]
    return ['assert_eq!(got, want, "element {index}");']


def check_lines(api: ModelApi, folder: str) -> list[str]:
    """Returns statements that compare what `body_lines` computed with the files in `folder`."""
    lines = []
    for tensor in api.outputs:
        lines += [
            f'let data = include_bytes!("{folder}/{_file(api, tensor)}");',
            f"for (index, bytes) in data.chunks_exact({tensor.tensor.size // tensor.length})"
            ".enumerate() {",
            f"    let want = {tensor.element}::from_le_bytes(bytes.try_into().unwrap());",
            f"    let got = {output_value(api, tensor)}[index];",
            *(f"    {line}" for line in compare(tensor)),
            "}",
        ]
    return lines


def output_value(api: ModelApi, tensor: TensorApi) -> str:
    """Returns the expression of an output after `call_lines`."""
    return f"{'result' if api.io_in_pools else 'outputs'}.{tensor.field}"


def body_lines(crate_name: str, api: ModelApi) -> list[str]:
    """Returns statements that run the model into `outputs`, or `result` with I/O in pools."""
    return [*setup_lines(crate_name, api, "golden"), *call_lines(api)]


def setup_lines(crate_name: str, api: ModelApi, folder: str | None) -> list[str]:
    """Returns statements that make the model, its memory and its inputs.

    Args:
      crate_name: the crate of the model.
      api: the model.
      folder: where the recorded inputs lie, as `include_bytes!` says it; None leaves zeros.
    """
    path = f"{crate_name}::{api.module}"
    lines = [f"use {path} as m;"]
    lines.append(
        "let mut model = m::Model::take().unwrap();" if api.once else "let model = m::Model::new();"
    )
    workspaces = [p for p in api.pools if p.pool.kind is PoolKind.WORKSPACE]
    for pool in workspaces:
        lines.append(f"let {pool.field}_memory = m::{pool.type_name}::take().unwrap();")
    if api.pools:
        arguments = [f"{p.field}_memory" for p in workspaces]
        lines += called("let mut workspace_pools = m::WorkspacePools::new", arguments, ";", 0)
    if api.io_in_pools:
        if folder is not None:
            lines.append("let inputs = workspace_pools.inputs_mut();")
            for tensor in api.inputs:
                lines += _read(api, tensor, f"inputs.{tensor.field}", folder)
        return lines
    for tensor in api.inputs:
        mutable = "mut " if folder is not None else ""
        lines.append(f"let {mutable}in_{tensor.field} = m::{tensor.type_name}::new();")
        if folder is not None:
            lines += _read(api, tensor, f"in_{tensor.field}", folder)
    for tensor in api.outputs:
        lines.append(f"let mut out_{tensor.field} = m::{tensor.type_name}::new();")
    inputs = [f"&in_{t.field}" for t in api.inputs]
    outputs = [f"&mut out_{t.field}" for t in api.outputs]
    lines += called("let inputs = m::Inputs::new", inputs, ";", 0)
    lines += called("let mut outputs = m::Outputs::new", outputs, ";", 0)
    return lines


def call_lines(api: ModelApi) -> list[str]:
    """Returns statements that run the model after `setup_lines`; a failure panics."""
    if api.io_in_pools:
        return ["let result = model.run(&mut workspace_pools).unwrap();"]
    extra = ", &mut workspace_pools" if api.pools else ""
    return [f"let done = model.run(&inputs, &mut outputs{extra});", "done.unwrap();"]


def _file(api: ModelApi, tensor: TensorApi) -> str:
    return f"{api.module}_{tensor.side}_{tensor.field}.bin"


def _read(api: ModelApi, tensor: TensorApi, target: str, folder: str) -> list[str]:
    size = tensor.tensor.size // tensor.length
    return [
        f'let data = include_bytes!("{folder}/{_file(api, tensor)}");',
        f"for (element, bytes) in {target}.iter_mut().zip(data.chunks_exact({size})) {{",
        f"    *element = {tensor.element}::from_le_bytes(bytes.try_into().unwrap());",
        "}",
    ]
