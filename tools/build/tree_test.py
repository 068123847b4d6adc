"""What the repository promises of all its files, whoever wrote them."""

import os
import pathlib
import re

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()
# Hosts of package registries: the clients' own configuration names them, never this repository.
# The pattern is built from parts so that it does not match itself.
_REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(host))
        for host in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("crates", "io/api"),
            ("static.crates", "io"),
            ("registry.npmjs", "org"),
            (".debian", "org"),
            ("proxy.golang", "org"),
            ("repo1.maven", "org"),
        )
    )
)
_CODE = (".py", ".rs", ".bzl")
_HARD_CAP = 800


def texts() -> list[tuple[str, str]]:
    found = []
    for path in sorted(TREE.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if b"\0" not in data:
                found.append((str(path.relative_to(TREE)), data.decode("utf-8", "replace")))
    assert found, f"no file below {TREE}"
    return found


def test_no_registry_host_is_named() -> None:
    named = [name for name, text in texts() if _REGISTRIES.search(text)]
    assert not named


def test_no_source_file_passes_the_hard_cap() -> None:
    long = {
        name: lines
        for name, text in texts()
        if name.endswith(_CODE)
        and "@generated" not in text[:400]
        and (lines := text.count("\n")) > _HARD_CAP
    }
    assert not long, f"split these files; a file of over {_HARD_CAP} lines is two rooms: {long}"


def test_a_file_is_named_test_only_if_it_has_tests() -> None:
    marks = {"_test.py": "def test_", "_test.rs": "#[test]"}
    product = [
        name
        for name, text in texts()
        for suffix, mark in marks.items()
        if name.endswith(suffix) and mark not in text
    ]
    assert not product, f"name these files after what they hold: {product}"
