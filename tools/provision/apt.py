"""Debian packages without root: a private apt over the host's own mirrors and keys.

The host's apt configuration gives the mirror, its options and the keyring; only the suite is
changed. apt checks the signature of the index and the hash of every package.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tools.provision.command import Runner, must
from tools.provision.messages import StartError, folder_bytes, progress

APT_FOLDER = Path("/etc/apt")
OS_RELEASE = Path("/etc/os-release")

NETWORK_TODO = (
    "check the network and the mirror in /etc/apt (a proxy belongs into apt's configuration), "
    "then start again"
)


@dataclass(frozen=True)
class Source:
    """One archive of the host's apt configuration.

    Attributes:
        uri: where it is.
        suites: its suites, for example ``bookworm``.
        components: its components, for example ``main``.
        options: options in square brackets, for example ``signed-by=...``.
    """

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: tuple[str, ...]

    def line(self, suite: str) -> str:
        """The archive's entry for one suite, in the one-line form."""
        options = f"[{' '.join(self.options)}] " if self.options else ""
        return f"deb {options}{self.uri} {suite} {' '.join(self.components)}"


def parse_one_line(text: str) -> list[Source]:
    """Reads a ``sources.list``: one archive a line; comments and ``deb-src`` are left out."""
    found = []
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].strip()
        match = re.match(r"deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s*(.*)$", line)
        if match is None:
            continue
        options, uri, suite, components = match.groups()
        found.append(
            Source(
                uri,
                (suite,),
                tuple(components.split()),
                tuple((options or "").split()),
            )
        )
    return found


def parse_deb822(text: str, folder: Path) -> list[Source]:
    """Reads a ``.sources`` file; a key that is written into it goes to a file in ``folder``."""
    found = []
    for number, paragraph in enumerate(re.split(r"\n[ \t]*\n", text)):
        fields: dict[str, str] = {}
        key = ""
        for line in paragraph.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line[0] in " \t":
                fields[key] = f"{fields.get(key, '')}\n{line[1:]}"
            elif ":" in line:
                key, value = line.split(":", 1)
                key = key.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        options = []
        signed = fields.get("signed-by", "").strip()
        if "\n" in signed or signed.startswith("-----BEGIN"):
            lines = ("" if line.strip() == "." else line for line in signed.splitlines())
            path = folder / f"key-{number}.asc"
            path.write_text("\n".join(lines) + "\n")
            signed = str(path)
        if signed:
            options.append(f"signed-by={signed}")
        if fields.get("trusted", "").lower() in ("yes", "true", "1"):
            options.append("trusted=yes")
        for uri in fields.get("uris", "").split():
            found.append(
                Source(
                    uri,
                    tuple(fields.get("suites", "").split()),
                    tuple(fields.get("components", "").split()),
                    tuple(options),
                )
            )
    return found


def host_sources(folder: Path, apt_folder: Path | None = None) -> list[Source]:
    """Every archive in the host's apt configuration, in apt's own order.

    Args:
        folder: where keys that are written into ``.sources`` files are put.
        apt_folder: the configuration folder; ``/etc/apt`` unless told.
    """
    base = apt_folder or APT_FOLDER
    found: list[Source] = []
    parts = base / "sources.list.d"
    names = [base / "sources.list"]
    if parts.is_dir():
        names += sorted(parts.iterdir())
    for path in names:
        if not path.is_file():
            continue
        text = path.read_text(errors="replace")
        if path.suffix == ".list":
            found += parse_one_line(text)
        elif path.suffix == ".sources":
            found += parse_deb822(text, folder)
    return found


def host_release(path: Path | None = None) -> tuple[str, str]:
    """The distribution's id and code name from os-release; empty where they are not said."""
    fields = {}
    try:
        for line in (path or OS_RELEASE).read_text().splitlines():
            key, _, value = line.partition("=")
            fields[key] = "".join(shlex.split(value))
    except (OSError, ValueError):
        return "", ""
    return fields.get("ID", ""), fields.get("VERSION_CODENAME", "")


