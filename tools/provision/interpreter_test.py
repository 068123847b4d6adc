from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.provision import glibc, interpreter, mirror, plan, provision
from tools.provision.command import Outcome
from tools.provision.glibc import LOADER
from tools.provision.interpreter import LIBRARIES, drop_spare, gather_libraries
from tools.provision.messages import StartError
from tools.provision.testing.archive import URL, Archive, pair
from tools.provision.testing.fakes import Client, Machine


def run(machine: Machine, root: Path, **variables: str) -> plan.Plan:
    return provision.provision(root, "key", {**machine.environ, **variables}, machine)


def chosen(made: plan.Plan) -> str:
    (note,) = [note for note in made.notes if note.startswith("Python ")]
    return note


def a_suite(libraries: dict[str, str]) -> dict[str, tuple[str, str, dict[str, bytes | str]]]:
    program: dict[str, bytes | str] = {
        "./usr/bin/python3.11": b"python",
        "./usr/lib/python3.11/os.py": b"",
        "./usr/lib/python3.11/sitecustomize.py": "/etc/python3.11/sitecustomize.py",
        "./usr/share/doc/x": b"",
    }
    libc: dict[str, bytes | str] = {
        "./lib/x86_64-linux-gnu/libc.so.6": b"c",
        "./lib/x86_64-linux-gnu/libpthread.so.0": b"threads",
        "./lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": b"loader",
        "./lib64/ld-linux-x86-64.so.2": "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    }
    cpp: dict[str, bytes | str] = {"./usr/lib/x86_64-linux-gnu/libstdc++.so.6": b"c++"}
    return {
        "python3.11": ("3.11.2-6", "libc6 (>= 2.36)", program),
        "libc6": ("2.36-9", "", libc),
        "libgcc-s1": ("12.2.0-14", "", {}),
        "libstdc++6": ("12.2.0-14", "", cpp),
    } | {name: (version, "", {}) for name, version in libraries.items()}


@pytest.fixture
def elsewhere(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with Python 3.9, another distribution, and a mirror with a Python."""
    archive = Archive()
    archive.add("bookworm", a_suite({}))
    monkeypatch.setattr(mirror, "read_keys", lambda: [pair(1)[0]])
    machine.client = Client({**archive.sites, **machine.client.sites})
    machine.python = replace(machine.python, version="3.9")
    (machine.root / "etc/os-release").write_text("ID=rhel\n")

    def says(argv: object, cwd: str) -> Outcome | None:
        words = list(argv)  # type: ignore[call-overload]
        if words[0].endswith("/usr/bin/python3.11"):
            return Outcome(0, f"{Path(words[0]).parent.parent}\n", "")
        return None

    machine.fault = says
    return machine


def test_elsewhere_than_on_debian_a_mirror_has_to_be_named(
    elsewhere: Machine, tmp_path: Path
) -> None:
    elsewhere.add_program("bazel")
    with pytest.raises(StartError, match="TFP_DEBIAN_MIRROR is not set"):
        run(elsewhere, tmp_path / "cache", TFP_UPSTREAM="1")


@pytest.mark.parametrize("old", [True, False])
def test_a_machine_without_the_version_gets_debians(
    old: bool, elsewhere: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glibc, "host_version", lambda: (2, 34) if old else (2, 41))
    bazel = elsewhere.add_program("bazel")
    assert bazel.exists()
    made = run(
        elsewhere, tmp_path / "cache", TFP_DEBIAN_MIRROR=URL, TFP_UPSTREAM="1"
    )  # fmt: skip
    (folder,) = (tmp_path / "cache").glob("python-*")
    program = folder / "usr/bin/python3.11"
    assert chosen(made).startswith(
        f"Python 3.11 at {program} (Debian bookworm's; this machine's is"
    )
    assert not (folder / "usr/share").exists()
    assert not (folder / "usr/lib/python3.11/sitecustomize.py").is_symlink()
    loader = folder / LIBRARIES / LOADER
    assert loader.exists() == old
    assert elsewhere.called("--set-interpreter") == old
    assert elsewhere.called(str(loader)) == old
    for library in ("libpthread.so.0", "libstdc++.so.6"):
        assert (folder / LIBRARIES / library).exists() == old
        assert elsewhere.called(library) == old


def test_the_preferred_version_of_the_machine_is_used(machine: Machine, tmp_path: Path) -> None:
    assert "on this machine" in chosen(run(machine, tmp_path / "cache"))


def test_without_a_mirror_another_known_version_is_used(machine: Machine, tmp_path: Path) -> None:
    machine.python = replace(machine.python, version="3.13")

    def no_index(argv: object, cwd: str) -> Outcome | None:
        return Outcome(100, "", "E: 404") if "bookworm main" in _sources(argv) else None

    machine.fault = no_index
    note = chosen(run(machine, tmp_path / "cache", TFP_UPSTREAM="0"))
    assert note.startswith("Python 3.13 at")
    assert "no 3.11 to be had" in note


def _sources(argv: object) -> str:
    words = list(argv)  # type: ignore[call-overload]
    if "update" not in words:
        return ""
    return (Path(words[words.index("-c") + 1]).parent / "sources.list").read_text()


def test_without_a_mirror_an_unknown_version_is_an_error(
    elsewhere: Machine, tmp_path: Path
) -> None:
    elsewhere.client = Client({})
    elsewhere.fault = None
    with pytest.raises(StartError, match="TFP_DEBIAN_MIRROR is not set"):
        run(elsewhere, tmp_path / "cache")
    left = {path.name.split("-")[0] for path in (tmp_path / "cache").iterdir()}
    assert left <= {"lock", "patchelf"}


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_a_named_python_must_be_known_to_the_lock(
    version: str, machine: Machine, tmp_path: Path
) -> None:
    machine.python = replace(machine.python, version=version)
    with pytest.raises(StartError, match=f"is Python {version}, expected one"):
        run(machine, tmp_path / "cache", TFP_PYTHON="python3")
    machine.python = replace(machine.python, version="3.13")
    assert "TFP_PYTHON says so" in chosen(run(machine, tmp_path / "cache", TFP_PYTHON="python3"))


def test_a_named_python_must_be_whole(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "lacking", lambda: ["_ssl", "zlib"])
    with pytest.raises(StartError, match=r"is Python 3.11 without _ssl, zlib"):
        run(machine, tmp_path / "cache", TFP_PYTHON="python3")


def test_libraries_are_in_one_folder_and_no_link_leaves_it(tmp_path: Path) -> None:
    for name in ("lib/x86_64-linux-gnu/liba.so.1", f"{LIBRARIES}/libb.so.1", f"usr/lib64/{LOADER}"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / LIBRARIES / "libb.so").symlink_to("libb.so.1")
    (tmp_path / LIBRARIES / "gone.so").symlink_to("gone.so.1")
    (tmp_path / LIBRARIES / "out.so").symlink_to("/etc/passwd")
    gather_libraries(tmp_path)
    drop_spare(tmp_path)
    names = {path.name for path in (tmp_path / LIBRARIES).iterdir()}
    assert names == {"liba.so.1", "libb.so.1", "libb.so", LOADER}


def test_the_libraries_of_a_newer_machine_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glibc, "host_version", lambda: (2, 41))
    assert glibc.is_given(glibc.given("bookworm"))
    monkeypatch.setattr(glibc, "host_version", lambda: (2, 35))
    assert glibc.given("bookworm") == ()
    monkeypatch.setattr(glibc, "host_version", lambda: None)
    assert not glibc.is_given(glibc.given("bookworm"))
