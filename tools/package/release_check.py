"""Builds every package, tests each outside of the repository, and prints what came out.

What else a release promises is tested, too: public items, licences, one version, owners, documents.

With `--out`, as `//tools:release` calls it, the packages are copied there. A page lists them
(`pip install --find-links` reads it, hashes included), and `SHA256SUMS` has their digests.

Exit status: 0 if all packages are built and everything passes, 1 if not.
"""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Final

from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "Folder to copy the packages to.")
_JSON = flags.DEFINE_bool("json", False, "Print JSON in place of a table.")


@dataclasses.dataclass(frozen=True)
class Package:
    """A package and the test that uses it as its users do.

    Attributes:
        target: What builds it.
        test: What tests it.
    """

    target: str
    test: str


_CRATES_TEST: Final = "//tests/packages:crates_test"
PACKAGES: Final = (
    Package("//plugin:wheel", "//tests/packages:plugin_wheel_test"),
    Package("//converters/package:wheel", "//tests/packages:converters_wheel_test"),
    Package("//kernels:crate", _CRATES_TEST),
    Package("//bindings/sys/loader:crate", _CRATES_TEST),
    Package("//bindings/sys:crate", _CRATES_TEST),
    Package("//bindings/wire:crate", _CRATES_TEST),
    Package("//bindings/plugin:crate", _CRATES_TEST),
    Package("//bindings/core:crate", _CRATES_TEST),
    Package("//bindings/derive:crate", _CRATES_TEST),
    Package("//bindings/ops:crate", _CRATES_TEST),
    Package("//bindings/client:crate", _CRATES_TEST),
    Package("//converters/embedded:crate", _CRATES_TEST),
    Package("//converters/runtime:crate", _CRATES_TEST),
)

CHECKS: Final = (
    "//docs:public_api_test",
    "//tools/build:cargo_manifests_test",
    "//tools/build:deny_test",
    "//tools/build:documents_test",
    "//tools/build:layers_test",
    "//tools/build:owners_test",
    "//tools/build:tree_test",
    "//tools/build:tuples_test",
    "//tools/build:words_test",
)
"""Tests of what RELEASING.md promises beside the packages."""


@dataclasses.dataclass(frozen=True)
class Row:
    """What became of a package.

    Attributes:
        file: Path of the package; empty if it was not built.
        size: Its bytes.
        sha256: Its digest.
        target: What builds it.
        test: `passed`, `failed` or `not run`.
    """

    file: str
    size: int
    sha256: str
    target: str
    test: str


