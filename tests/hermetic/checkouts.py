"""Checkouts of the last commit, each with an output base of its own, and what their builds did."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time
from collections.abc import Sequence
from typing import Any, Final

from tests.hermetic.nested import overrides

_ARGUMENTS: Final = re.compile(r"-\d+\.params$")


@dataclasses.dataclass(frozen=True)
class Build:
    """What a nested build did.

    Attributes:
        status: Its exit status.
        seconds: How long it took.
        errors: What it wrote.
        spawns: The entries of its execution log.
    """

    status: int
    seconds: float
    errors: str
    spawns: list[dict[str, Any]]

    def warnings(self) -> list[str]:
        """Returns the lines that are warnings, of the launcher or of Bazel, about the cache."""
        return [
            line
            for line in self.errors.splitlines()
            if line.startswith(("WARNING:", "tfp: ")) and ("cache" in line.lower())
        ]


@dataclasses.dataclass(frozen=True)
class Checkout:
    """A checkout with an output base of its own."""

    folder: pathlib.Path
    base: pathlib.Path

    def bazel(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs the launcher."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("TEST_", "BAZEL_", "BUILD_", "RUNFILES", "PYTHON", "TFP_REMOTE")
            )
        }
        return subprocess.run(
            [str(self.folder / "tools/bazel"), f"--output_base={self.base}", *arguments],
            cwd=self.folder,
            env={**kept, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def run(
        self, verb: str, targets: Sequence[str], options: Sequence[str], **variables: str
    ) -> Build:
        """Builds or tests, with further options of Bazel and variables of the environment."""
        log = self.base.with_suffix(".json")
        start = time.monotonic()
        done = self.bazel(
            verb,
            *options,
            f"--execution_log_json_file={log}",
            *overrides(),
            "--",
            *targets,
            **variables,
        )
        seconds = time.monotonic() - start
        # Its memory is for the next one.
        self.bazel("shutdown")
        return Build(done.returncode, seconds, done.stderr, read_log(log))

    def remove(self) -> None:
        """Removes its output base, in which there are folders that can't be written."""
        self.bazel("clean", "--expunge")


def read_log(log: pathlib.Path) -> list[dict[str, Any]]:
    """Reads an execution log, JSON objects one after the other."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    decoder, spawns, at = json.JSONDecoder(), [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        spawn, at = decoder.raw_decode(text, at)
        spawns.append(spawn)
    return spawns


def check_out(folder: pathlib.Path, base: pathlib.Path) -> Checkout:
    """Makes a checkout of the last commit of the workspace."""
    workspace = os.environ["BUILD_WORKSPACE_DIRECTORY"]
    folder.mkdir(parents=True)
    archive = subprocess.Popen(["git", "-C", workspace, "archive", "HEAD"], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(folder)], stdin=archive.stdout, check=True)
    if archive.wait():
        raise RuntimeError(f"git archive failed in {workspace}")
    return Checkout(folder, base)


def made_files(base: pathlib.Path) -> dict[str, str]:
    """Returns the digest of each file that actions made, by its path in the output tree.

    Trees of links to inputs and the lists of where they are do not count: they belong to the
    checkout's place. Neither do files of arguments, which are written only where an action runs.
    """
    found = {}
    for top in ("bin", "testlogs"):
        for tree in base.glob(f"execroot/tfp/bazel-out/*/{top}"):
            for path in tree.rglob("*"):
                relative = path.relative_to(tree.parent.parent)
                placed = any(
                    part.endswith((".runfiles", ".runfiles_manifest")) for part in relative.parts
                )
                if placed or path.is_symlink() or not path.is_file():
                    continue
                if path.name in ("MANIFEST", "test.cache_status") or _ARGUMENTS.search(path.name):
                    continue
                found[str(relative)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
