from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from tools.provision import machine
from tools.provision.messages import StartError


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ("ID=debian\n", "apt-get install"),
        ("ID=ubuntu\nID_LIKE=debian\n", "apt-get install"),
        ('ID="linuxmint"\nID_LIKE="ubuntu debian"\n', "apt-get install"),
        ("ID=fedora\n", "dnf install"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install"),
        ("ID=arch\n", "pacman -S"),
        ("ID=opensuse-leap\nID_LIKE='suse opensuse'\n", "zypper install"),
        ("ID=nixos\n", None),
        ("", None),
        ("ID='\n", None),
    ],
)
def test_the_command_of_a_distribution(release: str, command: str | None, tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text(release)
    assert machine.installer(tmp_path / "os-release") == command


def test_a_machine_without_a_release_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "OS_RELEASE", tmp_path / "none")
    assert machine.install("python3") == "install python3"


def test_nothing_is_missing_here(tmp_path: Path) -> None:
    assert machine.lacks(tmp_path / "cache") == []


def test_everything_that_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "os-release").write_text("ID=fedora\n")
    monkeypatch.setattr(machine, "OS_RELEASE", tmp_path / "os-release")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(machine, "MODULES", ("zlib", "no_such_module"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StartError, match="is not writable for you"):
        machine.check(tmp_path / "cache")
    first, second = capsys.readouterr().err.splitlines()
    assert "Linux on riscv64, expected Linux on x86_64" in first
    assert "has no no_such_module; install it (dnf install python3)" in second


def test_another_c_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise ValueError(name)

    monkeypatch.setattr(os, "confstr", none)
    (lack,) = machine.lacks(tmp_path)
    assert "not glibc" in lack.line()
