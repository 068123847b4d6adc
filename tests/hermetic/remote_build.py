"""Proves `--config=remote`: a real engine with a worker that shares nothing with this machine.

One checkout builds here. Another one, under another path and with an empty output base of its own,
builds the same with an engine, without the disk cache. No action of it may run here, and what both
made has to be the same. The engine is BuildGrid, the worker is buildbox in a bare Debian; see
worker.py.

It needs root and debootstrap. Exit status: 0 if all of it holds, 1 if not, 2 if there is no engine
to build with.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

from absl import app, flags

from tests.hermetic import worker
from tests.hermetic.buildgrid import BUILDGRID, engine
from tests.hermetic.checkouts import Build, check_out, made_files

_TARGETS = flags.DEFINE_list(
    "targets", ["//plugin:libtfp.so", "//kernels/..."], "What both checkouts build."
)
_FOLDER = flags.DEFINE_string(
    "folder", "/var/tmp/tfp-remote", "Where the engine and the worker's system are kept."
)
_MIRROR = flags.DEFINE_string(
    "mirror", os.environ.get("TFP_DEBIAN_MIRROR"), "A mirror of Debian.", required=True
)
_JOBS = flags.DEFINE_integer(
    "jobs", os.cpu_count() or 1, "How many actions the worker runs at a time.", lower_bound=1
)
_WRITE = flags.DEFINE_string("write", None, "The page whose table is replaced.")
_KEEP = flags.DEFINE_bool("keep", False, "Keep the two checkouts, output bases and logs.")

REMOTE: Final = ("remote", "remote cache hit")
"""What an execution log calls the runner of an action that did not run here."""

START: Final = "<!-- table -->\n"
END: Final = "<!-- end of the table -->"

TABLE: Final = """\
`tools/bazel run //tests/hermetic:remote_build -- --mirror URL --write docs/remote-execution.md`
wrote this table on {date}: `tools/bazel build --config=remote {targets}` on {engine} and buildbox
{buildbox}, both on loopback, with {jobs} actions at a time on the cores that the build itself had.

| | |
|---|---|
| actions that run a program | {actions} |
| of them on the worker | {ran} |
| of them from the engine's cache | {cached} |
| of them on the machine that builds | {here} |
| files compared byte by byte with those of a local build | {files} |
| files that differ, or that one of the two builds lacks | {different} |
| time of the remote build, from an empty output base | {seconds:.0f} s |
"""


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Returns the paths of files whose digests differ or that one side lacks."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def replace_table(page: str, table: str) -> str:
    """Returns the page with another table between its marks.

    Raises:
        ValueError: The page has no marks.
    """
    pattern = re.compile(re.escape(START) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page has no {START.strip()} and {END}")
    return pattern.sub(lambda _: f"{START}\n{table}\n{END}", page, count=1)


def runners(build: Build) -> collections.Counter[str]:
    """Counts the actions of a build by what ran them."""
    return collections.Counter(str(spawn.get("runner")) for spawn in build.spawns)


def report(name: str, build: Build) -> None:
    """Says what a build did, with its last lines if it failed."""
    print(f"{name}: {build.status}, {dict(runners(build))}", file=sys.stderr, flush=True)
    if build.status:
        print("\n".join(build.errors.splitlines()[-60:]), file=sys.stderr)


def version(base: pathlib.Path) -> str:
    """Returns the version of the worker's buildbox."""
    done = subprocess.run(
        ["chroot", str(base), "dpkg-query", "--show", "--showformat=${Version}", "buildbox"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def prove(folder: pathlib.Path) -> int:
    """Builds here and there, compares, and writes the table."""
    home = pathlib.Path(_FOLDER.value)
    base = worker.make_root(home, _MIRROR.value)
    here = check_out(folder / "here", folder / "here-base")
    there = check_out(folder / "another/and/longer/path/there", folder / "elsewhere-there-base")
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(worker.database(base, folder))
        url = stack.enter_context(engine(home, folder, database))
        stack.enter_context(worker.worker(base, folder, url, _JOBS.value))
        print("The engine builds ...", file=sys.stderr, flush=True)
        remote = there.run(
            "build",
            _TARGETS.value,
            ["--config=remote", "--disk_cache=", "--remote_download_outputs=all"],
            TFP_REMOTE_EXECUTOR=url,
        )
        report("remote", remote)
    if remote.status:
        return 1
    print("This machine builds ...", file=sys.stderr, flush=True)
    local = here.run("build", _TARGETS.value, ["--remote_download_outputs=all"])
    report("local", local)
    made = made_files(there.base)
    different = differences(made_files(here.base), made)
    for name in different:
        print(f"differs: {name}", file=sys.stderr)
    ran = runners(remote)
    strays = [spawn for spawn in remote.spawns if spawn.get("runner") not in REMOTE]
    for spawn in strays:
        print(f"ran here: {spawn['mnemonic']} {spawn.get('targetLabel')}", file=sys.stderr)
    if not _KEEP.value:
        here.remove()
        there.remove()
    table = TABLE.format(
        date=datetime.datetime.now(datetime.UTC).date(),
        targets=" ".join(_TARGETS.value),
        engine=BUILDGRID.replace("==", " "),
        buildbox=version(base),
        jobs=_JOBS.value,
        actions=len(remote.spawns),
        ran=ran["remote"],
        cached=ran["remote cache hit"],
        here=len(strays),
        files=len(made),
        different=len(different),
        seconds=remote.seconds,
    )
    holds = not (local.status or strays or different) and ran["remote"] > 0
    if _WRITE.value and holds:
        page = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), _WRITE.value)
        page.write_text(replace_table(page.read_text(encoding="utf-8"), table), encoding="utf-8")
        print(f"remote_build: wrote the table of {page}", file=sys.stderr)
    print(table)
    return 0 if holds else 1


def main(argv: Sequence[str]) -> int:
    """Runs the proof; returns its exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    missing = [name for name in ("debootstrap", "unshare", "git") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        print(f"remote_build: needs root and {', '.join(missing or ['no more'])}", file=sys.stderr)
        return 2
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tfp-remote-build-"))
    try:
        return prove(folder)
    except (RuntimeError, ValueError, subprocess.CalledProcessError) as error:
        print(f"remote_build: {error}", file=sys.stderr)
        return 2
    finally:
        if not _KEEP.value:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    app.run(main)
