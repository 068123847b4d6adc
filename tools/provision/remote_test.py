from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.provision import remote
from tools.provision.messages import StartError

CI = ["build", "--config=ci", "//x"]
REMOTE = ["build", "--config=remote", "//x"]


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A server that answers each connection with some bytes, or never."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                if answer is None:
                    held.append(connection)
                    continue
                with connection:
                    connection.recv(33)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        for connection in held:
            connection.close()


@contextmanager
def http_server(status: int) -> Iterator[int]:
    """An HTTP server that has one answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def silence(text: str) -> str | None:
    return remote.silence(urlsplit(text), 0.3)


def test_only_the_configuration_of_ci_has_a_cache(tmp_path: Path) -> None:
    environ = {remote.URL: "not even an address"}
    assert remote.startup_options(tmp_path, environ, ["build", "//x"]) == []
    assert remote.startup_options(tmp_path, {}, CI) == []
    for arguments in (CI, ["test", "--config", "ci"]):
        with pytest.raises(StartError):
            remote.startup_options(tmp_path, environ, arguments)


@pytest.mark.parametrize(
    "text",
    ["cache:9092", "ftp://cache", "grpc://", "http://cache:port", "/tmp/cache", "grpc://h:0"],
)
def test_a_wrong_address_is_one_clear_line(text: str) -> None:
    with pytest.raises(StartError) as caught:
        remote.read_url({remote.URL: text})
    line = caught.value.line()
    assert line.startswith(f"checking TFP_REMOTE_CACHE failed: {text} is not an address of a cache")
    assert "grpc://cache.example:9092" in line


@given(st.text(max_size=40))
def test_no_text_is_a_defect(text: str) -> None:
    try:
        url = remote.read_url({remote.URL: text})
    except StartError as error:
        assert len(error.line().splitlines()) == 1
    else:
        assert url is None or url.scheme in remote.SCHEMES


def test_writing_is_asked_for() -> None:
    assert not remote.may_write({})
    assert not remote.may_write({remote.WRITE: "0"})
    assert remote.may_write({remote.WRITE: "1"})
    with pytest.raises(StartError, match="expected 0 or 1"):
        remote.may_write({remote.WRITE: "yes"})


def test_a_server_that_answers_is_used(tmp_path: Path) -> None:
    with listening(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])) as port:
        url = f"grpc://127.0.0.1:{port}"
        (option,) = remote.startup_options(tmp_path, {remote.URL: url}, CI)
        rc = Path(option.removeprefix("--bazelrc="))
        lines = rc.read_text().splitlines()
        assert f"build:ci --remote_cache={url}" in lines
        assert "build:ci --remote_upload_local_results=false" in lines
        assert all(line.startswith("build:ci --") for line in lines[1:])
        assert rc.stat().st_mode & 0o077 == 0
        write = {remote.URL: url, remote.WRITE: "1"}
        (other,) = remote.startup_options(tmp_path, write, CI)
        text = Path(other.removeprefix("--bazelrc=")).read_text()
        assert "--remote_upload_local_results=true" in text
    with http_server(404) as port:
        assert silence(f"http://127.0.0.1:{port}") is None
        assert silence(f"http://127.0.0.1:{port}/some/folder/") is None


def test_a_server_that_does_not_is_left_out_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {remote.URL: "http://user:secret@127.0.0.1:9/cache"}
    assert remote.startup_options(tmp_path, environ, CI) == []
    assert capsys.readouterr().err.splitlines() == [
        "tfp: the remote cache http://127.0.0.1:9/cache is not used: Connection refused; "
        "this build goes on without it"
    ]


def test_what_is_wrong_with_a_server_is_said() -> None:
    for scheme in ("grpc", "http"):
        with listening(None) as port:
            assert silence(f"{scheme}://127.0.0.1:{port}") == "no answer in 0.3 s"
    with listening(b"SSH-2.0-OpenSSH\r\n") as port:
        assert silence(f"grpc://127.0.0.1:{port}") == "it speaks no gRPC"
    with listening(b"") as port:
        assert silence(f"grpc://127.0.0.1:{port}") == "it hangs up, so it speaks no gRPC"
    with listening(b"SSH-2.0-OpenSSH\r\n\r\n") as port:
        assert silence(f"http://127.0.0.1:{port}") == "it speaks no HTTP"
    with http_server(403) as port:
        assert silence(f"http://127.0.0.1:{port}") == "it answers 403"
    with http_server(500) as port:
        assert silence(f"http://127.0.0.1:{port}") == "it answers 500"


def test_an_engine_that_answers_is_used(tmp_path: Path) -> None:
    with listening(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])) as port:
        url = f"grpc://127.0.0.1:{port}"
        (option,) = remote.executor_options(tmp_path, {remote.EXECUTOR: url}, REMOTE)
    rc = Path(option.removeprefix("--bazelrc="))
    assert rc.read_text().splitlines()[1:] == [f"build:remote --remote_executor={url}"]
    assert rc.stat().st_mode & 0o077 == 0


def test_an_engine_that_does_not_answer_is_one_clear_line(tmp_path: Path) -> None:
    environ = {remote.EXECUTOR: "grpc://user:secret@127.0.0.1:9"}
    for arguments in (REMOTE, ["test", "--config", "remote"]):
        with pytest.raises(StartError) as caught:
            remote.executor_options(tmp_path, environ, arguments)
        assert caught.value.line() == (
            "asking the engine grpc://127.0.0.1:9 failed: Connection refused; start it, correct "
            "TFP_REMOTE_EXECUTOR, or build without --config=remote"
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "engine:8980", "http://engine:8980", "grpc://"])
def test_an_engine_has_to_be_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(StartError) as caught:
        remote.executor_options(tmp_path, {remote.EXECUTOR: text}, REMOTE)
    line = caught.value.line()
    assert line.startswith(f"checking TFP_REMOTE_EXECUTOR failed: it is {text or 'not set'}, ")
    assert "grpc://engine.example:8980" in line


def test_only_the_configuration_of_an_engine_asks_for_one(tmp_path: Path) -> None:
    environ = {remote.EXECUTOR: "not even an address"}
    assert remote.executor_options(tmp_path, environ, CI) == []
    told = [*REMOTE, "--remote_executor=grpc://elsewhere:1"]
    assert remote.executor_options(tmp_path, environ, told) == []
