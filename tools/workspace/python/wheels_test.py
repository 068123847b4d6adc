"""Every wheel of the lock runs on the oldest Python 3.11 that is promised: Debian 12's."""

from __future__ import annotations

from importlib.metadata import distributions

from packaging.specifiers import SpecifierSet

_OLDEST = "3.11.2"


def test_wheels_take_the_oldest_python() -> None:
    found = (d.metadata for d in distributions())
    needs = {m["Name"].lower().replace("_", "-"): m["Requires-Python"] for m in found}
    assert {"keras", "mkdocs-material", "pymdown-extensions", "tensorflow-cpu"} <= set(needs)
    refusing = {
        name: versions
        for name, versions in needs.items()
        if versions and not SpecifierSet(versions).contains(_OLDEST)
    }
    assert refusing == {}, "restrict them in requirements.in and run requirements.update"
