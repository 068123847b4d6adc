"""Formatting of generated Rust text by rustfmt."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from tools.codegen.errors import Collector, Location


def format_rust(files: Mapping[str, str], rustfmt: str, edition: str = "2024") -> dict[str, str]:
    """Formats several Rust files, one rustfmt process after another.

    Args:
        files: Text by file name.
        rustfmt: The program.
        edition: The Rust edition.

    Returns:
        Formatted text by file name, in the same order.

    Raises:
        CodegenError: rustfmt refuses a file: the generated text does not parse.
        OSError: The program can't be started.
    """
    command = [rustfmt, "--edition", edition, "--emit", "stdout", "--quiet"]
    out: dict[str, str] = {}
    problems = Collector()
    for name, text in files.items():
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, encoding="utf-8", check=False
        )
        if done.returncode != 0 or (text.strip() and not done.stdout):
            said = " ".join(done.stderr.split())
            problems.add(Location(name), f"rustfmt refuses the generated text: {said}")
        out[name] = done.stdout
    problems.check()
    return out
