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


def test_links_between_documents_exist() -> None:
    broken = []
    for name, text in texts():
        if name.endswith(".md"):
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
                if "://" in target or target.startswith("mailto:"):
                    continue
                path = (TREE / name).parent / target
                package = path.name in ("BUILD", "WORKSPACE")
                if not (
                    path.exists() or (package and path.with_name(path.name + ".source").exists())
                ):
                    broken.append(f"{name}: {target}")
    assert not broken


def test_documents_name_files_and_packages_that_are_there() -> None:
    """Paths that begin at the root, such as `tools/bazel`, and labels such as `//tools:x`."""
    tops = {path.name for path in TREE.iterdir() if path.is_dir()}
    gone = []
    for name, text in texts():
        if not name.endswith(".md"):
            continue
        for path in re.findall(r"`((?:[\w.-]+/)+[\w.-]*)[^`]*`", text):
            places = [TREE / path, (TREE / name).parent / path]
            places += [place.with_name(f"{place.name}.source") for place in places]
            there = "NAME" in path or any(place.exists() for place in places)
            if path.partition("/")[0] in tops and not there:
                gone.append(f"{name}: {path}")
        for package in re.findall(r"(?<![\w:@])//([\w/]+):\w", text):
            if not (TREE / package / "BUILD.source").exists():
                gone.append(f"{name}: //{package}")
    assert not gone
