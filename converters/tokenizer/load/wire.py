"""Reads messages of protocol buffers field by field."""

from __future__ import annotations

import struct
from collections.abc import Iterator

# Types of fields: a number, eight bytes, bytes of a length, four bytes.
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_LONGEST = 10


class WireError(ValueError):
    """Bytes that are not a message."""


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the number and the value of each field.

    Raises:
        WireError: The bytes are not a message.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value: int | bytes
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
        elif kind in (_EIGHT, _FOUR):
            value, at = _taken(message, at, 8 if kind == _EIGHT else 4)
        elif kind == _BYTES:
            length, at = _varint(message, at)
            value, at = _taken(message, at, length)
        else:
            raise WireError(f"a field has the type {kind}, which there is not")
        yield key >> 3, value


def number(value: int | bytes) -> int:
    """Returns a number of 32 bits with a sign.

    Raises:
        WireError: The field has another type.
    """
    if isinstance(value, bytes):
        raise WireError("bytes where a number belongs")
    low = value & 0xFFFF_FFFF
    return low - (1 << 32) if low >> 31 else low


def single(value: int | bytes) -> float:
    """Returns a float32.

    Raises:
        WireError: The field has another type.
    """
    if not isinstance(value, bytes) or len(value) != struct.calcsize("<f"):
        raise WireError("a float32 has four bytes")
    found: float = struct.unpack("<f", value)[0]
    return found


def data(value: int | bytes) -> bytes:
    """Returns bytes.

    Raises:
        WireError: The field has another type.
    """
    if not isinstance(value, bytes):
        raise WireError("a number where bytes belong")
    return value


def text(value: int | bytes) -> str:
    """Returns a text.

    Raises:
        WireError: The field has another type, or is not UTF-8.
    """
    try:
        return data(value).decode()
    except UnicodeDecodeError as err:
        raise WireError(f"a text is not UTF-8: {err}") from err


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[at : at + _LONGEST]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise WireError("a number does not end")


def _taken(message: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length > len(message) - at:
        raise WireError(f"a field of {length} bytes passes the end")
    return message[at : at + length], at + length
