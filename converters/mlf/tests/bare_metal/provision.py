"""Fetches what bare-metal builds need, without root: Debian packages unpacked into a cache folder.

Debian 12 has a C compiler for Arm, newlib, QEMU, and a Rust compiler with the source of `core` in
the same version. The folder is `$TFP_BARE_METAL_CACHE`, or `~/.cache/tfp/bare_metal`.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

TARGET = "thumbv7em-none-eabihf"
PACKAGES = (
    "binutils-arm-none-eabi",
    "gcc-arm-none-eabi",
    "libllvm22",
    "libnewlib-arm-none-eabi",
    "libnewlib-dev",
    "libstd-rust-web-1.96",
    "libstd-rust-web-dev",
    "qemu-system-arm",
    "rust-web-src",
    "rustc-web",
)
_SOURCE = "usr/src/rustc-1.96.0/library"


@dataclass(frozen=True)
class Tools:
    """The unpacked packages: `root` is their file tree, `core` the folder of the built `core`."""

    root: Path
    core: Path

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
    """Returns the tools, fetched (280 MB) and built on first use."""
    default = Path.home() / ".cache" / "tfp" / "bare_metal"
    cache = Path(os.environ.get("TFP_BARE_METAL_CACHE", str(default)))
    tools = Tools(cache / "root", cache / "core")
    done = cache / "ready"
    if not done.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _unpack(cache, tools.root)
        _build_core(tools)
        done.write_text("\n".join(PACKAGES))
    return tools


def _unpack(cache: Path, root: Path) -> None:
    listed = subprocess.run(
        ["apt-get", "install", "-s", "--no-install-recommends", "qemu-system-arm"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    needed = [line.split()[1] for line in listed.splitlines() if line.startswith("Inst ")]
    packages = cache / "packages"
    packages.mkdir(exist_ok=True)
    for name in sorted({*PACKAGES, *needed}):
        subprocess.run(["apt-get", "download", name], cwd=packages, check=True, capture_output=True)
    for package in sorted(packages.glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)


def _build_core(tools: Tools) -> None:
    tools.core.mkdir(exist_ok=True)
    common = ["rustc", "--sysroot", str(tools.root / "usr"), "--edition=2024", "--crate-type=lib"]
    common += [f"--target={TARGET}", "-O", "-Cpanic=abort", "--out-dir", str(tools.core)]
    library = tools.root / _SOURCE
    tools.run([*common, "--crate-name=core", str(library / "core/src/lib.rs")], tools.core)
    builtins = library / "compiler-builtins/compiler-builtins/src/lib.rs"
    features = ["--cfg", 'feature="compiler-builtins"', "--cfg", 'feature="mem"']
    extern = ["--extern", f"core={tools.core}/libcore.rlib"]
    tools.run(
        [*common, "--crate-name=compiler_builtins", *features, *extern, str(builtins)], tools.core
    )
