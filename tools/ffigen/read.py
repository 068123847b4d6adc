"""The model room's reader: libclang cursors to the frozen model.

Whatever the model has no word for (bit-fields, variadic functions, references, templates) is an
error with file and line; all of them are reported together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from clang import cindex
from clang.cindex import CursorKind, TypeKind

from tools.codegen.errors import CodegenError, Collector
from tools.ffigen import model
from tools.ffigen.parse import Parsed, declarations, is_inline, is_unnamed_member

# Typedefs of the standard headers; the headers' own typedefs keep their names.
STANDARD_TYPES = frozenset(
    [
        "size_t",
        "ptrdiff_t",
        "intptr_t",
        "uintptr_t",
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
    ]
)
_BUILTIN = {
    TypeKind.BOOL: "bool",
    TypeKind.CHAR_S: "char",
    TypeKind.SCHAR: "signed char",
    TypeKind.UCHAR: "unsigned char",
    TypeKind.SHORT: "short",
    TypeKind.USHORT: "unsigned short",
    TypeKind.INT: "int",
    TypeKind.UINT: "unsigned int",
    TypeKind.LONG: "long",
    TypeKind.ULONG: "unsigned long",
    TypeKind.LONGLONG: "long long",
    TypeKind.ULONGLONG: "unsigned long long",
    TypeKind.FLOAT: "float",
    TypeKind.DOUBLE: "double",
}
_NO_DECLARATION = frozenset([CursorKind.STATIC_ASSERT, CursorKind.UNEXPOSED_DECL])
_TYPE_WORDS = frozenset(
    [
        "void",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "signed",
        "unsigned",
        "const",
        "*",
    ]
)


def read(parsed: Parsed, headers: tuple[str, ...]) -> tuple[model.Header, ...]:
    """Reads the declarations of some headers.

    Args:
        parsed: From the parse stage.
        headers: The headers to read, in the order of the result.

    Raises:
        CodegenError: A declaration has a form that the model lacks; every such declaration is
            named with file and line.
    """
    return _Reader(parsed, headers).headers()


class _Reader:
    def __init__(self, parsed: Parsed, headers: tuple[str, ...]) -> None:
        self._parsed = parsed
        self._items: dict[str, list[model.AnyItem]] = {header: [] for header in headers}
        self._collector = Collector()
        self._anonymous: dict[str, str] = {}
        self._done: set[str] = set()
        self._types: set[str] = set()
        self._enumerators: set[str] = set()

    def headers(self) -> tuple[model.Header, ...]:
        for cursor, name in declarations(self._parsed.unit.cursor):
            header = self._parsed.header_of(cursor)
            if header not in self._items or cursor.kind in _NO_DECLARATION:
                continue
            try:
                for item in self._declaration(cursor, name):
                    self._items[header].append(item)
            except CodegenError as error:
                self._collector.extend(error)
        self._macros()
        self._collector.check()
        return tuple(
            model.Header(path, tuple(sorted(items, key=lambda item: item.where)))
            for path, items in self._items.items()
        )

    def _refuse(self, cursor: cindex.Cursor, what: str) -> CodegenError:
        return CodegenError.at(self._parsed.location_of(cursor), what)

    def _declaration(self, cursor: cindex.Cursor, name: str) -> Iterator[model.AnyItem]:
        kind = cursor.kind
        if kind == CursorKind.FUNCTION_DECL:
            yield from self._function(cursor)
        elif kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.CLASS_DECL):
            yield from self._record(cursor)
        elif kind == CursorKind.ENUM_DECL:
            yield from self._enum(cursor)
        elif kind == CursorKind.TYPEDEF_DECL:
            yield from self._typedef(cursor)
        elif kind == CursorKind.VAR_DECL:
            yield self._variable(cursor, name)
        else:
            raise self._refuse(cursor, f"{cursor.spelling!r}: {kind.name} is not supported")

    # ---- functions -------------------------------------------------------------------------

    def _function(self, cursor: cindex.Cursor) -> Iterator[model.AnyItem]:
        symbol = cursor.mangled_name
        if symbol in self._done:
            return
        self._done.add(symbol)
        where = self._parsed.location_of(cursor)
        yield model.Function(
            cursor.spelling,
            where,
            _comment(cursor),
            symbol,
            self._function_type(cursor.type, cursor),
            is_inline(cursor),
        )

    def _function_type(self, ctype: cindex.Type, owner: cindex.Cursor) -> model.FunctionType:
        if ctype.kind == TypeKind.FUNCTIONNOPROTO:
            raise self._refuse(owner, f"{owner.spelling!r}: a function without a prototype")
        if ctype.is_function_variadic():
            raise self._refuse(owner, f"{owner.spelling!r}: a variadic function is not supported")
        types = list(ctype.argument_types())
        cursors = [c for c in owner.get_children() if c.kind == CursorKind.PARM_DECL]
        if len(cursors) != len(types):
            cursors = []
        params = tuple(
            model.Param(
                cursors[i].spelling if cursors else "",
                self._parameter(argument, cursors[i] if cursors else owner),
            )
            for i, argument in enumerate(types)
        )
        # A parameter that points to a function brings its own parameter cursors; those of a result
        # can't be told from the owner's, so they are not looked at.
        return model.FunctionType(self._type(ctype.get_result(), owner), params)

    def _parameter(self, ctype: cindex.Type, owner: cindex.Cursor) -> model.CType:
        if ctype.kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
            of = ctype.element_type
            return model.Pointer(self._type(of, owner), of.is_const_qualified())
        return self._type(ctype, owner)

    # ---- types -----------------------------------------------------------------------------

    def _type(self, ctype: cindex.Type, owner: cindex.Cursor) -> model.CType:
        kind = ctype.kind
        if kind == TypeKind.ELABORATED:
            return self._type(ctype.get_named_type(), owner)
        if kind == TypeKind.VOID:
            return model.Void()
        if kind in _BUILTIN:
            return model.Scalar(_BUILTIN[kind])
        if kind == TypeKind.TYPEDEF:
            name = ctype.get_typedef_name()
            if name in STANDARD_TYPES:
                return model.Scalar(name)
            return model.Named(name)
        if kind in (TypeKind.RECORD, TypeKind.ENUM):
            return model.Named(self._tag_name(ctype.get_declaration()))
        if kind == TypeKind.POINTER:
            to = ctype.get_pointee()
            return model.Pointer(self._type(to, owner), to.is_const_qualified())
        if kind == TypeKind.LVALUEREFERENCE:
            to = ctype.get_pointee()
            return model.Reference(self._type(to, owner), to.is_const_qualified())
        if kind == TypeKind.CONSTANTARRAY:
            return model.Array(self._type(ctype.element_type, owner), ctype.element_count)
        if kind == TypeKind.FUNCTIONPROTO:
            return self._function_type(ctype, owner)
        if kind == TypeKind.UNEXPOSED:
            # Parentheses and attributes around another type.
            canonical = ctype.get_canonical()
            if canonical.kind != TypeKind.UNEXPOSED:
                return self._type(canonical, owner)
        raise self._refuse(
            owner, f"{owner.spelling!r}: type {ctype.spelling!r} ({kind.name}) is not supported"
        )

    def _tag_name(self, declaration: cindex.Cursor) -> str:
        usr = declaration.get_usr()
        if usr in self._anonymous:
            return self._anonymous[usr]
        if _unnamed(declaration):
            raise self._refuse(declaration, "an unnamed type is not supported here")
        return str(declaration.type.spelling)

    # ---- structs and unions ----------------------------------------------------------------

    def _record(self, cursor: cindex.Cursor) -> Iterator[model.AnyItem]:
        usr = cursor.get_usr()
        definition = cursor.get_definition()
        if usr in self._done:
            return
        if definition is not None and definition != cursor:
            if self._parsed.header_of(definition) in self._items:
                return
            raise self._refuse(
                cursor,
                f"{cursor.spelling!r} is defined in {self._parsed.location_of(definition)}, "
                "which is not a header of this run",
            )
        if _unnamed(cursor):
            # Named by the field that holds it, and read with it.
            return
        self._done.add(usr)
        yield from self._named_record(cursor, self._tag_name(cursor), definition is not None)

    def _named_record(
        self, cursor: cindex.Cursor, name: str, defined: bool
    ) -> Iterator[model.AnyItem]:
        where = self._parsed.location_of(cursor)
        self._types.add(name)
        union = cursor.kind == CursorKind.UNION_DECL
        if not defined:
            yield model.Record(name, where, _comment(cursor), union, None, 0, 0)
            return
        fields: list[model.Field] = []
        unnamed_members = 0
        for child in cursor.get_children():
            if child.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL):
                if is_unnamed_member(child):
                    # A member without a name: its members are reached as if they were the owner's.
                    unnamed_members += 1
                    member = f"anon{unnamed_members}"
                    inner = f"{name}_{member}"
                    self._anonymous[child.get_usr()] = inner
                    yield from self._named_record(child, inner, True)
                    bits = self._offset_of_unnamed(cursor, child)
                    fields.append(model.Field(member, model.Named(inner), bits // 8, ""))
                continue
            if child.kind != CursorKind.FIELD_DECL:
                raise self._refuse(
                    child, f"{name}: member {child.spelling!r} ({child.kind.name}) is not supported"
                )
            if child.is_bitfield():
                raise self._refuse(child, f"{name}.{child.spelling} is a bit-field: not supported")
            tag = child.type.get_declaration()
            if tag.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL) and _unnamed(tag):
                inner = f"{name}_{child.spelling}"
                self._anonymous[tag.get_usr()] = inner
                yield from self._named_record(tag, inner, True)
            bits = child.get_field_offsetof()
            fields.append(
                model.Field(
                    child.spelling, self._type(child.type, child), bits // 8, _comment(child)
                )
            )
        size, align = cursor.type.get_size(), cursor.type.get_align()
        yield model.Record(name, where, _comment(cursor), union, tuple(fields), size, align)

    def _offset_of_unnamed(self, owner: cindex.Cursor, member: cindex.Cursor) -> int:
        first = next((c for c in member.get_children() if c.kind == CursorKind.FIELD_DECL), None)
        bits = owner.type.get_offset(first.spelling) if first is not None else -1
        if first is None or bits < 0:
            raise self._refuse(member, "an unnamed member without a named first member")
        return int(bits) - int(first.get_field_offsetof())

    # ---- enums, typedefs, constants --------------------------------------------------------

    def _enum(self, cursor: cindex.Cursor) -> Iterator[model.AnyItem]:
        if not cursor.is_definition() or cursor.get_usr() in self._done:
            return
        self._done.add(cursor.get_usr())
        underlying = self._type(cursor.enum_type, cursor)
        if not isinstance(underlying, model.Scalar):
            raise self._refuse(cursor, f"enum over {cursor.enum_type.spelling!r} is not supported")
        values = [c for c in cursor.get_children() if c.kind == CursorKind.ENUM_CONSTANT_DECL]
        self._enumerators.update(value.spelling for value in values)
        if _unnamed(cursor):
            for value in values:
                where = self._parsed.location_of(value)
                doc = _comment(value)
                yield model.Constant(value.spelling, where, doc, underlying, value.enum_value)
            return
        name = self._tag_name(cursor)
        self._types.add(name)
        yield model.Enum(
            name,
            self._parsed.location_of(cursor),
            _comment(cursor),
            underlying,
            tuple(model.Enumerator(v.spelling, v.enum_value, _comment(v)) for v in values),
            cursor.type.get_size(),
        )

    def _typedef(self, cursor: cindex.Cursor) -> Iterator[model.AnyItem]:
        name = cursor.spelling
        if name in self._types or f"typedef {name}" in self._done:
            return
        target_cursor = cursor.underlying_typedef_type.get_declaration()
        # `typedef struct X X;` gives the tag its own name.
        if target_cursor.spelling == name and target_cursor.kind in (
            CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.ENUM_DECL,
        ):  # fmt: skip
            return
        self._done.add(f"typedef {name}")
        self._types.add(name)
        target = self._type(cursor.underlying_typedef_type, cursor)
        yield model.Typedef(name, self._parsed.location_of(cursor), _comment(cursor), target)

    def _variable(self, cursor: cindex.Cursor, qualified: str) -> model.AnyItem:
        where, doc = self._parsed.location_of(cursor), _comment(cursor)
        known = self._parsed.constants.get(qualified)
        if known is not None:
            ctype = self._type(cursor.type, cursor)
            if isinstance(ctype, model.Scalar):
                return model.Constant(cursor.spelling, where, doc, ctype, known[0])
        literals = [t.spelling for t in cursor.get_tokens() if t.spelling.startswith('"')]
        if len(literals) == 1:
            return model.Text(cursor.spelling, where, doc, str(ast.literal_eval(literals[0])))
        raise self._refuse(cursor, f"{qualified!r}: a variable whose value can't be evaluated")

    # ---- macros ----------------------------------------------------------------------------

    def _macros(self) -> None:
        for name, where, header in self._parsed.function_macros:
            self._items[header].append(model.FunctionMacro(name, where, ""))
        for macro in self._parsed.macros:
            if macro.header not in self._items:
                continue
            name, where, tokens = macro.name, macro.where, macro.tokens
            item: model.AnyItem
            single = tokens[0] if len(tokens) == 1 else ""
            if single in self._enumerators or single in self._types:
                item = model.Alias(name, where, "", single)
            elif single.startswith('"'):
                item = model.Text(name, where, "", str(ast.literal_eval(single)))
            elif macro.value is not None:
                item = model.Constant(name, where, "", _scalar(macro.ctype), macro.value)
            elif all(token in _TYPE_WORDS for token in tokens) and "*" not in tokens:
                item = model.Typedef(name, where, "", model.Scalar(" ".join(tokens)))
            else:
                item = model.OpaqueMacro(name, where, "", tokens, macro.error)
            self._items[macro.header].append(item)


def _scalar(canonical: str) -> model.Scalar:
    """Returns the type of an expression; `unsigned long` is what `sizeof` gives on this target."""
    return model.Scalar("size_t" if canonical == "unsigned long" else canonical)


def _unnamed(cursor: cindex.Cursor) -> bool:
    return cursor.type.spelling.endswith(")") or "(unnamed" in cursor.type.spelling


_RULER = re.compile(r"^[-=*/#~ ]{6,}$")


def _comment(cursor: cindex.Cursor) -> str:
    """Returns the comment of a declaration without its markers and rulers."""
    raw = cursor.raw_comment
    if not raw:
        return ""
    return comment_text(raw)


def comment_text(raw: str) -> str:
    """Strips the markers of `//` and `/* */` comments, and ruler lines.

    Args:
        raw: One or more adjacent comments as they stand in the source.
    """
    lines: list[str] = []
    block = False
    for line in raw.replace("\r\n", "\n").split("\n"):
        text = line.strip()
        if not block and text.startswith("/*"):
            block = True
            text = re.sub(r"^/\*+!?<?", "", text)
        elif not block:
            text = re.sub(r"^//[/!]*<?", "", text)
        else:
            text = re.sub(r"^\*(?!/)", "", text)
        if block and text.endswith("*/"):
            block = False
            text = re.sub(r"\**\*/$", "", text)
        text = text.rstrip()
        lines.append("" if _RULER.match(text) else text)
    # One column of space after the marker belongs to the marker.
    stripped = [line[1:] if line.startswith(" ") else line for line in lines]
    return "\n".join(stripped).strip("\n")
