"""Debian packages on a machine without Debian's apt: the index is read and checked here.

Trust comes from the keys in ``debian_keys.json``: they sign the release file, which holds the hash
of the index, which holds the hash of every package. So a mirror need not be trusted.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import re
import tarfile
import time
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

from tools.provision import glibc
from tools.provision.apt import Package, parse_one_line
from tools.provision.messages import StartError, folder_bytes, progress, say
from tools.provision.signature import SignatureError, read_keys, signed_text
from tools.provision.web import TODO, Client

# What every machine that can run Python has; the rest of what a package needs is fetched.
HOST_GIVES = ("debconf", "dpkg", "gcc", "libc6-dev", "libc-dev", "binutils", "perl", "tzdata")
_RELEASE_LIMIT = 2_000_000
_INDEX_LIMIT = 60_000_000
_DAY_S = 86_400


@dataclass(frozen=True)
class Entry:
    """A package of the index.

    Attributes:
        name: its name.
        version: its version.
        url: where its file is.
        sha256: the hash of the file.
        size: bytes of the file.
        needs: names of packages that it needs; each is a tuple of alternatives.
        provides: names that it stands for beside its own.
    """

    name: str
    version: str
    url: str
    sha256: str
    size: int
    needs: tuple[tuple[str, ...], ...]
    provides: tuple[str, ...]


def compare_versions(one: str, two: str) -> int:
    """Negative, zero or positive as ``one`` is older, as old or newer, by Debian's rules."""

    def split(version: str) -> tuple[int, str, str]:
        epoch, colon, rest = version.partition(":")
        upstream, dash, revision = (rest if colon else version).rpartition("-")
        whole = rest if colon else version
        return int(epoch) if colon else 0, upstream if dash else whole, revision if dash else ""

    def rank(character: str) -> int:
        if character == "~":
            return -1
        return ord(character) if character.isalpha() else ord(character) + 256

    def pieces(text: str) -> list[tuple[list[int], int]]:
        # Words end with a 0, so that an end sorts before a letter and after a tilde.
        return [
            ([*map(rank, word), 0], int(number or 0))
            for word, number in re.findall(r"(\D*)(\d*)", text)
        ]

    left, right = (
        (epoch, pieces(upstream), pieces(revision))
        for epoch, upstream, revision in (split(one), split(two))
    )
    return (left > right) - (left < right)


def parse_index(text: str, base: str) -> list[Entry]:
    """The packages of a ``Packages`` file for this machine; ``base`` is the archive's address."""
    found = []
    for paragraph in re.split(r"\n\n+", text):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
        if not {"Package", "Version", "Filename", "SHA256", "Size"} <= set(fields):
            continue
        needs = ", ".join(fields[key] for key in ("Pre-Depends", "Depends") if fields.get(key))
        found.append(
            Entry(
                fields["Package"],
                fields["Version"],
                f"{base}/{fields['Filename']}",
                fields["SHA256"],
                int(fields["Size"]),
                tuple(
                    tuple(re.findall(r"(?:^|\|)\s*([a-z0-9][a-z0-9.+-]*)", group))
                    for group in needs.split(",")
                    if group.strip()
                ),
                tuple(re.findall(r"(?:^|,)\s*([a-z0-9][a-z0-9.+-]*)", fields.get("Provides", ""))),
            )
        )
    return found


