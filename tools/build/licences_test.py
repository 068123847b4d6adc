"""Third-party crates have licences that `deny.toml` allows, as cargo-deny would read them."""

import os
import pathlib
import re
import tomllib
from typing import Any

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()
VENDOR = pathlib.Path(os.environ["VENDORED"]).parent / "vendor"


def allowed() -> set[str]:
    licences = tomllib.loads((TREE / "deny.toml").read_text(encoding="utf-8"))["licenses"]
    return set(licences["allow"])


def packages() -> dict[str, Any]:
    manifests = sorted(VENDOR.glob("*/Cargo.toml"))
    assert manifests, f"no crate below {VENDOR}"
    return {
        path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))["package"]
        for path in manifests
    }


def may_be_used(expression: str, licences: set[str]) -> bool:
    """Judges an SPDX expression; the old `A/B` means `A OR B`."""
    inner = re.compile(r"\(([^()]*)\)")
    while found := inner.search(expression):
        answer = "yes" if may_be_used(found.group(1), licences) else "no licence"
        expression = expression[: found.start()] + answer + expression[found.end() :]
    choices = re.split(r" OR |/", expression)
    known = licences | {"yes"}
    return any(all(each.strip() in known for each in choice.split(" AND ")) for choice in choices)


def test_an_expression_is_judged_as_a_whole() -> None:
    licences = {"MIT", "Unicode-3.0"}
    assert may_be_used("MIT/GPL-3.0", licences)
    assert may_be_used("(MIT OR Apache-2.0) AND Unicode-3.0", licences)
    assert not may_be_used("(MIT OR Apache-2.0) AND BSD-2-Clause", licences)
    assert not may_be_used("GPL-3.0", licences)


def test_every_crate_may_be_used() -> None:
    refused = {
        name: package.get("license", "no licence stated")
        for name, package in packages().items()
        if not may_be_used(package.get("license", "none"), allowed())
    }
    assert not refused, f"neither in deny.toml's list: {refused}"


def test_every_allowed_licence_is_needed() -> None:
    texts = " ".join(package.get("license", "") for package in packages().values())
    unused = [licence for licence in sorted(allowed()) if licence not in texts]
    assert not unused, f"no crate has these licences of deny.toml: {unused}"
