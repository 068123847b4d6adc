"""What the code of an item of vendored sources names.

Paths are resolved (`scopes`). The type that a method is called on is not known: who calls
`.name(..)` may mean each method of that name which takes such arguments.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from converters.tf.emit.items import Item, arguments, identifiers
from converters.tf.emit.modules import leaves
from converters.tf.emit.scopes import FOREIGN, Scopes, Space

_TOKEN = re.compile(r"(\.{1,2}|::|\$)?(?<!\w)([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)(::\$)?")
_CALLED = re.compile(r"(?:::<[^(]*>)?\(")
_DECLARES = re.compile(r"\bfn $")
_VARIANT = re.compile(r"^    [A-Z]\w*", re.MULTILINE)
# What is a variable, whatever function has its name: it can't be called by `name(` alone.
_BOUND = re.compile(r"\blet (?:mut )?([a-z_]\w*)|\b([a-z_]\w*):(?!:)|[(,=] ?\|([^|\n]*)\|")
_INSIDE = re.compile(r"\b(?:fn|const|type) (\w+)")
_TYPES = frozenset({"struct", "enum", "union", "trait", "type"})


@dataclass
class Named:
    """What code names.

    Attributes:
        items: Items.
        members: Members of types, with the type if it is known.
        methods: Methods by name, with which of the arguments are closures; `None` where a macro
            writes the arguments.
        inside: Functions and constants in the code, which may be members of a trait.
    """

    items: set[Item] = field(default_factory=set)
    members: set[tuple[Item | None, str]] = field(default_factory=set)
    methods: set[tuple[str, tuple[bool, ...] | None]] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)


def named_by(scopes: Scopes, space: Space, item: Item, of: list[Item]) -> Named:
    """Returns what the code of a needed item names.

    Args:
        scopes: All files.
        space: The file of the item.
        item: An item.
        of: The type of the `impl` that it belongs to.
    """
    scopes.noting = True
    reading = _Reading(scopes, space, of, frozenset(identifiers(item.code)) - item.names)
    macros = scopes.made_by(item)
    reading.named.items |= {*macros}
    for name in {name for macro in macros for name in macro.names}:
        scopes.meaning(space, name)
    code = _VARIANT.sub("", item.code) if item.kind == "enum" else item.code
    if item.kind == "mod":
        # What is above a module within a file is the file.
        code = re.sub(r"\bsuper::", "self::", code)
    reading.read(code, item.kind != "macro_rules!")
    for macro in macros:
        reading.read(macro.code, False)
        reading.named.inside |= {*_INSIDE.findall(macro.code)}
    reading.named.inside |= {*_INSIDE.findall(item.code)} - item.names
    scopes.noting = False
    return reading.named


@dataclass
class _Reading:
    """Code that is read.

    Attributes:
        scopes: All files.
        space: Its file.
        of: What `Self` is.
        words: What a macro may have been given.
        named: What it names.
    """

    scopes: Scopes
    space: Space
    of: list[Item]
    words: frozenset[str]
    named: Named = field(default_factory=Named)

    def read(self, code: str, exact: bool) -> None:
        """Adds what code names.

        Args:
            code: It, as `code_of` leaves it.
            exact: Whether all arguments of its calls are there.
        """
        uses, tokens = _tokens(code)
        for path in uses:
            target = self.space.absolute(path, self.scopes.modules)
            if target is not None:
                self.named.items |= {*self.scopes.find(target)[0]}
        for token in tokens:
            if token.before == ".":
                self._method(token.path, token.given if exact else None)
            elif token.before == "$":
                self._unknown(token.path, token.opened)
            elif token.before == "::":
                self.named.members.add((None, token.path.rpartition("::")[2]))
            elif token.opened:
                self._opened(token.path)
            else:
                self._path(token.path, token.after)
        if ".$" in code:
            self.named.methods |= {(word, None) for word in self.words}

    def _method(self, name: str, given: tuple[bool, ...] | None) -> None:
        """Adds a method, and the traits in scope that have it: they need not be named."""
        self.named.methods.add((name, given))
        for imported, trait in self.scopes.traits(self.space):
            if any(name in member.names for member in trait.inner):
                self.named.items.add(trait)
                self.scopes.note(self.space, imported)

    def _unknown(self, path: str, opened: bool) -> None:
        """Adds what a path from what a macro is given on may mean."""
        if "::" in path:
            self.named.members.add((None, path.rpartition("::")[2]))
        if opened:
            self.named.members |= {(None, word) for word in self.words}

    def _opened(self, path: str) -> None:
        """Adds what `path::$name` of a macro may be, whose names are among its words."""
        head, *after = path.split("::")
        target = self.space.absolute(path, self.scopes.modules)
        targets = [target] if target is not None else []
        for imported in self.space.imports.get(head, ()):
            targets += [(*imported, *after)] if imported is not None else []
        for at in targets:
            for word in self.words if at in self.scopes.modules else ():
                self.named.items |= {*self.scopes.find((*at, word))[0]}
        items = self.of if path == "Self" else self._path(path, "")
        types = [item for item in items if item.kind in _TYPES]
        self.named.members |= {(item, word) for item in types for word in self.words}
        if not targets and not types and path not in FOREIGN:
            self.named.members |= {(None, word) for word in self.words}

    def _path(self, path: str, after: str) -> list[Item]:
        """Adds what a path means that stands before some text; returns the items."""
        head, *rest = path.split("::")
        if not rest and after[:1] == ":" and after != "::":
            # The name of a field or of an argument.
            return []
        if head == "Self":
            known = self.of if len(rest) == 1 else []
            self.named.members |= {(item, rest[0]) for item in known}
            if rest and not known:
                self.named.members.add((None, rest[-1]))
            return []
        meant = self.scopes.meaning(self.space, path)
        if meant is None:
            self.named.members |= {(None, rest[-1])} if rest else set()
            return []
        items, left = meant
        self.named.items |= {*items}
        if left:
            self.named.members |= {(item, left[-1]) for item in items}
            if any(item.kind == "type" for item in items) or len(left) > 1:
                self.named.members.add((None, left[-1]))
        return items


class _Token(NamedTuple):
    """A path in code.

    Attributes:
        before: `.` if it is a method that is called; `::` if it follows what is not told; `$` if
            it begins with what a macro is given; else empty.
        path: It.
        opened: Whether it goes on with what a macro is given.
        after: The two characters after it.
        given: Of a method, whether each argument is a closure; `None` where macros write them.
    """

    before: str
    path: str
    opened: bool = False
    after: str = ""
    given: tuple[bool, ...] | None = None


# Most items are needed by several crates, or are read again when others have gone.
@functools.lru_cache(maxsize=32768)
def _tokens(code: str) -> tuple[tuple[str, ...], tuple[_Token, ...]]:
    """Returns the paths of the `use` lines within code, and its other paths, each once."""
    uses = tuple(
        leaf.partition(" as ")[0]
        for match in re.finditer(r"\buse ([^;]+);", code)
        for leaf in leaves(match[1])
    )
    bound = frozenset(w for m in _BOUND.finditer(code) for w in identifiers(m[0]))
    tokens: dict[_Token, None] = {}
    for match in _TOKEN.finditer(code):
        before, path, opened = match[1] or "", match[2], bool(match[3])
        after = code[match.end() : match.end() + 2]
        if before == ".":
            if call := _CALLED.match(code, match.end(2)):
                tokens[_Token(before, path, given=_given(code, call.end()))] = None
            continue
        if before == "$" and path.startswith("crate"):
            before = ""
        if before not in ("$", "::"):
            before = ""
            variable = path in bound and path[0].islower() and after[:1] != "("
            declares = _DECLARES.search(code, max(0, match.start() - 4), match.start())
            if not opened and (variable or declares):
                continue
        tokens[_Token(before, path, opened, after)] = None
    return uses, tuple(tokens)


def _given(code: str, at: int) -> tuple[bool, ...] | None:
    """Returns whether each argument of a call is a closure; `None` where macros write them."""
    depth, end = 1, at
    while end < len(code) and depth:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[end], 0)
        end += 1
    inside = code[at : end - 1]
    if "$" in inside:
        return None
    inside = re.sub(r"::<[^()]*?>+(?=\()|[<>]", " ", inside)
    inside = re.sub(r"((?:^|[(,=]|\bmove)\s*)\|[^|]*\|", r"\1closure", inside)
    given = arguments(f"{inside})", 0)
    return tuple(re.match(r"\s*(?:&|mut )*(?:move )?closure", part) is not None for part in given)
