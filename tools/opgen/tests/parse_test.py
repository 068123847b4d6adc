"""What is refused in an OpList, and what an error says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.codegen.errors import CodegenError
from tools.opgen import schema
from tools.opgen.model import DATA_TYPES, DataType, Shape
from tools.opgen.read import read_op_list
from tools.opgen.tests import suite


def refused(text: str) -> str:
    with pytest.raises(CodegenError) as error:
        read_op_list(text.encode(), "bad.pbtxt")
    return str(error.value)


def test_text_that_does_not_parse_names_its_place() -> None:
    assert refused('op { name: "A"\n  nonsense: 1 }').startswith("bad.pbtxt:2:")


def test_a_field_that_the_schema_lacks_is_an_error() -> None:
    op = bytes([0x0A, 1, ord("A")]) + bytes([0xF8, 0x01, 7])
    with pytest.raises(CodegenError, match=r"OpList\.op\[A\] holds field 31"):
        read_op_list(bytes([0x0A, len(op)]) + op, "ops.pb")


def test_bytes_that_are_no_op_list() -> None:
    with pytest.raises(CodegenError, match="not a serialized OpList"):
        read_op_list(b"\x0a\xff", "ops.pb")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_ops_or_an_error_with_the_file(data: bytes) -> None:
    try:
        read_op_list(data, "ops.pb")
    except CodegenError as error:
        assert all(where.file == "ops.pb" for where, _ in error.found)


def test_every_problem_is_in_one_report() -> None:
    text = refused(
        """
        op { name: "A" input_arg { name: "x" } }
        op { name: "B" attr { name: "a" type: "complex" } }
        op { name: "C" input_arg { name: "x" type_attr: "T" } attr { name: "T" type: "int" } }
        op { name: "D" attr { name: "a" type: "int" default_value { f: 1 } } }
        op { name: "E" attr { name: "a" type: "int" allowed_values { list { i: 1 } } } }
        op { name: "F" attr { name: "a" type: "type" default_value { type: 77 } } }
        op { name: "G" attr { name: "a" type: "int" } attr { name: "a" type: "int" } }
        op { name: "H" attr { name: "a" type: "list(int)" default_value { list { f: 1 } } } }
        """
    )
    expected = [
        "op A: argument x: expected one of type, type_attr, type_list_attr, found 0",
        "op B: attribute a: type 'complex'",
        "op C: argument x: attribute 'T' should have type type, found int",
        "op D: attribute a, default: expected field 'i' for int, found 'f'",
        "op E: attribute a: allowed values on type int",
        "op F: attribute a, default: data type 77",
        "op G: two attributes have one name",
        "op H: attribute a, default: list(int) with elements of ['f']",
    ]
    for part in expected:
        assert part in text


def test_an_op_registered_twice() -> None:
    assert "op A: registered twice" in refused('op { name: "A" } op { name: "A" }')


def test_binary_and_text_give_the_same_model() -> None:
    text = suite.CONSTRUCTS.read_bytes()
    from_text = read_op_list(text, "constructs.pbtxt")
    from google.protobuf import text_format

    message = text_format.Parse(text.decode(), schema.op_list_class(DATA_TYPES)())
    assert read_op_list(message.SerializeToString(), "constructs.pb") == from_text


def test_values_keep_their_kind() -> None:
    ops = {op.name: op for op in read_op_list(suite.CONSTRUCTS.read_bytes(), "c.pbtxt")}
    optional = ops["Optional"]
    assert optional.attr("shape").default == Shape(None)
    assert optional.attr("partial").default == Shape((2, -1))
    assert optional.attr("dtypes").default == (DataType("DT_INT32"), DataType("DT_BOOL"))
    assert optional.attr("shapes").default == ()
    assert ops["Required"].attr("i").minimum == -1
    with pytest.raises(KeyError, match="op Required has no attribute 'nope'"):
        ops["Required"].attr("nope")
