"""Documentation text: docstrings taken apart, Markdown, defaults."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.codegen.errors import CodegenError
from tools.opgen import markdown, types
from tools.opgen.docstrings import parse_docstrings
from tools.opgen.model import ArgDef, AttrDef, DataType, OpDef
from tools.opgen.prose import from_docstring

_WRAPPER = '''
def scale(x: Annotated[Any, T], by: float=1.0, name=None):
  r"""Scales.

  More.
  """
  return _ctx

Scale = tf_export("raw_ops.Scale")(_ops.to_raw_op(scale))
'''


def op(inputs: list[str], attrs: list[str], outputs: list[str]) -> OpDef:
    arg = [ArgDef(name, "", DataType("DT_FLOAT"), "", "", "", False) for name in inputs + outputs]
    return OpDef(
        "Scale",
        tuple(arg[: len(inputs)]),
        tuple(arg[len(inputs) :]),
        tuple(AttrDef(name, "float", 1.0, "", None, ()) for name in attrs),
        (),
        "",
        "",
        None,
        False,
        False,
        False,
        False,
        False,
    )


def test_docstrings_by_op() -> None:
    found = parse_docstrings({"a/gen_x_ops.py": _WRAPPER})
    assert found["Scale"].text == "Scales.\n\n  More.\n  "
    assert found["Scale"].file == "a/gen_x_ops.py"
    assert found["Scale"].function == "scale"


def test_an_export_without_a_docstring_is_an_error() -> None:
    text = _WRAPPER.replace("to_raw_op(scale)", "to_raw_op(other)")
    with pytest.raises(CodegenError, match=r"gen_x\.py:9: error: op Scale: .* function other"):
        parse_docstrings({"gen_x.py": text})


def test_docstring_parts() -> None:
    prose = from_docstring(
        "Scales a tensor\n  by a number.\n\n  Body.\n\n      code\n\n  Args:\n"
        "    x: A `Tensor`. Must be one of the following types: `half`, `float32`.\n"
        "      The values.\n        note: not an argument\n"
        "    by: An optional `float`. Defaults to `1.5`. The factor.\n"
        "    name: A name for the operation (optional).\n\n"
        "  Returns:\n    A `Tensor`. Has the same type as `x`. The result.\n  ",
        op(["x"], ["by"], ["y"]),
    )
    assert prose.summary == "Scales a tensor by a number."
    assert prose.body == "Body.\n\n    code"
    assert prose.args == {"x": "The values.\n  note: not an argument", "by": "The factor."}
    assert prose.results == {"y": "The result."}


def test_named_results() -> None:
    prose = from_docstring(
        "S.\n\n  Returns:\n    A tuple of `Tensor` objects (a, b).\n\n"
        "    a: A `Tensor` of type `int32`. First.\n    b: A `Tensor`.\n  ",
        op([], [], ["a", "b"]),
    )
    assert prose.results == {"a": "First."}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [a, b] and `[c]`", ["see \\[a, b\\] and `[c]`"]),
        ("a <b> https://x.org/y.", ["a \\<b\\> <https://x.org/y>."]),
        ("[text](https://x.org)", ["[text](https://x.org)"]),
        ("one ` tick", ["one ' tick"]),
        ("# Title\ntext", ["**Title**", "", "text"]),
        ("```python\nx\n\ny\n```\nz", ["```text", "x", "", "y", "```", "", "z"]),
        ("a\n\n    code\n      more\n\nb", ["a", "", "```text", "code", "  more", "```", "", "b"]),
        ("```\nnever closed", ["```text", "never closed", "```"]),
        ("* item\n\n    more of it", ["* item", "", "   more of it"]),
        ("", []),
    ],
)
def test_markdown(text: str, expected: list[str]) -> None:
    assert markdown.lines(text) == expected


@given(st.text(alphabet="ab `~#*[]<>\n", max_size=80))
def test_markdown_never_leaves_code_for_rust(text: str) -> None:
    fence = ""
    before = ""
    for line in markdown.lines(text):
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith(("```", "~~~")) and line.endswith("text"):
            fence = line[:3]
        else:
            assert before or not line.startswith("    ")
        before = line
    assert not fence


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_reads_as_the_same_float(value: float) -> None:
    assert struct.pack("<f", float(types.float_text(value))) == struct.pack("<f", value)


def test_value_texts() -> None:
    assert types.value_text(b'a"b') == '"a\\"b"'
    assert types.value_text((1.5, 2.0)) == "[1.5, 2]"
    assert types.value_text(DataType("DT_HALF")) == "float16"