def archive_of(sources: Sequence[Source], codename: str) -> Source:
    """The distribution's main archive among the host's.

    Raises:
        StartError: none of them carries ``codename`` with the component ``main``.
    """
    aliases = {codename, "stable", "oldstable", "testing", "unstable", "sid"} - {""}
    for wanted in ({codename}, aliases):
        for source in sources:
            usable = not source.uri.startswith("cdrom:")
            if usable and "main" in source.components and wanted & set(source.suites):
                return Source(source.uri, source.suites, ("main",), source.options)
    raise StartError(
        "finding a Debian mirror",
        f"no archive for Debian {codename or '(unknown)'} main stands in {APT_FOLDER}",
        "add the Debian archive there, or set TFP_DEBIAN_MIRROR to a mirror of Debian",
    )


@dataclass(frozen=True)
class Package:
    """A package that apt chose.

    Attributes:
        name: its name.
        version: its version as Debian writes it, epoch included.
        size: bytes to fetch.
    """

    name: str
    version: str
    size: int


class PackageSource(Protocol):
    """Anything that reads Debian's index and gives its packages: `Apt`, or `Mirror` without apt."""

    def update(self, label: str, lines: Sequence[str], pretend: Sequence[str] | None) -> None:
        """Reads the index of some archives."""
        ...

    def versions(self, names: Sequence[str]) -> Mapping[str, str]:
        """The newest version of each package that is there."""
        ...

    def closure(self, wanted: Sequence[str], step: str) -> list[Package]:
        """What has to be fetched so that ``wanted`` is complete."""
        ...

    def fetch(self, packages: Sequence[Package], folder: Path, label: str) -> list[Path]:
        """Fetches packages into ``folder``."""
        ...

    def unpack(self, files: Sequence[Path], prefix: Path, label: str) -> None:
        """Unpacks package files into ``prefix``."""
        ...


