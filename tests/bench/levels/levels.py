"""What the kernels gain from NEON, in instructions, and from WebAssembly's vectors, in time.

Each case of `kernels.rs` with the level of the target, and with the portable level, which the
compiler makes vectors of. There is no Arm machine to time on: QEMU counts what the program executes
between one call and two, and llvm-mca says how many cycles the innermost loop of a matrix product
takes. WebAssembly is timed in node, in turns.

Needs rustup, whose targets it adds to the stable toolchain; for `arm` also `qemu-aarch64` (7 or
later, with plug-ins), `llvm-objdump` and `llvm-mca`; for `web` also `node`.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from absl import app, flags

from tests.bench.levels.pages import INT8, Count, Int8, Loop, Modules, Times, arm_page, web_page

_ON = flags.DEFINE_enum("on", "arm", ["arm", "web"], "What to measure.")
_ROUNDS = flags.DEFINE_integer("rounds", 9, "Rounds of timing.", lower_bound=1)
_WRITE = flags.DEFINE_string("write", None, "Markdown file to write.")
_JSON = flags.DEFINE_bool("json", False, "Print the results as JSON on standard output.")

_HERE = Path("tests/bench/levels")
_ARM = "aarch64-unknown-linux-musl"
_WEB = "wasm32-unknown-unknown"
# The processors whose schedules llvm-mca knows, and their pipes that multiply and add.
_CORES = {"neoverse-n1": 2, "neoverse-n2": 2, "neoverse-v1": 4}
# Multiplications of the tile of 6 rows and 16 columns for each column of the left-hand side.
_TILE = 24


def _run(*command: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise app.Error(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done


def _tool(*names: str) -> str:
    """Returns the first of some programs that is there."""
    for name in names:
        if found := shutil.which(name):
            return found
    raise app.UsageError(f"no {names[0]}: install it and put it on PATH")


def _llvm(name: str) -> str:
    return _tool(*(f"{name}-{version}" for version in range(25, 16, -1)), name)


class Builder:
    """Compiles `kernels.rs` for a target, with its level or without.

    Args:
        target: Of rustc.
        folder: For what is made.
    """

    def __init__(self, target: str, folder: Path) -> None:
        _run(_tool("rustup"), "target", "add", "--toolchain=stable", target)
        self.rustc = _run(_tool("rustup"), "which", "--toolchain=stable", "rustc").stdout.strip()
        self._root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")).absolute()
        self._target, self._folder = target, folder

    def program(self, name: str, flags: Sequence[str], *, portable: bool) -> Path:
        """Returns the compiled program, a module for WebAssembly."""
        print(f"  compiling {name}", file=sys.stderr, flush=True)
        place = self._folder / name
        shutil.copytree(self._root / "kernels/src", place / "src")
        if portable:
            _without_levels(place / "src/base/level.rs")
            _with_portable_bodies(place / "src/simd/mod.rs")
        # One crate, so that only what the cases need is compiled.
        bench = re.sub(r"^(//!|#!\[).*\n", "", self.source("kernels.rs").read_text(), flags=re.M)
        root = place / "src/lib.rs"
        root.write_text(f"{root.read_text()}\nextern crate self as tfp_kernels;\n{bench}")
        web = self._target == _WEB
        made = place / ("kernels.wasm" if web else "kernels")
        _run(
            self.rustc,
            "--edition=2024",
            f"--target={self._target}",
            f"--crate-type={'cdylib' if web else 'bin'}",
            "--crate-name=kernels",
            '--cfg=feature="std"',
            "--cap-lints=allow",
            "-Copt-level=3",
            "-Cpanic=abort",
            "-Cstrip=debuginfo",
            "-Clinker=rust-lld",
            *flags,
            root,
            f"-o{made}",
        )
        return made

    def source(self, name: str) -> Path:
        """Returns a file beside this one."""
        return self._root / _HERE / name


def _without_levels(file: Path) -> None:
    """Takes the levels that a target decides about out of a copy of the dispatch point."""
    text = file.read_text("utf-8")
    for level in ("Neon", "Simd128"):
        text, count = re.subn(
            rf"\n    }} else if cfg!\([^{{]*{{\n        Level::{level}(?=\n)", "", text
        )
        if count != 1:
            raise app.Error(f"kernels/src/base/level.rs: the choice of {level} was not found")
    file.write_text(text, "utf-8")


def _with_portable_bodies(file: Path) -> None:
    """Lets a copy of the dispatch of bodies run the portable ones, which such targets leave out."""
    text = file.read_text("utf-8")
    arms = {"neon": "", "simd128": "", "portable": "        _ => portable::run(body),\n"}
    for body, becomes in arms.items():
        arm = rf"        #\[cfg\((?:[^\]]|\n)*?\)\]\n        _ => {body}::run\(body\),\n"
        text, count = re.subn(arm, becomes, text)
        if count != 1:
            raise app.Error(f"kernels/src/simd/mod.rs: the arm of {body} was not found")
    file.write_text(text, "utf-8")


def _cases(builder: Builder) -> list[str]:
    names = re.findall(r'^    \(\s*"([^"]+)",', builder.source("kernels.rs").read_text(), re.M)
    assert names, "kernels.rs has no cases"
    return names


def _instructions(
    program: Path, plugin: Path, case: int, core: str = "max"
) -> tuple[int, int, float]:
    """Returns instructions and accesses of a call, two calls less one, and the result's sum."""
    counts, total = [], 0.0
    qemu = (_tool("qemu-aarch64"), "-cpu", core, "-plugin", str(plugin))
    for calls in (1, 2):
        done = _run(*qemu, program, str(case), str(calls))
        found = re.search(r"instructions (\d+) accesses (\d+)", done.stderr)
        if found is None:
            raise app.Error(f"QEMU counted nothing: {done.stderr}")
        counts.append((int(found[1]), int(found[2])))
        total = float(done.stdout)
    (one, read), (two, more) = counts
    return two - one, more - read, total


