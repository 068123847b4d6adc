"""Crates that tf2rust generates, on other systems than the tests' own.

For every target a crate per graph of `GRAPHS` and `MORE`, as `crates_test.py` makes them: each
operation, with and without std, with weights that the compiler and that the assembler embeds. Where
an emulator runs them, the crates' own tests compare every output with the interpreter's.

Exits with 1 if a target fails. Needs rustup, whose targets it adds to the stable toolchain.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from absl import app, flags
from rich.console import Console
from rich.table import Table

from converters.tf.emit.options import Options, Profile, RuntimeMode
from converters.tf.tests.crates.crates import (
    compile_and_test,
    compile_crate,
    emitted,
    must,
    write,
)
from converters.tf.tests.crates.emulators import Emulators, provision
from converters.tf.tests.crates.graphs import GRAPHS, mlp, wide
from converters.tf.tests.crates.more_graphs import MORE

_TARGETS = flags.DEFINE_list(
    "targets", None, "Targets of rustc to try; all that are known if not set."
)
_WRITE = flags.DEFINE_string("write", None, "Markdown file to write, such as docs/platforms.md.")
_JSON = flags.DEFINE_bool("json", False, "Print the results as JSON on standard output.")

_WINDOWS = "x86_64-pc-windows-gnu"
_NO_STD = (*GRAPHS, *MORE, mlp)
_STD = (*_NO_STD, wide)

_PAGE = """\
# Other systems

Written on {date} by
`tools/bazel run //converters/tf/tests/crates:platforms -- --write docs/platforms.md`,
with {version}.

The crates of tf2rust contain only Rust and run where Rust runs. All tests run on Linux on x86-64.
For the systems below, crates of every operation are compiled with and without std, and warnings are
errors. Where an emulator exists, each crate's test compares every output with the interpreter's,
within the crate's tolerance. QEMU and Wine show that results are right, not how fast they are.

| processor | vectors of the kernels | chosen |
|---|---|---|
| x86-64 | AVX-512, AVX2 or portable | when a program runs; without std, by the target's features |
| 64-bit Arm | NEON | by the target, which always has it |
| WebAssembly | 128 bits, with `-C target-feature=+relaxed-simd` | by the target's features |
| others | portable: what the compiler makes of loops | |

Products of int8 numbers have instructions of their own. They are chosen when a program runs;
without std, by the target's features.

| processor | products of int8 numbers |
|---|---|
| x86-64 | AVX512-VNNI, AVX-VNNI or AVX2 |
| 64-bit Arm | `i8mm`, `dotprod` or NEON |
| WebAssembly | with `-C target-feature=+simd128` |

[Another page](performance/arm.md) says what NEON gains.

