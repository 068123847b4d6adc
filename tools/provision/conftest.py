from pathlib import Path

import pytest

from tools.provision import apt
from tools.provision.testing.fakes import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path / "machine")
    monkeypatch.setattr(apt, "APT_FOLDER", made.root / "etc")
    monkeypatch.setattr(apt, "OS_RELEASE", made.root / "etc/os-release")
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    return made
