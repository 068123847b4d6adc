"""A worker of a remote build on loopback: buildbox in a bare Debian that has no compiler.

The system is Debian unstable, made by debootstrap. It has buildbox, PostgreSQL for the engine's
queue and a small Python that starts the stubs of Python programs. Of this machine it has the
loopback network, and the Python of the build under the path that the build knows; nothing else.
Actions run as a user without rights. It needs root.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

from tests.hermetic.buildgrid import free_port
from tests.packages import bare

SUITE: Final = "sid"
# A Python that was built elsewhere loads libffi.
PACKAGES: Final = ("buildbox", "libffi8", "postgresql", "python3-minimal")

_ALONE: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c")

_INSTALL: Final = """\
set -e
mount -t proc proc {base}/proc
DEBIAN_FRONTEND=noninteractive chroot {base} sh -c '
  apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends {packages}'
"""

# A shell of root runs this in mounts and processes of its own, which end with it.
_RUN: Final = """\
set -e
mount -t proc proc {base}/proc
mount --bind {python} {base}{python}
mount -o remount,bind,ro {base}{python}
rm -rf {base}/srv/{user}
mkdir {base}/srv/{user}
chroot {base} chown {user}: /srv/{user}
exec env -i HOME=/srv/{user} LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/bin \\
  chroot --userspec={user}: {base} sh -ec "cd; $1"
"""

_DATABASE: Final = """\
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
initdb --pgdata=data --auth=trust --encoding=UTF8
exec postgres -D data -p {port} -h 127.0.0.1 -k /srv/postgres
"""

_WORKER: Final = """\
mkdir store
buildbox-casd --cas-remote={engine} --bind=unix:$PWD/store/socket $PWD/store &
while [ ! -S store/socket ]; do sleep 0.2; done
exec buildbox-worker --bots-remote={engine} --cas-remote=unix:$PWD/store/socket \\
  --buildbox-run=/usr/bin/buildbox-run-hosttools --runner-arg=--staging-mode=copy-or-link \\
  --concurrent-jobs={jobs} --log-level=warning worker
"""


def make_root(folder: pathlib.Path, mirror: str) -> pathlib.Path:
    """Returns the root folder of the worker's system, made in `folder` unless it is there.

    Raises:
        RuntimeError: the Python of the build can't be shown there.
    """
    prefix = pathlib.Path(sys.base_prefix)
    if prefix == pathlib.Path("/usr"):
        raise RuntimeError(
            "the build's Python is the system's own, which the worker's system has in another "
            "version; set TFP_PYTHON to one in a folder of its own"
        )
    base = bare.make_base(folder, SUITE, (), mirror)
    bare.bring_settings(base)
    if not (base / "usr/bin/buildbox-worker").exists():
        script = _INSTALL.format(base=base, packages=" ".join(PACKAGES))
        subprocess.run([*_ALONE, script], check=True, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    place = base.joinpath(*prefix.parts[1:])
    place.mkdir(parents=True, exist_ok=True)
    while place != base:
        place.chmod(0o755)
        place = place.parent
    return base


@contextlib.contextmanager
def _running(base: pathlib.Path, user: str, command: str, log: pathlib.Path) -> Iterator[None]:
    """Runs a command as a user of the system, in a fresh folder, until the caller is done."""
    script = _RUN.format(base=base, python=sys.base_prefix, user=user)
    with log.open("w", encoding="utf-8") as out:
        # A session of its own: an interrupt is for this program, which then ends the command.
        shell = subprocess.Popen(
            [*_ALONE, script, "sh", command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait()


@contextlib.contextmanager
def database(base: pathlib.Path, folder: pathlib.Path) -> Iterator[str]:
    """Runs an empty database of PostgreSQL, whose log is in `folder`; gives its address.

    Raises:
        RuntimeError: it does not start in two minutes.
    """
    port, log = free_port(), folder / "database.log"
    with _running(base, "postgres", _DATABASE.format(port=port), log):
        program = "$(echo /usr/lib/postgresql/*/bin)/pg_isready"
        ready = f"{program} --quiet --username=postgres -h 127.0.0.1 -p {port}"
        for _ in range(240):
            done = subprocess.run(["chroot", str(base), "sh", "-c", ready], check=False)
            if done.returncode == 0:
                break
            time.sleep(0.5)
        else:
            raise RuntimeError(f"PostgreSQL does not start; see {log}")
        yield f"postgresql+psycopg2://postgres@127.0.0.1:{port}/postgres"


@contextlib.contextmanager
def worker(base: pathlib.Path, folder: pathlib.Path, engine: str, jobs: int) -> Iterator[None]:
    """Runs a worker, whose log is in `folder`.

    Args:
        base: The root of its system.
        folder: Where its log is.
        engine: The engine's address, `grpc://...`.
        jobs: How many actions it runs at a time.
    """
    address = engine.replace("grpc://", "http://", 1)
    command = _WORKER.format(engine=address, jobs=jobs)
    with _running(base, "nobody", command, folder / "worker.log"):
        yield
