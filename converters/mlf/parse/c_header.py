"""Parses the interface header `tvmgen_<module>.h` that TVM (or a vendor's fork of it) writes.

The header is the authority for field order, the entry point's parameters, and the pools. Its
grammar is small: `#define`s, structs of `void*`, function prototypes, and in vendors' headers a
few variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from converters.mlf.errors import FormatError
from converters.mlf.parse.c_text import Token, logical_lines, split_comments, tokens
from converters.mlf.parse.relay import TensorType, parse_tensor_types
from tools.codegen.conversion import Problem

V = TypeVar("V")

C_KEYWORDS = frozenset(
    {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
        "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
        "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
        "union", "unsigned", "void", "volatile", "while", "_Alignas", "_Alignof", "_Atomic",
        "_Bool", "_Complex", "_Generic", "_Imaginary", "_Noreturn", "_Static_assert",
        "_Thread_local", "asm", "typeof",
    }
)  # fmt: skip

_OCTETS = re.compile(r"(?:\s*+0[xX][0-9a-fA-F]{1,2}+\s*+(?:,|$))*+\s*+")

PART_NAMES = ("inputs", "outputs", "workspace_pools", "devices")


@dataclass(frozen=True)
class Define:
    """`#define NAME value`: the value's text without comments, and its line."""

    value: str
    line: int

    def integer(self) -> int | None:
        """Returns the value as an integer, or None when it is not one."""
        text = self.value.strip().strip("()").rstrip("uUlL")
        if re.fullmatch(r"-?[0-9]{1,20}", text):
            return int(text)
        if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
            return int(text, 16)
        return None

    def octets(self) -> bytes | None:
        """Returns the value as bytes, or None when it is not a list like `0x12, 0xff`."""
        if not _OCTETS.fullmatch(self.value):
            return None
        words = self.value.replace("0X", "0x").replace(",", " ")
        try:
            return bytes.fromhex(words.replace("0x", ""))
        except ValueError:  # A word of one digit.
            return bytes(int(word, 16) for word in words.split())


@dataclass(frozen=True)
class Function:
    """A prototype: its parameters as token texts joined by blanks."""

    returns: str
    params: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Header:
    """Facts of one header.

    Attributes:
      where: archive and member, for messages.
      prefix: the lower-case symbol prefix, for instance "tvmgen_default".
      defines: macro name -> definition.
      structs: struct name without the prefix ("inputs", ...) -> field names in order.
      functions: function name without the prefix -> prototype.
      finished_flag: the header declares `extern volatile int32_t <prefix>_finished`.
      starters: names of `extern void NAME()` functions that the user has to call once.
      quantization: name without the prefix -> values of `const int32_t[]` variables.
      comment_inputs: tensor types listed in a vendor's header comment; None if there is none.
      comment_outputs: likewise.
    """

    where: str
    prefix: str
    defines: Mapping[str, Define]
    structs: Mapping[str, tuple[str, ...]]
    functions: Mapping[str, Function]
    finished_flag: bool
    starters: tuple[str, ...]
    quantization: Mapping[str, tuple[int, ...]]
    comment_inputs: tuple[TensorType, ...] | None
    comment_outputs: tuple[TensorType, ...] | None


@dataclass
class _Found:
    structs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    volatiles: set[str] = field(default_factory=set)
    arrays: dict[str, tuple[int, ...]] = field(default_factory=dict)


def parse_header(text: str, where: str) -> Header:
    """Parses a header's text; raises FormatError with the line of what does not fit the grammar."""
    code, comments = split_comments(text)
    defines, body = _preprocess(code, where)
    found = _declarations(tokens(body), where)
    prefixes = sorted(
        name.removesuffix("_run") for name in found.functions if name.endswith("_run")
    )
    if len(prefixes) != 1:
        names = ", ".join(p + "_run" for p in prefixes) or "none"
        raise FormatError(
            Problem(where, f"expected one entry point tvmgen_<module>_run, found {names}")
        )
    prefix = prefixes[0]
    comment_inputs, comment_outputs = _comment_types(comments)
    return Header(
        where=where,
        prefix=prefix,
        defines=defines,
        structs=_unprefixed(found.structs, prefix),
        functions=_unprefixed(found.functions, prefix),
        finished_flag=f"{prefix}_finished" in found.volatiles,
        starters=tuple(
            sorted(
                name
                for name, function in found.functions.items()
                if function.returns == "void"
                and function.params in ((), ("void",))
                and not name.startswith(prefix)
            )
        ),
        quantization=_unprefixed(found.arrays, prefix),
        comment_inputs=comment_inputs,
        comment_outputs=comment_outputs,
    )


def _unprefixed(items: Mapping[str, V], prefix: str) -> dict[str, V]:
    start = prefix + "_"
    return {n.removeprefix(start): v for n, v in items.items() if n.startswith(start)}


