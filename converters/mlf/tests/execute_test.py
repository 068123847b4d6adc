"""Every archive becomes a crate that compiles without a warning and computes what is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from converters.mlf.convert import Request, convert
from converters.mlf.tests.build import build, build_c, call, must, run_rust, rustc, write
from converters.mlf.tests.dialects import DIALECTS, Dialect
from converters.mlf.tests.requests import EXISTING_MEMORY, REAL, TESTDATA, request_of
from tools.package import elf

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("archive", REAL)
def test_real_archive(archive: str, tmp_path: Path) -> None:
    result = convert(Request(mlf=TESTDATA / f"{archive}.tar", golden=TESTDATA / "golden.npz"))
    built = build(result, tmp_path / "crate")
    output = run_rust(built, built.folder / "tests" / "golden.rs", test=True)
    assert f"{len(result.crate.models)} passed" in output


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_dialect(name: str, tmp_path: Path) -> None:
    dialect = DIALECTS[name]()
    result = convert(request_of(dialect, tmp_path))
    built = build(result, tmp_path / "crate", dialect.extra_c)
    ran = 0
    if dialect.golden and not any(m.devices for m in result.crate.models):
        output = run_rust(built, built.folder / "tests" / "golden.rs", test=True)
        assert "1 passed" in output
        ran += 1
    source = PROGRAMS / f"{name}.rs"
    if source.exists():
        output = run_rust(built, source, test=True, flags=("--cfg", "mlf2rust_test"))
        assert "0 failed" in output and " 0 passed" not in output
        ran += 1
    assert ran, f"nothing executes {name}: give it golden arrays or programs/{name}.rs"


def test_every_program_belongs_to_a_dialect() -> None:
    unknown = {p.stem for p in PROGRAMS.glob("*.rs")} - set(DIALECTS)
    assert unknown == {EXISTING_MEMORY.stem}


def test_memory_that_exists_already(tmp_path: Path) -> None:
    """Also run under AddressSanitizer, by `sanitizer_test`."""
    built = build(convert(Request(mlf=TESTDATA / "constant_pool.tar")), tmp_path / "crate")
    assert "3 passed" in run_rust(built, EXISTING_MEMORY, test=True)


_POOL_Y = "\t.y = &((uint8_t*)workspace_pools->sram)[16],\n"
_TWO_OUTPUTS = [
    (_POOL_Y, _POOL_Y + "\t.z = &((uint8_t*)workspace_pools->dtcm)[0],\n"),
    ("  void* y;\n", "  void* y;\n  void* z;\n"),
    ('"y": {', '"z": {"dtype": "int16", "size": 8}, "y": {'),
    (".y =", ".workspace_pools ="),
    ("void* y;", "void* workspace_pools;"),
    ('"y": {', '"workspace_pools": {'),
]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *(
            ("device_hooks", [("EthosU", device.title().replace("_", "")), ("ethos_u", device)])
            for device in ("inputs", "outputs", "code", "raw_devices", "device", "self", "type")
        ),
        ("io_in_pools", _TWO_OUTPUTS),
        ("io_in_pools", [("x_0", "self"), ("x:0", "self")]),
        *(
            ("plain_v7", [("default", model)])
            for model in ("lib", "main", "support", "ffi", "core")
        ),
        ("plain_v7", [("codegen/host/src/default_lib1.c", "codegen/host/src/layout.c")]),
    ],
)
def test_names_that_the_crate_uses_itself(
    name: str, changes: list[tuple[str, str]], tmp_path: Path
) -> None:
    files = {}
    for path, content in DIALECTS[name]().files.items():
        text = str(content)
        for old, new in changes:
            path, text = path.replace(old, new), text.replace(old, new)
        files[path] = text
    build(convert(request_of(Dialect(files, {}), tmp_path)), tmp_path / "crate")


def test_headers_in_folders_beside_the_sources(tmp_path: Path) -> None:
    """Found as C finds them: beside the file that includes them, then in the include folder."""
    dialect = DIALECTS["plain_v7"]()
    files = {k: str(v) for k, v in dialect.files.items()}
    source = files.pop("codegen/host/src/default_lib1.c")
    source = source.replace("* 2.000000e+00f", "* by(FACTOR)")
    folder = "codegen/host/src/kernels/"
    files[f"{folder}default_lib1.c"] = '#include "detail/factor.h"\n' + source
    files[f"{folder}detail/factor.h"] = (
        '#pragma once\n#include "../by.h"\n#include "common/two.h"\n#define FACTOR TWO\n'
    )
    files[f"{folder}by.h"] = "#include <math.h>\nstatic float by(float x) { return x; }\n"
    files["codegen/host/include/common/two.h"] = '#include "deep/two.h"\n'
    files["codegen/host/include/common/deep/two.h"] = "#define TWO 2.0f\n"
    files[f"{folder}unused.h"] = "#error unused\n"
    result = convert(request_of(replace(dialect, files=files), tmp_path))
    assert not result.crate.models[0].model.missing_headers
    assert not [name for name in result.output.files if "unused" in name]
    built = build(result, tmp_path / "crate")
    assert "1 passed" in run_rust(built, built.folder / "tests" / "golden.rs", test=True)


#: Stands for the crate `cc`: has its interface, compiles nothing.
CC_CRATE = """
pub struct Build;
impl Build {
    pub fn new() -> Self { Self }
    pub fn files(&mut self, _: &[&str]) -> &mut Self { self }
    pub fn include(&mut self, _: &str) -> &mut Self { self }
    pub fn includes<T: IntoIterator<Item = std::path::PathBuf>>(&mut self, _: T) {}
    pub fn warnings(&mut self, _: bool) -> &mut Self { self }
    pub fn flag_if_supported(&mut self, _: &str) {}
    pub fn compile(&self, _: &str) {}
}
"""


def test_a_missing_header_is_one_warning_of_the_build(tmp_path: Path) -> None:
    files = {k: str(v) for k, v in DIALECTS["plain_v7"]().files.items()}
    source = "codegen/host/src/default_lib1.c"
    files[source] = '#include <arm_nnfunctions.h>\n#include "npu/driver.h"\n' + files[source]
    result = convert(request_of(Dialect(files, {}), tmp_path))
    write(result, tmp_path)
    (tmp_path / "cc.rs").write_text(CC_CRATE)
    must([rustc(), "--edition=2024", "--crate-type=rlib", "cc.rs"], tmp_path)
    program = [rustc(), "--edition=2024", "-Dwarnings", "--extern=cc=libcc.rlib", "build.rs"]
    must([*program, "-o", "build"], tmp_path)
    vendor = tmp_path / "vendor"
    (vendor / "npu").mkdir(parents=True)
    run = ["env", f"TVMGEN_INCLUDE_PATH=none:{vendor}", "./build"]
    warnings = [
        "cargo:warning=the C includes arm_nnfunctions.h, npu/driver.h: name the folder in "
        "TVMGEN_INCLUDE_PATH"
    ]
    for header, left in (("npu/driver.h", 1), ("arm_nnfunctions.h", 0)):
        printed = must(run, tmp_path).splitlines()
        assert [line for line in printed if "warning" in line] == warnings
        (vendor / header).touch()
        warnings = [line.replace(f", {header}", "") for line in warnings][:left]
    silent = must(run, tmp_path)
    assert "warning" not in silent and "rerun-if-env-changed=TVMGEN_INCLUDE_PATH" in silent


def test_many_missing_headers_are_a_list_of_lines(tmp_path: Path) -> None:
    files = {k: str(v) for k, v in DIALECTS["plain_v7"]().files.items()}
    names = [f"kernels/of/a/vendor/number_{n}.h" for n in range(4)]
    source = "codegen/host/src/default_lib1.c"
    files[source] = "".join(f'#include "{name}"\n' for name in names) + files[source]
    script = convert(request_of(Dialect(files, {}), tmp_path)).output.files["build.rs"].decode()
    assert "".join(f'    "{name}",\n' for name in names) in script


def test_a_guard_of_a_long_name_is_a_list_of_lines(tmp_path: Path) -> None:
    name = "n" * 60
    files = {
        k.replace("default", name): str(v).replace("default", name)
        for k, v in DIALECTS["plain_v7"]().files.items()
    }
    request = replace(request_of(Dialect(files, {}), tmp_path), link_prefix="")
    script = convert(request).output.files["build.rs"].decode()
    assert f'const GUARDS: &[&str] = &[\n    "c/guard/{name}_name.c",\n];' in script


def test_state_in_a_header_is_the_model_s(tmp_path: Path) -> None:
    files = {k: str(v) for k, v in DIALECTS["plain_v7"]().files.items()}
    source = "codegen/host/src/default_lib1.c"
    files[source] = '#include "state.h"\n' + files[source]
    files["codegen/host/src/state.h"] = "static int32_t calls[4];\n"
    found = convert(request_of(Dialect(files, {}), tmp_path)).crate.models[0].model
    assert len(found.hidden_state) == 1


def test_truth_values_of_a_packed_entry(tmp_path: Path) -> None:
    """TVM calls them unsigned integers of one bit, and its C checks that of each argument."""
    files = {}
    for path, content in DIALECTS["packed"]().files.items():
        text = str(content).replace("{2, 32, 1} /* dtype*/", "{1, 1, 1} /* dtype*/")
        text = text.replace("dtype.code != 2", "dtype.code != 1").replace("bits != 32", "bits != 1")
        text = text.replace("((float*)y_1)[i] = ((float*)x_1)[i] * 2.0f", "_NOT_")
        text = text.replace("_NOT_", "((uint8_t*)y_1)[i] = !((uint8_t*)x_1)[i]")
        text = text.replace('"float32"', '"bool"').replace('"size": 16', '"size": 4')
        files[path] = text
    x = np.array([True, False, False, True])
    dialect = Dialect(files, {"default_x": x, "default_output0": ~x})
    result = convert(request_of(dialect, tmp_path))
    assert [t.dtype for t in result.crate.models[0].model.inputs] == ["bool"]
    built = build(result, tmp_path / "crate")
    assert "1 passed" in run_rust(built, built.folder / "tests" / "golden.rs", test=True)


def test_a_pool_without_bytes(tmp_path: Path) -> None:
    files = {k: str(v) for k, v in DIALECTS["io_in_pools"]().files.items()}
    header = "codegen/host/include/tvmgen_default.h"
    files[header] = (
        files[header]
        .replace("workspace_pools {\n", "workspace_pools {\n  void* none;\n")
        .replace("#define", "#define TVMGEN_DEFAULT_NONE_WORKSPACE_POOL_SIZE 0\n#define", 1)
    )
    build(convert(request_of(Dialect(files, {}), tmp_path)), tmp_path / "crate")


def test_without_atomic_swap_at_most_one_wins(tmp_path: Path) -> None:
    """The path of targets like thumbv6m, which have only atomic loads and stores."""
    result = convert(request_of(DIALECTS["internal_pools"](), tmp_path))
    files = dict(result.output.files)
    text = files["src/support.rs"].decode()
    assert 'target_has_atomic = "8"' in text
    files["src/support.rs"] = text.replace('atomic = "8"', 'atomic = "none"').encode()
    changed = replace(result, output=replace(result.output, files=files))
    built = build(changed, tmp_path / "crate", rust_flags=("-Aunexpected_cfgs",))
    alone = tmp_path / "alone.rs"
    alone.write_text(
        "use tvmgen_default::{Model, Slot};\nstatic SLOTS: [Slot<u8>; 2000] = "
        "[const { Slot::new(0) }; 2000];\nfn main() {\n"
        "    assert!(Model::take().is_some() && Model::take().is_none());\n"
        "    for slot in &SLOTS {\n        let winners: usize = std::thread::scope(|scope| {\n"
        "            let all = [(); 2].map(|()| scope.spawn(|| slot.take().is_some()));\n"
        "            all.into_iter().map(|t| usize::from(t.join().unwrap())).sum()\n        });\n"
        "        assert!(winners <= 1);\n        assert!(slot.take().is_none());\n    }\n}\n"
    )
    run_rust(built, alone, test=False)


def test_two_crates_with_a_model_of_one_name_link(tmp_path: Path) -> None:
    """Each runs its own C: symbols carry a prefix that is made from the content."""
    arguments = [rustc(), "--edition=2024"]
    for name, archive in (("first", "constant_pool"), ("second", "plain")):
        request = Request(mlf=TESTDATA / f"{archive}.tar", crate_name=name)
        arguments += build(convert(request), tmp_path / name).rustc_args()[1:]
    (tmp_path / "main.rs").write_text(
        "fn main() {\n"
        "    let mut output = first::Output::new();\n"
        "    let mut pools = first::WorkspacePools::new(first::Sram::take().unwrap());\n"
        "    let input = first::Input::new();\n"
        "    let inputs = first::Inputs::new(&input);\n"
        "    let mut outputs = first::Outputs::new(&mut output);\n"
        "    first::Model::new().run(&inputs, &mut outputs, &mut pools).unwrap();\n"
        "    assert!((output.iter().sum::<f32>() - 1.0).abs() < 1e-6);\n"
        "    let mut output = second::Output::new();\n"
        "    let input = second::Input::new();\n"
        "    let inputs = second::Inputs::new(&input);\n"
        "    let mut outputs = second::Outputs::new(&mut output);\n"
        "    second::Model::take().unwrap().run(&inputs, &mut outputs).unwrap();\n"
        "    assert!((output.iter().sum::<f32>() - 1.0).abs() < 1e-6);\n}\n"
    )
    must([*arguments, "main.rs", "-o", "main"], tmp_path)
    must([str(tmp_path / "main")], tmp_path)
    first, second = (defined_symbols(tmp_path / name) for name in ("first", "second"))
    assert first and second and not first & second


@pytest.mark.parametrize("second", ["vendor_async", "constant_pool"])
def test_two_models_whose_symbols_are_one_do_not_link(second: str, tmp_path: Path) -> None:
    """Object code keeps its names: a linker has to refuse the second, not take the first twice."""
    arguments = [rustc(), "--edition=2024"]
    for name, source in (("first", "vendor_async"), ("second", second)):
        folder = tmp_path / name
        folder.mkdir()
        if source in DIALECTS:
            request = replace(request_of(DIALECTS[source](), folder), crate_name=name)
        else:
            archive = TESTDATA / f"{source}.tar"
            request = Request(mlf=archive, crate_name=name, link_prefix="")
        arguments += build(convert(request), folder).rustc_args()[1:]
    for name, used in (("one", ["first"]), ("both", ["first", "second"])):
        lines = "".join(f'    println!("{{}}", {crate}::Error::Kernel);\n' for crate in used)
        (tmp_path / f"{name}.rs").write_text(f"fn main() {{\n{lines}}}\n")
    must([*arguments, "one.rs", "-o", "one"], tmp_path)
    done = call([*arguments, "both.rs", "-o", "both"], tmp_path)
    assert done.returncode != 0
    assert "only_one_model_of_a_program_may_be_named_tvmgen_default" in done.stderr


def defined_symbols(folder: Path) -> set[str]:
    """Returns the global symbols that a crate's C defines."""
    objects = folder.glob("unit*.o")
    return {name for unit in objects for name in elf.exported_symbols(unit.read_bytes())}


