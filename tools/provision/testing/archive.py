"""A small Debian archive that is signed with a key of its own, as address -> contents."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import lzma
import random
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.provision.signature import Key

URL = "http://mirror.invalid/debian"
_EXPONENT = 65537
_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")


def _is_prime(number: int) -> bool:
    shift = ((number - 1) & -(number - 1)).bit_length() - 1
    for base in random.Random(number).sample(range(2, 10**6), 20):
        power = pow(base, (number - 1) >> shift, number)
        seen = [power]
        for _ in range(shift - 1):
            seen.append(pow(seen[-1], 2, number))
        if power != 1 and number - 1 not in seen:
            return False
    return True


@functools.cache
def pair(seed: int) -> tuple[Key, int]:
    """A public key and its private exponent, the same for the same seed."""
    dice = random.Random(seed)
    primes: list[int] = []
    while len(primes) < 2:
        candidate = dice.getrandbits(512) | 1 << 511 | 1
        if candidate % _EXPONENT != 1 and _is_prime(candidate):
            primes.append(candidate)
    one, two = primes
    private = pow(_EXPONENT, -1, (one - 1) * (two - 1))
    return Key("a test", one * two, _EXPONENT), private


def sign(text: str, seed: int = 1, kind: int = 1, number: int = 8) -> bytes:
    """``text`` as a cleartext document, signed with the key of this seed."""
    key, private = pair(seed)
    lines = text.encode().split(b"\n")
    body = b"\r\n".join(line.rstrip() for line in lines)
    head = bytes([4, kind, 1, number]) + (0).to_bytes(2, "big")
    digest = hashlib.sha256(body + head + b"\x04\xff" + len(head).to_bytes(4, "big")).digest()
    size = (key.modulus.bit_length() + 7) // 8
    tail = b"\x00" + _PREFIX + digest
    block = b"\x00\x01" + b"\xff" * (size - 2 - len(tail)) + tail
    made = pow(int.from_bytes(block, "big"), private, key.modulus)
    bits = made.bit_length()
    packet = head + bytes(2) + digest[:2] + bits.to_bytes(2, "big")
    packet += made.to_bytes((bits + 7) // 8, "big")
    whole = b"\xc2\xff" + len(packet).to_bytes(4, "big") + packet
    dashed = b"\n".join(b"- " + line if line.startswith(b"-") else line for line in lines)
    return (
        b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n"
        + dashed
        + b"\n-----BEGIN PGP SIGNATURE-----\n\n"
        + base64.encodebytes(whole)
        + b"=AAAA\n-----END PGP SIGNATURE-----\n"
    )


def deb(files: Mapping[str, bytes | str], packing: str = "xz") -> bytes:
    """A package; contents that are text are the target of a link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            if isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
                archive.addfile(info)
            else:
                info.size, info.mode = len(data), 0o755
                archive.addfile(info, io.BytesIO(data))
    members = {"debian-binary": b"2.0\n", f"data.tar.{packing}": buffer.getvalue()}
    packed = b"!<arch>\n"
    for name, data in members.items():
        packed += f"{name:<16}{0:<12}{0:<6}{0:<6}{0o100644:<8o}{len(data):<10}`\n".encode()
        packed += data + b"\n" * (len(data) % 2)
    return packed


@dataclass
class Archive:
    """What a mirror holds.

    Attributes:
        sites: address -> contents.
    """

    sites: dict[str, bytes] = field(default_factory=dict)

    def add(
        self,
        suite: str,
        packages: Mapping[str, tuple[str, str, Mapping[str, bytes | str]]],
        extra: str = "",
        seed: int = 1,
    ) -> None:
        """Adds a suite.

        Args:
            suite: its name.
            packages: name -> version, dependencies, files.
            extra: more lines of the release file.
            seed: the key that signs.
        """
        index = ""
        for name, (version, needs, files) in packages.items():
            data = deb(files)
            path = f"pool/{suite}/{name}_{len(self.sites)}.deb"
            self.sites[f"{URL}/{path}"] = data
            index += (
                f"Package: {name}\nVersion: {version}\nDepends: {needs}\nFilename: {path}\n"
                f"Size: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
            )
        packed = lzma.compress(index.encode())
        digest = hashlib.sha256(packed).hexdigest()
        folder = f"{URL}/dists/{suite}"
        self.sites[f"{folder}/main/binary-amd64/by-hash/SHA256/{digest}"] = packed
        release = (
            f"Suite: {suite}\nCodename: {suite}\n{extra}SHA256:\n"
            f" {'0' * 64} 1 main/binary-all/Packages.xz\n"
            f" {digest} {len(packed)} main/binary-amd64/Packages.xz\n"
        )
        self.sites[f"{folder}/InRelease"] = sign(release, seed)
