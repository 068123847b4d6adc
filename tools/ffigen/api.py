"""The names and types of the target: C declarations to Rust items. Alone owns Rust types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tools.codegen.errors import CodegenError, Collector, Location
from tools.codegen.names import collisions, rust_identifier
from tools.codegen.rust import c_string_literal, plain_doc
from tools.ffigen import model, rules

SCALARS = {
    "bool": "bool",
    "char": "c_char",
    "signed char": "c_schar",
    "unsigned char": "c_uchar",
    "short": "c_short",
    "unsigned short": "c_ushort",
    "int": "c_int",
    "unsigned int": "c_uint",
    "unsigned": "c_uint",
    "long": "c_long",
    "unsigned long": "c_ulong",
    "long long": "c_longlong",
    "unsigned long long": "c_ulonglong",
    "float": "f32",
    "double": "f64",
    "size_t": "usize",
    "ptrdiff_t": "isize",
    "intptr_t": "isize",
    "uintptr_t": "usize",
    "int8_t": "i8",
    "int16_t": "i16",
    "int32_t": "i32",
    "int64_t": "i64",
    "uint8_t": "u8",
    "uint16_t": "u16",
    "uint32_t": "u32",
    "uint64_t": "u64",
}


@dataclass(frozen=True)
class RustParam:
    """A parameter of a function or function pointer."""

    name: str
    type: str


@dataclass(frozen=True)
class RustFunction:
    """A C function.

    Attributes:
        name: Rust name.
        c_name: C name.
        symbol: Name in the symbol table, as a C-string literal.
        link_name: The same as plain text when it differs from the C name; else empty.
        params: Its parameters.
        result: ` -> T`, or empty.
        required: A library without it is refused.
        doc: Markdown lines.
    """

    name: str
    c_name: str
    symbol: str
    link_name: str
    params: tuple[RustParam, ...]
    result: str
    required: bool
    doc: tuple[str, ...]


@dataclass(frozen=True)
class RustItem:
    """A type or constant. `kind` is the template's block for it."""

    kind: str
    name: str
    doc: tuple[str, ...]
    type: str = ""
    value: str = ""
    union: bool = False
    derives: str = ""
    fields: tuple[RustField, ...] = ()


@dataclass(frozen=True)
class RustField:
    """A field of a struct or union."""

    name: str
    type: str
    doc: tuple[str, ...]
    offset: int


@dataclass(frozen=True)
class Layout:
    """What is asserted of a type at compile time."""

    name: str
    size: int
    align: int
    offsets: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class RustModule:
    """One module: one header.

    Attributes:
        name: The module's name.
        header: The header's path.
        note: Why no function of it is required, or empty.
        items: Types and constants in header order.
        functions: Functions with a symbol, in header order.
        layouts: Layout of every defined type.
        imports: Names of other modules.
        exports: Names that the crate root re-exports.
        skipped: (C name, reason) of what was left out.
        std_imports: Names of `core::ffi` that the module uses.
    """

    name: str
    header: str
    note: str
    items: tuple[RustItem, ...]
    functions: tuple[RustFunction, ...]
    layouts: tuple[Layout, ...]
    imports: tuple[str, ...]
    exports: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    std_imports: tuple[str, ...]


@dataclass(frozen=True)
class RustTable:
    """A struct of function groups that is resolved in one go."""

    name: str
    doc: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    source: str
    checks_version: bool


@dataclass(frozen=True)
class RustCrate:
    """The whole crate."""

    modules: tuple[RustModule, ...]
    tables: tuple[RustTable, ...]
    excluded_headers: tuple[tuple[str, str], ...] = field(default_factory=tuple)
    minimum_version: tuple[int, int] = rules.MINIMUM_VERSION


def rust_crate(
    headers: Sequence[model.Header],
    header_rules: Sequence[rules.HeaderRule] = rules.HEADERS,
    tables: Sequence[rules.TableRule] = rules.TABLES,
) -> RustCrate:
    """Maps all headers.

    Args:
        headers: From the model stage.
        header_rules: A rule for each header, in the same order.
        tables: The tables to offer.

    Raises:
        CodegenError: Two headers declare the same Rust name, a type is used that no header
            declares, or a macro has no value; each with file and line.
    """
    scope = _Scope(headers)
    collector = Collector()
    modules = []
    for header, rule in zip(headers, header_rules, strict=True):
        try:
            modules.append(_Module(scope, header, rule).build())
        except CodegenError as error:
            collector.extend(error)
    collector.check()
    exports = [(name, m.header) for m in modules for name in m.exports]
    for name in collisions(name for name, _ in exports):
        places = ", ".join(header for other, header in exports if other == name)
        collector.add(Location(places.split(", ")[0]), f"{name!r} is declared twice: {places}")
    collector.check()
    with_functions = {m.name for m in modules if m.functions}
    rust_tables = tuple(
        RustTable(
            table.name,
            table.doc,
            tuple(name for name in table.required if name in with_functions),
            tuple(name for name in table.optional if name in with_functions),
            table.source,
            "c_api" in table.required and "c_api" in with_functions,
        )
        for table in tables
    )
    return RustCrate(tuple(modules), rust_tables, tuple(sorted(rules.EXCLUDED_HEADERS.items())))