@pytest.mark.parametrize("name", ["multi", "device_hooks", "internal_pools", "packed_system_lib"])
def test_a_link_prefix_reaches_every_symbol(name: str, tmp_path: Path) -> None:
    if name in REAL:
        request = Request(mlf=TESTDATA / f"{name}.tar")
    else:
        request = request_of(DIALECTS[name](), tmp_path)
    result = convert(replace(request, link_prefix="app_"))
    write(result, tmp_path)
    build_c(result, tmp_path)
    symbols = defined_symbols(tmp_path)
    assert symbols and all(s.startswith("app_") for s in symbols), symbols


def test_single_file_serves_as_module_and_as_crate(tmp_path: Path) -> None:
    for root in (False, True):
        folder = tmp_path / str(root)
        result = convert(
            Request(
                mlf=TESTDATA / "constant_pool.tar",
                single_file=True,
                crate_root=root,
                crate_name="net",
            )
        )
        write(result, folder)
        build_c(result, folder)
        use = "extern crate net;" if root else '#[path = "net.rs"]\nmod net;'
        (folder / "main.rs").write_text(
            f"{use}\nfn main() {{\n"
            "    let mut output = net::Output::new();\n"
            "    let mut pools = net::WorkspacePools::new(net::Sram::take().unwrap());\n"
            "    let input = net::Input::new();\n"
            "    let inputs = net::Inputs::new(&input);\n"
            "    let mut outputs = net::Outputs::new(&mut output);\n"
            "    net::Model::new().run(&inputs, &mut outputs, &mut pools).unwrap();\n"
            "    assert!((output.iter().sum::<f32>() - 1.0).abs() < 1e-6);\n}\n"
        )
        link = ["-L", f"native={folder}", "-l", "static=c_side", "-Dwarnings", "--edition=2024"]
        if root:
            must([rustc(), "--crate-type=rlib", *link, "net.rs"], folder)
            link = ["-L", str(folder), "--edition=2024"]
        must([rustc(), *link, "main.rs", "-o", "main"], folder)
        must([str(folder / "main")], folder)
