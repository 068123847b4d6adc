"""Writes crate tfp_sys: raw Rust bindings of TensorFlow's C headers.

Either all files are written or, on any error, none. Exit codes: 0 done, 1 the headers or their
rules are refused (every problem on stderr with file and line), 2 wrong arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tools.codegen.errors import CodegenError
from tools.codegen.rustfmt import format_rust
from tools.ffigen import api, emit, parse, read, rules

_INCLUDE_DIR = flags.DEFINE_string(
    "include_dir", None, "TensorFlow's include folder, which holds tensorflow/c/c_api.h."
)
_OUT = flags.DEFINE_string("out", None, "Folder for the .rs files; made if missing.")
_RUSTFMT = flags.DEFINE_string("rustfmt", "", "rustfmt program; empty: do not format.")


def generate(include_dir: Path, rustfmt: str = "") -> dict[str, str]:
    """Runs all stages.

    Args:
        include_dir: TensorFlow's include folder.
        rustfmt: The formatter; empty leaves the text as the templates have it.

    Returns:
        Text by file name.

    Raises:
        CodegenError: The headers, or the rules about them, are refused.
    """
    paths = tuple(rule.path for rule in rules.HEADERS)
    headers = read.read(parse.parse(include_dir, paths), paths)
    files = emit.emit(api.rust_crate(headers))
    return format_rust(files, rustfmt) if rustfmt else files


def main(argv: Sequence[str]) -> int:
    """Runs the program; returns its exit code."""
    if len(argv) > 1 or not _INCLUDE_DIR.value or not _OUT.value:
        print("ffigen: expected --include_dir=FOLDER and --out=FOLDER", file=sys.stderr)
        return 2
    try:
        files = generate(Path(_INCLUDE_DIR.value).absolute(), _RUSTFMT.value)
    except CodegenError as error:
        print(error, file=sys.stderr)
        return 1
    out = Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (out / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    app.run(main)
