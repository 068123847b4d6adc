"""The sweep's calls tell right kernels from wrong ones, and leave no attribute out silently."""

from __future__ import annotations

import numpy as np

from tests.conformance import indexed, structured, wide

FLOAT = np.dtype(np.float32)
LONG = np.dtype(np.int64)


def test_a_range_that_counts_in_float64_is_found() -> None:
    """`tf.range(0.1, 1.1, 0.1)` has 10 elements in float32, and 11 where float64 counts them."""
    different = 0
    for call in indexed.CALLS["Range"]({"Tidx": FLOAT}):
        names = ("start", "limit", "delta")
        start, limit, delta = (np.asarray(call.inputs[name]) for name in names)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            narrow = np.ceil((limit - start) / delta)
            quotient = (limit.astype(float) - start.astype(float)) / delta.astype(float)
        different += int(np.isfinite(narrow) and narrow != np.ceil(quotient))
    assert different > 2


def test_a_search_that_takes_nan_for_the_largest_is_found() -> None:
    different = 0
    for call in structured.CALLS["ArgMax"]({"T": FLOAT, "Tidx": LONG, "output_type": LONG}):
        x, axis = np.asarray(call.inputs["input"]), int(np.asarray(call.inputs["dimension"]))
        taken, passed = x.argmax(axis), np.where(np.isnan(x), -np.inf, x).argmax(axis)
        different += int((taken != passed).any())
    assert different > 2


def test_attributes_take_every_value_of_their_kind() -> None:
    call = next(structured.CALLS["Conv2D"]({"T": FLOAT}))
    found = list(wide.attributes("Conv2D", iter([call])))
    drawn = {
        name: [c.attributes[name] for c in found if c.attributes.get(name) is not None]
        for name in ("strides", "padding", "data_format", "dilations", "explicit_paddings")
    }
    assert [1, 2, 1, 1] in drawn["strides"] and [1, -1, 1, 1] in drawn["strides"]
    assert {"SAME", "VALID", "EXPLICIT", "OTHER"} <= set(drawn["padding"])
    assert "NCHW" in drawn["data_format"] and [1, 1] not in drawn["dilations"]
    assert [1] not in drawn["explicit_paddings"]
