"""Rust bindings as a listing: one line per item, in a form that two generators can share.

Understands the subset of Rust that raw bindings are written in: constants, type aliases, structs,
unions, newtypes, `extern` functions, and layout assertions. Parameter names and attributes are
dropped; everything that the ABI depends on stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>b?c?"(?:[^"\\]|\\.)*")
  | (?P<word>(?:r\#)?[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>[0-9][0-9A-Za-z_]*)
  | (?P<sign>->|::|=>|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_BINDGEN_SIZE = re.compile(r"(size|align)_of::<\s*(\w+),?\s*>\(\)\s*-\s*(\d+)usize")
_OWN_SIZE = re.compile(r"(size|align)_of::<([\w#]+)>\(\)\s*==\s*(\d+)")
_OFFSET = re.compile(r"offset_of!\(\s*([\w#]+),\s*([\w#]+)\s*\)\s*(?:-|==)\s*(\d+)")
# The struct in which ffigen keeps function pointers.
FUNCTION_TABLE = "Functions"


def tokens(text: str) -> list[str]:
    """Splits Rust text into tokens without comments and white space."""
    found = []
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            found.append(match[0])
    return found


@dataclass
class Listing:
    """Items by kind and name; each value is the rest of the item's line."""

    lines: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, name: str, rest: str) -> None:
        """Adds an item; equal repetitions are one item."""
        self.lines[f"{kind} {name.removeprefix('r#')}"] = rest

    def text(self) -> str:
        """Returns the listing, sorted."""
        return "".join(f"{key}{rest}\n" for key, rest in sorted(self.lines.items()))

    @classmethod
    def from_text(cls, text: str) -> Listing:
        """Reads what `text` wrote."""
        listing = cls()
        for line in text.splitlines():
            kind, _, rest = line.partition(" ")
            name = re.match(r"[\w.]+", rest)
            if name:
                listing.lines[f"{kind} {name[0]}"] = rest[name.end() :]
        return listing


