"""The console scripts of the wheel: each runs the program that Bazel runs."""

from __future__ import annotations

import importlib.util
import runpy
import sys


def _run(module: str) -> None:
    runpy.run_module(f"{__package__}.converters.{module}", run_name="__main__", alter_sys=True)


def mlf2rust() -> None:
    """Runs mlf2rust."""
    _run("mlf.main")


def tf2rust() -> None:
    """Runs tf2rust, which reads models with TensorFlow and Keras."""
    missing = [name for name in ("tensorflow", "keras") if importlib.util.find_spec(name) is None]
    if missing and "--help" not in sys.argv and "--helpfull" not in sys.argv:
        print(
            f"tf2rust: {' and '.join(missing)} can't be imported, and models are read with them: "
            "pip install 'tfp-converters[tf]'",
            file=sys.stderr,
        )
        sys.exit(2)
    _run("tf.main")
