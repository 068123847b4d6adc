"""Starts the repository on bare systems, as a user without rights, and writes a page about it.

A system is a Debian suite made by debootstrap in a folder of its own. Another distribution is
played by the suite that comes nearest to it in Python and C library. It has the distribution's
os-release, and neither apt nor dpkg. The checkout lies under a path with a space, the home folder
is empty. The package clients' settings and the certificate authorities of this machine come along.

It needs root and debootstrap. Exit status: 0 if every system starts, 1 if one does not.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from absl import app, flags

from tests.packages import bare

_ONLY = flags.DEFINE_list("only", [], "Names of systems; all if not given.")
_RUN = flags.DEFINE_enum(
    "run", "quickstart", ["provision", "quickstart"], "How far a system is taken."
)
_FOLDER = flags.DEFINE_string("folder", "/var/tmp/tfp-systems", "Where systems are kept.")
_MIRROR = flags.DEFINE_string(
    "mirror", os.environ.get("TFP_DEBIAN_MIRROR"), "A mirror of Debian.", required=True
)
_WRITE = flags.DEFINE_string("write", None, "The page whose rows are replaced.")
_JSON = flags.DEFINE_bool("json", False, "Print JSON in place of lines.")

USER: Final = 1000
KEPT: Final = ("PIP_", "SSL_CERT", "REQUESTS_CA", "CURL_CA", "NODE_EXTRA_CA", "TFP_UPSTREAM")
COMMANDS: Final = {
    "provision": "TFP_PROVISION_ONLY=1 tools/bazel info",
    "quickstart": "tools/bazel run //:quickstart",
}


@dataclasses.dataclass(frozen=True)
class System:
    """A system that is made.

    Attributes:
        name: What it stands for.
        suite: The Debian suite that it is made of.
        release: Its os-release where it plays another distribution, or empty.
        packages: What is installed.
    """

    name: str
    suite: str
    release: str = ""
    packages: tuple[str, ...] = ("python3",)


FEDORA: Final = "ID=fedora\nVERSION_ID=42\n"
SYSTEMS: Final = (
    System("Debian 11", "bullseye"),
    System("Debian 12", "bookworm"),
    System("Debian 13", "trixie"),
    System("Ubuntu 22.04", "bookworm", "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\n"),
    System("Ubuntu 24.04", "trixie", "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n"),
    System("Fedora 42", "trixie", FEDORA),
    System("RHEL 9", "bullseye", 'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.6"\n'),
    System("Debian 13 without Python", "trixie", packages=()),
    System("Fedora 42 without Python", "trixie", FEDORA, ("curl", "xz-utils")),
)


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a system.

    Attributes:
        system: Its name.
        suite: What it was made of.
        python: The version of its Python.
        glibc: The version of its C library.
        run: How far it was taken.
        seconds: How long that took.
        notes: What the launcher chose.
        problem: The last words where it failed, or empty.
    """

    system: str
    suite: str
    python: str
    glibc: str
    run: str
    seconds: int
    notes: str
    problem: str

    def row(self) -> str:
        """Returns the line of the table."""
        made = f"{self.suite}" if self.system.startswith("Debian") else f"{self.suite}, no apt"
        outcome = self.problem or self.notes
        return (
            f"| {self.system} | {made} | {self.python} | {self.glibc} | {self.run} | "
            f"{self.seconds} | {'no' if self.problem else 'yes'} | {outcome.replace('|', '/')} |"
        )


def script(system: System, base: pathlib.Path, home: pathlib.Path, command: str) -> str:
    """Returns what a shell of root runs, in mounts of its own, to start the system."""
    lines = [
        "set -e",
        f"mount -t proc proc {base}/proc",
        f"mount -t tmpfs -o mode=1777 shm {base}/dev/shm 2>/dev/null || true",
        f"mkdir -p {base}/home/user",
        f"mount --bind {home} {base}/home/user",
    ]
    if system.release:
        lines.append(f"mount --bind {home}.release {base}/etc/os-release")
        lines += [
            f"[ ! -e {base}/usr/bin/{name} ] || mount --bind /dev/null {base}/usr/bin/{name}"
            for name in ("apt-get", "apt-cache", "apt", "dpkg", "dpkg-deb")
        ]
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(KEPT) or name.lower().endswith("_proxy")
    }
    variables |= {"HOME": "/home/user", "USER": "user", "PATH": "/usr/bin:/bin"}
    if system.release and _MIRROR.value:
        variables["TFP_DEBIAN_MIRROR"] = _MIRROR.value
    told = " ".join(f"'{name}={value}'" for name, value in sorted(variables.items()))
    inner = f'cd "/home/user/a checkout" && {command}'
    lines.append(
        f"exec chroot --userspec={USER}:{USER} {base} env -i {told} sh -c '{inner}' < /dev/null"
    )
    return "\n".join(lines)


