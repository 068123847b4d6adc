"""Checks the signature of a Debian index with nothing but the standard library.

What is checked is what Debian's archives use: a cleartext document, version 4 signatures, RSA with
SHA-256 or SHA-512, and the public keys of ``debian_keys.json``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

KEYS = Path(__file__).with_name("debian_keys.json")
_RSA = 1
_TEXT = 1
# OpenPGP's number of a hash -> its name and the DER prefix of PKCS #1 (RFC 8017, 9.2).
_HASHES = {
    8: ("sha256", bytes.fromhex("3031300d060960864801650304020105000420")),
    10: ("sha512", bytes.fromhex("3051300d060960864801650304020305000440")),
}
_DOCUMENT = re.compile(
    rb"-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[^\r\n]+\r?\n)*\r?\n(?P<body>.*?)\r?\n"
    rb"-----BEGIN PGP SIGNATURE-----\r?\n(?:[^\r\n]+\r?\n)*?\r?\n(?P<armor>.*?)"
    rb"-----END PGP SIGNATURE-----\s*",
    re.DOTALL,
)


class SignatureError(ValueError):
    """A document that none of the keys has signed; says why in a few words."""


@dataclass(frozen=True)
class Key:
    """A public RSA key.

    Attributes:
        name: whose it is.
        modulus: its modulus.
        exponent: its exponent.
    """

    name: str
    modulus: int
    exponent: int


def read_keys() -> list[Key]:
    """The keys of Debian's archives."""
    return [
        Key(entry["name"], int(entry["modulus"], 16), entry["exponent"])
        for entry in json.loads(KEYS.read_text(encoding="utf-8"))
    ]


def signed_text(document: bytes, keys: Sequence[Key]) -> str:
    """The text of a cleartext document that one of ``keys`` has signed.

    Raises:
        SignatureError: it is not such a document, or no signature of it is right.
    """
    match = _DOCUMENT.fullmatch(document)
    if match is None:
        raise SignatureError("it is not a signed document")
    lines = [
        (line[2:] if line.startswith(b"- ") else line).rstrip(b" \t\r")
        for line in match["body"].split(b"\n")
    ]
    body = b"\r\n".join(lines)
    # The last line of the armor is a checksum for transmission errors; it proves nothing.
    armor = b"".join(line for line in match["armor"].split() if not line.startswith(b"="))
    try:
        packets = base64.b64decode(armor, validate=True)
        right = any(_is_right(packet, body, keys) for packet in _signatures(packets))
    except (ValueError, IndexError) as error:
        raise SignatureError("its signature cannot be read") from error
    if not right:
        raise SignatureError("none of its signatures is by a key of Debian's archives")
    return b"\n".join(lines).decode()


def _signatures(data: bytes) -> Iterator[bytes]:
    """The bodies of the signature packets in ``data``."""
    at = 0
    while at < len(data):
        head = data[at]
        if head & 0xC0 == 0xC0:  # the new form of a packet's head
            tag, first = head & 0x3F, data[at + 1]
            if first < 192:
                size, at = first, at + 2
            elif first < 224:
                size, at = ((first - 192) << 8) + data[at + 2] + 192, at + 3
            elif first == 255:
                size, at = int.from_bytes(data[at + 2 : at + 6], "big"), at + 6
            else:
                raise ValueError("a packet in parts")
        else:
            tag, width = (head >> 2) & 0xF, 1 << (head & 3)
            if not head & 0x80 or width == 8:
                raise ValueError("not a packet")
            size, at = int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width
        if at + size > len(data):
            raise ValueError("a packet that is cut off")
        if tag == 2:
            yield data[at : at + size]
        at += size


def _is_right(packet: bytes, body: bytes, keys: Sequence[Key]) -> bool:
    """Whether one of ``keys`` made this signature of ``body``; an unknown kind is not right."""
    version, kind, algorithm, number = packet[:4]
    if (version, kind, algorithm) != (4, _TEXT, _RSA) or number not in _HASHES:
        return False
    hashed = 6 + int.from_bytes(packet[4:6], "big")
    at = hashed + 2 + int.from_bytes(packet[hashed : hashed + 2], "big") + 2
    bits = int.from_bytes(packet[at : at + 2], "big")
    number_bytes = packet[at + 2 :]
    if len(number_bytes) != (bits + 7) // 8:
        return False
    name, prefix = _HASHES[number]
    trailer = b"\x04\xff" + hashed.to_bytes(4, "big")
    digest = hashlib.new(name, body + packet[:hashed] + trailer).digest()
    signature = int.from_bytes(number_bytes, "big")
    for key in keys:
        size = (key.modulus.bit_length() + 7) // 8
        tail = b"\x00" + prefix + digest
        expected = b"\x00\x01" + b"\xff" * (size - 2 - len(tail)) + tail
        # The whole block is compared, so that padding has no room for anything else.
        if signature < key.modulus and pow(signature, key.exponent, key.modulus) == int.from_bytes(
            expected, "big"
        ):
            return True
    return False
