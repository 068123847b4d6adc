"""Finds what the C keeps between calls: objects with static storage that are not constant.

The declarator decides: `static const float* p` is a pointer that may change. What can't be decided,
such as a macro that makes an object, counts as state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tools.codegen.rust import one_line

#: Stands for `section(".rodata...")`, whose string is blank in code without literals.
CONSTANT_SECTION = "constant_section"

MAX_NESTING = 16
# Characters of a declaration without a name that are shown.
_SHOWN = 60
# Characters of a macro's replacement that is read as words of a declaration.
_MACRO = 64
# Characters that replacements may add to one file.
_GROWTH = 1 << 20

_SECTION = re.compile(r'\bsection(?=\("\.rodata)')
_MARK = re.compile(r"[{};]")
_DIRECTIVE = re.compile(r"^[ \t]{0,64}#[^\n]*(?:\\\n[^\n]*)*", re.M)
_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([^()\n]*\))?([\s\S]*)")
_LITERAL = re.compile(r'"[^"\n]*"')
_STORAGE = re.compile(r"\b(?:static|extern|_Thread_local|__thread)\b")
_QUALIFIERS = re.compile(r"\b(?:static|extern|const|_Thread_local|__thread|__const|__const__)\b")
_INLINE = re.compile(r"\b(?:inline|__inline|__inline__)\b")
_ATTRIBUTE = re.compile(
    r"(?:\b__attribute(?:__)?\s{0,4}\(\((?:[^()]|\((?:[^()]|\([^()]{0,200}\)){0,200}\)){0,400}\)\)"
    r"|\b(?:_Alignas|alignas|__declspec|_Pragma)\s{0,4}\((?:[^()]|\([^()]{0,200}\)){0,400}\))"
)
_TYPE_OF = re.compile(
    r"\b(?:_Atomic|typeof|__typeof__|__typeof)\s{0,4}\((?:[^()]|\([^()]{0,200}\)){0,400}\)"
)
_INNERMOST = re.compile(r"\{[^{}]*+\}")
_SUBSCRIPT = re.compile(r"\[[^\[\]]*+\]")
_CONSTANT = re.compile(rf"\b(?:const|__const|__const__|{CONSTANT_SECTION})\b")
_NO_OBJECT = re.compile(r"\s*+(?:typedef|_Static_assert|static_assert)\b")
_ONLY_A_TYPE = re.compile(
    r"(?:(?:extern|const|static)\s++)*(?:struct|union|enum)\b\s*+\w*+\s*+@?\s*+"
)
_NAME = re.compile(r"\b([A-Za-z_]\w{0,255})\s*(?:\)*\s*@index|\)\s*\(|\)*\s*$)")
_BYTES = re.compile(r"\buint8_t\s+\w+\s*\[([0-9]{1,18})\]")
# A macro in the place of a declaration, or before a function's own parameters.
_INVOCATION = re.compile(r"\s*+([A-Za-z_]\w{0,255})\s*+\([^()]{0,4096}\)\s*+(?:$|[A-Za-z_])")
_WORDLESS = re.compile(
    r"\b(?:static|extern|const|volatile|restrict|_Thread_local|__thread|constant_section)\b"
)
_BUILT_IN = re.compile(
    r"\b(?:void|char|short|int|long|float|double|signed|unsigned|_Bool|(?:struct|union|enum)\s+\w+)\b"
)

#: Objects that are not declared constant and that no run writes, with the reason.
CONSTANT_IN_EFFECT = {
    "_tvm_func_array": "TVM's registry of packed functions, filled by its initializer",
    "__tvm_module_ctx": "TVM's host module, which a standalone model never sets",
}


def mark_constant_sections(source: str) -> str:
    """Returns the source with `section(".rodata...")` spelled `constant_section(".rodata...")`."""
    return _SECTION.sub(CONSTANT_SECTION, source)


def mutable_objects(files: Sequence[str]) -> list[tuple[str, int]]:
    """Returns (name, bytes) of every object that outlives a call and that the code may write.

    Args:
      files: C without comments and literals, whose constant sections are marked; macros of one hold
        in all.

    Returns:
      In the order of the code, each name once; 0 bytes unless it is an array of `uint8_t` of a
      literal length.
    """
    words, makers = _macros([d for code in files for d in _DIRECTIVE.findall(code)])
    found: list[tuple[str, int]] = []
    for code in files:
        code = _DIRECTIVE.sub("", code)
        if makers:
            used = set(re.findall(rf"\b(?:{'|'.join(makers)})\b", code))
            found += [(name, 0) for name in makers if name in used]
        for statement, body in _top_level(_expanded(code, words)):
            if not body:
                found += _objects(statement.removesuffix(";"))
            elif (macro := _INVOCATION.match(statement)) is not None:
                found.append((macro[1], 0))
            for candidate in _local(body):
                found += _objects(candidate)
    # A definition gives the size, the `extern` of another file doesn't.
    sizes: dict[str, int] = {}
    for name, size in found:
        sizes[name] = max(size, sizes.get(name, 0))
    return [item for item in sizes.items() if item[0] not in CONSTANT_IN_EFFECT]


def _macros(directives: list[str]) -> tuple[dict[str, str], list[str]]:
    """Returns macros that stand for words of a declaration, and those that make objects."""
    words: dict[str, str] = {}
    makers = []
    for directive in directives:
        found = _DEFINE.fullmatch(directive)
        if found is None:
            continue
        name, parameters = found[1], found[2]
        text = _ATTRIBUTE.sub(" ", _LITERAL.sub(" ", found[3].replace("\\\n", " ")))
        text = " ".join(text.split())
        nested = any(w in words or w in makers for w in set(re.findall(r"\w+", text[:_MACRO])))
        if not _QUALIFIERS.search(text) and not nested:
            continue
        plain = len(text) <= _MACRO and re.fullmatch(r"[\w\s*]*", text) is not None
        if parameters is None and plain and words.setdefault(name, text) == text:
            continue
        if (_STORAGE.search(text) or nested) and not _INLINE.search(text):
            makers.append(name)
    for name, text in list(words.items()):
        for _ in range(4):
            text = re.sub(r"\w+", lambda word: words.get(word[0], word[0]), text)[: 4 * _MACRO]
        words[name] = text
    return words, makers


def _expanded(code: str, words: Mapping[str, str]) -> str:
    """Returns the code with the macros of `words` replaced, as far as it stays of its size."""
    if not words:
        return code
    names = re.compile(rf"\b(?:{'|'.join(sorted(words))})\b")
    growth = 0

    def replacement(found: re.Match[str]) -> str:
        nonlocal growth
        text = words[found[0]]
        growth += len(text)
        # Without its qualifiers, a declaration is one of an object that may change.
        return f" {text} " if growth <= _GROWTH else " static "

    return names.sub(replacement, code)


def _local(body: str) -> Iterator[str]:
    """Yields the declarations of a function's body that name a storage class, without the `;`."""
    end = 0
    for start in _STORAGE.finditer(body):
        if start.start() < end:
            continue
        depth = 0
        end = len(body)
        for mark in _MARK.finditer(body, start.end()):
            depth += {"{": 1, "}": -1, ";": 0}[mark[0]]
            if depth < 0 or (depth == 0 and mark[0] == ";"):
                end = mark.start()
                break
        # Qualifiers may stand before the storage class.
        lowest = max(0, start.start() - 4 * _MACRO)
        before = max(body.rfind(c, lowest, start.start()) for c in "{};") + 1
        yield body[max(before, lowest) : end]


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


