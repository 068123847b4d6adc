"""Which file of ours names which: the arrows that `layers_test` judges.

A name counts where it is defined: an import through a file that only passes a name on is an arrow
to the file behind it. Tests name what they like, so their code is left out.
"""

import ast
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Arrows = dict[str, set[str]]
"""Of each file, the files that it names; by paths from the root of the tree."""

_PATH = re.compile(r"\b(crate|self|super)((?:::\w+)+)")
_USE = re.compile(r"(\bpub(?:\(\w+\))?\s+)?\buse\s+([^;]+);")
_TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")
_TEST_MODULE = re.compile(_TEST.pattern + r"\s*(?:pub(?:\(\w+\))?\s+)?mod\s+(\w+);")
_TEST_FILES = ("conftest", "golden", "testing", "tests")


@dataclass
class _Module:
    """A file of a crate: its code, what its `use` lines bring in by the new name, what it names."""

    path: str
    code: str
    uses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: set[tuple[str, ...]] = field(default_factory=set)


def rust_arrows(files: Mapping[str, str]) -> Arrows:
    """Returns the arrows between the files of one crate.

    Args:
      files: text by path, with `lib.rs` in the folder of sources; files of tests are left out.
    """
    root = next(path for path in files if pathlib.PurePath(path).name == "lib.rs")
    folder = pathlib.PurePath(root).parent
    modules = {
        _module(pathlib.PurePath(path).relative_to(folder)): _Module(path, _code(text))
        for path, text in files.items()
        if not _is_test(path)
    }
    for path, text in files.items():
        name = _module(pathlib.PurePath(path).relative_to(folder))
        for child in _TEST_MODULE.findall(text):
            modules.pop((*name, child), None)
    for name, module in modules.items():
        for public, tree in _USE.findall(module.code):
            for path in _leaves(tree):
                parts, _, new = path.partition(" as ")
                full = _absolute(name, parts.split("::"), modules)
                if full:
                    module.uses[new or full[-1]] = full
                    # A folder's file that passes on what its children define stands on nothing.
                    if not (public and full[: len(name)] == name):
                        module.named.add(full)
        for keyword, rest in _PATH.findall(_USE.sub("", module.code)):
            full = _absolute(name, [keyword, *rest.split("::")[1:]], modules)
            if full is not None:
                module.named.add(full)
    # The crate's root only joins.
    inner = [module for name, module in modules.items() if name]
    return {
        module.path: {_definer(full, modules) for full in module.named} - {module.path, root}
        for module in inner
    }


def _is_test(path: str) -> bool:
    parts = pathlib.PurePath(path)
    names = (*parts.parts, parts.stem)
    return parts.stem.endswith("_test") or any(name in names for name in _TEST_FILES)


def _module(path: pathlib.PurePath) -> tuple[str, ...]:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def _code(text: str) -> str:
    """Returns Rust without comments, literals and what is only for tests."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text, flags=re.DOTALL)
    text = re.sub(r"'(?:\\.|[^'\\])'", "' '", text)
    while found := _TEST.search(text):
        end = _end_of_item(text, found.end())
        text = text[: found.start()] + text[end:]
    return text


def _end_of_item(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
        if depth == 0 and text[at] in ";}":
            return at + 1
    return len(text)


def _leaves(tree: str) -> Iterator[str]:
    """Returns the paths of a `use` tree: `a::{b, c::d as e}` has `a::b` and `a::c::d as e`."""
    tree = " ".join(tree.split())
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tree.removesuffix("::self")
        return
    depth, begin = 0, 0
    inner = rest[: rest.rindex("}")]
    for at, letter in enumerate(f"{inner},"):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if part := inner[begin:at].strip():
                yield from _leaves(head + part)
            begin = at + 1


def _absolute(
    module: tuple[str, ...], path: list[str], modules: Mapping[tuple[str, ...], _Module]
) -> tuple[str, ...] | None:
    """Returns a path from the crate's root; None for one into another crate."""
    first, *rest = path
    if first == "crate":
        at: tuple[str, ...] = ()
    elif first == "self":
        at = module
    elif first == "super":
        at = module[:-1]
        while rest and rest[0] == "super":
            at, rest = at[:-1], rest[1:]
    elif (*module, first) in modules:
        at, rest = module, path
    else:
        return None
    return (*at, *(part for part in rest if part != "*"))


def _definer(path: tuple[str, ...], modules: Mapping[tuple[str, ...], _Module]) -> str:
    """Returns the file that defines what a path names."""
    seen = set()
    while True:
        seen.add(path)
        length = next(n for n in range(len(path), -1, -1) if path[:n] in modules)
        module, rest = modules[path[:length]], path[length:]
        further = (*module.uses[rest[0]], *rest[1:]) if rest and rest[0] in module.uses else path
        if further in seen:
            return module.path
        path = further


def python_arrows(files: Mapping[str, str]) -> Arrows:
    """Returns the arrows between Python files, by text by path; files of tests are left out."""
    modules = {
        str(pathlib.PurePath(path).with_suffix(""))
        .replace("/", ".")
        .removesuffix(".__init__"): path
        for path in files
    }
    arrows: Arrows = {}
    for path, text in files.items():
        if _is_test(path):
            continue
        named = arrows.setdefault(path, set())
        for node in ast.walk(ast.parse(text, path)):
            for name in _imported(node):
                target = modules.get(name) or modules.get(name.rpartition(".")[0])
                if target and target != path:
                    named.add(target)
    return arrows


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def circles(arrows: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Returns the largest sets whose members all reach each other, each sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(arrows.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            circle = stack[at:]
            del stack[at:]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found
