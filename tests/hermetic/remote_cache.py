"""Proves the remote cache of `--config=ci`: a real server, then a false one that fails.

One checkout builds and tests with an empty output base and writes into the cache; a second one,
under another path and with an empty output base of its own, only reads. All that can come from the
cache has to, and what both made has to be the same. Then a server is down, slow, corrupt, and dies,
and each build has to go on. The disk cache is off throughout.

Exit status: 0 if all of it holds, 1 if not, 2 if there is no server to test with.
"""

from __future__ import annotations

import contextlib
import datetime
import http.server
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from absl import app, flags

from tests.hermetic.buildgrid import BUILDGRID, cache, free_port
from tests.hermetic.checkouts import check_out, made_files

_TARGETS = flags.DEFINE_list("targets", ["//..."], "What both checkouts build and test.")
_SMALL = flags.DEFINE_string(
    "small", "//bindings/sys/loader:tfp_sys_loader", "What is built while the server fails."
)
_WRITE = flags.DEFINE_string("write", None, "The page to write, such as docs/remote-cache.md.")
_KEEP = flags.DEFINE_bool("keep", False, "Keep the two checkouts and output bases.")

OPTIONS: Final = ("--config=ci", "--disk_cache=")

PAGE: Final = """\
# The remote cache, proved

`tools/bazel run //tests/hermetic:remote_cache -- --targets={targets} --write docs/remote-cache.md`
wrote this page on {date}, against {server} on loopback.

One checkout ran `tools/bazel test --config=ci {targets}` with an empty output base, the disk cache
off, and `TFP_REMOTE_CACHE_WRITE=1`. A second one, under a longer path and with an empty output base
of its own, ran the same and could only read. The counts are those of its execution log.

| | |
|---|---|
| actions and tests that may be cached | {cacheable} |
| of them from the cache | {hits} |
| of them tests | {tests} |
| run in spite of the cache | {missed} |
| not cacheable | {uncacheable} |
| files that both made, compared byte by byte | {files} |
| files that differ, or that one of them lacks | {different} |
| lists of headers (`.d`) that only the first has | {lists} |
| time of the first | {first:.0f} s |
| time of the second | {second:.0f} s |

What is not cacheable, and why: {reasons}. Bazel reads a list of headers that comes from a cache and
does not write it.

## When the server fails

Each build is of `{small}` from an empty output base. It has to succeed, with one warning.

| the server | status | actions run | seconds | warnings |
|---|---|---|---|---|
{faults}
"""


class FalseServer(http.server.ThreadingHTTPServer):
    """A cache over HTTP that keeps what it is given and fails as it is told.

    Attributes:
        kept: What it was given, by path.
        how: `well`; `slow`, an answer after longer than Bazel waits, but for the first question,
            which is the launcher's; `corrupt`, other bytes than those that were given; or `dies`,
            which hangs up from the third question on.
    """

    def __init__(self) -> None:
        """Listens on a free port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kept: dict[str, bytes] = {}
        self.how = "well"
        self.asked = 0


class _Handler(http.server.BaseHTTPRequestHandler):
    server: FalseServer
    # Bazel talks to no other.
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.server.how == "slow" and self.server.asked > 1:
            time.sleep(40)
        if self.server.how == "dies" and self.server.asked > 2:
            self.close_connection = True
            return
        data = self.server.kept.get(self.path)
        if data is None:
            self.send_error(404)
            return
        if self.server.how == "corrupt" and self.path.startswith("/cas/"):
            data = bytes(byte ^ 1 for byte in data)
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(data)

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.kept[self.path] = data
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


def reasons(spawns: Sequence[Mapping[str, Any]]) -> str:
    """Says what of a log may not be cached."""
    kinds: Counter[str] = Counter()
    for spawn in spawns:
        why = (
            "its rule forbids caching" if not spawn.get("cacheable") else "its rule keeps it local"
        )
        kinds[f"{spawn['mnemonic']} of {spawn.get('targetLabel', 'no target')} ({why})"] += 1
    return "; ".join(sorted(kinds)) or "nothing"


def _short(warning: str) -> str:
    """Returns a warning as the table has it."""
    text = warning.replace("|", "/")
    return text if len(text) <= 160 else f"{text[:157]}..."


@contextlib.contextmanager
def stalled(url: str) -> Iterator[str]:
    """Gives the address of a server that answers as another one does, but once: the launcher."""
    port = int(url.rpartition(":")[2])
    held: list[socket.socket] = []

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                held.append(connection)
                if len(held) > 1:
                    continue
                with socket.create_connection(("127.0.0.1", port)) as real:
                    real.sendall(connection.recv(1024))
                    connection.sendall(real.recv(1024))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"grpc://127.0.0.1:{listener.getsockname()[1]}"
    for connection in held:
        connection.close()


def fault_rows(folder: pathlib.Path, grpc: str) -> tuple[list[str], bool]:
    """Builds while a server fails.

    Args:
        folder: Where checkouts are made.
        grpc: Address of a server whose answers are held back.

    Returns:
        The table's rows, and whether all builds went on with one warning.
    """
    server = FalseServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    rows: list[str] = []
    well = True
    for how, address, said in (
        ("well", url, "fills it"),
        ("well", url, "works"),
        ("down", f"http://127.0.0.1:{free_port()}", "is down (HTTP)"),
        ("down", f"grpc://127.0.0.1:{free_port()}", "is down (gRPC)"),
        ("corrupt", url, "gives other bytes than it got"),
        ("dies", url, "hangs up from the third question on"),
        ("slow", url, "answers after 40 s (HTTP)"),
        ("stalled", grpc, "answers the launcher and nobody else (gRPC)"),
    ):
        server.how, server.asked = how, 0
        checkout = check_out(folder / f"{len(rows)}", folder / f"{len(rows)}-base")
        write = "1" if said == "fills it" else "0"
        build = checkout.run(
            "build", [_SMALL.value], OPTIONS, TFP_REMOTE_CACHE=address, TFP_REMOTE_CACHE_WRITE=write
        )
        local = sum(not spawn.get("cacheHit") for spawn in build.spawns)
        warned = [_short(warning) for warning in build.warnings()]
        rows.append(
            f"| {said} | {build.status} | {local} of {len(build.spawns)} | {build.seconds:.0f} | "
            f"{len(warned)}{': ' if warned else ''}{'; '.join(warned[:1])} |"
        )
        print(rows[-1], file=sys.stderr, flush=True)
        well = well and build.status == 0 and bool(build.spawns)
        well = well and (local == 0) == (said == "works")
        well = well and len(warned) == (0 if how == "well" else 1)
        checkout.remove()
    server.shutdown()
    return rows, well


def main(argv: Sequence[str]) -> int:
    """Runs the proof; returns its exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tfp-remote-cache-"))
    try:
        return prove(folder)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"remote_cache: {error}", file=sys.stderr)
        return 2
    finally:
        if not _KEEP.value:
            shutil.rmtree(folder, ignore_errors=True)


