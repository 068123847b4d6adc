"""buildifier, the formatter of BUILD files: from PATH, else from the user's npm. Never a must."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tools.provision.command import Runner, must
from tools.provision.messages import StartError, folder_bytes, progress
from tools.provision.pins import Npm

TODO = "check the network and npm's configuration (`npm config list`), then start again"


def present_buildifier(npm: Npm, runner: Runner, environ: Mapping[str, str]) -> str | None:
    """A buildifier on PATH with the major version of the pin; None if there is none."""
    program = shutil.which("buildifier", path=environ.get("PATH"))
    if program is None:
        return None
    told = runner.run([program, "--version"], timeout_s=60)
    match = re.search(r"version: (\d+)\.", told.out)
    wanted = npm.version.split(".")[0]
    return program if told.status == 0 and match and match.group(1) == wanted else None


def fill_buildifier(npm: Npm, runner: Runner, stage: Path) -> None:
    """Fetches npm's package into a fresh folder and leaves the one program of this machine there.

    Raises:
        StartError: the network failed or the package has another hash than the pin.
    """
    step = f"fetching buildifier ({npm.requirement})"
    inbox = stage / "inbox"
    inbox.mkdir()
    with progress(step, npm.size, lambda: folder_bytes(str(inbox))):
        must(
            runner,
            ["npm", "pack", "--silent", "--cache", str(inbox / "npm"), npm.requirement],
            step,
            TODO,
            cwd=str(inbox),
        )
    files = list(inbox.glob("*.tgz"))
    if len(files) != 1:
        raise StartError(step, f"{len(files)} files arrived, expected 1", TODO)
    digest = base64.b64encode(hashlib.sha512(files[0].read_bytes()).digest()).decode()
    if f"sha512-{digest}" != npm.integrity:
        raise StartError(step, f"its hash is sha512-{digest}, expected {npm.integrity}", TODO)
    with tarfile.open(files[0]) as archive:
        member = archive.extractfile(npm.member)
        if member is None:
            raise StartError(step, f"the package has no {npm.member}", TODO)
        program = stage / "buildifier"
        with program.open("wb") as file:
            shutil.copyfileobj(member, file)
        program.chmod(0o755)
    shutil.rmtree(inbox)
