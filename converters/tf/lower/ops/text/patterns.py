"""The regular expressions of RE2 that change a text byte by byte: characters, and fixed text."""

from __future__ import annotations

import string
from collections.abc import Mapping

from converters.tf.ir import Change, Characters, Each, Every
from converters.tf.lower.graph import Unsupported

_ASCII = frozenset(range(128))
_DIGITS = frozenset(map(ord, string.digits))
_WORD = frozenset(map(ord, string.ascii_letters + string.digits + "_"))
# What a backslash and a letter mean, in classes and outside of them.
_SETS: Mapping[str, frozenset[int]] = {
    "d": _DIGITS,
    "s": frozenset(b"\t\n\f\r "),
    "w": _WORD,
}
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
# The classes of POSIX, as `[[:punct:]]` names them.
_NAMED: Mapping[str, frozenset[int]] = {
    "alnum": _WORD - {ord("_")},
    "alpha": frozenset(map(ord, string.ascii_letters)),
    "ascii": _ASCII,
    "blank": frozenset(b"\t "),
    "cntrl": frozenset([*range(32), 127]),
    "digit": _DIGITS,
    "graph": frozenset(range(33, 127)),
    "lower": frozenset(map(ord, string.ascii_lowercase)),
    "print": frozenset(range(32, 127)),
    "punct": frozenset(map(ord, string.punctuation)),
    "space": frozenset(b"\t\n\v\f\r "),
    "upper": frozenset(map(ord, string.ascii_uppercase)),
    "word": _WORD,
    "xdigit": frozenset(map(ord, string.hexdigits)),
}
# What means more than itself outside of a class.
_SPECIAL = frozenset(".^$*+?()[]{}|")


def change_of(pattern: str, rewrite: str) -> Change:
    """Returns the change that replaces all matches of an expression.

    Raises:
        Unsupported: The expression matches other things than single characters or a fixed text.
    """
    reader = _Reader(pattern)
    becomes = _rewritten(rewrite)
    if not pattern:
        raise Unsupported("an empty regular expression")
    if pattern[0] == "[" or (pattern[0] == "\\" and pattern[1:2].lower() in _SETS):
        characters = reader.one()
        rest = reader.rest()
        if rest == "" or (rest == "+" and not becomes):
            return Each(characters, becomes)
        if rest == "+" and becomes.isspace():
            return Each(characters, becomes, runs=True)
        raise _refused(pattern)
    literal = reader.literal()
    if len(literal) == 1 and ord(literal) < 128:
        return Each(Characters(frozenset([ord(literal)])), becomes)
    return Every(literal.encode(), becomes)


def characters_of(pattern: str) -> Characters:
    """Returns the characters of which an expression such as `[a-z]+` matches a run.

    Raises:
        Unsupported: It is another expression.
    """
    reader = _Reader(pattern)
    if pattern[:1] not in ("[", "\\"):
        raise _refused(pattern)
    found = reader.one()
    if reader.rest() != "+":
        raise _refused(pattern)
    return found


def _refused(pattern: str) -> Unsupported:
    return Unsupported(
        f"the regular expression {pattern!r}; single characters, classes of them, and fixed text "
        "are replaced"
    )


def _rewritten(rewrite: str) -> bytes:
    """Returns what a match becomes."""
    if "\ufffd" in rewrite:
        raise Unsupported("text that is not UTF-8")
    if "\\" in rewrite.replace("\\\\", ""):
        raise Unsupported(f"the parts of a match in {rewrite!r}")
    return rewrite.replace("\\\\", "\\").encode()


class _Reader:
    """Reads an expression from the left."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        if "\ufffd" in pattern:
            raise Unsupported("a regular expression that is not UTF-8")

    def rest(self) -> str:
        return self._pattern[self._at :]

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise _refused(self._pattern)
        self._at += 1
        return self._pattern[self._at - 1]

    def literal(self) -> str:
        """Returns a fixed text, to the end."""
        out = ""
        while self._at < len(self._pattern):
            character = self._next()
            if character == "\\":
                character = self._escaped(self._next())
            elif character in _SPECIAL:
                raise _refused(self._pattern)
            out += character
        return out

    def one(self) -> Characters:
        """Returns the set that a class or an escape stands for."""
        if self._next() == "\\":
            return self._set(self._next())
        negated = self.rest().startswith("^")
        self._at += negated
        found, beyond = set[int](), False
        first = True
        while first or not self.rest().startswith("]"):
            first = False
            if self.rest().startswith("[:"):
                found |= self._named()
                continue
            character = self._next()
            escape = self._next() if character == "\\" else ""
            if escape.lower() in _SETS:
                part = self._set(escape)
                found |= part.ascii
                beyond |= part.beyond
                continue
            low = self._ascii(self._escaped(escape) if escape else character)
            found |= set(range(low, self._upper(low) + 1))
        self._at += 1
        if negated:
            return Characters(_ASCII - found, not beyond)
        return Characters(frozenset(found), beyond)

    def _upper(self, low: int) -> int:
        """Returns the end of a range that begins with a character, or that character."""
        rest = self.rest()
        if not rest.startswith("-") or rest[1:2] in ("]", ""):
            return low
        self._at += 1
        character = self._next()
        high = self._ascii(self._escaped(self._next()) if character == "\\" else character)
        if high < low:
            raise _refused(self._pattern)
        return high

    def _named(self) -> frozenset[int]:
        name = self.rest()[2:].partition(":]")[0]
        if name not in _NAMED:
            raise _refused(self._pattern)
        self._at += len(name) + 4
        return _NAMED[name]

    def _set(self, escape: str) -> Characters:
        found = _SETS[escape.lower()]
        return Characters(found) if escape.islower() else Characters(_ASCII - found, True)

    def _escaped(self, character: str) -> str:
        if character in _CONTROL:
            return chr(_CONTROL[character])
        if character.isalnum() or ord(character) >= 128:
            raise _refused(self._pattern)
        return character

    def _ascii(self, character: str) -> int:
        if ord(character) >= 128:
            raise _refused(self._pattern)
        return ord(character)
