"""The packages of Cargo, used by a project that has nothing else of this repository, offline."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

CARGO, CC, RUSTC = (pathlib.Path(os.environ[name]).absolute() for name in ("CARGO", "CC", "RUSTC"))
CRATES = [pathlib.Path(path).absolute() for path in os.environ["CRATES"].split()]
LIBRARY = pathlib.Path(os.environ["TF_LIBRARY"]).absolute()
DEVICE = pathlib.Path("tests/sdk/own_device.rs")

CLIENT = """
use tfp_core::{EagerContext, Result, Tensor};
use tfp_ops::{add_v2, sqrt, square};

fn main() -> Result<()> {
    let eager = EagerContext::new()?;
    let a = eager.handle(&Tensor::from_array([3.0_f32, 5.0])?)?;
    let b = eager.handle(&Tensor::from_array([4.0_f32, 12.0])?)?;
    let sum = add_v2(&eager, square(&eager, a)?, square(&eager, b)?)?;
    println!("{:?}", sqrt(&eager, sum)?.to_tensor()?.as_slice::<f32>()?);
    Ok(())
}
"""

TRAINING = """
use tfp::nn::layer::{Composed, Dense, Layer, Node};
use tfp::nn::{Model, Weights};
use tfp::{EagerContext, Result, Tape, Variable, ops};

#[derive(Model)]
struct Net {
    hidden: Dense,
}

impl Composed for Net {
    fn call(&self, x: &Node) -> Result<Node> {
        self.hidden.on(x)
    }
}

fn main() -> Result<()> {
    let ctx = EagerContext::new()?;
    let w = Variable::new(&ctx, "w", 2.0_f32)?;
    let tape = Tape::new(&ctx);
    let square = ops::square(&tape, w.read(&tape)?)?;
    let gradient = tape.gradient(&square, &w.handle_in(&ctx)?)?;
    println!("{}", gradient.to_tensor()?.to_scalar::<f32>()?);
    let net = Net { hidden: Dense::new(2) };
    let model = net.model(&[&Node::input(&Weights::new(&ctx, 1), "x", &[3])?])?;
    println!("{}", model.variables()[0].name());
    Ok(())
}
"""

COMPUTE = """
use tfp_runtime::kernels::base::parallel::Serial;
use tfp_runtime::kernels::ops::norm::softmax;

fn main() -> Result<(), tfp_kernels::base::error::Error> {
    let mut out = [0.0; 4];
    softmax::softmax(&[1.0, 1.0, 0.0, 0.0], 2, &mut out, &Serial)?;
    println!("{out:?}");
    Ok(())
}
"""


FIRMWARE = """
use tfp_embedded::{Clock, Counter, Model, Profiler, Totals, from_fn};

