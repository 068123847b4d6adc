"""What release_check reads from the events of a build."""

from __future__ import annotations

import hashlib
import json
import pathlib

import pytest

from tools.package import release_check
from tools.package.release_check import Package

PACKAGES = (
    Package("//a:wheel", "//tests:a_test"),
    Package("//b:crate", "//tests:b_test"),
    Package("//c:crate", "//tests:c_test"),
    Package("//d:crate", "//tests:a_test"),
)


def events(file: pathlib.Path) -> str:
    """A build of a and b; b's test fails; c can't be built; d is not among the events."""

    def completed(label: str, **what: object) -> dict[str, object]:
        return {"id": {"targetCompleted": {"label": label}}, "completed": what}

    def summary(label: str, status: str) -> dict[str, object]:
        return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}

    def group(number: str) -> list[dict[str, object]]:
        return [
            {"name": "_validation", "fileSets": [{"id": "0"}]},
            {"name": "default", "fileSets": [{"id": number}]},
        ]

    def files(number: str, *uris: str) -> dict[str, object]:
        listed = [{"name": "x", "uri": uri} for uri in uris]
        return {"id": {"namedSet": {"id": number}}, "namedSetOfFiles": {"files": listed}}

    told: list[dict[str, object]] = [
        {"id": {"started": {}}},
        files("0"),
        files("1", file.as_uri()),
        files("2", (file.parent / "gone").as_uri()),
        completed("//a:wheel", success=True, outputGroup=group("1")),
        completed("//b:crate", success=True, outputGroup=group("2")),
        completed("//c:crate", failureDetail={"message": "no"}),
        {"id": {"targetCompleted": {"label": "//tests:c_test"}}, "aborted": {"reason": "x"}},
        summary("//tests:a_test", "PASSED"),
        summary("//tests:b_test", "FAILED"),
    ]
    return "".join(json.dumps(event) + "\n" for event in told)


def test_a_row_per_package_from_what_bazel_tells(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a b-1.whl"
    file.write_bytes(b"wheel")
    rows = release_check.rows_of(events(file), PACKAGES)
    assert [(row.target, row.test) for row in rows] == [
        ("//a:wheel", "passed"),
        ("//b:crate", "failed"),
        ("//c:crate", "not run"),
        ("//d:crate", "passed"),
    ]
    assert (rows[0].file, rows[0].size) == (str(file), 5)
    assert rows[0].sha256 == hashlib.sha256(b"wheel").hexdigest()
    # Built but gone, failed, and never mentioned: none of them is there.
    assert [row.file for row in rows[1:]] == ["", "", ""]


def test_without_events_nothing_is_built_and_nothing_passes() -> None:
    rows = release_check.rows_of("")
    assert len(rows) == len(release_check.PACKAGES)
    assert not any(row.file or row.test == "passed" for row in rows)


def test_a_check_that_was_not_run_did_not_pass(tmp_path: pathlib.Path) -> None:
    told = events(tmp_path / "x")
    wanted = ("//tests:a_test", "//tests:b_test", "//tests:c_test")
    found = release_check.checks_of(told, wanted)
    assert list(found.values()) == ["passed", "failed", "not run"]
    assert set(release_check.checks_of("").values()) == {"not run"}


def test_copies_replace_what_is_there(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a-1.whl"
    file.write_bytes(b"new")
    file.chmod(0o444)
    rows = release_check.rows_of(events(file), PACKAGES)
    out = tmp_path / "some/out"
    for _ in range(2):
        release_check.copy_to(out, rows)
        names = ["SHA256SUMS", "a-1.whl", "index.html"]
        assert sorted(path.name for path in out.iterdir()) == names
        assert (out / "a-1.whl").read_bytes() == b"new"


def test_the_list_has_what_was_built_with_its_hash(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a-1+b.whl"
    file.write_bytes(b"wheel")
    rows = release_check.rows_of(events(file), PACKAGES)
    digest = hashlib.sha256(b"wheel").hexdigest()
    assert release_check.sums(rows) == f"{digest}  a-1+b.whl\n"
    text = release_check.page(rows)
    assert f'<a href="a-1%2Bb.whl#sha256={digest}">a-1+b.whl</a>' in text
    assert text.count("<tr><td>") == 1


def test_the_table_says_what_is_missing(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a-1.whl"
    file.write_bytes(b"wheel")
    rows = release_check.rows_of(events(file), PACKAGES)
    release_check.print_tables(rows, {"//checks:e_test": "failed"})
    lines = [line for line in capsys.readouterr().out.splitlines() if "//" in line]
    assert len(lines) == len(PACKAGES) + 1
    for line, parts in zip(
        lines,
        (
            ("a-1.whl", "passed"),
            ("not built", "failed"),
            ("not built", "not run"),
            ("not built",),
            ("//checks:e_test: failed",),
        ),
        strict=True,
    ):
        assert all(part in line for part in parts)
