"""Which C and C++ libraries unpacked Debian programs run on: this machine's, or Debian's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

# The C library of a Debian release; programs of the release need no newer one.
SUITES = {"bookworm": (2, 36), "trixie": (2, 41)}
LOADER = "ld-linux-x86-64.so.2"
LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/lib/x86_64-linux-gnu")
_C = ("libc6",)
_CPP = ("libgcc-s1", "libstdc++6")
OWN_PACKAGES = (*_C, *_CPP)

# What the extension modules of wheels need of the C and C++ libraries. The loader does not apply
# the rpath of a program to libraries that have a RUNPATH: it would take these from the machine's
# folders, where they fit only the machine's older C library. What a program itself needs is loaded
# by its rpath, before them, and serves all of them by its name.
OWN_LIBRARIES = (
    "libanl.so.1",
    "libcrypt.so.1",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libstdc++.so.6",
    "libutil.so.1",
)


def host_version() -> tuple[int, ...] | None:
    """The version of this machine's C library; None if it is not glibc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return tuple(int(part) for part in version.split(".")) if name == "glibc" else None
    except (ValueError, OSError):
        return None


def given(suite: str) -> tuple[str, ...]:
    """The packages of ``suite`` whose place this machine's own libraries take.

    A library of Debian's must not come before a newer one of the machine, which programs that are
    built here may need. Where the machine's C library is older, all of them come from Debian.
    """
    version = host_version()
    if version is None or version < SUITES.get(suite, (99,)):
        return ()
    has = any(Path(folder, "libstdc++.so.6").exists() for folder in LIBRARY_FOLDERS)
    return (*_C, *_CPP) if has else _C


def is_given(packages: Sequence[str]) -> bool:
    """Whether the C library is among the packages that are not fetched."""
    return _C[0] in packages