fn main() -> Result<(), std::fmt::Error> {
    let time = std::cell::Cell::new(0xFF_FFFE);
    let clock = Counter::new(24, || time.get());
    let mut model = from_fn(|input: &i8, output: &mut i8| {
        time.set(time.get() + 5);
        *output = -input;
        Ok::<(), std::fmt::Error>(())
    });
    let (mut totals, mut output) = (Totals::<1>::new(), 0);
    let profiler: &mut dyn Profiler = &mut totals;
    model.run_profiled(&7, &mut output, &clock as &dyn Clock, profiler)?;
    println!("{output} {}", totals.run().ticks);
    Ok(())
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A project whose registry is a folder with the packages."""
    folder = tmp_path_factory.mktemp("project")
    registry = folder / "registry"
    for crate in CRATES:
        with tarfile.open(crate) as archive:
            archive.extractall(registry)
        checksum = {"files": {}, "package": hashlib.sha256(crate.read_bytes()).hexdigest()}
        place = registry / crate.name.removesuffix(".crate")
        (place / ".cargo-checksum.json").write_text(json.dumps(checksum))
    (folder / ".cargo").mkdir()
    (folder / ".cargo/config.toml").write_text(
        '[source.crates-io]\nreplace-with = "packages"\n'
        f'[source.packages]\ndirectory = "{registry}"\n'
    )
    return folder


def package(
    project: pathlib.Path, name: str, file: str, text: str, dependencies: str
) -> pathlib.Path:
    folder = project / name
    (folder / "src").mkdir(parents=True)
    (folder / "src" / file).write_text(text)
    kind = '[lib]\ncrate-type = ["cdylib"]\n' if file == "lib.rs" else ""
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n{kind}'
        f"[dependencies]\n{dependencies}\n[profile.dev]\ndebug = false\n"
    )
    return folder


def environment(project: pathlib.Path, **variables: str) -> dict[str, str]:
    return {
        "PATH": f"{CC.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(project),
        "CARGO_HOME": str(project / "home"),
        "CARGO_TARGET_DIR": str(project / "target"),
        "CARGO_NET_OFFLINE": "true",
        "RUSTC": str(RUSTC),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **variables,
    }


def run(
    command: list[str], folder: pathlib.Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(folder.parent, **variables),
        capture_output=True,
        text=True,
        check=False,
    )


def version(name: str) -> str:
    """The version of a package among the given ones."""
    (found,) = [crate.name for crate in CRATES if crate.name.rpartition("-")[0] == name]
    return found.rpartition("-")[2].removesuffix(".crate")


def build(project: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Builds a package; returns the program."""
    built = run([str(CARGO), "build", "--quiet"], folder)
    assert built.returncode == 0, built.stderr
    return project / "target/debug" / folder.name


def test_all_have_one_version() -> None:
    assert {version(crate.name.rpartition("-")[0]) for crate in CRATES} == {version("tfp-client")}


def test_a_client_with_one_group_of_ops_builds_and_runs(project: pathlib.Path) -> None:
    wanted = version("tfp-core")
    folder = package(
        project,
        "client",
        "main.rs",
        CLIENT,
        f'tfp-core = "{wanted}"\n'
        f'tfp-ops = {{ version = "{wanted}", default-features = false, features = ["math"] }}',
    )
    program = str(build(project, folder))
    done = run([program], folder, TF_LIBRARY_PATH=str(LIBRARY))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[5.0, 13.0]\n"
    # Neither a library nor a Python that knows of one.
    without = run([program], folder, PATH="/nowhere")
    assert without.returncode != 0
    (line,) = without.stderr.splitlines()
    assert "TensorFlow not found: no libtensorflow_framework.so.2" in line
    assert "set TF_LIBRARY_PATH to the folder of the libraries" in line


def test_the_whole_client_builds_and_runs(project: pathlib.Path) -> None:
    folder = package(
        project, "training", "main.rs", TRAINING, f'tfp-client = "{version("tfp-client")}"'
    )
    done = run([str(build(project, folder))], folder, TF_LIBRARY_PATH=str(LIBRARY))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "4\nhidden/kernel\n"


def test_kernels_and_what_models_run_on_compute(project: pathlib.Path) -> None:
    wanted = version("tfp-kernels")
    folder = package(
        project,
        "compute",
        "main.rs",
        COMPUTE,
        f'tfp-kernels = "{wanted}"\ntfp-runtime = "{wanted}"',
    )
    done = run([str(build(project, folder))], folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0.5, 0.5, 0.5, 0.5]\n"


def test_the_interface_of_firmware_needs_nothing_else(project: pathlib.Path) -> None:
    needed = f'tfp-embedded = "{version("tfp-embedded")}"'
    folder = package(project, "firmware", "main.rs", FIRMWARE, needed)
    done = run([str(build(project, folder))], folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "-7 5\n"


def test_a_device_is_a_plug_in(project: pathlib.Path) -> None:
    """It exports what TensorFlow looks for, and needs nothing of it to be loaded."""
    wanted = version("tfp-bindings")
    needed = f'tfp-bindings = "{wanted}"\ntfp-sys = "{wanted}"'
    folder = package(project, "device", "lib.rs", DEVICE.read_text(), needed)
    program = build(project, folder)
    library = ctypes.CDLL(str(program.with_name("libdevice.so")))
    assert library.SE_InitPlugin
    assert library.TF_InitKernel


def test_every_package_says_what_it_is(project: pathlib.Path) -> None:
    for crate in CRATES:
        folder = project / "registry" / crate.name.removesuffix(".crate")
        assert (folder / "LICENSE").read_text().split()[:2] == ["Apache", "License"]
        bill = json.loads((folder / "sbom.cdx.json").read_text())
        assert bill["metadata"]["component"]["name"] == folder.name.rpartition("-")[0]
        assert not list(folder.rglob("build.rs"))
