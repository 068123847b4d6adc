"""Crates on bare metal: cross-compiled with their C, linked without allocator, run under QEMU.

Run with: tools/bazel test //converters/mlf/tests/bare_metal:bare_metal_test
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.mlf.convert import Request, Result, convert
from converters.mlf.emit_golden import body_lines
from converters.mlf.tests.bare_metal.build_firmware import build_crate, link, run_firmware
from converters.mlf.tests.bare_metal.provision import Tools, provision
from converters.mlf.tests.dialects import DIALECTS
from converters.mlf.tests.requests import REAL, TESTDATA, request_of

HERE = Path(__file__).parent
MODELS = (*REAL, "internal_pools", "io_in_pools", "packed", "all_dtypes")


@pytest.fixture(scope="module")
def tools() -> Tools:
    return provision()


def convert_named(name: str, folder: Path) -> Result:
    if name in DIALECTS:
        return convert(request_of(DIALECTS[name](), folder))
    return convert(Request(mlf=TESTDATA / f"{name}.tar", golden=TESTDATA / "golden.npz"))


def body(result: Result) -> str:
    parts = []
    for api in result.crate.models:
        lines = body_lines(result.crate.name, api)
        for tensor in api.outputs:
            holder = "result" if api.io_in_pools else "outputs"
            lines.append(
                f"for value in {holder}.{tensor.field}.iter() {{ "
                f'print_bytes("{api.module}_output_{tensor.field}", &value.to_le_bytes()); }}'
            )
        parts.append("{ " + "\n".join(lines) + " }")
    text = "\n".join(parts).replace('include_bytes!("golden/', 'include_bytes!("tests/golden/')
    return f"fn body() {{\n{text}\n}}\n"


@pytest.mark.parametrize("name", MODELS)
def test_outputs_equal_the_golden_ones(name: str, tools: Tools, tmp_path: Path) -> None:
    result = convert_named(name, tmp_path)
    folder = tmp_path / "crate"
    build_crate(tools, result, folder)
    (folder / "firmware.rs").write_text((HERE / "firmware.rs").read_text())
    (folder / "body.rs").write_text(body(result))
    extern = ["--extern", f"{result.crate.name}={folder}/lib{result.crate.name}.rlib"]
    elf = link(tools, folder, "firmware", [str(folder / "firmware.rs"), *extern], None)
    printed = run_firmware(tools, elf)
    compared = 0
    for api in result.crate.models:
        for tensor in api.outputs:
            key = f"{api.module}_output_{tensor.field}"
            want = result.output.files[f"tests/golden/{key}.bin"]
            if tensor.element in ("f32", "f64"):
                dtype = np.dtype(tensor.element.replace("f32", "<f4").replace("f64", "<f8"))
                np.testing.assert_allclose(
                    np.frombuffer(printed[key], dtype), np.frombuffer(want, dtype), 1e-5, 1e-5
                )
            else:
                assert printed[key] == want
            compared += 1
    assert compared
