"""What the adapter between TensorFlow and the kernels costs per call.

Runs a chain of Relu nodes on one-element tensors on the TFP device: once with the kernel of
libtfp.so, once with one that is written against TensorFlow's C interface by hand
(`adapter_peer.cc`, compiled with the C++ compiler of the machine). The two alternate in one
process; the times are those of whole nodes, TensorFlow's own work included.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence

from absl import app, flags

_LIBRARY = flags.DEFINE_string("library", None, "Path of libtfp.so.", required=True)
_NODES = flags.DEFINE_integer("nodes", 2000, "Length of the chain.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 41, "Runs of each kernel.", lower_bound=1)


def compile_peer(folder: pathlib.Path, include: str) -> pathlib.Path:
    """Compiles the peer into `folder`; returns the library."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise app.UsageError("no C++ compiler found: install g++")
    library = folder / "libadapter_peer.so"
    source = pathlib.Path(__file__).with_name("adapter_peer.cc")
    command = [compiler, "-O2", "-shared", "-fPIC", "-std=c++17", f"-I{include}"]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    return library


def main(argv: Sequence[str]) -> None:
    """Measures and prints JSON."""
    del argv
    os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(pathlib.Path(_LIBRARY.value).absolute())
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    from tensorflow.python.framework import load_library

    with tempfile.TemporaryDirectory() as folder:
        peer = compile_peer(pathlib.Path(folder), tf.sysconfig.get_include())
        load_library.load_pluggable_device_library(str(peer))

    config = tf.compat.v1.ConfigProto(
        allow_soft_placement=False, inter_op_parallelism_threads=1, intra_op_parallelism_threads=1
    )
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    sessions, ends = {}, {}
    for name, label in (("adapter", ""), ("peer", "peer")):
        graph = tf.Graph()
        with (
            graph.as_default(),
            tf.device("/device:TFP:0"),
            graph._kernel_label_map({"Relu": label} if label else {}),
        ):
            node = tf.constant([1.0])
            for _ in range(_NODES.value):
                node = tf.raw_ops.Relu(features=node)
            ends[name] = node.op
        sessions[name] = tf.compat.v1.Session(graph=graph, config=config)
        for _ in range(5):
            sessions[name].run(ends[name])
    times: dict[str, list[float]] = {"adapter": [], "peer": []}
    for _ in range(_ROUNDS.value):
        for name, session in sessions.items():
            start = time.perf_counter_ns()
            session.run(ends[name])
            times[name].append((time.perf_counter_ns() - start) / _NODES.value)
    ratios = [a / b for a, b in zip(times["adapter"], times["peer"], strict=True)]
    report = {
        "machine": platform.processor() or platform.machine(),
        "tensorflow": tf.__version__,
        "nanoseconds_per_node": {
            name: [round(q) for q in statistics.quantiles(found, n=4)]
            for name, found in times.items()
        },
        "fastest": {name: round(min(found)) for name, found in times.items()},
        "ratio": [round(q, 3) for q in statistics.quantiles(ratios, n=4)],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    app.run(main)
