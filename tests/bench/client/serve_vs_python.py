"""Requests per second of the example of a server, over REST and gRPC, beside a server of Python's.

The load comes from `serve_load`, on the same machine, whose cores all share. All serve the same
SavedModel, and each answers one request right before it is measured.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from absl import app, flags

from tests.bench import report

if TYPE_CHECKING:
    from tests.e2e.client.served import Server

_SECONDS = flags.DEFINE_float("seconds", 2.5, "Measured time of each row.")
_CONNECTIONS = flags.DEFINE_list("connections", ["1", "16", "64"], "Numbers of connections.")
_WRITE = flags.DEFINE_string(
    "write", None, "The page to write, such as docs/performance/serving.md."
)

LAYERS: Final = (784, 512, 512, 10)
"""Inputs, hidden layers and classes of the model that is served."""

PATHS: Final = {
    "rest": "/v1/models/m:predict",
    "grpc": "/tensorflow.serving.PredictionService/Predict",
}
PYTHON: Final = "Python"
TOLERANCE: Final = 1e-5
"""Largest difference of a probability from what TensorFlow computes here."""

PAGE: Final = """\
# Serving a model

`tools/bazel run -c opt //tests/bench/client:serve_vs_python -- --write docs/performance/serving.md`
starts `//examples/serve:serve_saved_model` and a server of Python's, one after the other. Python's
answers REST by the standard library's threaded server, and gRPC by grpcio with 16 threads. The
model has three dense layers ({layers}), and a request has one row of 784 float32 numbers: JSON over
REST, `tensor_content` over gRPC. Each connection sends its next request when it has an answer.

{where}.
The load comes from the same machine, so it takes its part of the cores. A row is one measurement of
{seconds:g} s, after a quarter of it that does not count.