class Mirror:
    """The same five steps as ``Apt`` has, without apt, dpkg or a distribution of Debian's."""

    def __init__(self, client: Client, indexes: dict[str, list[Entry]] | None = None) -> None:
        """Keeps the client that fetches.

        Args:
            client: fetches.
            indexes: the indexes that were read before, by address; new ones are added.
        """
        self._client = client
        self._indexes = {} if indexes is None else indexes
        self._entries: dict[str, Entry] = {}
        self._providers: dict[str, list[str]] = {}
        self._given: frozenset[str] = frozenset()

    def update(self, label: str, lines: Sequence[str], pretend: Sequence[str] | None) -> None:
        """Reads the index of some archives.

        Args:
            label: what they are, for messages.
            lines: entries in apt's one-line form.
            pretend: packages that need not be fetched, or None for what each machine has.

        Raises:
            StartError: an index could not be fetched, or no key of Debian's has signed it.
        """
        self._entries, self._providers = {}, {}
        sources = parse_one_line("\n".join(lines))
        if pretend is None:
            suites = (suite for source in sources for suite in source.suites)
            pretend = (*HOST_GIVES, *glibc.given(next(suites, "")))
        self._given = frozenset(pretend)
        step = f"reading the package index of {label}"
        before = self._client.received
        with progress(step, 0, lambda: self._client.received - before):
            for source in sources:
                for suite in source.suites:
                    for entry in self._read(source.uri.rstrip("/"), suite, step):
                        self._add(entry)

    def _add(self, entry: Entry) -> None:
        had = self._entries.get(entry.name)
        if had is None or compare_versions(had.version, entry.version) < 0:
            self._entries[entry.name] = entry
            for name in entry.provides:
                self._providers.setdefault(name, []).append(entry.name)

    def _read(self, base: str, suite: str, step: str) -> list[Entry]:
        folder = f"{base}/dists/{suite}"
        if folder not in self._indexes:
            self._indexes[folder] = self._fetch_index(base, folder, suite, step)
        return self._indexes[folder]

    def _fetch_index(self, base: str, folder: str, suite: str, step: str) -> list[Entry]:
        document = self._client.read(f"{folder}/InRelease", step, _RELEASE_LIMIT)
        try:
            release = signed_text(document, read_keys())
        except SignatureError as error:
            raise StartError(
                step,
                f"{folder}/InRelease: {error}",
                "set TFP_DEBIAN_MIRROR to another mirror of Debian",
            ) from error
        named = re.findall(r"^(?:Suite|Codename): (\S+)$", release, re.MULTILINE)
        if suite.split("-")[0] not in {name.split("-")[0] for name in named}:
            raise StartError(step, f"{folder} holds {' '.join(named)}", TODO)
        until = re.search(r"^Valid-Until: (.+)$", release, re.MULTILINE)
        if until is not None:
            late = time.time() - parsedate_to_datetime(until.group(1)).timestamp()
            if late > _DAY_S:
                say(f"the index of Debian {suite} is {late / _DAY_S:.0f} days out of date")
        listed = re.search(
            r"^SHA256:\n(?: .*\n)*? ([0-9a-f]{64}) +(\d+) main/binary-amd64/Packages\.xz$",
            release,
            re.MULTILINE,
        )
        if listed is None:
            raise StartError(step, f"{folder} has no packages for amd64", TODO)
        digest = listed.group(1)
        url = f"{folder}/main/binary-amd64/by-hash/SHA256/{digest}"
        packed = self._client.read(url, step, _INDEX_LIMIT)
        if hashlib.sha256(packed).hexdigest() != digest:
            raise StartError(step, f"{url} has another hash than the release file says", TODO)
        return parse_index(lzma.decompress(packed).decode(), base)

    def versions(self, names: Sequence[str]) -> Mapping[str, str]:
        """The newest version of each of these packages in the index; unknown ones are left out."""
        return {name: self._entries[name].version for name in names if name in self._entries}

    def closure(self, wanted: Sequence[str], step: str) -> list[Package]:
        """What has to be fetched so that ``wanted`` (``name`` or ``name=version``) is complete.

        Raises:
            StartError: the index lacks something.
        """
        chosen: dict[str, Package] = {}
        waiting = [(one.split("=")[0], one.split("=")[0]) for one in wanted]
        while waiting:
            name, why = waiting.pop(0)
            if name in chosen or (name in self._given and name != why):
                continue
            entry = self._entries.get(name)
            if entry is None:
                raise StartError(
                    step,
                    f"{why} needs {name}, which the index lacks",
                    "try again in a day, or set TFP_DEBIAN_MIRROR to another mirror of Debian",
                )
            chosen[name] = Package(name, entry.version, entry.size)
            waiting += [(self._pick(group, chosen), name) for group in entry.needs]
        return list(chosen.values())

    def _pick(self, group: tuple[str, ...], chosen: Mapping[str, Package]) -> str:
        """The alternative to take: one that is there, else the first that can be fetched."""
        choices: list[str] = [
            real for name in group for real in (name, *self._providers.get(name, []))
        ]
        places: tuple[Container[str], ...] = (self._given, chosen, self._entries)
        for there in places:
            for name in choices:
                if name in there:
                    return name
        return group[0]

    def fetch(self, packages: Sequence[Package], folder: Path, label: str) -> list[Path]:
        """Fetches packages into ``folder`` and gives the files.

        Raises:
            StartError: the network failed or a hash is wrong.
        """
        folder.mkdir(parents=True, exist_ok=True)
        step = f"fetching {label}, {len(packages)} Debian packages"

        def one(package: Package) -> Path:
            entry = self._entries[package.name]
            file = folder / f"{package.name}.deb"
            self._client.fetch(entry.url, file, entry.sha256, entry.size, step)
            return file

        total = sum(package.size for package in packages)
        with (
            progress(step, total, lambda: folder_bytes(str(folder))),
            ThreadPoolExecutor(8) as pool,
        ):
            return list(pool.map(one, packages))

    def unpack(self, files: Sequence[Path], prefix: Path, label: str) -> None:
        """Unpacks package files into ``prefix``; no script of theirs is run.

        Raises:
            StartError: a file is damaged or of another kind.
        """
        for file in files:
            try:
                unpack_deb(file, prefix)
            except (lzma.LZMAError, tarfile.TarError, ValueError, EOFError) as error:
                raise StartError(
                    f"unpacking {label}", f"{file.name}: {error}", "start again to fetch it anew"
                ) from error


