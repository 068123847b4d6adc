"""The converters' wheel, installed by pip in an environment of its own."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from tests.packages import clean

WHEEL = pathlib.Path(os.environ["WHEEL"]).absolute()
ARCHIVE = pathlib.Path(os.environ["MLF"]).absolute()


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
    clean.checked(clean.run(command, cwd=tmp_path))
    subprocess.run(
        [sys.executable, "-m", "converters.mlf.main", "--mlf", ARCHIVE, "--out", reference],
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
    clean.checked(clean.run([script, *arguments, str(installed)], cwd=tmp_path))
    subprocess.run(
        [sys.executable, "-m", "converters.tf.main", *arguments, reference],
        env={**clean.environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    written = tree(installed)
    assert any(name.endswith("Cargo.toml") for name in written)
    assert written == tree(reference)


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


def test_tf2rust_without_tensorflow_is_one_line(tmp_path: pathlib.Path) -> None:
    bare = clean.Venv(tmp_path / "bare")
    clean.checked(bare.pip("install", "--no-index", "--no-deps", WHEEL))
    done = clean.run([bare.script("tf2rust"), "--path_to_tf_model", "x.keras"])
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith("pip install 'tfp-converters[tf]'")


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
