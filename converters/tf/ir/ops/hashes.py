"""The hashes by which TensorFlow puts text into buckets."""

from __future__ import annotations

_WORD = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_SEED = 81
_BLOCK = 64


def farm(s: bytes) -> int:
    """Returns the fingerprint of `StringToHashBucketFast`: 64 bits.

    Source: `Fingerprint64` of FarmHash, which is `farmhashna::Hash64`.
    """
    size = len(s)
    if size <= _BLOCK:
        return _short(s)
    x, y = _SEED, (_SEED * _K1 + 113) & _WORD
    z = _mixed((y * _K2 + 113) & _WORD) * _K2 & _WORD
    x = (x * _K2 + _word(s, 0)) & _WORD
    state = (x, y, z, (0, 0), (0, 0))
    end = (size - 1) // _BLOCK * _BLOCK
    for at in range(0, end, _BLOCK):
        state = _round(s, at, state, _K1, 1)
    x, y, z, v, w = state
    mul = (_K1 + ((z & 0xFF) << 1)) & _WORD
    w = ((w[0] + ((size - 1) & 63)) & _WORD, w[1])
    v = ((v[0] + w[0]) & _WORD, v[1])
    w = ((w[0] + v[0]) & _WORD, w[1])
    x, y, z, v, w = _round(s, size - _BLOCK, (x, y, z, v, w), mul, 9)
    first = _pair(v[0], w[0], mul) + _mixed(y) * _K0 + z
    return _pair(first & _WORD, (_pair(v[1], w[1], mul) + x) & _WORD, mul)


_Pair = tuple[int, int]
_State = tuple[int, int, int, _Pair, _Pair]


def _round(s: bytes, at: int, state: _State, mul: int, weight: int) -> _State:
    x, y, z, v, w = state
    x = _turn(x + y + v[0] + _word(s, at + 8), 37) * mul & _WORD
    y = _turn(y + v[1] + _word(s, at + 48), 42) * mul & _WORD
    x ^= w[1] * weight & _WORD
    y = (y + v[0] * weight + _word(s, at + 40)) & _WORD
    z = _turn(z + w[0], 33) * mul & _WORD
    v = _weak(s, at, v[1] * mul, x + w[0])
    w = _weak(s, at + 32, z + w[1], y + _word(s, at + 16))
    return z, y, x, v, w


def _weak(s: bytes, at: int, a: int, b: int) -> _Pair:
    a += _word(s, at)
    last = _word(s, at + 24)
    b = _turn(b + a + last, 21)
    total = a + _word(s, at + 8) + _word(s, at + 16)
    return (total + last) & _WORD, (b + _turn(total, 44) + a) & _WORD


def _short(s: bytes) -> int:
    size = len(s)
    mul = (_K2 + 2 * size) & _WORD
    if size == 0:
        return _K2
    if size < 4:
        y = s[0] + (s[size >> 1] << 8)
        z = size + (s[-1] << 2)
        return _mixed((y * _K2 ^ z * _K0) & _WORD) * _K2 & _WORD
    if size < 8:
        a, b = (int.from_bytes(part, "little") for part in (s[:4], s[-4:]))
        return _pair(size + (a << 3), b, mul)
    if size <= 16:
        a, b = _word(s, 0) + _K2, _word(s, size - 8)
        c = _turn(b, 37) * mul + a
        d = (_turn(a, 25) + b) * mul
        return _pair(c & _WORD, d & _WORD, mul)
    a, b = _word(s, 0) * (_K1 if size <= 32 else _K2), _word(s, 8)
    c, d = _word(s, size - 8) * mul, _word(s, size - 16) * _K2
    y = (_turn(a + b, 43) + _turn(c, 30) + d) & _WORD
    z = _pair(y, (a + _turn(b + _K2, 18) + c) & _WORD, mul)
    if size <= 32:
        return z
    e, f = _word(s, 16) * mul, _word(s, 24)
    g, h = (y + _word(s, size - 32)) * mul, (z + _word(s, size - 24)) * mul
    y = (_turn(e + f, 43) + _turn(g, 30) + h) & _WORD
    return _pair(y, (e + _turn(f + a, 18) + g) & _WORD, mul)


def _pair(u: int, v: int, mul: int) -> int:
    a = _mixed((u ^ v) * mul & _WORD)
    return _mixed((v ^ a) * mul & _WORD) * mul & _WORD


def _mixed(x: int) -> int:
    return x ^ x >> 47


def _turn(x: int, by: int) -> int:
    x &= _WORD
    return (x >> by | x << (64 - by)) & _WORD


def _word(s: bytes, at: int) -> int:
    return int.from_bytes(s[at : at + 8], "little")


def sip(s: bytes, key: tuple[int, int]) -> int:
    """Returns the hash of `StringToHashBucketStrong`: 64 bits.

    Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), SipHash-2-4.
    """
    start = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    state = [(key[i % 2] & _WORD) ^ start[i] for i in range(4)]
    padded = s + bytes(7 - len(s) % 8) + bytes([len(s) & 0xFF])
    for at in range(0, len(padded), 8):
        word = _word(padded, at)
        state[3] ^= word
        state = _sip_round(_sip_round(state))
        state[0] ^= word
    state[2] ^= 0xFF
    for _ in range(4):
        state = _sip_round(state)
    a, b, c, d = state
    return a ^ b ^ c ^ d


def _sip_round(state: list[int]) -> list[int]:
    a, b, c, d = state
    a = (a + b) & _WORD
    b = _turn(b, 51) ^ a
    a = _turn(a, 32)
    c = (c + d) & _WORD
    d = _turn(d, 48) ^ c
    a = (a + d) & _WORD
    d = _turn(d, 43) ^ a
    c = (c + b) & _WORD
    b = _turn(b, 47) ^ c
    return [a, b, _turn(c, 32), d]
