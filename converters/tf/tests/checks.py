"""Compares converted models with Keras."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from hypothesis import HealthCheck, Phase, settings

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.expressions import Size
from converters.tf.ir.fixed import open_dims
from converters.tf.ir.interpret import interpret
from converters.tf.ir.samples import made_texts
from converters.tf.load.model import trace_model
from converters.tf.lower.convert import convert
from converters.tf.lower.trace import Loaded

# Largest difference, relative to the largest element of the expected tensor, or to `SMALL` if that
# is more: TensorFlow's selu and elu subtract 1 from an exponential.
TOLERANCE = 1e-5
SMALL = 0.05
BATCHES = (1, 3, 17)
# What open dimensions are: no window of a model is larger.
OPEN = 32
# Configurations per property; the sweep asks for more.
EXAMPLES = int(os.environ.get("TF2RUST_EXAMPLES", "4"))
# The largest difference of every model that was compared, by the test that did it.
differences: dict[str, list[float]] = {}
# The classes of layers of which every model so far agreed with Keras.
converted: set[str] = set()

few = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="TF2RUST_EXAMPLES" not in os.environ,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def model_of(
    shapes: Sequence[tuple[int | None, ...]],
    body: Callable[..., Any],
    dtypes: Sequence[str] = (),
) -> keras.Model:
    """Returns a functional model with random weights.

    Args:
        shapes: Shapes of the inputs without the batch.
        body: Gets the inputs, returns the outputs.
        dtypes: Element types of the inputs; float32 if not given.
    """
    kinds = [*dtypes, *("float32",) * (len(shapes) - len(dtypes))]
    inputs = [keras.Input(s, dtype=d) for s, d in zip(shapes, kinds, strict=True)]
    model = keras.Model(inputs if len(inputs) > 1 else inputs[0], body(*inputs))
    randomize(model)
    return model


def randomize(model: keras.Model, seed: int = 7) -> None:
    """Gives every weight a random value, variances and scales positive ones."""
    random = np.random.default_rng(seed)
    for variable in model.variables:
        if variable.dtype != "float32":
            continue
        values = random.normal(size=variable.shape) / np.sqrt(max(1, np.prod(variable.shape[:-1])))
        if "variance" in variable.path or variable.path.endswith("gamma"):
            values = np.abs(values) + 0.5
        variable.assign(values.astype("float32"))


def inputs_for(graph: ir.Graph, batch: int, whole: int = 5) -> dict[str, ir.Array]:
    """Returns random inputs; integers are below `whole`, and open dimensions are `OPEN`."""
    random = np.random.default_rng(batch)
    arrays = {}
    sizes = dict.fromkeys(open_dims(graph), OPEN)
    for port in graph.inputs:
        dims = ir.shape_at(port.value.shape, batch)
        shape = [d.at(sizes) if isinstance(d, Size) else d for d in dims]
        kind = port.value.dtype.numpy
        if port.value.dtype is ir.DType.STR:
            arrays[port.name] = made_texts(graph, port.value, tuple(shape), batch)
            continue
        data = random.normal(size=shape) if kind.kind == "f" else random.integers(0, whole, shape)
        arrays[port.name] = data.astype(kind)
    return arrays


def difference(found: ir.Array, expected: ir.Array) -> float:
    """Returns the largest difference relative to the largest expected element or `SMALL`.

    Text that differs is infinitely far away.
    """
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    if not expected.size:
        return 0.0
    if expected.dtype == object:
        pairs = zip(found.ravel(), expected.ravel(), strict=True)
        return 0.0 if all(ir.as_bytes(a) == ir.as_bytes(b) for a, b in pairs) else float("inf")
    a, b = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    assert np.array_equal(a[~finite], b[~finite], equal_nan=True)
    a, b = a[finite], b[finite]
    assert np.isfinite(a).all()
    scale = max(float(np.abs(b).max(initial=0)), SMALL)
    return float(np.abs(a - b).max(initial=0)) / scale


def check(
    model: keras.Model | Loaded,
    batches: Iterable[int] = BATCHES,
    whole: int = 5,
    given: Mapping[str, ir.Array] | None = None,
) -> ir.Graph:
    """Converts a model and compares every output with Keras for several batch sizes.

    The graph must be one that the emitters take.
    """
    loaded = model if isinstance(model, Loaded) else trace_model(model)
    graph = convert(loaded.trace)
    assert problems(graph) == []
    largest = 0.0
    for batch in batches:
        arrays = dict(given) if given is not None else inputs_for(graph, batch, whole)
        found, expected = interpret(graph, arrays), loaded.predict(arrays)
        assert list(found) == list(expected)
        for name, array in expected.items():
            largest = max(largest, difference(found[name], array))
            assert largest <= TOLERANCE, name
        if given is not None:
            break
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].partition(" (")[0]
    differences.setdefault(test.partition("[")[0], []).append(largest)
    return graph


def checked(
    shapes: list[tuple[int, ...]],
    body: Callable[..., Any],
    dtypes: list[str] | None = None,
    whole: int = 5,
    given: Mapping[str, ir.Array] | None = None,
) -> ir.Graph:
    """Compares a function of tensors with TensorFlow; as `model_of` and `check`."""

    class Calls(keras.layers.Layer):  # type: ignore[misc]
        def call(self, *tensors: Any) -> Any:
            return body(*tensors)

    model = model_of(shapes, lambda *x: Calls()(*x), dtypes or [])
    return check(model, whole=whole, given=given)


def ops(graph: ir.Graph) -> list[str]:
    """Returns the names of the ops in order, reshapes left out."""
    return [type(n.op).__name__ for n in graph.nodes if not isinstance(n.op, ir.Reshape)]
