"""TFLite models that leave dimensions open besides the batch, and their crates, against Keras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from converters.tf import ir
from converters.tf.emit.crate import Features
from converters.tf.ir.fixed import open_dims
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.tests import open_models
from converters.tf.tests.checks import TOLERANCE, difference
from converters.tf.tests.open_crates import Model, run
from converters.tf.tf2rust import graph_of

_LENGTHS = (2, 7, 40)
_SIDES = ((8, 8), (9, 13), (32, 17))
SEQUENCES = (
    open_models.dense,
    open_models.pooled_words,
    open_models.encoder,
    open_models.text_cnn,
    open_models.wave,
    open_models.strided,
    open_models.first_step,
)


def _converted(model: keras.Model, folder: Path) -> tuple[ir.Graph, Path]:
    path = folder / "m.tflite"
    model.export(folder / "saved", verbose=False)
    path.write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(folder / "saved")).convert())
    return graph_of(load(path, LoadOptions())), path


def _given(graph: ir.Graph, sizes: dict[str, int]) -> dict[str, ir.Array]:
    random = np.random.default_rng(sum(sizes.values()))
    arrays: dict[str, ir.Array] = {}
    for port in graph.inputs:
        shape = [3 if isinstance(d, ir.Batch) else sizes.get(str(d), d) for d in port.value.shape]
        kind = port.value.dtype.numpy
        data = random.normal(size=shape) if kind.kind == "f" else random.integers(0, 20, shape)
        arrays[port.name] = data.astype(kind)
    return arrays


def _agrees(model: keras.Model, graph: ir.Graph, sizes: dict[str, int]) -> None:
    arrays = _given(graph, sizes)
    found = interpret(graph, arrays)
    (name,) = found
    expected = model(*arrays.values()).numpy()
    assert difference(found[name], expected) <= TOLERANCE, sizes


@pytest.mark.parametrize("make", SEQUENCES, ids=lambda make: make.__name__)
def test_sequences(make: Callable[[], keras.Model], tmp_path: Path) -> None:
    model = make()
    graph, _ = _converted(model, tmp_path)
    assert open_dims(graph) == ("steps",)
    for steps in _LENGTHS:
        _agrees(model, graph, {"steps": steps})


@pytest.mark.parametrize("make", open_models.IMAGES, ids=lambda make: make.__name__)
def test_images(make: Callable[[], keras.Model], tmp_path: Path) -> None:
    model = make()
    graph, _ = _converted(model, tmp_path)
    assert open_dims(graph) == ("height", "width")
    for height, width in _SIDES:
        _agrees(model, graph, {"height": height, "width": width})


def test_crates(tmp_path: Path) -> None:
    cases: list[tuple[Callable[[], keras.Model], list[dict[str, int]]]] = [
        (open_models.encoder, [{"steps": n} for n in _LENGTHS]),
        (open_models.text_cnn, [{"steps": n} for n in _LENGTHS]),
        (open_models.small_net, [{"height": h, "width": w} for h, w in _SIDES]),
    ]
    models = []
    for make, calls in cases:
        model, name = make(), f"{make.__name__}_model"
        folder = tmp_path / f"{name}_file"
        folder.mkdir()
        graph, _ = _converted(model, folder)
        (port,) = graph.outputs
        given = [_given(graph, sizes) for sizes in calls]
        features = [Features(x, {port.name: model(*x.values()).numpy()}) for x in given]
        models.append(Model(name, graph, features))
    assert f"{len(models)} passed" in run(models, tmp_path, TOLERANCE)
