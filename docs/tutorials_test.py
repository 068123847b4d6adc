"""Every page with commands, executed where there are the packages and nothing else of ours."""

from __future__ import annotations

import os
import pathlib
import shutil

import pytest

from docs import tutorials
from tests.packages import clean

CARGO, CC, RUSTC = (pathlib.Path(os.environ[name]).absolute() for name in ("CARGO", "CC", "RUSTC"))
WHEELS, CRATES, ARCHIVES = (
    [pathlib.Path(path).absolute() for path in os.environ[name].split()]
    for name in ("WHEELS", "CRATES", "ARCHIVES")
)
VENDORED = pathlib.Path(os.environ["VENDORED"]).absolute().with_name("vendor")
TUTORIALS = sorted(pathlib.Path("docs/tutorials").glob("*.md"))
PAGES = [
    *TUTORIALS,
    *(
        page
        for page in sorted(pathlib.Path("docs/how-to").glob("*.md"))
        if "$ " in page.read_text()
    ),
]


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("clean")
    venv = clean.Venv(folder / "venv")
    venv.link_locked()
    clean.checked(venv.pip("install", "--no-index", "--no-deps", *WHEELS))
    path = f"{venv.python.parent}:{CARGO.parent}:{CC.parent}:/usr/local/bin:/usr/bin:/bin"
    home = folder / "cargo"
    home.mkdir()
    # The registry, offline.
    home.joinpath("config.toml").write_text(
        '[source.crates-io]\nreplace-with = "vendored"\n'
        f'[source.vendored]\ndirectory = "{VENDORED}"\n'
    )
    cargo = {
        "CARGO_HOME": str(home),
        "CARGO_TARGET_DIR": str(folder / "target"),
        "CARGO_NET_OFFLINE": "true",
        # Nobody looks into these programs.
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "RUSTC": str(RUSTC),
    }
    return clean.environment(HOME=str(folder), PATH=path, **cargo)


def prepare(folder: pathlib.Path) -> None:
    """Puts into a folder what pages say that their reader has."""
    packages = folder / "packages"
    packages.mkdir()
    for crate in CRATES:
        shutil.copy(crate, packages)
    for file in ARCHIVES:
        shutil.copy(file, folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(page: pathlib.Path, variables: dict[str, str]) -> None:
    # The same folder for each: Cargo compiles a package anew that lies somewhere else.
    folder = pathlib.Path(variables["HOME"]) / "reader"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    prepare(folder)
    assert tutorials.run(page, folder, variables) > 3


def test_an_output_that_is_not_the_page_s_is_an_error(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    text = (
        '```text title="a/b"\nline\n```\n```console\n$ cat a/b\n{}\n$ echo 1; echo 2\n...\n2\n```\n'
    )
    page.write_text(text.format("l...e"))
    assert tutorials.run(page, tmp_path, {"PATH": os.environ["PATH"]}) == 3
    page.write_text(text.format("lime"))
    with pytest.raises(tutorials.TutorialError, match=r"page\.md:5: `cat a/b` prints\nline"):
        tutorials.run(page, tmp_path, {"PATH": os.environ["PATH"]})
    page.write_text("```console\n$ false\n```\n")
    with pytest.raises(tutorials.TutorialError, match="ends with 1"):
        tutorials.run(page, tmp_path, {"PATH": os.environ["PATH"]})


def test_the_pages_are_there() -> None:
    products = {"client", "mlf2rust", "plugin", "tf2rust"}
    keras = {f"keras-{name}" for name in ("functional", "loop", "rust-keras", "transfer")}
    assert {page.stem for page in TUTORIALS} == products | keras
