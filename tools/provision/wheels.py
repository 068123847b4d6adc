"""Wheels: fetched by the user's own pip under a pinned hash, unpacked without installing."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tools.provision.apt import PackageSource, Source
from tools.provision.command import Runner, must
from tools.provision.messages import StartError, folder_bytes, progress
from tools.provision.pins import Wheel
from tools.provision.web import variables

WHEEL_BUILD = """\
load("@rules_python//python:defs.bzl", "py_library")

package(default_visibility = ["//visibility:public"])

py_library(
    name = "lib",
    srcs = glob(["**/*.py"]),
    data = glob(
        ["**/*"],
        exclude = ["**/*.py", "**/*.pyc", "**/* *", "BUILD.bazel", "WORKSPACE"],
    ),
    imports = ["."],
)
"""

TODO = "check the network and `python3 -m pip config list`, then start again"


def unpack_wheel(file: Path, folder: Path) -> None:
    """Unpacks a wheel with the permissions that it records.

    Raises:
        StartError: it is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                path = archive.extract(member, folder)
                mode = stat.S_IMODE(member.external_attr >> 16)
                if mode and not member.is_dir():
                    Path(path).chmod(mode | stat.S_IRUSR | stat.S_IWUSR)
    except zipfile.BadZipFile as error:
        raise StartError(f"unpacking {file.name}", f"it is damaged ({error})", TODO) from error


def find_pip(runner: Runner) -> list[str] | None:
    """A pip that works, as the start of a command line; None if the machine has none."""
    candidates = [[sys.executable, "-m", "pip"]]
    for name in ("pip3", "pip"):
        path = shutil.which(name)
        if path is not None:
            candidates.append([path])
    for candidate in candidates:
        if runner.run([*candidate, "--version"]).status == 0:
            return candidate
    return None


def fetch_wheels(
    runner: Runner, pip: list[str], wheels: Sequence[Wheel], inbox: Path, label: str
) -> list[Path]:
    """Fetches wheels into ``inbox``, a fresh folder, and gives the files.

    Raises:
        StartError: the network failed or a file has another hash than its pin.
    """
    step = f"fetching {label}"
    inbox.mkdir(parents=True)
    pins = inbox / "requirements.txt"
    lines = [f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n" for wheel in wheels]
    pins.write_text("".join(lines))
    with progress(step, sum(wheel.size for wheel in wheels), lambda: folder_bytes(str(inbox))):
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
            env={"TMPDIR": str(inbox), "PIP_REQUIRE_VIRTUALENV": "0", **variables(os.environ)},
        )  # fmt: skip
    files = sorted(inbox.glob("*.whl"))
    if len(files) != len(wheels):
        raise StartError(step, f"{len(files)} files arrived, expected {len(wheels)}", TODO)
    return files


def fill_wheel(runner: Runner, pip: list[str], wheel: Wheel, stage: Path, label: str) -> None:
    """Fetches one wheel and unpacks it into ``stage``.

    Raises:
        StartError: the network failed, or the file is damaged or not the pinned one.
    """
    inbox = stage / "inbox"
    (file,) = fetch_wheels(runner, pip, [wheel], inbox, f"{label} ({wheel.requirement})")
    unpack_wheel(file, stage)
    shutil.rmtree(inbox)


def parse_rule_wheels(text: str) -> list[tuple[str, Wheel]]:
    """Reads the wheels that rules_python's repository rules run on, from its own list.

    Args:
        text: its ``python/pip_install/repositories.bzl``.

    Returns:
        Repository name and wheel; the address of each is dropped, since pip finds it by name.
    """
    found = []
    for name, address, digest in re.findall(
        r'\(\s*"(pypi__\w+)",\s*"([^"]+)",\s*"([0-9a-f]{64})",?\s*\)', text
    ):
        project, version = address.rsplit("/", 1)[-1].split("-")[:2]
        found.append((name, Wheel(f"{project}=={version}", digest, 0)))
    return found


def fill_rule_wheels(
    runner: Runner, pip: list[str], entries: Sequence[tuple[str, Wheel]], stage: Path
) -> None:
    """Fetches those wheels and unpacks each as a repository under its name in ``stage``.

    Raises:
        StartError: the network failed, or a file is damaged or not the pinned one.
    """
    inbox = stage / "inbox"
    label = f"{len(entries)} wheels that rules_python stands on"
    files = fetch_wheels(runner, pip, [wheel for _, wheel in entries], inbox, label)
    by_project = {_project(file.name.split("-")[0]): file for file in files}
    for name, wheel in entries:
        unpack_wheel(by_project[_project(wheel.requirement.split("==")[0])], stage / name)
        (stage / name / "BUILD.bazel").write_text(WHEEL_BUILD)
        (stage / name / "WORKSPACE").write_text(f'workspace(name = "{name}")\n')
    shutil.rmtree(inbox)


def _project(name: str) -> str:
    """A project's name in the one form that compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


def debian_pip(
    apt: PackageSource, archive: Source, suite: str, folder: Path, python: str
) -> list[str]:
    """Unpacks Debian's pip into ``folder`` for machines without one; ``python`` will run it."""
    apt.update(f"Debian {suite} (for pip)", [archive.line(suite)], ())
    needed = ("python3-pip", "python3-wheel", "python3-setuptools")
    chosen = apt.closure(["python3-pip"], "choosing pip")
    packages = [entry for entry in chosen if entry.name in needed]
    apt.unpack(apt.fetch(packages, folder / "deb", "pip"), folder, "pip")
    code = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
        "runpy.run_module('pip', run_name='__main__', alter_sys=True)"
    )
    return [python, "-c", code, str(folder / "usr/lib/python3/dist-packages")]
