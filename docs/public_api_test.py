"""A change of the public items of a covered crate is seen: RELEASING.md."""

import os
import pathlib

import pytest

from docs import public_api

UPDATE = "tools/bazel run //docs:update_public_api"


@pytest.fixture(scope="module")
def now() -> dict[str, list[str]]:
    return public_api.read(pathlib.Path(os.environ["API"]))


@pytest.mark.parametrize("crate", public_api.CRATES)
def test_no_public_item_is_gone(crate: str, now: dict[str, list[str]]) -> None:
    recorded = pathlib.Path(public_api.FOLDER, f"{crate}.txt").read_text(encoding="utf-8")
    assert now[crate], f"rustdoc has no page of {crate}"
    missing = public_api.gone(recorded.splitlines(), now[crate])
    assert not missing, (
        f"users of {crate} may need these: bring them back, or raise the version as RELEASING.md "
        f"says, tell it in CHANGELOG.md and run `{UPDATE}`: {', '.join(missing)}"
    )


@pytest.mark.parametrize("crate", public_api.CRATES)
def test_every_public_item_is_recorded(crate: str, now: dict[str, list[str]]) -> None:
    recorded = pathlib.Path(public_api.FOLDER, f"{crate}.txt").read_text(encoding="utf-8")
    fresh = public_api.gone(now[crate], recorded.splitlines())
    assert not fresh, f"tell these in CHANGELOG.md and run `{UPDATE}`: {', '.join(fresh)}"


def test_members_that_foreign_traits_give_are_not_recorded() -> None:
    page = (
        '<section id="variant.A"><section id="method.new"><h2 id="trait-implementations">'
        '<section id="method.clone">'
    )
    pages = {
        "tfp_core/graph/enum.Mode.html": page,
        "tfp_core/index.html": "",
        "other/fn.f.html": "",
    }
    assert public_api.items(pages)["tfp_core"] == ["enum tfp_core::graph::Mode A new"]


def test_paths_through_private_modules_are_not_recorded() -> None:
    pages = {
        "tfp_core/struct.Tensor.html": '<section id="method.new">',
        "tfp_core/tensor/struct.Tensor.html": (
            '<head><meta http-equiv="refresh" content="0;URL=../../tfp_core/struct.Tensor.html">'
        ),
    }
    assert public_api.items(pages)["tfp_core"] == ["struct tfp_core::Tensor new"]


def test_what_is_gone_is_named() -> None:
    recorded = ["struct a::B new old", "fn a::f", "enum a::E A"]
    now = ["struct a::B more new", "enum a::E A Z", "fn a::g"]
    assert public_api.gone(recorded, now) == ["a::B::old", "fn a::f"]
    assert not public_api.gone(recorded, [*recorded, "fn a::h"])
