"""Reads a Model Library Format archive: a tar, tar.gz or zip file, or a folder -> names and bytes.

The input is untrusted. Nothing is ever written, links are refused, names cannot leave the archive,
and every size is checked before memory is taken.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from converters.mlf.errors import ArchiveError
from converters.mlf.parse.compressed import GZIP, ZIP, gunzip, refuse_other_forms, zip_members
from tools.codegen.conversion import Problem

BLOCK = 512
MAX_ARCHIVE_BYTES = 1 << 30
MAX_MEMBER_BYTES = 256 << 20
MAX_KEPT_BYTES = 512 << 20
MAX_MEMBERS = 8192
MAX_NAME_BYTES = 1024
MAX_DEPTH = 32

#: Members that no stage reads: TVM's own runtime sources and project templates.
UNUSED_PREFIXES = ("runtime/src/", "templates/")

METADATA = "metadata.json"
SOURCES = "codegen/host/"

#: Files of macOS and Windows beside the archive's own.
_ADDED = re.compile(r"(?:^|/)(?:__MACOSX/|\._[^/]*$|\.DS_Store$|Thumbs\.db$)")

_KINDS = {
    b"1": "hard link",
    b"2": "symbolic link",
    b"3": "character device",
    b"4": "block device",
    b"6": "FIFO",
    b"7": "contiguous file",
    b"K": "long link name",
    b"S": "sparse file",
}


@dataclass(frozen=True)
class Archive:
    """Members of one archive.

    Attributes:
      origin: the archive's file name, for messages and generated headers.
      files: member name (relative, `/`-separated, no `.` or `..`) -> content.
    """

    origin: str
    files: Mapping[str, bytes]

    def text(self, name: str) -> str:
        """Returns the member `name` as UTF-8 text; raises ArchiveError if there is no such text."""
        data = self.files.get(name)
        if data is None:
            raise ArchiveError(
                Problem(
                    self.origin,
                    f"no member {name!r}; there are {_some(sorted(self.files))}",
                )
            )
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as err:
            raise ArchiveError(
                Problem(f"{self.origin}:{name}", f"not UTF-8 text at byte {err.start}")
            ) from err


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(n) for n in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "") if names else "none"


def member_name(origin: str, raw: str) -> str:
    """Returns a member name in normal form; raises ArchiveError when it could leave the folder.

    Args:
      origin: the archive's name for messages.
      raw: name as stored: relative, `/`-separated; `.` parts are dropped.
    """

    def refuse(why: str) -> ArchiveError:
        return ArchiveError(Problem(f"{origin}: member {raw[:200]!r}", why))

    if len(raw.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise refuse(f"name longer than {MAX_NAME_BYTES} bytes")
    if raw.startswith("/") or (len(raw) > 1 and raw[1] == ":"):
        raise refuse("absolute path; names have to be relative")
    if any(c in '\\"' or ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 or ord(c) == 127 for c in raw):
        raise refuse("backslash, quote, control or undecodable character in the name")
    parts = [p for p in raw.split("/") if p not in ("", ".")]
    if ".." in parts:
        raise refuse("path traversal ('..')")
    if len(parts) > MAX_DEPTH:
        raise refuse(f"{len(parts)} folders deep; at most {MAX_DEPTH} are accepted")
    return "/".join(parts)


def read_archive(path: Path) -> Archive:
    """Reads the file or folder at `path`; raises ArchiveError with the reason to refuse it."""
    try:
        return _read(path, path.stat().st_mode)
    except (OSError, ValueError) as err:
        raise ArchiveError(Problem(str(path), f"cannot be read: {err}")) from err


def _read(path: Path, mode: int) -> Archive:
    if stat.S_ISDIR(mode):
        return _collect(path.resolve().name, _folder_members(path))
    if not stat.S_ISREG(mode):
        raise ArchiveError(Problem(str(path), "neither a regular file nor a folder"))
    size = path.stat().st_size
    if size > MAX_ARCHIVE_BYTES:
        raise ArchiveError(
            Problem(str(path), f"{size} bytes; at most {MAX_ARCHIVE_BYTES} are accepted")
        )
    return parse_archive(path.name, path.read_bytes())


def parse_archive(origin: str, data: bytes) -> Archive:
    """Parses a tar file (ustar, GNU long names, pax paths), also in gzip, or a zip file."""
    if data.startswith(ZIP):
        return _collect(
            origin, zip_members(origin, data, UNUSED_PREFIXES, MAX_MEMBER_BYTES, MAX_MEMBERS)
        )
    if data.startswith(GZIP):
        data = gunzip(origin, data, MAX_ARCHIVE_BYTES)
    refuse_other_forms(origin, data)
    return _collect(origin, _tar_members(origin, data))


def _collect(origin: str, members: Iterator[tuple[str, bytes]]) -> Archive:
    files: dict[str, bytes] = {}
    kept = 0
    for count, (raw, content) in enumerate(members, 1):
        if count > MAX_MEMBERS:
            raise ArchiveError(Problem(origin, f"more than {MAX_MEMBERS} members"))
        name = member_name(origin, raw)
        if not name:
            raise ArchiveError(Problem(origin, f"a file with the empty name {raw!r}"))
        if name in files:
            raise ArchiveError(Problem(origin, f"member {name!r} is there twice"))
        if name.startswith(UNUSED_PREFIXES):
            content = b""
        kept += len(content)
        if kept > MAX_KEPT_BYTES:
            raise ArchiveError(Problem(origin, f"more than {MAX_KEPT_BYTES} bytes of members"))
        files[name] = content
    for name in files:
        for end in range(1, len(name)):
            if name[end] == "/" and name[:end] in files:
                raise ArchiveError(
                    Problem(origin, f"{name[:end]!r} is a file and the folder of {name!r}")
                )
    if not files:
        raise ArchiveError(Problem(origin, "no member at all; not a tar file or an empty one"))
    return Archive("".join(c if c.isprintable() else "?" for c in origin), _without_top(files))


def _without_top(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Returns the members without the one folder that all of them are in, as some tools pack them.

    What file managers add to archives does not count as a member.
    """
    own = {k: v for k, v in files.items() if not _ADDED.search(k)}
    while own and not any(k == METADATA or k.startswith(SOURCES) for k in own):
        top = next(iter(own)).partition("/")[0] + "/"
        if not all(k.startswith(top) for k in own):
            return files
        own = {k.removeprefix(top): v for k, v in own.items()}
    return {k: b"" if k.startswith(UNUSED_PREFIXES) else v for k, v in own.items()} or files


