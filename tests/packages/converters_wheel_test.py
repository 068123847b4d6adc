"""The converters' wheel, installed by pip in an environment of its own."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.packages import clean

WHEEL = pathlib.Path(os.environ["WHEEL"]).absolute()
ARCHIVE = pathlib.Path(os.environ["MLF"]).absolute()
CARGO, CC, RUSTC = (pathlib.Path(os.environ[name]).absolute() for name in ("CARGO", "CC", "RUSTC"))


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> clean.Venv:
    venv = clean.Venv(tmp_path_factory.mktemp("clean") / "venv")
    venv.link_locked()
    clean.checked(venv.pip("install", "--no-index", "--no-deps", WHEEL))
    return venv


def tree(folder: pathlib.Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_mlf2rust_writes_what_it_writes_in_the_repository(
    venv: clean.Venv, tmp_path: pathlib.Path
) -> None:
    installed, reference = tmp_path / "installed", tmp_path / "reference"
    command = [str(venv.script("mlf2rust")), "--mlf", str(ARCHIVE), "--out", str(installed)]
    done = clean.run(command, cwd=tmp_path)
    clean.checked(done)
    (line,) = done.stderr.splitlines()
    assert line == f"mlf2rust: wrote {len(tree(installed))} files to {installed}"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "converters.mlf.main",
            "--quiet",
            "--mlf",
            ARCHIVE,
            "--out",
            reference,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    written = tree(installed)
    assert "Cargo.toml" in written
    assert written == tree(reference)


def test_tf2rust_writes_what_it_writes_in_the_repository(
    venv: clean.Venv, tmp_path: pathlib.Path
) -> None:
    model = tmp_path / "small.keras"
    make = (
        "import keras; keras.utils.set_random_seed(1); "
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation='relu'), "
        f"keras.layers.Dense(2)]).save({str(model)!r})"
    )
    clean.checked(clean.run([str(venv.python), "-c", make], TFP_DISABLE="1"))
    installed, reference = tmp_path / "installed", tmp_path / "reference"
    arguments = ["--path_to_tf_model", str(model), "--path_to_save"]
    script = str(venv.script("tf2rust"))
    done = clean.run([script, *arguments, str(installed)], cwd=tmp_path)
    clean.checked(done)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"tf2rust: wrote {len(tree(installed))} files to {installed} in ")
    subprocess.run(
        [sys.executable, "-m", "converters.tf.cli.main", *arguments, reference],
        env={**clean.environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    written = tree(installed)
    assert any(name.endswith("Cargo.toml") for name in written)
    assert written == tree(reference)


def test_cargo_builds_a_crate_on_the_runtime_of_the_wheel(
    venv: clean.Venv, tmp_path: pathlib.Path
) -> None:
    """Offline, without a registry: the packages of the runtime and of the kernels come along."""
    model, out = tmp_path / "small.keras", tmp_path / "out"
    make = (
        "import keras; keras.utils.set_random_seed(1); "
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation='relu'), "
        f"keras.layers.Dense(2)]).save({str(model)!r})"
    )
    clean.checked(clean.run([str(venv.python), "-c", make], TFP_DISABLE="1"))
    command = [str(venv.script("tf2rust")), "--path_to_tf_model", str(model)]
    command += ["--path_to_save", str(out), "--runtime", "crate"]
    clean.checked(clean.run(command, cwd=tmp_path))
    crate = out / "rust_generated_code"
    assert not (crate / "src/runtime").exists()
    command = [str(CARGO), "test", "--offline", "--quiet", "--config=profile.dev.opt-level=0"]
    home, path = tmp_path / "home", f"{CC.parent}:/usr/local/bin:/usr/bin:/bin"
    done = clean.run(command, cwd=crate, PATH=path, CARGO_HOME=str(home), RUSTC=str(RUSTC))
    assert "test result: ok" in clean.checked(done)
    assert 'source = "' not in (crate / "Cargo.lock").read_text()


def test_the_library_is_the_program(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    """As docs/tf2rust.md shows it."""
    page = pathlib.Path("docs/tf2rust.md").read_text()
    example = page.split("## From Python", 1)[1].split("```python\n", 1)[1].split("```", 1)[0]
    make = (
        "import keras; keras.utils.set_random_seed(1); "
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)]).save('mnist.keras')"
    )
    for text in (make, example):
        clean.checked(clean.run([str(venv.python), "-c", text], cwd=tmp_path, TFP_DISABLE="1"))
    command = [str(venv.script("tf2rust")), "--path_to_tf_model", "mnist.keras"]
    command += ["--path_to_save", "same", "--model_name", "Mnist"]
    clean.checked(clean.run(command, cwd=tmp_path))
    assert tree(tmp_path / "out") == tree(tmp_path / "same")


def test_what_is_missing_is_one_line(tmp_path: pathlib.Path) -> None:
    """The advice puts no TensorFlow over one that is there."""
    bare = clean.Venv(tmp_path / "bare")
    clean.checked(bare.pip("install", "--no-index", "--no-deps", WHEEL))
    command = [str(bare.script("tf2rust")), "--path_to_tf_model", "x.keras"]
    done = clean.run(command)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("tf2rust: tensorflow and keras can't be imported")
    assert line.endswith("pip install 'tfp-converters[cpu]'")
    (bare.packages / "tensorflow").mkdir()
    done = clean.run(command)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("tf2rust: keras can't be imported")
    assert line.endswith("pip install 'tfp-converters[keras]'")


def test_no_extra_but_cpu_names_a_tensorflow(venv: clean.Venv) -> None:
    (info,) = venv.packages.glob("tfp_converters-*.dist-info/METADATA")
    required = re.findall(r"^Requires-Dist: (\S+).*extra == '(\w+)'$", info.read_text(), re.M)
    assert {extra for name, extra in required if name.startswith("tensorflow")} == {"cpu"}
    assert {extra for _, extra in required} == {"cpu", "keras", "onnx", "tvm"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A copy: pip builds in the folder that it is given."""
    copy = tmp_path_factory.mktemp("checkout") / "a copy"
    tree = pathlib.Path(os.environ["CHECKOUT"])
    for folder in ("converters", "kernels", "tools"):
        shutil.copytree(tree / folder, copy / folder)
    for file in ("LICENSE", "pyproject.toml"):
        shutil.copyfile(tree / file, copy / file)
    return copy