"Waits 2 ms" is `--max_delay_us=2000`: requests wait for others, which slows down one connection.
{tables}"""


@dataclasses.dataclass(frozen=True)
class Row:
    """A measurement: requests per second, their median and 99th percentile in milliseconds."""

    interface: str
    connections: int
    server: str
    rate: float
    median: float
    late: float


def write_model(folder: pathlib.Path) -> None:
    """Writes a SavedModel of dense layers."""
    import numpy as np
    import tensorflow as tf

    class Layers(tf.Module):  # type: ignore[misc]
        """Dense layers."""

        def __init__(self) -> None:
            """Draws the weights."""
            super().__init__()
            random = np.random.default_rng(1)
            pairs = itertools.pairwise(LAYERS)
            scaled = [random.normal(size=pair) / pair[0] ** 0.5 for pair in pairs]
            self.kernels = [tf.Variable(kernel.astype(np.float32)) for kernel in scaled]

        @tf.function(  # type: ignore[untyped-decorator]
            input_signature=[tf.TensorSpec([None, LAYERS[0]], tf.float32, "x")]
        )
        def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            """Returns the probabilities."""
            for kernel in self.kernels[:-1]:
                x = tf.nn.relu(x @ kernel)
            return {"y": tf.nn.softmax(x @ self.kernels[-1])}

    model = Layers()
    tf.saved_model.save(model, str(folder), model.__call__)


class Request:
    """The request of all connections, and what it is answered with."""

    def __init__(self, model: pathlib.Path, folder: pathlib.Path) -> None:
        """Writes the bodies of both interfaces into a folder."""
        import numpy as np
        import tensorflow as tf

        from tests.e2e.client.serving import M

        self._row = np.random.default_rng(2).random((1, LAYERS[0])).round(4).astype(np.float32)
        function = tf.saved_model.load(str(model)).signatures["serving_default"]
        self._expected = function(x=tf.constant(self._row))["y"].numpy()
        self.bodies = {interface: folder / interface for interface in PATHS}
        self._json = {"instances": self._row.astype(float).round(4).tolist()}
        self.bodies["rest"].write_text(json.dumps(self._json))
        inputs = {"x": tf.make_tensor_proto(self._row)}
        message = M["PredictRequest"](model_spec={"name": "m"}, inputs=inputs)
        self.bodies["grpc"].write_bytes(message.SerializeToString())

    def check(self, server: Server) -> None:
        """Asks a server over both interfaces.

        Raises:
            RuntimeError: an answer is not what TensorFlow computes.
        """
        import numpy as np

        from tests.e2e.client.serving import Client

        status, answer = server.predict(self._json)
        client = Client(server)
        found = {"rest": answer["predictions"], "grpc": client.predict(x=self._row)["y"]}
        client.channel.close()
        for interface, value in found.items():
            if status != 200 or np.abs(np.asarray(value) - self._expected).max() > TOLERANCE:
                raise RuntimeError(f"an answer over {interface} is wrong: {value}")


def _measure(name: str, server: Server, request: Request) -> list[Row]:
    """Measures a server over both interfaces."""
    rows = []
    ports = {"rest": server.port, "grpc": server.grpc}
    for (interface, port), connections in itertools.product(ports.items(), _CONNECTIONS.value):
        command = [os.environ["SERVE_LOAD"], interface, f"127.0.0.1:{port}", PATHS[interface]]
        command += [str(request.bodies[interface]), connections, str(_SECONDS.value)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name}, {interface}: {done.stderr.strip()}")
        rate, median, late = map(float, done.stdout.split())
        rows.append(Row(interface, int(connections), name, rate, median / 1e3, late / 1e3))
        report.tell(f"  {interface}, {connections} connections: {rate:.0f} requests/s")
    return rows


def tables(rows: Sequence[Row]) -> str:
    """Returns a table of each interface, with the rate of each server over that of Python's."""
    text = ""
    python = {(row.interface, row.connections): row for row in rows if row.server == PYTHON}
    for interface, title in (("rest", "REST"), ("grpc", "gRPC")):
        text += f"\n## {title}\n\n| server and connections | requests/s | median, ms | 99 %, ms "
        text += "| rate / Python's |\n|---|---:|---:|---:|---:|\n"
        found = [row for row in rows if row.interface == interface]
        for row in sorted(found, key=lambda row: row.connections):
            peer = python.get((interface, row.connections))
            ratio = f"{row.rate / peer.rate:.2f}" if peer and peer is not row else ""
            cells = [f"{row.server}, {row.connections}", f"{row.rate:.0f}"]
            cells += [f"{row.median:.2f}", f"{row.late:.2f}", ratio]
            text += f"| {' | '.join(cells)} |\n"
    return text


def _main(arguments: Sequence[str]) -> None:
    if len(arguments) > 1:
        raise app.UsageError(f"unexpected arguments: {arguments[1:]}")
    where = report.when_and_where()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Python's server imports what this program does.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    report.tell("importing TensorFlow, writing a model")
    # It imports TensorFlow, which takes seconds.
    from tests.e2e.client.served import started

    peer = pathlib.Path(__file__).with_name("serve_peer.py")
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_model(folder / "model")
        request = Request(folder / "model", folder)
        rust = [os.environ["SERVE"], f"--model=m={folder / 'model'}", "--grpc_address=127.0.0.1:0"]
        servers = {
            PYTHON: [
                sys.executable,
                str(peer),
                str(folder / "model"),
                "--grpc_address=127.0.0.1:0",
            ],
            "Rust, each request alone": [*rust, "--max_batch=1"],
            "Rust, up to 32 rows": [*rust, "--max_batch=32", "--max_delay_us=0"],
            "Rust, up to 32 rows, waits 2 ms": [*rust, "--max_batch=32", "--max_delay_us=2000"],
        }
        for name, command in servers.items():
            report.tell(f"{name}: starting")
            with started(*command) as server:
                request.check(server)
                rows += _measure(name, server, request)
    text = tables(rows)
    print(text.strip(), flush=True)
    if _WRITE.value:
        layers = " to ".join(map(str, LAYERS))
        page = PAGE.format(layers=layers, where=where, seconds=_SECONDS.value, tables=text)
        report.write(_WRITE.value, page)


if __name__ == "__main__":
    app.run(_main)
