"""The same models in TensorFlow, TFLite and onnxruntime."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from converters.tf import ir
from tests.bench.models.onnx_export import export

Call = Callable[[], Any]


def _frozen(model: Any, sample: Any) -> Any:
    """Returns the model as a graph with its weights as constants."""
    import tensorflow as tf
    from tensorflow.python.framework import convert_to_constants

    spec = tf.TensorSpec(sample.shape, sample.dtype)
    function = tf.function(lambda x: model(x, training=False)).get_concrete_function(spec)
    return convert_to_constants.convert_variables_to_constants_v2(function)


def tensorflow(model: Any, sample: Any, _: ir.Graph, __: int) -> Call:
    """Returns a call of the model as a frozen graph."""
    import tensorflow as tf

    frozen = _frozen(model, sample)
    x = tf.constant(sample)
    return lambda: frozen(x)[0].numpy()


def tflite(model: Any, sample: Any, _: ir.Graph, threads: int) -> Call:
    """Returns a call of the TFLite interpreter with XNNPACK."""
    import tensorflow as tf

    # Keras 3's own functions convert to a model that gives NaN.
    converter = tf.lite.TFLiteConverter.from_concrete_functions([_frozen(model, sample)])
    interpreter = tf.lite.Interpreter(model_content=converter.convert(), num_threads=threads)
    interpreter.allocate_tensors()
    place = interpreter.get_input_details()[0]["index"]
    result = interpreter.get_output_details()[0]["index"]
    interpreter.set_tensor(place, sample)

    def call() -> Any:
        interpreter.invoke()
        return result

    interpreter.invoke()
    call.value = lambda: interpreter.get_tensor(result)  # type: ignore[attr-defined]
    return call


def onnxruntime(_: Any, sample: Any, graph: ir.Graph, threads: int) -> Call:
    """Returns a call of onnxruntime, with the graph that tf2rust has found."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(
        export(graph).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feed = {graph.inputs[0].name: sample}
    return lambda: session.run(None, feed)[0]


PEERS: dict[str, Callable[[Any, Any, ir.Graph, int], Call]] = {
    "TensorFlow": tensorflow,
    "TFLite": tflite,
    "onnxruntime": onnxruntime,
}


def value_of(call: Call) -> Any:
    """Returns what a call computes."""
    value = getattr(call, "value", None)
    return np.asarray(value() if value is not None else call())


def timed(call: Call, calls: int) -> float:
    """Returns the seconds of one of so many calls."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls
