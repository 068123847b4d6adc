"""BuildGrid, a server of the Remote Execution API, on loopback: a cache, or an engine with one."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

BUILDGRID: Final = "buildgrid==0.4.4"

_CHANNEL: Final = """\
server:
  - !channel
    address: 127.0.0.1:{port}
    insecure-mode: true
"""

_CACHE: Final = """\
instances:
  - name: ''
    storages:
      - !lru-storage &cas
        size: 4gb
    caches:
      - !lru-action-cache &actions
        storage: *cas
        max-cached-refs: 200000
        cache-failed-actions: true
        allow-updates: true
    services:
      - !action-cache
        cache: *actions
      - !cas
        storage: *cas
      - !bytestream
        storage: *cas
thread-pool-size: 100
"""

_ENGINE: Final = """\
# It refuses what is more at a time than its threads; Bazel sends a few hundred files at a time.
connections:
  - !sql-connection &sql
    connection-string: {database}
storages:
  - !disk-storage &cas
    path: {storage}
caches:
  - !lru-action-cache &actions
    storage: *cas
    max-cached-refs: 200000
    allow-updates: true
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    storage: *cas
    action-cache: *actions
instances:
  - name: ''
    services:
      - !action-cache
        cache: *actions
      - !execution
        scheduler: *scheduler
      - !cas
        storage: *cas
      - !bytestream
        storage: *cas
thread-pool-size: 1000
"""


def free_port() -> int:
    """Returns a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_for(port: int, what: str, log: pathlib.Path) -> None:
    """Waits until somebody listens on a port of loopback.

    Raises:
        RuntimeError: nobody does in two minutes.
    """
    for _ in range(240):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.5)
    raise RuntimeError(f"{what} does not start; see {log}")


def _install(folder: pathlib.Path, package: str) -> pathlib.Path:
    """Installs BuildGrid into a folder unless it is there; returns its program."""
    python, done = folder / "venv/bin/python", folder / "venv/installed"
    if done.exists() and done.read_text(encoding="utf-8") == package:
        return folder / "venv/bin/bgd"
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", package], check=True)
    done.write_text(package, encoding="utf-8")
    return folder / "venv/bin/bgd"


@contextlib.contextmanager
def _serve(folder: pathlib.Path, program: pathlib.Path, configuration: str) -> Iterator[str]:
    port = free_port()
    file, log = folder / "server.yml", folder / "server.log"
    file.write_text(_CHANNEL.format(port=port) + configuration, encoding="utf-8")
    with log.open("w", encoding="utf-8") as out:
        server = subprocess.Popen(
            [str(program), "server", "start", str(file)], stdout=out, stderr=out
        )
        try:
            wait_for(port, "BuildGrid", log)
            yield f"grpc://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


@contextlib.contextmanager
def cache(folder: pathlib.Path) -> Iterator[str]:
    """Installs BuildGrid into a folder and runs it as a cache; gives its address."""
    with _serve(folder, _install(folder, BUILDGRID), _CACHE) as url:
        yield url


@contextlib.contextmanager
def engine(home: pathlib.Path, folder: pathlib.Path, database: str) -> Iterator[str]:
    """Runs BuildGrid as an engine, whose workers are others' concern.

    Args:
        home: Where it is installed, unless it is there.
        folder: Where it keeps files.
        database: The address of an empty database of PostgreSQL.

    Yields:
        The engine's address.
    """
    name, _, version = BUILDGRID.partition("==")
    program = _install(home, f"{name}[database]=={version}")
    subprocess.run(
        [str(program), "migrate", "apply", database],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    configuration = _ENGINE.format(database=database, storage=folder / "storage")
    with _serve(folder, program, configuration) as url:
        yield url
