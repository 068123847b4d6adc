"""Every wheel of the lock runs on each Python that builds: from Debian 12's 3.11 to 3.13."""

from __future__ import annotations

from importlib.metadata import distributions

import pytest
from packaging.specifiers import SpecifierSet


@pytest.mark.parametrize("python", ["3.11.2", "3.12.0", "3.13.0"])
def test_wheels_take_every_python(python: str) -> None:
    found = (d.metadata for d in distributions())
    needs = {m["Name"].lower().replace("_", "-"): m["Requires-Python"] for m in found}
    assert {"keras", "mkdocs-material", "pymdown-extensions", "tensorflow-cpu"} <= set(needs)
    refusing = {
        name: versions
        for name, versions in needs.items()
        if versions and not SpecifierSet(versions).contains(python)
    }
    assert refusing == {}, "restrict them in requirements.in and run requirements.update"
