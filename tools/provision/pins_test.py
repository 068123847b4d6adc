from __future__ import annotations

import re

import pytest

from tools.provision.apt import numbers
from tools.provision.pins import FILE, parse_pins, read_pins

CHECKOUT = FILE.parent.parent.parent


def test_bazel_is_the_one_of_the_repository() -> None:
    assert read_pins().bazel_version == (CHECKOUT / ".bazelversion").read_text().strip()


@pytest.mark.parametrize("repository", ["rules_rust", "rules_python", "platforms"])
def test_rule_sets_are_those_of_the_workspace(repository: str) -> None:
    text = (CHECKOUT / "tools/workspace/rule_sets.bzl").read_text()
    (version,) = {
        match.group(1)
        for match in re.finditer(rf"/{repository}/releases/download/v?([0-9.]+)/", text)
    }
    (pinned,) = [rule.version for rule in read_pins().rules if rule.repository == repository]
    assert pinned == version


def test_every_archive_of_the_workspace_has_a_provisioned_copy() -> None:
    text = (CHECKOUT / "tools/workspace/rule_sets.bzl").read_text()
    archives = set(re.findall(r'http_archive,\s*name = "(\w+)"', text))
    assert archives
    assert archives <= {rule.repository for rule in read_pins().rules}


def test_the_oldest_bazel_is_of_the_pinned_major_version() -> None:
    pins = read_pins()
    oldest, pinned = numbers(pins.bazel_oldest), numbers(pins.bazel_version)
    assert oldest[0] == pinned[0]
    assert oldest <= pinned


def test_hashes_are_whole() -> None:
    for wheel in read_pins().wheels.values():
        assert re.fullmatch(r"[0-9a-f]{64}", wheel.sha256)
        assert re.fullmatch(r"[\w-]+==[\w.]+", wheel.requirement)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(KeyError, match="bazel"):
        parse_pins({"rust": {}})


def test_what_is_asked_for_is_what_would_be_downloaded() -> None:
    pins = read_pins()
    assert pins.probes["archives"] in (CHECKOUT / "tools/workspace/rule_sets.bzl").read_text()
    assert f"/{pins.bazel_version}/bazel-{pins.bazel_version}-linux-x86_64" in pins.bazel_url


def test_the_first_python_of_debian_is_the_preferred_one() -> None:
    pins = read_pins()
    assert next(iter(pins.python_suites.values())) == pins.python_preferred
    assert {pins.python_preferred, *pins.python_suites.values()} <= set(pins.python_versions)
