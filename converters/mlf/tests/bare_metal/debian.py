"""Debian packages without root: downloaded and unpacked into a folder."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


def unpack(packages: Sequence[str], installed: Sequence[str], cache: Path, root: Path) -> None:
    """Fetches packages into `cache` and unpacks them into `root`.

    Args:
      packages: Packages to unpack, alone.
      installed: Packages to unpack with what they need, so far as this machine lacks it.
      cache: Folder of the downloads.
      root: File tree of the packages.

    Raises:
      subprocess.CalledProcessError: apt-get knows a package not, or can't fetch it.
    """
    command = ["apt-get", "install", "-s", "--no-install-recommends", *installed]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    needed = [line.split()[1] for line in listed.splitlines() if line.startswith("Inst ")]
    downloads = cache / "packages"
    downloads.mkdir(exist_ok=True)
    for name in sorted({*packages, *installed, *needed}):
        command = ["apt-get", "download", name]
        subprocess.run(command, cwd=downloads, check=True, capture_output=True)
    for package in sorted(downloads.glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
