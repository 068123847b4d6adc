"""The items of a Rust source as data: what each defines, and which identifiers its code has.

The sources are this repository's own, in the layout of rustfmt, which tells where an item begins
and ends. Identifiers come from Rust's tokens: comments, strings and characters have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from converters.tf.emit.modules import code_of

VISIBLE = r"(?:pub(?:\([^)]*\))? )?"
_DEFINES = re.compile(
    rf"{VISIBLE}(?:default |const |async |unsafe |extern \"C\" )*"
    r"(?:fn|struct|enum|union|trait|type|const|static|mod|macro_rules!)(?: mut)? (\w+)"
)
USE = re.compile(rf"{VISIBLE}use ([^;]+);")
_INVOKES = re.compile(r"(?:\w+::)*(\w+)! ?[({[]")
_IMPL = re.compile(r"(?:unsafe )?impl\b")
_WORD = re.compile(r"\w+")


@dataclass
class Item:
    """A piece of a file that stays or goes as a whole.

    Attributes:
        text: Its lines, with comments and attributes before it.
        names: What it defines; an item that defines nothing stays with its file.
        needs_all: Whether all its names must be needed, as the ends of an `impl`.
        inner: The functions of an inherent `impl`, which stay or go by themselves.
        words: The identifiers of its code, without those of `inner`.
        method_of: The type of which it is a public function.
    """

    text: str
    names: frozenset[str]
    needs_all: bool = False
    inner: list[Item] = field(default_factory=list)
    words: frozenset[str] = frozenset()
    method_of: frozenset[str] = frozenset()


def items_of(text: str) -> Iterator[Item]:
    """Yields the items of a file in their order; together they are its text."""
    before: list[str] = []
    lines, codes = text.split("\n"), code_of(text).split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith(("//!", "#![")):
            yield Item("".join(f"{part}\n" for part in [*before, line]), frozenset())
            before = []
            index += 1
            continue
        if not line.strip() or line.startswith(("//", "#[")) or line[:1] in " )]":
            before.append(line)
            index += 1
            continue
        end = _end(codes, index)
        body = "\n".join([*before, *lines[index:end]]) + "\n"
        yield _item(body, "\n".join(lines[index:end]))
        before = []
        index = end
    if any(line.strip() for line in before):
        yield Item("\n".join(before) + "\n", frozenset())


def _end(codes: list[str], index: int) -> int:
    """Returns the line after the item that begins at a line without indent.

    Args:
        codes: The lines of the file, as `code_of` leaves them.
        index: That line.
    """
    depth = 0
    for number in range(index, len(codes)):
        code = codes[number].rstrip()
        depth += sum(code.count(letter) for letter in "([{")
        depth -= sum(code.count(letter) for letter in ")]}")
        closes = number > index and code[:1] in ("}", ")", "]")
        if code.endswith((";", "}")) and (depth <= 0 or closes):
            return number + 1
    return len(codes)


def _item(text: str, code: str) -> Item:
    start = bare(code)
    words = frozenset(identifiers(code))
    if re.match(rf"{VISIBLE}mod \w+;", start):
        return Item(text, frozenset())
    if match := _DEFINES.match(start):
        return Item(text, frozenset([match[1]]), words=words)
    if _IMPL.match(start):
        return _impl(text, start, words)
    if match := _INVOKES.match(start):
        rows = list(_rows(text))
        if rows:
            names = frozenset(name for row in rows for name in row.names)
            return Item(text, names, inner=rows, words=frozenset([match[1]]))
        return Item(text, words - {match[1]}, words=words)
    # A `use` is cut to what its file names, and names nothing by itself.
    return Item(text, frozenset())


def _impl(text: str, code: str, words: frozenset[str]) -> Item:
    header = code.split("{", 1)[0]
    header = re.sub(r"^(?:unsafe )?impl(?:<(?:[^<>]|<[^<>]*>)*>)? ", "", header)
    ends = header.split(" where ")[0].split("\nwhere")[0]
    names = frozenset(
        name for end in ends.split(" for ") for name in re.findall(r"\b[A-Z]\w*", end.split("<")[0])
    )
    if " for " in ends:
        return Item(text, names or words, needs_all=bool(names), words=words)
    inner = list(_functions(text, names))
    rest = text
    for function in inner:
        rest = rest.replace(function.text, "", 1)
    return Item(text, names, True, inner, frozenset(identifiers(rest)))


def _rows(text: str) -> Iterator[Item]:
    """Yields the rows of a macro's table, if each begins with the names of types."""
    lines = text.rstrip("\n").split("\n")
    start = next(i for i, line in enumerate(lines) if _INVOKES.match(line))
    rows: list[Item] = []
    before = index = start + 1
    while index < len(lines) - 1:
        line = lines[index]
        if not line.strip() or line.startswith("    //"):
            index += 1
            continue
        end = index
        while lines[end] != "    }" and not (end == index and line.endswith(("}", ";"))):
            end += 1
            if end >= len(lines) - 1:
                return
        names = frozenset(re.findall(r"\b[A-Z]\w*[a-z]\w*", line.split("{")[0]))
        if not names or _DEFINES.match(line.strip()):
            return
        body = "\n".join(lines[before : end + 1]) + "\n"
        rows.append(Item(body, names, words=frozenset(identifiers(body))))
        before = index = end + 1
    yield from rows


def _functions(text: str, names: frozenset[str]) -> Iterator[Item]:
    """Yields the functions of an `impl` of types with these names."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(("impl", "unsafe impl")))
    while not lines[start].rstrip().endswith("{"):
        start += 1
    before = index = start + 1
    while index < len(lines):
        match = _DEFINES.match(lines[index].removeprefix("    "))
        if not match or lines[index].startswith("     "):
            inside = lines[index].strip().startswith(("//", "#[")) or not lines[index].strip()
            before = before if inside else index + 1
            index += 1
            continue
        end = index
        while end < len(lines) and not re.fullmatch(r"    \}|    .*[;}]", lines[end]):
            end += 1
        while lines[end].startswith("     "):
            end += 1
            while not re.fullmatch(r"    \}|    [^ ].*[;}]", lines[end]):
                end += 1
        body = "\n".join(lines[before : end + 1]) + "\n"
        public = names if lines[index].startswith("    pub ") else frozenset()
        words = frozenset(identifiers(body))
        yield Item(body, frozenset([match[1]]), words=words, method_of=public)
        before = index = end + 1


def bare(text: str) -> str:
    """Returns a text from its first line of code on."""
    lines = text.split("\n")
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith(("//", "#["))):
        lines.pop(0)
    return "\n".join(lines)


def identifiers(text: str) -> list[str]:
    """Returns the identifiers, keywords and numbers of a source."""
    return _WORD.findall(code_of(text))
