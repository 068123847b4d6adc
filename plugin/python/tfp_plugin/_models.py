"""The graphs of a model file: a SavedModel's signatures, or what a Keras model computes."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Final

from . import _placement

SAVED_MODEL: Final = "saved_model.pb"


class ModelError(Exception):
    """A file can't be read as a model; the message says what was expected."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One way to call a model.

    Attributes:
        name: Name of the signature, or `predict` for a Keras model.
        placement: What would become of its nodes.
    """

    name: str
    placement: _placement.Placement


def read(path: pathlib.Path, kernels: _placement.Kernels) -> list[Entry]:
    """Reads a model and places its nodes.

    Args:
        path: A SavedModel's folder or a file of Keras.
        kernels: What the device has.

    Returns:
        One entry per signature, in the order of their names.

    Raises:
        ModelError: If there is no model, or none that can be read.
    """
    if path.is_dir():
        file = path / SAVED_MODEL
        if not file.is_file():
            raise ModelError(f"{path} has no {SAVED_MODEL}, so it is not a SavedModel")
        return _saved_model(file, kernels)
    if not path.is_file():
        raise ModelError(f"{path} does not exist")
    if path.name == SAVED_MODEL:
        return _saved_model(path, kernels)
    if path.suffix not in (".keras", ".h5"):
        raise ModelError(
            f"{path} is not a model that is known here: expected a SavedModel's folder, a .keras "
            "or an .h5 file"
        )
    return [Entry("predict", _keras(path, kernels))]


def _saved_model(file: pathlib.Path, kernels: _placement.Kernels) -> list[Entry]:
    from google.protobuf import message
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel()
    try:
        model.ParseFromString(file.read_bytes())
    except message.DecodeError as error:
        raise ModelError(f"{file} can't be read: {error}") from error
    if not model.meta_graphs:
        raise ModelError(f"{file} holds no graph")
    meta = model.meta_graphs[0]
    entries = []
    for name, signature in sorted(meta.signature_def.items()):
        outputs = [tensor.name for tensor in signature.outputs.values()]
        if name.startswith("__saved_model") or not outputs:
            continue
        roots = _placement.ancestors(meta.graph_def, outputs)
        entries.append(Entry(name, _placement.place(kernels, meta.graph_def, roots)))
    if not entries:
        raise ModelError(f"{file} has no signature with outputs")
    return entries


def _keras(path: pathlib.Path, kernels: _placement.Kernels) -> _placement.Placement:
    import tensorflow as tf

    try:
        import keras
    except ImportError as error:
        raise ModelError(f"{path} needs Keras, which can't be imported: {error}") from error
    try:
        # The CPU's memory is enough to look at a model.
        with tf.device("/device:CPU:0"):
            model = keras.models.load_model(path, compile=False)
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise ModelError(
            f"Keras {keras.__version__} can't load {path}: {type(error).__name__}: {first}"
        ) from error
    inputs = getattr(model, "inputs", None)
    if not inputs:
        raise ModelError(
            f"{path} does not say what its inputs are: save the model after it was called, or give "
            "tfp_plugin.check a SavedModel"
        )
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.name) for tensor in inputs]

    # A Sequential model has one input and no structure.
    structure = getattr(model, "_inputs_struct", inputs[0])

    def predict(*tensors: Any) -> Any:
        return model(keras.tree.pack_sequence_as(structure, list(tensors)), training=False)

    try:
        graph = tf.function(predict, autograph=False).get_concrete_function(*specs).graph
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise ModelError(f"{path} can't be called: {type(error).__name__}: {first}") from error
    return _placement.place(kernels, graph.as_graph_def())
