"""What of vendored sources stays for the code that uses them."""

from __future__ import annotations

import pathlib
import re

import pytest

from converters.tf.emit.items import identifiers, items_of
from converters.tf.emit.modules import code_of
from converters.tf.emit.shake import shaken
from converters.tf.emit.vendor import strip

OPS = """//! Functions.

use crate::runtime::frame::{Map, Zip};
use crate::runtime::math;

macro_rules! table {
    ($($op:ident $body:expr;)*) => {};
}

table! {
    /// Hyperbolic tangent.
    Tanh tanh 4 { f32 => |x| math::tanh(x); }
    /// Exponential.
    Exp exp 4 {
        f32 => |x| math::exp(x);
    }
}

/// Multi-line, like this alias.
pub(super) type Turn<'a> =
    dyn Fn(usize) -> f32 + 'a;

pub struct Kept;

impl Kept {
    /// Called.
    pub fn called(&self) -> f32 {
        helper()
    }

    pub fn idle(&self) -> f32 {
        unused_helper()
    }
}

impl Map for Kept {
    fn apply(&self) -> f32 {
        0.0
    }
}

pub struct Gone;

impl Map for Gone {
    fn apply(&self) -> f32 {
        1.0
    }
}

fn helper() -> f32 {
    1.0
}

fn unused_helper() -> f32 {
    2.0
}
"""
FILES = {
    "mod.rs": "pub mod frame;\nmod math;\npub mod idle;\npub mod ops;\n",
    "frame.rs": (
        "pub trait Map {\n    fn apply(&self) -> f32;\n\n"
        "    fn twice(&self) -> f32 {\n        0.5\n    }\n}\n\n"
        "pub trait Zip {\n    fn two(&self);\n}\n"
    ),
    "idle.rs": "pub fn idle_of_all() {}\n\npub fn helper() {}\n",
    "math.rs": (
        "pub fn tanh(x: f32) -> f32 {\n    x\n}\n\npub fn exp(x: f32) -> f32 {\n    x\n}\n\n"
        "pub fn helper() {}\n"
    ),
    "ops.rs": OPS,
}
KEPT = "use crate::runtime::ops::Kept;\n\n"
CALLS = f"{KEPT}fn f(x: &Kept) {{\n    x.called();\n}}\n"
APPLIES = (
    "use crate::runtime::frame::Map;\nuse crate::runtime::ops::Kept;\n\n"
    "fn f(x: &Kept) {\n    x.called();\n    x.apply();\n}\n"
)


def left(user: str, public: tuple[str, ...] = ()) -> dict[str, str]:
    return shaken(FILES, [user], public)


def test_what_is_named_stays_and_the_rest_goes() -> None:
    ops = left(APPLIES)["ops.rs"]
    for name in ("struct Kept", "fn called", "fn helper", "impl Map for Kept"):
        assert name in ops
    for name in ("fn idle", "fn unused_helper", "Gone", "Tanh", "Turn"):
        assert name not in ops


def test_a_name_is_that_of_its_module() -> None:
    files = left(CALLS)
    assert "fn helper" in files["ops.rs"]
    assert files.keys() == {"mod.rs", "ops.rs"}
    user = "use crate::runtime::{idle, math::helper as other};\n\nfn f() {\n    other();\n}\n"
    assert left(user)["math.rs"].strip() == "pub fn helper() {}"
    assert "idle.rs" not in left(user)


def test_a_module_within_a_file_names_the_file_by_super() -> None:
    files = {
        "math/mod.rs": (
            "pub mod double;\n\npub(crate) use double::{log, sinh};\n\npub(crate) mod libm {\n"
            "    use super::Table;\n\n    pub(crate) fn log(x: f32) -> Table {\n"
            "        super::log(super::double::wide(x))\n    }\n}\n\npub struct Table;\n"
        ),
        "math/double.rs": (
            "pub fn log(x: f64) -> f64 {\n    x\n}\n\npub fn sinh(x: f64) -> f64 {\n    x\n}\n\n"
            "pub fn wide(x: f32) -> f64 {\n    x.into()\n}\n"
        ),
    }
    left = shaken(files, ["use crate::runtime::math::libm;\n\nfn user() { libm::log(1.0); }\n"])
    assert "struct Table" in left["math/mod.rs"]
    assert "use double::log;" in left["math/mod.rs"]
    assert "fn log" in left["math/double.rs"]
    assert "fn wide" in left["math/double.rs"]
    assert "fn sinh" not in left["math/double.rs"]


def test_code_that_uses_a_runtime_need_not_be_laid_out() -> None:
    user = "mod a { use crate::runtime::ops::Kept; impl X { fn f(x: Kept)\n{ x.called() } } }"
    assert "fn called" in left(user)["ops.rs"]


def test_a_member_goes_from_the_trait_and_from_each_impl() -> None:
    files = left(CALLS + "fn g<M: crate::runtime::frame::Map>(x: M) {\n    x.twice();\n}\n")
    assert "fn twice" in files["frame.rs"]
    assert "fn apply" not in files["frame.rs"] + files["ops.rs"]
    assert "impl Map for Kept {}" in files["ops.rs"].replace("{\n}", "{}")


@pytest.mark.parametrize(
    ("call", "stays"),
    [
        ("x.called()", True),
        ("x.called(1)", False),
        ("Kept::called", True),
        ("f32::called(x)", False),
        ("<Kept>::called(x)", True),
        ("called()", False),
    ],
)
def test_a_method_is_called_with_its_arguments(call: str, stays: bool) -> None:
    user = f"{KEPT}fn f(x: &Kept) {{\n    {call};\n}}\n"
    assert ("fn called" in left(user)["ops.rs"]) == stays


