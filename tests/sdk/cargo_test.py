"""Crates outside of the repository that depend on tfp-sys or tfp-bindings, built by Cargo alone."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

CARGO, CC, RUSTC = (Path(os.environ[name]).absolute() for name in ("CARGO", "CC", "RUSTC"))
LIBRARY = Path(os.environ["TF_LIBRARY"]).absolute()
FOLDERS = ("bindings/plugin", "bindings/sys", "bindings/wire")

MAIN = """
use tfp_sys::{ClientApi, TF_BFLOAT16, TF_OK};

fn main() {
    let api = ClientApi::global().unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: neither function has a precondition.
    let (size, status) = unsafe {
        (api.tf_datatype.TF_DataTypeSize(TF_BFLOAT16), api.tf_status.TF_NewStatus())
    };
    // SAFETY: the status is alive until it is deleted, once.
    let code = unsafe { api.tf_status.TF_GetCode(status) };
    unsafe { api.tf_status.TF_DeleteStatus(status) };
    assert_eq!(code, TF_OK);
    println!("bfloat16 has {size} bytes");
}
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a dependency on tfp_bindings brings along."""
    root = tmp_path_factory.mktemp("tfp")
    shutil.copyfile("Cargo.toml", root / "Cargo.toml")
    for folder in FOLDERS:
        for source in Path(folder).rglob("*"):
            if source.is_file() and "__pycache__" not in source.parts:
                copy = root / source
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
    return root


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def crate(folder: Path, dependency: str) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "src/main.rs").write_text(MAIN)
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "outside"\nversion = "0.1.0"\nedition = "2024"\n'
        f"[dependencies]\ntfp-sys = {{ {dependency} }}\n[workspace]\n"
    )
    return folder


def device(folder: Path, dependency: str) -> Path:
    (folder / "src").mkdir(parents=True)
    shutil.copy("tests/sdk/own_device.rs", folder / "src/lib.rs")
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "device"\nversion = "0.1.0"\nedition = "2024"\n'
        '[lib]\ncrate-type = ["cdylib"]\n'
        f"[dependencies]\ntfp-bindings = {{ {dependency} }}\n[workspace]\n"
    )
    return folder


def assert_plug_in(library: Path) -> None:
    """It exports what TensorFlow looks for, and needs nothing of it to be loaded."""
    loaded = ctypes.CDLL(str(library))
    assert loaded.SE_InitPlugin
    assert loaded.TF_InitKernel
    library.unlink()


def cargo(
    folder: Path, home: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": f"{CC.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "CARGO_HOME": str(home / "cargo"),
        "CARGO_TARGET_DIR": str(home / "target"),
        "CARGO_NET_OFFLINE": "true",
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "RUSTC": str(RUSTC),
        "TF_LIBRARY_PATH": str(LIBRARY),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **(variables or {}),
    }
    return subprocess.run(
        [str(CARGO), *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_a_path_dependency_builds_and_runs_offline(
    tmp_path: Path, repository: Path, home: Path
) -> None:
    folder = crate(tmp_path / "outside", f'path = "{repository}/bindings/sys"')
    done = cargo(folder, home, "run", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "bfloat16 has 2 bytes\n"


def test_a_device_by_path_builds_offline(tmp_path: Path, repository: Path, home: Path) -> None:
    folder = device(tmp_path / "device", f'path = "{repository}/bindings/plugin"')
    done = cargo(folder, home, "build", "--quiet")
    assert done.returncode == 0, done.stderr
    assert_plug_in(home / "target/debug/libdevice.so")


def test_the_linked_form_builds_and_runs(tmp_path: Path, repository: Path, home: Path) -> None:
    """With the feature, the linker finds every required function in the two libraries."""
    folder = crate(tmp_path / "outside", f'path = "{repository}/bindings/sys", features = ["link"]')
    where = LIBRARY.parent
    names = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")
    flags = [f"-Clink-arg={where / name}" for name in names] + [f"-Clink-arg=-Wl,-rpath,{where}"]
    done = cargo(
        folder,
        home,
        "run",
        "--quiet",
        variables={"RUSTFLAGS": " ".join(flags), "TF_LIBRARY_PATH": "/nowhere"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "bfloat16 has 2 bytes\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_git_dependency_builds_offline_after_fetching(
    tmp_path: Path, repository: Path, home: Path
) -> None:
    copy = tmp_path / "repository"
    shutil.copytree(repository, copy)
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "all"],
    ):
        subprocess.run(["git", *command], cwd=copy, check=True, env={"PATH": os.defpath})
    folder = device(tmp_path / "device", f'git = "file://{copy}"')
    fetched = cargo(folder, home, "fetch", variables={"CARGO_NET_OFFLINE": "false"})
    if "git_proxy_options" in fetched.stderr:
        pytest.skip(
            "this cargo, such as Debian's 1.96, and its git library disagree: no git at all"
        )
    assert fetched.returncode == 0, fetched.stderr
    shutil.rmtree(copy)
    done = cargo(folder, home, "build", "--quiet", "--offline")
    assert done.returncode == 0, done.stderr
    assert_plug_in(home / "target/debug/libdevice.so")
