"""Messages of the registry -> the model, with every problem in one report."""

from __future__ import annotations

import itertools
from typing import Any

from tools.codegen.errors import Collector, Location
from tools.opgen import parse
from tools.opgen.model import (
    ATTR_TYPES,
    DATA_TYPES,
    ArgDef,
    AttrDef,
    DataType,
    Deprecation,
    Func,
    OpDef,
    Scalar,
    Shape,
    Tensor,
    Value,
)

_TYPE_NAMES = {number: name for name, number in DATA_TYPES.items()}
# The field of an AttrValue that holds an attribute of a type.
_FIELDS = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}


class _Reader:
    def __init__(self, source: str) -> None:
        self.problems = Collector()
        self._source = source
        self._op = ""

    def _refuse(self, what: str) -> None:
        self.problems.add(Location(self._source), f"op {self._op}: {what}")

    def _data_type(self, number: int, where: str) -> DataType:
        if number not in _TYPE_NAMES:
            self._refuse(f"{where}: data type {number} is not in tools/opgen/model.py")
            return DataType("DT_INVALID")
        return DataType(_TYPE_NAMES[number])

    def _scalar(self, kind: str, value: Any, where: str) -> Scalar:
        if kind == "type":
            return self._data_type(value, where)
        if kind == "shape":
            return Shape(None if value.unknown_rank else tuple(d.size for d in value.dim))
        if kind == "tensor":
            return Tensor(value.SerializeToString(deterministic=True))
        if kind == "func":
            return Func(value.name)
        scalar: Scalar = value
        return scalar

    def _value(self, attr_type: str, value: Any, where: str) -> Value | None:
        kind = attr_type.removeprefix("list(").removesuffix(")")
        expected = "list" if attr_type != kind else _FIELDS[kind]
        found = value.WhichOneof("value")
        if found != expected:
            self._refuse(f"{where}: expected field {expected!r} for {attr_type}, found {found!r}")
            return None
        if attr_type == kind:
            return self._scalar(kind, getattr(value, expected), where)
        elements = getattr(value.list, _FIELDS[kind])
        others = [f.name for f, _ in value.list.ListFields() if f.name != _FIELDS[kind]]
        if others:
            self._refuse(f"{where}: {attr_type} with elements of {others}")
        return tuple(self._scalar(kind, element, where) for element in elements)

    def _arg(self, arg: Any, attrs: dict[str, str]) -> ArgDef:
        ways = [bool(arg.type), bool(arg.type_attr), bool(arg.type_list_attr)]
        if sum(ways) != 1:
            self._refuse(
                f"argument {arg.name}: expected one of type, type_attr, type_list_attr,"
                f" found {sum(ways)}"
            )
        for name, expected in (
            (arg.type_attr, "type"),
            (arg.number_attr, "int"),
            (arg.type_list_attr, "list(type)"),
        ):
            if name and attrs.get(name) != expected:
                self._refuse(
                    f"argument {arg.name}: attribute {name!r} should have type {expected},"
                    f" found {attrs.get(name)}"
                )
        return ArgDef(
            name=arg.name,
            description=arg.description,
            type=self._data_type(arg.type, f"argument {arg.name}") if arg.type else None,
            type_attr=arg.type_attr,
            number_attr=arg.number_attr,
            type_list_attr=arg.type_list_attr,
            is_ref=arg.is_ref,
        )

    def _attr(self, attr: Any) -> AttrDef | None:
        where = f"attribute {attr.name}"
        if attr.type not in ATTR_TYPES:
            self._refuse(f"{where}: type {attr.type!r}; known are {sorted(ATTR_TYPES)}")
            return None
        default: Value | None = None
        if attr.HasField("default_value"):
            default = self._value(attr.type, attr.default_value, f"{where}, default")
        allowed: tuple[Scalar, ...] = ()
        if attr.HasField("allowed_values"):
            kind = attr.type.removeprefix("list(").removesuffix(")")
            if kind not in ("string", "type"):
                self._refuse(f"{where}: allowed values on type {attr.type}")
            else:
                found = self._value(f"list({kind})", attr.allowed_values, f"{where}, allowed")
                allowed = tuple(dict.fromkeys(found)) if isinstance(found, tuple) else ()
        return AttrDef(
            name=attr.name,
            type=attr.type,
            default=default,
            description=attr.description,
            minimum=attr.minimum if attr.has_minimum else None,
            allowed=allowed,
        )

    def op(self, op: Any) -> OpDef:
        self._op = op.name
        types = {attr.name: attr.type for attr in op.attr}
        if len(types) != len(op.attr):
            self._refuse("two attributes have one name")
        deprecation = None
        if op.HasField("deprecation"):
            deprecation = Deprecation(op.deprecation.version, op.deprecation.explanation)
        attrs = (self._attr(attr) for attr in op.attr)
        return OpDef(
            name=op.name,
            inputs=tuple(self._arg(arg, types) for arg in op.input_arg),
            outputs=tuple(self._arg(arg, types) for arg in op.output_arg),
            attrs=tuple(attr for attr in attrs if attr is not None),
            control_outputs=tuple(op.control_output),
            summary=op.summary,
            description=op.description,
            deprecation=deprecation,
            is_stateful=op.is_stateful,
            is_commutative=op.is_commutative,
            is_aggregate=op.is_aggregate,
            allows_uninitialized_input=op.allows_uninitialized_input,
            is_distributed_communication=op.is_distributed_communication,
        )


def read_op_list(data: bytes, name: str) -> tuple[OpDef, ...]:
    """Reads every op of an OpList, sorted by name; private ones (`_Name`) are among them.

    Args:
        data: The bytes of the file, serialized or (name ends in `.pbtxt`) text.
        name: The file's name, for errors.

    Raises:
        CodegenError: The input is not an OpList or contradicts itself; every problem is in it.
    """
    message = parse.parse_op_list(data, name, DATA_TYPES)
    reader = _Reader(name)
    ops = sorted((reader.op(op) for op in message.op), key=lambda op: op.name)
    for before, after in itertools.pairwise(ops):
        if before.name == after.name:
            reader.problems.add(Location(name), f"op {after.name}: registered twice")
    reader.problems.check()
    return tuple(ops)