@pytest.mark.parametrize(("call", "stays"), [("x.any(|y| y)", False), ("x.any(y)", True)])
def test_a_closure_is_for_those_who_take_one(call: str, stays: bool) -> None:
    text = (
        "pub struct Mask;\n\nimpl Mask {\n    pub fn any(&self, of: u32) -> bool {\n"
        "        true\n    }\n}\n"
    )
    user = f"use crate::runtime::mask::Mask;\n\nfn f(x: Mask) {{\n    {call};\n}}\n"
    files = shaken({"mod.rs": "pub mod mask;\n", "mask.rs": text}, [user])
    assert ("fn any" in files["mask.rs"]) == stays


def test_what_a_macro_names_by_its_arguments_stays() -> None:
    macro = (
        "use crate::runtime::math;\n\nmacro_rules! call {\n    ($name:ident) => {\n"
        "        math::$name(1.0)\n    };\n}\n\npub fn run() -> f32 {\n    call!(exp)\n}\n"
    )
    files = {**FILES, "mod.rs": "mod math;\npub mod calls;\n", "calls.rs": macro}
    user = "fn f() {\n    crate::runtime::calls::run();\n}\n"
    math = shaken(files, [user])["math.rs"]
    assert "fn exp" in math
    assert "fn tanh" not in math


def test_an_import_serves_by_its_name_or_by_a_method() -> None:
    ops = left(APPLIES.replace("    x.called();\n", ""))["ops.rs"]
    assert "use crate::runtime::frame::Map;" in ops
    assert "Zip" not in ops
    assert "impl Kept" not in ops
    assert "use crate::runtime::math;" not in ops


def test_the_import_of_a_module_does_not_serve_a_variable_of_its_name() -> None:
    files = {
        "mod.rs": "pub mod norm;\npub mod rows;\n",
        "rows.rs": "pub fn sum() {}\n",
        "norm.rs": (
            "use crate::runtime::rows;\n\npub fn whole() {\n    rows::sum();\n}\n\n"
            "pub fn grouped() {\n    let rows = || 1;\n    rows();\n}\n"
        ),
    }
    user = "use crate::runtime::norm;\n\nfn f() {\n    norm::%s();\n}\n"
    assert shaken(files, [user % "grouped"]).keys() == {"mod.rs", "norm.rs"}
    assert "use" not in shaken(files, [user % "grouped"])["norm.rs"]
    assert "use crate::runtime::rows;" in shaken(files, [user % "whole"])["norm.rs"]


def test_a_row_of_a_table_stays_by_itself() -> None:
    files = left("fn f() {\n    crate::runtime::ops::Tanh;\n}\n")
    assert "Tanh tanh" in files["ops.rs"]
    assert "Exp exp" not in files["ops.rs"]
    assert "fn tanh" in files["math.rs"]
    assert "fn exp" not in files["math.rs"]


def test_public_functions_of_types_that_users_see_stay() -> None:
    assert "fn idle" in left("pub use crate::runtime::ops::Kept;\n", ("Kept",))["ops.rs"]


def test_an_empty_file_goes_with_its_declaration() -> None:
    files = left(CALLS)
    assert "idle.rs" not in files
    assert "idle" not in files["mod.rs"]


def test_comments_and_strings_name_nothing() -> None:
    user = f'{KEPT}fn f(x: Kept) {{\n    // crate::runtime::ops::Gone\n    "Gone";\n}}\n'
    assert "Gone" not in left(user)["ops.rs"]


def test_items_that_are_named_are_left_as_they_are() -> None:
    names = "Kept Gone Turn Tanh Exp unused_helper"
    paths = "".join(f"    crate::runtime::ops::{name};\n" for name in names.split())
    user = f"{APPLIES}fn g() {{\n{paths}    Kept::idle(x);\n}}\n"
    assert left(user)["ops.rs"] == OPS.replace("{Map, Zip}", "Map")


def test_what_names_nothing_is_left_out_of_code() -> None:
    text = """let a = "x // y"; // z "q"
fn f<'a>(x: &'a str) -> char { '"' } /* b
c */ let s = r#"d " e"#; b'\\'' 'g' "two
lines" '\\u{1F}' br"h"
/// doc `"`
let y = '\\\\'; "i\\"j"
"""
    code = code_of(text)
    assert code.count("\n") == text.count("\n")
    names = "let a fn f a x a str char let s let y"
    assert identifiers(text) == names.split()


# What begins an item, wherever it stands; found without the layout that `items_of` reads.
DEFINED = re.compile(
    r"^(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern \"C\" )*"
    r"(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)(?: mut)? (\w+)",
    re.MULTILINE,
)


@pytest.mark.parametrize("crate", ["kernels/src", "converters/runtime/src"])
def test_the_items_of_our_own_sources(crate: str) -> None:
    """Together they are the file, each is whole, and none of what is defined is missed."""
    sources = sorted(pathlib.Path(crate).rglob("*.rs"))
    files = [file for file in sources if file.name not in ("lib.rs", "tests.rs")]
    assert len(files) > 20
    for file in files:
        text = strip(file.read_text("utf-8"))
        items = list(items_of(text))
        assert "".join(item.text for item in items) == text, file
        for item in items:
            code = code_of(item.text)
            for opening, closing in ("()", "[]", "{}"):
                assert code.count(opening) == code.count(closing), (file, item.text)
            assert len(DEFINED.findall(code)) <= 1 or item.inner, (file, item.text)
        found = {name for item in items for name in item.names}
        assert set(DEFINED.findall(code_of(text))) <= found, file
