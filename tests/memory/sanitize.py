"""The tests of the crates that hold `unsafe` code and threads, under a sanitizer of rustc.

    python -m tests.memory.sanitize --kind=address
    python -m tests.memory.sanitize --kind=thread

Needs a nightly Rust with the component rust-src, because the standard library is also built with
the sanitizer. Also needs a Python with TensorFlow and what ffigen imports. TensorFlow itself is not
built so: what it does between its own functions is not seen.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags

from tests.memory import shared_model

ROOT = Path(__file__).resolve().parents[2]
HOST = "x86_64-unknown-linux-gnu"
# A model that threads share: its crate is written for the test.
GENERATED = "converters/tf"
# A crate's folder, arguments of `cargo test`, and arguments of the test programs.
CRATES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "bindings/client": (("--lib", "--test=wrapper_test"), ()),
    "bindings/core": (("--tests", "--features=ndarray"), ()),
    "bindings/plugin": (("--tests",), ()),
    "bindings/sys": (("--tests",), ()),
    "bindings/sys/loader": (("--tests",), ()),
    "bindings/wire": (("--tests",), ()),
    "kernels": (("--lib",), ("threads",)),
    "plugin": (("--lib",), ()),
    GENERATED: (("--test=threads",), ()),
}
# What TensorFlow keeps until the process ends is no leak, nor is what a plug-in registers with it.
# TensorFlow's threads hand messages over under locks that are not seen; the one function that reads
# them only reads.
SUPPRESSIONS = {
    "address": (
        "leak:libtensorflow\n"
        "leak:tfp_bindings::optimizer::init_graph\n"
        "leak:tfp_bindings::profiler::init_profiler\n"
    ),
    "thread": "race:tfp_core::base::api::text_from_ptr\n",
}
# A program that the sanitizer must refuse, and what it says.
CONTROLS = {
    "address": (
        "fn main() {\n"
        "    let place = { let kept = Box::new(7_u8); &raw const *kept };\n"
        "    let found = unsafe { std::ptr::read_volatile(place) };\n"
        "    std::process::exit(i32::from(found == 0));\n"
        "}\n",
        "heap-use-after-free",
    ),
    "thread": (
        "static mut COUNT: u64 = 0;\n"
        "fn main() {\n"
        "    let add = || for _ in 0..1000 { unsafe { COUNT += 1 } };\n"
        "    let other = std::thread::spawn(add);\n"
        "    add();\n"
        "    other.join().unwrap();\n"
        "}\n",
        "data race",
    ),
}

_KIND = flags.DEFINE_enum("kind", "address", list(CONTROLS), "The sanitizer.")
_TOOLCHAIN = flags.DEFINE_string("toolchain", "nightly", "The toolchain, as rustup names it.")
_TARGET_DIR = flags.DEFINE_string("target_dir", None, "Where cargo builds; a temporary folder.")
_ONLY = flags.DEFINE_multi_string("only", [], "Folders of crates; all of the table by default.")


def control(kind: str, folder: Path) -> None:
    """Checks that the sanitizer reports what it should.

    Raises:
        RuntimeError: It does not.
    """
    text, expected = CONTROLS[kind]
    source, program = folder / "control.rs", folder / "control"
    source.write_text(text)
    command = [
        "rustc", f"+{_TOOLCHAIN.value}", "--edition=2021", f"-Zsanitizer={kind}",
        "-Cunsafe-allow-abi-mismatch=sanitizer", str(source), "-o", str(program),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    if done.returncode == 0 or expected not in done.stderr:
        raise RuntimeError(f"the sanitizer did not report {expected!r}:\n{done.stderr}")


def environment(kind: str, folder: Path) -> dict[str, str]:
    """Returns the environment of cargo.

    Raises:
        RuntimeError: This Python has no TensorFlow.
    """
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{sys.executable} has no package tensorflow")
    suppressions = folder / "suppressions"
    suppressions.write_text(SUPPRESSIONS[kind])
    return {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
        "CARGO_TARGET_DIR": _TARGET_DIR.value or str(folder / "target"),
        "LSAN_OPTIONS": f"suppressions={suppressions}",
        "RUSTFLAGS": f"-Zsanitizer={kind}",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_LIBRARY_PATH": str(Path(spec.origin).parent),
        "TSAN_OPTIONS": (
            "allocator_may_return_null=1:ignore_noninstrumented_modules=1:"
            f"suppressions={suppressions}"
        ),
    }


def main(argv: Sequence[str]) -> int:
    """Runs the tests; returns 1 if a crate's failed."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    kind = _KIND.value
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        control(kind, folder)
        print(f"{kind}: the control program is reported", flush=True)
        env = environment(kind, folder)
        for crate in _ONLY.value or CRATES:
            build, arguments = CRATES[crate]
            place = shared_model.write(folder) if crate == GENERATED else ROOT / crate
            command = [
                "cargo", f"+{_TOOLCHAIN.value}", "test", "-Zbuild-std", f"--target={HOST}", *build,
                "--", *arguments,
            ]  # fmt: skip
            done = subprocess.run(command, cwd=place, env=env, check=False)
            print(f"{kind}: {crate}: {'ok' if done.returncode == 0 else 'FAILED'}", flush=True)
            if done.returncode != 0:
                failed.append(crate)
    return 1 if failed else 0


if __name__ == "__main__":
    app.run(main)
