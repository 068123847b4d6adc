"""Finds what the C keeps between calls: objects with static storage that are not constant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.codegen.rust import one_line

#: Stands for `section(".rodata...")`, whose string is blank in code without literals.
CONSTANT_SECTION = "constant_section"

MAX_NESTING = 16
# Characters of a declaration without a name that are shown.
_SHOWN = 60

_SECTION = re.compile(r'\bsection(?=\("\.rodata)')
_MARK = re.compile(r"[{};]")
_DIRECTIVE = re.compile(r"^[ \t]{0,64}#[^\n]*(?:\\\n[^\n]*)*", re.M)
_ATTRIBUTE = re.compile(
    r"__attribute__\s{0,4}\(\((?:[^()]|\((?:[^()]|\([^()]{0,200}\)){0,200}\)){0,400}\)\)"
)
_INNERMOST = re.compile(r"\{[^{}]*+\}")
_LOCAL = re.compile(r"\bstatic\b[^;={}]*+")
_CONSTANT = re.compile(rf"\b(?:const|{CONSTANT_SECTION})\b")
_NO_OBJECT = re.compile(r"\s*(?:typedef|extern|_Static_assert|static_assert)\b")
_ONLY_A_TYPE = re.compile(r"(?:struct|union|enum)\b\s*+\w*+\s*+@?\s*+")
_NAME = re.compile(r"\b([A-Za-z_]\w{0,255})\s*(?:\[|\)\s*\(|$)")
_BYTES = re.compile(r"\buint8_t\s+\w+\s*\[([0-9]{1,18})\]")

#: Objects that are not declared constant and that no run writes, with the reason.
CONSTANT_IN_EFFECT = {
    "_tvm_func_array": "TVM's registry of packed functions, filled by its initializer",
    "__tvm_module_ctx": "TVM's host module, which a standalone model never sets",
}


def mark_constant_sections(source: str) -> str:
    """Returns the source with `section(".rodata...")` spelled `constant_section(".rodata...")`."""
    return _SECTION.sub(CONSTANT_SECTION, source)


def mutable_objects(code: str) -> list[tuple[str, int]]:
    """Returns (name, bytes) of every object that outlives a call and that the code may write.

    Args:
      code: C without comments and literals, whose constant sections are marked.

    Returns:
      In the order of the code; 0 bytes unless it is an array of `uint8_t` of a literal length.
    """
    found = []
    for statement, body in _top_level(_DIRECTIVE.sub("", code)):
        candidates = [statement]
        if "static" in body:
            candidates += _LOCAL.findall(body)
        for candidate in candidates:
            item = _object(candidate.removesuffix(";"))
            if item is not None and item[0] not in CONSTANT_IN_EFFECT:
                found.append(item)
    return found


def _top_level(code: str) -> Iterator[tuple[str, str]]:
    """Yields (text before the body, body) of functions, (statement, "") of everything else."""
    depth = start = 0
    opening = -1  # Of the statement's first body.
    for mark in _MARK.finditer(code):
        kind = mark.group()
        if kind == "{":
            if depth == 0 and opening < start:
                opening = mark.start()
                if code[start:opening].rstrip().endswith('"'):  # extern "C" {
                    start = mark.end()
                    continue
            elif depth == 0:
                opening = len(code)
            depth += 1
        elif kind == "}":
            depth = max(depth - 1, 0)
            if depth or not start <= opening < len(code):
                continue
            head = _ATTRIBUTE.sub(" ", code[start:opening])
            if "(" in head and "=" not in head:
                yield head, code[opening : mark.end()]
                start = mark.end()
        elif depth == 0:
            yield code[start : mark.end()], ""
            start, opening = mark.end(), -1


def _object(statement: str) -> tuple[str, int] | None:
    """Returns name and bytes of the object that a declaration makes, if it may be written."""
    if _CONSTANT.search(statement) or _NO_OBJECT.match(statement):
        return None
    head = _ATTRIBUTE.sub(" ", _without_bodies(statement)).split("=", 1)[0].strip("}; \t\n")
    pointer_to_function = "(*" in head.replace(" ", "")
    if not head or ("(" in head and not pointer_to_function) or _ONLY_A_TYPE.fullmatch(head):
        return None
    name = _NAME.search(head)
    size = _BYTES.search(head)
    return name[1] if name else one_line(head, _SHOWN), int(size[1]) if size else 0


def _without_bodies(text: str) -> str:
    for _ in range(MAX_NESTING):
        text, changed = _INNERMOST.subn(" @ ", text)
        if not changed:
            break
    return text
