"""CODEOWNERS has a pattern for every room, of paths that are there, and no made-up owner."""

import os
import pathlib
import re

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()
HALLS = ("bindings", "converters", "tools")
"""Folders whose rooms have patterns of their own."""


def rules(text: str) -> dict[str, list[str]]:
    """The owners of each pattern, in the order of the file."""
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {pattern: owners for pattern, *owners in lines}


def written() -> dict[str, list[str]]:
    return rules((TREE / "CODEOWNERS").read_text(encoding="utf-8"))


def folders(place: pathlib.Path) -> list[str]:
    """The folders of a place; hidden ones may be caches of tools."""
    return [
        f"/{path.relative_to(TREE)}/"
        for path in sorted(place.iterdir())
        if path.is_dir() and not path.name.startswith(".")
    ]


def test_every_room_has_a_pattern() -> None:
    rooms = [room for room in folders(TREE) if room.strip("/") not in HALLS]
    rooms += [room for hall in HALLS for room in folders(TREE / hall)]
    lost = [room for room in rooms if room not in written()]
    assert not lost, f"give these rooms a line in CODEOWNERS: {lost}"


def test_every_pattern_is_of_something_there() -> None:
    gone = [pattern for pattern in written() if not (TREE / pattern.lstrip("/")).exists()]
    assert not gone


def test_owners_are_teams_of_an_organisation_or_addresses() -> None:
    """A handle alone, such as `@maintainers`, is the account of a stranger."""
    owner = re.compile(r"@[\w-]+/[\w-]+|[\w.+-]+@[\w-]+(\.[\w-]+)+")
    wrong = {name for owners in written().values() for name in owners if not owner.fullmatch(name)}
    assert not wrong


def test_lines_are_read_as_hosting_sites_do() -> None:
    text = "# comment\n\n/a/ @o/t m@x.org\n/b/\n"
    assert rules(text) == {"/a/": ["@o/t", "m@x.org"], "/b/": []}