class _Scope:
    """All names of all headers."""

    def __init__(self, headers: Sequence[model.Header]) -> None:
        self.items: dict[str, model.AnyItem] = {}
        self.home: dict[str, str] = {}
        self.enum_of: dict[str, str] = {}
        for header in headers:
            for item in header.items:
                if isinstance(item, model.Function):
                    continue
                self.items[item.name] = item
                self.home[item.name] = header.path
                if isinstance(item, model.Enum):
                    for value in item.values:
                        self.enum_of[value.name] = item.name
                        self.home[value.name] = header.path

    def holds_union(self, ctype: model.CType) -> bool:
        """Says whether a value of the type holds a union, which has no `Debug`."""
        if isinstance(ctype, model.Array):
            return self.holds_union(ctype.of)
        if not isinstance(ctype, model.Named):
            return False
        item = self.items.get(ctype.name)
        if isinstance(item, model.Typedef):
            return self.holds_union(item.target)
        if not isinstance(item, model.Record):
            return False
        return item.union or any(self.holds_union(f.type) for f in item.fields or ())

    def function_type(self, ctype: model.CType) -> model.FunctionType | None:
        """Returns the function type that a type is or names."""
        if isinstance(ctype, model.FunctionType):
            return ctype
        if isinstance(ctype, model.Named):
            item = self.items.get(ctype.name)
            if isinstance(item, model.Typedef):
                return self.function_type(item.target)
        return None


