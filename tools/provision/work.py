"""What one provisioning carries along: pins, cache, runner, and what it has decided so far."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.provision.apt import Apt, Source, archive_of, host_release, host_sources
from tools.provision.cache import Cache
from tools.provision.command import Runner
from tools.provision.messages import StartError
from tools.provision.pins import Pins
from tools.provision.wheels import debian_pip, find_pip


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
        found_pip: the start of pip's command line, once it is known.
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
    found_pip: list[str] | None = None

    def stage(self, name: str) -> Path:
        """A scratch folder that is removed by the end of the start."""
        return self.cache.root / "stage" / f"{os.getpid()}-{name}"

    def apt(self, name: str) -> Apt:
        """An apt of its own."""
        return Apt(self.runner, self.stage(f"apt-{name}"), os.geteuid() == 0)

    def pip(self) -> list[str]:
        """A pip that works, as the start of a command line: the user's own, else Debian's."""
        if self.found_pip is None:
            self.found_pip = find_pip(self.runner)
        if self.found_pip is None:
            folder = self.stage("pip")
            folder.mkdir(parents=True)
            host, codename = self.host("install pip for this Python (`python3.11 -m ensurepip`)")
            archive = archive_of(host, codename)
            self.found_pip = debian_pip(self.apt("pip"), archive, codename, folder)
        return self.found_pip

    def host(self, todo: str) -> tuple[list[Source], str]:
        """The host's archives and its Debian code name.

        Args:
            todo: what the user can do where this is no Debian.

        Raises:
            StartError: this is no Debian.
        """
        distribution, codename = host_release()
        if distribution != "debian" or shutil.which("apt-get") is None:
            raise StartError(
                "finding a Debian mirror",
                f"this is {distribution or 'an unknown system'}, expected Debian with apt",
                todo,
            )
        folder = self.stage("keys")
        folder.mkdir(parents=True, exist_ok=True)
        return host_sources(folder), codename
