from __future__ import annotations

import pytest
import tomllib
from hypothesis import given
from hypothesis import strategies as st

from tools.provision.pins import FILE
from tools.provision.toml import parse_toml


def test_the_pins_are_read_as_tomllib_reads_them() -> None:
    text = FILE.read_text()
    assert parse_toml(text) == tomllib.loads(text)


STRING = st.text(st.characters(codec="ascii", exclude_characters='"\\\x7f', min_codepoint=32))
VALUE = STRING | st.integers(0, 10**12) | st.lists(STRING, max_size=4)
KEY = st.from_regex(r"[a-z][a-z_-]{0,8}", fullmatch=True)


def written(value: str | int | list[str]) -> str:
    if isinstance(value, list):
        return "[\n" + "".join(f"  {written(one)}, # a [comment]\n" for one in value) + "]"
    return f'"{value}"' if isinstance(value, str) else f"{value:_}"


@given(st.dictionaries(KEY, st.dictionaries(KEY, VALUE, max_size=4), max_size=4))
def test_what_is_read_is_what_tomllib_reads(tables: dict[str, dict[str, str]]) -> None:
    text = "".join(
        f"[{name}]  # a comment\n"
        + "".join(f"{key} = {written(one)}\n" for key, one in table.items())
        for name, table in tables.items()
    )
    assert parse_toml(text) == tomllib.loads(text) == tables


@pytest.mark.parametrize("line", ["a", "a = ", "a = b", "a = [1", "a b = 1", "[a", 'a = "\\n"'])
def test_what_is_not_read_is_said_with_its_line(line: str) -> None:
    with pytest.raises(ValueError, match="line 2: "):
        parse_toml(f"b = 1\n{line}\n")
