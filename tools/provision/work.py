"""What one provisioning carries along: pins, cache, runner, and what it has decided so far."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.provision.apt import (
    Apt,
    PackageSource,
    Source,
    archive_of,
    host_release,
    host_sources,
)
from tools.provision.cache import Cache
from tools.provision.command import Runner
from tools.provision.messages import StartError
from tools.provision.mirror import Entry, Mirror
from tools.provision.pins import Pins
from tools.provision.web import Client
from tools.provision.wheels import debian_pip, find_pip


@dataclass
class Found:
    """What one provisioning looks for once, for parts that run beside each other.

    Attributes:
        pip: the start of pip's command line, once it is known.
        has_pip: whether the machine has one, once it is known.
        patchelf: the patchelf program, once it is there.
        indexes: Debian's indexes that were read without apt, by address.
        lock: held while pip is looked for.
    """

    pip: list[str] | None = None
    has_pip: bool | None = None
    patchelf: Path | None = None
    indexes: dict[str, list[Entry]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


@dataclass
class Work:
    """What one provisioning carries along.

    Attributes:
        pins: the pins.
        cache: the cache folder.
        runner: runs programs.
        environ: the environment of the start.
        lines: lines of the generated bazelrc.
        notes: what was chosen and why.
        files: files whose size and time later starts compare.
        folders: provisioned folders in use.
        variables: environment variables that Bazel is started with.
        python: the interpreter of the build, once it is chosen; until then the one that runs this.
        found: what was looked for.
    """

    pins: Pins
    cache: Cache
    runner: Runner
    environ: Mapping[str, str]
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    found: Found = field(default_factory=Found)

    def apart(self) -> Work:
        """The same provisioning with no decisions yet, for a part in a thread of its own."""
        return replace(self, lines=[], notes=[], files=[], folders=[], variables={})

    def add(self, part: Work) -> None:
        """Adds what a part has decided."""
        self.lines += part.lines
        self.notes += part.notes
        self.files += part.files
        self.folders += part.folders
        self.variables |= part.variables

    def stage(self, name: str) -> Path:
        """A scratch folder that is removed by the end of the start."""
        return self.cache.root / "stage" / f"{os.getpid()}-{name}"

    def client(self) -> Client:
        """What fetches files here."""
        return Client(self.environ)

    def packages(self, name: str) -> PackageSource:
        """A source of Debian packages of its own: the host's apt, else a mirror read without it."""
        if self._apt_sources() is None:
            return Mirror(self.client(), self.found.indexes)
        return Apt(self.runner, self.stage(f"apt-{name}"), os.geteuid() == 0)

    def pip(self) -> list[str]:
        """A pip that works, as the start of a command line: the user's own, else Debian's."""
        with self.found.lock:
            self.has_pip()
            if self.found.pip is None:
                folder = self.stage("pip")
                folder.mkdir(parents=True)
                host, codename = self.host()
                archive = archive_of(host, codename)
                source = self.packages("pip")
                suite = self.pins.debian_pip
                self.found.pip = debian_pip(source, archive, suite, folder, self.python)
            return self.found.pip

    def has_pip(self) -> bool:
        """Whether the machine has a pip of its own."""
        with self.found.lock:
            if self.found.has_pip is None:
                self.found.pip = find_pip(self.runner)
                self.found.has_pip = self.found.pip is not None
            return self.found.has_pip

    def host(self) -> tuple[list[Source], str]:
        """The archives to use and the code name of the Debian release that stands for this machine.

        On Debian they are those of apt's configuration. Elsewhere, and where TFP_DEBIAN_MIRROR
        names a mirror, they are that mirror and the pinned release.

        Raises:
            StartError: this is not Debian, and no mirror is named.
        """
        sources = self._apt_sources()
        if sources is not None:
            return sources, host_release()[1]
        mirror = self.environ.get("TFP_DEBIAN_MIRROR")
        if not mirror:
            raise StartError(
                "finding a Debian mirror",
                "this is not Debian with apt, and TFP_DEBIAN_MIRROR is not set",
                "set it to the address of a mirror of Debian",
            )
        release = self.pins.debian_release
        return [Source(mirror, (release,), ("main",), ())], release

    def _apt_sources(self) -> list[Source] | None:
        """The archives of Debian's apt; None where it is not there, or not to be used."""
        distribution, codename = host_release()
        if (
            self.environ.get("TFP_DEBIAN_MIRROR")
            or distribution != "debian"
            or shutil.which("apt-get", path=self.environ.get("PATH")) is None
        ):
            return None
        folder = self.stage("keys")
        folder.mkdir(parents=True, exist_ok=True)
        sources = host_sources(folder)
        try:
            archive_of(sources, codename)
        except StartError:
            return None
        return sources
