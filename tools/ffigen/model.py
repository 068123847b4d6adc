"""What the headers declare, in C's own words: frozen dataclasses, no Rust."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.errors import Location


@dataclass(frozen=True)
class Scalar:
    """A built-in or standard type by its C spelling: `int`, `bool`, `size_t`, `int64_t`."""

    spelling: str


@dataclass(frozen=True)
class Void:
    """`void`."""


@dataclass(frozen=True)
class Named:
    """A struct, union, enum or typedef of the headers, by its C name."""

    name: str


@dataclass(frozen=True)
class Pointer:
    """A pointer.

    Attributes:
        to: The pointed-to type.
        const: The pointed-to type is `const`.
    """

    to: CType
    const: bool


@dataclass(frozen=True)
class Reference:
    """A C++ reference, which is passed as a pointer that is never null."""

    to: CType
    const: bool


@dataclass(frozen=True)
class Array:
    """An array of `length` elements."""

    of: CType
    length: int


@dataclass(frozen=True)
class Param:
    """A parameter; `name` is empty where the header gives none."""

    name: str
    type: CType


@dataclass(frozen=True)
class FunctionType:
    """The type of a function with C calling convention and a fixed number of parameters."""

    result: CType
    params: tuple[Param, ...]


CType = Scalar | Void | Named | Pointer | Reference | Array | FunctionType


@dataclass(frozen=True)
class Item:
    """What every declaration has.

    Attributes:
        name: The C name.
        where: Its place.
        doc: The comment before it, with comment markers stripped; may be empty.
    """

    name: str
    where: Location
    doc: str


@dataclass(frozen=True)
class Function(Item):
    """A function with external linkage.

    Attributes:
        symbol: The name in a library's symbol table (differs from `name` for C++ linkage).
        type: Result and parameters.
        inline: It is defined in the header (`inline` or `static`), so that no library has it.
    """

    symbol: str
    type: FunctionType
    inline: bool


@dataclass(frozen=True)
class Typedef(Item):
    """`typedef target name`."""

    target: CType


@dataclass(frozen=True)
class Field:
    """A member of a struct or union; `offset` is in bytes."""

    name: str
    type: CType
    offset: int
    doc: str


@dataclass(frozen=True)
class Record(Item):
    """A struct or union.

    Attributes:
        union: It is a union.
        fields: Its members; None for a type that the headers declare but do not define.
        size: Bytes; 0 without a definition.
        align: Bytes; 0 without a definition.
    """

    union: bool
    fields: tuple[Field, ...] | None
    size: int
    align: int


@dataclass(frozen=True)
class Enumerator:
    """A named value of an enum."""

    name: str
    value: int
    doc: str


@dataclass(frozen=True)
class Enum(Item):
    """A named enum; `underlying` is its integer type."""

    underlying: Scalar
    values: tuple[Enumerator, ...]
    size: int


@dataclass(frozen=True)
class Constant(Item):
    """An integer constant: macro, enumerator of an unnamed enum, or namespace-scope constant."""

    type: Scalar
    value: int


@dataclass(frozen=True)
class Text(Item):
    """A string constant."""

    value: str


@dataclass(frozen=True)
class Alias(Item):
    """A macro whose body is another name of the headers: an enumerator or a type."""

    target: str


@dataclass(frozen=True)
class FunctionMacro(Item):
    """A macro with parameters."""


@dataclass(frozen=True)
class OpaqueMacro(Item):
    """A macro whose body is neither a constant nor a name of the headers.

    Attributes:
        tokens: The body.
        error: What the compiler says about the body as an integer expression.
    """

    tokens: tuple[str, ...]
    error: str


AnyItem = Function | Typedef | Record | Enum | Constant | Text | Alias | FunctionMacro | OpaqueMacro


@dataclass(frozen=True)
class Header:
    """One header.

    Attributes:
        path: Relative to the include folder.
        items: Declarations in the order of the header; a type that is declared in several headers
            belongs to the one that defines it, else to the first that declares it.
    """

    path: str
    items: tuple[AnyItem, ...]
