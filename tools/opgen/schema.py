"""The messages of TensorFlow's op registry, declared without TensorFlow.

Field numbers and names are those of tensorflow/core/framework/{op_def,attr_value,tensor,
tensor_shape,full_type}.proto. Enumerations are kept as numbers. Loading TensorFlow's own generated
modules would import all of TensorFlow.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "tensorflow"
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "float": _FIELD.TYPE_FLOAT,
    "bool": _FIELD.TYPE_BOOL,
    "enum": _FIELD.TYPE_ENUM,
}

# Message -> "number type name"; a leading `*` on the type means repeated, `|` a member of the
# oneof `value`.
_MESSAGES: dict[str, str] = {
    "OpList": "1 *OpDef op",
    "OpDef": """
        1 string name
        2 *OpDef.ArgDef input_arg
        3 *OpDef.ArgDef output_arg
        4 *OpDef.AttrDef attr
        5 string summary
        6 string description
        8 OpDeprecation deprecation
        16 bool is_aggregate
        17 bool is_stateful
        18 bool is_commutative
        19 bool allows_uninitialized_input
        20 *string control_output
        21 bool is_distributed_communication
    """,
    "OpDef.ArgDef": """
        1 string name
        2 string description
        3 enum type
        4 string type_attr
        5 string number_attr
        6 string type_list_attr
        7 *ResourceHandleProto.DtypeAndShape handle_data
        16 bool is_ref
        17 FullTypeDef experimental_full_type
    """,
    "OpDef.AttrDef": """
        1 string name
        2 string type
        3 AttrValue default_value
        4 string description
        5 bool has_minimum
        6 int64 minimum
        7 AttrValue allowed_values
    """,
    "OpDeprecation": """
        1 int32 version
        2 string explanation
    """,
    "AttrValue": """
        1 |AttrValue.ListValue list
        2 |bytes s
        3 |int64 i
        4 |float f
        5 |bool b
        6 |enum type
        7 |TensorShapeProto shape
        8 |TensorProto tensor
        9 |string placeholder
        10 |NameAttrList func
    """,
    "AttrValue.ListValue": """
        2 *bytes s
        3 *int64 i
        4 *float f
        5 *bool b
        6 *enum type
        7 *TensorShapeProto shape
        8 *TensorProto tensor
        9 *NameAttrList func
    """,
    "NameAttrList": "1 string name",
    "TensorShapeProto": """
        2 *TensorShapeProto.Dim dim
        3 bool unknown_rank
    """,
    "TensorShapeProto.Dim": """
        1 int64 size
        2 string name
    """,
    "TensorProto": """
        1 enum dtype
        2 TensorShapeProto tensor_shape
        3 int32 version_number
        4 bytes tensor_content
        5 *float float_val
        7 *int32 int_val
        8 *bytes string_val
        10 *int64 int64_val
        11 *bool bool_val
    """,
    "ResourceHandleProto": "",
    "ResourceHandleProto.DtypeAndShape": """
        1 enum dtype
        2 TensorShapeProto shape
    """,
    "FullTypeDef": """
        1 enum type_id
        2 *FullTypeDef args
        3 string s
        4 int64 i
    """,
}


def _add_fields(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    for line in filter(None, (row.strip() for row in text.split("\n"))):
        number, kind, name = line.split()
        field = message.field.add(name=name, number=int(number))
        field.label = _FIELD.LABEL_REPEATED if kind[0] == "*" else _FIELD.LABEL_OPTIONAL
        if kind[0] == "|":
            if not message.oneof_decl:
                message.oneof_decl.add(name="value")
            field.oneof_index = 0
        kind = kind.lstrip("*|")
        if kind == "enum":
            field.type, field.type_name = _FIELD.TYPE_ENUM, f".{_PACKAGE}.Number"
        elif kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"


def _file(data_types: dict[str, int]) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="tfp/op_list.proto", package=_PACKAGE, syntax="proto3"
    )
    numbers = file.enum_type.add(name="Number")
    for label, number in sorted(data_types.items(), key=lambda item: item[1]):
        numbers.value.add(name=label, number=number)
    messages: dict[str, descriptor_pb2.DescriptorProto] = {}
    for name, fields in _MESSAGES.items():
        outer, _, inner = name.rpartition(".")
        if outer:
            message = messages[outer].nested_type.add(name=inner)
        else:
            message = file.message_type.add(name=name)
        messages[name] = message
        _add_fields(message, fields)
    return file


def op_list_class(data_types: dict[str, int]) -> Any:
    """Returns the message class of `tensorflow.OpList`.

    Args:
        data_types: Number by name of every DataType, such as `DT_FLOAT`; text input may use them.
    """
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file(data_types))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.OpList"))
