"""Rust text."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.codegen import rust
from tools.codegen.errors import CodegenError
from tools.codegen.render import environment, render
from tools.codegen.rust_code import code_only
from tools.codegen.rustfmt import format_rust

settings.register_profile("tfp", deadline=None, derandomize=True, database=None)
settings.load_profile("tfp")

RUSTFMT = str(Path(os.environ["RUSTFMT"]).absolute()) if "RUSTFMT" in os.environ else "rustfmt"


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_string_literals_read_back(text: str) -> None:
    literal = rust.string_literal(text)
    # For ASCII, Rust's escapes mean the same in Python.
    assert ast.literal_eval(literal) == text


@given(st.text())
def test_string_literals_are_one_line(text: str) -> None:
    assert not set("\n\r\0") & set(rust.string_literal(text))


def test_c_string_literals() -> None:
    assert rust.c_string_literal('a"b') == 'c"a\\"b"'
    with pytest.raises(ValueError, match="holds a NUL"):
        rust.c_string_literal("a\0b")


def test_documentation_reads_as_it_was_written() -> None:
    text = (
        "See [x] and <b>, not `[y]`;\nsnake_case stays.\n\n  indented = 1;\n\nEnd_ http://a.b/c_d."
    )
    assert rust.plain_doc(text) == [
        "See \\[x\\] and \\<b\\>, not `[y]`;",
        "snake_case stays.",
        "",
        "```text",
        "indented = 1;",
        "```",
        "",
        "End\\_ <http://a.b/c_d>.",
    ]


@given(st.text(alphabet="ab \n`[]<>_*|#/:", max_size=60))
def test_documentation_closes_every_fence(text: str) -> None:
    lines = rust.plain_doc(text)
    assert sum(line.startswith("```") for line in lines) % 2 == 0
    assert not lines or (lines[0] and lines[-1])


@given(st.text(alphabet="ab[]<>_* ", max_size=40))
def test_escapes_lose_nothing(text: str) -> None:
    escaped = rust.escape_markdown(text)
    assert re.sub(r"\\(.)", r"\1", escaped) == text
    assert not re.search(r"(?<!\\)[\[\]<>*]", escaped)


def test_doc_comment() -> None:
    assert rust.doc_comment(["a", "", "b"], 4) == "    /// a\n    ///\n    /// b\n"
    assert rust.doc_comment([], 4) == ""
    assert rust.doc_comment(["m"], marker="//!") == "//! m\n"


def test_rustfmt_formats_and_refuses() -> None:
    assert format_rust({"a.rs": "fn  main( ){}"}, RUSTFMT) == {"a.rs": "fn main() {}\n"}
    with pytest.raises(CodegenError, match=r"b\.rs: error: rustfmt refuses"):
        format_rust({"a.rs": "fn main() {}", "b.rs": "fn {"}, RUSTFMT)


def test_rustfmt_that_is_not_there() -> None:
    with pytest.raises(OSError, match="no-such-rustfmt"):
        format_rust({"a.rs": ""}, "/no-such-rustfmt")


MARKER = "inj3ct"
HOSTILE = (
    *("\n", "\r", "\r\n", "\0", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\ud800", "\udfff"),
    *("\u202e", "\u2066", "\u200f", "\ufeff", "*/", "/*", '"', '"#', '\\"', "\\", "`", "{{", "}}"),
    *("{% raw %}", "//", "'", "//!", "```"),
)


@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=3), max_size=6).map("".join))
def test_a_text_of_a_stranger_stays_where_it_was_put(text: str) -> None:
    name = f"{text} fn {MARKER}() {{}} {text}"
    for line in (
        f"// {rust.one_line(name)}",
        f"/// {rust.code_span(name)}: a layer",
        f"/* {rust.c_comment(name)} */",
        f"let x = {rust.string_literal(name)};",
    ):
        assert line.isprintable()
        line.encode()
        assert MARKER not in code_only(f"{line}\nfn main() {{}}\n")
        assert "fn main() {}" in code_only(f"{line}\nfn main() {{}}\n")


def test_a_long_text_is_cut() -> None:
    assert len(rust.one_line("x" * 70_000)) == 203


def test_code_without_comments_and_strings() -> None:
    text = "a /* b /* c */ d */ e 'f' '\"' g \"h\\\"i\" r#\"j\"k\"# l<'m>(b'\\'') // n\no"
    assert code_only(text).split() == ["a", "e", "g", "l<'m>(", ")", "o"]
    with pytest.raises(ValueError, match="does not end"):
        code_only("/* /* */")


def test_a_template_prints_no_text_that_was_not_written_for_it(tmp_path: Path) -> None:
    (tmp_path / "t.j2").write_text("// {{ x }}\n")
    env = environment(tmp_path, rust.check_one_line)
    assert render(env, "t.j2", {"x": rust.one_line("a\nb")}) == "// a\\u{a}b\n"
    assert render(env, "t.j2", {"x": rust.RustText("a\nb")}) == "// a\nb\n"
    for text in ("a\nb", "a\rb", "\u2028", "\u202e", "\0", "\ud800"):
        with pytest.raises(ValueError, match="goes into a file as it is"):
            render(env, "t.j2", {"x": text})
