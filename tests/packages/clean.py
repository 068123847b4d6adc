"""Environments that know nothing of this repository."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

SPARED = ("HOME", "LANG", "PATH", "TMPDIR", "PIP_CACHE_DIR", "SSL_CERT_FILE")


def environment(**variables: str) -> dict[str, str]:
    """Returns the variables of this process that say nothing of Bazel or of Python."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in SPARED or name.lower().endswith("_proxy")
    }
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "2", **variables}


def run(
    command: Sequence[str | pathlib.Path],
    *,
    cwd: pathlib.Path | None = None,
    timeout: float = 900,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Runs a program with the environment above and returns what became of it."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def checked(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the output of a program that succeeded; shows its errors if it did not."""
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(*arguments: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Runs this process' pip."""
    import pip as package

    where = pathlib.Path(package.__file__).parents[1]
    quiet = ("--no-input", "--disable-pip-version-check")
    return run([sys.executable, "-m", "pip", *arguments, *quiet], PYTHONPATH=str(where))


class Venv:
    """A virtual environment of this Python."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Makes one in `folder`, which must not exist."""
        checked(run([sys.executable, "-m", "venv", "--without-pip", folder]))
        self.python = folder / "bin" / "python"
        self.packages = next(folder.glob("lib/python3*/site-packages"))

    def script(self, name: str) -> pathlib.Path:
        """Returns the path of a console script."""
        return self.python.with_name(name)

    def pip(self, *arguments: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
        """Runs pip, from outside, on this environment."""
        return pip("--python", self.python, *arguments)

    def link_locked(self) -> None:
        """Links the locked packages that this process imports, in place of minutes of unpacking."""
        for entry in sys.path:
            folder = pathlib.Path(entry)
            if folder.name == "site-packages" and "pip_" in folder.parent.name:
                for item in folder.iterdir():
                    target = self.packages / item.name
                    if not target.exists():
                        target.symlink_to(item.absolute())
