"""The runtime and the kernels as packages of Cargo, inside of a crate that depends on them.

The crate finds them by path, so that a build asks no index for their names. Several crates of one
program share the packages of one of them: Cargo refuses two packages of one name and version.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from converters.tf.emit.vendor import read_sources
from tools.codegen.cargo import CratePlace

_REPOSITORY = Path(__file__).parents[3]
_MANIFESTS = Path(__file__).parent.parent / "templates/vendor"
# The folder of the crate that holds them.
FOLDER: Final = "vendor"
# Each package, and where its sources are.
_PACKAGES = {"tfp-kernels": "kernels/src", "tfp-runtime": "converters/runtime/src"}
VENDORED: Final = CratePlace("path", f"{FOLDER}/tfp-runtime")
"""Where Cargo finds the runtime if `packages` are among the files of the crate."""


def packages() -> dict[str, str]:
    """Returns the files of both packages, by path in the crate that depends on them."""
    files: dict[str, str] = {}
    for name, sources in _PACKAGES.items():
        files[f"{FOLDER}/{name}/Cargo.toml"] = (_MANIFESTS / f"{name}.toml").read_text("utf-8")
        for path, text in read_sources(_REPOSITORY / sources).items():
            files[f"{FOLDER}/{name}/src/{path}"] = text
    return files
