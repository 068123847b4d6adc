"""Headers to a checked libclang translation unit, with every object-like macro evaluated.

The only stage that talks to libclang's parser. Input: a folder of headers. Output: a `Parsed`,
whose cursors the model stage reads. The headers are parsed as C++17 for x86-64 Linux, because some
of TensorFlow's C headers need it. They see the standard headers of `sysroot/` and no others.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clang import cindex

from tools.codegen.errors import CodegenError, Collector, Finding, Location

SYSROOT = Path(__file__).resolve().parent / "sysroot"
# The last libclang on the package index is 18; another one may print types differently, so it is
# refused until the goldens were compared with it.
SUPPORTED_CLANG = (18,)
WRAPPER = "ffigen_wrapper.cc"
TARGET = "x86_64-unknown-linux-gnu"
_ARGS = ("-x", "c++", "-std=c++17", f"--target={TARGET}", "-nostdinc", "-nostdinc++",
         "-fparse-all-comments", "-ferror-limit=0")  # fmt: skip
_SKIP_FUNCTION_BODIES = cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
_OPTIONS = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD | _SKIP_FUNCTION_BODIES


@dataclass(frozen=True)
class MacroFact:
    """An object-like macro with a body.

    Attributes:
        name: Its name.
        tokens: The body's tokens.
        header: The header, relative to the include folder.
        where: Where it is defined.
        value: Its integer value, or None when the body is not an integer constant expression.
        ctype: Canonical spelling of the type of the value; empty without a value.
        error: What the compiler said about the body as an expression; empty with a value.
    """

    name: str
    tokens: tuple[str, ...]
    header: str
    where: Location
    value: int | None = None
    ctype: str = ""
    error: str = ""


@dataclass(frozen=True)
class Parsed:
    """A translation unit without errors.

    Attributes:
        include_dir: The folder of the headers.
        unit: The translation unit.
        macros: Object-like macros with a body, in header order.
        function_macros: Names of function-like macros with their place and header.
        constants: Values of namespace-scope constants, by name: (value, canonical type).
    """

    include_dir: Path
    unit: cindex.TranslationUnit
    macros: tuple[MacroFact, ...]
    function_macros: tuple[tuple[str, Location, str], ...]
    constants: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def header_of(self, cursor: cindex.Cursor) -> str | None:
        """Returns the header of a cursor, relative to the include folder; None outside of it."""
        return relative_header(self.include_dir, cursor)

    def location_of(self, cursor: cindex.Cursor) -> Location:
        """Returns the place of a cursor, with its header relative to the include folder."""
        where = cursor.location
        name = self.header_of(cursor) or (where.file.name if where.file else "<built-in>")
        return Location(name, where.line, where.column)


def relative_header(include_dir: Path, cursor: cindex.Cursor) -> str | None:
    """Returns the header of a cursor relative to `include_dir`; None outside of it."""
    file = cursor.location.file
    if file is None or file.name == WRAPPER:
        return None
    name = str(file.name)
    prefix = str(include_dir) + "/"
    return name[len(prefix) :] if name.startswith(prefix) else None


def check_clang() -> str:
    """Returns libclang's version.

    Raises:
        CodegenError: There is no libclang, or its version is none of `SUPPORTED_CLANG`.
    """
    try:
        library = cindex.conf.lib
    except cindex.LibclangError as error:
        where = Location(str(cindex.conf.get_filename()))
        raise CodegenError.at(
            where, f"libclang can't be loaded (pip: libclang): {error}"
        ) from error
    function = library.clang_getClangVersion
    function.restype = cindex._CXString
    function.errcheck = cindex._CXString.from_result
    text = str(function())
    found = re.search(r"version (\d+)\.", text)
    if found is None or int(found[1]) not in SUPPORTED_CLANG:
        supported = ", ".join(str(v) for v in SUPPORTED_CLANG)
        where = Location(str(cindex.conf.get_filename()))
        raise CodegenError.at(
            where, f"unknown libclang {text!r}; expected major version {supported} (pip: libclang)"
        )
    return text


def is_function_like(cursor: cindex.Cursor) -> bool:
    """Says whether a macro definition takes arguments: `(` follows its name immediately.

    libclang's own answer is about the macro of that name at the end of the file, and so is wrong
    after an `#undef`.
    """
    tokens = list(cursor.get_tokens())
    if len(tokens) < 2 or tokens[1].spelling != "(":
        return False
    return bool(tokens[0].extent.end.offset == tokens[1].extent.start.offset)


def is_inline(cursor: cindex.Cursor) -> bool:
    """Says whether a function is declared `inline` or `static`, so that no symbol exists."""
    static = cursor.storage_class == cindex.StorageClass.STATIC
    return static or bool(_flag("clang_Cursor_isFunctionInlined", cursor))


def is_unnamed_member(cursor: cindex.Cursor) -> bool:
    """Says whether a struct or union stands in another one as a member without a name."""
    return bool(_flag("clang_Cursor_isAnonymousRecordDecl", cursor))


def declarations(parent: cindex.Cursor, scope: str = "") -> Iterator[tuple[cindex.Cursor, str]]:
    """Yields the declarations of a scope with their qualified names.

    `extern "C"` blocks and namespaces are entered, and are not yielded themselves.
    """
    for cursor in parent.get_children():
        if cursor.kind == cindex.CursorKind.LINKAGE_SPEC:
            yield from declarations(cursor, scope)
        elif cursor.kind == cindex.CursorKind.NAMESPACE:
            yield from declarations(cursor, f"{scope}{cursor.spelling}::")
        elif cursor.kind.is_declaration():
            yield cursor, scope + cursor.spelling


def _flag(name: str, cursor: cindex.Cursor) -> int:
    function = getattr(cindex.conf.lib, name)
    function.argtypes = [cindex.Cursor]
    function.restype = ctypes.c_uint
    return int(function(cursor))


def parse(include_dir: Path, headers: Sequence[str]) -> Parsed:
    """Parses headers together, as one C++ translation unit.

    Args:
        include_dir: The folder of the headers.
        headers: Headers relative to `include_dir`; what else they include is parsed too, but its
            macros are not read.

    Raises:
        CodegenError: A header is missing or does not parse (every error of the compiler with file
            and line), or libclang is unknown.
    """
    check_clang()
    collector = Collector()
    for header in headers:
        if not (include_dir / header).is_file():
            collector.add(Location(header), f"no such header in {include_dir}")
    collector.check()
    includes = "".join(f"#include <{header}>\n" for header in headers)
    unit = _parse_unit(include_dir, includes)
    _check_diagnostics(include_dir, unit)
    macros, function_macros = _read_macros(include_dir, unit, frozenset(headers))
    constants = tuple(
        name
        for cursor, name in declarations(unit.cursor)
        if cursor.kind == cindex.CursorKind.VAR_DECL and relative_header(include_dir, cursor)
    )
    evaluated, values = _evaluate(include_dir, includes, macros, constants)
    return Parsed(include_dir, unit, evaluated, function_macros, values)


def _parse_unit(include_dir: Path, text: str) -> cindex.TranslationUnit:
    args = [*_ARGS, "-isystem", str(SYSROOT), "-I", str(include_dir)]
    try:
        return cindex.Index.create().parse(
            WRAPPER, args=args, unsaved_files=[(WRAPPER, text)], options=_OPTIONS
        )
    except cindex.TranslationUnitLoadError as error:
        raise CodegenError.at(Location(str(include_dir)), f"libclang gave up: {error}") from error


def _errors(include_dir: Path, unit: cindex.TranslationUnit) -> Iterator[tuple[Finding, int]]:
    """Yields compile errors with their line in the wrapper (0: in a header)."""
    prefix = str(include_dir) + "/"
    for diagnostic in unit.diagnostics:
        if diagnostic.severity < cindex.Diagnostic.Error:
            continue
        where = diagnostic.location
        name = str(where.file.name) if where.file else "<command line>"
        place = Location(name.removeprefix(prefix), where.line, where.column)
        yield (place, diagnostic.spelling), where.line if name == WRAPPER else 0


def _check_diagnostics(include_dir: Path, unit: cindex.TranslationUnit) -> None:
    found = [finding for finding, _ in _errors(include_dir, unit)]
    if found:
        raise CodegenError(found)


def _read_macros(
    include_dir: Path, unit: cindex.TranslationUnit, headers: frozenset[str]
) -> tuple[list[MacroFact], tuple[tuple[str, Location, str], ...]]:
    macros: list[MacroFact] = []
    function_macros: list[tuple[str, Location, str]] = []
    for cursor in unit.cursor.get_children():
        if cursor.kind != cindex.CursorKind.MACRO_DEFINITION:
            continue
        header = relative_header(include_dir, cursor)
        if header not in headers:
            continue
        where = Location(header, cursor.location.line, cursor.location.column)
        if is_function_like(cursor):
            function_macros.append((cursor.spelling, where, header))
            continue
        tokens = tuple(token.spelling for token in cursor.get_tokens())[1:]
        if tokens:
            macros.append(MacroFact(cursor.spelling, tokens, header, where))
    return macros, tuple(function_macros)


def _evaluate(
    include_dir: Path, includes: str, macros: list[MacroFact], constants: tuple[str, ...]
) -> tuple[tuple[MacroFact, ...], dict[str, tuple[int, str]]]:
    """Evaluates expressions by declaring, on a line each, an enumerator with that value."""
    expressions = [macro.name for macro in macros] + list(constants)
    if not expressions:
        return (), {}
    first = includes.count("\n") + 1
    lines = [
        f"enum {{ ffigen_value_{i} = ({text}) }}; typedef decltype(({text}) + 0) ffigen_type_{i};\n"
        for i, text in enumerate(expressions)
    ]
    unit = _parse_unit(include_dir, includes + "".join(lines))
    failed: dict[int, str] = {}
    for (_, what), line in _errors(include_dir, unit):
        failed.setdefault(line - first, what)
    values: dict[int, int] = {}
    types: dict[int, str] = {}
    for cursor in unit.cursor.get_children():
        index = cursor.location.line - first
        if cursor.location.file is None or cursor.location.file.name != WRAPPER:
            continue
        if cursor.kind == cindex.CursorKind.ENUM_DECL:
            values[index] = next(iter(cursor.get_children())).enum_value
        elif cursor.kind == cindex.CursorKind.TYPEDEF_DECL:
            types[index] = cursor.underlying_typedef_type.get_canonical().spelling
    evaluated: list[MacroFact] = []
    for index, macro in enumerate(macros):
        value, ctype, error = values.get(index), types.get(index, ""), failed.get(index, "")
        if error:
            value, ctype = None, ""
        evaluated.append(
            MacroFact(macro.name, macro.tokens, macro.header, macro.where, value, ctype, error)
        )
    found: dict[str, tuple[int, str]] = {}
    for offset, name in enumerate(constants):
        index = len(macros) + offset
        if index not in failed:
            found[name] = (values[index], types[index])
    return tuple(evaluated), found
