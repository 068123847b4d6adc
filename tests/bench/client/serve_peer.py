"""A server of Python's for a SavedModel `m`: `:predict` by rows over REST, `Predict` over gRPC.

`serve_peer.py FOLDER --grpc_address=127.0.0.1:0 --address=127.0.0.1:0` prints both addresses.
"""

from __future__ import annotations

import concurrent.futures
import http.server
import json
import sys
import threading
from typing import Any

import grpc
import tensorflow as tf

from tests.e2e.client.serving import METHODS, M

THREADS = 16
"""Threads that answer calls over gRPC."""


def main(folder: str) -> None:
    """Serves until it is killed; free ports are taken, whatever the flags say."""
    model = tf.saved_model.load(folder)
    function = model.signatures["serving_default"]

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers `:predict` by rows."""

        protocol_version = "HTTP/1.1"
        # An answer is one packet, or its client would wait for 40 ms of delayed acknowledgement.
        disable_nagle_algorithm = True
        wbufsize = 1 << 16

        def do_POST(self) -> None:
            """Computes a request of its own."""
            body = self.rfile.read(int(self.headers["content-length"]))
            x = tf.constant(json.loads(body)["instances"], tf.float32)
            found = {"predictions": function(x=x)["y"].numpy().tolist()}
            data = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Logs nothing."""

    class Threaded(http.server.ThreadingHTTPServer):
        """Takes many connections at a time."""

        request_queue_size = 256

    def predict(request: Any, _: Any) -> Any:
        """Computes a call of its own."""
        x = tf.constant(tf.make_ndarray(request.inputs["x"]))
        outputs = {"y": tf.make_tensor_proto(function(x=x)["y"].numpy())}
        return M["PredictResponse"](outputs=outputs)

    service, asked, answered = METHODS["Predict"]
    handler = grpc.unary_unary_rpc_method_handler(
        predict,
        request_deserializer=M[asked].FromString,
        response_serializer=M[answered].SerializeToString,
    )
    pool = concurrent.futures.ThreadPoolExecutor(THREADS)
    server = grpc.server(pool)
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {"Predict": handler})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with Threaded(("127.0.0.1", 0), Handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{web.server_address[1]}", flush=True)
        print(f"grpc://127.0.0.1:{port}", flush=True)
        server.wait_for_termination()


main(sys.argv[1])
