"""Rust: which toolchain the build uses, and Debian's own unpacked as a sysroot."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.provision.apt import (
    Package,
    PackageSource,
    Source,
    archive_of,
    numbers,
    upstream_part,
)
from tools.provision.command import Runner, must
from tools.provision.glibc import LOADER
from tools.provision.messages import StartError
from tools.provision.pins import Pins

LAYOUT = 1
"""Raised when the code here lays the folder out otherwise: makes a new folder."""

TRIPLE = "x86_64-unknown-linux-gnu"
STD = f"lib/rustlib/{TRIPLE}/lib"
TOOLS = ("rustfmt", "cargo-clippy", "clippy-driver")
INSTALL = "install Rust with rustup (a stable toolchain, with rustfmt and clippy) and start again"


@dataclass(frozen=True)
class Sysroot:
    """A toolchain on this machine.

    Attributes:
        path: its sysroot: ``bin/rustc`` and ``lib/rustlib`` lie below.
        version: for example ``1.95.0``.
        note: where it comes from, for the one line.
    """

    path: Path
    version: str
    note: str


def describe_rustc(runner: Runner, rustc: str) -> tuple[str, Path] | None:
    """The version (``1.95.0``, ``1.97.0-nightly``) and sysroot of a compiler; None if it fails."""
    told = runner.run([rustc, "--version"], timeout_s=60)
    match = re.match(r"rustc (\S+)", told.out)
    root = runner.run([rustc, "--print", "sysroot"], timeout_s=60)
    if told.status or root.status or match is None or not root.out.strip():
        return None
    return match.group(1), Path(root.out.strip())


def shortcoming(pins: Pins, version: str, root: Path) -> str | None:
    """Why a toolchain will not do, in a few words; None if it will."""
    if "-" in version:
        return f"{version} is not a stable release"
    if numbers(version) < numbers(pins.rust_oldest):
        return f"{version} is older than {pins.rust_oldest}"
    for need in ("bin/rustc", "bin/cargo", "bin/rustdoc"):
        if not (root / need).exists():
            return f"{root} has no {need}"
    if not list((root / STD).glob("libstd-*.rlib")):
        return f"{root} has no library for {TRIPLE}"
    return None


def local_sysroot(
    pins: Pins, runner: Runner, environ: Mapping[str, str]
) -> tuple[Sysroot | None, list[str]]:
    """The toolchain that is already on this machine.

    First the ``rustc`` on PATH as rustup resolves it here; where that will not do, the newest
    stable toolchain of rustup.

    Returns:
        The toolchain or None, and what was met that will not do.
    """
    reasons: list[str] = []
    rustc = shutil.which("rustc", path=environ.get("PATH"))
    if rustc is None:
        return None, ["no rustc on PATH"]
    candidates: list[tuple[str, str]] = [(rustc, "rustc on PATH")]
    if shutil.which("rustup", path=environ.get("PATH")) is not None:
        home = environ.get("RUSTUP_HOME") or str(Path(environ.get("HOME", "/"), ".rustup"))
        installed = [
            path
            for path in Path(home, "toolchains").glob("*/bin/rustc")
            if "nightly" not in path.parent.parent.name
        ]
        candidates += [
            (str(path), f"rustup toolchain {path.parent.parent.name}")
            for path in sorted(installed, reverse=True)
        ]
    for program, note in candidates:
        described = describe_rustc(runner, program)
        if described is None:
            reasons.append(f"{program} does not run")
            continue
        version, root = described
        lack = shortcoming(pins, version, root)
        if lack is None:
            return Sysroot(root, version, note), reasons
        reasons.append(f"{note}: {lack}")
    return None, reasons


def missing_tools(root: Path) -> list[str]:
    """The formatter and linter programs that a sysroot lacks."""
    return [name for name in TOOLS if not (root / "bin" / name).exists()]


def debian_entries(host: list[Source], codename: str) -> list[str]:
    """Entries of the host's Debian suites: the release, its updates and its security suite."""
    return [
        Source(entry.uri, (suite,), ("main",), entry.options).line(suite)
        for entry in host
        if "main" in entry.components
        for suite in entry.suites
        if suite == codename or suite.startswith(f"{codename}-")
    ]


def security_entry(archive: Source, codename: str) -> str:
    """A release's security suite, which mirrors have beside the archive."""
    place = f"{archive.uri.rstrip('/')}-security"
    return Source(place, (), ("main",), archive.options).line(f"{codename}-security")


