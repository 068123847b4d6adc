"""The example of a server beside Python's results: HTTP, batches, limits, errors and its end."""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.e2e.client import served
from tests.e2e.client.served import Server, ask, running, started

TOLERANCE = 1e-6
"""Largest difference: a batch of other rows may sum in another order."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Two versions of a SavedModel."""
    folder = pathlib.Path(tmp_path_factory.mktemp("models"))
    served.write(folder)
    return folder


@pytest.fixture(scope="module")
def server(folder: pathlib.Path) -> Iterator[Server]:
    """A server with short limits that most tests share."""
    with running(
        folder, "--max_body=20000", "--deadline_ms=5000", "--max_delay_us=20000"
    ) as server:
        yield server


def test_many_threads_get_what_python_computes(folder: pathlib.Path, server: Server) -> None:
    """Requests of one to four rows go together, and each gets its own rows."""
    model = tf.saved_model.load(str(folder / "12"))

    def thread(seed: int) -> float:
        random = np.random.default_rng(seed)
        largest = 0.0
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        with contextlib.closing(connection):
            for turn in range(20):
                x = random.normal(size=(1 + (seed + turn) % 4, 3)).astype(np.float32)
                form, key = ("instances", "predictions") if turn % 2 else ("inputs", "outputs")
                body = {form: x.tolist()}
                status, found = ask(connection, "POST", "/v1/models/m:predict", body)
                assert status == 200, found
                expected = model.signatures["serving_default"](x=tf.constant(x))["y"].numpy()
                assert np.shape(found[key]) == expected.shape
                largest = max(largest, float(np.abs(found[key] - expected).max()))
        return largest

    before = server.metrics()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert max(pool.map(thread, range(16))) <= TOLERANCE
    after = server.metrics()
    computed = after["serve_computed_total"] - before["serve_computed_total"]
    assert computed == 16 * 20
    assert after["serve_runs_total"] - before["serve_runs_total"] < computed
    assert after["serve_waiting"] == 0


def test_bytes_integers_and_several_results(server: Server) -> None:
    """Both forms, base64 in and out, and integers that doubles don't hold."""
    raw = bytes([0, 255, 7])
    values = [
        {"text": "naïve", "number": 2**53},
        {"text": {"b64": base64.b64encode(raw).decode()}, "number": -5},
    ]
    status, found = server.predict({"signature_name": "two", "instances": values})
    assert status == 200, found

    def row(length: int, number: int, text: bytes) -> dict[str, Any]:
        encoded = {"b64": base64.b64encode(text).decode()}
        return {"length": length, "next": number, "raw_bytes": encoded}

    expected = [row(6, 2**53 + 1, "naïve!".encode()), row(3, -4, raw + b"!")]
    assert found == {"predictions": expected}
    columns = {name: [value[name] for value in values] for name in ("text", "number")}
    status, found = server.predict({"signature_name": "two", "inputs": columns})
    assert status == 200, found
    assert found == {"outputs": {k: [each[k] for each in expected] for k in expected[0]}}


def test_a_result_without_rows(server: Server) -> None:
    """It is an answer by columns, and an error by rows."""
    status, found = server.predict({"signature_name": "mean", "inputs": [1, 2, 6]})
    assert (status, found) == (200, {"outputs": 3.0})
    status, found = server.predict({"signature_name": "mean", "instances": [1, 2, 6]})
    assert status == 400
    assert "'mean'" in found["error"]


