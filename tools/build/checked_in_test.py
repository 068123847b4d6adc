"""The sources in the checkout are what the generator writes now."""

import os
import pathlib

FOLDER, UPDATE = pathlib.Path(os.environ["FOLDER"]), os.environ["UPDATE"]
GENERATED = {path.name: path for path in map(pathlib.Path, os.environ["GENERATED"].split())}
ADVICE = f"update them: tools/bazel run {UPDATE}"


def test_the_same_files_are_there() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(GENERATED), ADVICE


def test_they_have_the_same_text() -> None:
    different = [
        name
        for name, path in sorted(GENERATED.items())
        if (FOLDER / name).is_file() and (FOLDER / name).read_bytes() != path.read_bytes()
    ]
    assert not different, ADVICE
