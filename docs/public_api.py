"""The public items of the Rust crates that the version covers, read from rustdoc's pages.

`tools/bazel run //docs:update_public_api` records what a release has; the test fails when a
recorded item is gone, or a new one is not recorded.
"""

from __future__ import annotations

import os
import pathlib
import re
import sys
import tarfile
from collections.abc import Mapping, Sequence
from typing import Final

from absl import app, flags

_API = flags.DEFINE_string("api", None, "Archive of the crates' pages.")

CRATES: Final = ("tfp", "tfp_bindings", "tfp_core", "tfp_embedded")
"""Crates whose public items a release may not remove without a new minor version."""

FOLDER: Final = "docs/public_api"

_PAGE: Final = re.compile(
    r"(?P<module>.*)/(?P<kind>attr|constant|derive|enum|fn|macro|static|struct|trait|traitalias|type|union)"
    r"\.(?P<name>\w+)\.html"
)
_FOREIGN: Final = re.compile(
    r'id="(?:trait-implementations|synthetic-implementations|blanket-implementations|deref-methods-[^"]*'
    r'|foreign-impls|implementors|synthetic-implementors)"'
)
_REDIRECT: Final = '<meta http-equiv="refresh"'
"""Of a page at the path by which a private module knows an item that is public elsewhere."""

_MEMBER: Final = re.compile(
    r'id="(?:method|tymethod|variant|structfield|associatedconstant|associatedtype)\.(\w+)"'
)


def members(page: str) -> list[str]:
    """Returns the methods, variants, fields and associated items that a page documents as its own.

    Args:
        page: HTML of an item. Items of foreign traits are left out: they change with the compiler.
    """
    own = _FOREIGN.split(page, maxsplit=1)[0]
    return sorted(set(_MEMBER.findall(own)))


def items(pages: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the lines `kind module::Name member member ...` of each crate, sorted.

    Args:
        pages: HTML of rustdoc by its path, such as `tfp_core/struct.Tensor.html`.
    """
    found: dict[str, list[str]] = {crate: [] for crate in CRATES}
    for path, text in pages.items():
        match = _PAGE.fullmatch(path)
        crate = path.partition("/")[0]
        if match and crate in found and _REDIRECT not in text:
            name = "::".join([*match["module"].split("/"), match["name"]])
            found[crate].append(" ".join([match["kind"], name, *members(text)]))
    return {crate: sorted(lines) for crate, lines in found.items()}


def read(api: pathlib.Path) -> dict[str, list[str]]:
    """Reads the items of all crates from the archive of rustdoc's pages."""
    pages: dict[str, str] = {}
    with tarfile.open(api) as archive:
        for member in archive:
            if member.name.endswith(".html") and member.name.partition("/")[0] in CRATES:
                file = archive.extractfile(member)
                if file is not None:
                    pages[member.name] = file.read().decode()
    return items(pages)


def gone(recorded: Sequence[str], now: Sequence[str]) -> list[str]:
    """Returns what is recorded and not there any more: whole items, or members of one."""
    there = {" ".join(line.split()[:2]): set(line.split()[2:]) for line in now}
    missing = []
    for line in recorded:
        kind, name, *parts = line.split()
        if f"{kind} {name}" not in there:
            missing.append(f"{kind} {name}")
        else:
            missing += [f"{name}::{part}" for part in parts if part not in there[f"{kind} {name}"]]
    return missing


def main(argv: Sequence[str]) -> int:
    """Records the items; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if workspace is None or _API.value is None:
        print("public_api: run `tools/bazel run //docs:update_public_api`", file=sys.stderr)
        return 2
    for crate, lines in read(pathlib.Path(_API.value)).items():
        path = pathlib.Path(workspace, FOLDER, f"{crate}.txt")
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"wrote {FOLDER}/{crate}.txt: {len(lines)} items")
    return 0


if __name__ == "__main__":
    app.run(main)
