"""Another workspace builds and runs what this repository makes, by its macros and its labels."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator

import keras
import pytest

from tests.hermetic.nested import checkout, environment, overrides

FILES = pathlib.Path("tests/hermetic/outside")
LIBRARY = pathlib.Path(os.environ["TF_LIBRARY"]).absolute()
SHARED = {"BUILD.outside": "BUILD"}
MODULES = {"MODULE.outside": "MODULE.bazel", "modules.bazelrc": ".bazelrc"}
NAMES = {
    "workspace": {"WORKSPACE.outside": "WORKSPACE", "workspace.bazelrc": ".bazelrc"},
    "modules": MODULES,
    "archive": MODULES,
}
IN_A_FOLDER = """\
local_path_override(
    module_name = "tfp",
    path = "../tfp",
)
"""
IN_AN_ARCHIVE = """\
archive_override(
    module_name = "tfp",
    strip_prefix = "tfp",
    urls = ["file://{archive}"],
)
"""
# What modules of ours need of other modules, where no registry is reached: the launcher's copies,
# and empty ones of those that nothing here loads.
COPIES = (
    "bazel_features",
    "bazel_skylib",
    "platforms",
    "rules_cc",
    "rules_java",
    "rules_license",
    "rules_proto",
    "rules_python",
    "rules_rust",
)
EMPTY = ("apple_support", "aspect_rules_js", "buildozer", "protobuf", "zlib")


class Workspace:
    """A workspace that has this repository beside it, and a Bazel of its own."""

    def __init__(self, folder: pathlib.Path, mode: str) -> None:
        """Writes the files of both; `mode` is a key of NAMES."""
        self.folder = folder / "outside"
        self.folder.mkdir()
        tfp = checkout(folder / "tfp")
        for file in FILES.iterdir():
            if file.suffix in (".rs", ".pbtxt"):
                shutil.copy(file, self.folder)
        for name, target in {**SHARED, **NAMES[mode]}.items():
            shutil.copy(FILES / name, self.folder / target)
        if mode == "archive":
            archive = shutil.make_archive(str(folder / "release"), "gztar", folder, "tfp")
            module = self.folder / "MODULE.bazel"
            text = module.read_text()
            assert IN_A_FOLDER in text
            module.write_text(text.replace(IN_A_FOLDER, IN_AN_ARCHIVE.format(archive=archive)))
        shutil.copy("tests/sdk/own_device.rs", self.folder / "device.rs")
        shutil.copy(tfp / ".bazelversion", self.folder)
        x = keras.Input((6,), name="x")
        model = keras.Model(x, keras.layers.Dense(4, name="y")(x), name="mlp")
        model.save(self.folder / "mlp.keras")
        self.bazel = [str(tfp / "tools/bazel"), f"--output_base={folder / 'output_base'}"]
        self.options = overrides() if mode == "workspace" else self.modules(folder / "empty")

    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs Bazel."""
        return subprocess.run(
            [*self.bazel, *arguments],
            cwd=self.folder,
            env={**environment(), "TF_CPP_MIN_LOG_LEVEL": "2", "TF_LIBRARY_PATH": str(LIBRARY)},
            capture_output=True,
            text=True,
            check=False,
        )

    def modules(self, empty: pathlib.Path) -> list[str]:
        """Options that name the launcher's copies as modules; none where it leaves all to Bazel."""
        said = self.start("info", "release", "--announce_rc").stderr
        copies = dict(re.findall(r"--override_repository=(\w+)=(\S+)", said))
        if "rules_rust" not in copies:
            return []
        options = [f"--override_module={name}={copies[name]}" for name in COPIES]
        for name in EMPTY:
            (empty / name).mkdir(parents=True)
            (empty / name / "MODULE.bazel").write_text(f'module(name = "{name}")\n')
            (empty / name / "BUILD").touch()
            options.append(f"--override_module={name}={empty / name}")
        for name, place in copies.items():
            if name.startswith("pypi__"):
                owner = "rules_python~~internal_deps"
            elif name == "rules_rust_tinyjson":
                owner = "rules_rust~~i"
            else:
                continue
            options.append(f"--override_repository={owner}~{name}={place}")
        return options

    def run(self, *arguments: str) -> str:
        """Runs Bazel, which must succeed; returns what was printed."""
        done = self.start(*arguments)
        assert done.returncode == 0, done.stderr[-8000:]
        return done.stdout

    def build(self, command: str, *targets: str) -> str:
        """Runs a command that builds."""
        return self.run(command, *self.options, *targets)


@pytest.fixture(scope="module", params=["modules", "workspace"])
def outside(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path_factory.mktemp(request.param), request.param)
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


def test_an_archive(tmp_path: pathlib.Path) -> None:
    workspace = Workspace(tmp_path, "archive")
    # What is compiled does not depend on how the files came.
    workspace.build("build", "--nobuild", "//...")
    workspace.run("shutdown")
