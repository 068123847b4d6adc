"""What attributes of ways leave of a source."""

from __future__ import annotations

import pytest

from converters.tf.emit.ways import with_std, with_ways

SOURCE = """fn run(
    a: &[f32],
) -> usize {
    #[cfg(without = "wide")]
    if a.len() > 8 {
        return 0;
    }
    match a.len() {
        1 => 1,
        #[cfg(not(without = "wide"))]
        16 if a[0] > 0.0 => wide(
            a,
            "}",
        ),
        #[cfg(not(without = "tall"))]
        2 => {
            tall()
        }
        _ => 0,
    }
}

enum Kind {
    /// The only one with such rows.
    #[cfg(not(without = "wide"))]
    Wide {
        rows: usize,
    },
    Other,
}
"""

OPEN = """fn run(
    a: &[f32],
) -> usize {
    match a.len() {
        1 => 1,
        16 if a[0] > 0.0 => wide(
            a,
            "}",
        ),
        2 => {
            tall()
        }
        _ => 0,
    }
}

enum Kind {
    /// The only one with such rows.
    Wide {
        rows: usize,
    },
    Other,
}
"""

CLOSED = """fn run(
    a: &[f32],
) -> usize {
    if a.len() > 8 {
        return 0;
    }
    match a.len() {
        1 => 1,
        _ => 0,
    }
}

enum Kind {
    Other,
}
"""


@pytest.mark.parametrize(("closed", "left"), [(set(), OPEN), ({"wide", "tall"}, CLOSED)])
def test_code_of_a_way_stays_or_goes_as_a_whole(closed: set[str], left: str) -> None:
    assert with_ways(SOURCE, closed) == left


def test_ways_that_are_not_decided_stay_as_they_are() -> None:
    assert with_ways(SOURCE, {"wide", "tall"}, set()) == SOURCE
    left = with_ways(SOURCE, set(), {"tall"})
    assert left.count("without = ") == SOURCE.count("without = ") - 1


def test_a_generic_function_goes_with_its_bounds() -> None:
    source = """/// Documented.
#[cfg(false)]
#[inline]
pub fn far<
    S: Simd,
    T,
>(
    s: S,
) -> T
where
    T: Copy,
{
    near(s)
}

#[cfg(not(false))]
fn near() {}
"""
    assert with_std(source) == "\nfn near() {}\n"


def test_the_value_of_std_decides() -> None:
    source = "#[cfg(true)]\nuse std::vec;\n#[cfg(not(true))]\nuse heap::vec;\nfn f() {}\n"
    assert with_std(source) == "use std::vec;\nfn f() {}\n"
    assert with_std(source.replace("true", "false")) == "use heap::vec;\nfn f() {}\n"


def test_a_block_has_no_braces_without_the_other_one() -> None:
    source = """fn root(x: f32) -> f32 {
    #[cfg(true)]
    {
        let y = x;
        y.sqrt()
    }
    #[cfg(not(true))]
    {
        sqrt(x)
    }
}
"""
    assert (
        with_std(source)
        == """fn root(x: f32) -> f32 {
    let y = x;
    y.sqrt()
}
"""
    )
    assert "{\n    sqrt(x)\n}" in with_std(source.replace("true", "false"))
