"""For tests: Rust without its comments and strings, and emitters that let a text out of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from pathlib import Path

_TOKEN = re.compile(
    r"""
    (?P<line>//[^\n]*)
  | (?P<block>/\*)
  | (?P<raw>\b(?:br|cr|r)(?P<hashes>\#*)")
  | (?P<text>\b[bc]?"|")
  | (?P<char>b?'(?:\\(?:u\{[0-9a-fA-F_]+\}|x[0-9a-fA-F]{2}|.)|[^'\\\n])')
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK = re.compile(r"/\*|\*/")
_END = re.compile(r'\\.|"', re.DOTALL)


def code_only(text: str) -> str:
    """Returns a text of Rust with every comment, string and character as a space.

    Raises:
        ValueError: A comment or a string does not end.
    """
    out: list[str] = []
    at = 0
    while (found := _TOKEN.search(text, at)) is not None:
        out += [text[at : found.start()], " "]
        if found["line"] or found["char"]:
            at = found.end()
        elif found["block"]:
            at = _end_of_block(text, found.end())
        elif found["raw"]:
            end = f'"{found["hashes"]}'
            at = text.find(end, found.end()) + len(end)
            if at < found.end() + len(end):
                raise ValueError("a raw string does not end")
        else:
            at = _end_of_string(text, found.end())
    return "".join([*out, text[at:]])


def _end_of_block(text: str, at: int) -> int:
    depth = 1
    while depth:
        found = _BLOCK.search(text, at)
        if found is None:
            raise ValueError("a comment does not end")
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return at


def _end_of_string(text: str, at: int) -> int:
    while (found := _END.search(text, at)) is not None:
        at = found.end()
        if found[0] == '"':
            return at
    raise ValueError("a string does not end")


# Attributes that hold a text of an input, and what reads them into the text of a file.
_FOREIGN = frozenset(["layer", "origin", "producer"])
_NAMED = frozenset(["g", "graph", "model", "node", "p", "port", "source", "value"])
_WRITERS = frozenset(["c_comment", "code_span", "one_line", "snake", "string_literal", "wishes"])


def unwritten(emitters: Iterable[Path], builders: Collection[str] = ()) -> list[str]:
    """Returns texts of an input that f-strings hold as they are, other than those of errors.

    Args:
        emitters: Files of Python.
        builders: Functions whose arguments become code as they are, as the parts of f-strings do.

    Returns:
        `file: expression`, each once, sorted.
    """
    found: set[str] = set()
    for path in emitters:
        tree = ast.parse(path.read_text("utf-8"))
        errors = {id(n) for r in ast.walk(tree) if isinstance(r, ast.Raise) for n in ast.walk(r)}
        for text in ast.walk(tree):
            if _is_code(text, builders) and id(text) not in errors:
                found |= {
                    f"{path.name}: {foreign}"
                    for part in ast.iter_child_nodes(text)
                    for foreign in _foreign(part)
                }
    return sorted(found)


def _is_code(tree: ast.AST, builders: Collection[str]) -> bool:
    if isinstance(tree, ast.Call):
        return isinstance(tree.func, ast.Name) and tree.func.id in builders
    return isinstance(tree, ast.JoinedStr)


def _foreign(tree: ast.AST) -> list[str]:
    """Returns the texts of an input below a node that no writer gets."""
    if isinstance(tree, ast.Call):
        name = tree.func.id if isinstance(tree.func, ast.Name) else ""
        if name in _WRITERS:
            return []
    if isinstance(tree, ast.Attribute):
        owner = tree.value.id if isinstance(tree.value, ast.Name) else ""
        if tree.attr in _FOREIGN or (tree.attr == "name" and owner in _NAMED):
            return [ast.unparse(tree)]
    return [text for child in ast.iter_child_nodes(tree) for text in _foreign(child)]
