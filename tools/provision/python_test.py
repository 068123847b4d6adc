"""A start on a machine without any Python: the shell fetches one."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.provision import plan, provision
from tools.provision.testing.archive import deb

HERE = Path(plan.__file__).parent
URL = "http://mirror.invalid/debian"
# All that the script uses; dpkg-deb and Python are not among it.
PROGRAMS = ("cat", "chmod", "cp", "cut", "grep", "head", "mkdir", "mv", "rm", "sed", "sha256sum",
            "tail", "tar", "tr", "xz")  # fmt: skip
CURL = """\
#!/bin/sh
for word; do
  case $last in --output) out=$word ;; esac
  last=$word
done
cp "$PACKAGES/${last#*/debian/}" "$out"
"""


class System:
    """A machine whose only programs are those of a POSIX shell, and a mirror."""

    def __init__(self, root: Path) -> None:
        """Makes a checkout, a folder of programs and two packages under ``root``."""
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        for name in PROGRAMS:
            found = shutil.which(name)
            assert found is not None, name
            (self.bin / name).symlink_to(found)
        self.add("curl", CURL)
        self.tools = root / "a checkout/tools"
        (self.tools / "provision").mkdir(parents=True)
        shutil.copy(HERE / "python.sh", self.tools / "provision")
        shutil.copy(HERE.parent / "bazel", self.tools)
        self.pool = root / "pool"
        self.pool.mkdir()
        echo = Path(shutil.which("echo") or "").resolve().read_bytes()
        self.write("python.deb", deb({"./usr/bin/python3.9": echo}))
        self.write("library.deb", deb({"./usr/lib/x.so": b"x", "./usr/lib/y.so": "x.so"}))
        self.cache = root / "a cache"

    def add(self, name: str, text: str) -> None:
        """Puts a program on PATH."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def write(self, name: str, data: bytes, digest: str = "") -> None:
        """Puts a package on the mirror and on the list."""
        (self.pool / name).write_bytes(data)
        digest = digest or hashlib.sha256(data).hexdigest()
        with (self.tools / "provision/python.list").open("a") as file:
            file.write(f"# a comment\n{digest} pool/{name}\n")

    def start(self, **variables: str) -> subprocess.CompletedProcess[str]:
        """Starts the launcher."""
        environ = {
            "PATH": str(self.bin),
            "PACKAGES": str(self.root),
            "TFP_CACHE": str(self.cache),
            "TFP_DEBIAN_MIRROR": URL,
        }
        return subprocess.run(
            [str(self.tools / "bazel"), "info"],
            env=environ | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def test_a_python_is_fetched_once(system: System) -> None:
    first = system.start()
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("-I -S -X pycache_prefix=")
    assert first.stdout.endswith("/tools/provision/main.py info\n")
    assert first.stderr == "tfp: no Python on this machine: fetching one (7 MB)\n"
    (folder,) = system.cache.iterdir()
    assert (folder / "usr/lib/y.so").readlink() == Path("x.so")
    shutil.rmtree(system.pool)
    second = system.start()
    assert (second.stdout, second.stderr) == (first.stdout, "")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("curl", "curl and wget are not there"),
        ("xz", "tar and xz are not there"),
        ("sha256sum", "sha256sum is not there"),
        ("mirror", "TFP_DEBIAN_MIRROR does not name a mirror"),
        ("gone", f"pool/python.deb did not arrive with the hash in python.list from {URL}"),
        ("hash", "pool/other.deb did not arrive with the hash in python.list"),
        ("cut off", "pool/python.deb cannot be unpacked"),
        ("no program", "the unpacked Python does not start"),
        ("read-only", "is not writable"),
    ],
)
def test_what_fails_is_one_line_and_leaves_nothing(fault: str, said: str, system: System) -> None:
    variables = {}
    if fault in (*PROGRAMS, "curl"):
        (system.bin / fault).unlink()
    elif fault == "mirror":
        variables["TFP_DEBIAN_MIRROR"] = ""
    elif fault == "gone":
        (system.pool / "python.deb").unlink()
        system.add("curl", "#!/bin/sh\nexit 22\n")
    elif fault == "hash":
        system.write("other.deb", b"", "0" * 64)
    elif fault == "cut off":
        (system.tools / "provision/python.list").unlink()
        system.write("python.deb", deb({"./usr/bin/python3.9": b"x"})[:100])
    elif fault == "no program":
        (system.tools / "provision/python.list").unlink()
        system.write("python.deb", deb({"./usr/bin/other": b"x"}))
    elif fault == "read-only":
        system.cache.write_text("a file")
    done = system.start(**variables)
    assert (done.returncode, done.stdout) == (36, "")
    line = done.stderr.splitlines()[-1]
    assert line.startswith("tfp: checking Python failed: no python3 of version 3.9 or newer")
    assert said in line
    assert not system.cache.is_dir() or list(system.cache.iterdir()) == []


def test_the_fetched_python_starts_only_by_its_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cache"
    monkeypatch.setattr(provision, "interpreter", lambda: str(root / "start/usr/bin/python3.9"))
    assert provision.later_python(root, "/chosen") == "/chosen"
    monkeypatch.setattr(provision, "interpreter", lambda: "/usr/bin/python3.13")
    assert provision.later_python(root, "/chosen") == "/usr/bin/python3.13"


def test_the_list_is_sound() -> None:
    rows = [
        line.split()
        for line in (HERE / "python.list").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert len(rows) == 9
    assert all(len(digest) == 64 and path.startswith("pool/main/") for digest, path in rows)
    assert os.access(HERE / "python.sh", os.X_OK)
