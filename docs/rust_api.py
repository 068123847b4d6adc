"""Writes the pages of the Rust crates: rustdoc over their packages, all in one folder.

The packages are those that users get, so the pages are, too: generated sources inside, links from
one crate to the other, one search.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from typing import Final

from absl import app, flags

from docs import tree

_CARGO = flags.DEFINE_string("cargo", None, "The cargo program.", required=True)
_CC = flags.DEFINE_string(
    "cc", None, "The C compiler, named cc: it links build scripts.", required=True
)
_CRATES = flags.DEFINE_multi_string("crate", [], "A package; may be repeated.")
_OUT = flags.DEFINE_string("out", None, "The archive to write.", required=True)

WARNINGS: Final = "-Dwarnings -Arustdoc::private_intra_doc_links"
"""A link of a comment that leads nowhere fails the build; one to a private item is for editors."""

START: Final = '<!DOCTYPE html><meta http-equiv="refresh" content="0; url=tfp/index.html">\n'
"""The page to which rustdoc's help goes back; rustdoc writes none for several crates."""


def document(
    cargo: pathlib.Path, cc: pathlib.Path, crates: Sequence[pathlib.Path], folder: pathlib.Path
) -> None:
    """Runs rustdoc.

    Args:
        cargo: The cargo program, with rustc and rustdoc beside it.
        cc: The C compiler, in a folder where it has the name `cc`.
        crates: The packages.
        folder: An empty folder to work in; the pages are in its `target/doc`.

    Raises:
        RuntimeError: If rustdoc refuses; it has said why.
    """
    packages = {}
    for crate in crates:
        with tarfile.open(crate) as archive:
            archive.extractall(folder)
        name, _, version = crate.name.removesuffix(".crate").rpartition("-")
        packages[name] = version
    # A project that depends on all of them: as members they would need what only a feature needs.
    root = folder / "root"
    (root / "src").mkdir(parents=True)
    (root / "src/lib.rs").touch()
    wanted = [f'{name} = "={version}"' for name, version in packages.items()]
    places = [f'{name} = {{ path = "../{name}-{version}" }}' for name, version in packages.items()]
    manifest = ['[package]\nname = "root"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]']
    manifest += [*wanted, "[patch.crates-io]", *places, ""]
    (root / "Cargo.toml").write_text("\n".join(manifest), encoding="utf-8")
    chosen = [f"--package={name}" for name in packages]
    done = subprocess.run(
        [str(cargo), "doc", "--no-deps", "--offline", "--quiet", *chosen],
        cwd=root,
        env={
            "CARGO_HOME": str(folder / "home"),
            "CARGO_TARGET_DIR": str(folder / "target"),
            "PATH": os.pathsep.join(
                [str(cargo.parent), str(cc.parent), os.environ.get("PATH", "/usr/bin:/bin")]
            ),
            "RUSTC": str(cargo.with_name("rustc")),
            "RUSTDOC": str(cargo.with_name("rustdoc")),
            "RUSTDOCFLAGS": WARNINGS,
        },
        check=False,
    )
    if done.returncode:
        raise RuntimeError("rustdoc failed")


def main(argv: Sequence[str]) -> int:
    """Writes the archive; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        crates = [pathlib.Path(crate) for crate in _CRATES.value]
        try:
            cargo, cc = (pathlib.Path(flag.value).absolute() for flag in (_CARGO, _CC))
            document(cargo, cc, crates, folder)
        except RuntimeError as error:
            print(f"rust_api: {error}", file=sys.stderr)
            return 1
        pages = folder / "target/doc"
        pages.joinpath("index.html").write_text(START, encoding="utf-8")
        tree.pack(pages, pathlib.Path(_OUT.value))
    return 0


if __name__ == "__main__":
    app.run(main)
