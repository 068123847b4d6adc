"""Compiles Python files into one file of bytecode, which `site/sitecustomize.py` reads.

The file: the magic number of the interpreter's bytecode; the length of the index in 8 bytes,
little-endian; the index as `marshal` writes it; the code objects, each as `marshal` writes it. The
index has for each file, by its path in runfiles, the hash of its source. It also has where the
file's code object begins and ends, counted from the end of the index.
"""

from __future__ import annotations

import marshal
import warnings
from collections.abc import Iterable, Sequence
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

from absl import app, flags

_SOURCES = flags.DEFINE_string(
    "sources",
    None,
    "A file with a line `RUNFILES PATH<tab>FILE` for each source.",
    required=True,
)
_OUTPUT = flags.DEFINE_string("output", None, "The file to write.", required=True)


def packed(sources: Iterable[tuple[str, Path]]) -> bytes:
    """Returns the bytecode of files; those that do not compile are left out.

    Args:
        sources: Each file, with its path in runfiles.
    """
    index: dict[str, tuple[bytes, int, int]] = {}
    codes: list[bytes] = []
    at = 0
    for path, file in sources:
        source = file.read_bytes()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            # Such as the templates of a package. Who imports one gets Python's own error.
            continue
        codes.append(marshal.dumps(code))
        index[path] = (source_hash(source), at, at + len(codes[-1]))
        at += len(codes[-1])
    head = marshal.dumps(index)
    return b"".join([MAGIC_NUMBER, len(head).to_bytes(8, "little"), head, *codes])


def main(argv: Sequence[str]) -> None:
    """Writes the file."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    lines = Path(_SOURCES.value).read_text("utf-8").splitlines()
    sources = [(path, Path(file)) for path, file in (line.split("\t") for line in lines)]
    Path(_OUTPUT.value).write_bytes(packed(sources))


if __name__ == "__main__":
    app.run(main)