class _Parser:
    def __init__(self, text: str, listing: Listing) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._listing = listing

    def _peek(self, ahead: int = 0) -> str:
        index = self._at + ahead
        return self._tokens[index] if index < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        found = self._next()
        if found != token:
            raise ValueError(f"expected {token!r}, found {found!r} at token {self._at}")

    def _balanced(self) -> list[str]:
        """Takes a bracketed group, returns what is inside."""
        pairs = {"(": ")", "[": "]", "{": "}"}
        close = [pairs[self._next()]]
        inner = []
        while close:
            token = self._next()
            if not token:
                raise ValueError("unbalanced brackets")
            if token in pairs:
                close.append(pairs[token])
            elif token == close[-1]:
                close.pop()
                if not close:
                    break
            inner.append(token)
        return inner

    def items(self) -> None:
        """Reads items to the end of the text or of the block."""
        while self._at < len(self._tokens):
            token = self._peek()
            if token == "#":
                self._next()
                if self._peek() == "!":
                    self._next()
                self._balanced()
            elif token == "pub" and self._peek(1) in ("const", "type", "struct", "union", "fn"):
                self._next()
                self._item(self._next())
            elif token in ("mod", "use", "const"):
                self._skip_item()
            elif token == "impl":
                while self._peek() != "{":
                    self._next()
                self._balanced()
            else:
                self._next()

    def _skip_item(self) -> None:
        while self._peek() not in (";", "{", ""):
            self._next()
        if self._peek() == "{":
            self._balanced()
        else:
            self._next()

    def _item(self, kind: str) -> None:
        name = self._next()
        if kind == "const":
            self._expect(":")
            ctype = self._type()
            self._expect("=")
            value = []
            while self._peek() != ";":
                value.append(self._next())
            self._listing.add("const", name, f": {ctype} = {_value(value)}")
        elif kind == "type":
            self._expect("=")
            self._listing.add("type", name, f" = {self._type()}")
        elif kind == "fn":
            self._listing.add("fn", name, self._signature())
        elif self._peek() == "(":
            self._next()
            self._expect("pub")
            self._listing.add("newtype", name, f"({self._type()})")
        else:
            self._record(kind, name)

    def _record(self, kind: str, name: str) -> None:
        self._expect("{")
        fields: list[tuple[str, str]] = []
        public = False
        while self._peek() != "}":
            if self._peek() == "#":
                self._next()
                self._balanced()
                continue
            if self._peek() == "pub":
                self._next()
                public = True
            field_name = self._next().removeprefix("r#")
            self._expect(":")
            fields.append((field_name, self._type()))
            if self._peek() == ",":
                self._next()
        self._expect("}")
        if name == FUNCTION_TABLE:
            for field_name, ctype in fields:
                if ctype.startswith("Option<"):
                    ctype = ctype.removeprefix("Option<").removesuffix(">")
                self._listing.add("fn", field_name, ctype.removeprefix("fn"))
        elif not public:
            self._listing.add("opaque", name, "")
        else:
            body = ", ".join(f"{f}: {t}" for f, t in fields)
            self._listing.add(kind, name, f" {{ {body} }}")

    def _type(self) -> str:
        token = self._next()
        if token == "*":
            return f"*{self._next()} {self._type()}"
        if token == "&":
            return f"&{self._type()}"
        if token == "[":
            of = self._type()
            if self._peek() == "]":
                self._next()
                return f"[{of}]"
            self._expect(";")
            length = self._next().removesuffix("usize")
            self._expect("]")
            return f"[{of}; {length}]"
        if token == "unsafe":
            self._expect("extern")
            self._next()
            self._expect("fn")
            return f"fn{self._signature()}"
        if token == "(":
            parts = []
            while self._peek() != ")":
                parts.append(self._type())
                if self._peek() == ",":
                    self._next()
            self._next()
            return f"({', '.join(parts)})"
        if token == "::":
            token = self._next()
        while self._peek() == "::":
            self._next()
            token = self._next()
        name = token.removeprefix("r#")
        if self._peek() == "<":
            self._next()
            inner = self._type()
            if self._peek() == ",":
                self._next()
            self._expect(">")
            return f"{name}<{inner}>"
        return name

    def _signature(self) -> str:
        self._expect("(")
        params = []
        while self._peek() != ")":
            if self._peek(1) == ":":
                self._at += 2
            params.append(self._type())
            if self._peek() == ",":
                self._next()
        self._expect(")")
        result = ""
        if self._peek() == "->":
            self._next()
            result = f" -> {self._type()}"
        return f"({', '.join(params)}){result}"


def _value(found: list[str]) -> str:
    """Returns a constant's value: `Name(3,)` is 3, `Name` stays, a byte string is its C string."""
    if len(found) > 2 and found[1] == "(":
        found = [token for token in found[2:-1] if token != ","]
    text = "".join(found)
    if text.startswith('b"'):
        return "c" + text[1:].replace("\\0", "")
    return text.replace("_", "") if text.lstrip("-")[:1].isdigit() else text


def read_bindings(text: str, into: Listing) -> None:
    """Adds the items and layouts of Rust text to a listing.

    Args:
        text: The text of one file.
        into: The listing.

    Raises:
        ValueError: An item has a form that bindings do not use.
    """
    _Parser(text, into).items()
    sizes: dict[str, dict[str, str]] = {}
    for pattern in (_BINDGEN_SIZE, _OWN_SIZE):
        for what, name, number in pattern.findall(text):
            sizes.setdefault(name, {})[what] = number
    for name, numbers in sizes.items():
        into.add("layout", name, f": size {numbers.get('size')}, align {numbers.get('align')}")
    for name, member, number in _OFFSET.findall(text):
        key = f"offset {name.removeprefix('r#')}.{member.removeprefix('r#')}"
        into.lines[key] = f" = {number}"
