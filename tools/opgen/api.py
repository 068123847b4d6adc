"""The Rust crate as data: functions, options, results, enums. No text layout here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tools.codegen import names
from tools.codegen.errors import Collector, Location
from tools.opgen import docs, rules, types
from tools.opgen.docstrings import Docstring
from tools.opgen.enums import Enums, RustEnum
from tools.opgen.model import ArgDef, AttrDef, DataType, OpDef
from tools.opgen.prose import Prose, from_docstring, from_registry


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, after the context.

    Attributes:
        name: Escaped.
        type: Rust type.
        attr: The attribute that it gives, or None for an input.
        method: For an input, the `Call` method that takes it; else empty.
        value: For an attribute, the expression of its value.
    """

    name: str
    type: str
    attr: AttrDef | None
    method: str
    value: str


@dataclass(frozen=True)
class Field:
    """A field of an options struct: an `Option`.

    Attributes:
        name: Escaped.
        type: Rust type inside of `Option`.
        attr: The attribute that it gives.
        value: The expression of its value.
        doc: Markdown lines.
    """

    name: str
    type: str
    attr: AttrDef
    value: str
    doc: tuple[str, ...]


@dataclass(frozen=True)
class Options:
    """The options struct of an op.

    Attributes:
        name: Name of the struct.
        fields: In the registry's order.
    """

    name: str
    fields: tuple[Field, ...]

    @property
    def lifetime(self) -> str:
        """The struct's generic parameters: `<'a>` or nothing."""
        return "<'a>" if any("'a" in field.type for field in self.fields) else ""


@dataclass(frozen=True)
class Result:
    """An output.

    Attributes:
        name: Escaped.
        is_list: Several tensors.
        doc: Markdown lines.
    """

    name: str
    is_list: bool
    doc: tuple[str, ...]

    @property
    def take(self) -> str:
        """The `Results` method that takes it."""
        return "list" if self.is_list else "one"


@dataclass(frozen=True)
class RustOp:
    """An op.

    Attributes:
        op: What the registry says.
        function: Name of the function, escaped.
        desc: Name of the static with its description.
        doc: Markdown lines.
        deprecated: What to say when it is used, or None.
        parameters: Inputs, then required attributes.
        options: Optional attributes, or None for an op without any.
        values: The expressions of all attributes that are not inferred, in the registry's order.
        results: Outputs.
        output: Name of the struct of results, empty for fewer than two outputs.
    """

    op: OpDef
    function: str
    desc: str
    doc: tuple[str, ...]
    deprecated: str | None
    parameters: tuple[Parameter, ...]
    options: Options | None
    values: tuple[str, ...]
    results: tuple[Result, ...]
    output: str

    @property
    def inferred(self) -> frozenset[str]:
        """Names of the attributes that the inputs determine."""
        return inferred_attrs(self.op)

    @property
    def borrows(self) -> bool:
        """Whether a parameter has the lifetime `'a`."""
        return any("'a" in parameter.type for parameter in self.parameters) or bool(
            self.options and self.options.lifetime
        )


@dataclass(frozen=True)
class Group:
    """A module, which is a Cargo feature too.

    Attributes:
        name: Its name.
        ops: By name of the function.
    """

    name: str
    ops: tuple[RustOp, ...]


@dataclass(frozen=True)
class RustCrate:
    """The whole crate.

    Attributes:
        groups: By name.
        enums: By name.
        type_sets: Constant by set of allowed element types, which are sorted by number.
    """

    groups: tuple[Group, ...]
    enums: tuple[RustEnum, ...]
    type_sets: Mapping[tuple[DataType, ...], str]

    @property
    def ops(self) -> tuple[RustOp, ...]:
        """All ops, by group."""
        return tuple(op for group in self.groups for op in group.ops)


def inferred_attrs(op: OpDef) -> frozenset[str]:
    """Returns the names of the attributes that the inputs of an op determine."""
    return frozenset(
        name
        for arg in op.inputs
        for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)
        if name
    )


def function_name(op: str) -> str:
    """Returns the Rust name of an op's function, not escaped."""
    return rules.FUNCTION_NAMES.get(op) or names.snake_case(op)


def type_name(op: str) -> str:
    """Returns the start of the names of an op's structs: the op's own name where it can be one."""
    plain = names.is_identifier(op) and op[0].isupper() and "_" not in op
    return op if plain else names.camel_case(op)


def variable_name(name: str) -> str:
    """Returns the Rust name of an input, attribute or output, not escaped."""
    plain = names.is_identifier(name) and name == name.lower()
    return name if plain else names.snake_case(name)


