"""The libraries whose wheels carry their tests, and what is known of tests that differ."""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib.metadata
import pathlib
from collections.abc import Iterable, Sequence
from typing import Final

from tests.keras_suite.suite import Suite, SuiteError

# All of them were written for Keras 2.
_VARIABLES: Final = {"TF_USE_LEGACY_KERAS": "1"}
# Programs of TensorFlow 1 build graphs, and have no eager mode.
_FIRST: Final = {**_VARIABLES, "TF2_BEHAVIOR": "0"}


@dataclasses.dataclass(frozen=True)
class Library:
    """A library.

    Attributes:
        name: Its distribution on PyPI.
        source: The folder of its tests, below the folder of packages.
        device_type: Type of the device; None for the one that is asked for.
        apart: Whether each file needs a process of its own, such as for `disable_v2_behavior`.
        first: Whether it is for TensorFlow 1, whose programs build graphs.
    """

    name: str
    source: str
    device_type: str | None = None
    apart: bool = False
    first: bool = False


LIBRARIES: Final = (
    # Its tests run on the CPU unless there is a GPU.
    Library("dm-sonnet", "sonnet/src", device_type="GPU"),
    Library("gpflow", "tests/gpflow"),
    Library("tensorflow-graphics", "tensorflow_graphics"),
    Library("tensorflow-probability", "tensorflow_probability/python"),
    Library("tensorflow-recommenders", "tensorflow_recommenders"),
    Library("tf-agents", "tf_agents", apart=True),
    Library("tf-models-official", "official"),
    Library("tf-slim", "tf_slim", first=True),
    Library("trfl", "trfl", first=True),
)


@dataclasses.dataclass(frozen=True)
class Difference:
    """Tests that need not pass on the device.

    Attributes:
        library: Distribution of the library.
        tests: Patterns of their names, as in a shell.
        reason: Why, in sentences of the page.
    """

    library: str
    tests: Sequence[str]
    reason: str


DIFFERENCES: Final[Sequence[Difference]] = ()


def explained(test: str) -> bool:
    """Says whether it is known why this test differs."""
    patterns = (pattern for known in DIFFERENCES for pattern in known.tests)
    return any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)


def named(names: Iterable[str]) -> list[Library]:
    """Returns the libraries of these names; all if there are none.

    Raises:
        SuiteError: If a name is unknown.
    """
    by_name = {library.name: library for library in LIBRARIES}
    wanted = [name.replace("_", "-") for name in names]
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise SuiteError(f"unknown {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in wanted] or list(LIBRARIES)


def suite(library: Library, packages: Sequence[pathlib.Path]) -> Suite:
    """Returns the tests that the wheel of a library brought along.

    Args:
        library: The library.
        packages: Folders with installed packages.

    Raises:
        SuiteError: If it isn't there, or has no tests.
    """
    paths = [str(folder) for folder in packages]
    for distribution in importlib.metadata.distributions(name=library.name, path=paths):
        root = pathlib.Path(str(distribution.locate_file(".")))
        folders: dict[str, list[pathlib.Path]] = {}
        source = pathlib.PurePath(library.source)
        for file in sorted(map(pathlib.PurePath, distribution.files or ())):
            if source in file.parents and is_test(file.name):
                folders.setdefault(file.parent.as_posix(), []).append(root / file)
        if not folders:
            raise SuiteError(f"{library.name} {distribution.version} has no tests in {source}")
        return Suite(
            root,
            distribution.version,
            {name: tuple(files) for name, files in folders.items()},
            source,
            _FIRST if library.first else _VARIABLES,
            library.apart,
            # What is for no GPU skips itself there.
            may_skip=library.device_type == "GPU",
        )
    raise SuiteError(f"{library.name} is not in {', '.join(paths)}")


def is_test(name: str) -> bool:
    """Says whether a file's name is one of tests."""
    return name.endswith("_test.py") or (name.startswith("test_") and name.endswith(".py"))