class Apt:
    """apt with its own lists and cache, over entries that the caller gives."""

    def __init__(self, runner: Runner, folder: Path, is_root: bool) -> None:
        """Keeps its files under ``folder``, which is made as needed."""
        self._runner = runner
        self._folder = folder
        self._is_root = is_root

    def update(self, label: str, lines: Sequence[str], pretend: Sequence[str] | None) -> None:
        """Reads the index of some archives.

        Args:
            label: what they are, for messages.
            lines: entries in the one-line form.
            pretend: packages to treat as installed, or None for what the host has installed.

        Raises:
            StartError: an index could not be fetched or its signature is wrong.
        """
        folder = self._folder
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "sources.list").write_text("".join(f"{line}\n" for line in lines))
        settings = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::State::Lists": folder / "lists",
            "Dir::State::extended_states": folder / "extended_states",
            "Dir::Cache": folder / "cache",
            "Dir::Log": folder,
            "Debug::NoLocking": "true",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
            "APT::Architecture": "amd64",
            "APT::Get::List-Cleanup": "true",
        }
        if self._is_root:
            settings["APT::Sandbox::User"] = "root"
        if pretend is not None:
            status = "".join(
                f"Package: {name}\nStatus: install ok installed\nMaintainer: tfp <tfp@localhost>\n"
                f"Architecture: amd64\nVersion: 99:99\nDescription: not needed\n\n"
                for name in pretend
            )
            (folder / "status").write_text(status)
            settings["Dir::State::status"] = folder / "status"
        text = "".join(f'{key} "{value}";\n' for key, value in settings.items())
        text += "#clear APT::Update::Post-Invoke;\n#clear APT::Update::Pre-Invoke;\n"
        text += "#clear APT::Update::Post-Invoke-Success;\n"
        (folder / "apt.conf").write_text(text)
        step = f"reading the package index of {label}"
        with progress(step, 0, lambda: folder_bytes(str(folder / "lists"))):
            must(
                self._runner,
                [*self._apt("apt-get"), "-o", "APT::Update::Error-Mode=any", "update"],
                step,
                NETWORK_TODO,
                cwd=str(folder),
            )

    def versions(self, names: Sequence[str]) -> Mapping[str, str]:
        """The newest version of each of these packages in the index; unknown ones are left out."""
        outcome = self._runner.run([*self._apt("apt-cache"), "madison", *names])
        found: dict[str, str] = {}
        for line in outcome.out.splitlines():
            parts = [part.strip() for part in line.split("|")]
            if len(parts) == 3 and "Packages" in parts[2]:
                found.setdefault(parts[0], parts[1])
        return found

    def closure(self, wanted: Sequence[str], step: str) -> list[Package]:
        """What has to be fetched so that ``wanted`` (``name`` or ``name=version``) is complete.

        Raises:
            StartError: the suite cannot satisfy it.
        """
        out = must(
            self._runner,
            [
                *self._apt("apt-get"),
                "--no-install-recommends",
                "--reinstall",
                "--print-uris",
                "--yes",
                "install",
                *wanted,
            ],
            step,
            "the suite cannot satisfy these packages now: try again in a day, or install Bazelisk",
        )
        return parse_uris(out)

    def fetch(self, packages: Sequence[Package], folder: Path, label: str) -> list[Path]:
        """Fetches packages into ``folder`` and gives the files; apt checks every hash.

        Raises:
            StartError: the network failed, a hash is wrong or a file is missing afterwards.
        """
        folder.mkdir(parents=True, exist_ok=True)
        total = sum(package.size for package in packages)
        step = f"fetching {label}, {len(packages)} Debian packages"
        with progress(step, total, lambda: folder_bytes(str(folder))):
            must(
                self._runner,
                [
                    *self._apt("apt-get"),
                    "download",
                    *[f"{package.name}={package.version}" for package in packages],
                ],
                step,
                NETWORK_TODO,
                cwd=str(folder),
            )
        files = sorted(folder.glob("*.deb"))
        if len(files) != len(packages):
            raise StartError(step, f"{len(files)} of {len(packages)} files arrived", NETWORK_TODO)
        return files

    def unpack(self, files: Sequence[Path], prefix: Path, label: str) -> None:
        """Unpacks package files into ``prefix``; no script of theirs is run.

        Raises:
            StartError: a file is damaged or the disk is full.
        """
        step = f"unpacking {label}"

        def extract(file: Path) -> None:
            must(
                self._runner,
                ["dpkg-deb", "--extract", str(file), str(prefix)],
                step,
                "start again to fetch it anew",
                cwd=str(prefix),
            )

        largest_first = sorted(files, key=lambda file: -file.stat().st_size)
        with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
            for done in [pool.submit(extract, file) for file in largest_first]:
                done.result()

    def _apt(self, program: str) -> list[str]:
        return [program, "-c", str(self._folder / "apt.conf")]


def parse_uris(text: str) -> list[Package]:
    """Reads what ``apt-get --print-uris`` wrote: ``'uri' name_version_arch.deb size hash``."""
    found = []
    for line in text.splitlines():
        match = re.match(r"'[^']*' (\S+)_(\S+)_[a-z0-9]+\.deb (\d+)", line)
        if match is not None:
            name, version, size = match.groups()
            found.append(Package(name, version.replace("%3a", ":"), int(size)))
    return found


def upstream_part(version: str) -> str:
    """The upstream part of a Debian version: ``7.7.1`` of ``1:7.7.1+ds-8+b1``."""
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", version)
    return match.group(1) if match else version


def numbers(version: str) -> tuple[int, ...]:
    """A dotted version as numbers that compare as versions do."""
    return tuple(int(part) for part in upstream_part(version).split(".") if part.isdigit())
