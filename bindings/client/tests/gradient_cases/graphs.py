"""Cases of ops that only graphs have, and of gradients of gradients as ops of their own."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bindings.client.tests.gradient_cases.case import Case, Values, case, ints, scalar

# The last version of graphs that has TopK.
_BEFORE_TOP_K_V2 = 6
# The last version that has batch normalization with global sums.
_BEFORE_BATCH_NORM = 8
# The last version that has the first quantization to numbers of the same type.
_BEFORE_QUANTIZE_V2 = 21


def _in_graphs() -> Iterator[Case]:
    values = Values("graphs")
    only: dict[str, Any] = {"second": False, "graph": True}
    three = [values.real(2), values.real(2), values.real(2)]
    # TensorFlow rewrites it to other ops before it runs.
    yield Case("AccumulateNV2", "AccumulateNV2", [three], {"shape": [2]}, **only)
    yield Case("RefIdentity", "RefIdentity", [values.real(2, 3)], {}, **only)
    yield Case("DebugGradientIdentity", "DebugGradientIdentity", [values.real(3)], {}, **only)
    # Its kernel asks for an attribute that the op does not have.
    top = values.distinct(2, 2, 5)
    order = np.argsort(-top, axis=-1)[..., :3].astype("i4")
    largest = np.take_along_axis(top, order, -1)
    yield Case(
        "TopK",
        "TopK",
        [top],
        {"k": 3},
        numeric=False,
        producer=_BEFORE_TOP_K_V2,
        fed=[largest, order],
        **only,
    )
    places = np.asarray([[0, 0], [0, 1], [1, 0]], "i8")
    loss, slopes = values.single(2), values.single(4, 2, 3)
    # Only GPUs have a kernel of it.
    yield Case(
        "CTCLossV2",
        "CTCLossV2",
        [values.single(4, 2, 3), places, ints(0, 1, 1), ints(4, 3)],
        {},
        numeric=False,
        fed=[loss, slopes],
        **only,
    )


def _old() -> Iterator[Case]:
    values = Values("old")
    f = values.single
    only: dict[str, Any] = {"second": False, "graph": True}
    yield Case(
        "BatchNormWithGlobalNormalization",
        "BatchNormWithGlobalNormalization",
        [f(2, 3, 3, 2), f(2), f(2, low=0.5), f(2), f(2)],
        {"variance_epsilon": 0.01, "scale_after_normalization": True},
        producer=_BEFORE_BATCH_NORM,
        **only,
    )
    yield Case(
        "QuantizeAndDequantize",
        "QuantizeAndDequantize",
        [values.real(4)],
        {"range_given": True, "input_min": -2.0, "input_max": 2.0},
        numeric=False,
        producer=_BEFORE_QUANTIZE_V2,
        **only,
    )


def _random() -> Iterator[Case]:
    values = Values("random")
    alpha = values.positive(2, 3)
    samples = values.positive(4, 2, 3)
    # A sample is made by rejection: its slope is another one than that of the distribution.
    yield Case(
        "RandomGamma",
        "RandomGamma",
        [ints(4), alpha],
        {"seed": 1, "seed2": 2},
        numeric=False,
        second=False,
        graph=True,
        fed=[samples],
    )
    seed, shape = np.asarray([1, 2], "i8"), ints(4, 2, 3)
    only: dict[str, Any] = {"numeric": False, "second": False}
    yield case("StatelessRandomGammaV2", [shape, seed, alpha], {}, **only)
    key, counter = seed[:1].astype("u8"), seed.astype("u8")
    yield case("StatelessRandomGammaV3", [shape, key, counter, scalar(1), alpha], {}, **only)


def _batch_norms() -> Iterator[Case]:
    f = Values("batch_norm_grads").single
    for version in ("", "V2", "V3"):
        for name, training in (("training", True), ("inference", False)):
            x, scale = f(3, 2, 2, 2), f(2)
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            inputs = [f(3, 2, 2, 2), x, scale, mean, variance]
            if version == "V3":
                inputs.append(np.zeros((0,), "f4"))
            op = f"FusedBatchNormGrad{version}"
            # Statistics are those of `x` in training, and have no gradient of their own.
            slopes = (0, 2) if training else (0, 1, 2)
            attrs = {"is_training": training}
            yield Case(f"{op}_{name}", op, inputs, attrs, slopes=slopes, second=False)


def cases() -> Iterator[Case]:
    """Returns the cases of this file."""
    values = Values("debug")
    yield case("DebugIdentityV2", [values.real(3)], {})
    yield from _batch_norms()
    yield from _in_graphs()
    yield from _old()
    yield from _random()
