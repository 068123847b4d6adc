"""The modules of a Rust crate, from its sources: which file holds a path, what a file names.

The sources are this repository's own, formatted by rustfmt. A path is resolved as the compiler does
it, over `crate`, `self`, `super`, child modules and names that a module re-exports from a child.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

Path = tuple[str, ...]

_DECLARED = re.compile(
    r"^((?:[ ]*#\[[^\n]*\]\n)*)(?:pub(?:\([^)]*\))? )?mod (\w+);\n", re.MULTILINE
)
_REEXPORT = re.compile(r"^pub(?:\([^)]*\))? use ([^;]+);\n", re.MULTILINE)
_IMPORT = re.compile(r"^[ ]*(?:pub(?:\([^)]*\))? )?use ([^;]+);\n", re.MULTILINE)
# The tokens of Rust whose text names nothing: comments, raw strings, strings, characters. A
# lifetime has no closing quote.
_OPAQUE = re.compile(
    r"""//[^\n]*|/\*.*?\*/"""
    r"""|\b[bc]?r(#*)".*?"\1|(?:\b[bc])?"(?:[^"\\]|\\.)*\""""
    r"""|(?:\bb)?'(?:[^'\\\n]|\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}|[^xu]))'""",
    re.DOTALL,
)
_PATH = re.compile(r"(?<![\w:$])\$?(\w+)((?:::\w+)+)")
_OPEN = re.compile(r"(?<![\w:$])(\w+)::\$")
_INLINE = re.compile(r"^(?:pub(?:\([^)]*\))? )?mod \w+ \{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r"^(?:pub(?:\([^)]*\))? )?(?:struct|enum|union|trait|type) (\w+)", re.MULTILINE)
_IMPL = re.compile(r"^(?:unsafe )?impl(?:<[^{]*?>)? ([^{]*?)(?:\nwhere[^{]*)?\{", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """A file of a crate.

    Attributes:
        file: Path below `src`.
        children: Modules that the file declares, each with the text of its declaration.
        reexports: Name -> absolute path, for names that the module makes visible elsewhere.
        reexport_lines: The statements that do so.
        uses: Absolute paths that the code names, re-exports left out.
        types: Types and traits that the file defines.
        extends: The parts of each `impl` header that are names, for types defined elsewhere.
    """

    file: str
    children: Mapping[str, str]
    reexports: Mapping[str, Path]
    reexport_lines: tuple[str, ...]
    uses: frozenset[Path]
    types: frozenset[str]
    extends: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Needed:
    """The modules that some code needs.

    Attributes:
        whole: Those whose items are needed.
        declared: Those that only declare modules below them.
    """

    whole: frozenset[Path]
    declared: frozenset[Path]

    def __contains__(self, at: object) -> bool:
        return at in self.whole or at in self.declared


class Crate:
    """The modules of a crate.

    Args:
        sources: Text of each file by its path below `src`, without tests.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self.modules: dict[Path, Module] = {}
        for file, text in sources.items():
            if not file.endswith("tests.rs") and "/tests/" not in file:
                self.modules[module_path(file)] = _module(file, text)

    def find(self, path: Path) -> Path:
        """Returns the module that holds what a path names: the path itself where it is a module.

        Args:
            path: From the root of the crate, such as `("conv", "Forward")`.
        """
        return self._trail(path)[-1]

    def _trail(self, path: Path) -> tuple[Path, ...]:
        """Returns the modules whose re-exports lead to a name, and the one that holds it."""
        at: Path = ()
        for index, name in enumerate(path):
            if (*at, name) in self.modules:
                at = (*at, name)
                continue
            target = self.modules[at].reexports.get(name)
            if target is None or target[:1] not in self.modules:
                return (at,)
            return (at, *self._trail((*target, *path[index + 1 :])))
        return (at,)

    def closure(self, paths: Iterable[Path]) -> Needed:
        """Returns the modules that hold some paths, with all whose code these need.

        A module that extends types by an `impl` is needed as soon as all types and traits that its
        header names are. One whose own trait is implemented is not: who calls it names the trait.

        Args:
            paths: Items, each from the root of the crate.
        """
        whole: set[Path] = set()
        declared: set[Path] = set()
        todo = list(paths)
        while todo:
            while todo:
                path = todo.pop()
                trail = self._trail(path)
                at = trail[-1]
                for passed in trail:
                    declared.update(passed[:length] for length in range(len(passed) + 1))
                # The name of a module needs its declaration alone: its items are named, too.
                if at == path or at in whole:
                    continue
                whole.add(at)
                todo += self.modules[at].uses
            todo = [
                (*at, "impl") for at in self.modules if at not in whole and self._extends(at, whole)
            ]
        return Needed(frozenset(whole), frozenset(declared - whole))

    def named_below(self, root: str, needed: Needed) -> frozenset[Path]:
        """Returns the paths below a name of the root, such as another crate's, that code names."""
        named: set[Path] = set()
        for at in needed.whole:
            module = self.modules[at]
            named |= {*module.uses, *module.reexports.values()}
        return frozenset(path[1:] for path in named if path[:1] == (root,))

    def text(self, at: Path, needed: Needed) -> str:
        """Returns the file of a module, without children and re-exports that are not needed."""
        module, text = self.modules[at], self._sources[self.modules[at].file]
        if at not in needed.whole:
            kept = [line for line in text.split("\n") if line.startswith(("//!", "#!["))]
            lines = [*kept, "", "".join(module.children.values()), *module.reexport_lines]
            text = "\n".join(lines) + "\n"
        for name, declaration in module.children.items():
            if (*at, name) not in needed:
                text = text.replace(declaration, "", 1)
        for line in module.reexport_lines:
            text = text.replace(f"{line}\n", self._reexported(line, module, needed), 1)
        return text

    def _reexported(self, line: str, module: Module, needed: Needed) -> str:
        """Returns a `pub use` of those names whose modules are needed."""
        visible, tree = line.removesuffix(";").split("use ", 1)
        kept = []
        for leaf in leaves(tree):
            path, _, alias = leaf.partition(" as ")
            target = module.reexports.get(alias or path.rpartition("::")[2])
            if target is None or self.find(target) in needed:
                kept.append(f"{visible}use {leaf};\n")
        return "".join(kept)

    def _extends(self, at: Path, whole: set[Path]) -> bool:
        """Whether an `impl` of the module belongs to types and traits of needed modules alone."""
        module = self.modules[at]
        scope = {path[-1]: self.find(path) for path in module.uses if path}
        for names in module.extends:
            foreign = [scope[name] for name in names if name in scope]
            if module.types.isdisjoint(names) and foreign and whole.issuperset(foreign):
                return True
        return False


def module_path(file: str) -> Path:
    """Returns the module of a file: `conv/mod.rs` is `("conv",)`, `lib.rs` the root."""
    parts = file.removesuffix(".rs").split("/")
    if parts[-1] in ("mod", "lib"):
        parts.pop()
    return tuple(parts)


def leaves(tree: str) -> Iterator[str]:
    """Yields the paths of a `use` tree: `a::{b, c::{d, e as f}}` has `a::b`, `a::c::d`, ..."""
    tree = re.sub(r"\s+", " ", tree).strip()
    opening = tree.find("{")
    if opening < 0:
        yield tree
        return
    prefix, inner = tree[:opening], tree[opening + 1 : tree.rindex("}")]
    depth, start = 0, 0
    for index, letter in enumerate(f"{inner},"):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if part := inner[start:index].strip():
                yield from (prefix + leaf for leaf in leaves(part))
            start = index + 1


# Most files are read for several crates.
@functools.lru_cache(maxsize=2048)
def _module(file: str, text: str) -> Module:
    at = module_path(file)
    children = {match[2]: match[0] for match in _DECLARED.finditer(text)}
    code = code_of(text)
    reexports = dict(_imported(_REEXPORT, code, at, children))
    imports = dict(_imported(_IMPORT, _REEXPORT.sub("", code), at, children))
    body = _IMPORT.sub("", code)
    scope = {**{name: (*at, name) for name in children}, **reexports, **imports}
    uses = set(imports.values())
    outside = _INLINE.sub("", body)
    for base, part in ((at, outside), *(((*at, ""), match[1]) for match in _INLINE.finditer(code))):
        for match in _PATH.finditer(part):
            target = _absolute(match[1] + match[2], base, scope)
            if target is not None:
                uses.add(target)
    # `module::$name` of a macro may be any item of the module.
    uses |= {(*scope[name], "*") for name in _OPEN.findall(body) if name in scope}
    named = set(re.findall(r"\w+", body))
    uses |= {path for name, path in reexports.items() if name in named}
    headers = [match[1] for match in _IMPL.finditer(code)]
    return Module(
        file,
        children,
        reexports,
        tuple(match[0].rstrip("\n") for match in _REEXPORT.finditer(text)),
        frozenset(uses),
        frozenset(_TYPE.findall(code)),
        tuple(_names(header) for header in headers),
    )


def _imported(
    pattern: re.Pattern[str], code: str, at: Path, children: Mapping[str, str]
) -> Iterator[tuple[str, Path]]:
    """Yields the names that `use` statements bring into scope, with the paths behind them."""
    scope = {name: (*at, name) for name in children}
    for match in pattern.finditer(code):
        for leaf in leaves(match[1]):
            path, _, alias = leaf.partition(" as ")
            target = _absolute(path.removesuffix("::self"), at, scope)
            if target is not None:
                yield alias or target[-1], target


def _names(header: str) -> tuple[str, ...]:
    """Returns the trait and the type of an `impl` header, without their arguments."""
    trait, _, of = header.rpartition(" for ")
    heads = (part.split("<", 1)[0] for part in (trait, of) if part)
    return tuple(head.rpartition("::")[2].lstrip("&").strip() for head in heads)


def _absolute(path: str, at: Path, scope: Mapping[str, Path]) -> Path | None:
    """Returns a path from the root; None if it leaves the crate."""
    head, *rest = path.lstrip("$").split("::")
    if head == "crate":
        return tuple(rest)
    if head == "self":
        return (*at, *rest)
    if head == "super":
        base = at[:-1]
        while rest and rest[0] == "super":
            base = base[:-1]
            rest.pop(0)
        return (*base, *rest)
    if head in scope:
        return (*scope[head], *rest)
    return None


@functools.lru_cache(maxsize=16384)
def code_of(text: str) -> str:
    """Returns a source without comments and without what its strings and characters hold.

    Its lines keep their numbers.
    """
    if '"' not in text and "'" not in text and "/" not in text:
        return text
    return _OPAQUE.sub(_emptied, text)


def _emptied(token: re.Match[str]) -> str:
    lines = "\n" * token[0].count("\n")
    return lines if token[0].startswith("/") else f'"{lines}"'