WebAssembly has threads where its host lends them: [npm packages](tf2rust/web.md#threads) have
modules for that. In other programs there, `with_threads` computes with one.

| system | target of rustc | crates | tests run on | seconds |
|---|---|---|---|---|
{rows}

The processor has to be little-endian, because weights are read in place: elsewhere a crate is a
`compile_error!`.
"""


@dataclass(frozen=True)
class Target:
    """A system.

    Attributes:
        name: What rustc calls it.
        system: What people call it.
        emulator: What runs its programs here: `qemu-` and a processor, `wine`, or `this machine`;
            empty if nothing does.
        std: Whether it has a standard library.
    """

    name: str
    system: str
    emulator: str = ""
    std: bool = True

    def runner(self, emulators: Emulators) -> list[str]:
        """Returns the command that runs a program of the target."""
        if self.emulator == "wine":
            return [emulators.wine]
        _, qemu, processor = self.emulator.rpartition("qemu-")
        return [emulators.qemu(processor)] if qemu else []

    def flags(self, emulators: Emulators) -> list[str]:
        """Returns what rustc needs to know to compile and to link for the target."""
        linker = emulators.windows_linker if self.name == _WINDOWS else "rust-lld"
        return [f"--target={self.name}", f"-Clinker={linker}"]


TARGETS = (
    Target("aarch64-unknown-linux-musl", "Linux, 64-bit Arm", "qemu-aarch64"),
    Target("i686-unknown-linux-musl", "Linux, 32-bit x86", "this machine"),
    Target(_WINDOWS, "Windows", "wine"),
    Target("x86_64-pc-windows-msvc", "Windows, Microsoft's linker"),
    Target("aarch64-apple-darwin", "macOS, Apple's processors"),
    Target("x86_64-apple-darwin", "macOS, Intel's processors"),
    Target("wasm32-unknown-unknown", "WebAssembly"),
    Target("thumbv7em-none-eabihf", "microcontrollers, Cortex-M4F", std=False),
)


@dataclass(frozen=True)
class Result:
    """What came of a target.

    Attributes:
        target: Its name.
        system: What people call it.
        runs_on: What ran the crates' tests; empty if they were only compiled.
        crates: Crates that were compiled, and passed their tests if these ran.
        seconds: Time that it took.
        error: Of the first crate that did not; empty if there is none.
    """

    target: str
    system: str
    runs_on: str
    crates: int
    seconds: float
    error: str = ""


def _runtime(flags: Sequence[str], folder: Path) -> list[str]:
    """Compiles kernels and runtime with std; returns the flags that link them."""
    rustc = os.environ["RUSTC"]
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")).absolute()
    common = [rustc, "--edition=2024", "--crate-type=rlib", "-Copt-level=2", "-Dwarnings"]
    common += [*flags, '--cfg=feature="std"', f"--out-dir={folder}"]
    must([*common, "--crate-name=tfp_kernels", str(root / "kernels/src/lib.rs")], folder)
    linked = [f"--extern=tfp_kernels={folder}/libtfp_kernels.rlib", f"-Ldependency={folder}"]
    source = root / "converters/runtime/src/lib.rs"
    must([*common, *linked, "--crate-name=tfp_runtime", str(source)], folder)
    return [f"--extern=tfp_runtime={folder}/libtfp_runtime.rlib", f"-Ldependency={folder}"]


def _crates(target: Target, emulators: Emulators, folder: Path) -> int:
    """Compiles all crates of a target, and runs their tests; returns their number."""
    flags, runner = target.flags(emulators), target.runner(emulators)
    made = []
    if target.std:
        linked = [*flags, *_runtime(flags, folder)]
        made += [(make(), linked, Profile.STD, RuntimeMode.CRATE) for make in _STD]
    plain = [*flags, "-Adead_code", "-Cdebug-assertions=off"]
    if not target.std:
        plain.append("-Cpanic=abort")
    made += [(make(), plain, Profile.NO_STD, RuntimeMode.INCLUDE) for make in _NO_STD]
    for graph, rustc_flags, profile, runtime in made:
        print(f"  {target.name}: {graph.name}, {profile.value}", file=sys.stderr, flush=True)
        place = folder / profile.value / graph.name
        options = Options(graph.name, "graphs.py", profile=profile, runtime=runtime)
        write(emitted(graph, options), place)
        if target.emulator:
            compile_and_test(place, graph.name, rustc_flags, runner)
        else:
            compile_crate(place, graph.name, rustc_flags)
    return len(made)


def _try(target: Target, emulators: Emulators) -> Result:
    start = time.monotonic()
    count, error = 0, ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            count = _crates(target, emulators, Path(folder))
        except AssertionError as failure:
            error = str(failure)
    took = round(time.monotonic() - start, 1)
    return Result(target.name, target.system, target.emulator, count, took, error)


def _page(results: Sequence[Result], version: str) -> str:
    """Returns the page of the results."""
    rows = [
        f"| {r.system} | `{r.target}` | {r.crates} | {r.runs_on or 'not run'} | {r.seconds:.0f} |"
        for r in results
    ]
    return _PAGE.format(date=datetime.date.today(), version=version, rows="\n".join(rows))


def _rustup(*arguments: str) -> str:
    if shutil.which("rustup") is None:
        raise app.UsageError("no rustup: it has the standard libraries of other systems")
    return subprocess.run(
        ["rustup", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def main(argv: Sequence[str]) -> None:
    """Tries the targets and prints a table."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected: {' '.join(argv[1:])}")
    names = [target.name for target in TARGETS]
    if unknown := set(_TARGETS.value or ()) - set(names):
        raise app.UsageError(f"no such target: {', '.join(unknown)}; there are {', '.join(names)}")
    chosen = [t for t in TARGETS if _TARGETS.value is None or t.name in _TARGETS.value]
    _rustup("target", "add", "--toolchain=stable", *names)
    os.environ["RUSTC"] = _rustup("which", "--toolchain=stable", "rustc")
    os.environ.setdefault("RUSTFMT", _rustup("which", "--toolchain=stable", "rustfmt"))
    emulators = provision(os.environ["RUSTC"])
    os.environ.update(emulators.environment)
    results = [_try(target, emulators) for target in chosen]
    if _JSON.value:
        print(json.dumps([asdict(r) for r in results], indent=2))
    else:
        table = Table("system", "target", "crates", "tests run on", "seconds")
        for r in results:
            shown = r.runs_on or "not run"
            table.add_row(r.system, r.target, str(r.crates), shown, str(r.seconds))
        Console().print(table)
    failed = [r for r in results if r.error]
    for r in failed:
        print(f"{r.target}: {r.error}", file=sys.stderr)
    if failed:
        sys.exit(1)
    if _WRITE.value:
        root = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        version = must([os.environ["RUSTC"], "--version"], root).strip()
        (root / _WRITE.value).write_text(_page(results, version), "utf-8")


if __name__ == "__main__":
    app.run(main)