def test_state_metadata_and_health(server: Server) -> None:
    """As TensorFlow Serving tells them; the latest version is served."""
    state = {
        "version": "12",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    for path in ("/v1/models/m", "/v1/models/m/versions/12"):
        assert server.ask("GET", path) == (200, {"model_version_status": [state]})
    status, found = server.ask("GET", "/v1/models/m/metadata")
    assert status == 200
    assert found["model_spec"] == {"name": "m", "signature_name": "", "version": "12"}
    signatures = found["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "two", "pick", "mean", "endless"} <= set(signatures)
    default = signatures["serving_default"]
    assert default["method_name"] == "tensorflow/serving/predict"
    shape = {
        "dim": [{"size": "-1", "name": ""}, {"size": "3", "name": ""}],
        "unknown_rank": False,
    }
    expected = {"dtype": "DT_FLOAT", "tensor_shape": shape, "name": "serving_default_x:0"}
    assert default["inputs"] == {"x": expected}
    assert server.ask("GET", "/healthz") == (200, "ok\n")
    assert server.ask("GET", "/readyz") == (200, "ok\n")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "part"),
    [
        ("POST", "/v1/models/m:predict", b"{", 400, "JSON is not valid at byte 1"),
        ("POST", "/v1/models/m:predict", b"\xff", 400, "UTF-8"),
        ("POST", "/v1/models/m:predict", b"", 400, "JSON is not valid at byte 0"),
        ("POST", "/v1/models/m:predict", {"instances": [[1, 2]]}, 400, "of the shape [1, 2]"),
        ("POST", "/v1/models/m:predict", {"instances": [[1, 2, "a"]]}, 400, "found a string"),
        ("POST", "/v1/models/m:predict", {"instances": [[1, 2, 3], [1]]}, 400, "a list of 1"),
        ("POST", "/v1/models/m:predict", {"inputs": {"z": [1]}}, 400, "input 'z'"),
        ("POST", "/v1/models/m:predict", {"signature_name": "no", "inputs": 1}, 400, '"no"'),
        ("POST", "/v1/models/m:predict", b"[" * 5000, 400, "at most 64"),
        ("POST", "/v1/models/m:predict", b" " * 20001, 413, "more than 20000 bytes"),
        ("POST", "/v1/models/other:predict", {"inputs": 1}, 404, "Latest(other)"),
        ("POST", "/v1/models/m/versions/1:predict", {"inputs": 1}, 404, "Specific(m, 1)"),
        ("POST", "/v1/models/m:classify", {"examples": []}, 501, ":classify"),
        ("POST", "/v1/models/m", {}, 405, "expected GET"),
        ("GET", "/v1/models/m:predict", None, 405, "expected POST"),
        ("GET", "/v2/models/m", None, 404, "Malformed request: GET /v2/models/m"),
    ],
)
def test_errors_are_json(
    server: Server, method: str, path: str, body: Any, status: int, part: str
) -> None:
    """Each with its status and what is wrong."""
    found = server.ask(method, path, body)
    assert found[0] == status, found
    assert list(found[1]) == ["error"]
    assert part in found[1]["error"], found


def test_a_request_that_is_wrong_fails_alone(folder: pathlib.Path) -> None:
    """Of requests that went into one run, only the wrong one gets an error."""
    with running(folder, "--max_batch=8", "--max_delay_us=4000000") as server:

        def pick(at: int) -> tuple[int, Any]:
            return server.predict({"signature_name": "pick", "instances": [at]})

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            found = list(pool.map(pick, [0, 1, 2, 99, 0, 1, 2, 0]))
        assert [status for status, _ in found] == [200, 200, 200, 400, 200, 200, 200, 200]
        assert "99" in found[3][1]["error"]
        assert found[0] == found[4] == found[7]


def test_what_takes_too_long_is_told_and_the_queue_is_bounded(folder: pathlib.Path) -> None:
    """A run without an end is given up, others are refused, and the server goes on."""
    flags = ("--queue=2", "--max_batch=1", "--deadline_ms=1500")
    with running(folder, *flags) as server:

        def endless(_: int) -> int:
            return server.predict({"signature_name": "endless", "inputs": [1.0]})[0]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(endless, range(8)))
        assert set(statuses) == {429, 504}
        # One that runs, and two that wait.
        assert statuses.count(504) <= 3
        status, found = server.predict({"inputs": [[0, 0, 0]]})
        assert (status, found) == (200, {"outputs": [[0.0] * 4]})


