"""Writes a model for every implementation that runs in a browser."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from converters.tf.emit.crate import Features, crate_files
from converters.tf.emit.model import model_text
from converters.tf.emit.options import Options
from converters.tf.load.model import trace_model
from converters.tf.lower.convert import convert
from converters.tf.web.compile import find_compiler
from converters.tf.web.package import web_files
from tests.bench.models.onnx_export import export
from tests.bench.models.prepare import frozen_graph
from tests.bench.models.zoo import Entry, make, sample

# Names of the files, which `time.mjs` knows too.
FACTS, ONNX, TFJS, TFJS_WEIGHTS = "facts.json", "model.onnx", "tfjs.json", "tfjs.bin"


def prepare(entry: Entry, folder: Path) -> None:
    """Writes the files of a model into a folder, unless they are there."""
    if (folder / FACTS).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    model = make(entry)
    x = sample(model)
    expected = np.asarray(model(x, training=False))
    graph = convert(trace_model(model).trace)
    (folder / "input.bin").write_bytes(x.tobytes())
    (folder / "expected.bin").write_bytes(expected.astype("<f4").tobytes())
    missing: dict[str, str] = {}
    frozen = frozen_graph(model, x)
    _try(missing, "onnxruntime-web", lambda: _write_onnx(graph, folder))
    _try(missing, "tfjs", lambda: _write_tfjs(frozen, folder))
    options = Options("bench", "zoo.py", web_threads=True)
    text = model_text(graph, options)
    features = Features(
        {graph.inputs[0].name: x}, {graph.outputs[0].name: expected.astype(np.float32)}
    )
    crate = crate_files(text, graph, options, features)
    files = {f"rust_generated_code/{path}": content for path, content in crate.items()}
    compiler = find_compiler(os.environ)
    for path, content in web_files(text, options, files, compiler).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    facts = {
        "name": entry.name,
        "dtype": "int32" if x.dtype == np.int32 else "float32",
        "shape": list(x.shape),
        "weights": sum(v.data.nbytes for v in graph.constants() if v.data is not None),
        "missing": missing,
    }
    (folder / FACTS).write_text(json.dumps(facts), "utf-8")


def _try(missing: dict[str, str], who: str, write: Callable[[], object]) -> None:
    try:
        write()
    # An exporter may fail in any way; the page says how.
    except Exception as err:
        missing[who] = f"{type(err).__name__}: {str(err).strip().splitlines()[0][:120]}"


def _write_onnx(graph: Any, folder: Path) -> None:
    (folder / ONNX).write_bytes(export(graph).SerializeToString())


def _write_tfjs(frozen: Any, folder: Path) -> None:
    """Writes a graph model: the GraphDef as JSON, and its constants behind each other."""
    from google.protobuf.json_format import MessageToDict
    from tensorflow.python.framework import tensor_util

    definition = frozen.graph.as_graph_def()
    weights, specs = [], []
    for node in definition.node:
        if node.op != "Const":
            continue
        value = tensor_util.MakeNdarray(node.attr["value"].tensor)
        dtype = {"f": "float32", "i": "int32", "b": "bool"}[value.dtype.kind]
        stored = value.astype("u1" if dtype == "bool" else "<f4" if dtype == "float32" else "<i4")
        specs.append({"name": node.name, "shape": list(value.shape), "dtype": dtype})
        weights.append(stored.tobytes())
        node.attr["value"].Clear()
    content = {
        "modelTopology": MessageToDict(definition),
        "weightSpecs": specs,
        "input": frozen.inputs[0].name,
        "output": frozen.outputs[0].name,
    }
    (folder / TFJS).write_text(json.dumps(content), "utf-8")
    (folder / TFJS_WEIGHTS).write_bytes(b"".join(weights))
