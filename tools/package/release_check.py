"""Builds every package, tests each outside of the repository, and prints what came out.

Exit status: 0 if all packages are built and pass, 1 if not.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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
    Package("//bindings/plugin:crate", _CRATES_TEST),
    Package("//bindings/core:crate", _CRATES_TEST),
    Package("//bindings/ops:crate", _CRATES_TEST),
    Package("//bindings/client:crate", _CRATES_TEST),
    Package("//converters/runtime:crate", _CRATES_TEST),
)


@dataclasses.dataclass(frozen=True)
class Row:
    """What became of a package.

    Attributes:
        file: Name of the package's file; empty if it was not built.
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


def _bazel(workspace: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BUILD_")}
    return subprocess.run(
        [str(workspace / "tools/bazel"), *arguments],
        cwd=workspace,
        env=kept,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


def test_results(events: str) -> dict[str, str]:
    """Reads the status of each test from a file of build events, a JSON object per line."""
    found = {}
    for line in events.splitlines():
        event = json.loads(line)
        if "testSummary" in event:
            passed = event["testSummary"]["overallStatus"] == "PASSED"
            found[event["id"]["testSummary"]["label"]] = "passed" if passed else "failed"
    return found


def check(workspace: pathlib.Path) -> list[Row]:
    """Builds and tests; returns a row per package."""
    tests = sorted({package.test for package in PACKAGES})
    targets = [package.target for package in PACKAGES]
    with tempfile.TemporaryDirectory() as folder:
        events = pathlib.Path(folder) / "events.json"
        _bazel(
            workspace,
            "test",
            "--keep_going",
            f"--build_event_json_file={events}",
            *targets,
            *tests,
        )
        text = events.read_text(encoding="utf-8") if events.exists() else ""
        results = test_results(text)
    rows = []
    for package in PACKAGES:
        listed = _bazel(workspace, "cquery", "--output=files", package.target).stdout.split()
        file = workspace / listed[0] if listed else None
        data = file.read_bytes() if file is not None and file.is_file() else b""
        if data and file is not None and _OUT.value:
            out = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / _OUT.value
            out.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, out)
        rows.append(
            Row(
                file=file.name if file is not None and data else "",
                size=len(data),
                sha256=hashlib.sha256(data).hexdigest() if data else "",
                target=package.target,
                test=results.get(package.test, "not run"),
            )
        )
    return rows


def main(argv: Sequence[str]) -> int:
    """Checks; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if workspace is None:
        print("release_check: run it with `tools/bazel run //tools:release_check`", file=sys.stderr)
        return 2
    rows = check(pathlib.Path(workspace))
    if _JSON.value:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
    else:
        _print_table(rows)
    return 0 if all(row.file and row.test == "passed" for row in rows) else 1


def _print_table(rows: Sequence[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Packages")
    for heading in ("package", "bytes", "sha256", "built by", "test outside"):
        table.add_column(heading, justify="right" if heading == "bytes" else "left")
    for row in rows:
        table.add_row(
            row.file or "[red]not built",
            f"{row.size:,}",
            row.sha256[:12],
            row.target,
            row.test if row.test == "passed" else f"[red]{row.test}",
        )
    Console(width=None if sys.stdout.isatty() else 140).print(table)


if __name__ == "__main__":
    app.run(main)
