"""The plug-in's wheel, installed by pip in an environment of its own."""

from __future__ import annotations

import json
import os
import pathlib
import re
import zipfile

import pytest

from tests.packages import clean

WHEEL = pathlib.Path(os.environ["WHEEL"]).absolute()
HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> clean.Venv:
    venv = clean.Venv(tmp_path_factory.mktemp("clean") / "venv")
    venv.link_locked()
    clean.checked(venv.pip("install", "--no-index", "--no-deps", WHEEL))
    return venv


def test_it_works_where_it_is_installed(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    cases = tmp_path / "installed_test.py"
    cases.write_bytes((HERE / "installed_test.py").read_bytes())
    command = [str(venv.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)]
    print(clean.checked(clean.run(command, cwd=tmp_path)))


def test_the_bill_of_materials_has_the_locked_crates_of_others() -> None:
    lock = pathlib.Path(os.environ["CRATES"]).read_text()
    locked = dict(re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', lock))
    with zipfile.ZipFile(WHEEL) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".cdx.json")]
        parts = json.loads(archive.read(name))["components"]
        [licences] = [name for name in archive.namelist() if name.endswith("THIRD-PARTY.txt")]
        text = archive.read(licences).decode()
    found = {part["name"]: part["version"] for part in parts if part["name"] in locked}
    assert found == {name: locked[name] for name in ("ash", "cfg-if", "libloading")}
    assert all(f"\n{name} " in text for name in found)


def test_switched_off_it_says_so(venv: clean.Venv) -> None:
    done = clean.run([venv.python, "-m", "tfp_plugin.check", "--json"], TFP_DISABLE="1")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["problem"] == "TFP_DISABLE is set: unset it"
    assert found["devices"] == []


def test_a_library_that_is_not_there_is_named(venv: clean.Venv, tmp_path: pathlib.Path) -> None:
    missing = str(tmp_path / "libtfp.so")
    done = clean.run(
        [venv.python, "-m", "tfp_plugin.check"], TF_PLUGGABLE_DEVICE_LIBRARY_PATH=missing
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert missing in line and "does not exist" in line


def test_without_tensorflow_it_says_so(tmp_path: pathlib.Path) -> None:
    bare = clean.Venv(tmp_path / "bare")
    clean.checked(bare.pip("install", "--no-index", "--no-deps", WHEEL))
    done = clean.run([bare.python, "-m", "tfp_plugin.check"])
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("tfp_plugin.check: TensorFlow can't be imported (")


def test_another_platform_is_refused(tmp_path: pathlib.Path) -> None:
    other = tmp_path / WHEEL.name.replace("x86_64", "aarch64")
    other.write_bytes(WHEEL.read_bytes())
    bare = clean.Venv(tmp_path / "bare")
    done = bare.pip("install", "--no-index", "--no-deps", other)
    assert done.returncode != 0
    assert "is not a supported wheel on this platform" in done.stderr


def test_a_tensorflow_that_is_too_old_is_named(tmp_path: pathlib.Path) -> None:
    """A stand-in: TensorFlow 2.15 refuses the library, lists no device, and has nothing else."""
    bare = clean.Venv(tmp_path / "bare")
    clean.checked(bare.pip("install", "--no-index", "--no-deps", WHEEL))
    framework = bare.packages / "tensorflow/python/framework"
    framework.mkdir(parents=True)
    (bare.packages / "tensorflow/__init__.py").write_text(
        '__version__ = "2.15.1"\n'
        "class config:\n"
        "    @staticmethod\n"
        "    def list_physical_devices(kind):\n"
        "        return []\n"
    )
    (framework / "load_library.py").write_text(
        "import ctypes\n"
        "def load_pluggable_device_library(path):\n"
        "    print('loading')\n"
        "    ctypes.CDLL(path)\n"
    )
    code = (
        "import tfp_plugin\n"
        "for _ in range(2):\n"
        "    try:\n        tfp_plugin.enable()\n"
        "    except tfp_plugin.DeviceError as error:\n        print(error)\n"
    )
    expected = (
        "TensorFlow 2.15.1 has no TFP device: TensorFlow 2.15.1 is too old for libtfp.so, which "
        "serves 2.16 to 2.21: install one of these\n"
    )
    # A library that was loaded and offered nothing is not loaded again: it would say why again.
    assert clean.checked(clean.run([bare.python, "-c", code])) == "loading\n" + 2 * expected


def test_uninstalled_it_leaves_nothing(venv: clean.Venv) -> None:
    """Last: the environment is of no use afterwards."""
    clean.checked(venv.pip("uninstall", "--yes", "tfp-plugin"))
    left = {path.name for path in venv.packages.iterdir() if not path.is_symlink()}
    assert not {name for name in left if "tfp" in name}, left
    assert not (venv.packages / "tensorflow-plugins").exists()
