"""A crate as one file, for build systems that name every source beforehand."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MODULE = re.compile(r"^(pub |)mod (\w+);$", re.MULTILINE)


def crate_root(files: Mapping[str, bytes]) -> str:
    """Returns `src/lib.rs` with its modules inside.

    Args:
        files: Files of a crate that links the runtime.
    """
    return _with_modules(files["src/lib.rs"].decode(), files, "src")


def test_root(files: Mapping[str, bytes], path: str) -> str:
    """Returns a test or bench with its modules inside."""
    return _with_modules(files[path].decode(), files, path.rpartition("/")[0])


def _with_modules(text: str, files: Mapping[str, bytes], folder: str) -> str:
    def module(match: re.Match[str]) -> str:
        visible, name = match.groups()
        paths = (f"{folder}/{name}.rs", f"{folder}/{name}/mod.rs")
        body = next(files[path] for path in paths if path in files).decode()
        return f"{visible}mod {name} {{\n{_indented(body)}}}"

    return _MODULE.sub(module, text)


def _indented(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "".join(f"    {line}".rstrip() + "\n" for line in lines)