def _number(origin: str, field: bytes, what: str) -> int:
    if field[:1] >= b"\x80":
        if field[0] != 0x80:
            raise ArchiveError(Problem(origin, f"negative or absurd {what} in a tar header"))
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip()
    if not digits:
        return 0
    if not all(0x30 <= c <= 0x37 for c in digits):
        raise ArchiveError(Problem(origin, f"{what} {digits!r} in a tar header is not octal"))
    return int(digits, 8)


def _pax_records(origin: str, data: bytes) -> dict[str, str]:
    records: dict[str, str] = {}
    at = 0
    while at < len(data):
        space = data.find(b" ", at, at + 8)
        length = data[at:space] if space > 0 else b""
        if not length.isdigit() or not (space + 1 < at + int(length) <= len(data)):
            raise ArchiveError(Problem(origin, "damaged pax header"))
        record = data[space + 1 : at + int(length)]
        key, equals, value = record.rstrip(b"\n").partition(b"=")
        if not equals:
            raise ArchiveError(Problem(origin, "pax header without '='"))
        records[key.decode("utf-8", "surrogateescape")] = value.decode("utf-8", "surrogateescape")
        at += int(length)
    return records


def _check_sum(origin: str, header: bytes, at: int) -> None:
    """Raises ArchiveError unless the header at byte `at` has the checksum that it states."""
    checksum = sum(header[:148]) + 8 * 0x20 + sum(header[156:])
    stored = _number(origin, header[148:156], "checksum")
    if checksum != stored:
        raise ArchiveError(
            Problem(origin, f"tar header at byte {at}: checksum {stored}, computed {checksum}")
        )


