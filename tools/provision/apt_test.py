from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.provision.apt import (
    Source,
    archive_of,
    host_release,
    host_sources,
    numbers,
    parse_deb822,
    parse_one_line,
    parse_uris,
    upstream_part,
)
from tools.provision.messages import StartError

WORD = st.from_regex(r"[a-z][a-z0-9.+-]{0,8}", fullmatch=True)


def test_one_line_form() -> None:
    text = (
        "# comment\n"
        "deb http://m.invalid/debian bookworm main contrib # tail\n"
        "deb [ arch=amd64 signed-by=/k.gpg ] https://m.invalid/debian bookworm-updates main\n"
        "deb-src http://m.invalid/debian bookworm main\n"
        "deb http://m.invalid/flat ./\n"
    )
    assert parse_one_line(text) == [
        Source("http://m.invalid/debian", ("bookworm",), ("main", "contrib"), ()),
        Source(
            "https://m.invalid/debian",
            ("bookworm-updates",),
            ("main",),
            ("arch=amd64", "signed-by=/k.gpg"),
        ),
        Source("http://m.invalid/flat", ("./",), (), ()),
    ]


def test_deb822_form(tmp_path: Path) -> None:
    text = (
        "Types: deb deb-src\n# note\nURIs: http://a.invalid http://b.invalid\n"
        "Suites: bookworm\n bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n\n"
        "Enabled: no\nTypes: deb\nURIs: http://c.invalid\nSuites: bookworm\nComponents: main\n\n"
        "Types: deb-src\nURIs: http://d.invalid\nSuites: bookworm\nComponents: main\n"
    )
    assert parse_deb822(text, tmp_path) == [
        Source(uri, ("bookworm", "bookworm-updates"), ("main",), ("signed-by=/k.gpg",))
        for uri in ("http://a.invalid", "http://b.invalid")
    ]


def test_deb822_with_a_key_inside(tmp_path: Path) -> None:
    text = (
        "Types: deb\nURIs: http://a.invalid\nSuites: bookworm\nComponents: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n"
        " -----END PGP PUBLIC KEY BLOCK-----\n"
    )
    (source,) = parse_deb822(text, tmp_path)
    key = Path(source.options[0].removeprefix("signed-by="))
    assert key.read_text().split("\n")[-5:] == [
        "-----BEGIN PGP PUBLIC KEY BLOCK-----",
        "",
        "abc",
        "-----END PGP PUBLIC KEY BLOCK-----",
        "",
    ]


@given(
    st.lists(
        st.tuples(WORD, WORD, st.lists(WORD, min_size=1, max_size=3), st.booleans()), max_size=5
    )
)
def test_a_line_is_read_back(entries: list[tuple[str, str, list[str], bool]]) -> None:
    sources = [
        Source(f"http://{host}", (suite,), tuple(parts), ("trusted=yes",) if trusted else ())
        for host, suite, parts, trusted in entries
    ]
    text = "\n".join(source.line(source.suites[0]) for source in sources)
    assert parse_one_line(text) == sources


def test_sources_of_a_host(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://a.invalid bookworm main\n")
    (tmp_path / "sources.list.d/x.list").write_text("deb http://b.invalid stable main\n")
    (tmp_path / "sources.list.d/x.list.save").write_text("deb http://no.invalid stable main\n")
    found = host_sources(tmp_path, tmp_path)
    assert [source.uri for source in found] == ["http://a.invalid", "http://b.invalid"]


def test_the_archive_is_the_one_with_the_release() -> None:
    third = Source("http://other.invalid", ("stable",), ("main",), ())
    debian = Source("http://m.invalid", ("bookworm",), ("main", "non-free"), ("signed-by=/k",))
    disc = Source("cdrom:[x]/", ("bookworm",), ("main",), ())
    found = archive_of([disc, third, debian], "bookworm")
    assert found == Source("http://m.invalid", ("bookworm",), ("main",), ("signed-by=/k",))
    assert found.line("testing") == "deb [signed-by=/k] http://m.invalid testing main"
    assert archive_of([third], "bookworm").uri == "http://other.invalid"
    with pytest.raises(StartError, match="no archive for Debian bookworm"):
        archive_of([disc], "bookworm")


def test_release(tmp_path: Path) -> None:
    path = tmp_path / "os-release"
    path.write_text('ID=debian\nVERSION_CODENAME="bookworm"\n\nBAD\n')
    assert host_release(path) == ("debian", "bookworm")
    assert host_release(tmp_path / "none") == ("", "")


def test_uris() -> None:
    text = (
        "Reading package lists...\n"
        "'http://m/x/libc6_2.43-7_amd64.deb' libc6_2.43-7_amd64.deb 1866392 SHA256:ab\n"
        "'http://m/x' libnetty-java_1%3a4.1.48-16_all.deb 12 MD5Sum:cd\n"
    )
    assert [(one.name, one.version, one.size) for one in parse_uris(text)] == [
        ("libc6", "2.43-7", 1866392),
        ("libnetty-java", "1:4.1.48-16", 12),
    ]


@pytest.mark.parametrize(
    ("version", "part"),
    [("7.7.1+ds-8+b1", "7.7.1"), ("1:4.1.48-16", "4.1.48"), ("0.54.1+dfsg.1-2", "0.54.1")],
)
def test_upstream_part(version: str, part: str) -> None:
    assert upstream_part(version) == part


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4), st.integers(0, 9))
def test_versions_compare_as_numbers(parts: list[int], revision: int) -> None:
    text = ".".join(map(str, parts))
    assert numbers(f"{text}-{revision}") == tuple(parts)
