from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.provision import mirror
from tools.provision.apt import Package
from tools.provision.messages import StartError
from tools.provision.mirror import Mirror, ar_members, compare_versions, parse_index, unpack_deb
from tools.provision.testing.archive import URL, Archive, deb, pair
from tools.provision.testing.fakes import Client

LINE = f"deb {URL} bookworm main"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "read_keys", lambda: [pair(1)[0]])


@pytest.fixture
def archive() -> Archive:
    made = Archive()
    made.add(
        "bookworm",
        {
            "tool": ("1:2.0-1", "libtool (>= 2) | other, given, virtual", {"./usr/bin/tool": b"t"}),
            "libtool": ("2.0-1", "", {"./usr/lib/libtool.so": "libtool.so.2"}),
            "real": ("1", "tool", {"./usr/real": b"r"}),
        },
    )
    return made


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.0", "1.0.1"),
        ("1.0~rc1", "1.0"),
        ("1.0~~", "1.0~"),
        ("1.9", "1.10"),
        ("1.0-1", "1.0-2"),
        ("9.0", "1:1.0"),
        ("1.0-1", "1.0-1+b1"),
        ("1.85.0+dfsg3-1~deb12u3", "1.96.0+dfsg1-1~deb12u2"),
        ("1.0a", "1.0+"),
        ("2.36-9+deb12u9", "2.36-9+deb12u10"),
    ],
)
def test_versions_compare_by_debians_rules(older: str, newer: str) -> None:
    assert compare_versions(older, newer) < 0 < compare_versions(newer, older)
    assert compare_versions(older, older) == 0


VERSION = st.from_regex(r"[0-9]{1,2}(\.[0-9a-z~+]{1,4}){0,2}(-[0-9~]{1,3})?", fullmatch=True)


@given(VERSION, VERSION)
def test_a_comparison_turns_with_its_sides(one: str, two: str) -> None:
    assert (compare_versions(one, two) > 0) == (compare_versions(two, one) < 0)


def test_packages_are_found_fetched_and_unpacked(archive: Archive, tmp_path: Path) -> None:
    index = Mirror(Client(archive.sites))
    index.update("x", [LINE], ["given", "virtual"])
    assert index.versions(["tool", "none"]) == {"tool": "1:2.0-1"}
    packages = index.closure(["tool=1:2.0-1"], "choosing")
    assert [package.name for package in packages] == ["tool", "libtool"]
    files = index.fetch(packages, tmp_path / "deb", "x")
    index.unpack(files, tmp_path, "x")
    assert (tmp_path / "usr/bin/tool").read_bytes() == b"t"
    assert (tmp_path / "usr/bin/tool").stat().st_mode & 0o111
    assert str((tmp_path / "usr/lib/libtool.so").readlink()) == "libtool.so.2"


def test_the_newest_of_two_suites_wins(archive: Archive) -> None:
    archive.add("bookworm-security", {"tool": ("1:2.0-1+deb12u1", "", {})})
    index = Mirror(Client(archive.sites))
    index.update("x", [LINE, f"deb {URL} bookworm-security main"], [])
    assert index.versions(["tool"]) == {"tool": "1:2.0-1+deb12u1"}


def test_something_that_the_index_lacks_is_named(archive: Archive) -> None:
    index = Mirror(Client(archive.sites))
    index.update("x", [LINE], ["given"])
    with pytest.raises(StartError, match="tool needs virtual"):
        index.closure(["real"], "choosing")


def test_a_name_that_another_package_stands_for() -> None:
    (entry,) = parse_index(
        "Package: a\nVersion: 1\nFilename: f\nSize: 1\nSHA256: 0\n"
        "Pre-Depends: b:any (>= 1), c | d\nProvides: e (= 1), f\n",
        "u",
    )
    assert (entry.needs, entry.provides, entry.url) == ((("b",), ("c", "d")), ("e", "f"), "u/f")


def test_an_index_that_another_key_signed_is_refused(archive: Archive) -> None:
    archive.add("bookworm", {}, seed=2)
    with pytest.raises(StartError, match="none of its signatures is by a key of Debian's"):
        Mirror(Client(archive.sites)).update("x", [LINE], [])


def test_an_index_that_was_exchanged_is_refused(archive: Archive) -> None:
    (name,) = [url for url in archive.sites if "by-hash" in url]
    archive.sites[name] += b"x"
    with pytest.raises(StartError, match="another hash than the release file says"):
        Mirror(Client(archive.sites)).update("x", [LINE], [])


def test_another_suite_than_asked_for_is_refused(archive: Archive) -> None:
    archive.sites[f"{URL}/dists/trixie/InRelease"] = archive.sites[
        f"{URL}/dists/bookworm/InRelease"
    ]
    with pytest.raises(StartError, match="trixie holds bookworm"):
        Mirror(Client(archive.sites)).update("x", [f"deb {URL} trixie main"], [])


def test_an_old_index_is_used_and_said(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.add("bookworm", {}, extra="Valid-Until: Fri, 06 Nov 2020 08:08:01 UTC\n")
    Mirror(Client(archive.sites)).update("x", [LINE], [])
    assert "days out of date" in capsys.readouterr().err


def test_a_network_that_is_not_there() -> None:
    with pytest.raises(StartError, match="Name or service not known"):
        Mirror(Client({})).update("x", [LINE], [])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not an ar archive"),
        (deb({"./a": b"1"})[:-9], "is cut off"),
        (deb({"./a": b"1"}, "zst"), "data.tar.zst, expected data.tar.xz"),
        (deb({"../a": b"1"}), "leaves the folder"),
        (deb({"./a": "/tmp", "./a/b": b"1"}), "leaves the folder"),
    ],
)
def test_a_package_that_is_damaged_or_hostile(data: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.deb"
    file.write_bytes(data)
    (tmp_path / "out").mkdir()
    with pytest.raises(StartError, match=said):
        Mirror(Client({})).unpack([file], tmp_path / "out", "x")


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_raise_an_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        ar_members(b"!<arch>\n" + data)


def test_a_link_takes_the_place_of_a_file(tmp_path: Path) -> None:
    for files in ({"./a": b"1"}, {"./a": "b"}, {"./a": b"2"}):
        (tmp_path / "x.deb").write_bytes(deb(files))
        unpack_deb(tmp_path / "x.deb", tmp_path / "out")
    assert (tmp_path / "out/a").read_bytes() == b"2"
    assert not (tmp_path / "out/b").exists()


def test_a_fetched_file_must_have_the_hash_of_the_index(archive: Archive, tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    class Strict(Client):
        def fetch(self, url: str, file: Path, sha256: str, size: int, step: str) -> None:
            asked.append((sha256, size))
            super().fetch(url, file, sha256, size, step)

    index = Mirror(Strict(archive.sites))
    index.update("x", [LINE], [])
    index.fetch([Package("libtool", "2.0-1", 1)], tmp_path, "x")
    (data,) = [data for url, data in archive.sites.items() if "/libtool_" in url]
    assert asked == [(hashlib.sha256(data).hexdigest(), len(data))]
