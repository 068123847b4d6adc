"""Rust names."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.codegen import names

settings.register_profile("tfp", deadline=None, derandomize=True, database=None)
settings.load_profile("tfp")

IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
CAMEL = st.lists(st.from_regex(r"[A-Z][a-z]{1,6}", fullmatch=True), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MatMul", "mat_mul"),
        ("BiasAdd", "bias_add"),
        ("Conv2DBackpropInput", "conv2d_backprop_input"),
        ("AvgPool3D", "avg_pool3d"),
        ("FFT", "fft"),
        ("IFFT2D", "ifft2d"),
        ("XlaSetDynamicDimensionSize", "xla_set_dynamic_dimension_size"),
        ("ParseExampleV2", "parse_example_v2"),
        ("TFRecordReader", "tf_record_reader"),
        ("already_snake", "already_snake"),
        ("kebab-case", "kebab_case"),
        ("QuantizeV2", "quantize_v2"),
    ],
)
def test_snake_case(name: str, expected: str) -> None:
    assert names.snake_case(name) == expected


def test_other_cases() -> None:
    assert names.camel_case("bias_add") == "BiasAdd"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("type", "r#type"),
        ("gen", "r#gen"),
        ("async", "r#async"),
        ("self", "self_"),
        ("crate", "crate_"),
        ("_", "__"),
        ("union", "union"),
        ("TF_Tensor", "TF_Tensor"),
    ],
)
def test_rust_identifier(name: str, expected: str) -> None:
    assert names.rust_identifier(name) == expected


@pytest.mark.parametrize("name", ["", "2x", "a-b", "a b", "naïve", "a\n"])
def test_what_is_no_identifier_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not an identifier"):
        names.rust_identifier(name)


@given(IDENTIFIERS)
def test_identifiers_are_never_keywords(name: str) -> None:
    written = names.rust_identifier(name)
    assert written.startswith("r#") or written not in names.KEYWORDS | names.PATH_KEYWORDS
    assert written in (name, f"r#{name}", f"{name}_")


@given(CAMEL)
def test_snake_and_camel_are_inverse(parts: list[str]) -> None:
    name = "".join(parts)
    assert names.snake_case(name) == "_".join(parts).lower()
    assert names.camel_case(names.snake_case(name)) == name


@given(IDENTIFIERS)
def test_snake_case_is_lower_case_and_stable(name: str) -> None:
    once = names.snake_case(name)
    assert set(once) <= set(string.ascii_lowercase + string.digits + "_")
    assert names.snake_case(once) == once


@given(st.lists(IDENTIFIERS))
def test_collisions(scope: list[str]) -> None:
    assert names.collisions(scope) == sorted({name for name in scope if scope.count(name) > 1})


def test_numbers_that_would_join_stay_apart() -> None:
    assert names.camel_case("dense_1_2") == "Dense1_2"
    assert names.camel_case("conv2d_1") == "Conv2d1"
    assert names.snake_case("lower_64bits") == "lower64_bits"


@pytest.mark.parametrize(
    ("text", "field", "kind", "constant"),
    [
        ("block_1_expand", "block_1_expand", "Block1Expand", "BLOCK_1_EXPAND"),
        ("Conv2D", "conv2d", "Conv2d", "CONV2D"),
        ("HTTPServer", "http_server", "HttpServer", "HTTP_SERVER"),
        ("a__b", "a_b", "AB", "A_B"),
        ("a_1_2", "a_1_2", "A1_2", "A_1_2"),
        ("type", "type_", "Type", "TYPE"),
        ("self", "self_", "SelfSelf", "SELF"),
        ("1x", "self_1x", "Self1x", "SELF_1X"),
        ("é", "self_", "SelfSelf", "SELF"),
    ],
)
def test_any_text_gets_a_name(text: str, field: str, kind: str, constant: str) -> None:
    """The default is the worst one: a word that is no identifier of Rust."""
    assert names.field_name(text, "self") == field
    assert names.type_name(text, "Self") == kind
    assert names.constant_name(text, "self") == constant


@given(st.text(), st.sampled_from([None, 5, 48]))
def test_names_of_any_text_are_identifiers(text: str, longest: int | None) -> None:
    field = names.field_name(text, "layer", longest)
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?", field)
    for name in (field, names.type_name(text, "Layer"), names.constant_name(text, "layer")):
        assert names.rust_identifier(name) == name
    assert names.field_name(field, "layer") == field


def test_a_scope_hands_out_each_name_once() -> None:
    scope = names.Scope(["a"])
    wished = [
        "a",
        "a",
        "a_3",
        "a",
        "type_",
        "type_",
        "Dense",
        "Dense",
        "Dense1",
        "Dense1",
        "X",
        "X",
    ]
    assert [scope.unique(wish) for wish in [*wished, "MAX", "MAX"]] == [
        "a_2", "a_3", "a_3_2", "a_4", "type_", "type_2", "Dense", "Dense2", "Dense1", "Dense1_2",
        "X", "X2", "MAX", "MAX_2",
    ]  # fmt: skip
    assert scope.unique("a", "", "b", "c") == "b"


@given(st.lists(st.text(max_size=4), max_size=30))
def test_names_of_a_scope_differ(texts: list[str]) -> None:
    scope = names.Scope()
    found = [scope.unique(names.field_name(text, "x")) for text in texts]
    assert not names.collisions(found)