def ar_members(data: bytes) -> dict[str, bytes]:
    """The members of an ``ar`` archive.

    Raises:
        ValueError: it is none, or cut off.
    """
    if not data.startswith(b"!<arch>\n"):
        raise ValueError("not an ar archive")
    found = {}
    at = 8
    while at + 60 <= len(data):
        name = data[at : at + 16].decode("latin-1").strip().rstrip("/")
        size = int(data[at + 48 : at + 58])
        at += 60
        if at + size > len(data):
            raise ValueError(f"{name} is cut off")
        found[name] = data[at : at + size]
        at += size + size % 2
    return found


def unpack_deb(file: Path, prefix: Path) -> None:
    """Unpacks the files of a package into ``prefix``.

    Raises:
        ValueError: it has no ``data.tar`` of a known kind, or a member that leaves ``prefix``.
    """
    members = ar_members(file.read_bytes())
    name = next((name for name in members if name.startswith("data.tar")), "no data.tar")
    if name not in ("data.tar.xz", "data.tar.gz", "data.tar"):
        raise ValueError(f"its files are in {name}, expected data.tar.xz")
    root = prefix.resolve()
    with tarfile.open(fileobj=io.BytesIO(members[name])) as archive:
        for member in archive:
            path = root / member.name
            # A folder that a package before this one made a link is followed, as dpkg does.
            inside = path == root or root in (path.parent.resolve() / path.name).parents
            if ".." in path.parts or not inside:
                raise ValueError(f"{member.name} leaves the folder")
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() or path.exists():
                path.unlink()
            if member.issym():
                path.symlink_to(member.linkname)
            elif member.islnk():
                os.link(root / member.linkname, path)
            elif member.isfile():
                source = archive.extractfile(member)
                assert source is not None
                path.write_bytes(source.read())
                path.chmod((member.mode & 0o755) | 0o600)
