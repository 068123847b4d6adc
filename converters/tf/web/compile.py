"""rustc makes WebAssembly modules of a model's crate."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.codegen.conversion import Problem, UsageError
from tools.codegen.folder import replace_folder

TARGET = "wasm32-unknown-unknown"
_EDITION = "2024"
_OPTIMIZED = ("-Copt-level=3", "-Ccodegen-units=1", "-Cpanic=abort")
# What the wrapper has for the threads of a host: a feature of its crate.
_FEATURE = ('--check-cfg=cfg(feature,values("threads"))',)
_WITH_FEATURE = (*_FEATURE, '--cfg=feature="threads"')
# Memory that the host makes, of up to 4 GiB, and whose instances have a stack each. The library
# with the compiler's own functions says that it has no atomic instructions; it needs none.
LINK_SHARED = (
    "--import-memory",
    "--shared-memory",
    f"--max-memory={1 << 32}",
    "--export=__stack_pointer",
    "--no-check-features",
)


@dataclass(frozen=True)
class Build:
    """A module of a package.

    Attributes:
        name: Its name in the package's description.
        features: What of the processor it may use.
        threads: Whether a host may run it in several threads on one memory.
    """

    name: str
    features: str
    threads: bool = False

    @property
    def suffix(self) -> str:
        """What the name of its file has before `.wasm`."""
        return "" if self.name == "simd" else f".{self.name}"


_ATOMICS = "+atomics,+bulk-memory,+mutable-globals"
BUILDS = (Build("simd", "+simd128"), Build("relaxed", "+simd128,+relaxed-simd"))
THREADED = (
    Build("threads", f"+simd128,{_ATOMICS}", threads=True),
    Build("threads-relaxed", f"+simd128,+relaxed-simd,{_ATOMICS}", threads=True),
)


@dataclass(frozen=True)
class Compiler:
    """A rustc that has the standard library for WebAssembly.

    Attributes:
        rustc: The program.
        flags: What it needs to find that library.
    """

    rustc: str
    flags: tuple[str, ...] = ()


def find_compiler(environment: Mapping[str, str]) -> Compiler:
    """Returns the compiler of the build rule (`TF2RUST_RUSTC`), or an installed one.

    Raises:
        UsageError: There is none, or it can't compile for WebAssembly.
    """
    rustc = environment.get("TF2RUST_RUSTC") or shutil.which("rustc", path=environment.get("PATH"))
    if not rustc:
        advice = f"install Rust, and run `rustup target add {TARGET}`"
        raise UsageError(Problem("--target=web", "rustc is not installed", advice))
    sysroot = environment.get("TF2RUST_WASM_SYSROOT", "")
    libraries = (
        str(Path(sysroot) / "lib/rustlib" / TARGET / "lib")
        if sysroot
        else _output([rustc, "--print", "target-libdir", "--target", TARGET])
    )
    if not libraries or not any(Path(libraries).glob("libstd-*.rlib")):
        advice = f"run `rustup target add {TARGET}`"
        what = f"{rustc} has no standard library for {TARGET}"
        raise UsageError(Problem("--target=web", what, advice))
    return Compiler(rustc, (f"-L{libraries}",) if sysroot else ())


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as err:
        raise UsageError(Problem(command[0], f"can't be started: {err}")) from err
    return done.stdout.strip() if done.returncode == 0 else ""


def compile_modules(
    compiler: Compiler,
    name: str,
    crate: Mapping[str, bytes],
    wrapper: bytes,
    threads: bool,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, bytes]:
    """Returns the modules by the names of their builds.

    Args:
        compiler: From `find_compiler`.
        name: Name of the crate.
        crate: Its files.
        wrapper: The crate with the exported functions, one file.
        threads: Whether there are also modules that a host may run in several threads.
        progress: Called with what is done next.

    Raises:
        UsageError: rustc fails, such as for lack of memory.
    """
    builds = (*BUILDS, *THREADED) if threads else BUILDS
    progress(f"compile WebAssembly, in {len(builds)} builds")
    with tempfile.TemporaryDirectory(prefix="tf2rust-web-") as folder:
        root = Path(folder)
        replace_folder(root / "model", crate)
        (root / "web.rs").write_bytes(wrapper)

        def one(build: Build) -> tuple[str, bytes]:
            return build.name, _module(compiler, name, root, build)

        with ThreadPoolExecutor(2) as pool:
            return dict(pool.map(one, builds))


def _module(compiler: Compiler, name: str, root: Path, build: Build) -> bytes:
    out = root / build.name
    out.mkdir()
    common = [
        compiler.rustc,
        f"--edition={_EDITION}",
        f"--target={TARGET}",
        f"-Ctarget-feature={build.features}",
        *_OPTIMIZED,
        # Panics name files; without this they would name this folder.
        f"--remap-path-prefix={root}=",
        *compiler.flags,
    ]
    library = out / f"lib{name}.rlib"
    _run(
        [
            *common,
            "--crate-type=rlib",
            f"--crate-name={name}",
            "-Cembed-bitcode=yes",
            "--cap-lints=allow",
            f"-o{library}",
            str(root / "model/src/lib.rs"),
        ],
        root / "model",
    )
    module = out / "module.wasm"
    _run(
        [
            *common,
            "--crate-type=cdylib",
            f"--crate-name={name}_web",
            "-Clto=fat",
            "-Cstrip=symbols",
            # Numbers in code have as many bytes as they need, not five.
            "-Clink-arg=--compress-relocations",
            f"--extern={name}={library}",
            *(_WITH_FEATURE if build.threads else _FEATURE),
            *(f"-Clink-arg={flag}" for flag in (LINK_SHARED if build.threads else ())),
            f"-o{module}",
            str(root / "web.rs"),
        ],
        root,
    )
    return module.read_bytes()


def _run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as err:
        raise UsageError(Problem(command[0], f"can't be started: {err}")) from err
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.startswith("error")]
        why = last[0] if last else f"exit status {done.returncode}"
        advice = "a model with many embedded weights needs --weights=file"
        raise UsageError(Problem("--target=web", f"rustc fails: {why}", advice))
