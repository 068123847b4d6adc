"""Every how-to that changes this repository, done on a copy of it."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

import pytest

from docs import how_to

CHECKOUT = pathlib.Path(os.environ["CHECKOUT"]).resolve()
PAGES = os.environ["PAGES"].split()
"""The pages of this target: those that compile every op are in one that is run by hand."""

OTHERS = {
    "depend.md": "changes another repository: //tests/hermetic:workspaces_test",
    "device.md": "a program outside of this repository: //docs:tutorials_test",
}
"""Pages without steps, and why."""


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the repository."""
    return pathlib.Path(shutil.copytree(CHECKOUT, tmp_path / "tree"))


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("home")
    cargo, cc, rustc, rustfmt, vendored, library = (
        pathlib.Path(os.environ[name]).absolute()
        for name in ("CARGO", "CC", "RUSTC", "RUSTFMT", "VENDORED", "TF_LIBRARY")
    )
    # The registry, offline.
    (folder / "config.toml").write_text(
        '[source.crates-io]\nreplace-with = "vendored"\n'
        f'[source.vendored]\ndirectory = "{vendored.with_name("vendor")}"\n'
    )
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(sys.executable)
    return {
        "CARGO_HOME": str(folder),
        "CARGO_NET_OFFLINE": "true",
        # Nobody looks into these programs.
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_TARGET_DIR": str(folder / "target"),
        "HOME": str(folder),
        "PATH": f"{folder}/bin:{cargo.parent}:{cc.parent}:/usr/local/bin:/usr/bin:/bin",
        # The wheels, and of ours the copy only.
        "PYTHONPATH": os.pathsep.join(
            [".", *(path for path in sys.path if "site-packages" in path)]
        ),
        "RUSTC": str(rustc),
        "RUSTFMT": str(rustfmt),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_LIBRARY_PATH": str(library),
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_what_it_says(name: str, tree: pathlib.Path, variables: dict[str, str]) -> None:
    assert how_to.run(CHECKOUT / "docs/how-to" / name, tree, variables) > 0


def test_every_page_has_steps_or_a_reason() -> None:
    pages = {
        page.name: how_to.steps(page.name, page.read_text(encoding="utf-8"))
        for page in sorted((CHECKOUT / "docs/how-to").glob("*.md"))
    }
    assert {name for name, found in pages.items() if not found} == set(OTHERS)
    build = (CHECKOUT / "docs/BUILD.source").read_text(encoding="utf-8")
    lost = [name for name, found in pages.items() if found and f'"{name}"' not in build]
    assert not lost, f"no target of docs/BUILD does the steps of {lost}"


PAGE = """
<!-- write a/b.txt -->
```text
one
```

1. In a list:

    <!-- insert a/b.txt after one -->
    ```text
    two
    ```

<!-- check a: test "$(cat b.txt)" = "$TEXT" -->
"""


def test_steps_are_done_in_order(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "a").mkdir()
    variables = {"PATH": os.environ["PATH"], "TEXT": "one\ntwo"}
    assert how_to.run(page, tmp_path, variables) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("after one", "after three", r"page\.md:9: a/b\.txt has the line `three` 0 times"),
        ("insert a/b.txt", "insert a/c.txt", r"page\.md:9: there is no file a/c\.txt"),
        ("write a/b.txt", "write c/b.txt", r"page\.md:2: c/b\.txt is there already, or its folder"),
        ("write a/b.txt", "write", r"page\.md:2: not a step: `<!-- write -->`"),
        ("one\n```\n", "one\n", r"page\.md:2: not a step: .*, then a block"),
        ("$TEXT", "two", r"page\.md:14: .* ends with 1"),
    ],
)
def test_a_step_that_can_not_be_done_is_an_error(
    tmp_path: pathlib.Path, old: str, new: str, message: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(old, new, 1))
    (tmp_path / "a").mkdir()
    variables = {"PATH": os.environ["PATH"], "TEXT": "one\ntwo"}
    with pytest.raises(how_to.HowToError, match=message):
        how_to.run(page, tmp_path, variables)
