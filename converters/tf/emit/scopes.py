"""What paths in vendored sources mean: the files of a runtime, and the items that a name leads to.

A path is resolved over `crate`, `self`, `super`, modules and `use` lines, as the compiler does it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from converters.tf.emit.items import USE, Item, bare, identifiers
from converters.tf.emit.modules import Path, leaves

_INVOKED = re.compile(r"(?<![\w$])(\w+)! ?[({\[]")
_MAKES = re.compile(r"\b(?:fn|struct|enum|const|static|trait|type|mod|union) \$")
_MADE = re.compile(r"\b(?:fn|struct|enum|const|static|trait|type|mod|union) (\w+)")
_IMPL = re.compile(r"\bimpl(?:<[^{]*?>)? ([^{]*?)\{")
# What paths of the language and of its libraries begin with; unlike a generic type, none of it is
# ours.
FOREIGN = frozenset(
    {
        *("core", "std", "alloc", "str", "bool", "char", "f32", "f64"),
        *(f"{sign}{bits}" for sign in "iu" for bits in ("8", "16", "32", "64", "128", "size")),
        *("Box", "Default", "From", "Into", "Iterator", "Option", "Result", "String", "Vec"),
        *("IntoIterator", "TryFrom", "TryInto", "ToString", "Clone", "Copy", "AsRef", "AsMut"),
    }
)


@dataclass(eq=False)
class Space:
    """A file: its module, its items and what its `use` lines bring.

    Attributes:
        at: Its module; of code outside of the runtime, a path that nothing leads to.
        inside: Whether it is a file of the runtime.
        items: Its items in their order.
        own: Its items by name.
        imports: The paths behind the names of its `use` lines.
        globs: The modules all of whose names it has.
        used: The names of `use` lines that needed code uses.
    """

    at: Path
    inside: bool
    items: list[Item]
    own: dict[str, list[Item]] = field(default_factory=dict)
    imports: dict[str, list[Path | None]] = field(default_factory=dict)
    globs: list[Path] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for item in self.items:
            for name in item.names if item.kind != "call" else ():
                self.own.setdefault(name, []).append(item)
            if item.kind == "call":
                for row in item.inner:
                    for name in row.names:
                        self.own.setdefault(name, []).append(row)

    def read_imports(self, modules: Mapping[Path, Space]) -> None:
        """Reads the `use` lines."""
        for item in self.items:
            if item.kind != "use":
                continue
            match = USE.search(bare(item.code))
            for leaf in leaves(match[1]) if match else ():
                path, _, alias = leaf.partition(" as ")
                path = path.removesuffix("::self")
                name = alias or path.rpartition("::")[2]
                target = self.absolute(path.removesuffix("::*"), modules)
                if name != "*":
                    self.imports.setdefault(name, []).append(target)
                elif target is not None:
                    self.globs.append(target)

    def absolute(self, path: str, modules: Mapping[Path, Space]) -> Path | None:
        """Returns a path of a `use` line from the runtime on; `None` if it leaves it."""
        head, *rest = path.split("::")
        base = list(self.at)
        if head == "crate":
            return tuple(rest[1:]) if rest[:1] == ["runtime"] else None
        if head == "runtime" and not self.inside:
            return tuple(rest)
        if head in ("self", "super"):
            rest.insert(0, head)
            while rest and rest[0] in ("self", "super"):
                if rest.pop(0) == "super":
                    del base[-1:]
            return (*base, *rest) if self.inside else None
        if (*base, head) in modules:
            return (*base, head, *rest)
        if head in self.own:
            return (*base, head, *rest)
        return None


class Scopes:
    """All files of a runtime, and the code that uses it.

    Args:
        files: Sources of the runtime, by path below it.
        users: Sources of the code that uses it.

    Attributes:
        noting: Whether names are looked up for needed code, so that `use` lines serve.
    """

    def __init__(self, files: Mapping[str, list[Item]], users: Iterable[list[Item]]) -> None:
        self.modules: dict[Path, Space] = {}
        self.noting = False
        self._makers_of: dict[Space, dict[str, list[Item]]] = {}
        self._macros_of: dict[Item, list[Item]] = {}
        self._traits_of: dict[Space, list[tuple[str, Item]]] = {}
        for path, items in files.items():
            at = tuple(path.removesuffix(".rs").removesuffix("mod").strip("/").split("/"))
            at = () if at == ("",) else at
            self.modules[at] = Space(at, True, items)
        self.users = [Space(("", str(i)), False, items) for i, items in enumerate(users)]
        for space in (*self.modules.values(), *self.users):
            space.read_imports(self.modules)
        self.macros: dict[str, list[Item]] = {}
        for space in self.modules.values():
            for item in space.items:
                if item.kind == "macro_rules!":
                    (name,) = item.names
                    self.macros.setdefault(name, []).append(item)

    def note(self, space: Space, name: str) -> None:
        """Notes that needed code uses a name that may come by a `use` line."""
        if self.noting:
            space.used.add(name)

    def find(self, path: Path) -> tuple[list[Item], Path]:
        """Returns the items that a path names, and what of the path follows them."""
        at: Path = ()
        for index, name in enumerate(path):
            if (*at, name) in self.modules and index + 1 < len(path):
                at = (*at, name)
                continue
            # A function may have the name of a module.
            return self._within(self.modules[at], name, path[index + 1 :], frozenset())
        return [], ()

    def _within(
        self, space: Space, name: str, rest: Path, seen: frozenset[Path]
    ) -> tuple[list[Item], Path]:
        own = space.own.get(name, [])
        # A module may have the name of a function.
        found = [item for item in own if not rest or item.kind not in ("fn", "const", "static")]
        targets, after = space.imports.get(name, ()), rest
        for target in targets:
            if target is not None and target != (*space.at, name):
                items, rest = self.find((*target, *rest))
                found += items
        # By itself, a name is no module's: code that has it may have a variable of that name.
        imported = any(after or target not in self.modules for target in targets)
        if found or imported:
            self.note(space, name)
        if found or name in space.imports:
            return found, rest
        calls = [] if name in FOREIGN else self._makers(space).get(name, [])
        if calls:
            return calls, rest
        for glob in space.globs:
            if glob in self.modules and glob not in seen:
                found, left = self._within(self.modules[glob], name, rest, seen | {space.at})
                if found:
                    self.note(space, "*")
                    return found, left
        return [], ()

    def _makers(self, space: Space) -> dict[str, list[Item]]:
        """Returns the calls of macros in a file by the names that they may define."""
        if space in self._makers_of:
            return self._makers_of[space]
        found = self._makers_of.setdefault(space, {})
        for call in space.items:
            if call.kind != "call" or call.inner:
                continue
            bodies = self.made_by(call)
            names = {name for body in bodies for name in _MADE.findall(body.code)}
            if not bodies or any(_MAKES.search(body.code) for body in bodies):
                names |= call.names
            for name in names:
                found.setdefault(name, []).append(call)
        return found

    def meaning(self, space: Space, path: str) -> tuple[list[Item], Path] | None:
        """Returns what code of a file means by a path; `None` if that is not told."""
        head, _, rest = path.partition("::")
        after = tuple(rest.split("::")) if rest else ()
        if head in ("crate", "self", "super") or (head == "runtime" and not space.inside):
            target = space.absolute(path, self.modules)
            return self.find(target) if target is not None else ([], ())
        if (*space.at, head) in self.modules and after:
            return self.find((*space.at, head, *after))
        items, left = self._within(space, head, after, frozenset())
        if items or head in space.imports or head in FOREIGN:
            return items, left
        return None

    def made_by(self, item: Item) -> list[Item]:
        """Returns the macros that an item calls, directly or by others."""
        if item in self._macros_of:
            return self._macros_of[item]
        found: dict[Item, None] = {}
        todo = [item]
        while todo:
            at = todo.pop()
            names = {*_INVOKED.findall(at.code), *([at.via] if at.via else [])}
            for macro in (m for name in sorted(names) for m in self.macros.get(name, ())):
                if macro not in found:
                    found[macro] = None
                    todo.append(macro)
        return self._macros_of.setdefault(item, list(found))

    def traits(self, space: Space) -> list[tuple[str, Item]]:
        """Returns the traits whose methods a file can call, each with the name of its import."""
        if space in self._traits_of:
            return self._traits_of[space]
        noting, self.noting = self.noting, False
        found = [("", item) for item in space.items if item.kind == "trait"]
        for name, paths in space.imports.items():
            for path in paths:
                items = self.find(path)[0] if path is not None else []
                found += [(name, item) for item in items if item.kind == "trait"]
        for glob in space.globs:
            if glob in self.modules and glob != space.at:
                found += [("*", item) for _, item in self.traits(self.modules[glob])]
        self.noting = noting
        return self._traits_of.setdefault(space, found)

    def extended(self, space: Space, call: Item) -> list[list[Item]]:
        """Returns the own ends of each `impl` that the call of a macro makes."""
        found: list[list[Item]] = []
        words = {word for word in identifiers(call.code) if word[:1].isupper()}
        for macro in self.made_by(call):
            for header in _IMPL.findall(macro.code):
                named = {*re.findall(r"(?<![\w$:])[A-Za-z_]\w*(?:::\w+)*", header)}
                ends = [item for name in sorted(named) for item in self.own(space, name)]
                given = [items for word in sorted(words) if (items := self.own(space, word))]
                found += [ends] if ends or not given else given
        return found

    def own(self, space: Space, path: str) -> list[Item]:
        """Returns the items of the runtime that a path means."""
        meant = self.meaning(space, path) if re.fullmatch(r"\w+(?:::\w+)*", path) else None
        return meant[0] if meant else []
