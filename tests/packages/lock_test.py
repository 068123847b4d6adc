"""Each locked package has a wheel for every Python that builds, with a hash that the lock holds.

It asks the package index, by pip and its settings; nothing but a package's metadata is fetched.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import tomllib

import pytest

from tests.packages.clean import checked, pip

LOCK = pathlib.Path(os.environ["LOCK"]).read_text(encoding="utf-8")
PINS = tomllib.loads(pathlib.Path(os.environ["PINS"]).read_text(encoding="utf-8"))
VERSIONS: list[str] = PINS["python"]["versions"]


def test_the_launchers_versions_are_these() -> None:
    assert VERSIONS == ["3.11", "3.12", "3.13"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_package_has_a_locked_wheel(version: str, tmp_path: pathlib.Path) -> None:
    wanted = re.findall(r"^[\w.-]+==\S+", LOCK, re.MULTILINE)
    names = tmp_path / "names.txt"
    names.write_text("\n".join(wanted))
    report = tmp_path / "report.json"
    checked(
        pip(
            *("install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed"),
            *("--only-binary", ":all:", "--implementation", "cp", "--python-version", version),
            *("--target", tmp_path, "--report", report, "--requirement", names),
        )
    )
    found = {
        item["metadata"]["name"]: item["download_info"]["archive_info"]["hashes"]["sha256"]
        for item in json.loads(report.read_text(encoding="utf-8"))["install"]
    }
    assert len(found) == len(wanted)
    unknown = {name for name, digest in found.items() if f"sha256:{digest}" not in LOCK}
    assert unknown == set(), f"run requirements.update: no hash of a wheel for {version}"
