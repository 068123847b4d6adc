"""Builds a `.crate` of Cargo from a crate of this repository, generated sources inside.

Inside the repository a crate finds its neighbours by path, and generated crates have a build
script that runs the generators. A package has neither: its neighbours are packages of the same
version, and its sources are as they were generated. Equal inputs give equal bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from tools.package import sbom

LICENCE: Final = "Apache-2.0"
_KEPT: Final = ("edition", "rust-version", "description")
_LIBRARY: Final = ("doctest", "crate-type", "proc-macro")


class CrateError(Exception):
    """A manifest can't be turned into one of a package; the message says why."""


def manifest(text: str, workspace: str, version: str) -> dict[str, Any]:
    """Turns a manifest of the repository into one of a package.

    Args:
        text: The crate's `Cargo.toml`.
        workspace: The repository's, from which the crate inherits.
        version: The version of all packages.

    Returns:
        The tables of the new one. Dependencies for development, benchmarks, profiles, and the build
        script are left out; dependencies by path become packages of exactly this version.

    Raises:
        CrateError: If the manifest has another version, another licence, inherits what is not
            there, or has a dependency that has neither a path nor a version.
    """
    old = tomllib.loads(text)
    name = old["package"]["name"]
    shared = tomllib.loads(workspace)["workspace"]["package"]
    package = {}
    for key, given in old["package"].items():
        inherits = given == {"workspace": True}
        if inherits and key not in shared:
            raise CrateError(
                f"{name}: {key} is not in the workspace, which has {', '.join(shared)}"
            )
        package[key] = shared[key] if inherits else given
    for key, expected in (("version", version), ("license", LICENCE)):
        if package.get(key) != expected:
            raise CrateError(f"{name}: {key} is {package.get(key)}, expected {expected}")
    new: dict[str, Any] = {
        "package": {
            "name": name,
            "version": version,
            **{key: package[key] for key in _KEPT if key in package},
            "license": LICENCE,
            "readme": "README.md",
            # Everything that Cargo would look for is said.
            "build": False,
            "autobins": False,
            "autobenches": False,
            "autoexamples": False,
            "autotests": False,
        },
        "lib": {
            "name": old.get("lib", {}).get("name", name.replace("-", "_")),
            "path": "src/lib.rs",
            **{key: old["lib"][key] for key in _LIBRARY if key in old.get("lib", {})},
        },
    }
    if "features" in old:
        new["features"] = old["features"]
    dependencies: dict[str, Any] = {}
    for key, wanted in old.get("dependencies", {}).items():
        if isinstance(wanted, dict) and "path" in wanted:
            rest = {each: wanted[each] for each in wanted if each not in ("path", "version")}
            dependencies[key] = {"version": f"={version}", **rest}
        elif isinstance(wanted, str) or "version" in wanted:
            dependencies[key] = wanted
        else:
            raise CrateError(f"{name}: dependency {key} has neither a path nor a version")
    if dependencies:
        new["dependencies"] = dependencies
    return new


def to_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Writes tables whose values are text, booleans, lists of text, or tables of these."""

    def value(given: Any) -> str:
        if isinstance(given, Mapping):
            return "{ " + ", ".join(f"{k} = {value(v)}" for k, v in given.items()) + " }"
        if isinstance(given, list):
            return "[" + ", ".join(value(each) for each in given) + "]"
        # A basic string of TOML is one of JSON.
        return json.dumps(given, ensure_ascii=False)

    blocks = []
    for name, table in tables.items():
        lines = [f"{json.dumps(key)} = {value(entry)}" for key, entry in table.items()]
        blocks.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(blocks) + "\n"


def build(
    text: str, workspace: str, version: str, files: Mapping[str, bytes], licence: bytes
) -> bytes:
    """Builds a package.

    Args:
        text: The crate's `Cargo.toml`.
        workspace: The repository's, from which the crate inherits.
        version: The version of all packages.
        files: Contents by path; `src/lib.rs` among them.
        licence: Text of the licence.

    Returns:
        The contents of the archive, whose folder is `name-version`.

    Raises:
        CrateError: If there is no `src/lib.rs`, or the manifest does not fit.
    """
    tables = manifest(text, workspace, version)
    name = tables["package"]["name"]
    if "src/lib.rs" not in files:
        raise CrateError(f"{name}: no src/lib.rs among {', '.join(sorted(files)[:5])}")
    whole = dict(files)
    whole.setdefault("README.md", _readme(tables).encode())
    whole["LICENSE"] = licence
    whole["Cargo.toml"] = to_toml(tables).encode()
    parts = [
        sbom.Component(wanted.get("package", key), version, LICENCE)
        for key, wanted in tables.get("dependencies", {}).items()
        if isinstance(wanted, dict) and wanted["version"] == f"={version}"
    ]
    component = sbom.Component(name, version, LICENCE, f"pkg:cargo/{name}@{version}")
    whole["sbom.cdx.json"] = sbom.document(component, parts, files)
    return _archive(f"{name}-{version}", whole)


def _readme(tables: Mapping[str, Mapping[str, Any]]) -> str:
    package = tables["package"]
    return f"# {package['name']}\n\n{package.get('description', '')}.\n"


def _archive(folder: str, files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(data)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
