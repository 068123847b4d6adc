"""What an op registry says, in its own words: OpDef, ArgDef, AttrDef, AttrValue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

# tensorflow/core/framework/types.proto. `<name>_REF` is the number plus 100.
DATA_TYPES: dict[str, int] = {
    "DT_INVALID": 0,
    "DT_FLOAT": 1,
    "DT_DOUBLE": 2,
    "DT_INT32": 3,
    "DT_UINT8": 4,
    "DT_INT16": 5,
    "DT_INT8": 6,
    "DT_STRING": 7,
    "DT_COMPLEX64": 8,
    "DT_INT64": 9,
    "DT_BOOL": 10,
    "DT_QINT8": 11,
    "DT_QUINT8": 12,
    "DT_QINT32": 13,
    "DT_BFLOAT16": 14,
    "DT_QINT16": 15,
    "DT_QUINT16": 16,
    "DT_UINT16": 17,
    "DT_COMPLEX128": 18,
    "DT_HALF": 19,
    "DT_RESOURCE": 20,
    "DT_VARIANT": 21,
    "DT_UINT32": 22,
    "DT_UINT64": 23,
    "DT_FLOAT8_E5M2": 24,
    "DT_FLOAT8_E4M3FN": 25,
    "DT_FLOAT8_E4M3FNUZ": 26,
    "DT_FLOAT8_E4M3B11FNUZ": 27,
    "DT_FLOAT8_E5M2FNUZ": 28,
    "DT_INT4": 29,
    "DT_UINT4": 30,
    "DT_INT2": 31,
    "DT_UINT2": 32,
    "DT_FLOAT4_E2M1FN": 33,
}

# The attribute types of an AttrDef; `list(X)` for X of the first seven and `func`.
ATTR_TYPES = frozenset(
    ["string", "int", "float", "bool", "type", "shape", "tensor", "func"]
    + [f"list({t})" for t in ("string", "int", "float", "bool", "type", "shape", "tensor", "func")]
)


@dataclass(frozen=True)
class DataType:
    """A data type by its name in types.proto, such as `DT_FLOAT`."""

    name: str


@dataclass(frozen=True)
class Shape:
    """A TensorShapeProto.

    Attributes:
        dims: Sizes, -1 for an unknown one; None for an unknown rank.
    """

    dims: tuple[int, ...] | None


@dataclass(frozen=True)
class Tensor:
    """A TensorProto; nothing here looks inside.

    Attributes:
        serialized: The message.
    """

    serialized: bytes


@dataclass(frozen=True)
class Func:
    """A NameAttrList without attributes.

    Attributes:
        name: The function's name; empty for "no function".
    """

    name: str


Scalar: TypeAlias = bytes | bool | int | float | DataType | Shape | Tensor | Func
Value: TypeAlias = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True)
class ArgDef:
    """An input or output.

    Attributes:
        name: Unique among the op's inputs, and among its outputs.
        description: Text; empty in most binaries.
        type: The fixed data type, or None.
        type_attr: Attribute that holds the data type, or empty.
        number_attr: Attribute that holds the length of a list of one type, or empty.
        type_list_attr: Attribute that holds the data types of a list, or empty.
        is_ref: The tensor is a reference to a TF1 variable.
    """

    name: str
    description: str
    type: DataType | None
    type_attr: str
    number_attr: str
    type_list_attr: str
    is_ref: bool

    @property
    def is_list(self) -> bool:
        """Says whether the argument is a list of tensors."""
        return bool(self.number_attr or self.type_list_attr)


@dataclass(frozen=True)
class AttrDef:
    """An attribute.

    Attributes:
        name: Unique in the op.
        type: One of `ATTR_TYPES`.
        default: The default value, or None for a required attribute.
        description: Text; empty in most binaries.
        minimum: Least value of an int, least length of a list, or None.
        allowed: Allowed values of a string or type; empty for no limit.
    """

    name: str
    type: str
    default: Value | None
    description: str
    minimum: int | None
    allowed: tuple[Scalar, ...]


@dataclass(frozen=True)
class Deprecation:
    """From which GraphDef version on an op is refused, and what to use in its place."""

    version: int
    explanation: str


@dataclass(frozen=True)
class OpDef:
    """One op of the registry."""

    name: str
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    attrs: tuple[AttrDef, ...]
    control_outputs: tuple[str, ...]
    summary: str
    description: str
    deprecation: Deprecation | None
    is_stateful: bool
    is_commutative: bool
    is_aggregate: bool
    allows_uninitialized_input: bool
    is_distributed_communication: bool

    def attr(self, name: str) -> AttrDef:
        """Returns the attribute of that name.

        Raises:
            KeyError: There is none.
        """
        for attr in self.attrs:
            if attr.name == name:
                return attr
        raise KeyError(f"op {self.name} has no attribute {name!r}; it has {self.attr_names}")

    @property
    def attr_names(self) -> tuple[str, ...]:
        """The names of all attributes, in the registry's order."""
        return tuple(attr.name for attr in self.attrs)
