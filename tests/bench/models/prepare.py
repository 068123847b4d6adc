"""Makes a model and writes it for every implementation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from converters.tf.load.model import trace_model
from converters.tf.lower.convert import convert
from converters.tf.plan.arena import plan_memory
from tests.bench.models import files
from tests.bench.models.onnx_export import export
from tests.bench.models.ours import compile_crate
from tests.bench.models.zoo import Entry, make, sample


@dataclass(frozen=True)
class Facts:
    """What is known of a model before it runs.

    Attributes:
        macs: Multiplications with addition of a call.
        arena: Bytes of memory of a call of ours, without weights.
        weights: Bytes of the weights.
        size: Bytes of the compiled crate, weights included.
        compile: Seconds that rustc took for the crate without the runtime.
        missing: Why an implementation can't have the model.
    """

    macs: int
    arena: int
    weights: int
    size: int
    compile: float
    missing: dict[str, str]


def prepared_in(entry: Entry, folder: Path) -> Facts:
    """Writes the files of a model into a folder, unless they are there."""
    facts = folder / files.FACTS
    if not facts.exists():
        folder.mkdir(parents=True, exist_ok=True)
        facts.write_text(json.dumps(asdict(prepare(entry, folder))), "utf-8")
    return Facts(**json.loads(facts.read_text("utf-8")))


def prepare(entry: Entry, folder: Path) -> Facts:
    """Writes the files of a model into an empty folder."""
    model = make(entry)
    x = sample(model)
    graph = convert(trace_model(model).trace)
    expected = np.asarray(model(x, training=False))
    np.save(folder / files.INPUT, x)
    np.save(folder / files.EXPECTED, expected)
    frozen = frozen_graph(model, x)
    (folder / files.FROZEN).write_bytes(frozen.graph.as_graph_def().SerializeToString())
    names = {"input": frozen.inputs[0].name, "output": frozen.outputs[0].name}
    (folder / files.NAMES).write_text(json.dumps(names), "utf-8")
    missing: dict[str, str] = {}
    _try(missing, "TFLite", lambda: (folder / files.TFLITE).write_bytes(_tflite(frozen)))
    _try(
        missing,
        "onnxruntime",
        lambda: (folder / files.ONNX).write_bytes(export(graph).SerializeToString()),
    )
    seconds = compile_crate(graph, x, expected, folder)
    plan = plan_memory(graph)
    return Facts(
        macs=plan.macs,
        arena=plan.arena_bytes,
        weights=sum(v.data.nbytes for v in graph.constants() if v.data is not None),
        size=(folder / files.LIBRARY).stat().st_size,
        compile=seconds,
        missing=missing,
    )


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