def prove(folder: pathlib.Path) -> int:
    """Runs both checkouts and the failures; writes the page."""
    with cache(folder) as url, stalled(url) as grpc:
        one = check_out(folder / "one", folder / "one-base")
        two = check_out(folder / "another/and/longer/path/two", folder / "elsewhere-two-base")
        print("The first checkout fills the cache ...", file=sys.stderr, flush=True)
        first = one.run(
            "test", _TARGETS.value, OPTIONS, TFP_REMOTE_CACHE=url, TFP_REMOTE_CACHE_WRITE="1"
        )
        print(f"first: {first.status}, {len(first.spawns)} actions", file=sys.stderr, flush=True)
        if first.status:
            # Nothing is in the cache that a second one could be compared with.
            print("\n".join(first.errors.splitlines()[-40:]), file=sys.stderr)
            one.remove()
            return 1
        print("The second one reads it ...", file=sys.stderr, flush=True)
        second = two.run("test", _TARGETS.value, OPTIONS, TFP_REMOTE_CACHE=url)
        print(f"second: {second.status}, {len(second.spawns)} actions", file=sys.stderr, flush=True)
        rows, well = fault_rows(folder, grpc)
    made, again = made_files(one.base), made_files(two.base)
    common = sorted(made.keys() & again.keys())
    different = [name for name in common if made[name] != again[name]]
    lists = {name for name in made.keys() - again.keys() if name.endswith(".d")}
    different += sorted((made.keys() ^ again.keys()) - lists)
    able = [spawn for spawn in second.spawns if spawn.get("remoteCacheable")]
    unable = [spawn for spawn in second.spawns if not spawn.get("remoteCacheable")]
    missed = [spawn for spawn in able if not spawn.get("cacheHit")]
    for spawn in missed:
        print(f"missed: {spawn['mnemonic']} {spawn.get('targetLabel')}", file=sys.stderr)
    for name in different:
        print(f"differs: {name}", file=sys.stderr)
    if second.status:
        print("\n".join(second.errors.splitlines()[-40:]), file=sys.stderr)
    if not _KEEP.value:
        one.remove()
        two.remove()
    page = PAGE.format(
        targets=",".join(_TARGETS.value),
        date=datetime.datetime.now(datetime.UTC).date(),
        server=f"BuildGrid ({BUILDGRID.replace('==', ' ')}, the wheel)",
        cacheable=len(able),
        hits=len(able) - len(missed),
        tests=sum(spawn["mnemonic"] == "TestRunner" for spawn in able),
        missed=len(missed),
        uncacheable=len(unable),
        files=len(common),
        different=len(different),
        lists=len(lists),
        first=first.seconds,
        second=second.seconds,
        reasons=reasons(unable),
        small=_SMALL.value,
        faults="\n".join(rows),
    )
    if _WRITE.value:
        base = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        (base / _WRITE.value).write_text(page, encoding="utf-8")
    print(page)
    holds = not (first.status or second.status or missed or different) and bool(able) and well
    return 0 if holds else 1


if __name__ == "__main__":
    app.run(main)