def test_pip_builds_what_bazel_builds(checkout: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """From the package's folder, from the root, and from a source distribution."""
    pack = "import sys; sys.path.insert(0, 'converters/package'); import backend; "
    pack += f"print(backend.build_sdist({str(tmp_path)!r}))"
    name = clean.checked(clean.run([sys.executable, "-c", pack], cwd=checkout)).strip()
    assert name == WHEEL.name.replace("-py3-none-any.whl", ".tar.gz")
    for place in (checkout / "converters/package", checkout, tmp_path / name):
        out = tmp_path / place.name
        out = out.with_suffix(".wheels")
        how = ("--no-index", "--no-deps", "--no-cache-dir", "--wheel-dir", out)
        clean.checked(clean.pip("wheel", *how, place))
        (made,) = out.iterdir()
        assert made.name == WHEEL.name
        with zipfile.ZipFile(made) as found, zipfile.ZipFile(WHEEL) as expected:
            assert sorted(found.namelist()) == sorted(expected.namelist())
        assert made.read_bytes() == WHEEL.read_bytes()


@pytest.mark.parametrize("name", ["mlf2rust", "tf2rust", "tokenizer2rust", "tvm_export"])
def test_every_program_says_its_version_and_helps(venv: clean.Venv, name: str) -> None:
    version = WHEEL.name.split("-")[1]
    shown = clean.checked(clean.run([venv.script(name), "--version"]))
    assert shown == f"{name} {version}\n"
    assert f"{name}: " in clean.checked(clean.run([venv.script(name), "--help"]))


def test_tvm_export_without_tvm_says_what_to_install(
    venv: clean.Venv, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "x.onnx").write_bytes(b"")
    done = clean.run(
        [venv.script("tvm_export"), "--model", "x.onnx", "--out", "x.tar"], cwd=tmp_path
    )
    assert done.returncode == 2
    assert "TVM is not installed" in done.stderr and "pip install apache-tvm" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_and_wrong_usage(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    done = clean.run([venv.script("mlf2rust"), "--help"])
    assert "--path_to_fv" in done.stdout
    done = clean.run([venv.script("mlf2rust"), "--mlf", "missing.tar", "--out", "x"], cwd=tmp_path)
    assert done.returncode not in (0, 1)
    assert "missing.tar" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_takes_only_a_name_of_its_own(venv: clean.Venv) -> None:
    """No package called `converters` or `tools` lands beside those of others."""
    info = next(venv.packages.glob("tfp_converters-*.dist-info"))
    tops = {line.split(",")[0].split("/")[0] for line in (info / "RECORD").read_text().splitlines()}
    assert tops <= {"tfp_converters", info.name, ".."}
