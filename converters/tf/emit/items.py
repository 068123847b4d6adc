"""The items of a Rust source as data: what each defines, and which identifiers its code has.

The sources are this repository's own, in the layout of rustfmt, which tells where an item begins
and ends. Identifiers come from Rust's tokens: comments, strings and characters have none.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from converters.tf.emit.modules import code_of

VISIBLE = r"(?:pub(?:\([^)]*\))? )?"
_DEFINES = re.compile(
    rf"{VISIBLE}(?:default |const |async |unsafe |extern \"C\" )*"
    r"(fn|struct|enum|union|trait|type|const|static|mod|macro_rules!)(?: mut)? (\w+)"
)
USE = re.compile(rf"{VISIBLE}use ([^;]+);")
_INVOKES = re.compile(r"(?:\w+::)*(\w+)! ?[({[]")
_IMPL = re.compile(r"(?:unsafe )?impl\b")
_WORD = re.compile(r"\w+")


@dataclass(eq=False)
class Item:
    """A piece of a file that stays or goes as a whole.

    Attributes:
        text: Its lines, with comments and attributes before it.
        kind: Its keyword, such as `fn`, `impl` or `use`; `call` for the call of a macro, `row` for
            what it is given; `user` for all of a file that is not cut; empty for what stays with
            its file.
        names: What it defines.
        ends: The trait, if there is one, and the type of an `impl`, as paths.
        inner: The members of an `impl` or a trait, or the rows of a table, which stay or go by
            themselves.
        takes: Of each argument besides `self`, whether it may be a closure; `None` if it is not a
            method.
        public: Whether users of the crate may call it, if they see its type.
        via: The macro that makes it of its text, if one does.
    """

    text: str
    kind: str = ""
    names: frozenset[str] = frozenset()
    ends: tuple[str, ...] = ()
    inner: list[Item] = field(default_factory=list)
    takes: tuple[bool, ...] | None = None
    public: bool = False
    via: str = ""

    @functools.cached_property
    def code(self) -> str:
        """The text without that of `inner`, without comments and what strings hold."""
        text = self.text
        for part in self.inner:
            text = text.replace(part.text, "", 1)
        return code_of(text)


def items_of(text: str) -> Iterator[Item]:
    """Yields the items of a file in their order; together they are its text."""
    before: list[str] = []
    lines, codes = text.split("\n"), code_of(text).split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith(("//!", "#![")):
            yield Item("".join(f"{part}\n" for part in [*before, line]))
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
        yield Item("\n".join(before) + "\n")


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
    if re.match(rf"{VISIBLE}mod \w+;", start):
        return Item(text)
    if match := _DEFINES.match(start):
        members = list(_members(text)) if match[1] == "trait" else []
        return Item(text, match[1], frozenset([match[2]]), inner=members)
    if _IMPL.match(start):
        return Item(text, "impl", ends=_ends(start), inner=list(_members(text)))
    if match := _INVOKES.match(start):
        rows = list(_rows(text, match[1]))
        words = frozenset(identifiers(code)) - {match[1]}
        names = frozenset(name for row in rows for name in row.names) if rows else words
        return Item(text, "call", names, inner=rows, via=match[1])
    if USE.match(start):
        return Item(text, "use")
    return Item(text)


def _ends(code: str) -> tuple[str, ...]:
    """Returns the trait and the type of an `impl` header as paths, without their arguments."""
    header = code.split("{", 1)[0]
    header = re.sub(r"^(?:unsafe )?impl(?:<(?:[^<>]|<[^<>]*>)*>)? ", "", header)
    ends = re.split(r"\swhere\s", header)[0].split(" for ")
    heads = (re.match(r"(?:&|'\w+ |mut |dyn )*([\w:$]*)", end.strip()) for end in ends)
    return tuple(head[1] for head in heads if head)


def _rows(text: str, macro: str) -> Iterator[Item]:
    """Yields the rows of a macro's table, if each begins with the names of types."""
    lines, codes = text.rstrip("\n").split("\n"), code_of(text).split("\n")
    start = next(i for i, line in enumerate(lines) if _INVOKES.match(line))
    rows: list[Item] = []
    before = index = start + 1
    while index < len(lines) - 1:
        line = lines[index]
        if not line.strip() or line.startswith("    //"):
            index += 1
            continue
        if not rows and re.fullmatch(r"    [a-z_]+ .*;", codes[index]):
            # What all rows share.
            before = index = index + 1
            continue
        end, depth = index, 0
        while True:
            depth += sum(codes[end].count(letter) for letter in "([{")
            depth -= sum(codes[end].count(letter) for letter in ")]}")
            whole = codes[end] == "    }" or (end == index and codes[end].endswith("}"))
            if depth <= 0 and (whole or codes[end].endswith(";")):
                break
            end += 1
            if end >= len(lines) - 1:
                return
        names = frozenset(re.findall(r"\b[A-Z]\w*[a-z]\w*", line.split("{")[0]))
        if not re.match(r" *[A-Z]", line) or _DEFINES.match(line.strip()):
            return
        body = "\n".join(lines[before : end + 1]) + "\n"
        rows.append(Item(body, "row", names, via=macro))
        before = index = end + 1
    yield from rows


