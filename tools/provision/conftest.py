from __future__ import annotations

from pathlib import Path

import pytest

from tools.provision import apt, interpreter, web, work
from tools.provision import machine as checks
from tools.provision.testing.fakes import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path / "machine")
    monkeypatch.setattr(apt, "APT_FOLDER", made.root / "etc")
    monkeypatch.setattr(apt, "OS_RELEASE", made.root / "etc/os-release")
    monkeypatch.setattr(checks, "OS_RELEASE", made.root / "etc/os-release")
    monkeypatch.setattr(interpreter, "running", lambda: made.python)
    monkeypatch.setattr(interpreter, "lacking", list)
    monkeypatch.setattr(web, "BUNDLES", ())
    monkeypatch.setattr(work, "Client", lambda environ: made.client)
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    return made
