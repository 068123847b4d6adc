"""Which functions of a model's C are operators, and which function calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from converters.mlf.parse.c_text import split_comments

_OWN = re.compile(r"\btvmgen_\w{1,256}(?=\s{0,4}\()")
_HEAD = re.compile(
    r"^[ \t]{0,64}(?:TVM_DLL[ \t]{1,8})?(?P<result>int32_t|void)\s{1,8}"
    r"(?P<name>tvmgen_\w{1,256})\s{0,4}\((?P<parameters>[^(){};]{0,8192})\)\s{0,8}\{",
    re.M,
)
_PARAMETER = re.compile(r"[\w\s*]{1,512}?(\w{1,256})", re.ASCII)
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True)
class Operator:
    """A function of the model that its main function calls.

    Attributes:
      name: the C function.
      result: its type, `int32_t` or `void`.
      parameters: its parameters as the C has them, with their types.
      arguments: the names of the parameters.
    """

    name: str
    result: str
    parameters: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Caller:
    """The function that calls the operators.

    Attributes:
      file: member that defines it.
      start: where its definition begins in the text of the file.
      end: where it ends.
      operators: what it calls, in the order of the first calls.
    """

    file: str
    start: int
    end: int
    operators: tuple[Operator, ...]


def callers(sources: Mapping[str, str], roots: Sequence[str]) -> tuple[Caller, ...]:
    """Returns the functions that call operators, in the order of the files and their texts.

    Args:
      sources: member name -> text.
      roots: functions that may call operators and are none: the entry point and the main one.

    An operator is a function of the model that one of `roots` calls. It returns `int32_t` or
    nothing, and its parameters have names. What has another form is not seen.
    """
    found: dict[str, Operator] = {}
    bodies: list[tuple[str, int, int, str]] = []
    for file, text in sorted(sources.items()):
        code, _ = split_comments(text)
        for head in _HEAD.finditer(code):
            name = head["name"]
            if name in roots:
                end = _end(code, head.end())
                bodies.append((file, head.start(), end, code[head.end() : end]))
            elif (arguments := _arguments(head["parameters"])) is not None:
                found[name] = Operator(
                    name, head["result"], " ".join(head["parameters"].split()), arguments
                )
    result = []
    for file, start, end, body in bodies:
        called = [found[n] for n in dict.fromkeys(_OWN.findall(body)) if n in found]
        if called:
            result.append(Caller(file, start, end, tuple(called)))
    return tuple(result)


def _end(code: str, at: int) -> int:
    """Returns where the block ends that begins before `at`."""
    depth = 1
    for brace in _BRACE.finditer(code, at):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.end()
    return len(code)


def _arguments(parameters: str) -> tuple[str, ...] | None:
    """Returns the names of the parameters; None if one has a form that TVM does not write."""
    if parameters.strip() in ("", "void"):
        return ()
    names = []
    for parameter in parameters.split(","):
        match = _PARAMETER.fullmatch(parameter.strip())
        if match is None:
            return None
        names.append(match[1])
    return tuple(names)
