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

use crate::frame::{Map, Zip};
use crate::math;

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
        "pub trait Map {\n    fn apply(&self) -> f32;\n}\n\n"
        "pub trait Zip {\n    fn two(&self);\n}\n"
    ),
    "idle.rs": "pub fn idle_of_all() {}\n",
    "math.rs": "pub fn tanh(x: f32) -> f32 {\n    x\n}\n\npub fn exp(x: f32) -> f32 {\n    x\n}\n",
    "ops.rs": OPS,
}


def left(user: str, public: tuple[str, ...] = ()) -> dict[str, str]:
    return shaken(FILES, [user], public)


def test_what_is_named_stays_and_the_rest_goes() -> None:
    ops = left("use frame::Map; Kept.called(); Kept.apply();")["ops.rs"]
    for name in ("struct Kept", "fn called", "fn helper", "impl Map for Kept"):
        assert name in ops
    for name in ("fn idle", "fn unused_helper", "Gone", "Tanh", "Turn"):
        assert name not in ops


def test_an_import_serves_by_its_name_or_by_a_method() -> None:
    ops = left("use frame::Map; Kept.apply();")["ops.rs"]
    assert "use crate::frame::Map;" in ops
    assert "Zip" not in ops
    assert "impl Kept" not in ops
    assert "use crate::math;" not in ops


def test_a_row_of_a_table_stays_by_itself() -> None:
    files = left("ops::Tanh")
    assert "Tanh tanh" in files["ops.rs"]
    assert "Exp exp" not in files["ops.rs"]
    assert "fn tanh" in files["math.rs"]
    assert "fn exp" not in files["math.rs"]


def test_public_functions_of_types_that_users_see_stay() -> None:
    assert "fn idle" in left("Kept", ("Kept",))["ops.rs"]


def test_an_empty_file_goes_with_its_declaration() -> None:
    files = left("ops::Kept")
    assert "idle.rs" not in files
    assert "idle" not in files["mod.rs"]


def test_comments_and_strings_name_nothing() -> None:
    assert "Gone" not in left('Kept; // Gone\nlet x = "Gone";')["ops.rs"]


def test_items_that_are_named_are_left_as_they_are() -> None:
    user = "Kept Gone Map Zip Turn Tanh Exp called idle apply two idle_of_all"
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