def ask(base: pathlib.Path, *argv: str) -> str:
    """Returns the last word that a program of the system prints."""
    done = subprocess.run(["chroot", str(base), *argv], capture_output=True, text=True, check=False)
    return (done.stdout.split() or ["none"])[-1]


def try_system(system: System, folder: pathlib.Path, source: pathlib.Path, run: str) -> Result:
    """Makes a system, puts a checkout into an empty home, and runs the command."""
    base = bare.make_base(folder, system.suite, system.packages, _MIRROR.value)
    bare.bring_settings(base)
    home = folder / f"home-{re.sub(r'[^a-z0-9]+', '-', system.name.lower())}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    pathlib.Path(f"{home}.release").write_text(system.release)
    subprocess.run(
        ["git", "clone", "--quiet", "--no-hardlinks", str(source), str(home / "a checkout")],
        check=True,
    )
    subprocess.run(["chown", "-R", f"{USER}:{USER}", str(home)], check=True)
    log = pathlib.Path(f"{home}.log")
    begin = time.monotonic()
    with log.open("w") as out:
        done = subprocess.run(
            [
                *("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c"),
                script(system, base, home, COMMANDS[run]),
            ],
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    seconds = round(time.monotonic() - begin)
    said = log.read_text(errors="replace").splitlines()
    chosen = [line[5:] for line in said if re.match(r"tfp: (Python|Bazel|Rust)\b", line)]
    shutil.rmtree(home, ignore_errors=True)
    return Result(
        system.name,
        system.suite,
        ask(base, "python3", "--version"),
        ask(base, "getconf", "GNU_LIBC_VERSION"),
        run,
        seconds,
        "; ".join(
            re.sub(r" at \S+|, in \S+| \(.*", "", line).replace(": ", " ") for line in chosen
        ),
        ""
        if done.returncode == 0
        else f"status {done.returncode}: {(said or ['nothing said'])[-1]}",
    )


def replace_rows(page: str, results: Sequence[Result], date: datetime.date) -> str:
    """Returns the page with the rows of these systems replaced by what was seen."""
    lines = page.splitlines()
    for result in results:
        start = f"| {result.system} |"
        at = [number for number, line in enumerate(lines) if line.startswith(start)]
        if not at:
            raise ValueError(f"the page has no row for {result.system}")
        lines[at[0]] = result.row()
    text = "\n".join(lines) + "\n"
    return re.sub(r"last run on \d{4}-\d{2}-\d{2}", f"last run on {date}", text)


def main(argv: Sequence[str]) -> int:
    """Tries the systems; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    unknown = set(_ONLY.value) - {system.name for system in SYSTEMS}
    if unknown:
        raise app.UsageError(f"no such system: {', '.join(sorted(unknown))}")
    missing = [name for name in ("debootstrap", "unshare", "git") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        print(f"systems: needs root and {', '.join(missing or ['no more'])}", file=sys.stderr)
        return 1
    source = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    folder = pathlib.Path(_FOLDER.value)
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for system in SYSTEMS:
        if not _ONLY.value or system.name in _ONLY.value:
            results.append(try_system(system, folder, source, _RUN.value))
            print(results[-1].row(), file=sys.stderr, flush=True)
    if _JSON.value:
        print(json.dumps([dataclasses.asdict(result) for result in results], indent=2))
    if _WRITE.value:
        base = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        path = base / _WRITE.value
        text = path.read_text(encoding="utf-8")
        today = datetime.datetime.now(datetime.UTC).date()
        path.write_text(replace_rows(text, results, today), encoding="utf-8")
        print(f"systems: wrote {len(results)} rows to {path}", file=sys.stderr)
    return 1 if any(result.problem for result in results) else 0


if __name__ == "__main__":
    app.run(main)