def _loops(program: Path, folder: Path) -> list[Loop]:
    """Returns the cycles of the innermost loop of the tile of 6 rows and 16 columns."""
    listing = _run(_llvm("llvm-objdump"), "-d", "--no-show-raw-insn", program).stdout
    body = min(_tiles(listing), key=len)
    file = folder / "loop.s"
    file.write_text("\n".join(body) + "\n")
    columns = sum(line.startswith("fmla") for line in body) / _TILE
    result = []
    for core, pipes in _CORES.items():
        command = (_llvm("llvm-mca"), "-mtriple=aarch64", f"-mcpu={core}", "-iterations=1000")
        found = re.search(r"Total Cycles:\s+(\d+)", _run(*command, file).stdout)
        assert found is not None
        cycles = int(found[1]) / 1000 / columns
        result.append(Loop(core, (len(body) + 1) / columns, cycles, _TILE / pipes))
    return result


def _tiles(listing: str) -> list[list[str]]:
    """Returns the loops of a listing that do nothing but a tile's multiplications."""
    places: dict[str, int] = {}
    lines: list[str] = []
    found = []
    for line in listing.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if match is None:
            continue
        places[match[1]] = len(lines)
        text = re.sub(r"\s+", " ", match[2].split("<")[0]).strip()
        lines.append(text)
        branch = re.match(r"(?:cbn?z \w+,|b\.\w+) 0x([0-9a-f]+)$", text)
        if branch is None or branch[1] not in places:
            continue
        body = lines[places[branch[1]] : -1]
        # A way out of the loop is not part of what it repeats.
        body = [text for text in body if not re.match(r"cbn?z|b\.", text)]
        count = sum(text.startswith("fmla") for text in body)
        if count and count % _TILE == 0 and len(body) < 2 * count and "bl " not in body:
            found.append(body)
    if not found:
        raise app.Error("no loop of a tile in the program")
    return found


