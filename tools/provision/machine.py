"""What no provisioning gives, said in the first second, with the command that installs it here.

This module must import where the host's Python is only half there.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import sys
from pathlib import Path

from tools.provision.messages import StartError, say

OS_RELEASE = Path("/etc/os-release")
OLDEST = (3, 9)
MODULES = ("ssl", "zlib", "lzma", "hashlib", "zipfile", "urllib.request")
# Family of distributions (ID or ID_LIKE of os-release) -> how a package is installed there.
INSTALLERS = {
    "debian": "apt-get install",
    "ubuntu": "apt-get install",
    "fedora": "dnf install",
    "rhel": "dnf install",
    "suse": "zypper install",
    "opensuse": "zypper install",
    "arch": "pacman -S",
}


def installer(release: Path | None = None) -> str | None:
    """The start of the command that installs a package on this distribution; None if unknown."""
    fields: dict[str, str] = {}
    try:
        for line in (release or OS_RELEASE).read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            fields[key] = "".join(shlex.split(value)) if key == "ID" else value.strip("\"'")
    except (OSError, ValueError):
        return None
    for family in (fields.get("ID", ""), *fields.get("ID_LIKE", "").split()):
        if family in INSTALLERS:
            return INSTALLERS[family]
    return None


def install(package: str) -> str:
    """What to do about a missing package, in the words of this distribution."""
    command = installer()
    return f"install it ({command} {package})" if command else f"install {package}"


def lacks(root: Path) -> list[StartError]:
    """Everything that is missing on this machine.

    Args:
        root: the cache folder.
    """
    found = []
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        found.append(
            StartError(
                "checking this machine",
                f"{platform.system()} on {platform.machine()}, expected Linux on x86_64",
                "use such a machine or a container",
            )
        )
    elif not _has_glibc():
        found.append(
            StartError(
                "checking this machine",
                "its C library is not glibc, which TensorFlow's wheels need",
                "use a distribution with glibc, for example Debian, or a container of one",
            )
        )
    missing = [name for name in MODULES if not _has(name)]
    if missing:
        found.append(
            StartError(
                "checking Python",
                f"{sys.executable} has no {', '.join(missing)}",
                f"{install('python3')} or set TFP_PYTHON to a Python that is whole",
            )
        )
    place = root
    while not place.exists() and place != place.parent:
        place = place.parent
    if place.is_dir() and not os.access(place, os.W_OK | os.X_OK):
        found.append(
            StartError(
                "opening the cache folder",
                f"{place} is not writable for you",
                f"make {root} writable or set TFP_CACHE to a folder that is",
            )
        )
    if has_space(root):
        found.append(
            StartError(
                "opening the cache folder",
                f"there is a space in {root}, and Bazel's rules don't work in such a folder",
                "set TFP_CACHE to a folder without one, such as /var/tmp/tfp",
            )
        )
    return found


def has_space(folder: Path) -> bool:
    """Whether a path has a space: Bazel's rules break at one, but for the checkout's own path."""
    return any(character.isspace() for character in str(folder))


def check(root: Path) -> None:
    """Says what is missing, a line each.

    Raises:
        StartError: the last of them.
    """
    found = lacks(root)
    for lack in found[:-1]:
        say(lack.line())
    if found:
        raise found[-1]


def _has(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None and bool(__import__(name))
    except ImportError:
        return False


def _has_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False
