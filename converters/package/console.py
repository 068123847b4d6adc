"""The console scripts of the wheel: each runs the program that Bazel runs."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from typing import Final

_NEEDS_NOTHING: Final = ("--help", "--helpfull", "--helpshort", "-?", "--version")


def _run(module: str) -> None:
    runpy.run_module(f"{__package__}.converters.{module}", run_name="__main__", alter_sys=True)


def _is_there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def mlf2rust() -> None:
    """Runs mlf2rust."""
    _run("mlf.main")


def tokenizer2rust() -> None:
    """Runs tokenizer2rust, which reads files by itself."""
    _run("tokenizer.main")


def tvm_export() -> None:
    """Runs tvm_export, which says itself what it misses."""
    _run("mlf.tvm_export")


def tf2rust() -> None:
    """Runs tf2rust, which reads models with TensorFlow and Keras."""
    missing = [name for name in ("tensorflow", "keras") if not _is_there(name)]
    if missing and not any(argument in _NEEDS_NOTHING for argument in sys.argv[1:]):
        # An extra that names a TensorFlow would go over one that is there.
        extra = "cpu" if "tensorflow" in missing else "keras"
        print(
            f"tf2rust: {' and '.join(missing)} can't be imported, and models are read with them: "
            f"pip install 'tfp-converters[{extra}]'",
            file=sys.stderr,
        )
        sys.exit(2)
    _run("tf.cli.main")
