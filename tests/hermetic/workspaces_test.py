"""Another workspace builds and runs what this repository makes, by its macros and its labels."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import keras
import pytest

from tests.hermetic.nested import checkout, environment, overrides

FILES = pathlib.Path("tests/hermetic/outside")
LIBRARY = pathlib.Path(os.environ["TF_LIBRARY"]).absolute()
NAMES = {"BUILD.outside": "BUILD", "WORKSPACE.outside": "WORKSPACE", "bazelrc": ".bazelrc"}


class Workspace:
    """A workspace that has this repository beside it, and a Bazel of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Writes the files of both."""
        self.folder = folder / "outside"
        self.folder.mkdir()
        tfp = checkout(folder / "tfp")
        for file in FILES.iterdir():
            if file.name != "BUILD":
                shutil.copy(file, self.folder / NAMES.get(file.name, file.name))
        shutil.copy("tests/sdk/own_device.rs", self.folder / "device.rs")
        shutil.copy(tfp / ".bazelversion", self.folder)
        x = keras.Input((6,), name="x")
        model = keras.Model(x, keras.layers.Dense(4, name="y")(x), name="mlp")
        model.save(self.folder / "mlp.keras")
        self.bazel = [str(tfp / "tools/bazel"), f"--output_base={folder / 'output_base'}"]

    def run(self, *arguments: str) -> str:
        """Runs Bazel; returns what was printed."""
        done = subprocess.run(
            [*self.bazel, *arguments],
            cwd=self.folder,
            env={**environment(), "TF_CPP_MIN_LOG_LEVEL": "2", "TF_LIBRARY_PATH": str(LIBRARY)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-8000:]
        return done.stdout

    def build(self, command: str, *targets: str) -> str:
        """Runs a command that builds, with the repositories that this build has fetched."""
        return self.run(command, *overrides(), *targets)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path_factory.mktemp("workspaces"))
    yield workspace
    workspace.run("shutdown")


def test_the_client_and_ops_of_ones_own(outside: Workspace) -> None:
    assert outside.build("run", "//:client") == "9.0\n1\n"


def test_models(outside: Workspace) -> None:
    assert outside.build("run", "//:models") == "4\ntvmgen_default::default::Model\n"
    outside.build("test", "//:mlp_test")


def test_a_device_and_the_plug_in(outside: Workspace) -> None:
    outside.build("build", "//:device")
    # Compiling it takes minutes and does not depend on who asks.
    outside.build("build", "--nobuild", "//:plugin")
