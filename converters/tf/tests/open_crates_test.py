"""Crates of models with open dimensions against Keras, at several sizes of one crate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from converters.tf import ir
from converters.tf.emit.crate import Features
from converters.tf.ir.expressions import size_at
from converters.tf.ir.fixed import open_dims
from converters.tf.load.model import trace_model
from converters.tf.load.shapes import FixedShapes
from converters.tf.tests.checks import TOLERANCE
from converters.tf.tests.open_crates import Model, run
from converters.tf.tests.open_models import (
    IMAGES,
    SEQUENCES,
    encoder,
    filled_up,
    heard,
    ranked,
    strided,
    two_inputs,
    u_net,
)
from converters.tf.tf2rust import graph_of

# A short sequence comes after a long one, which leaves its memory behind.
_LENGTHS = (7, 1, 40, 2, 63)
_SIDES = ((9, 13), (8, 8), (32, 17))
_EXAMPLES = 3
# Inputs of a model that reads 6 features of each step, and why they are refused.
_WRONG = [
    ("@0: View::new(&[], [1, 0, 6])", "axis 1 of input @0 has 0 elements, expected at least 1"),
    ("@0: View::new(&[0.0; 6], [1, 2, 3])", "axis 2 of input @0 has 3 elements, expected 6"),
    ("@0: View::new(&[0.0; 6], [1, 2, 6])", "input @0 has 6 elements, expected 12 for its shape"),
    (
        "@0: View::new(&[], [0, 1 << 62, 6])",
        "there is no memory for 18446744073709551615 bytes",
    ),
]


def _inputs(graph: ir.Graph, sizes: dict[str, int]) -> dict[str, ir.Array]:
    random = np.random.default_rng(sum(sizes.values()))
    arrays: dict[str, ir.Array] = {}
    for port in graph.inputs:
        dims = port.value.shape
        shape = [_EXAMPLES if isinstance(d, ir.Batch) else size_at(d, sizes) for d in dims]
        kind = port.value.dtype.numpy
        data = random.normal(size=shape) if kind.kind == "f" else random.integers(0, 20, shape)
        arrays[port.name] = data.astype(kind)
    return arrays


def _model(
    model: keras.Model,
    name: str,
    calls: Sequence[tuple[int, ...]],
    refused: Sequence[tuple[str, str]],
    shapes: FixedShapes | None = None,
) -> Model:
    loaded = trace_model(model, shapes)
    graph = graph_of(loaded)
    names = open_dims(graph)
    cases = []
    for call in calls:
        given = _inputs(graph, dict(zip(names, call, strict=True)))
        found = loaded.predict(given)
        cases.append(Features(given, {p.name: found[p.name] for p in graph.outputs}))
    return Model(name, graph, cases, refused)


def test_crates_at_several_sizes(tmp_path: Path) -> None:
    lengths = [(n,) for n in _LENGTHS]
    models = []
    for make in SEQUENCES:
        model = make()
        models.append(_model(model, make.__name__, lengths, _WRONG if make is strided else []))
    apart = "@0: View::new(&[1, 2], [1, 2]), @1: View::new(&[0.5], [1, 1])"
    text = "axis 1 of input @1 has 1 elements, expected 2 as axis 1 of input @0"
    models.append(_model(two_inputs(), "two_inputs", lengths, [(apart, text)]))
    short = ("@0: View::new(&[0.0; 7], [1, 7])", "max((steps // 4) - 1, 0) must be at least 1")
    models.append(_model(heard(), "heard", [(57,), (8,), (11,)], [short]))
    short = ("@0: View::new(&[0.0; 12], [1, 2, 6])", "k: expected at most the elements of a row")
    models.append(_model(ranked(), "ranked", [(57,), (3,), (11,)], [short]))
    apart = "@0: View::new(&[0.0; 42], [1, 7, 6]), @1: View::new(&[0.0; 42], [1, 7, 6])"
    text = (
        "axis 1 of input @1 has 7 elements, expected 5, which is input_steps - "
        "max(input_steps - 5, 0) (input_steps is axis 1 of input @0)"
    )
    models.append(_model(filled_up(), "filled_up", lengths, [(apart, text)]))
    for make in IMAGES:
        shapes = FixedShapes({"": (None, None, 3)})
        models.append(_model(make(), make.__name__, list(_SIDES), [], shapes))
    shapes = FixedShapes({"": (None, None, 3)})
    odd = "@0: View::new(&[0.5; 144], [1, 8, 6, 3])"
    text = "axis 2 of input @0 has 6 elements, expected a multiple of 4"
    models.append(_model(u_net(), "u_net", [(8, 20), (4, 4), (32, 16)], [(odd, text)], shapes))
    names = len(models)
    assert f"{names} passed" in run(models, tmp_path, TOLERANCE)


def test_a_sequence_that_a_table_has_no_place_for(tmp_path: Path) -> None:
    model = encoder()
    long = "@0: View::new(&[1; 65], [1, 65])"
    text = "indices: index 64 is outside [0, 64)"
    found = _model(model, "encoder", [(64,)], [(long, text)])
    assert "1 passed" in run([found], tmp_path, TOLERANCE)
