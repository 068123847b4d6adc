"""A crate as one file, for build systems that name every source beforehand."""

from __future__ import annotations

from collections.abc import Mapping

from converters.tf.emit.crate import CUSTOM


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
    for path, content in files.items():
        place = path.removeprefix(f"{folder}/").removesuffix("/mod.rs").removesuffix(".rs")
        if not path.startswith(f"{folder}/") or "/" in place:
            continue
        body = _with_modules(content.decode(), files, f"{folder}/{place}")
        # Files of the user stay as they are: their strings may have several lines.
        body = body if folder.endswith(CUSTOM) or place == CUSTOM else _indented(body)
        for start in ("\nmod", "\npub mod"):
            text = text.replace(f"{start} {place};\n", f"{start} {place} {{\n{body}}}\n")
    return text


def _indented(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "".join(f"    {line}".rstrip() + "\n" for line in lines)
