"""Leaves out of vendored sources what no needed code names.

An item is needed if a needed one, or the model, names it: the names of the whole crate count as
one scope, so that more may stay than is used, and never less. An `impl` of a trait stays with both
its ends; a function of an inherent `impl` is an item of its own. `items` reads the sources; here
only its data is judged, and the imports of what stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from converters.tf.emit.items import USE, VISIBLE, Item, bare, identifiers, items_of
from converters.tf.emit.modules import leaves

# Imports that a file keeps whatever it names: `*` and `_` bring names that are not told, and
# traits of std bring methods, which are called without the trait's name. Methods of our own traits
# are read from the sources; those of std are not there to be read.
_KEPT_IMPORTS = frozenset(
    {"*", "_", "AsRawFd", "BufRead", "FileExt", "FromStr", "Hash", "Read", "Seek", "Write"}
)


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
        """Whether an import serves a file with these identifiers."""
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
    parsed = {path: list(items_of(text)) for path, text in files.items()}
    defined = {
        name
        for items in parsed.values()
        for item in items
        if not item.needs_all
        for name in item.names
    }
    every = [item for items in parsed.values() for item in _flat(items)]
    needed = {word for text in users for word in identifiers(text)}
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
        if re.match(rf"{VISIBLE}(?:unsafe )?trait ", bare(item.text))
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
            if any(item.names for item in items_of(left[path])) or _declared(left[path]):
                continue
            del left[path]
            folder, _, name = path.removesuffix("/mod.rs").removesuffix(".rs").rpartition("/")
            for above in (f"{folder}.rs", f"{folder}/mod.rs" if folder else "mod.rs"):
                if above in left:
                    left[above] = re.sub(
                        rf"^(?:#\[[^\n]*\n)*{VISIBLE}mod {name};\n", "", left[above], flags=re.M
                    )
            grown = True
    return left


def _declared(text: str) -> bool:
    return re.search(rf"^{VISIBLE}mod \w+;$", text, re.MULTILINE) is not None


def _stays(item: Item, needed: set[str], defined: set[str]) -> bool:
    own = item.names & defined if item.needs_all else item.names
    if not item.names:
        return True
    return own <= needed if item.needs_all else bool(own & needed)


def _flat(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        yield from item.inner


def _text(items: Iterable[Item], kept: set[int], scope: _Scope) -> str:
    """Returns the items that stay, and of their imports those that they name."""
    pieces: list[tuple[bool, str]] = []
    for item in items:
        if id(item) not in kept or (item.inner and not any(id(i) in kept for i in item.inner)):
            continue
        text = item.text
        for inner in item.inner:
            if id(inner) not in kept:
                text = text.replace(inner.text, "", 1)
        pieces.append((USE.match(bare(text)) is not None, re.sub(r"\n\n+(\s*\})", r"\n\1", text)))
    words = frozenset(word for is_use, text in pieces if not is_use for word in identifiers(text))
    lines = [_imports(text, words, scope) if is_use else text for is_use, text in pieces]
    return "".join(lines)


def _imports(text: str, words: frozenset[str], scope: _Scope) -> str:
    """Returns a `use` with the names that the file has."""
    match = USE.search(text)
    assert match is not None
    visible = text[: match.start(1)]
    words = scope.named if "pub" in bare(visible) else words
    every = list(leaves(match[1]))
    kept = [leaf for leaf in every if scope.serves(_name(leaf), words)]
    if kept == every:
        return text
    return "".join(f"{visible}{leaf.replace('::self', '')};\n" for leaf in kept)


def _name(leaf: str) -> str:
    """Returns the name that a leaf of a `use` tree brings into scope."""
    path, _, alias = leaf.partition(" as ")
    return alias or path.removesuffix("::self").rpartition("::")[2]