def _members(text: str) -> Iterator[Item]:
    """Yields the members of an `impl` or a trait, and the rows of macros that make some."""
    lines = text.split("\n")
    start = next(i for i, x in enumerate(lines) if x[:1] not in ("/", "#", " ", "", ")", "]"))
    while start < len(lines) and not lines[start].rstrip().endswith("{"):
        start += 1
    macro = ""
    before = index = start + 1
    while index < len(lines):
        line = lines[index]
        if macro and line == "    }":
            macro = ""
        elif macro and (match := re.match(r" {8}(\w+)\(", line)):
            end = index
            while not lines[end].endswith(";"):
                end += 1
            body = "\n".join(lines[before : end + 1]) + "\n"
            yield Item(body, "fn", frozenset([match[1]]), takes=_takes(body, True), via=macro)
            before = index = end + 1
            continue
        elif match := re.match(r"    (\w+)! \{$", line):
            macro = match[1]
        match = _DEFINES.match(line.removeprefix("    "))
        if not match or line.startswith("     ") or not line.startswith("    "):
            inside = line.strip().startswith(("//", "#[")) or not line.strip()
            before = before if inside else index + 1
            index += 1
            continue
        end = _last(lines, index)
        body = "\n".join(lines[before : end + 1]) + "\n"
        takes = _takes(body, False) if match[1] == "fn" else None
        public = line.startswith("    pub ")
        yield Item(body, match[1], frozenset([match[2]]), takes=takes, public=public)
        before = index = end + 1


def _last(lines: list[str], index: int) -> int:
    """Returns the last line of the member that begins at a line."""
    end = index
    while end < len(lines) and not re.fullmatch(r"    \}|    .*[;}]", lines[end]):
        end += 1
    while lines[end].startswith("     "):
        end += 1
        while not re.fullmatch(r"    \}|    [^ ].*[;}]", lines[end]):
            end += 1
    return end


def _takes(text: str, row: bool) -> tuple[bool, ...] | None:
    """Returns whether each argument besides `self` may be a closure; `None` without `self`."""
    code = code_of(text)
    start = re.search(r"^ *\w+\(" if row else r"\bfn \w+", code, re.MULTILINE)
    assert start is not None
    at = start.end() if row else _after_generics(code, start.end())
    parts = arguments(code.replace("->", "  "), at)
    if not row:
        if not parts or not re.search(r"\bself\b", parts[0]):
            return None
        parts = parts[1:]
    # A closure is of a generic type: one of one letter, or one that the function declares.
    generic = "|".join(
        ["[A-Z]", "impl", "dyn", "fn", *re.findall(r"\w{2,}", code[start.end() : at])]
    )
    return tuple(re.search(rf"\b(?:{generic})\b", part) is not None for part in parts)


def _after_generics(code: str, at: int) -> int:
    """Returns where the arguments of a function begin, whose name ends at a place."""
    depth = 0
    while code[at] != "(" or depth:
        depth += {"<": 1, ">": -1}.get(code[at], 0) if code[at - 1] != "-" else 0
        at += 1
    return at + 1


def arguments(code: str, at: int) -> list[str]:
    """Returns what stands between commas from a place on, up to the parenthesis that closes."""
    depth, parts, begin = 0, [], at
    while at < len(code):
        letter = code[at]
        if letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            if not depth and letter != ">":
                break
            depth -= 1
        elif letter == "," and not depth:
            parts.append(code[begin:at])
            begin = at + 1
        at += 1
    if code[begin:at].strip():
        parts.append(code[begin:at])
    return parts


def bare(text: str) -> str:
    """Returns a text from its first line of code on."""
    lines = text.split("\n")
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith(("//", "#["))):
        lines.pop(0)
    return "\n".join(lines)


def identifiers(text: str) -> list[str]:
    """Returns the identifiers, keywords and numbers of a source."""
    return _WORD.findall(code_of(text))
