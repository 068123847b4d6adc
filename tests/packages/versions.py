"""Installs the plug-in's wheel beside every TensorFlow that it serves, trains, and writes a page.

The tests of the client run beside each that it serves. Each TensorFlow comes from the package index
into an environment of its own, which is deleted again.
Exit status: 0 if the plug-in and the client work with all of theirs, 1 if not.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Final

from absl import app, flags

from tests.packages import clean

_WHEEL = flags.DEFINE_string("wheel", None, "The plug-in's wheel.", required=True)
_PROBE = flags.DEFINE_string("probe", None, "The program that trains.", required=True)
_CLIENT = flags.DEFINE_multi_string("client", [], "A program of tests of the client.")
_ONLY = flags.DEFINE_list("only", [], "Versions to try; the last of each minor one if not given.")
_WRITE = flags.DEFINE_string("write", None, "The page to write, such as docs/versions.md.")
_JSON = flags.DEFINE_bool("json", False, "Print JSON in place of lines.")

VERSIONS: Final = ("2.16.2", "2.17.1", "2.18.1", "2.19.1", "2.20.0", "2.21.0")
CLIENT: Final = ("2.18.1", "2.19.1", "2.20.0", "2.21.0")
"""Those of them beside which the client works."""

TOLERANCE: Final = 1e-5
"""Largest difference of the loss of a step from the CPU's."""

PAGE: Final = """\
# TensorFlow versions

One wheel, not rebuilt, beside each TensorFlow of the package index for Python {python}. The device
loads, and `python -m tfp_plugin.check` finds it. Keras trains an MLP (SGD, Adam), a CNN (Adam) and
one with grouped convolutions (Adam) on it, without a call of ours. The number is the largest
difference of the loss of a step from the same training on the CPU; {tolerance:g} is allowed.

Written by `tools/bazel run //tests/packages:versions -- --write docs/versions.md`, {date}, wheel
{wheel}.

| TensorFlow | Keras | devices | ops | kernels | trains as the CPU does | tests of the client | |
|---|---|---|---|---|---|---|---|
{rows}

The last number is how many tests of the client passed, all of them compiled once, for TensorFlow
2.21: {programs}. Ops and types that a version
lacks are errors of their calls.
"""


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one TensorFlow.

    Attributes:
        tensorflow: Its version.
        keras: The version of Keras that it brought.
        devices: Names of the devices.
        ops: Ops of the device.
        kernels: Kernels of the device.
        loss_difference: Largest difference of a loss from the CPU's, or None.
        client: How many tests of the client passed; None if it is not for this version.
        problem: What failed, or empty.
    """

    tensorflow: str
    keras: str = ""
    devices: str = ""
    ops: int = 0
    kernels: int = 0
    loss_difference: float | None = None
    client: int | None = None
    problem: str = ""

    def row(self) -> str:
        """Returns the line of the table."""
        loss = f"{self.loss_difference:.1e}" if self.loss_difference is not None else "no"
        client = "" if self.client is None else self.client
        return (
            f"| {self.tensorflow} | {self.keras} | {self.devices} | {self.ops} | {self.kernels} | "
            f"{loss} | {client} | {self.problem} |"
        )


def passed(programs: Sequence[pathlib.Path], packages: pathlib.Path) -> tuple[int, str]:
    """Runs tests of the client beside a TensorFlow: how many passed, and what failed if any did."""
    count, problems = 0, []
    for program in programs:
        done = clean.run([program], TF_LIBRARY_PATH=str(packages / "tensorflow"))
        found = re.search(r"^test result: .* (\d+) passed; (\d+) failed", done.stdout, re.M)
        count += int(found[1]) if found else 0
        if done.returncode:
            names = re.findall(r"^    (\S+)$", done.stdout.partition("\nfailures:\n")[2], re.M)
            what = ", ".join(sorted(set(names))) or _last_line(done.stderr or done.stdout)
            problems.append(f"{program.name}: {what}")
    return count, "; ".join(problems)


def try_version(
    version: str, wheel: pathlib.Path, probe: pathlib.Path, client: Sequence[pathlib.Path]
) -> Result:
    """Installs one TensorFlow with the wheel, asks tfp_plugin.check, trains, tests the client."""
    with tempfile.TemporaryDirectory(prefix="tfp-versions-") as folder:
        venv = clean.Venv(pathlib.Path(folder) / "venv")
        done = venv.pip("install", "--no-cache-dir", f"tensorflow-cpu=={version}", wheel)
        if done.returncode:
            return Result(version, problem=f"pip: {_last_line(done.stderr)}")
        done = clean.run([venv.python, "-m", "tfp_plugin.check", "--json"])
        if done.returncode:
            problem = _last_line(done.stderr or done.stdout)
            return Result(version, problem=f"tfp_plugin.check: {problem}")
        check: dict[str, Any] = json.loads(done.stdout)
        found = Result(
            version,
            keras=check["keras"],
            devices=", ".join(check["devices"]),
            ops=len(check["ops"]),
            kernels=sum(check["ops"].values()),
            problem=check["note"],
        )
        done = clean.run([venv.python, probe])
        if done.returncode:
            return dataclasses.replace(found, problem=f"training: {_last_line(done.stderr)}")
        loss = float(json.loads(done.stdout)["loss_difference"])
        if not loss <= TOLERANCE:
            problem = f"a loss differs by more than {TOLERANCE:g}"
            return dataclasses.replace(found, loss_difference=loss, problem=problem)
        found = dataclasses.replace(found, loss_difference=loss)
        if version not in CLIENT or not client:
            return found
        count, problem = passed(client, venv.packages)
        return dataclasses.replace(found, client=count, problem=found.problem or problem)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1].replace("|", "/")


def main(argv: Sequence[str]) -> int:
    """Tries every version; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    wheel = pathlib.Path(_WHEEL.value).absolute()
    probe = pathlib.Path(_PROBE.value).absolute()
    client = [pathlib.Path(program).absolute() for program in _CLIENT.value]
    results = []
    for version in _ONLY.value or VERSIONS:
        results.append(try_version(version, wheel, probe, client))
        print(results[-1].row(), file=sys.stderr, flush=True)
    if _JSON.value:
        print(json.dumps([dataclasses.asdict(result) for result in results], indent=2))
    if _WRITE.value:
        page = PAGE.format(
            python=".".join(map(str, sys.version_info[:2])),
            tolerance=TOLERANCE,
            date=datetime.datetime.now(datetime.UTC).date(),
            wheel=f"`{wheel.name}`",
            programs=", ".join(f"`{program.name}`" for program in client),
            rows="\n".join(result.row() for result in results),
        )
        base = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        (base / _WRITE.value).write_text(page, encoding="utf-8")
    return 1 if any(result.problem for result in results) else 0


if __name__ == "__main__":
    app.run(main)
