"""The Python of the build: Debian's, unpacked, where the machine has none of the right version."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.provision.apt import PackageSource
from tools.provision.command import Runner, must
from tools.provision.glibc import LOADER, OWN_LIBRARIES, OWN_PACKAGES
from tools.provision.messages import StartError

LAYOUT = 2
"""Raised when the code here lays the folder out otherwise: makes a new folder."""

LIBRARIES = "usr/lib/x86_64-linux-gnu"
MODULES = ("_bz2", "_ctypes", "_lzma", "_ssl", "zlib")
"""Parts that an interpreter may be built without and that the locked packages need."""

INSTALL = "install Python 3.11 with its standard library and set TFP_PYTHON to it"


@dataclass(frozen=True)
class Python:
    """An interpreter of the build.

    Attributes:
        path: the program.
        version: for example ``3.11``.
        note: where it comes from, for the one line.
    """

    path: Path
    version: str
    note: str


def running() -> Python:
    """The interpreter that runs this, links of virtual environments followed: it outlives them."""
    version = ".".join(map(str, sys.version_info[:2]))
    return Python(Path(sys.executable).resolve(), version, "on this machine")


def lacking() -> list[str]:
    """What the interpreter that runs this was built without."""
    return [name for name in MODULES if importlib.util.find_spec(name) is None]


def fill_python(
    version: str,
    source: PackageSource,
    runner: Runner,
    patchelf: Path,
    stage: Path,
    final: Path,
    own_libraries: bool,
) -> None:
    """Fills a fresh folder with a Python made from Debian's packages.

    Args:
        version: for example ``3.11``.
        source: fetches and unpacks; it is pointed at a suite that has this version.
        runner: runs patchelf.
        patchelf: the program.
        stage: the folder to fill.
        final: where it will be.
        own_libraries: whether the program runs on the C library that comes along.
    """
    label = f"Python {version}"
    wanted = [f"python{version}", *(OWN_PACKAGES if own_libraries else ())]
    packages = source.closure(wanted, "choosing the packages of Python")
    source.unpack(source.fetch(packages, stage / "deb", label), stage, label)
    shutil.rmtree(stage / "deb")
    gather_libraries(stage)
    drop_spare(stage)
    program = stage / f"usr/bin/python{version}"
    paths = ["--force-rpath", "--set-rpath", str(final / LIBRARIES)]
    needed: list[str] = []
    if own_libraries:
        paths += ["--set-interpreter", str(final / LIBRARIES / LOADER)]
        for library in OWN_LIBRARIES:
            if (stage / LIBRARIES / library).exists():
                needed += ["--add-needed", library]
    # In a start of its own: Debian's patchelf 0.14 damages the rpath when it does both.
    for options in filter(None, (needed, paths)):
        must(
            runner,
            [str(patchelf), *options, str(program)],
            f"patching Python {version}",
            INSTALL,
            cwd=str(stage),
        )


def gather_libraries(stage: Path) -> None:
    """Moves the libraries of ``lib`` to those of ``usr/lib``, and the loader to them."""
    folder = stage / LIBRARIES
    folder.mkdir(parents=True, exist_ok=True)
    other = stage / "lib/x86_64-linux-gnu"
    if other.is_dir() and not (stage / "lib").is_symlink():
        for library in sorted(other.iterdir()):
            if not (folder / library.name).exists():
                shutil.move(str(library), str(folder / library.name))
    for place in ("usr/lib64", "lib64"):
        loader = stage / place / LOADER
        if loader.is_file() and not loader.is_symlink():
            shutil.move(str(loader), str(folder / LOADER))


def drop_spare(stage: Path) -> None:
    """Removes documentation, and links that point out of the folder or nowhere."""
    for spare in ("usr/share", "etc", "var", "lib", "lib64", "usr/sbin", "usr/games"):
        path = stage / spare
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)
    for path in stage.rglob("*"):
        if path.is_symlink() and (path.readlink().is_absolute() or not path.exists()):
            path.unlink()


def try_python(runner: Runner, folder: Path, version: str) -> None:
    """Checks that an unpacked Python starts, finds its library and has what the build needs.

    Raises:
        StartError: it does not.
    """
    program = folder / f"usr/bin/python{version}"
    code = f"import {', '.join(MODULES)}, sys; print(sys.base_prefix)"
    outcome = runner.run([str(program), "-I", "-c", code], timeout_s=60)
    if outcome.status:
        raise StartError(f"trying the provisioned Python {version}", outcome.last_words(), INSTALL)
    found = outcome.out.strip()
    if found != str(folder / "usr"):
        raise StartError(
            f"trying the provisioned Python {version}",
            f"its library is in {found}, expected {folder / 'usr'}",
            INSTALL,
        )
