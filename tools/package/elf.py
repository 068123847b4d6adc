"""What a shared library of 64-bit Linux needs and says of itself."""

from __future__ import annotations

import re
import struct
from typing import Final

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_VERNEED: Final = struct.Struct("<HHIII")
_VERNAUX: Final = struct.Struct("<IHHII")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_NEEDED: Final = 1
_MACHINES: Final = {62: "x86_64", 183: "aarch64"}
_GLIBC: Final = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?$")
_RUSTC: Final = re.compile(rb"rustc version (\d+\.\d+\.\d+)")


class ElfError(Exception):
    """A file is not a library of this kind; the message says what it is."""


def _sections(data: bytes) -> dict[str, tuple[int, int, int]]:
    """Returns offset, size and linked section of each section by name."""
    if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise ElfError("no little-endian 64-bit ELF file")
    fields = _HEADER.unpack_from(data)
    start, size, count, names = fields[6], fields[11], fields[12], fields[13]
    rows = [_SECTION.unpack_from(data, start + index * size) for index in range(count)]
    base = rows[names][4]
    return {_text(data, base + row[0]): (row[4], row[5], row[6]) for row in rows}


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode("ascii", "replace")


def machine(data: bytes) -> str:
    """Returns the processor that a library is for, as the tags of wheels name it.

    Args:
        data: Contents of the library.

    Raises:
        ElfError: If it is not an ELF file of x86-64 or aarch64.
    """
    _sections(data)
    number = _HEADER.unpack_from(data)[2]
    if number not in _MACHINES:
        raise ElfError(f"its processor is number {number}, expected x86_64 or aarch64")
    return _MACHINES[number]


def needed_libraries(data: bytes) -> list[str]:
    """Returns the names of the libraries that a library is linked with, in its order."""
    sections = _sections(data)
    offset, size, _ = sections.get(".dynamic", (0, 0, 0))
    strings = sections.get(".dynstr", (0, 0, 0))[0]
    rows = (_DYNAMIC.unpack_from(data, offset + at) for at in range(0, size, _DYNAMIC.size))
    return [_text(data, strings + value) for tag, value in rows if tag == _NEEDED]


def exported_symbols(data: bytes) -> set[str]:
    """Returns the names that a library, or an object file, defines for others."""
    dynamic = ".dynsym" in _sections(data)
    tables = (".dynsym", ".dynstr") if dynamic else (".symtab", ".strtab")
    return {name for name, local in _symbols(data, *tables) if not local}


def all_symbols(data: bytes) -> set[str]:
    """Returns the names that a library defines, those for itself among them, unless stripped."""
    return {name for name, _ in _symbols(data, ".symtab", ".strtab")}


def _symbols(data: bytes, table: str, names: str) -> list[tuple[str, bool]]:
    """Returns the symbols that a table defines, and whether each is local."""
    sections = _sections(data)
    offset, size, _ = sections.get(table, (0, 0, 0))
    strings = sections.get(names, (0, 0, 0))[0]
    rows = (_SYMBOL.unpack_from(data, offset + at) for at in range(0, size, _SYMBOL.size))
    return [(_text(data, strings + row[0]), row[1] >> 4 == 0) for row in rows if row[3]]


def needed_glibc(data: bytes) -> tuple[int, int]:
    """Returns the oldest C library that has every symbol that a library needs.

    Args:
        data: Contents of the library.

    Returns:
        Major and minor version of glibc; (0, 0) if it needs none.

    Raises:
        ElfError: If it is not an ELF file of 64-bit Linux.
    """
    sections = _sections(data)
    needed = (0, 0)
    offset, size, _ = sections.get(".gnu.version_r", (0, 0, 0))
    strings = sections.get(".dynstr", (0, 0, 0))[0]
    end = offset + size
    while size and offset < end:
        _, count, _, first, following = _VERNEED.unpack_from(data, offset)
        entry = offset + first
        for _ in range(count):
            _, _, _, name, step = _VERNAUX.unpack_from(data, entry)
            match = _GLIBC.match(_text(data, strings + name))
            if match:
                needed = max(needed, (int(match[1]), int(match[2])))
            entry += step
        if not following:
            break
        offset += following
    return needed


def rust_version(data: bytes) -> str | None:
    """Returns the version of the Rust compiler that a library names, or None."""
    sections = _sections(data)
    offset, size, _ = sections.get(".comment", (0, 0, 0))
    match = _RUSTC.search(data[offset : offset + size])
    return match[1].decode() if match else None