def _arm(folder: Path) -> tuple[list[Count], list[Int8], list[Loop]]:
    builder = Builder(_ARM, folder)
    plugin = folder / "libcount.so"
    _run(
        builder.rustc,
        "--edition=2024",
        "--crate-type=cdylib",
        "-O",
        "-Clink-arg=-Wl,--unresolved-symbols=ignore-all",
        builder.source("count.rs"),
        f"-o{plugin}",
    )
    portable = builder.program("portable", (), portable=True)
    neon = builder.program("neon", (), portable=False)
    counts, whole = [], []
    for index, case in enumerate(_cases(builder)):
        print(f"  {case}", file=sys.stderr, flush=True)
        old = _instructions(portable, plugin, index)
        cores = tuple(INT8) if case.startswith("int8") else ("max",)
        found = {core: _instructions(neon, plugin, index, core) for core in cores}
        for new in found.values():
            if not math.isclose(old[2], new[2], rel_tol=1e-3, abs_tol=1e-2):
                raise app.Error(f"{case}: {new[2]} instead of {old[2]}")
        if len(found) > 1:
            levels = {core: new[0] for core, new in found.items()}
            whole.append(Int8(case.removeprefix("int8 "), old[0], levels))
        else:
            counts.append(Count(case, old[:2], found["max"][:2]))
    return counts, whole, _loops(neon, folder)


def _node() -> list[str]:
    """Returns node with relaxed-simd, which versions before 21 have behind a flag."""
    node = _tool("node")
    version = _run(node, "--version").stdout
    old = int(version.removeprefix("v").split(".")[0]) < 21
    return [node, "--experimental-wasm-relaxed-simd"] if old else [node]


def _web(folder: Path) -> Modules:
    builder = Builder(_WEB, folder)
    simd, relaxed = "-Ctarget-feature=+simd128", "-Ctarget-feature=+simd128,+relaxed-simd"
    modules = {
        "portable": builder.program("portable", (simd,), portable=True),
        "relaxed-simd": builder.program("relaxed-simd", (relaxed,), portable=False),
    }
    print("  timing", file=sys.stderr, flush=True)
    timer = builder.source("time.mjs")
    done = _run(*_node(), timer, str(_ROUNDS.value), *modules.values())
    seconds = json.loads(done.stdout)
    times = [
        Times(case, {name: seconds[at][index] for at, name in enumerate(modules)})
        for index, case in enumerate(_cases(builder))
        # Both modules have the same bodies for int8.
        if not case.startswith("int8")
    ]
    return Modules({name: module.stat().st_size for name, module in modules.items()}, times)


def _arm_tools() -> Mapping[str, str]:
    llvm = re.search(r"LLVM version \S+", _run(_llvm("llvm-mca"), "--version").stdout)
    qemu = re.search(r"version (\S+)", _run(_tool("qemu-aarch64"), "--version").stdout)
    return {
        "qemu": f"QEMU {qemu[1]}" if qemu else "QEMU",
        "llvm": llvm[0] if llvm else "LLVM",
    }


def main(argv: Sequence[str]) -> None:
    """Measures, and prints or writes the page."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected: {' '.join(argv[1:])}")
    with tempfile.TemporaryDirectory() as name:
        rustc = _run(_tool("rustup"), "run", "stable", "rustc", "--version").stdout.strip()
        if _ON.value == "arm":
            counts, whole, loops = _arm(Path(name))
            page = arm_page(counts, whole, loops, {"rustc": rustc, **_arm_tools()})
            every = [*map(asdict, counts), *map(asdict, whole), *map(asdict, loops)]
            results = json.dumps(every, indent=2)
        else:
            modules = _web(Path(name))
            node = _run(_tool("node"), "--version").stdout.strip()
            page = web_page(modules, _ROUNDS.value, {"rustc": rustc, "node": node})
            results = json.dumps(asdict(modules), indent=2)
    print(results if _JSON.value else page)
    if _WRITE.value:
        root = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        (root / _WRITE.value).write_text(page, "utf-8")
        print(f"wrote {root / _WRITE.value}", file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