class _Scope:
    """Names of the parameters of one function, each once."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(taken)

    def add(self, name: str) -> str:
        rust = variable_name(name)
        while rust in self._taken:
            rust += "_"
        self._taken.add(rust)
        return names.rust_identifier(rust)


def _input(arg: ArgDef, scope: _Scope) -> Parameter:
    trait = "IntoOperands" if arg.is_list else "IntoOperand"
    return Parameter(
        name=scope.add(arg.name),
        type=f"impl {trait}<'a, C::Value>",
        attr=None,
        method="list" if arg.is_list else "input",
        value="",
    )


def _attr_type(op: OpDef, attr: AttrDef) -> types.AttrType:
    if (op.name, attr.name) in rules.BYTES_LISTS:
        return types.BYTES_LIST
    return types.attr_type(attr.type)


def _required(op: OpDef, attr: AttrDef, scope: _Scope, enums: Enums) -> Parameter:
    name = scope.add(attr.name)
    enum = enums.of(attr)
    if enum is not None:
        if not enum.wider_than:
            return Parameter(name, enum.name, attr, "", f"{name}.as_str().into()")
        value = f"Into::<{enum.name}>::into({name}).as_str().into()"
        return Parameter(name, f"impl Into<{enum.name}>", attr, "", value)
    rust = _attr_type(op, attr)
    value = f"{name}.into()"
    if rust.argument.startswith("impl Into<"):
        value = f"Into::<{rust.field}>::into({name}).into()".replace("<'a>", "<'_>")
    return Parameter(name, rust.argument, attr, "", value)


def _optional(op: OpDef, attr: AttrDef, scope: _Scope, enums: Enums, prose: Prose) -> Field:
    name = scope.add(attr.name)
    enum = enums.of(attr)
    doc = docs.field(attr, enum.name if enum else None, prose.args.get(attr.name, ""))
    if enum is not None:
        value = f"{rules.OPTIONS_PARAMETER}.{name}.map({enum.name}::as_str).into()"
        return Field(name, enum.name, attr, value, tuple(doc))
    rust = _attr_type(op, attr)
    return Field(name, rust.field, attr, f"{rules.OPTIONS_PARAMETER}.{name}.into()", tuple(doc))


def rust_op(op: OpDef, docstring: Docstring | None, enums: Enums) -> RustOp:
    """Decides everything about one op.

    Args:
        op: The op.
        docstring: That of its Python wrapper, or None; then the registry's own texts count.
        enums: The enums of the crate.
    """
    prose = from_docstring(docstring.text, op) if docstring else from_registry(op)
    inferred = inferred_attrs(op)
    base = type_name(op.name)
    given = [attr for attr in op.attrs if attr.name not in inferred]
    scope = _Scope(rules.CONTEXT_PARAMETER, rules.OPTIONS_PARAMETER)
    parameters = [_input(arg, scope) for arg in op.inputs]
    required = {a.name: _required(op, a, scope, enums) for a in given if a.default is None}
    fields_scope = _Scope()
    optional = {
        a.name: _optional(op, a, fields_scope, enums, prose) for a in given if a.default is not None
    }
    results_scope = _Scope()
    results = [
        Result(
            results_scope.add(arg.name),
            arg.is_list,
            tuple(docs.result(arg, op, prose.results.get(arg.name, ""))),
        )
        for arg in op.outputs
    ]
    options = Options(base + "Options", tuple(optional.values())) if optional else None
    function = function_name(op.name)
    return RustOp(
        op=op,
        function=names.rust_identifier(function),
        desc=function.upper(),
        doc=tuple(
            docs.function(
                op,
                prose,
                inputs=[p.name for p in parameters],
                required=[(p.name, p.attr) for p in required.values() if p.attr],
                enums=enums,
                options=options.name if options else None,
                linked=docstring is not None,
            )
        ),
        deprecated=op.deprecation.explanation.strip() if op.deprecation else None,
        parameters=(*parameters, *required.values()),
        options=options,
        values=tuple((required | optional)[attr.name].value for attr in given),
        results=tuple(results),
        output=base + "Output" if len(results) > 1 else "",
    )


def rust_crate(
    ops: Sequence[OpDef],
    docstrings: Mapping[str, Docstring],
    source: str,
    default_group: str = rules.DEFAULT_GROUP,
) -> RustCrate:
    """Decides everything about the crate.

    Args:
        ops: The registry; private ops are left out.
        docstrings: Docstrings of the Python wrappers, by op.
        source: The name of the registry's file, for errors.
        default_group: The group of ops for which no rule names one.

    Raises:
        CodegenError: Two items would have the same name; every such name is in it.
    """
    public = [op for op in ops if not op.name.startswith(rules.PRIVATE_PREFIX)]
    enums = Enums.of_ops(public)
    groups: dict[str, list[RustOp]] = {}
    for op in public:
        docstring = docstrings.get(op.name)
        name = rules.group(op.name, docstring.file if docstring else None) or default_group
        groups.setdefault(name, []).append(rust_op(op, docstring, enums))
    sets = {
        tuple(types.by_number(value for value in attr.allowed if isinstance(value, DataType)))
        for op in public
        for attr in op.attrs
        if attr.allowed and attr.type in ("type", "list(type)")
    }
    ordered = sorted(sets, key=lambda s: (len(s), [types.data_type_word(t) for t in s]))
    crate = RustCrate(
        groups=tuple(
            Group(name, tuple(sorted(members, key=lambda op: op.desc)))
            for name, members in sorted(groups.items())
        ),
        enums=enums.all,
        type_sets={members: f"TYPES_{index}" for index, members in enumerate(ordered)},
    )
    _check_unique(crate, source)
    return crate


def _check_unique(crate: RustCrate, source: str) -> None:
    problems = Collector()
    functions = [op.function for op in crate.ops]
    items = [enum.name for enum in crate.enums]
    items += [op.options.name for op in crate.ops if op.options]
    items += [op.output for op in crate.ops if op.output]
    for kind, found in (("function", functions), ("type", items)):
        for name in names.collisions(found):
            problems.add(Location(source), f"two items would be the Rust {kind} `{name}`")
    problems.check()
