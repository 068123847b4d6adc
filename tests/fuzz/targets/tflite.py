"""TFLite files: a model for each operator with options, and models in int8, changed table by table.

TFLite computes beside what was not changed.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import flatbuffers
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf.tests.tflite_files import Tensor, interpreted, single
from converters.tf.tests.tflite_ops import CASES
from tests.fuzz import edits
from tests.fuzz.case import Case, Reference
from tests.fuzz.targets.converter import Converter


class Tflite(Converter):
    """Converts, and compares with TFLite's own interpreter if the file was not changed.

    The interpreter does not check what it reads: a changed file may end the process, or read
    memory that is not its own.
    """

    input_name = "m.tflite"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Writes the models."""
        super().__init__(folder, reference)
        self._files = self.kept(_models)

    @property
    def bases(self) -> int:
        """How many bases there are: each operator is one.

        A network has as many tables as all others, so one base in four is a network.
        """
        return len(CASES) * 4 // 3

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a model."""
        at = case.base
        content = self._files[at if at < len(CASES) else len(CASES) + at % 2]
        for seed in case.edits:
            choose = random.Random(seed)
            content = _edited(choose, content)
        path = folder / self.input_name
        path.write_bytes(content)
        return path

    def expected(self, path: Path, arrays: dict[str, Any]) -> list[Any] | None:
        """Returns what TFLite computes of a file of the suite."""
        content = path.read_bytes()
        # What models in int8 compute is a test of its own, bit by bit.
        if content not in self._files[: len(CASES)]:
            return None
        case = CASES[self._files.index(content)]
        if not case.batch:
            return None
        return interpreted(content, [np.asarray(a) for a in arrays.values()])


def _models() -> list[bytes]:
    singles = [
        single(c.kind, c.operands, [Tensor((1, 1), d) for d in c.results], c.options) for c in CASES
    ]
    return [*singles, *(_in_int8(_network(), kind) for kind in (tf.int8, tf.float32))]


def _network() -> keras.Model:
    image = keras.Input((8, 8, 3))
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(image)
    y = layers.DepthwiseConv2D(3, padding="same", activation="relu6")(x)
    x = layers.Add()([x, y])
    x = layers.Concatenate()([layers.MaxPooling2D()(x), layers.AveragePooling2D(2)(x)])
    x = layers.Multiply()([x, layers.Activation("sigmoid")(x)])
    x = layers.Conv2D(6, 1)(layers.ZeroPadding2D(1)(x))
    x = layers.Dense(5, activation="tanh")(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, layers.Dense(3, activation="softmax")(x))


def _in_int8(model: keras.Model, kind: Any) -> bytes:
    """Returns a model's file in int8, whose inputs and outputs are of a type."""
    numbers = np.random.default_rng(3)
    shape = (1, *model.inputs[0].shape[1:])
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.representative_dataset = lambda: (
        [numbers.normal(size=shape).astype(np.float32)] for _ in range(4)
    )
    converter.inference_input_type = converter.inference_output_type = kind
    return bytes(converter.convert())


def _edited(choose: random.Random, content: bytes) -> bytes:
    """Changes a value of a table, or bytes if it is not a whole file any more."""
    if choose.random() < 0.15:
        return edits.octets(choose, content)
    try:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
        _edit(choose, model)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())
    except Exception:  # Values that no file can hold, and files that are none.
        return edits.octets(choose, content)


def _tables(table: Any) -> list[Any]:
    """Returns a table and all below it."""
    found = [table]
    for at in found:
        for value in vars(at).values():
            if hasattr(value, "__dict__"):
                found.append(value)
            elif isinstance(value, list):
                found.extend(v for v in value if hasattr(v, "__dict__"))
    return found


def _edit(choose: random.Random, model: Any) -> None:
    tables = _tables(model)
    table = choose.choice(tables)
    name = choose.choice(sorted(vars(table)))
    old = getattr(table, name)
    kind = choose.random()
    like = [getattr(t, name) for t in tables if type(t) is type(table)]
    if kind < 0.25:
        new = choose.choice(like)
    elif kind < 0.3:
        new = None
    else:
        new = _changed(choose, old)
    setattr(table, name, new)


def _changed(choose: random.Random, old: Any) -> Any:
    if isinstance(old, np.ndarray):
        old = old.tolist()
    if isinstance(old, bytes):
        return edits.text(choose, old.decode("utf-8", "replace")).encode("utf-8", "replace")
    if isinstance(old, list):
        items = list(old)
        if not items:
            return [edits.number(choose, 0)]
        at = choose.randrange(len(items))
        kind = choose.random()
        if kind < 0.2:
            del items[at]
        elif kind < 0.4:
            items.insert(at, items[at])
        elif kind < 0.6:
            items[at] = choose.choice(items)
        elif not hasattr(items[at], "__dict__"):
            items[at] = _changed(choose, items[at])
        return items
    if isinstance(old, bool):
        return not old
    if isinstance(old, int | np.integer):
        return edits.number(choose, int(old))
    if isinstance(old, float | np.floating):
        return choose.choice((*edits.FLOATS, float(old) * 2, -float(old)))
    if isinstance(old, str):
        return edits.text(choose, old)
    return old