def _preprocess(code: str, where: str) -> tuple[dict[str, Define], str]:
    """Takes the directives out; `#ifdef` branches are dropped, except for the include guard."""
    defines: dict[str, Define] = {}
    kept: list[str] = []
    stack: list[bool] = []
    dropped = 0  # How many of the stack are.
    for number, line in logical_lines(code):
        stripped = line.strip()
        while len(kept) < number - 1:
            kept.append("")
        if not stripped.startswith("#"):
            kept.append("" if dropped else line)
            continue
        directive, _, rest = stripped[1:].strip().partition(" ")
        rest = rest.strip()
        if directive == "ifndef":
            stack.append(not dropped)
            dropped += not stack[-1]
        elif directive in ("if", "ifdef"):
            stack.append(False)
            dropped += 1
        elif directive in ("else", "elif"):
            if not stack:
                raise FormatError(Problem(f"{where}:{number}", f"#{directive} without #if"))
            outside = dropped - (not stack[-1])
            stack[-1] = directive == "else" and not stack[-1] and not outside
            dropped = outside + (not stack[-1])
        elif directive == "endif":
            if not stack:
                raise FormatError(Problem(f"{where}:{number}", "#endif without #if"))
            dropped -= not stack.pop()
        elif directive == "define" and not dropped:
            name, _, value = rest.partition(" ")
            if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                continue
            define = Define(value.strip(), number)
            old = defines.get(name)
            if old is None or old.value == define.value:
                defines[name] = define
            else:
                defines[name] = Define("", number)
    if stack:
        raise FormatError(Problem(where, f"{len(stack)} #if without #endif"))
    return defines, "\n".join(kept)


def _declarations(items: list[Token], where: str) -> _Found:
    found = _Found()
    at = 0
    while at < len(items):
        start = at
        depth = 0
        while at < len(items):
            text = items[at].text
            depth += text in "({["
            depth -= text in ")}]"
            if depth < 0:
                raise FormatError(Problem(f"{where}:{items[at].line}", f"unbalanced {text!r}"))
            at += 1
            if text == ";" and depth == 0:
                break
        if depth:
            raise FormatError(
                Problem(f"{where}:{items[start].line}", "declaration does not end in ';'")
            )
        _declaration([t.text for t in items[start:at]], items[start].line, where, found)
    return found


def _declaration(words: list[str], line: int, where: str, found: _Found) -> None:
    if words[-1:] == [";"]:
        words = words[:-1]
    words = [w for w in words if w != "extern"]
    if len(words) >= 4 and words[0] == "struct" and words[2] == "{" and words[-1] == "}":
        found.structs[words[1]] = _fields(words[3:-1], f"{where}:{line} struct {words[1]}")
        return
    if "=" in words:
        equals = words.index("=")
        if "[" in words[:equals] and words[equals + 1 : equals + 2] == ["{"]:
            name = words[words.index("[") - 1]
            values = "".join(words[equals + 2 :]).rstrip("}").split(",")
            if all(re.fullmatch(r"-?[0-9]{1,12}", v) for v in values):
                found.arrays[name] = tuple(int(v) for v in values)
        return
    if "volatile" in words and "(" not in words and words[-1] != "volatile":
        found.volatiles.add(words[-1])
        return
    if "(" in words and words[-1] == ")":
        opening = words.index("(")
        if opening >= 2 and re.fullmatch(r"[A-Za-z_]\w*", words[opening - 1]):
            inner = words[opening + 1 : -1]
            params: list[list[str]] = [[]]
            for word in inner:
                if word == ",":
                    params.append([])
                else:
                    params[-1].append(word)
            texts = tuple(" ".join(p) for p in params if p)
            returns = " ".join(words[: opening - 1])
            name = words[opening - 1]
            if name in found.functions:
                raise FormatError(Problem(f"{where}:{line}", f"{name} is declared twice"))
            found.functions[name] = Function(returns, texts, line)


def _fields(words: list[str], where: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    at = 0
    while at < len(words):
        try:
            end = words.index(";", at)
        except ValueError:
            end = len(words)
        member = words[at:end]
        if member[:2] != ["void", "*"] or len(member) != 3 or end == len(words):
            raise FormatError(
                Problem(
                    where,
                    f"expected `void* name;`, found `{' '.join(member)}`",
                    "a name that C cannot compile; rename the tensor or pool and export again",
                )
            )
        if not re.fullmatch(r"[A-Za-z_]\w*", member[2], re.ASCII):
            raise FormatError(
                Problem(
                    where,
                    f"{member[2]!r} is not a C identifier, so the exported C cannot compile",
                    "rename the tensor or pool and export again",
                )
            )
        if member[2] in C_KEYWORDS:
            raise FormatError(
                Problem(
                    where,
                    f"{member[2]!r} is a C keyword, so the exported C cannot compile",
                    "rename the tensor or pool and export again",
                )
            )
        if member[2] in names:
            raise FormatError(Problem(where, f"field {member[2]!r} is there twice"))
        names[member[2]] = None
        at = end + 1
    return tuple(names)


def _comment_types(
    comments: str,
) -> tuple[tuple[TensorType, ...] | None, tuple[TensorType, ...] | None]:
    start = comments.find("Inputs:")
    middle = comments.find("Outputs:", start + 1)
    if start < 0 or middle < 0 or "Tensor[" not in comments[start:]:
        return None, None
    end = comments.find("*/", middle)
    return (
        parse_tensor_types(comments[start:middle]),
        parse_tensor_types(comments[middle : end if end > 0 else len(comments)]),
    )
