"""What a package ships, as a CycloneDX document."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Component:
    """A part that a package holds or links.

    Attributes:
        name: Its name.
        version: Its version.
        licence: SPDX expression.
        purl: Package URL, where one is known.
    """

    name: str
    version: str
    licence: str
    purl: str = ""


RUST_LICENCE = "MIT OR Apache-2.0"


def rust_standard_library(version: str) -> Component:
    """Returns the standard library that a Rust program has inside."""
    return Component("rust-std", version, RUST_LICENCE)


def document(package: Component, parts: Sequence[Component], files: Mapping[str, bytes]) -> bytes:
    """Writes the bill of materials of a package.

    Args:
        package: The package itself.
        parts: What it holds of others, or of ours under another name.
        files: Contents of the files in it by path.

    Returns:
        CycloneDX 1.6 as JSON, without times or random numbers.
    """
    listed: list[dict[str, Any]] = [_library(part) for part in parts]
    listed += [
        {
            "type": "file",
            "name": name,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}],
        }
        for name, data in sorted(files.items())
    ]
    text = json.dumps(
        {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": _library(package)},
            "components": listed,
        },
        indent=1,
    )
    return text.encode() + b"\n"


def _library(component: Component) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "name": component.name,
        "version": component.version,
        "licenses": [{"expression": component.licence}],
    }
    if component.purl:
        found["purl"] = component.purl
    return found
