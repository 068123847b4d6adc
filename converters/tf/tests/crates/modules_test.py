"""Which files of a crate code needs, and what is left of those that only declare others."""

from __future__ import annotations

from converters.tf.emit.modules import Crate, leaves, module_path

SOURCES = {
    "lib.rs": "pub mod conv;\nmod math;\nmod simd;\npub mod store;\npub mod table;\n",
    "conv/mod.rs": (
        "//! Convolutions.\n\nmod backward;\nmod forward;\npub mod geometry;\n\n"
        "pub use backward::Backward;\npub use forward::{Forward, Way as Direction};\n\n"
        "pub fn shared() {}\n"
    ),
    "conv/forward.rs": (
        "use super::geometry::Conv;\nuse crate::math;\n\npub struct Forward(Conv);\n\n"
        "pub enum Way {}\n\nfn root() {\n    // crate::conv::Backward stays out.\n"
        "    math::sqrt();\n}\n"
    ),
    "conv/backward.rs": "use crate::simd::Simd;\n\npub struct Backward;\n",
    "conv/geometry.rs": "pub struct Conv;\n",
    "conv/geometry/more.rs": "use super::Conv;\n\nimpl Conv {\n    pub fn size(&self) {}\n}\n",
    "math.rs": "mod tables;\n\npub use tables::sqrt;\n",
    "math/tables.rs": "pub fn sqrt() {}\n",
    "simd.rs": "pub trait Simd {}\n",
    "store.rs": (
        "use crate::conv::geometry::Conv;\n\npub trait Store {}\n\nimpl Store for Conv {}\n"
    ),
    "table.rs": (
        "use crate::math::tables as functions;\nuse crate::simd as unused;\n\n"
        "macro_rules! table {\n    ($name:ident) => {\n        functions::$name()\n    };\n}\n\n"
        "pub fn table() {}\n"
    ),
    "conv/tests.rs": "use crate::simd::Simd;\n",
}
CRATE = Crate(SOURCES)


def files(*paths: str) -> tuple[set[str], set[str]]:
    needed = CRATE.closure(tuple(path.split("::")) for path in paths)
    file = {at: module.file for at, module in CRATE.modules.items()}
    return {file[at] for at in needed.whole}, {file[at] for at in needed.declared}


def test_modules_of_files() -> None:
    assert [module_path(f) for f in ("lib.rs", "conv/mod.rs", "conv/a.rs")] == [
        (),
        ("conv",),
        ("conv", "a"),
    ]


def test_the_paths_of_a_tree() -> None:
    assert list(leaves("a::{b, c::{d, e as f},\n self}")) == [
        "a::b",
        "a::c::d",
        "a::c::e as f",
        "a::self",
    ]


def test_what_a_reexported_type_needs_is_found() -> None:
    """Paths lead over imported modules, re-exports and `super`; comments name nothing."""
    whole, declared = files("conv::Forward")
    assert whole == {
        "conv/forward.rs",
        "conv/geometry.rs",
        "conv/geometry/more.rs",
        "math/tables.rs",
    }
    assert declared == {"lib.rs", "conv/mod.rs", "math.rs"}


def test_an_impl_in_another_file_comes_with_its_type() -> None:
    assert "conv/geometry/more.rs" in files("conv::geometry::Conv")[0]
    assert "conv/geometry/more.rs" not in files("conv::Backward")[0]


def test_a_trait_comes_for_those_who_name_it() -> None:
    """An `impl` of a file's own trait for a type of another file does not bring the file."""
    assert "store.rs" not in files("conv::geometry::Conv")[0]
    assert "conv/geometry.rs" in files("store::Store")[0]


def test_a_module_whose_items_a_macro_names_comes_whole() -> None:
    whole, declared = files("table::table")
    assert whole == {"table.rs", "math/tables.rs"}
    assert "simd.rs" in declared


def test_a_file_that_only_declares_keeps_nothing_else() -> None:
    needed = CRATE.closure([("conv", "Forward")])
    assert CRATE.text(("conv",), needed) == (
        "//! Convolutions.\n\nmod forward;\npub mod geometry;\n\n"
        "pub use forward::Forward;\npub use forward::Way as Direction;\n"
    )


def test_a_file_whose_items_are_needed_loses_other_children_alone() -> None:
    needed = CRATE.closure([("conv", "shared")])
    text = CRATE.text(("conv",), needed)
    assert "pub fn shared() {}" in text
    assert "mod forward" not in text
    assert "Backward" not in text
