"""The plug-in's wheel for Arm beside TensorFlow's, in QEMU: the quickstart's graph agrees.

It fetches 350 MB on its first run: TensorFlow for Arm and the locked packages that it imports from
the package index, Python and QEMU from Debian. They are kept in `$TFP_ARM64_CACHE`, or
`~/.cache/tfp/arm64`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.packages import clean

WHEEL = Path(os.environ["WHEEL"]).absolute()
LOCK = Path(os.environ["LOCK"]).absolute()
PYTHON = "3.11"
TAGS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")
# What the graph imports. TensorFlow's name for Arm is not that of the lock, its version is.
LOCKED = (
    "absl-py",
    "astunparse",
    "certifi",
    "charset-normalizer",
    "flatbuffers",
    "gast",
    "google-pasta",
    "grpcio",
    "h5py",
    "idna",
    "keras",
    "libclang",
    "markdown-it-py",
    "mdurl",
    "ml-dtypes",
    "namex",
    "numpy",
    "opt-einsum",
    "optree",
    "packaging",
    "protobuf",
    "pygments",
    "requests",
    "rich",
    "setuptools",
    "six",
    "tensorflow-cpu",
    "termcolor",
    "typing-extensions",
    "urllib3",
    "wrapt",
)
# Of Debian 12, which has this Python.
SYSTEM = (
    "libbz2-1.0",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "python3.11-minimal",
    "zlib1g",
)


def must(command: Sequence[str | Path], cwd: Path) -> None:
    """Runs a command that has to succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")


def fetch_system(folder: Path) -> None:
    """Unpacks Python for Arm, and QEMU for this machine, into `root`."""
    if shutil.which("apt-get") is None:
        pytest.fail("needs Debian's apt-get, which gives Python for Arm and QEMU")
    state, debs = folder / "apt", folder / "debs"
    for name in ("lists/partial", "cache/archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    debs.mkdir()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "",
        "Dir::State": state,
        "Dir::State::Lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    must(["apt-get", *options, "update"], debs)
    must(["apt-get", *options, "download", *SYSTEM], debs)
    must(["apt-get", "download", "qemu-user-static"], debs)
    for package in sorted(debs.glob("*.deb")):
        must(["dpkg", "-x", package, folder / "root"], debs)


def fetch_packages(folder: Path) -> None:
    """Unpacks TensorFlow for Arm, and what it imports, into `site`."""
    versions = dict(re.findall(r"(?m)^([\w-]+)==([\w.]+)", LOCK.read_text()))
    wanted = [f"{name.removesuffix('-cpu')}=={versions[name]}" for name in LOCKED]
    wheels = folder / "wheels"
    flags = ["--no-deps", "--only-binary=:all:", f"--python-version={PYTHON}"]
    flags += [f"--platform={tag}" for tag in TAGS]
    clean.checked(clean.pip("download", "--dest", wheels, *flags, *wanted))
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "site")


@pytest.fixture(scope="module")
def machine() -> Path:
    """A folder with `root` and `site`, fetched if it is not there."""
    default = Path.home() / ".cache/tfp/arm64"
    folder = Path(os.environ.get("TFP_ARM64_CACHE", str(default)))
    done = folder / "ready"
    content = "\n".join([*SYSTEM, *LOCKED, LOCK.read_text()])
    if not done.exists() or done.read_text() != content:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        fetch_system(folder)
        fetch_packages(folder)
        done.write_text(content)
    return folder


def test_the_quickstart_s_graph_agrees(machine: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(WHEEL) as archive:
        archive.extractall(tmp_path)
    root = machine / "root"
    libraries = [root / place / "aarch64-linux-gnu" for place in ("lib", "usr/lib")]
    done = clean.run(
        [
            root / "usr/bin/qemu-aarch64-static", "-L", root,
            "-E", f"LD_LIBRARY_PATH={os.pathsep.join(map(str, libraries))}",
            root / f"usr/bin/python{PYTHON}", "-S", "-m", "tools.quickstart.main",
            f"--library={tmp_path / 'tensorflow-plugins/libtfp.so'}",
            "--notrain", "--repetitions=1", "--json",
        ],
        timeout=1800,
        PYTHONHOME=str(root / "usr"),
        PYTHONPATH=os.pathsep.join(map(str, (Path.cwd(), tmp_path, machine / "site"))),
        PYTHONDONTWRITEBYTECODE="1",
    )  # fmt: skip
    report = json.loads(clean.checked(done))
    print(json.dumps(report, indent=2))
    assert report["rows"]
    assert not [row for row in report["rows"] if row["problem"] or "TFP" not in row["device"]]
