"""Wheels: fetched by the user's own pip under a pinned hash, unpacked without installing."""

import os
import shutil
import stat
import sys
import zipfile
from pathlib import Path

from tools.provision.apt import Apt, Source
from tools.provision.command import Runner, must
from tools.provision.messages import Trouble, folder_bytes, progress
from tools.provision.pins import Wheel

TODO = "check the network and pip's configuration (`python3.11 -m pip config list`), then start again"


def unpack_wheel(file: Path, folder: Path) -> None:
    """Unpacks a wheel with the permissions that it records."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            path = archive.extract(member, folder)
            mode = stat.S_IMODE(member.external_attr >> 16)
            if mode and not member.is_dir():
                os.chmod(path, mode | stat.S_IRUSR | stat.S_IWUSR)


def find_pip(runner: Runner) -> list[str] | None:
    """A pip that works, as the start of a command line; None if the machine has none."""
    candidates = [[sys.executable, "-m", "pip"]]
    for name in ("pip3.11", "pip3", "pip"):
        path = shutil.which(name)
        if path is not None:
            candidates.append([path])
    for candidate in candidates:
        if runner.run([*candidate, "--version"]).status == 0:
            return candidate
    return None


def fetch_wheel(runner: Runner, pip: list[str], wheel: Wheel, folder: Path, label: str) -> None:
    """Fetches one wheel and unpacks it into ``folder``.

    Raises:
        Trouble: the network failed or the file has another hash than the pin.
    """
    step = f"fetching {label} ({wheel.requirement})"
    inbox = folder / "inbox"
    inbox.mkdir(parents=True)
    pins = inbox / "requirements.txt"
    pins.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n")
    with progress(step, wheel.size, lambda: folder_bytes(str(inbox))):
        must(
            runner,
            [
                *pip, "download", "--quiet", "--no-deps", "--require-hashes", "--no-cache-dir",
                "--disable-pip-version-check", "--only-binary", ":all:",
                "--dest", str(inbox), "--requirement", str(pins),
            ],
            step,
            TODO,
            cwd=str(inbox),
            env={"TMPDIR": str(inbox)},
        )  # fmt: skip
    files = list(inbox.glob("*.whl"))
    if len(files) != 1:
        raise Trouble(step, f"{len(files)} files arrived, expected 1", TODO)
    try:
        unpack_wheel(files[0], folder)
    except zipfile.BadZipFile as error:
        raise Trouble(step, f"the wheel is damaged ({error})", TODO) from error
    shutil.rmtree(inbox)


def debian_pip(apt: Apt, archive: Source, codename: str, folder: Path) -> list[str]:
    """Unpacks Debian's pip into ``folder`` for machines without one."""
    apt.update(f"Debian {codename} (for pip)", [archive.line(codename)], None)
    packages = [entry for entry in apt.closure(["python3-pip"], "choosing pip")
                if entry.name in ("python3-pip", "python3-wheel", "python3-setuptools")]  # fmt: skip
    apt.unpack(apt.fetch(packages, folder / "deb", "pip"), folder, "pip")
    code = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
        "runpy.run_module('pip', run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-c", code, str(folder / "usr/lib/python3/dist-packages")]
