"""The index of a checkpoint as entries, and back: with checksums that are right."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_MAGIC = 0xDB4775248B80FB57


def read(content: bytes) -> dict[bytes, bytes]:
    """Returns the entries of a whole table."""
    footer = content[-48:]
    at = 0
    for _ in range(2):
        _, at = _varint(footer, at)
    offset, at = _varint(footer, at)
    length, _ = _varint(footer, at)
    found: dict[bytes, bytes] = {}
    for place in _block(content[offset : offset + length]).values():
        start, at = _varint(place, 0)
        size, _ = _varint(place, at)
        found.update(_block(content[start : start + size]))
    return found


def written(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns a table of entries, in the order in which they are given."""
    items = list(entries)
    data = _packed(items)
    out = bytearray(data)
    meta_at, meta = len(out), _packed([])
    out += meta
    last = items[-1][0] if items else b""
    index = _packed([(last, _number(0) + _number(len(data) - 5))])
    index_at = len(out)
    out += index
    footer = b"".join(map(_number, (meta_at, len(meta) - 5, index_at, len(index) - 5)))
    return bytes(out + footer.ljust(40, b"\0") + struct.pack("<Q", _MAGIC))


def _block(block: bytes) -> dict[bytes, bytes]:
    (restarts,) = struct.unpack("<I", block[-4:])
    end, at, key = len(block) - 4 - 4 * restarts, 0, b""
    found = {}
    while at < end:
        shared, at = _varint(block, at)
        rest, at = _varint(block, at)
        size, at = _varint(block, at)
        key = key[:shared] + block[at : at + rest]
        at += rest
        found[key] = block[at : at + size]
        at += size
    return found


def _packed(items: list[tuple[bytes, bytes]]) -> bytes:
    out = bytearray()
    restarts = []
    for key, value in items:
        restarts.append(len(out))
        out += _number(0) + _number(len(key)) + _number(len(value)) + key + value
    for number in (*(restarts or [0]), max(1, len(restarts))):
        out += struct.pack("<I", number)
    out.append(0)
    return bytes(out) + struct.pack("<I", masked_crc(bytes(out)))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_CRC = _table()


def masked_crc(data: bytes) -> int:
    """Returns the CRC-32C of bytes, rotated and shifted as tables store it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
