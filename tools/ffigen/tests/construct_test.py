"""The model of single constructs, and the text of comments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.ffigen import api, model, parse, read
from tools.ffigen.rules import HeaderRule

settings.register_profile("tfp", deadline=None, derandomize=True, database=None)
settings.load_profile("tfp")


def header(tmp_path: Path, text: str) -> model.Header:
    (tmp_path / "a.h").write_text(text)
    return read.read(parse.parse(tmp_path, ["a.h"]), ("a.h",))[0]


def one(tmp_path: Path, text: str) -> model.AnyItem:
    (item,) = header(tmp_path, text).items
    return item


@pytest.mark.parametrize(
    ("c", "rust"),
    [
        ("bool", "bool"),
        ("char", "c_char"),
        ("unsigned char", "c_uchar"),
        ("long", "c_long"),
        ("unsigned long long", "c_ulonglong"),
        ("float", "f32"),
        ("size_t", "usize"),
        ("int64_t", "i64"),
        ("uint8_t", "u8"),
        ("const char*", "*const c_char"),
        ("char* const", "*mut c_char"),
        ("const void* const*", "*const *const c_void"),
        ("void**", "*mut *mut c_void"),
        ("struct Opaque*", "*mut Opaque"),
        ("int (*)(void)", 'Option<unsafe extern "C" fn() -> c_int>'),
        ("void (**)(int)", '*mut Option<unsafe extern "C" fn(arg0: c_int)>'),
    ],
)
def test_types(tmp_path: Path, c: str, rust: str) -> None:
    """A parameter of each C type becomes the Rust type."""
    declaration = c.replace("(*)", "(*f)").replace("(**)", "(**f)")
    name = "" if declaration != c else " f"
    text = '#include <stddef.h>\n#include <stdint.h>\nstruct Opaque;\nextern "C" '
    found = header(tmp_path, f"{text}void take({declaration}{name});\n")
    crate = api.rust_crate([found], [HeaderRule("a.h", "a")], [])
    (function,) = crate.modules[0].functions
    assert [(p.name, p.type) for p in function.params] == [("f", rust)]


def test_a_function_declared_twice_is_one(tmp_path: Path) -> None:
    item = one(tmp_path, 'extern "C" int f(int a);\nextern "C" int f(int b);\n')
    assert isinstance(item, model.Function)
    assert (item.name, item.symbol, item.inline) == ("f", "f", False)
    assert item.where.line == 1


def test_a_type_belongs_to_the_header_that_defines_it(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("typedef struct T T;\nvoid f(T*);\n")
    (tmp_path / "b.h").write_text("struct T { int x; };\n")
    first, second = read.read(parse.parse(tmp_path, ["a.h", "b.h"]), ("a.h", "b.h"))
    assert [item.name for item in first.items] == ["f"]
    assert [item.name for item in second.items] == ["T"]


def test_offsets_and_sizes_are_the_compilers(tmp_path: Path) -> None:
    item = one(tmp_path, "typedef struct S { char a; double b; char c; } S;\n")
    assert isinstance(item, model.Record)
    assert item.fields is not None
    assert [f.offset for f in item.fields] == [0, 8, 16]
    assert (item.size, item.align, item.union) == (24, 8, False)


SCALARS = {"char": 1, "short": 2, "int": 4, "float": 4, "long": 8, "double": 8, "void*": 8}


@given(st.lists(st.sampled_from(sorted(SCALARS)), min_size=1, max_size=12))
def test_any_struct_has_the_layout_of_the_abi(
    tmp_path_factory: pytest.TempPathFactory, types: list[str]
) -> None:
    """The layout is that of the System V ABI: each member at the next multiple of its size."""
    fields = "".join(f"  {c} m{i};\n" for i, c in enumerate(types))
    item = one(tmp_path_factory.mktemp("s"), f"typedef struct S {{\n{fields}}} S;\n")
    assert isinstance(item, model.Record)
    assert item.fields is not None
    end, align = 0, 1
    for found, c in zip(item.fields, types, strict=True):
        size = SCALARS[c]
        end = -(-end // size) * size
        assert found.offset == end
        end, align = end + size, max(align, size)
    assert (item.size, item.align) == (-(-end // align) * align, align)


@pytest.mark.parametrize("value", [0, 1, -1, 255, 2**31 - 1, -(2**31)])
def test_macros_have_the_value_that_the_compiler_gives(tmp_path: Path, value: int) -> None:
    item = one(tmp_path, f"#define V ({value})\n")
    assert isinstance(item, model.Constant)
    assert item.value == value


def test_macros_of_included_headers_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "other.inc").write_text("#define OTHER 1\n")
    assert one(tmp_path, '#include "other.inc"\n#define OWN OTHER\n').name == "OWN"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("// a", "a"),
        ("// a\n//   b", "a\n  b"),
        ("/// a\n//! b", "a\nb"),
        ("//< a", "a"),
        ("/* a */", "a"),
        ("/** a\n *  b\n */", "a\n b"),
        ("/*\n a\n*/", "a"),
        ("// ------------\n// a\n// ============", "a"),
        ("// a\n//\n// b", "a\n\nb"),
        ("// a\r\n// b", "a\nb"),
    ],
)
def test_comments(raw: str, text: str) -> None:
    assert read.comment_text(raw) == text


@given(st.lists(st.text(alphabet="ab */-<!", max_size=12), min_size=1, max_size=4))
def test_comment_text_never_fails(lines: list[str]) -> None:
    assert "\r" not in read.comment_text("\n".join("//" + line for line in lines))
