"""Makes a model and writes it for every implementation and some batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.load.model import trace_model
from converters.tf.lower.convert import convert
from converters.tf.plan.arena import plan_memory
from tests.bench.models import files
from tests.bench.models.facts import Facts
from tests.bench.models.onnx_export import export
from tests.bench.models.ours import compile_crate
from tests.bench.models.zoo import Entry, make, sample


def prepared_in(entry: Entry, folder: Path, batches: Sequence[int]) -> Facts:
    """Writes the files of a model for some batches into a folder, unless they are there."""
    path = folder / files.FACTS
    known = Facts(**json.loads(path.read_text("utf-8"))) if path.exists() else None
    left = [
        batch
        for batch in batches
        if known is None or files.batch_folder(batch) not in known.missing
    ]
    if known is not None and not left:
        return known
    folder.mkdir(parents=True, exist_ok=True)
    model = make(entry)
    graph = convert(trace_model(model).trace)
    facts = known or _compiled(model, graph, folder)
    for batch in left:
        name = files.batch_folder(batch)
        facts.missing[name] = _write_batch(model, graph, folder / name, batch)
    path.write_text(json.dumps(asdict(facts)), "utf-8")
    return facts


def _compiled(model: Any, graph: ir.Graph, folder: Path) -> Facts:
    """Writes the compiled crate of a model, which serves every batch."""
    x = sample(model)
    seconds = compile_crate(graph, x, np.asarray(model(x, training=False)), folder)
    plan = plan_memory(graph)
    return Facts(
        macs=plan.macs,
        arena=plan.arena_bytes,
        weights=sum(v.data.nbytes for v in graph.constants() if v.data is not None),
        size=sum((folder / name).stat().st_size for name in (files.LIBRARY, files.WEIGHTS)),
        compile=seconds,
        missing={},
    )


def _write_batch(model: Any, graph: ir.Graph, folder: Path, batch: int) -> dict[str, str]:
    """Writes input, result and the peers' graphs of a batch; returns why a peer has none."""
    folder.mkdir(exist_ok=True)
    x = sample(model, batch)
    np.save(folder / files.INPUT, x)
    np.save(folder / files.EXPECTED, np.asarray(model(x, training=False)))
    frozen = frozen_graph(model, x)
    (folder / files.FROZEN).write_bytes(frozen.graph.as_graph_def().SerializeToString())
    names = {"input": frozen.inputs[0].name, "output": frozen.outputs[0].name}
    (folder / files.NAMES).write_text(json.dumps(names), "utf-8")
    missing: dict[str, str] = {}
    _try(missing, "TFLite", lambda: (folder / files.TFLITE).write_bytes(_tflite(frozen)))
    _try(
        missing,
        "onnxruntime",
        lambda: (folder / files.ONNX).write_bytes(export(graph, batch).SerializeToString()),
    )
    return missing


def _try(missing: dict[str, str], who: str, write: Callable[[], Any]) -> None:
    try:
        write()
    # A converter may fail in any way; the table says how.
    except Exception as err:
        missing[who] = f"{type(err).__name__}: {str(err).strip().splitlines()[0][:120]}"


def frozen_graph(model: Any, x: Any) -> Any:
    """Returns the model as a graph with its weights as constants."""
    import tensorflow as tf
    from tensorflow.python.framework import convert_to_constants

    spec = tf.TensorSpec(x.shape, x.dtype)
    function = tf.function(lambda x: model(x, training=False)).get_concrete_function(spec)
    return convert_to_constants.convert_variables_to_constants_v2(function)


def _tflite(frozen: Any) -> bytes:
    import tensorflow as tf

    # Keras 3's own functions convert to a model that gives NaN.
    return bytes(tf.lite.TFLiteConverter.from_concrete_functions([frozen]).convert())
