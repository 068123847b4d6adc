"""Requests per second of the example of a server, beside a server of Python's.

`tools/bazel run -c opt //tests/bench/client:serve_vs_python` prints a table. The load comes from
`serve_load.rs`, on the same machine, whose cores all share. All serve the same SavedModel.
"""

from __future__ import annotations

import contextlib
import http.server
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from absl import app, flags

_SECONDS = flags.DEFINE_float("seconds", 3.0, "measured time of each row")
_PYTHON = flags.DEFINE_string("python_server", None, "only serve this SavedModel with Python")
_LAYERS = (784, 512, 512, 10)


def write_model(folder: pathlib.Path) -> None:
    """Writes a SavedModel of three dense layers."""
    import numpy as np
    import tensorflow as tf

    class Layers(tf.Module):  # type: ignore[misc]
        """Dense layers."""

        def __init__(self) -> None:
            """Draws the weights."""
            super().__init__()
            random = np.random.default_rng(1)
            pairs = itertools.pairwise(_LAYERS)
            scaled = [random.normal(size=pair) / pair[0] ** 0.5 for pair in pairs]
            self.kernels = [tf.Variable(kernel.astype(np.float32)) for kernel in scaled]

        @tf.function(  # type: ignore[untyped-decorator]
            input_signature=[tf.TensorSpec([None, _LAYERS[0]], tf.float32, "x")]
        )
        def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            """Returns the probabilities."""
            for kernel in self.kernels[:-1]:
                x = tf.nn.relu(x @ kernel)
            return {"y": tf.nn.softmax(x @ self.kernels[-1])}

    model = Layers()
    tf.saved_model.save(model, str(folder), model.__call__)


def serve_by_python(folder: str) -> None:
    """Serves `:predict` with the standard library's threaded server until it is killed."""
    import tensorflow as tf

    model = tf.saved_model.load(folder)
    function = model.signatures["serving_default"]

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers `:predict` by rows."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Computes a request of its own."""
            body = self.rfile.read(int(self.headers["content-length"]))
            x = tf.constant(json.loads(body)["instances"], tf.float32)
            found = {"predictions": function(x=x)["y"].numpy().tolist()}
            data = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Logs nothing."""

    class Threaded(http.server.ThreadingHTTPServer):
        """Takes many connections at a time."""

        request_queue_size = 256

    with Threaded(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator[str]:
    """Starts a server that prints its address, and returns the address."""
    env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().removeprefix("http://")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _main(_: Sequence[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if _PYTHON.value is not None:
        serve_by_python(_PYTHON.value)
        return
    import numpy as np
    import tensorflow as tf

    os.environ.setdefault("TF_LIBRARY_PATH", str(pathlib.Path(tf.__file__).parent))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_model(folder / "model")
        row = np.random.default_rng(2).random(_LAYERS[0]).round(4).tolist()
        body = folder / "body.json"
        body.write_text(json.dumps({"instances": [row]}))
        rust = [os.environ["SERVE"], f"--model=m={folder / 'model'}", "--address=127.0.0.1:0"]
        servers = {
            "Python": [sys.executable, __file__, f"--python_server={folder / 'model'}"],
            "Rust, each request alone": [*rust, "--max_batch=1"],
            "Rust, up to 32 rows": [*rust, "--max_batch=32", "--max_delay_us=0"],
            "Rust, up to 32 rows, waits 2 ms": [*rust, "--max_batch=32", "--max_delay_us=2000"],
        }
        print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
        print("| connections | server | requests/s | median, ms | 99 %, ms |")
        print("|---:|---|---:|---:|---:|")
        for connections in (1, 16, 64):
            for name, command in servers.items():
                with running(command) as address:
                    load = [os.environ["SERVE_LOAD"], address, "/v1/models/m:predict", str(body)]
                    load += [str(connections), str(_SECONDS.value)]
                    done = subprocess.run(load, capture_output=True, text=True, check=True)
                    rate, median, late = map(float, done.stdout.split())
                cells = f"{rate:.0f} | {median / 1000:.2f} | {late / 1000:.2f}"
                print(f"| {connections} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    app.run(_main)