class _Module:
    def __init__(self, scope: _Scope, header: model.Header, rule: rules.HeaderRule) -> None:
        self._scope = scope
        self._header = header
        self._rule = rule
        self._collector = Collector()
        self._imports: set[str] = set()
        self._std: set[str] = set()
        self._where = Location(header.path)
        self._layouts: list[Layout] = []
        self._skipped: list[tuple[str, str]] = []

    def build(self) -> RustModule:
        functions: list[RustFunction] = []
        items: list[RustItem] = []
        for item in self._header.items:
            self._where = item.where
            key = item.symbol if isinstance(item, model.Function) else item.name
            reason = rules.EXCLUDED_ITEMS.get(key, "") or _generic_reason(item)
            if reason:
                self._skipped.append((item.name, reason))
            elif isinstance(item, model.Function) and item.name not in rules.ENTRY_POINTS:
                functions.append(self._function(item))
            else:
                items.extend(self._item(item))
        self._collector.check()
        return RustModule(
            name=self._rule.module,
            header=self._header.path,
            note=self._rule.optional,
            items=tuple(items),
            functions=tuple(functions),
            layouts=tuple(self._layouts),
            imports=tuple(sorted(self._imports)),
            exports=tuple(sorted(item.name for item in items)),
            skipped=tuple(self._skipped),
            std_imports=tuple(sorted(self._std)),
        )

    # ---- items -----------------------------------------------------------------------------

    def _function(self, item: model.Function) -> RustFunction:
        required = not self._rule.optional and item.name not in rules.OPTIONAL_FUNCTIONS
        return RustFunction(
            name=rust_identifier(item.name),
            c_name=item.name,
            symbol=c_string_literal(item.symbol),
            link_name=item.symbol if item.symbol != item.name else "",
            params=self._params(item.type),
            result=self._result(item.type),
            required=required,
            doc=tuple(plain_doc(item.doc)),
        )

    def _item(self, item: model.AnyItem) -> Iterator[RustItem]:
        name, doc = rust_identifier(item.name), tuple(plain_doc(item.doc))
        if isinstance(item, model.Function):
            reason = rules.ENTRY_POINTS[item.name]
            doc = (*doc, *([""] if doc else []), f"Entry point: {reason}.")
            yield RustItem("alias", name, doc, self._function_pointer(item.type))
        elif isinstance(item, model.Record):
            yield self._record(item, name, doc)
        elif isinstance(item, model.Enum):
            base = self._type(item.underlying)
            yield RustItem("newtype", name, doc, base)
            self._layouts.append(Layout(name, item.size, item.size, ()))
            for value in item.values:
                yield RustItem(
                    "const",
                    rust_identifier(value.name),
                    tuple(plain_doc(value.doc)),
                    name,
                    f"{name}({value.value})",
                )
        elif isinstance(item, model.Typedef):
            target = self._scope.function_type(item.target)
            is_function = isinstance(item.target, model.FunctionType)
            text = self._function_pointer(target) if is_function and target else None
            yield RustItem("alias", name, doc, text or self._type(item.target))
        elif isinstance(item, model.Constant):
            # A macro or enumerator that gives a struct's size is compared with sizes.
            size = item.name.endswith("_STRUCT_SIZE")
            ctype = "usize" if size else self._type(item.type)
            yield RustItem("const", name, doc, ctype, str(item.value))
        elif isinstance(item, model.Text):
            self._std.add("CStr")
            yield RustItem("const", name, doc, "&CStr", c_string_literal(item.value))
        elif isinstance(item, model.Alias):
            yield self._alias(item, name, doc)
        else:
            self._collector.add(
                item.where,
                f"macro {item.name} can't be evaluated: {getattr(item, 'error', '')}; expected an "
                "integer constant, a string, a type or a name of the headers (or a row with a "
                "reason in EXCLUDED_ITEMS of rules.py)",
            )

    def _alias(self, item: model.Alias, name: str, doc: tuple[str, ...]) -> RustItem:
        enum = self._scope.enum_of.get(item.target)
        target = self._named(item.target)
        if enum is not None:
            return RustItem("const", name, doc, self._named(enum), target)
        aimed = self._scope.items.get(item.target)
        if isinstance(aimed, model.Constant):
            return RustItem("const", name, doc, self._type(aimed.type), target)
        return RustItem("alias", name, doc, target)

    def _record(self, item: model.Record, name: str, doc: tuple[str, ...]) -> RustItem:
        if item.fields is None:
            return RustItem("opaque", name, doc)
        fields = tuple(
            RustField(
                rust_identifier(f.name), self._type(f.type), tuple(plain_doc(f.doc)), f.offset
            )
            for f in item.fields
        )
        offsets = tuple((f.name, f.offset) for f in fields)
        self._layouts.append(Layout(name, item.size, item.align, offsets))
        debug = not self._scope.holds_union(model.Named(item.name))
        derives = "Clone, Copy, Debug" if debug else "Clone, Copy"
        return RustItem("record", name, doc, union=item.union, derives=derives, fields=fields)

    # ---- types -----------------------------------------------------------------------------

    def _named(self, name: str) -> str:
        home = self._scope.home.get(name)
        if home is None:
            self._collector.add(self._where, f"type {name!r} is declared by no header of this run")
            return "()"
        rust = rust_identifier(name)
        if home != self._header.path:
            self._imports.add(rust)
        return rust

    def _type(self, ctype: model.CType) -> str:
        if isinstance(ctype, model.Scalar):
            rust = SCALARS.get(ctype.spelling)
            if rust is None:
                self._collector.add(self._where, f"C type {ctype.spelling!r} has no Rust type")
                return "()"
            if rust.startswith("c_"):
                self._std.add(rust)
            return rust
        if isinstance(ctype, model.Void):
            self._std.add("c_void")
            return "c_void"
        if isinstance(ctype, model.Named):
            return self._named(ctype.name)
        if isinstance(ctype, model.Array):
            return f"[{self._type(ctype.of)}; {ctype.length}]"
        if isinstance(ctype, model.FunctionType):
            return self._function_pointer(ctype)
        function = self._scope.function_type(ctype.to)
        if function is not None:
            named = isinstance(ctype.to, model.Named)
            return f"Option<{self._type(ctype.to) if named else self._function_pointer(function)}>"
        return f"{'*const' if ctype.const else '*mut'} {self._type(ctype.to)}"

    def _function_pointer(self, ctype: model.FunctionType) -> str:
        params = ", ".join(f"{p.name}: {p.type}" for p in self._params(ctype))
        return f'unsafe extern "C" fn({params}){self._result(ctype)}'

    def _params(self, ctype: model.FunctionType) -> tuple[RustParam, ...]:
        return tuple(
            RustParam(rust_identifier(p.name) if p.name else f"arg{i}", self._type(p.type))
            for i, p in enumerate(ctype.params)
        )

    def _result(self, ctype: model.FunctionType) -> str:
        if isinstance(ctype.result, model.Void):
            return ""
        return f" -> {self._type(ctype.result)}"


def _generic_reason(item: model.AnyItem) -> str:
    if isinstance(item, model.Function) and item.inline:
        return rules.INLINE_REASON
    if isinstance(item, model.FunctionMacro):
        return rules.FUNCTION_MACRO_REASON
    return ""
