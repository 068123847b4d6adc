"""Fetches what bare-metal builds need, without root: Debian packages unpacked into a cache folder.

Debian 12 has gcc for Arm and RISC-V, newlib, picolibc, QEMU and cargo. It also has a Rust compiler
with the source of `core` in the same version, and clang on the LLVM of that Rust compiler. The
folder is `$TFP_BARE_METAL_CACHE`, or `~/.cache/tfp/bare_metal`.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from converters.mlf.tests.bare_metal.debian import unpack

TARGET = "thumbv7em-none-eabihf"
PACKAGES = (
    "binutils-arm-none-eabi",
    "binutils-riscv64-unknown-elf",
    "clang-22",
    "gcc-arm-none-eabi",
    "gcc-riscv64-unknown-elf",
    "libclang-common-22-dev",
    "libclang-cpp22",
    "libllvm22",
    "libnewlib-arm-none-eabi",
    "libnewlib-dev",
    "libstd-rust-web-1.96",
    "libstd-rust-web-dev",
    "picolibc-riscv64-unknown-elf",
    "rust-web-src",
    "rustc-web",
)
#: Fetched with what they depend on.
INSTALLED = ("cargo-web", "qemu-system-arm", "qemu-system-misc")
_SOURCE = "usr/src/rustc-1.96.0/library"


@dataclass(frozen=True)
class Tools:
    """The unpacked packages and a target of rustc.

    Attributes:
      root: file tree of the packages.
      core: folder of the `core` that was built for the target.
      target: name of the target, or path of its specification.
    """

    root: Path
    core: Path
    target: str

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which the programs find their libraries."""
        libraries = [self.root / d / "x86_64-linux-gnu" for d in ("usr/lib", "lib")]
        return {
            "LD_LIBRARY_PATH": ":".join(str(p) for p in libraries),
            "PATH": f"{self.root}/usr/bin:/usr/bin:/bin",
            "RUSTC_BOOTSTRAP": "1",
        }

    def run(self, command: list[str], cwd: Path, timeout: int = 300) -> str:
        """Runs one of the programs, which has to succeed; returns its output."""
        program = self.root / "usr/bin" / command[0]
        done = subprocess.run(
            [str(program), *command[1:]],
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout


def provision() -> Tools:
    """Returns the tools for `TARGET`, fetched (400 MB) and built on first use."""
    default = Path.home() / ".cache" / "tfp" / "bare_metal"
    cache = Path(os.environ.get("TFP_BARE_METAL_CACHE", str(default)))
    tools = Tools(cache / "root", cache / "core", TARGET)
    done = cache / "ready"
    content = "\n".join((*PACKAGES, *INSTALLED))
    if not done.exists() or done.read_text() != content:
        cache.mkdir(parents=True, exist_ok=True)
        unpack(PACKAGES, list(INSTALLED), cache, tools.root)
        _build_core(tools)
        done.write_text(content)
    return tools


def in_sysroot(tools: Tools, triple: str) -> None:
    """Builds `core` for a target where rustc and cargo look for it, on first use."""
    folder = tools.root / "usr/lib/rustlib" / triple / "lib"
    done, content = folder / "ready", "\n".join((*PACKAGES, *INSTALLED))
    if not done.exists() or done.read_text() != content:
        folder.mkdir(parents=True, exist_ok=True)
        _build_core(replace(tools, core=folder, target=triple))
        done.write_text(content)


def without_frame_pointer(tools: Tools) -> Tools:
    """Returns the tools for a target that differs from theirs in this one point.

    Stock rustc keeps the frame pointer of `TARGET` whatever its flags say; only another target
    specification, which is an unstable feature, leaves it out.
    """
    core = tools.core.with_name("core_without_frame_pointer")
    target = core / f"{TARGET}_without_frame_pointer.json"
    changed = replace(tools, core=core, target=str(target))
    done, content = core / "ready", "\n".join((*PACKAGES, *INSTALLED))
    if not done.exists() or done.read_text() != content:
        core.mkdir(exist_ok=True)
        shown = ["rustc", "-Zunstable-options", f"--target={TARGET}", "--print=target-spec-json"]
        stock = json.loads(tools.run(shown, core))
        target.write_text(json.dumps(stock | {"frame-pointer": "may-omit"}))
        _build_core(changed)
        done.write_text(content)
    return changed


def _build_core(tools: Tools) -> None:
    tools.core.mkdir(exist_ok=True)
    common = ["rustc", "--sysroot", str(tools.root / "usr"), "--edition=2024", "--crate-type=lib"]
    common += [
        "-Zunstable-options",
        f"--target={tools.target}",
        "-O",
        "-Cpanic=abort",
        "--out-dir",
        str(tools.core),
    ]
    library = tools.root / _SOURCE
    tools.run([*common, "--crate-name=core", str(library / "core/src/lib.rs")], tools.core)
    builtins = library / "compiler-builtins/compiler-builtins/src/lib.rs"
    features = ["--cfg", 'feature="compiler-builtins"', "--cfg", 'feature="mem"']
    extern = ["--extern", f"core={tools.core}/libcore.rlib"]
    tools.run(
        [*common, "--crate-name=compiler_builtins", *features, *extern, str(builtins)], tools.core
    )
