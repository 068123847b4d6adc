"""Takes the wrapping off an archive: gzip around a tar file, and zip files.

The input is untrusted: sizes are bounded before memory is taken, whatever the headers say.
"""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Iterator

from converters.mlf.errors import ArchiveError
from tools.codegen.conversion import Problem

GZIP = b"\x1f\x8b"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")

#: Forms that are not read, by their first bytes.
_OTHERS = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
}
# zlib's name for data with a gzip header.
_GZIP_WINDOW = 31
_ENCRYPTED = 1


def refuse_other_forms(origin: str, data: bytes) -> None:
    """Raises ArchiveError if the data is compressed in a form that is not read."""
    for start, form in _OTHERS.items():
        if data.startswith(start):
            what = f"compressed by {form}; read are tar, tar.gz and zip files, and folders"
            raise ArchiveError(Problem(origin, what, "decompress it first"))


def gunzip(origin: str, data: bytes, limit: int) -> bytes:
    """Returns the content of gzip data; raises ArchiveError if it is damaged or over the limit."""
    parts: list[bytes] = []
    size = 0
    while data:
        stream = zlib.decompressobj(_GZIP_WINDOW)
        try:
            parts.append(stream.decompress(data, limit + 1 - size))
        except zlib.error as err:
            raise ArchiveError(Problem(origin, f"damaged gzip data: {err}")) from err
        size += len(parts[-1])
        if size > limit:
            raise ArchiveError(Problem(origin, f"more than {limit} bytes when decompressed"))
        if not stream.eof:
            what = f"truncated: the gzip data ends after {size} decompressed bytes"
            raise ArchiveError(Problem(origin, what, "copy or export it again"))
        # Some programs pad to whole blocks.
        data = stream.unused_data.lstrip(b"\0")
    return b"".join(parts)


def zip_members(
    origin: str, data: bytes, unused: tuple[str, ...], member_limit: int, count_limit: int
) -> Iterator[tuple[str, bytes]]:
    """Yields name and content of each file of a zip file.

    Args:
      origin: the archive's name for messages.
      data: content of the zip file.
      unused: members whose names start so are not decompressed.
      member_limit: bytes that a member may have.
      count_limit: members that there may be.

    Raises:
      ArchiveError: damaged, encrypted, a link, compressed in another way, or over a limit.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            items = file.infolist()
            if len(items) > count_limit:
                raise ArchiveError(Problem(origin, f"more than {count_limit} members"))
            for item in items:
                where = f"{origin}: member {item.orig_filename!r}"
                # The stored name: `filename` ends at a zero byte.
                name = item.orig_filename
                mode = item.external_attr >> 16
                if item.is_dir():
                    continue
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                    raise ArchiveError(Problem(where, "neither a file nor a folder; refused"))
                if item.flag_bits & _ENCRYPTED:
                    raise ArchiveError(Problem(where, "encrypted", "decrypt it first"))
                if item.file_size > member_limit:
                    what = f"size {item.file_size} bytes; at most {member_limit} are accepted"
                    raise ArchiveError(Problem(where, what))
                if name.startswith(unused):
                    yield name, b""
                    continue
                with file.open(item) as stream:
                    content = stream.read(member_limit + 1)
                if len(content) != item.file_size:
                    what = f"{len(content)} bytes, its header says {item.file_size}"
                    raise ArchiveError(Problem(where, what))
                yield name, content
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        OSError,
        RuntimeError,
        ValueError,
    ) as err:
        raise ArchiveError(Problem(origin, f"damaged zip file: {err}")) from err
