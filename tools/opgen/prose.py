"""The parts of a docstring: summary, body, one text per argument and per result."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass, field

from tools.opgen.model import OpDef

# What Python's generator puts before an argument's own text: the type, which Rust shows by itself.
_TYPES = r"(?:`[^`]*`(?:, )?)+"
_DEFAULTS = r"(?: Defaults to (?:`(?:[^`\\]|\\.)*`|\"\"\"[^\"]*\"\"\")\.)?"
_PREFIXES = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"A(?: mutable)? `Tensor`(?: of type (?:mutable )?`\w+`)?\."
        r"(?: Must be one of the following types: " + _TYPES + r"\."
        r"| Must have the same type as `\w+`\."
        r"| Has the same type as `\w+`\.)?",
        r"A list of (?:at least \d+ )?(?:the same type as `\w+` )?(?:\S+ )?`Tensor` objects?"
        r"(?: with (?:the same )?type[^.]*| of type `?\w+`?| that are `?\w+`?)?\."
        r"(?: Must be one of the following types: " + _TYPES + r"\.)?",
        r"A list (?:with|of) (?:the same length as|at least \d+|`\w+`|the same)[^.]*?"
        r"`Tensor`s?[^.]*\.",
        r"An? (?:optional )?`(?:int|float|bool|string|list|tf\.\w+)`"
        r"(?: that is `>= -?\d+`| from: " + _TYPES + r")?\." + _DEFAULTS,
        r"An? (?:optional )?list of (?:`[^`]+`(?: from: "
        + _TYPES
        + r")?|shapes \(each[^)]*\)|functions[^.]*)"
        r"(?: that has length `>= \d+`)?\." + _DEFAULTS,
        r"An optional bool\. Defaults to (?:True|False)\.",
        r"An? (?:optional )?(?:`tf\.\w+`|function decorated with @Defun)"
        r"(?: or list of `ints`)?(?: from: " + _TYPES + r")?\." + _DEFAULTS,
    )
]


@dataclass(frozen=True)
class Prose:
    """What is said about an op; texts keep their Markdown and line breaks.

    Attributes:
        summary: One line.
        body: The rest of the description, not indented; may be empty.
        args: Text by name of an input or attribute; names without text are absent.
        results: Text by name of an output.
    """

    summary: str = ""
    body: str = ""
    args: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)


def _sections(text: str) -> tuple[str, str, str]:
    """Splits a docstring into description, `Args:` and `Returns:`; the last of each counts."""
    at_returns = text.rfind("\n  Returns:\n")
    returns = text[at_returns + 12 :] if at_returns >= 0 else ""
    text = text[:at_returns] if at_returns >= 0 else text
    at_args = text.rfind("\n  Args:\n")
    args = text[at_args + 9 :] if at_args >= 0 else ""
    return (text[:at_args] if at_args >= 0 else text), args, returns


def _entries(text: str, names: Collection[str]) -> dict[str, str]:
    """Reads `    name: text` entries; other lines belong to the entry before them."""
    out: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.split("\n"):
        match = re.match(r"    (\w+):(?: |$)(.*)", line)
        if match and match.group(1) in names and match.group(1) not in out:
            current = out.setdefault(match.group(1), [match.group(2)])
        elif current is not None:
            current.append(line)
    return {name: _own_text(lines) for name, lines in out.items()}


def _own_text(lines: list[str]) -> str:
    first = lines[0].strip()
    rest = textwrap.dedent("\n".join(lines[1:])).rstrip()
    for prefix in _PREFIXES:
        match = prefix.match(first)
        if match:
            first = first[match.end() :].strip()
            break
    return "\n".join(part for part in (first, rest) if part).strip("\n")


def from_docstring(text: str, op: OpDef) -> Prose:
    """Takes a Python wrapper's docstring apart.

    Args:
        text: The docstring, as Python holds it: every line after the first is indented by two.
        op: The op; only its argument names count as such.
    """
    description, args, returns = _sections(text)
    summary, _, body = description.partition("\n")
    if body.strip() and body.split("\n", 1)[0].strip():
        paragraph, _, body = body.partition("\n\n")
        summary = " ".join([summary, *paragraph.split()])
    names = {arg.name for arg in op.inputs} | {attr.name for attr in op.attrs}
    # Every Python wrapper ends with this argument, which is no argument of the op.
    own_name = {"name"} - names
    outputs = [arg.name for arg in op.outputs]
    results = _entries(returns, outputs)
    if len(outputs) == 1 and not results:
        lines = [line.strip() for line in returns.strip().split("\n")]
        text_of_one = _own_text(lines) if lines[0] else ""
        results = {outputs[0]: text_of_one}
    entries = _entries(args, names | own_name)
    for name in own_name:
        entries.pop(name, None)
    return Prose(
        summary=summary.strip(),
        body=textwrap.dedent(body).strip("\n"),
        args={name: value for name, value in entries.items() if value.strip()},
        results={name: value for name, value in results.items() if value.strip()},
    )


def from_registry(op: OpDef) -> Prose:
    """Takes the texts that an OpDef itself holds, as libraries of custom ops have them."""
    summary, _, more = op.summary.partition("\n")
    body = "\n\n".join(part.strip() for part in (more, op.description) if part.strip())
    args = [(arg.name, arg.description) for arg in op.inputs]
    args += [(attr.name, attr.description) for attr in op.attrs]
    return Prose(
        summary=summary.strip(),
        body=textwrap.dedent(body).strip("\n"),
        args={name: text.strip() for name, text in args if text.strip()},
        results={
            arg.name: arg.description.strip() for arg in op.outputs if arg.description.strip()
        },
    )
