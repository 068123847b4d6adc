"""Regular expressions of RE2 as trees: which texts they are, not which part of a text they find."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, TypeAlias

from converters.tf.lower.graph import Unsupported

# The last code point, and those in between that are no characters.
LAST, SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)
# As often as RE2 repeats a part that has a number.
_MOST_REPEATS = 1000

Ranges: TypeAlias = tuple[tuple[int, int], ...]


class At(StrEnum):
    """What an expression asks of a place between characters."""

    START = "start"
    END = "end"
    WORD = "a word's edge"
    NO_WORD = "no word's edge"


@dataclass(frozen=True)
class One:
    """A character of some ranges of code points."""

    ranges: Ranges


@dataclass(frozen=True)
class Then:
    """Parts that follow each other; none are the empty text."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Either:
    """One of some parts."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Repeat:
    """A part some times; without a `most` as often as one likes."""

    part: Tree
    least: int
    most: int | None


Tree: TypeAlias = One | Then | Either | Repeat | At

_DIGITS: Ranges = ((48, 57),)
_SPACES: Ranges = ((9, 10), (12, 13), (32, 32))
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SETS: Mapping[str, Ranges] = {"d": _DIGITS, "s": _SPACES, "w": _WORD}
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_PLACES = {"A": At.START, "z": At.END, "b": At.WORD, "B": At.NO_WORD}
_TIMES: Mapping[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_NAMED: Mapping[str, str] = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": "\t ",
    "digit": string.digits,
    "lower": string.ascii_lowercase,
    "punct": string.punctuation,
    "space": "\t\n\v\f\r ",
    "upper": string.ascii_uppercase,
    "word": string.ascii_letters + string.digits + "_",
    "xdigit": string.hexdigits,
}


def parsed(pattern: str) -> Tree:
    """Returns an expression as a tree.

    Raises:
        Unsupported: It is not of the part of RE2's language that is known, or is none.
    """
    return _Parser(pattern).whole()


def _sorted(ranges: Sequence[tuple[int, int]]) -> Ranges:
    """Returns ranges in order that don't touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _others(ranges: Sequence[tuple[int, int]]) -> Ranges:
    """Returns all characters that are not in some ranges."""
    found, start = [], 0
    for low, high in _sorted(ranges):
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    return _sorted([*found, *([(start, LAST)] if start <= LAST else [])])


def _of(character: int) -> Ranges:
    return ((character, character),)


class _Parser:
    """Reads an expression from the left."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._lines = False
        if "\ufffd" in pattern:
            raise Unsupported("a regular expression that is not UTF-8")

    def whole(self) -> Tree:
        while self._takes("(?s)"):
            self._lines = True
        found = self._either()
        if self._at < len(self._pattern):
            self._refuse("a bracket that nothing opens")
        return found

    def _refuse(self, what: str) -> NoReturn:
        raise Unsupported(f"the regular expression {self._pattern!r}: {what}")

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            self._refuse("it ends too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _takes(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _either(self) -> Tree:
        parts = [self._then()]
        while self._takes("|"):
            parts.append(self._then())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _then(self) -> Tree:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else Then(tuple(parts))

    def _repeated(self) -> Tree:
        part = self._single()
        times = self._times()
        if times is None:
            return part
        if self._takes("+"):
            self._refuse("a part that is repeated twice")
        # The shortest and the longest match are of the same texts.
        self._takes("?")
        if self._times() is not None:
            self._refuse("a part that is repeated twice")
        return Repeat(part, *times)

    def _times(self) -> tuple[int, int | None] | None:
        if self._peek() in _TIMES:
            return _TIMES[self._next()]
        if self._peek() != "{":
            return None
        inside, closed, _ = self._pattern[self._at + 1 :].partition("}")
        least, comma, most = inside.partition(",")
        if not closed or not least.isdigit() or not (most.isdigit() or not most):
            return None
        self._at += len(inside) + 2
        times = int(least), (int(most) if most else None) if comma else int(least)
        if max(times[0], times[1] or 0) > _MOST_REPEATS or (times[1] or times[0]) < times[0]:
            self._refuse(f"{{{inside}}} times")
        return times

    def _single(self) -> Tree:
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return One(self._set())
        if character == ".":
            return One(_others([] if self._lines else [(10, 10)]))
        if character in "^$":
            return At.START if character == "^" else At.END
        if character in "*+?":
            self._refuse("nothing is repeated")
        if character != "\\":
            return One(_of(ord(character)))
        letter = self._next()
        if letter in _PLACES:
            return _PLACES[letter]
        return One(self._escaped(letter))

    def _group(self) -> Tree:
        if self._takes("?P<") or self._takes("?<"):
            name, closed, _ = self._pattern[self._at :].partition(">")
            if not closed or not name.isidentifier():
                self._refuse("a look behind, or a name that is none")
            self._at += len(name) + 1
        elif not self._takes("?:") and self._peek() == "?":
            self._refuse("a group with flags, or that only looks")
        found = self._either()
        if not self._takes(")"):
            self._refuse("a bracket is not closed")
        return found

    def _escaped(self, letter: str) -> Ranges:
        if letter.lower() in _SETS:
            found = _SETS[letter.lower()]
            return found if letter.islower() else _others(found)
        if letter in _CONTROL:
            return _of(_CONTROL[letter])
        if letter == "x":
            return _of(self._digits())
        if letter.isalnum() or ord(letter) >= 128:
            self._refuse(f"\\{letter}")
        return _of(ord(letter))

    def _digits(self) -> int:
        """Returns the character of a hexadecimal number."""
        if self._takes("{"):
            digits, closed, _ = self._pattern[self._at :].partition("}")
            self._at += len(digits) + 1
        else:
            digits, closed = self._pattern[self._at : self._at + 2], "}"
            self._at += 2
        if not closed or not digits or set(digits) - set(string.hexdigits) or len(digits) > 6:
            self._refuse(f"\\x{digits}")
        number = int(digits, 16)
        if number > LAST or SURROGATES[0] <= number <= SURROGATES[1]:
            self._refuse(f"\\x{{{digits}}}")
        return number

    def _set(self) -> Ranges:
        """Returns the characters of a class, whose first bracket was read."""
        negated = self._takes("^")
        found: list[tuple[int, int]] = []
        first = True
        while first or not self._takes("]"):
            first = False
            if self._takes("[:"):
                found += self._posix()
                continue
            part = self._member()
            if len(part) == 1 and part[0][0] == part[0][1] and self._range_follows():
                self._at += 1
                end = self._member()
                if len(end) != 1 or end[0][0] != end[0][1] or end[0][0] < part[0][0]:
                    self._refuse("a range without an end after its start")
                part = ((part[0][0], end[0][0]),)
            found += part
        return _others(found) if negated else _sorted(found)

    def _range_follows(self) -> bool:
        return self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", "")

    def _member(self) -> Ranges:
        character = self._next()
        return self._escaped(self._next()) if character == "\\" else _of(ord(character))

    def _posix(self) -> Ranges:
        name, closed, _ = self._pattern[self._at :].partition(":]")
        negated = name.startswith("^")
        if not closed or name.removeprefix("^") not in _NAMED:
            self._refuse(f"[:{name}:]")
        self._at += len(name) + 2
        found = _sorted([(ord(c), ord(c)) for c in _NAMED[name.removeprefix("^")]])
        return _others(found) if negated else found