def _objects(statement: str) -> list[tuple[str, int]]:
    """Returns name and bytes of the objects of a declaration that may be written."""
    if _NO_OBJECT.match(statement):
        return []
    text = _ATTRIBUTE.sub(_attribute, _without(_INNERMOST, " @ ", statement))
    size = _BYTES.search(text)
    text = _TYPE_OF.sub(" t ", _without(_SUBSCRIPT, " @index ", text)).strip("}; \t\n")
    macro = _INVOCATION.match(text)
    if macro is not None:
        return [(macro[1], 0)]
    found = []
    specifiers = ""
    for number, item in enumerate(_declarators(text)):
        declarator = item.split("=", 1)[0].rstrip()
        if number == 0:
            if not declarator or _ONLY_A_TYPE.fullmatch(declarator):
                return []
            # The type's words: up to the first pointer or parenthesis, less the name.
            cut = re.search(r"[*(]", declarator)
            first = declarator[: cut.start()] if cut else declarator
            specifiers = first if cut else re.sub(r"\w+\s*(?:@index\s*)*$", "", first)
        if _is_function(declarator) or _is_constant(specifiers, declarator):
            continue
        name = _NAME.search(declarator)
        shown = name[1] if name else one_line(declarator, _SHOWN)
        found.append((shown, int(size[1]) if size and number == 0 else 0))
    return found


def _attribute(found: re.Match[str]) -> str:
    return f" {CONSTANT_SECTION} " if CONSTANT_SECTION in found[0] else " "


def _declarators(text: str) -> Iterator[str]:
    """Yields the parts between the commas of a declaration, less those in parentheses."""
    depth = start = 0
    for mark in re.finditer(r"[(),]", text):
        depth += {"(": 1, ")": -1, ",": 0}[mark[0]]
        if mark[0] == "," and depth == 0:
            yield text[start : mark.start()]
            start = mark.end()
    yield text[start:]


def _is_function(declarator: str) -> bool:
    """Tells whether a declarator declares a function: parameters follow its name."""
    opening = declarator.find("(")
    if opening < 0:
        return False
    if re.match(r"\(\s*+[*^(]", declarator[opening:]):
        return False
    if re.match(r"\(\s*+\w++\s*+\)\s*+\(", declarator[opening:]):
        return True
    # `static float (name)` has a type before the parenthesis, `static float name(...)` more.
    words = _WORDLESS.sub(" ", declarator[:opening].replace("*", " "))
    rest = _BUILT_IN.sub(" ", words)
    return len(rest.split()) > (rest == words)


def _is_constant(specifiers: str, declarator: str) -> bool:
    """Tells whether the object itself is constant, not only what it points to."""
    if CONSTANT_SECTION in specifiers or CONSTANT_SECTION in declarator:
        return True
    opening = declarator.find("(")
    inner = declarator[opening + 1 : declarator.find(")", opening)] if opening >= 0 else declarator
    pointer = inner if "*" in inner else declarator[: opening if opening >= 0 else None]
    if "*" in pointer:
        return _CONSTANT.search(pointer.rpartition("*")[2]) is not None
    return _CONSTANT.search(f"{specifiers} {pointer}") is not None


def _without(pattern: re.Pattern[str], stand_in: str, text: str) -> str:
    """Returns the text with `stand_in` for each nest of brackets."""
    for _ in range(MAX_NESTING):
        text, changed = pattern.subn(stand_in, text)
        if not changed:
            break
    return text