def choose_release(
    pins: Pins, source: PackageSource, host: list[Source], codename: str
) -> list[Package]:
    """Chooses Debian's packages and leaves ``source`` pointed at where they are.

    The archives of the machine come first; then the security suite of its release, which a fresh
    Debian may not have configured; then the same two of the pinned release.

    Args:
        pins: the pins.
        source: reads the archives.
        host: the archives of the machine.
        codename: the release of the machine.

    Raises:
        StartError: none has a Rust that is new enough.
    """
    archive = archive_of(host, codename)
    own = debian_entries(host, codename) or [archive.line(codename)]
    pinned = pins.debian_release
    attempts = [(codename, own)]
    attempts.append((codename, [*own, security_entry(archive, codename)]))
    if codename != pinned:
        attempts.append((pinned, [archive.line(pinned), security_entry(archive, pinned)]))
    first: StartError | None = None
    for release, lines in attempts:
        try:
            source.update(f"Debian {release} (for Rust)", lines, None)
            return choose_debian_rust(pins, source)
        except StartError as error:
            first = first or error
    assert first is not None
    raise first


def choose_debian_rust(pins: Pins, apt: PackageSource) -> list[Package]:
    """Chooses Debian's packages; ``apt`` is pointed at the host's suites.

    Raises:
        StartError: Debian's Rust is missing or too old.
    """
    tools = list(pins.rust_tools.values())
    versions = apt.versions([*pins.rust_packages, *tools])
    main = pins.rust_packages[0]
    found = versions.get(main)
    if found is None or numbers(found) < numbers(pins.rust_oldest):
        raise StartError(
            "choosing Rust",
            f"Debian's {main} is {upstream_part(found) if found else 'missing'}; "
            f"expected {pins.rust_oldest} or newer",
            INSTALL,
        )
    wanted = [f"{name}={found}" for name in pins.rust_packages]
    wanted += [
        f"{name}={versions[name]}"
        for name in tools
        if upstream_part(versions.get(name, "")) == upstream_part(found)
    ]
    names = {*pins.rust_packages, *tools}
    return without_compiler(apt.closure(wanted, "choosing the packages of Rust"), names)


def without_compiler(packages: Sequence[Package], wanted: Collection[str]) -> list[Package]:
    """What was asked for and the shared libraries that it loads.

    A machine without a C compiler would get Debian's, on which its Rust depends for a linker; the
    build brings its own.
    """
    return [
        package
        for package in packages
        if package.name in wanted
        or (package.name.startswith("lib") and not package.name.endswith("-dev"))
    ]


def fill_rust(
    packages: list[Package],
    apt: PackageSource,
    runner: Runner,
    patchelf: Path,
    stage: Path,
    final: Path,
) -> None:
    """Fills a fresh folder with a sysroot made from Debian's packages.

    The layout is rustup's: programs in ``bin``, their shared libraries in ``lib``, the standard
    library in ``lib/rustlib``. Programs find their libraries relative to themselves.
    """
    raw = stage / "raw"
    raw.mkdir()
    apt.unpack(apt.fetch(packages, stage / "deb", "Rust"), raw, "Rust")
    shutil.rmtree(stage / "deb")
    shape_sysroot(raw, stage)
    shutil.rmtree(raw)
    argv = [str(patchelf), "--force-rpath", "--set-rpath", "$ORIGIN/../lib"]
    if (stage / "lib" / LOADER).exists():
        argv += ["--set-interpreter", str(final / "lib" / LOADER)]
    for program in sorted((stage / "bin").iterdir()):
        must(
            runner,
            [*argv, str(program)],
            f"patching {program.name}",
            INSTALL,
            cwd=str(stage),
        )


def shape_sysroot(raw: Path, stage: Path) -> None:
    """Moves the unpacked packages into the layout of a sysroot."""
    shutil.move(raw / "usr/bin", stage / "bin")
    (stage / "lib").mkdir()
    shutil.move(raw / "usr/lib/rustlib", stage / "lib/rustlib")
    for folder in (raw / "usr/lib/x86_64-linux-gnu", raw / "lib/x86_64-linux-gnu"):
        if folder.is_dir():
            for library in sorted(folder.glob("*.so*")):
                shutil.move(library, stage / "lib" / library.name)


def try_sysroot(runner: Runner, root: Path) -> None:
    """Checks that every program of an unpacked sysroot starts and that the compiler knows its home.

    Raises:
        StartError: one does not start.
    """
    for name in ("rustc", "cargo", "rustdoc", *TOOLS):
        program = root / "bin" / name
        if name in TOOLS and not program.exists():
            continue
        outcome = runner.run([str(program), "--version"], timeout_s=60)
        if outcome.status:
            raise StartError(f"trying the provisioned {name}", outcome.last_words(), INSTALL)
    described = describe_rustc(runner, str(root / "bin/rustc"))
    if described is None or described[1].resolve() != root.resolve():
        raise StartError(
            "trying the provisioned rustc",
            f"its sysroot is {described[1] if described else 'unknown'}, expected {root}",
            INSTALL,
        )
