"""Measures what a newcomer waits for: provisioning, first build, no-op build, cached tests.

Clones the checkout's HEAD into a temporary folder with an empty cache and an empty output base.
So nothing that this machine has built before helps.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from absl import app, flags
from rich.console import Console
from rich.table import Table

from tests.bench.machine import processor

_OUT = flags.DEFINE_string(
    "out", None, "Markdown file to write, such as docs/performance/build.md."
)
_JSON = flags.DEFINE_bool("json", False, "Print the rows as JSON on standard output.")
_KEEP = flags.DEFINE_bool("keep", False, "Keep the temporary folder.")


@dataclasses.dataclass(frozen=True)
class Row:
    """One measured step."""

    what: str
    seconds: float
    note: str = ""


class _Clone:
    """A clone with its own cache, in which commands are timed."""

    def __init__(self, source: pathlib.Path, folder: pathlib.Path) -> None:
        self._checkout = folder / "checkout"
        subprocess.run(["git", "clone", "-q", source, self._checkout], check=True)
        self._environment = dict(os.environ, TFP_CACHE=str(folder / "cache"))
        for name in [name for name in self._environment if name.startswith(("BUILD_", "BAZEL_"))]:
            del self._environment[name]
        self._output_base = folder / "output_base"

    def time(self, *arguments: str) -> tuple[float, str]:
        """Seconds that `tools/bazel ARGUMENTS` took, and what it printed.

        Raises:
            SystemExit: the command failed; its output is on standard error.
        """
        command = ["tools/bazel", f"--output_base={self._output_base}", *arguments]
        print("$", " ".join(["tools/bazel", *arguments]), file=sys.stderr, flush=True)
        start = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self._checkout,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - start
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
        return seconds, done.stdout + done.stderr


def measure(source: pathlib.Path, folder: pathlib.Path) -> list[Row]:
    """All rows, for the HEAD of the repository `source`, below the empty `folder`."""
    clone = _Clone(source, folder)
    rows = [Row("provision everything, empty cache", clone.time("version")[0])]
    rows.append(Row("build //plugin:libtfp.so, cold", clone.time("build", "//plugin:libtfp.so")[0]))
    rows.append(Row("test //..., the rest cold", clone.time("test", "//...")[0]))
    clone.time("build", "//...")
    rows.append(Row("build //..., nothing to do", clone.time("build", "//...")[0]))
    seconds, text = clone.time("test", "//...")
    executed = re.search(r"Executed (\d+) out of (\d+) tests", text)
    note = f"{executed.group(1)} of {executed.group(2)} tests run again" if executed else ""
    rows.append(Row("test //..., everything cached", seconds, note))
    clone.time("shutdown")
    return rows


def markdown(rows: list[Row], cpu: str, day: str) -> str:
    """The page that is committed."""
    lines = [
        "# Build times",
        "",
        f"{cpu}; {day}. Written by `tools/bazel run //tests/bench:build_times`, one run on a clone",
        "with an empty cache.",
        "",
        "| step | seconds | |",
        "|---|---:|---|",
        *(f"| {row.what} | {row.seconds:.1f} | {row.note} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def main(argv: list[str]) -> None:
    """Measures, prints a table, and writes the page if asked to."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    source = pathlib.Path(os.environ["BUILD_WORKSPACE_DIRECTORY"])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tfp-build-times-"))
    try:
        rows = measure(source, folder)
    finally:
        if not _KEEP.value:
            subprocess.run(["chmod", "-R", "u+w", folder], check=False)
            shutil.rmtree(folder, ignore_errors=True)
    if _JSON.value:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        table = Table("step", "seconds", "")
        for row in rows:
            table.add_row(row.what, f"{row.seconds:.1f}", row.note)
        Console().print(table)
    if _OUT.value:
        page = source / _OUT.value
        page.parent.mkdir(parents=True, exist_ok=True)
        day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        page.write_text(markdown(rows, processor(), day), encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