def bazel_test(workspace: pathlib.Path, labels: Sequence[str]) -> str:
    """Builds and tests; returns the build events, a JSON object per line."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BUILD_")}
    with tempfile.TemporaryDirectory() as folder:
        events = pathlib.Path(folder) / "events.json"
        subprocess.run(
            [
                str(workspace / "tools/bazel"),
                "test",
                "--keep_going",
                f"--build_event_json_file={events}",
                "--",
                *labels,
            ],
            cwd=workspace,
            env=kept,
            check=False,
        )
        return events.read_text(encoding="utf-8") if events.exists() else ""


def outcomes(events: str) -> tuple[dict[str, pathlib.Path], dict[str, str]]:
    """Reads build events.

    Args:
        events: A JSON object per line.

    Returns:
        The first file of each target that was built, and `passed` or `failed` for each test that
        ran; by label.
    """
    sets: dict[str, list[str]] = {}
    files: dict[str, pathlib.Path] = {}
    tests: dict[str, str] = {}
    # A set is always told before the target that has it.
    for event in map(json.loads, events.splitlines()):
        key = event["id"]
        if "namedSet" in key:
            listed = event["namedSetOfFiles"].get("files", [])
            sets[key["namedSet"]["id"]] = [file["uri"] for file in listed if "uri" in file]
        elif "targetCompleted" in key and event.get("completed", {}).get("success"):
            for group in event["completed"].get("outputGroup", []):
                of_group = [uri for each in group.get("fileSets", []) for uri in sets[each["id"]]]
                if group["name"] == "default" and of_group:
                    path = urllib.parse.unquote(urllib.parse.urlsplit(of_group[0]).path)
                    files[key["targetCompleted"]["label"]] = pathlib.Path(path)
        elif "testSummary" in key:
            passed = event["testSummary"]["overallStatus"] == "PASSED"
            tests[key["testSummary"]["label"]] = "passed" if passed else "failed"
    return files, tests


def rows_of(events: str, packages: Sequence[Package] = PACKAGES) -> list[Row]:
    """Returns a row per package, from the events of the build that made and tested them."""
    files, tests = outcomes(events)
    rows = []
    for package in packages:
        file = files.get(package.target)
        data = file.read_bytes() if file is not None and file.is_file() else b""
        rows.append(
            Row(
                file=str(file) if data else "",
                size=len(data),
                sha256=hashlib.sha256(data).hexdigest() if data else "",
                target=package.target,
                test=tests.get(package.test, "not run"),
            )
        )
    return rows


def checks_of(events: str, checks: Sequence[str] = CHECKS) -> dict[str, str]:
    """Returns `passed`, `failed` or `not run` for each check, from the events of the build."""
    _, tests = outcomes(events)
    return {check: tests.get(check, "not run") for check in checks}


def copy_to(out: pathlib.Path, rows: Sequence[Row]) -> None:
    """Copies the packages and writes their list into a folder, which is made if it is not there."""
    out.mkdir(parents=True, exist_ok=True)
    for row in rows:
        if row.file:
            target = out / pathlib.Path(row.file).name
            # What Bazel made can't be written, and a copy keeps that.
            target.unlink(missing_ok=True)
            shutil.copyfile(row.file, target)
    (out / "index.html").write_text(page(rows), encoding="utf-8")
    (out / "SHA256SUMS").write_text(sums(rows), encoding="utf-8")


def page(rows: Sequence[Row]) -> str:
    """Returns a page in HTML that lists the packages, with links that have their hashes."""
    lines = [
        "<!DOCTYPE html>",
        '<meta charset="utf-8"><title>Packages</title>',
        "<table><tr><th>package<th>bytes<th>sha256<th>test outside",
    ]
    for row in sorted(rows, key=lambda each: each.file):
        if row.file:
            name = html.escape(pathlib.Path(row.file).name)
            place = f"{urllib.parse.quote(name)}#sha256={row.sha256}"
            link = f'<a href="{place}">{name}</a>'
            lines.append(
                f"<tr><td>{link}<td>{row.size:,}<td><code>{row.sha256}</code><td>{row.test}"
            )
    return "\n".join([*lines, "</table>", ""])


def sums(rows: Sequence[Row]) -> str:
    """Returns what `sha256sum --check` reads."""
    named = sorted((pathlib.Path(row.file).name, row.sha256) for row in rows if row.file)
    return "".join(f"{digest}  {name}\n" for name, digest in named)


def main(argv: Sequence[str]) -> int:
    """Checks; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if workspace is None:
        print("release_check: run it with `tools/bazel run //tools:release_check`", file=sys.stderr)
        return 2
    labels = [package.target for package in PACKAGES]
    tests = sorted({package.test for package in PACKAGES})
    events = bazel_test(pathlib.Path(workspace), [*labels, *tests, *CHECKS])
    rows, checks = rows_of(events), checks_of(events)
    if _OUT.value:
        out = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / _OUT.value
        copy_to(out, rows)
        count = sum(bool(row.file) for row in rows)
        print(f"release_check: {count} packages, index.html, SHA256SUMS: {out}", file=sys.stderr)
    if _JSON.value:
        packages = [dataclasses.asdict(row) for row in rows]
        print(json.dumps({"packages": packages, "checks": checks}, indent=2))
    else:
        print_tables(rows, checks)
    is_good = all(row.file and row.test == "passed" for row in rows)
    return 0 if is_good and set(checks.values()) == {"passed"} else 1


def print_tables(rows: Sequence[Row], checks: Mapping[str, str]) -> None:
    """Prints packages and checks for people."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Packages")
    for heading in ("package", "bytes", "sha256", "built by", "test outside"):
        table.add_column(heading, justify="right" if heading == "bytes" else "left")
    for row in rows:
        table.add_row(
            pathlib.Path(row.file).name or "[red]not built",
            f"{row.size:,}",
            row.sha256[:12],
            row.target,
            row.test if row.test == "passed" else f"[red]{row.test}",
        )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    for check, result in checks.items():
        console.print(f"{check}: {result if result == 'passed' else f'[red]{result}'}")


if __name__ == "__main__":
    app.run(main)
