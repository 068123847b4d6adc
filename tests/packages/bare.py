"""Bare Debian systems in folders, made by debootstrap; needs root."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence


def make_base(
    folder: pathlib.Path, suite: str, packages: Sequence[str], mirror: str
) -> pathlib.Path:
    """Returns the root folder of a suite, made by debootstrap unless it is there."""
    base = folder / "-".join([suite, *packages])
    if not (base / "made").exists():
        shutil.rmtree(base, ignore_errors=True)
        subprocess.run(
            [
                "debootstrap",
                "--variant=minbase",
                f"--include={','.join(['ca-certificates', *packages])}",
                suite,
                str(base),
                mirror,
            ],
            check=True,
            stdout=sys.stderr,
        )
        (base / "made").touch()
    return base


def bring_settings(base: pathlib.Path) -> None:
    """Copies what this machine needs to reach its package registries."""
    (base / "dev/shm").mkdir(exist_ok=True)
    for name in ("etc/resolv.conf", "etc/hosts", "etc/pip.conf"):
        if pathlib.Path("/", name).exists():
            shutil.copy(pathlib.Path("/", name), base / name)
    for authorities in ("etc/ssl/certs/ca-certificates.crt",):
        if pathlib.Path("/", authorities).exists():
            shutil.copy(pathlib.Path("/", authorities), base / authorities)
    for conf in pathlib.Path("/etc/apt/apt.conf.d").glob("*"):
        lines = conf.read_text(errors="replace").splitlines()
        kept = [line for line in lines if line.startswith("Acquire::")]
        if kept and (base / "etc/apt/apt.conf.d").is_dir():
            (base / "etc/apt/apt.conf.d" / conf.name).write_text("\n".join(kept) + "\n")