def test_a_body_that_does_not_come_is_not_waited_for(folder: pathlib.Path) -> None:
    """The sender gets 408."""
    with (
        running(folder, "--deadline_ms=300") as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection,
    ):
        connection.sendall(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\n")
        connection.sendall(b"Content-Length: 100\r\n\r\n{")
        found = connection.makefile().read()
        assert found.startswith("HTTP/1.1 408 "), found
        assert '{"error": ' in found


def test_a_stop_under_load_loses_nothing(folder: pathlib.Path) -> None:
    """Clients have an answer to every request that the server accepted."""
    with running(folder, "--linger_ms=2000", "--max_delay_us=5000") as server:
        answers = [0] * 12
        broken: list[str] = []
        started = threading.Barrier(len(answers) + 1)

        def thread(number: int) -> None:
            x = [[float(number), 1.0, -1.0]]
            expected = None
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            while True:
                try:
                    found = ask(connection, "POST", "/v1/models/m:predict", {"instances": x})
                except ConnectionRefusedError:
                    return
                except (ConnectionError, http.client.RemoteDisconnected) as error:
                    # The system had connected it, and the server had not read it.
                    broken.append(repr(error))
                    connection.close()
                    continue
                assert found[0] == 200, found
                expected = expected or found
                assert found == expected
                answers[number] += 1
                if answers[number] == 5:
                    started.wait(timeout=60)

        threads = [threading.Thread(target=thread, args=(n,)) for n in range(len(answers))]
        for each in threads:
            each.start()
        started.wait(timeout=60)
        server.process.send_signal(signal.SIGTERM)
        # It still answers while it lingers, and says that it should get no more.
        ready = 0
        while (status := server.ask("GET", "/readyz")[0]) == 200:
            ready += 1
            time.sleep(0.01)
        assert status == 503
        for each in threads:
            each.join(timeout=60)
            assert not each.is_alive()
        out, _ = server.process.communicate(timeout=60)
        assert server.process.returncode == 0
        line = out.splitlines()[-1]
        total = sum(answers) + ready
        expected = f"accepted {total + 1} answered {total + 1} (200: {total}, 503: 1)"
        assert line.startswith(expected), (line, total, broken)


def test_a_stop_without_load_is_short(folder: pathlib.Path) -> None:
    """A connection that is open and idle does not hold it up."""
    with (
        running(folder, "--linger_ms=0") as server,
        socket.create_connection(("127.0.0.1", server.port)),
    ):
        assert server.predict({"inputs": [[0, 0, 0]]})[0] == 200
        assert server.stop().startswith("accepted 1 answered 1 (200: 1)")


@pytest.mark.skipif("SERVE_MNIST" not in os.environ, reason="only Bazel converts the model")
def test_a_crate_of_tf2rust_is_served_too() -> None:
    """Its results are those of Keras."""
    features = np.load(os.environ["FEATURES"])
    with started(os.environ["SERVE_MNIST"]) as server:
        status, found = server.predict({"instances": features["image"].tolist()}, "mnist")
        assert status == 200, found
        np.testing.assert_allclose(found["predictions"], features["predictions"], atol=1e-5)


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        ([], "not a model to serve"),
        (["--model=m=/does/not/exist"], "/does/not/exist"),
        (["--model=m"], "--model=m: usage"),
        (["--queue=0"], "--queue=0: expected a number from 1 on"),
        (["--nonsense=1"], "--nonsense=1: usage"),
    ],
)
def test_a_wrong_command_line_is_told(flags: list[str], part: str) -> None:
    """The exit status is 1, and the text names the flag."""
    done = subprocess.run(
        [os.environ["SERVE"], *flags], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert part in done.stderr


def test_the_page_shows_the_program_beside_a_runtime() -> None:
    """Its pieces are those of the program, which ends what takes too long."""
    page = pathlib.Path("docs/client-serving.md").read_text()
    program = pathlib.Path("examples/serve/blocking.rs").read_text()
    pieces = re.findall(r"```rust\n(.*?)```", page, re.DOTALL)
    assert pieces
    for piece in pieces:
        assert piece in program, piece
    env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    env.setdefault("TF_LIBRARY_PATH", str(pathlib.Path(tf.__file__).parent))
    done = subprocess.run(
        [os.environ["BLOCKING"]], capture_output=True, text=True, check=False, env=env, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["0.5: 0.5", "3: 0.75", "10: 0.625", "inf: deadline has elapsed"]
