"""How long a clean `cargo build` of tfp_ops takes, with all that it depends on, and its memory.

Needs cargo on the PATH.
"""

from __future__ import annotations

import os
import pathlib
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence

from absl import app, flags

_PROFILE = flags.DEFINE_enum("profile", "dev", ["dev", "release"], "Cargo's profile.")
_JOBS = flags.DEFINE_integer("jobs", 2, "Compilers that run at the same time.", lower_bound=1)


def root() -> pathlib.Path:
    """Returns the checkout: that of `bazel run`, or the one this file is in."""
    folder = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    return pathlib.Path(folder) if folder else pathlib.Path(__file__).resolve().parents[2]


def main(argv: Sequence[str]) -> None:
    """Builds once into an empty folder and prints a row."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    with tempfile.TemporaryDirectory() as target:
        command = ["cargo", "build", f"--profile={_PROFILE.value}", f"--jobs={_JOBS.value}"]
        start = time.perf_counter()
        subprocess.run(
            [*command, f"--target-dir={target}"], cwd=root() / "bindings" / "ops", check=True
        )
        wall = time.perf_counter() - start
        libraries = pathlib.Path(target).rglob("libtfp_ops*.rlib")
        size = max((path.stat().st_size for path in libraries), default=0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("| profile | jobs | wall, s | CPU, s | largest process, MiB | rlib, MiB |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {_PROFILE.value} | {_JOBS.value} | {wall:.1f} | {used.ru_utime + used.ru_stime:.1f} "
        f"| {used.ru_maxrss / 1024:.0f} | {size / 2**20:.0f} |"
    )


if __name__ == "__main__":
    app.run(main)