def _tar_members(origin: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    headers = 0
    ended = False
    long_name: str | None = None
    pax: dict[str, str] = {}
    while at + BLOCK <= len(data):
        header = data[at : at + BLOCK]
        if header == bytes(BLOCK):
            ended = True
            break
        headers += 1
        if headers > 4 * MAX_MEMBERS:
            raise ArchiveError(Problem(origin, f"more than {4 * MAX_MEMBERS} tar headers"))
        try:
            _check_sum(origin, header, at)
        except ArchiveError as err:
            if at > 0:
                raise
            raise ArchiveError(
                Problem(
                    origin,
                    "not a tar file: no tar header at its start",
                    "tvm_export makes an archive of an ONNX, TFLite or Keras model",
                )
            ) from err
        kind = header[156:157]
        name = header[:100].split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        prefix = header[345:500].split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        if header[257:263] == b"ustar\0" and prefix:
            name = f"{prefix}/{name}"
        name = pax.get("path", long_name if long_name is not None else name)
        size = _number(origin, header[124:136], f"size of {name!r}")
        if "size" in pax:
            if not pax["size"].isascii() or not pax["size"].isdigit() or len(pax["size"]) > 20:
                raise ArchiveError(Problem(origin, f"size {pax['size']!r} in a pax header"))
            size = int(pax["size"])
        if any(key.startswith("GNU.sparse") for key in pax):
            raise ArchiveError(Problem(f"{origin}: member {name!r}", "sparse file; refused"))
        if size > MAX_MEMBER_BYTES:
            raise ArchiveError(
                Problem(
                    f"{origin}: member {name!r}",
                    f"size {size} bytes; at most {MAX_MEMBER_BYTES} are accepted",
                )
            )
        body = at + BLOCK
        if size > len(data) - body:
            raise ArchiveError(
                Problem(
                    f"{origin}: member {name!r}",
                    f"size {size} bytes, but the file has only {len(data) - body} left",
                )
            )
        content = data[body : body + size]
        at = body + -(-size // BLOCK) * BLOCK
        if kind == b"L":
            long_name = content.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
            continue
        if kind == b"x":
            pax = _pax_records(origin, content)
            continue
        if kind == b"g":
            continue
        if kind in (b"0", b"\0"):
            yield name, content
        elif kind == b"5":
            member_name(origin, name)
        else:
            what = _KINDS.get(kind, f"member of unknown kind {kind!r}")
            raise ArchiveError(
                Problem(
                    f"{origin}: member {name!r}", f"{what}; only files and folders are accepted"
                )
            )
        long_name, pax = None, {}
    if headers and not ended:
        raise ArchiveError(
            Problem(
                origin,
                f"truncated: ends after {len(data)} bytes without a tar file's end marker",
                "copy or export it again",
            )
        )


def _folder_members(root: Path) -> Iterator[tuple[str, bytes]]:
    pending = [(root, "")]
    seen = 0
    while pending:
        folder, prefix = pending.pop()
        if prefix.count("/") > MAX_DEPTH:
            raise ArchiveError(Problem(str(folder), f"more than {MAX_DEPTH} folders deep"))
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                seen += 1
                if seen > MAX_MEMBERS:
                    raise ArchiveError(Problem(str(root), f"more than {MAX_MEMBERS} entries"))
                name = prefix + entry.name
                if entry.is_symlink():
                    raise ArchiveError(Problem(f"{root.name}/{name}", "symbolic link; refused"))
                if entry.is_dir(follow_symlinks=False):
                    pending.append((Path(entry.path), name + "/"))
                elif entry.is_file(follow_symlinks=False):
                    size = entry.stat(follow_symlinks=False).st_size
                    if size > MAX_MEMBER_BYTES:
                        raise ArchiveError(
                            Problem(
                                f"{root.name}/{name}",
                                f"{size} bytes; at most {MAX_MEMBER_BYTES} are accepted",
                            )
                        )
                    skip = name.startswith(UNUSED_PREFIXES)
                    yield name, b"" if skip else Path(entry.path).read_bytes()
                else:
                    raise ArchiveError(
                        Problem(f"{root.name}/{name}", "neither a file nor a folder; refused")
                    )
