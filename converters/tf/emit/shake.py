"""Leaves out of vendored sources what no needed code names.

An item is needed if a needed one, or the model, names it; `naming` tells what code names. Where
that is not told, as for the type that a method is called on, each that may be meant stays. An
`impl` of a trait stays with both its ends. A member of a trait goes from the trait and from each
`impl` together. `items` reads the sources; here only its data is judged.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence

from converters.tf.emit.items import USE, VISIBLE, Item, identifiers, items_of
from converters.tf.emit.modules import code_of, leaves
from converters.tf.emit.naming import named_by
from converters.tf.emit.scopes import Scopes, Space

# Imports that a file keeps whatever it names: traits of std bring methods, which are called without
# the trait's name. Methods of our own traits are read from the sources; those of std are not there
# to be read.
_KEPT_IMPORTS = frozenset(
    {"*", "_", "AsRawFd", "BufRead", "FileExt", "FromStr", "Hash", "Read", "Seek", "Write"}
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
    parsed = {path: _items(path, text) for path, text in files.items()}
    scopes = Scopes(parsed, [_user(text) for text in users])
    needs = _Needs(scopes, frozenset(public))
    spaces = {id(space.items): space for space in scopes.modules.values()}
    texts = {path: _text(items, needs, spaces[id(items)]) for path, items in parsed.items()}
    holding = {
        path
        for path, items in parsed.items()
        if any(item.kind not in ("", "use") and item in needs.kept for item in items)
    }
    return _without_empty(texts, holding)


@functools.lru_cache(maxsize=2048)
def _items(path: str, text: str) -> list[Item]:
    """Returns the items of a file, which nobody changes: most files are read for several crates.

    Files with the same text have items of their own, hence the path.
    """
    del path
    return list(items_of(text))


def _user(text: str) -> list[Item]:
    """Returns code that uses the runtime, which need not be laid out, and its `use` lines."""
    uses = re.findall(r"^ *((?:pub(?:\([^)]*\))? )?use [^;]+;)", code_of(text), re.MULTILINE)
    return [Item(text, "user"), *(Item(use, "use") for use in uses)]


class _Needs:
    """What is needed.

    Args:
        scopes: The files.
        public: Types whose public functions stay.

    Attributes:
        kept: Items.
    """

    def __init__(self, scopes: Scopes, public: frozenset[str]) -> None:
        self._scopes = scopes
        self._public = public
        self.kept: set[Item] = set()
        self._todo: list[tuple[Space, Item, list[Item]]] = []
        self._members: set[tuple[Item | None, str]] = set()
        self._methods: dict[str, set[tuple[bool, ...] | None]] = {}
        self._inside: set[str] = set()
        self._homes: dict[Item, Space] = {}
        every = [(space, item) for space in scopes.modules.values() for item in space.items]
        for space, item in every:
            self._homes |= dict.fromkeys((item, *item.inner), space)
        self._traits = [item for _, item in every if item.kind == "trait"]
        self._impls = [
            (item, [scopes.own(space, end) for end in item.ends])
            for space, item in every
            if item.kind == "impl"
        ]
        self._calls = [
            (item, scopes.extended(space, item))
            for space, item in every
            if item.kind == "call" and not item.inner
        ]
        # The rows of a table, and what else of the runtime has a name that one begins with.
        self._rows = [
            (item, row, [end for name in row.names for end in scopes.own(space, name)])
            for space, item in every
            if item.kind == "call"
            for row in item.inner
        ]
        self.kept |= {item for _, item in every if not item.kind}
        for space in scopes.users:
            self._begin(space)
        grown = True
        while grown:
            grown = self._follow() or self._grow()

    def _begin(self, space: Space) -> None:
        """Reads code that uses the runtime."""
        for item in space.items:
            if item.kind != "use":
                self._read(space, item, [])
            elif "pub " in item.code:
                for path in (path for paths in space.imports.values() for path in paths if path):
                    for found in self._scopes.find(path)[0]:
                        self._keep(found)

    def _keep(self, item: Item, of: Sequence[Item] = ()) -> bool:
        """Keeps an item of the runtime; returns whether it was not kept before."""
        if item in self.kept or item not in self._homes:
            return False
        self.kept.add(item)
        self._todo.append((self._homes[item], item, list(of)))
        return True

    def _follow(self) -> bool:
        """Reads what has come to be needed; returns whether there was any."""
        any_read = bool(self._todo)
        while self._todo:
            self._read(*self._todo.pop())
        return any_read

    def _read(self, space: Space, item: Item, of: list[Item]) -> None:
        named = named_by(self._scopes, space, item, of)
        for found in named.items:
            self._keep(found)
        self._members |= named.members
        for name, given in named.methods:
            self._methods.setdefault(name, set()).add(given)
        self._inside |= named.inside

    def _grow(self) -> bool:
        """Keeps what belongs to what is kept; returns whether it is more than before."""
        grown = False
        for item, ends in self._impls:
            if not any(items and self.kept.isdisjoint(items) for items in ends):
                grown = self._of_impl(item, ends) or grown
        for item in self._traits:
            if item in self.kept:
                for member in item.inner:
                    if member not in self.kept and self._is_member(member):
                        grown = self._keep(member, [item]) or grown
        for item, impls in self._calls:
            if item not in self.kept and any(self.kept.issuperset(ends) for ends in impls):
                grown = self._keep(item) or grown
        for item, row, named in self._rows:
            if any(end is not row and end in self.kept for end in named):
                grown = self._keep(row) or grown
            if row in self.kept:
                grown = self._keep(item) or grown
        return grown

    def _of_impl(self, item: Item, ends: list[list[Item]]) -> bool:
        """Keeps of an `impl` whose ends are needed what is needed; returns whether it is more."""
        of = ends[-1]
        if len(ends) == 1:
            names = {name for end in of for name in end.names}
            public = bool(names & self._public)
            grown = False
            for member in item.inner:
                if member in self.kept:
                    continue
                if (public and member.public) or self._is_called(of, member):
                    grown = self._keep(member, of) or grown
            if grown or not item.inner:
                grown = self._keep(item, of) or grown
            return grown
        grown = self._keep(item, of)
        traits = [trait for trait in ends[0] if trait.kind == "trait"]
        for member in item.inner:
            if member in self.kept:
                continue
            declared = [m for trait in traits for m in trait.inner if m.names == member.names]
            if not declared or not self.kept.isdisjoint(declared):
                grown = self._keep(member, of) or grown
        return grown

    def _is_called(self, of: list[Item], member: Item) -> bool:
        """Whether needed code may mean a member of a type."""
        (name,) = member.names
        if (None, name) in self._members:
            return True
        if any((end, name) in self._members for end in of) or not of:
            return True
        return self._has_method(name, member.takes)

    def _has_method(self, name: str, takes: tuple[bool, ...] | None) -> bool:
        """Whether needed code calls a method of a name with arguments that one takes."""
        if takes is None:
            return False
        return any(
            given is None or (len(given) == len(takes) and all(map(operator.le, given, takes)))
            for given in self._methods.get(name, ())
        )

    def _is_member(self, member: Item) -> bool:
        """Whether needed code may mean a member of a trait."""
        (name,) = member.names
        if name in self._inside:
            return True
        if any(name == named for _, named in self._members):
            return True
        return self._has_method(name, member.takes)


def _without_empty(files: Mapping[str, str], holding: set[str]) -> dict[str, str]:
    """Returns the files that hold anything, declared by those above them.

    Args:
        files: Sources by path.
        holding: The paths of those with items.
    """
    left = dict(files)
    grown = True
    while grown:
        grown = False
        for path in sorted(left, key=lambda p: -p.count("/")):
            if path in holding or _declares(left[path]):
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


def _declares(text: str) -> bool:
    """Whether a file has modules, or names for those who use it."""
    return re.search(rf"^(?:{VISIBLE}mod \w+;$|pub.* use )", text, re.MULTILINE) is not None


def _text(items: Iterable[Item], needs: _Needs, space: Space) -> str:
    """Returns the items that stay, and of their imports those that they name."""
    pieces: list[tuple[Item, str]] = []
    kept = needs.kept
    for item in items:
        if item.kind != "use" and item not in kept:
            continue
        text = item.text
        for inner in item.inner:
            if inner not in kept:
                text = text.replace(inner.text, "", 1)
        text = re.sub(r"\n\n+(\s*\})", r"\n\1", text)
        pieces.append((item, re.sub(r"(\{\n)\n+", r"\1", text)))
    words = frozenset(
        word for item, text in pieces if item.kind != "use" for word in identifiers(text)
    )
    lines = [_imports(item, words, space) if item.kind == "use" else text for item, text in pieces]
    return "".join(lines)


def _imports(item: Item, words: frozenset[str], space: Space) -> str:
    """Returns a `use` with the names that the file, or code that comes by it, has."""
    text = item.text
    match = USE.search(text)
    assert match is not None
    visible = text[: match.start(1)]
    every = list(leaves(match[1]))
    kept = [leaf for leaf in every if _serves(_name(leaf), words, space)]
    if kept == every:
        return text
    return "".join(f"{visible}{leaf.replace('::self', '')};\n" for leaf in kept)


def _serves(name: str, words: frozenset[str], space: Space) -> bool:
    if name in space.used or name in _KEPT_IMPORTS:
        return True
    ours = any(target is not None for target in space.imports.get(name, ()))
    return not ours and name in words


def _name(leaf: str) -> str:
    """Returns the name that a leaf of a `use` tree brings into scope."""
    path, _, alias = leaf.partition(" as ")
    return alias or path.removesuffix("::self").rpartition("::")[2]
