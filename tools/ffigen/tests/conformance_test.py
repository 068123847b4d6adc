"""ffigen's bindings against bindgen's for the same headers."""

from __future__ import annotations

import pytest

from tools.ffigen import pipeline
from tools.ffigen.tests.bindgen import LISTING
from tools.ffigen.tests.conformance import DIFFERENCES, compare
from tools.ffigen.tests.listing import Listing, read_bindings
from tools.ffigen.tests.wheel import include_dir

UPDATE = "python -m tools.ffigen.tests.update_listing"


@pytest.fixture(scope="module")
def own() -> Listing:
    """What ffigen generates for the wheel's headers."""
    generated = pipeline.generate(include_dir())
    result = Listing()
    for module in generated.crate.modules:
        read_bindings(generated.files[f"{module.name}.rs"], result)
    return result


@pytest.fixture(scope="module")
def bindgen() -> Listing:
    """What bindgen generates for them, as committed."""
    return Listing.from_text(LISTING.read_text(encoding="utf-8"))


def test_no_difference_without_a_reason(own: Listing, bindgen: Listing) -> None:
    """Same items, same layouts, same signatures, but for the rows of DIFFERENCES."""
    unexplained, stale = compare(own, bindgen)
    assert not unexplained, "\n".join(unexplained) + f"\n(update: {UPDATE})"
    assert stale == [], "rows that match no difference"


def test_rows_have_reasons() -> None:
    """A row without a reason is no exception."""
    assert all(row.reason for row in DIFFERENCES)


def test_listing_is_complete(bindgen: Listing) -> None:
    """The listing holds at least what TensorFlow 2.21 declares, so that it can't be cut short."""
    kinds = [key.split()[0] for key in bindgen.lines]
    assert kinds.count("fn") >= 640
    assert kinds.count("struct") >= 180
    assert kinds.count("offset") >= 900


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("fn TF_NewTensor", ("c_int", "i64")),
        ("struct SP_Platform", ("c_uchar", "bool")),
        ("offset SP_StreamExecutor.memset32", ("= ", "= 1")),
        ("layout TF_Buffer", ("24", "32")),
        ("const TF_BFLOAT16", ("14", "15")),
        ("const SP_PLATFORM_STRUCT_SIZE", ("35", "40")),
    ],
)
def test_a_change_is_noticed(
    own: Listing, bindgen: Listing, key: str, change: tuple[str, str]
) -> None:
    """The comparison fails when one item differs, whatever its kind."""
    changed = Listing({**own.lines, key: own.lines[key].replace(*change)})
    assert changed.lines != own.lines
    unexplained, _ = compare(changed, bindgen)
    assert len(unexplained) == 1
    assert unexplained[0].startswith(key)


def test_a_missing_item_is_noticed(own: Listing, bindgen: Listing) -> None:
    """The comparison fails when an item is gone."""
    lines = dict(own.lines)
    del lines["fn TF_DeleteTensor"]
    unexplained, _ = compare(Listing(lines), bindgen)
    assert [text.split("\n")[0] for text in unexplained] == ["fn TF_DeleteTensor"]
