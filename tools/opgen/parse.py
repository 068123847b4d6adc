"""Bytes of an OpList -> messages; an unknown key is an error."""

from __future__ import annotations

from typing import Any

from google.protobuf import message, text_format, unknown_fields

from tools.codegen.errors import CodegenError, Collector, Location
from tools.opgen import schema


def parse_op_list(data: bytes, name: str, data_types: dict[str, int]) -> Any:
    """Reads a serialized or text-format OpList.

    Args:
        data: The bytes of the file.
        name: The file's name, for errors; text format if it ends in `.pbtxt`.
        data_types: Number by name of every DataType.

    Returns:
        A message of class `schema.op_list_class`.

    Raises:
        CodegenError: The bytes are not an OpList, or hold fields that the schema lacks.
    """
    op_list = schema.op_list_class(data_types)()
    try:
        if name.endswith(".pbtxt"):
            text_format.Parse(data.decode("utf-8"), op_list)
        else:
            op_list.ParseFromString(data)
    except text_format.ParseError as error:
        line, column = error.GetLine() or 0, error.GetColumn() or 0
        raise CodegenError.at(
            Location(name, line, column), f"not a text OpList: {error}"
        ) from error
    except (message.DecodeError, UnicodeDecodeError) as error:
        raise CodegenError.at(Location(name), f"not a serialized OpList: {error}") from error
    problems = Collector()
    _check_known(op_list, name, "OpList", problems)
    problems.check()
    return op_list


def _check_known(msg: Any, name: str, path: str, problems: Collector) -> None:
    for field in unknown_fields.UnknownFieldSet(msg):
        problems.add(
            Location(name),
            f"{path} holds field {field.field_number}, which tools/opgen/schema.py lacks",
        )
    for field, value in msg.ListFields():
        if field.message_type is None:
            continue
        children = value if field.is_repeated else [value]
        for child in children:
            label = getattr(child, "name", "")
            _check_known(
                child, name, f"{path}.{field.name}" + (f"[{label}]" if label else ""), problems
            )
