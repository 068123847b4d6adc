"""The example of a server and the model that it serves, for its tests over HTTP and over gRPC."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf


class Served(tf.Module):  # type: ignore[misc]
    """Functions with one and several arguments, with bytes, with errors, and without an end."""

    def __init__(self) -> None:
        """Makes the weights."""
        super().__init__()
        random = np.random.default_rng(3)
        self.w = tf.Variable(random.normal(size=(3, 4)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])  # type: ignore[untyped-decorator]
    def one(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """A layer."""
        return {"y": tf.tanh(x @ self.w)}

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[
            tf.TensorSpec([None], tf.string, "text"),
            tf.TensorSpec([None], tf.int64, "number"),
        ]
    )
    def two(self, text: tf.Tensor, number: tf.Tensor) -> dict[str, tf.Tensor]:
        """Two arguments and three results."""
        return {
            "length": tf.strings.length(text),
            "next": number + 1,
            "raw_bytes": tf.strings.join([text, "!"]),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, "at")])  # type: ignore[untyped-decorator]
    def pick(self, at: tf.Tensor) -> dict[str, tf.Tensor]:
        """Refuses what is not one of three rows."""
        return {"row": tf.gather(self.w, at)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])  # type: ignore[untyped-decorator]
    def mean(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Has no row per row."""
        return {"mean": tf.reduce_mean(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])  # type: ignore[untyped-decorator]
    def endless(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Ends when it is told to."""
        turns = tf.while_loop(lambda x: tf.reduce_all(x > -1), lambda x: (tf.abs(x),), (x,))
        return {"x": turns[0]}


def write(folder: pathlib.Path) -> None:
    """Writes two versions of a SavedModel."""
    model = Served()
    signatures = {
        "serving_default": model.one,
        "two": model.two,
        "pick": model.pick,
        "mean": model.mean,
        "endless": model.endless,
    }
    for version in ("1", "12"):
        tf.saved_model.save(model, str(folder / version), signatures)


@dataclasses.dataclass
class Server:
    """A running server."""

    process: subprocess.Popen[str]
    port: int
    grpc: int | None

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Returns the status and the JSON of an answer, over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            return ask(connection, method, path, body)

    def predict(self, body: Any, model: str = "m") -> tuple[int, Any]:
        """Asks for a result."""
        return self.ask("POST", f"/v1/models/{model}:predict", body)

    def metrics(self) -> dict[str, float]:
        """The counters, by name."""
        status, text = self.ask("GET", "/metrics")
        assert status == 200
        lines = [line.split(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def stop(self) -> str:
        """Stops the server and returns its last line."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return out.splitlines()[-1]


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None
) -> tuple[int, Any]:
    """Returns the status and the JSON of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, None if body is None else data)
    answer = connection.getresponse()
    text = answer.read().decode()
    is_json = answer.headers["content-type"] == "application/json"
    return answer.status, json.loads(text) if is_json else text


def running(folder: pathlib.Path, *flags: str) -> contextlib.AbstractContextManager[Server]:
    """Starts a server of the model `m`."""
    return started(os.environ["SERVE"], f"--model=m={folder}", *flags)


@contextlib.contextmanager
def started(*command: str) -> Iterator[Server]:
    """Starts a server on a free port."""
    env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    env.setdefault("TF_LIBRARY_PATH", str(pathlib.Path(tf.__file__).parent))
    process = subprocess.Popen(
        [*command, "--address=127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert process.stdout is not None
    try:
        ports = [_port(process.stdout.readline(), "http")]
        if any(flag.startswith("--grpc_address=") for flag in command):
            ports.append(_port(process.stdout.readline(), "grpc"))
        yield Server(process, ports[0], ports[1] if ports[1:] else None)
    finally:
        process.kill()
        process.wait()


def _port(line: str, scheme: str) -> int:
    found = re.fullmatch(rf"{scheme}://127\.0\.0\.1:(\d+)\n", line)
    assert found is not None, line
    return int(found[1])
