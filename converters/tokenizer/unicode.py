"""Tables of the Unicode standard, as Python knows it."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

Ranges = tuple[tuple[int, int], ...]

VERSION = unicodedata.unidata_version
# Behind them are characters without a meaning of their own, and planes for private use.
_PLANES = (*range(0x40000), *range(0xE0000, 0xE1000))
# Halves of UTF-16 pairs are no characters.
_SURROGATES = range(0xD800, 0xE000)
_HANGUL = range(0xAC00, 0xD7A4)
_ASCII = 0x80
_CJK: Ranges = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# The property Default_Ignorable_Code_Point of the standard.
IGNORABLE: Ranges = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)


def _all() -> Iterator[int]:
    return (code for code in _PLANES if code not in _SURROGATES)


def ranges(codes: Iterable[int]) -> Ranges:
    """Returns numbers in order as the ranges that they fill."""
    out: list[tuple[int, int]] = []
    for code in codes:
        if out and out[-1][1] == code - 1:
            out[-1] = (out[-1][0], code)
        else:
            out.append((code, code))
    return tuple(out)


def _where(test: Callable[[str], bool]) -> Ranges:
    return ranges(code for code in _all() if test(chr(code)))


@functools.cache
def letters() -> Ranges:
    """Returns the characters of the categories L*."""
    return _where(lambda c: unicodedata.category(c)[0] == "L")


@functools.cache
def numbers() -> Ranges:
    """Returns the characters of the categories N*."""
    return _where(lambda c: unicodedata.category(c)[0] == "N")


@functools.cache
def marks() -> Ranges:
    """Returns the marks without a width, of the category Mn."""
    return _where(lambda c: unicodedata.category(c) == "Mn")


@functools.cache
def spaces() -> Ranges:
    """Returns the characters between words: white space of ASCII, and what controls or formats."""
    return _where(lambda c: c == " " or unicodedata.category(c) in ("Cc", "Cf"))


@functools.cache
def kept(*, cjk: bool) -> Ranges:
    """Returns the characters that are words: punctuation, and those of `cjk`."""

    def is_kept(c: str) -> bool:
        code = ord(c)
        if code < _ASCII:
            return c.isprintable() and not c.isalnum() and c != " "
        if unicodedata.category(c)[0] == "P":
            return True
        return cjk and any(first <= code <= last for first, last in _CJK)

    return _where(is_kept)


@functools.cache
def classes() -> tuple[tuple[int, int, int], ...]:
    """Returns the classes that say how characters combine, of those that do, as ranges."""
    out: list[tuple[int, int, int]] = []
    for code in _all():
        if kind := unicodedata.combining(chr(code)):
            if out and out[-1][1:] == (code - 1, kind):
                out[-1] = (out[-1][0], code, kind)
            else:
                out.append((code, code, kind))
    return tuple(out)


@functools.cache
def decompositions(form: Literal["NFD", "NFKD"]) -> tuple[tuple[str, str], ...]:
    """Returns the characters that a form, NFD or NFKD, takes apart, but for syllables of Hangul."""
    return tuple(
        (c, apart)
        for c in map(chr, _all())
        if ord(c) not in _HANGUL and (apart := unicodedata.normalize(form, c)) != c
    )


@functools.cache
def pairs() -> tuple[tuple[str, str, str], ...]:
    """Returns the pairs that are one character, but for syllables of Hangul."""
    out = []
    for c in map(chr, _all()):
        parts = unicodedata.decomposition(c).split()
        if len(parts) == 2 and parts[0][0] != "<" and unicodedata.normalize("NFC", c) == c:
            first, second = (chr(int(part, 16)) for part in parts)
            out.append((first, second, c))
    return tuple(sorted(out))


@functools.cache
def folds() -> tuple[tuple[str, str], ...]:
    """Returns what characters become that differ only by being capital letters."""
    return tuple((c, small) for c in map(chr, _all()) if (small := c.casefold()) != c)
