"""The console scripts of the wheel: each runs the program that Bazel runs."""

from __future__ import annotations

import runpy


def _run(module: str) -> None:
    runpy.run_module(f"{__package__}.{module}", run_name="__main__", alter_sys=True)


def mlf2rust() -> None:
    """Runs mlf2rust."""
    _run("mlf.main")
