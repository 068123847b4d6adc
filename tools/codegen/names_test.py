"""Rust names."""

from __future__ import annotations

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
    assert names.screaming_case("DataFormat") == "DATA_FORMAT"


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
