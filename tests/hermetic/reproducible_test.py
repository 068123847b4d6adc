"""Two clean builds, in two checkouts and two output bases, give the same libtfp.so."""

import hashlib
import pathlib
import subprocess

from tests.hermetic.nested import checkout, environment, overrides

TARGET = "//plugin:libtfp.so"


def build(folder: pathlib.Path) -> str:
    bazel = [
        str(checkout(folder / "checkout") / "tools" / "bazel"),
        f"--output_base={folder / 'output_base'}",
    ]
    try:
        subprocess.run(
            [*bazel, "build", "--disk_cache=", *overrides(), TARGET],
            cwd=folder / "checkout",
            env=environment(),
            check=True,
        )
        built = folder / "checkout" / "bazel-bin" / "plugin" / "libtfp.so"
        return hashlib.sha256(built.read_bytes()).hexdigest()
    finally:
        subprocess.run(
            [*bazel, "shutdown"], cwd=folder / "checkout", env=environment(), check=False
        )


def test_two_clean_builds_are_identical(tmp_path: pathlib.Path) -> None:
    first = build(tmp_path / "a")
    second = build(tmp_path / "another" / "and" / "longer" / "path")
    assert first == second
