"""Models behind the traits of `tfp-embedded`: they compute what the crate's own interface does."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from converters.mlf.api import CrateApi, ModelApi
from converters.mlf.convert import Request, Result, convert
from converters.mlf.emit_golden import check_lines, setup_lines
from converters.mlf.model import PoolKind
from converters.mlf.tests.build import Built, build, must, program, run_rust, rustc, write
from converters.mlf.tests.dialects import DIALECTS, Dialect
from converters.mlf.tests.requests import REAL, TESTDATA, request_of
from tools.codegen.cargo import CratePlace
from tools.codegen.conversion import UsageError

SOURCE = Path("converters/embedded/src/lib.rs")
PLACE = CratePlace("path", "../embedded")
#: Models without devices, of each kind of memory and entry point.
RUN = (*REAL, "all_dtypes", "internal_pools", "io_in_pools", "packed", "plain_v7")
#: Those whose C calls an operator by a name of the model, and the calls of a run.
CALLS = {
    "plain": {"default": 3},
    "constant_pool": {"default": 3},
    "multi": {"conv": 1, "mlp": 3},
}


def embedded_flags(folder: Path) -> tuple[str, ...]:
    """Compiles the crate of the traits; returns the flags that link it."""
    folder.mkdir(exist_ok=True)
    library = folder / "libtfp_embedded.rlib"
    command = [rustc(), "--edition=2024", "--crate-name=tfp_embedded", "--crate-type=rlib"]
    must([*command, "-Dwarnings", str(SOURCE.absolute()), "-o", str(library)], folder)
    return (f"--extern=tfp_embedded={library}", f"-Ldependency={folder}")


def request_named(name: str, folder: Path) -> Request:
    if name in DIALECTS:
        request = request_of(DIALECTS[name](), folder)
    else:
        request = Request(mlf=TESTDATA / f"{name}.tar", golden=TESTDATA / "golden.npz")
    return replace(request, embedded=PLACE)


def built_with_traits(result: Result, folder: Path, extra_c: str = "") -> tuple[Built, list[str]]:
    flags = embedded_flags(folder / "embedded")
    return build(result, folder / "crate", extra_c, rust_flags=flags), list(flags)


def _side(api: ModelApi, side: str) -> str:
    """Returns the expression of all inputs or outputs that `setup_lines` made."""
    tensors = api.inputs if side == "in" else api.outputs
    names = [f"{side}_{t.field}" for t in tensors]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _test_of(crate: CrateApi, api: ModelApi, calls: int) -> str:
    """Returns a test that runs a model by its traits, on the recorded values."""
    plain = replace(api, pools=(), slots={}, once=False)
    lines = setup_lines(crate.name, plain, "golden")
    ends = next(i for i, line in enumerate(lines) if line.startswith("let inputs ="))
    lines = [line for line in lines[:ends] if not line.startswith("let model")]
    once = api.once or any(p.pool.kind is PoolKind.WORKSPACE for p in api.pools)
    outputs = [t.field for t in api.outputs]
    taken = ", ".join(f"out_{f}" for f in outputs)
    pattern = taken if len(outputs) == 1 else f"({taken})"
    return "\n".join(
        [
            "#[test]",
            f"fn {api.module}_by_traits() {{",
            *(line.replace("let mut out_", "let out_") for line in lines),
            "use tfp_embedded::Model as _;",
            "let mut runner = m::Runner::take().unwrap();",
            *(["assert!(m::Runner::take().is_none());"] if once else []),
            f"let input = {_side(api, 'in')};",
            f"let mut output = {_side(api, 'out')};",
            "let time = std::cell::Cell::new(0);",
            "let clock = || { time.set(time.get() + 1); time.get() };",
            "let mut told = Vec::new();",
            "let mut profiler = |call: tfp_embedded::Call<'_>| {",
            "    told.push((call.name.to_owned(), call.index, call.ticks));",
            "};",
            "for _ in 0..2 {",
            "    runner.run(&input, &mut output).unwrap();",
            "    runner.run_profiled(&input, &mut output, &clock, &mut profiler).unwrap();",
            "}",
            f"let calls = {calls};",
            "assert_eq!(told.len(), 2 * (calls + 1));",
            "for run in told.chunks(calls + 1) {",
            "    for (number, call) in run[..calls].iter().enumerate() {",
            "        assert_eq!((call.1, call.2), (Some(number), 1));",
            '        assert!(!call.0.is_empty() && !call.0.starts_with("tvmgen"));',
            "    }",
            "    let whole = (tfp_embedded::RUN.to_owned(), None, 2 * calls as u64 + 1);",
            "    assert_eq!(run[calls], whole);",
            "}",
            f"let {pattern} = output;",
            "struct Found { "
            + " ".join(f"{t.field}: m::{t.type_name}," for t in api.outputs)
            + " }",
            "let outputs = Found { " + " ".join(f"{f}: out_{f}," for f in outputs) + " };",
            *check_lines(plain, "golden"),
            "}",
        ]
    )


def _run(result: Result, folder: Path, calls: dict[str, int]) -> str:
    built, flags = built_with_traits(result, folder)
    source = built.folder / "tests" / "traits.rs"
    tests = [_test_of(result.crate, m, calls.get(m.model.name, 0)) for m in result.crate.models]
    source.write_text("\n".join(tests))
    return run_rust(built, source, test=True, flags=tuple(flags))


@pytest.mark.parametrize("name", RUN)
def test_it_computes_what_is_recorded(name: str, tmp_path: Path) -> None:
    result = convert(request_named(name, tmp_path))
    assert f"{len(result.crate.models)} passed" in _run(result, tmp_path, {})


@pytest.mark.parametrize("name", CALLS)
def test_a_profiler_is_told_each_operator(name: str, tmp_path: Path) -> None:
    """The clock ticks when it is read: a call takes one tick, and nothing else reads it."""
    result = convert(replace(request_named(name, tmp_path), profile_calls=True))
    assert all(m.once for m in result.crate.models)
    assert f"{len(result.crate.models)} passed" in _run(result, tmp_path, CALLS[name])


def test_operators_that_return_nothing(tmp_path: Path) -> None:
    """As those of `tvm_export` do."""
    files = {k: str(v) for k, v in DIALECTS["plain_v7"]().files.items()}
    source = "codegen/host/src/default_lib1.c"
    main = "TVM_DLL int32_t tvmgen_default___tvm_main__(float* x, float* y)"
    assert main in files[source]
    body = files[source].replace(main, "TVM_DLL void tvmgen_default_double(float* x, float* y)")
    body = body.replace("return 0;", "return;")
    files[source] = f"{body}\n{main} {{\n  tvmgen_default_double(x, y);\n  return 0;\n}}\n"
    dialect = replace(DIALECTS["plain_v7"](), files=files)
    request = replace(request_of(dialect, tmp_path), embedded=PLACE, profile_calls=True)
    assert "1 passed" in _run(convert(request), tmp_path, {"default": 1})


def test_the_text_of_the_archive_stays_whole(tmp_path: Path) -> None:
    plain = convert(request_named("plain", tmp_path)).output.files
    cut = convert(replace(request_named("plain", tmp_path), profile_calls=True)).output.files
    stem = "c/include/default/default_lib1.c"
    parts = [cut[f"{stem}.{part}.inc"] for part in range(3)]
    assert b"".join(parts) == plain[f"{stem}.inc"]
    assert parts[1].lstrip().startswith(b"TVM_DLL int32_t tvmgen_default___tvm_main__(")


@pytest.mark.parametrize("name", ["device_hooks", "device_raw", "vendor_async", "awkward_names"])
def test_every_other_kind_compiles(name: str, tmp_path: Path) -> None:
    result = convert(request_named(name, tmp_path))
    built_with_traits(result, tmp_path, DIALECTS[name]().extra_c)


@pytest.mark.parametrize("name", sorted([*REAL, *DIALECTS]))
def test_generated_rust_is_formatted(name: str, tmp_path: Path) -> None:
    request = replace(request_named(name, tmp_path), profile_calls=name in CALLS)
    write(convert(request), tmp_path)
    files = [str(p) for p in (tmp_path / "src").glob("*.rs") if p.name != "lib.rs"]
    must([program("RUSTFMT", "rustfmt"), "--check", "--edition=2024", *files], tmp_path)


def test_a_tensor_may_be_called_as_the_type_that_runs(tmp_path: Path) -> None:
    files = {
        path: str(text).replace("workspace", "WORKSPACE") if "relay" in path else str(text)
        for path, text in DIALECTS["plain_v7"]().files.items()
    }
    files = {k: v.replace("void* x;", "void* runner;") for k, v in files.items()}
    files = {k: v.replace("->x", "->runner").replace('"x"', '"runner"') for k, v in files.items()}
    result = convert(replace(request_of(Dialect(files, {}), tmp_path), embedded=PLACE))
    built_with_traits(result, tmp_path)


def test_a_single_file_has_the_traits(tmp_path: Path) -> None:
    request = Request(
        mlf=TESTDATA / "plain.tar",
        embedded=PLACE,
        single_file=True,
        crate_root=True,
        crate_name="net",
    )
    result = convert(request)
    write(result, tmp_path)
    flags = embedded_flags(tmp_path / "embedded")
    command = [rustc(), "--edition=2024", "--crate-type=rlib", "-Dwarnings", *flags, "net.rs"]
    must(command, tmp_path)


def test_the_dependency_is_only_where_it_is_asked_for(tmp_path: Path) -> None:
    plain = convert(Request(mlf=TESTDATA / "plain.tar")).output.files
    assert not [path for path, content in plain.items() if b"tfp_embedded" in content]
    assert "dependencies" not in tomllib.loads(plain["Cargo.toml"].decode())
    manifest = tomllib.loads(
        convert(request_named("plain", tmp_path)).output.files["Cargo.toml"].decode()
    )
    assert manifest["dependencies"] == {"tfp-embedded": {"path": "../embedded"}}


@pytest.mark.parametrize("name", ["vendor_async", "plain_v7"])
def test_calls_that_are_not_seen_are_said(name: str, tmp_path: Path) -> None:
    request = replace(request_named(name, tmp_path), profile_calls=True)
    if name == "plain_v7":
        request = replace(request, embedded=None)
    with pytest.raises(UsageError, match=r"profile_calls"):
        convert(request)
