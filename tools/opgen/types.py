"""The Rust types of attributes, and their values as Rust and as documentation."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from tools.codegen.rust import string_literal
from tools.opgen.model import DATA_TYPES, DataType, Func, Scalar, Shape, Tensor, Value


@dataclass(frozen=True)
class AttrType:
    """How an attribute type looks in Rust.

    Attributes:
        kind: The variant of the core's `AttrKind`.
        argument: The type of a parameter.
        field: The type of an options field, which wraps it in `Option`.
        words: What the documentation calls it.
    """

    kind: str
    argument: str
    field: str
    words: str


_TYPES: dict[str, AttrType] = {
    "int": AttrType("Int", "i64", "i64", "an integer"),
    "float": AttrType("Float", "f32", "f32", "a float"),
    "bool": AttrType("Bool", "bool", "bool", "a truth value"),
    "string": AttrType("String", "impl Into<Bytes<'a>>", "Bytes<'a>", "a string"),
    "type": AttrType("Type", "DataType", "DataType", "an element type"),
    "shape": AttrType("Shape", "&'a Shape", "&'a Shape", "a shape"),
    "tensor": AttrType("Tensor", "&'a Tensor", "&'a Tensor", "a tensor"),
    "func": AttrType("Func", "impl Into<FuncRef<'a>>", "FuncRef<'a>", "a function"),
    "list(int)": AttrType("IntList", "&'a [i64]", "&'a [i64]", "integers"),
    "list(float)": AttrType("FloatList", "&'a [f32]", "&'a [f32]", "floats"),
    "list(bool)": AttrType("BoolList", "&'a [bool]", "&'a [bool]", "truth values"),
    "list(string)": AttrType("StringList", "&'a [&'a str]", "&'a [&'a str]", "strings"),
    "list(type)": AttrType("TypeList", "&'a [DataType]", "&'a [DataType]", "element types"),
    "list(shape)": AttrType("ShapeList", "&'a [Shape]", "&'a [Shape]", "shapes"),
    "list(tensor)": AttrType("TensorList", "&'a [Tensor]", "&'a [Tensor]", "tensors"),
    "list(func)": AttrType("FuncList", "&'a [FuncRef<'a>]", "&'a [FuncRef<'a>]", "functions"),
}
BYTES_LIST = AttrType("StringList", "&'a [Bytes<'a>]", "&'a [Bytes<'a>]", "byte strings")

# Names of element types as Python and the core print them, where they are not `DT_<NAME>`.
_SPELLED = {"DT_FLOAT": "float32", "DT_DOUBLE": "float64", "DT_HALF": "float16"}


def attr_type(name: str) -> AttrType:
    """Returns the Rust type of an attribute type such as `list(int)`."""
    return _TYPES[name]


def data_type_constant(dtype: DataType) -> str:
    """Returns the Rust constant of an element type: `DataType::FLOAT`."""
    return "DataType::" + dtype.name.removeprefix("DT_")


def data_type_word(dtype: DataType) -> str:
    """Returns the name of an element type as errors and Python print it: `float32`."""
    return _SPELLED.get(dtype.name, dtype.name.removeprefix("DT_").lower())


def by_number(dtypes: Iterable[DataType]) -> list[DataType]:
    """Returns element types without repetition, in the order of their numbers."""
    return sorted(set(dtypes), key=lambda dtype: DATA_TYPES[dtype.name])


def float_text(value: float) -> str:
    """Returns the shortest text that reads as the same 32-bit float."""
    exact = struct.pack("<f", value)
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == exact:
            return text
    return repr(value)


def _scalar_text(value: Scalar) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return float_text(value)
        case bytes():
            return string_literal(value.decode("utf-8", "replace"))
        case DataType():
            return data_type_word(value)
        case Shape(dims=None):
            return "unknown"
        case Shape(dims=dims):
            return "[" + ", ".join("?" if dim < 0 else str(dim) for dim in dims or ()) + "]"
        case Func(name=name):
            return name or "none"
        case Tensor():
            return "tensor"


def value_text(value: Value) -> str:
    """Returns a default as documentation shows it, without code marks."""
    if isinstance(value, tuple):
        return "[" + ", ".join(_scalar_text(element) for element in value) + "]"
    return _scalar_text(value)
