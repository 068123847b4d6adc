"""Two clean builds, in two checkouts and two output bases, give the same libtfp.so."""

import hashlib
import os
import pathlib
import shutil
import subprocess

from tests.hermetic.nested import overrides

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()
TARGET = "//plugin:libtfp.so"


def checkout(folder: pathlib.Path) -> pathlib.Path:
    for source in TREE.rglob("*"):
        if source.is_file():
            copy = folder / str(source.relative_to(TREE)).removesuffix(".source")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    return folder


def build(folder: pathlib.Path) -> str:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TEST_", "BAZEL_", "RUNFILES", "PYTHON", "XML_"))
    }
    bazel = [
        str(checkout(folder / "checkout") / "tools" / "bazel"),
        f"--output_base={folder / 'output_base'}",
    ]
    try:
        subprocess.run(
            [*bazel, "build", "--disk_cache=", *overrides(), TARGET],
            cwd=folder / "checkout",
            env=environment,
            check=True,
        )
        built = folder / "checkout" / "bazel-bin" / "plugin" / "libtfp.so"
        return hashlib.sha256(built.read_bytes()).hexdigest()
    finally:
        subprocess.run([*bazel, "shutdown"], cwd=folder / "checkout", env=environment, check=False)


def test_two_clean_builds_are_identical(tmp_path: pathlib.Path) -> None:
    first = build(tmp_path / "a")
    second = build(tmp_path / "another" / "and" / "longer" / "path")
    assert first == second
