"""Frozen graphs and SavedModels: random graphs and models, changed field by field."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import convert_to_constants

from converters.tf.tests.models import MODELS
from tests.conformance import random_graphs
from tests.fuzz import edits, protos
from tests.fuzz.case import Case, Reference
from tests.fuzz.targets.converter import Converter

# Random graphs that are bases.
_DRAWN = 40
_SAVED = ("mlp", "text_cnn", "mobile_block", "siamese", "wide_and_deep", "seq2seq", "nested")


class FrozenGraph(Converter):
    """Converts frozen graphs."""

    input_name = "m.pb"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Freezes models and random graphs, with their loops and branches."""
        super().__init__(folder, reference)
        self._graphs = self.kept(_graphs)

    @property
    def bases(self) -> int:
        """How many graphs there are."""
        return len(self._graphs)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a graph."""
        path = folder / self.input_name
        path.write_bytes(_edited(case, self._graphs[case.base]))
        return path


class SavedModel(Converter):
    """Converts SavedModels."""

    input_name = "m"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Exports models, and a module with functions, a table and an asset."""
        super().__init__(folder, reference)
        self._folders = self.kept(self._saved)
        self._models = [
            saved_model_pb2.SavedModel.FromString((f / "saved_model.pb").read_bytes())
            for f in self._folders
        ]

    def _saved(self) -> list[Path]:
        for name in _SAVED:
            MODELS[name]().export(self.folder / name, verbose=False)
        tf.saved_model.save(_module(self.folder), str(self.folder / "module"))
        return [self.folder / name for name in (*_SAVED, "module")]

    @property
    def bases(self) -> int:
        """How many models there are."""
        return len(self._folders)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a model."""
        path = folder / self.input_name
        shutil.copytree(self._folders[case.base], path)
        (path / "saved_model.pb").write_bytes(_edited(case, self._models[case.base]))
        for seed in case.edits:
            choose = random.Random(~seed)
            if choose.random() < 0.1:
                file = choose.choice(sorted((path / "variables").iterdir()))
                file.write_bytes(edits.octets(choose, file.read_bytes()))
        return path


def _graphs() -> list[Any]:
    # One of them takes its inputs by name.
    graphs = [_frozen_model(make()) for name, make in MODELS.items() if name != "wide_and_deep"]
    return [*graphs, _control_flow(), *map(_drawn, range(_DRAWN))]


def _edited(case: Case, whole: Any) -> bytes:
    message = type(whole)()
    message.CopyFrom(whole)
    tail = []
    for seed in case.edits:
        choose = random.Random(seed)
        if choose.random() < 0.08:
            tail.append(choose)
        else:
            protos.edit(choose, message)
    content: bytes = message.SerializeToString(deterministic=True)
    for choose in tail:
        content = edits.octets(choose, content)
    return content


def _frozen(function: Any) -> Any:
    return convert_to_constants.convert_variables_to_constants_v2(
        function, lower_control_flow=False
    ).graph.as_graph_def()


def _frozen_model(model: Any) -> Any:
    signature = [tf.TensorSpec(i.shape, i.dtype, i.name) for i in model.inputs]
    call = tf.function(lambda *x: model(list(x) if len(x) > 1 else x[0]), autograph=False)
    return _frozen(call.get_concrete_function(*signature))


def _drawn(seed: int) -> Any:
    graph = random_graphs.draw(seed)
    variable = tf.Variable(graph.variable)
    signature = [tf.TensorSpec(a.shape, a.dtype) for a in graph.inputs]
    call = tf.function(
        lambda *x: [tf.identity(t) for t in graph.run(x, _Constant(variable))], autograph=False
    )
    return _frozen(call.get_concrete_function(*signature))


class _Constant:
    """A variable that keeps its value: a frozen graph has none."""

    def __init__(self, variable: Any) -> None:
        self._value = variable

    def assign(self, value: Any) -> Any:
        return value

    assign_add = assign

    def read_value(self) -> Any:
        return tf.identity(self._value)


def _control_flow() -> Any:
    with tf.compat.v1.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, (None, 4), "x")
        v = tf.while_loop(
            lambda i, _: i < 3, lambda i, v: [i + 1, tf.nn.relu(v @ tf.eye(4))], [0, x]
        )
        tf.cond(tf.constant(True), lambda: tf.nn.softmax(v[1][:, 1:3]), lambda: x[:, :2])
    return graph.as_graph_def()


def _module(folder: Path) -> Any:
    words = folder / "words.txt"
    words.write_text("a\nb\nc\n", encoding="utf-8")

    class Module(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
            self.table = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(
                    str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                    tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
                ),
                -1,
            )  # fmt: skip

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            for _ in tf.range(3):
                x = tf.tanh(x @ self.v)
            return {"y": x, "n": tf.reduce_sum(x, 1)}

    return Module()
