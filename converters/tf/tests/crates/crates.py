"""Emits crates for graphs and compiles them: rustc against the runtime of the build, or Cargo."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from converters.tf import ir
from converters.tf.emit.crate import Features, emit_crate
from converters.tf.emit.options import Options
from converters.tf.ir.interpret import interpret
from converters.tf.ir.samples import made_texts

EXAMPLES = 3


def recorded(graph: ir.Graph, examples: int = EXAMPLES) -> Features:
    """Returns random inputs and what the interpreter makes of them."""
    random = np.random.default_rng(11)
    inputs = {}
    for port in graph.inputs:
        shape = ir.shape_at(port.value.shape, examples)
        kind = port.value.dtype.numpy
        data: ir.Array
        if port.value.dtype is ir.DType.STR:
            inputs[port.name] = made_texts(graph, port.value, tuple(shape))
            continue
        if kind.kind == "f":
            data = random.normal(size=shape)
        else:
            data = random.integers(0, 2 if kind.kind == "b" else 9, shape)
        inputs[port.name] = data.astype(kind)
    return Features(inputs, interpret(graph, inputs))


def program(variable: str, default: str) -> str:
    """Returns the program that the environment names, else the one on PATH."""
    given = os.environ.get(variable)
    path = str(Path(given).absolute()) if given else shutil.which(default)
    if path is None:
        raise RuntimeError(f"no {default}: set {variable}")
    return path


def rustfmt() -> str:
    """The rustfmt of the build, else of the machine."""
    return program("RUSTFMT", "rustfmt")


def emitted(graph: ir.Graph, options: Options) -> dict[str, bytes]:
    """Returns a crate's files."""
    return emit_crate(graph, options, recorded(graph), rustfmt())


def write(files: dict[str, bytes], folder: Path) -> None:
    """Writes a crate's files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def must(command: list[str], cwd: Path, env: dict[str, str] | None = None) -> str:
    """Runs a command that has to succeed; returns its output."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=600, env=env, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def compile_crate(folder: Path, crate: str, flags: Sequence[str]) -> list[str]:
    """Compiles a crate with rustc.

    Args:
        folder: The crate's folder.
        crate: Its name.
        flags: Flags of the compilation.

    Returns:
        The command that compiles what links it, but for that and the output.
    """
    rustc = program("RUSTC", "rustc")
    # At level 0, rustc's default: quick to compile matters more than quick to run.
    common = [rustc, "--edition=2024", "-Dwarnings", *flags]
    library = f"{folder}/lib{crate}.rlib"
    command = ["--crate-type=rlib", f"--crate-name={crate}", "src/lib.rs", "-o", library]
    must([*common, *command], folder, {**os.environ, "CARGO_MANIFEST_DIR": str(folder)})
    return [*common, f"--extern={crate}={library}"]


def compile_and_test(
    folder: Path, crate: str, flags: Sequence[str], runner: Sequence[str] = ()
) -> str:
    """Compiles a crate and its test with rustc, and runs the test.

    Args:
        folder: The crate's folder.
        crate: Its name.
        flags: Flags of both compilations.
        runner: Command that runs the test, if it is not for this machine.

    Returns:
        What the test printed.
    """
    linking = compile_crate(folder, crate, flags)
    # Wine starts only what has such a name.
    test = folder / "golden_test.exe"
    env = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    must([*linking, "--test", "tests/golden.rs", "-o", str(test)], folder, env)
    return must([*runner, str(test), "--test-threads=1"], folder, env)


def check_crate(folder: Path, crate: str) -> None:
    """Lets rustc check a crate with a runtime of its own; nothing is generated."""
    command = [program("RUSTC", "rustc"), "--edition=2024", "-Dwarnings", "-Adead_code"]
    command += ["--emit=metadata", "--crate-type=rlib", f"--crate-name={crate}", "src/lib.rs"]
    env = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    must([*command, "-o", f"{folder}/lib{crate}.rmeta"], folder, env)


def runtime_flags(variable: str = "TFP_RUNTIME") -> list[str]:
    """Returns the flags that link the runtime of the build.

    Raises:
        RuntimeError: The environment does not name it.
    """
    paths = os.environ.get(variable, "").split()
    if not paths:
        raise RuntimeError(f"{variable} names no libraries")
    absolute = [Path(path).absolute() for path in paths]
    runtime = next(path for path in absolute if path.name.startswith("libtfp_runtime"))
    folders = dict.fromkeys(str(path.parent) for path in absolute)
    return [
        f"--extern=tfp_runtime={runtime}",
        *(f"-Ldependency={folder}" for folder in folders),
    ]
