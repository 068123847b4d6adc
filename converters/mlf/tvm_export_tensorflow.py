"""TensorFlow half of tvm_export: a Keras file or a SavedModel -> a TFLite model in float32.

TVM needs static shapes, so an unknown batch size becomes 1.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from tools.codegen.conversion import Problem, UnsupportedError, UsageError

KERAS_SUFFIXES = (".keras", ".h5")


def to_tflite(path: Path, signature: str) -> bytes:
    """Converts a Keras file, or one signature of a SavedModel folder.

    Raises:
      UsageError: the SavedModel has no such signature.
      UnsupportedError: a size that is not the batch's is unknown.
    """
    lite = importlib.import_module("tensorflow").lite
    if path.is_dir():
        converter = _of_saved_model(lite, path, signature)
    else:
        keras = importlib.import_module("keras")
        model = fixed_batch(keras.saving.load_model(str(path), compile=False))
        converter = lite.TFLiteConverter.from_keras_model(model)
    return bytes(converter.convert())


def fixed_batch(model: Any) -> Any:
    """Returns a Keras model of the same layers and batch size 1."""
    keras = importlib.import_module("keras")
    inputs = [
        keras.Input(batch_shape=(1, *t.shape[1:]), dtype=t.dtype, name=t.name) for t in model.inputs
    ]
    return keras.Model(inputs, model(inputs if len(inputs) > 1 else inputs[0]))


def _of_saved_model(lite: Any, path: Path, signature: str) -> Any:
    tensorflow = importlib.import_module("tensorflow")
    loaded = tensorflow.saved_model.load(str(path))
    if signature not in loaded.signatures:
        known = ", ".join(sorted(loaded.signatures)) or "none"
        raise UsageError(Problem(str(path), f"no signature {signature!r}; there are: {known}"))
    function = loaded.signatures[signature]
    specs, problems = {}, []
    for name, spec in function.structured_input_signature[1].items():
        dims = spec.shape.as_list() if spec.shape.rank is not None else [None, None]
        if None in dims[1:]:
            problems.append(Problem(f"{path}: input {name}", f"shape {spec.shape} is not static"))
        shape = [1 if d is None else d for d in dims]
        specs[name] = tensorflow.TensorSpec(shape, spec.dtype, name)
    if problems:
        raise UnsupportedError(*problems)
    concrete = tensorflow.function(lambda **inputs: function(**inputs)).get_concrete_function(
        **specs
    )
    return lite.TFLiteConverter.from_concrete_functions([concrete], loaded)
