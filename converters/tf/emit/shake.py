"""Leaves out of vendored sources what no needed code names.

An item is needed if a needed one, or the model, names it: the names of the whole crate count as
one scope, so that more may stay than is used, and never less. An `impl` of a trait stays with both
its ends; a function of an inherent `impl` is an item of its own. The layout of rustfmt tells where
items begin and end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from converters.tf.emit.modules import code_of, leaves

_VISIBLE = r"(?:pub(?:\([^)]*\))? )?"
_DEFINES = re.compile(
    rf"{_VISIBLE}(?:default |const |async |unsafe |extern \"C\" )*"
    r"(?:fn|struct|enum|union|trait|type|const|static|mod|macro_rules!)(?: mut)? (\w+)"
)
_USE = re.compile(rf"{_VISIBLE}use ([^;]+);")
_INVOKES = re.compile(r"(?:\w+::)*(\w+)! ?[({[]")
_IMPL = re.compile(r"(?:unsafe )?impl\b")
_WORD = re.compile(r"\w+")
# Imports that a file keeps whatever words it has: `*` and `_` bring names that are not told, and
# traits of std bring methods, which are called without the trait's name. Methods of our own traits
# are read from the sources; those of std are not there to be read.
_KEPT_IMPORTS = frozenset(
    {"*", "_", "AsRawFd", "BufRead", "FileExt", "FromStr", "Hash", "Read", "Seek", "Write"}
)


@dataclass
class _Item:
    """A piece of a file that stays or goes as a whole.

    Attributes:
        text: Its lines, with comments and attributes before it.
        names: What it defines; an item that defines nothing stays with its file.
        needs_all: Whether all its names must be needed, as the ends of an `impl`.
        inner: The functions of an inherent `impl`, which stay or go by themselves.
        words: The words of its code, without those of `inner`.
        method_of: The type of which it is a public function.
    """

    text: str
    names: frozenset[str]
    needs_all: bool = False
    inner: list[_Item] = field(default_factory=list)
    words: frozenset[str] = frozenset()
    method_of: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Scope:
    """What imports may bring.

    Attributes:
        named: The names that needed code has.
        methods: The methods of each trait, which are called without its name.
    """

    named: frozenset[str]
    methods: Mapping[str, frozenset[str]]

    def serves(self, name: str, words: frozenset[str]) -> bool:
        """Whether an import serves a file with these words."""
        return (
            name in words
            or name in _KEPT_IMPORTS
            or bool(words & self.methods.get(name, frozenset()))
        )


def shaken(
    files: Mapping[str, str], users: Iterable[str], public: Iterable[str] = ()
) -> dict[str, str]:
    """Returns the files without what nobody needs, and without files of which nothing is left.

    Args:
        files: Sources by path.
        users: Sources of the code that uses them.
        public: Types that the users of the crate see: their public functions stay.
    """
    parsed = {path: list(_items(text)) for path, text in files.items()}
    defined = {
        name
        for items in parsed.values()
        for item in items
        if not item.needs_all
        for name in item.names
    }
    every = [item for items in parsed.values() for item in _flat(items)]
    needed = {word for text in users for word in _words(text)}
    seen = set(public)
    kept: set[int] = set()
    grown = True
    while grown:
        grown = False
        for item in every:
            stays = _stays(item, needed, defined) or bool(item.method_of & seen)
            if id(item) not in kept and stays:
                kept.add(id(item))
                needed |= item.words
                grown = True
    named = needed | {name for item in every if id(item) in kept for name in item.names}
    methods = {
        name: frozenset(re.findall(r"\bfn (\w+)", item.text))
        for item in every
        if re.match(rf"{_VISIBLE}(?:unsafe )?trait ", _bare(item.text))
        for name in item.names
    }
    scope = _Scope(frozenset(named), methods)
    texts = {path: _text(items, kept, scope) for path, items in parsed.items()}
    return _without_empty(texts)


def _without_empty(files: Mapping[str, str]) -> dict[str, str]:
    """Returns the files that hold anything, declared by those above them."""
    left = dict(files)
    grown = True
    while grown:
        grown = False
        for path in sorted(left, key=lambda p: -p.count("/")):
            if any(item.names for item in _items(left[path])) or _declared(left[path]):
                continue
            del left[path]
            folder, _, name = path.removesuffix("/mod.rs").removesuffix(".rs").rpartition("/")
            for above in (f"{folder}.rs", f"{folder}/mod.rs" if folder else "mod.rs"):
                if above in left:
                    left[above] = re.sub(
                        rf"^(?:#\[[^\n]*\n)*{_VISIBLE}mod {name};\n", "", left[above], flags=re.M
                    )
            grown = True
    return left


def _declared(text: str) -> bool:
    return re.search(rf"^{_VISIBLE}mod \w+;$", text, re.MULTILINE) is not None


def _stays(item: _Item, needed: set[str], defined: set[str]) -> bool:
    own = item.names & defined if item.needs_all else item.names
    if not item.names:
        return True
    return own <= needed if item.needs_all else bool(own & needed)


def _flat(items: Iterable[_Item]) -> Iterator[_Item]:
    for item in items:
        yield item
        yield from item.inner


def _text(items: Iterable[_Item], kept: set[int], scope: _Scope) -> str:
    """Returns the items that stay, and of their imports those that they name."""
    pieces: list[tuple[bool, str]] = []
    for item in items:
        if id(item) not in kept or (item.inner and not any(id(i) in kept for i in item.inner)):
            continue
        text = item.text
        for inner in item.inner:
            if id(inner) not in kept:
                text = text.replace(inner.text, "", 1)
        pieces.append((_USE.match(_bare(text)) is not None, re.sub(r"\n\n+(\s*\})", r"\n\1", text)))
    words = frozenset(word for is_use, text in pieces if not is_use for word in _words(text))
    lines = [_imports(text, words, scope) if is_use else text for is_use, text in pieces]
    return "".join(lines)


def _imports(text: str, words: frozenset[str], scope: _Scope) -> str:
    """Returns a `use` with the names that the file has."""
    match = _USE.search(text)
    assert match is not None
    visible = text[: match.start(1)]
    words = scope.named if "pub" in _bare(visible) else words
    every = list(leaves(match[1]))
    kept = [leaf for leaf in every if scope.serves(_name(leaf), words)]
    if kept == every:
        return text
    return "".join(f"{visible}{leaf.replace('::self', '')};\n" for leaf in kept)


def _name(leaf: str) -> str:
    """Returns the name that a leaf of a `use` tree brings into scope."""
    path, _, alias = leaf.partition(" as ")
    return alias or path.removesuffix("::self").rpartition("::")[2]


def _items(text: str) -> Iterator[_Item]:
    """Yields the items of a file in their order; together they are its text."""
    before: list[str] = []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith(("//!", "#![")):
            yield _Item(f"{line}\n", frozenset())
            index += 1
            continue
        if not line.strip() or line.startswith(("//", "#[")) or line[:1] in " )]":
            before.append(line)
            index += 1
            continue
        end = _end(lines, index)
        body = "\n".join([*before, *lines[index:end]]) + "\n"
        yield _item(body, "\n".join(lines[index:end]))
        before = []
        index = end
    if any(line.strip() for line in before):
        yield _Item("\n".join(before) + "\n", frozenset())


def _end(lines: list[str], index: int) -> int:
    """Returns the line after the item that begins at a line without indent."""
    depth = 0
    for number in range(index, len(lines)):
        code = code_of(lines[number]).rstrip()
        depth += sum(code.count(letter) for letter in "([{")
        depth -= sum(code.count(letter) for letter in ")]}")
        closes = number > index and code[:1] in ("}", ")", "]")
        if code.endswith((";", "}")) and (depth <= 0 or closes):
            return number + 1
    return len(lines)


def _item(text: str, code: str) -> _Item:
    bare = _bare(code)
    words = frozenset(_words(code))
    if re.match(rf"{_VISIBLE}mod \w+;", bare):
        return _Item(text, frozenset())
    if match := _DEFINES.match(bare):
        return _Item(text, frozenset([match[1]]), words=words)
    if _IMPL.match(bare):
        return _impl(text, bare, words)
    if match := _INVOKES.match(bare):
        rows = list(_rows(text))
        if rows:
            names = frozenset(name for row in rows for name in row.names)
            return _Item(text, names, inner=rows, words=frozenset([match[1]]))
        return _Item(text, words - {match[1]}, words=words)
    # A `use` is cut to what its file names, and names nothing by itself.
    return _Item(text, frozenset())


def _impl(text: str, code: str, words: frozenset[str]) -> _Item:
    header = code.split("{", 1)[0]
    header = re.sub(r"^(?:unsafe )?impl(?:<(?:[^<>]|<[^<>]*>)*>)? ", "", header)
    ends = header.split(" where ")[0].split("\nwhere")[0]
    names = frozenset(
        name for end in ends.split(" for ") for name in re.findall(r"\b[A-Z]\w*", end.split("<")[0])
    )
    if " for " in ends:
        return _Item(text, names or words, needs_all=bool(names), words=words)
    inner = list(_functions(text, names))
    rest = text
    for function in inner:
        rest = rest.replace(function.text, "", 1)
    return _Item(text, names, True, inner, frozenset(_words(rest)))


def _rows(text: str) -> Iterator[_Item]:
    """Yields the rows of a macro's table, if each begins with the names of types."""
    lines = text.rstrip("\n").split("\n")
    start = next(i for i, line in enumerate(lines) if _INVOKES.match(line))
    rows: list[_Item] = []
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
        rows.append(_Item(body, names, words=frozenset(_words(body))))
        before = index = end + 1
    yield from rows


def _functions(text: str, names: frozenset[str]) -> Iterator[_Item]:
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
        words = frozenset(_words(body))
        yield _Item(body, frozenset([match[1]]), words=words, method_of=public)
        before = index = end + 1


def _bare(text: str) -> str:
    """Returns a text from its first line of code on."""
    lines = text.split("\n")
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith(("//", "#["))):
        lines.pop(0)
    return "\n".join(lines)


def _words(text: str) -> list[str]:
    return _WORD.findall(code_of(text))
