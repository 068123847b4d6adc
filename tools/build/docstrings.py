"""What a Python program says: its docstrings and its other strings, such as the help of flags."""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

_NAMED = ("Args", "Attributes", "Raises")
_HEADING = re.compile(rf"({'|'.join(_NAMED)}|Example|Examples|Note|Returns|Yields):")
_BULLET = re.compile(r"\s*(?:[-*] |\d+\. )")
_PROMPT = re.compile(r"\s*(?:>>> |\.\.\. |\$ )")


class Said(NamedTuple):
    """A text of a program.

    Attributes:
      line: where its string starts.
      text: a part of a docstring, or a whole string.
    """

    line: int
    text: str


def docstrings(tree: ast.Module) -> Iterator[Said]:
    """Gives what the docstrings of a Python file say, part by part.

    Docstrings of attributes and of private names are among them: maintainers read these, too.
    """
    for node in _nodes(tree):
        for part in parts(str(node.value)):
            yield Said(node.lineno, part)


def strings(tree: ast.Module) -> Iterator[Said]:
    """Gives all other texts of words: help of flags, messages of errors, what a program writes."""
    skipped: set[ast.AST] = set(_nodes(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
        elif not isinstance(node, ast.Constant) or node in skipped:
            continue
        text = _text(node)
        if " " in text:
            yield Said(node.lineno, text)


def _text(value: ast.expr) -> str:
    """Returns the text of a string on one line; a value in an f-string is the word `VALUE`."""
    match value:
        case ast.JoinedStr(values=values):
            return "".join(map(_text, values))
        case ast.Constant(value=str(text)):
            return re.sub(r"\s+", " ", text)
        case ast.Constant():
            return ""
    return "VALUE"


def _nodes(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as docstring):
                yield docstring


def parts(docstring: str) -> Iterator[str]:
    """Gives the paragraphs, the bullets and the entries of sections; code is left out.

    Code is fenced, follows a prompt, or is indented after an empty line.
    """
    text = re.sub(r"^ *```.*?^ *```$", "", inspect.cleandoc(docstring), flags=re.S | re.M)
    section = ""
    entries = -1  # The indentation of the entries of the section, once it is known.
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        indent = len(line) - len(line.lstrip())
        heading = _HEADING.fullmatch(line)
        if line.strip() and not indent:
            section = heading.group(1) if heading else ""
            entries = -1
        elif line.strip() and entries < 0:
            entries = indent
        starts = (section in _NAMED and indent == entries) or _BULLET.match(line)
        if block and (not line.strip() or heading or starts):
            yield " ".join(block)
            block = []
        indented = not section and indent >= 4 and not block
        if line.strip() and not (heading or indented or _PROMPT.match(line)):
            block.append(line.strip())
