"""Misuse does not compile: one case for each of the 16 defects of TVM's embedded Rust proposal.

A case is a program with lines marked `// misuse` and `// right`. With the misuse rustc has to give
the case's error; with the right lines in their place it has to compile. Defects 14 and 15 are not
about the caller's code: their cases damage the generated crate.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from converters.mlf.convert import Request, Result, convert
from converters.mlf.tests.build import build, build_c, call, cc, rustc, write
from converters.mlf.tests.requests import TESTDATA, built_crate

CASES = sorted((Path(__file__).parent / "compile_fail").glob("*.rs"))
DEFECTS = 16


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crates")


@pytest.mark.parametrize("case", CASES, ids=[c.stem for c in CASES])
def test_misuse(case: Path, base: Path, tmp_path: Path) -> None:
    text = case.read_text()
    fields = dict(re.findall(r"^// (crate|error|type): (.+)$", text, re.M))
    built = built_crate(fields["crate"], base)
    kind = fields.get("type", "bin")
    emit = ["--emit=metadata", f"--crate-type={kind}", "--out-dir", str(tmp_path)]
    for wanted, dropped, good in (("right", "misuse", True), ("misuse", "right", False)):
        kept = [line for line in text.split("\n") if not line.endswith(f"// {dropped}")]
        assert good or len(kept) < len(text.split("\n")) or "// right" not in text
        source = tmp_path / f"{wanted}.rs"
        source.write_text("\n".join(kept))
        done = call([rustc(), *built.rustc_args(), *emit, str(source)], tmp_path)
        if good:
            assert done.returncode == 0, done.stderr
        else:
            codes = set(re.findall(r"^error\[(E\d+)\]", done.stderr, re.M))
            codes |= set(
                re.findall(r"`#\[deny\((\w+)\)\]`|the lint level is defined here\n", done.stderr)
            )
            if fields["error"] == "unused_must_use":
                assert done.returncode != 0 and "that must be used" in done.stderr, done.stderr
            else:
                assert codes == {fields["error"]}, done.stderr


def two_inputs() -> Result:
    return convert(Request(mlf=TESTDATA / "constant_pool.tar"))


def test_14_a_drifted_header_does_not_compile(tmp_path: Path) -> None:
    result = two_inputs()
    write(result, tmp_path)
    build_c(result, tmp_path)
    header = tmp_path / "c" / "include" / "tvmgen_default.h"
    text = header.read_text()
    swapped = text.replace("void* flash;\n  void* sram;", "void* sram;\n  void* flash;")
    assert swapped != text
    header.write_text(swapped)
    unit = "c/unit/default_layout.c"
    done = call([cc(), "-c", unit, "-Ic/include", "-o", "layout.o"], tmp_path)
    assert done.returncode != 0 and "workspace_pools.flash" in done.stderr


def test_14_drifted_rust_does_not_compile(tmp_path: Path) -> None:
    write(two_inputs(), tmp_path)
    module = tmp_path / "src" / "default.rs"
    command = [rustc(), "--edition=2024", "--crate-type=rlib", "--emit=metadata", "src/lib.rs"]
    assert call(command, tmp_path).returncode == 0
    text = module.read_text()
    first = "    /// Constant pool `flash`.\n    pub flash: &'a FlashMemory,\n"
    second = "    /// Workspace pool `sram`.\n    pub sram: &'a mut Sram,\n"
    assert first + second in text
    module.write_text(text.replace(first + second, second + first))
    done = call(command, tmp_path)
    assert done.returncode != 0 and "E0080" in done.stderr


def test_15_a_missing_runtime_symbol_does_not_link(tmp_path: Path) -> None:
    result = convert(Request(mlf=TESTDATA / "plain.tar"))
    program = (
        "use tvmgen_default::*;\nfn main() {\n"
        "    let (input, mut output) = (Input::new(), Output::new());\n"
        "    let mut model = Model::take().unwrap();\n"
        "    model.run(&Inputs::new(&input), &mut Outputs::new(&mut output)).unwrap();\n}\n"
    )
    for damaged in (False, True):
        folder = tmp_path / str(damaged)
        built = build(result, folder)
        if damaged:
            module = folder / "src" / "default.rs"
            text = module.read_text()
            module.write_text(text.replace("tvmgen_default_alloc_workspace", "tvmgen_other_alloc"))
            library = ["-L", f"native={folder}", "-l", "static=c_side", "--out-dir", str(folder)]
            command = [
                rustc(),
                "--edition=2024",
                "--crate-type=rlib",
                "--crate-name=tvmgen_default",
            ]
            assert call([*command, *library, "src/lib.rs"], folder).returncode == 0
        (folder / "main.rs").write_text(program)
        done = call([rustc(), *built.rustc_args(), "main.rs"], folder)
        assert (done.returncode == 0) is not damaged, done.stderr
        assert ("tvmgen_default_alloc_workspace" in done.stderr) is damaged


def test_every_defect_has_a_case() -> None:
    numbers = {int(c.stem[:2]) for c in CASES} | {14, 15}
    assert numbers == set(range(1, DEFECTS + 1))
