"""ONNX models that leave dimensions open besides the batch, as PyTorch's exporters write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from converters.tf.tests.onnx_graphs import Dims, Network

_WORDS, _WIDTH, _HEADS = 20, 12, 3
_SIZE = _WIDTH // _HEADS


@dataclass(frozen=True)
class Case:
    """A model, and the sizes that it is called with.

    Attributes:
        model: The model.
        open: Names of its open dimensions.
        calls: Their sizes in each call.
    """

    model: Any
    open: tuple[str, ...]
    calls: Sequence[tuple[int, ...]]


STEPS = ((1,), (2,), (7,), (40,))
SIDES = ((8, 8), (9, 13), (32, 17))


def dimension(net: Network, x: str, index: int) -> str:
    """Adds a dimension of a tensor as a number."""
    return net("Gather", net("Shape", x), net.constant(np.array(index, np.int64)), axis=0)


def listed(net: Network, *dims: str | int) -> str:
    """Adds a shape of numbers and computed dimensions."""
    parts = [net.ints(d) if isinstance(d, int) else net("Unsqueeze", d, net.ints(0)) for d in dims]
    return net("Concat", *parts, axis=0)


def dense(net: Network, x: str, ends: tuple[int, int], path: str) -> str:
    """Adds a dense layer over the last axis."""
    y = net("MatMul", x, net.weight(f"{path}.weight", *ends))
    return net("Add", net.weight(f"{path}.bias", ends[1]), y)


def _norm(net: Network, x: str, path: str) -> str:
    scale, bias = net.weight(f"{path}.weight", _WIDTH), net.weight(f"{path}.bias", _WIDTH)
    return net("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)


def _heads(net: Network, x: str, batch: str, steps: str) -> str:
    y = net("Reshape", x, listed(net, batch, steps, _HEADS, _SIZE))
    return net("Transpose", y, perm=[0, 2, 1, 3])


def _attended(net: Network, q: str, k: str, v: str, bias: str) -> str:
    scores = net("MatMul", q, net("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net("Add", net("Div", scores, net.constant(np.float32(_SIZE**0.5))), bias)
    return net("MatMul", net("Softmax", scores, axis=-1), v)


def _block(net: Network, x: str, path: str, attended: Callable[[str, str, str], str]) -> str:
    q, k, v = (dense(net, x, (_WIDTH, _WIDTH), f"{path}.{part}") for part in "qkv")
    batch, steps = dimension(net, x, 0), dimension(net, x, 1)
    y = net("Transpose", attended(q, k, v), perm=[0, 2, 1, 3])
    y = net("Reshape", y, listed(net, batch, steps, _WIDTH))
    x = _norm(net, net("Add", x, dense(net, y, (_WIDTH, _WIDTH), f"{path}.o")), f"{path}.n1")
    y = dense(net, x, (_WIDTH, 2 * _WIDTH), f"{path}.up")
    half = net("Mul", y, net.constant(np.float32(0.5)))
    erf = net("Erf", net("Div", y, net.constant(np.float32(2**0.5))))
    y = net("Mul", half, net("Add", erf, net.constant(np.float32(1))))
    y = dense(net, y, (2 * _WIDTH, _WIDTH), f"{path}.down")
    return _norm(net, net("Add", x, y), f"{path}.n2")


def bert() -> Case:
    """An encoder with a mask, types of tokens, and places cut from a buffer."""
    net = Network(17)
    ids, mask, kinds = "input_ids", "attention_mask", "token_type_ids"
    steps = dimension(net, ids, 1)
    places = net.constant(np.arange(64, dtype=np.int64)[None], "embeddings.position_ids")
    zero, one = net.ints(0), net.ints(1)
    places = net("Slice", places, zero, net("Unsqueeze", steps, zero), one, one)
    x = net("Gather", net.weight("words", _WORDS, _WIDTH), ids)
    x = net("Add", x, net("Gather", net.weight("types", 2, _WIDTH), kinds))
    x = net("Add", x, net("Gather", net.weight("places", 64, _WIDTH), places))
    x = _norm(net, x, "embeddings.norm")
    wide = net("Unsqueeze", net("Unsqueeze", mask, one), net.ints(2))
    bias = net("Sub", net.constant(np.float32(1)), net("Cast", wide, to=TensorProto.FLOAT))
    bias = net("Mul", bias, net.constant(np.float32(-10000)))

    def attended(q: str, k: str, v: str) -> str:
        batch, steps = dimension(net, q, 0), dimension(net, q, 1)
        q, k, v = (_heads(net, part, batch, steps) for part in (q, k, v))
        return _attended(net, q, k, v, bias)

    for index in range(2):
        x = _block(net, x, f"layer.{index}", attended)
    first = net("Gather", x, net.constant(np.array(0, np.int64)), axis=1)
    pooled = net("Tanh", net.linear(first, (_WIDTH, _WIDTH), "/pooler"))
    dims = ["batch", "sequence"]
    model = net.model({ids: dims, mask: dims, kinds: dims}, [x, pooled], [np.int64] * 3)
    return Case(model, ("sequence",), STEPS)


def decoder() -> Case:
    """A decoder whose keys and values of earlier calls are inputs, and those of all are outputs."""
    net = Network(17)
    ids, mask = "input_ids", "attention_mask"
    axis = net.ints(1)
    past = dimension(net, "past_key_values.0.key", 2)
    steps = dimension(net, ids, 1)
    total = net("Add", past, steps)
    zero, one = (net.constant(np.array(n, np.int64)) for n in (0, 1))
    places = net("Range", past, total, one)
    places = net("Unsqueeze", places, net.ints(0))
    x = net("Gather", net.weight("words", _WORDS, _WIDTH), ids)
    x = net("Add", x, net("Gather", net.weight("places", 64, _WIDTH), places))
    columns = net("Unsqueeze", net("Range", zero, total, one), net.ints(0))
    rows = net("Unsqueeze", net("Range", past, total, one), axis)
    seen = net("LessOrEqual", columns, rows)
    seen = net("Unsqueeze", seen, net.ints(0, 1))
    given = net("Unsqueeze", net("Cast", mask, to=TensorProto.BOOL), net.ints(1, 2))
    least = net.constant(np.float32(-1e9))
    bias = net("Where", net("And", seen, given), net.constant(np.float32(0)), least)
    outputs: list[str] = []

    def attended(q: str, k: str, v: str) -> str:
        batch, steps = dimension(net, q, 0), dimension(net, q, 1)
        q, k, v = (_heads(net, part, batch, steps) for part in (q, k, v))
        layer = len(outputs) // 2
        k = net("Concat", f"past_key_values.{layer}.key", k, axis=2)
        v = net("Concat", f"past_key_values.{layer}.value", v, axis=2)
        outputs.extend((k, v))
        return _attended(net, q, k, v, bias)

    for index in range(2):
        x = _block(net, x, f"layer.{index}", attended)
    logits = dense(net, x, (_WIDTH, _WORDS), "head")
    cache: Dims = ["batch_size", _HEADS, "past_sequence_length", _SIZE]
    inputs: dict[str, Dims] = {
        ids: ["batch_size", "sequence_length"],
        mask: ["batch_size", "past_sequence_length + sequence_length"],
        **{f"past_key_values.{i}.{kind}": cache for i in range(2) for kind in ("key", "value")},
    }
    model = net.model(inputs, [logits, *outputs], [np.int64, np.int64])
    names = ("sequence_length", "past_sequence_length")
    return Case(model, names, ((1, 5), (4, 1), (3, 20), (7, 7)))


def cnn() -> Case:
    """Convolutions, pools and a resize of images of any size."""
    net = Network(17)
    x = net("Relu", net.conv("image", (3, 8), 7, "/conv1", 2), name="/relu/Relu")
    x = net("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = net("Relu", net.conv(x, (8, 8), 3, "/layer1/conv1"))
    y = net.conv(y, (8, 8), 3, "/layer1/conv2")
    x = net("Relu", net("Add", x, y))
    y = net("Relu", net.conv(x, (8, 12), 3, "/layer2/conv1", 2))
    x = net("Add", y, net.conv(x, (8, 12), 1, "/layer2/down", 2))
    gate = net("Sigmoid", net.conv(net("GlobalAveragePool", x), (12, 12), 1, "/gate"))
    x = net("Mul", x, gate)
    pooled = net("Flatten", net("GlobalAveragePool", x), axis=1)
    classes = net.linear(pooled, (12, 5), "/fc")
    model = net.model({"image": ["batch", 3, "height", "width"]}, [x, classes])
    return Case(model, ("height", "width"), SIDES)


def states() -> Case:
    """A GRU with first states, as PyTorch has them: the batch is their second axis."""
    net = Network(17)
    units, features = 5, 6
    weights = [net.weight("w", 1, 3 * units, features), net.weight("r", 1, 3 * units, units)]
    bias = net.weight("b", 1, 6 * units)
    y, last = net.many(
        "GRU", 2, "x", *weights, bias, "", "h0", hidden_size=units, linear_before_reset=1
    )
    y = net("Squeeze", y, net.ints(1))
    dims: dict[str, Dims] = {"x": ["seq", "batch", features], "h0": [1, "batch", units]}
    return Case(net.model(dims, [y, last]), ("seq",), STEPS)


def given_sum() -> Case:
    """A mask whose size the file names as if it were one of its own."""
    net = Network(17)
    x = net("Concat", "past", "x", axis=1)
    mask = net("Unsqueeze", "mask", net.ints(2))
    model = net.model(
        {"mask": ["batch", "total"], "past": ["batch", "p", 3], "x": ["batch", "steps", 3]},
        [net("Mul", x, mask)],
    )
    return Case(model, ("p", "steps"), ((1, 1), (2, 5), (7, 3)))


def _recurrent(op: str, gates: int, bias: int, **attrs: Any) -> Case:
    net = Network(17)
    units, features, ways = 5, 6, 2
    w = net.weight("w", ways, gates * units, features)
    r = net.weight("r", ways, gates * units, units)
    b = net.weight("b", ways, bias * gates * units)
    x = net("Transpose", "x", perm=[1, 0, 2])
    batch = dimension(net, "x", 0)
    zeros = net("ConstantOfShape", listed(net, ways, batch, units))
    states = [zeros] * (2 if op == "LSTM" else 1)
    results = net.many(
        op,
        2,
        x,
        w,
        r,
        b,
        "",
        *states,
        hidden_size=units,
        direction="bidirectional",
        **attrs,
    )
    y = net("Transpose", results[0], perm=[2, 0, 1, 3])
    steps = dimension(net, "x", 1)
    y = net("Reshape", y, listed(net, batch, steps, ways * units))
    y = dense(net, y, (ways * units, 3), "head")
    last = net("Gather", y, net.constant(np.array(-1, np.int64)), axis=1)
    model = net.model({"x": ["batch", "seq", features]}, [y, last, results[1]])
    return Case(model, ("seq",), STEPS)


def lstm() -> Case:
    """A bidirectional LSTM."""
    return _recurrent("LSTM", 4, 2)


def gru() -> Case:
    """A bidirectional GRU."""
    return _recurrent("GRU", 3, 2, linear_before_reset=1)


def shapes() -> Case:
    """The operators that compute shapes, over a size without a name."""
    net = Network(17)
    batch, steps = dimension(net, "x", 0), dimension(net, "x", 1)
    two = net.constant(np.array(2, np.int64))
    zeros = net("ConstantOfShape", listed(net, batch, steps, 1))
    ones = net("Expand", net.constant(np.ones((1, 1, 1), np.float32)), listed(net, batch, steps, 1))
    x = net("Concat", "x", zeros, ones, axis=2)
    zero = net.constant(np.array(0, np.int64))
    counted = net("Range", zero, steps, net.constant(np.array(1, np.int64)))
    row = net("Cast", counted, to=TensorProto.FLOAT)
    x = net("Add", x, net("Unsqueeze", row, net.ints(1)))
    half = net("Div", net("Add", steps, net.constant(np.array(1, np.int64))), two)
    place = net("Unsqueeze", half, net.ints(0))
    first = net("Slice", x, net.ints(0), place, net.ints(1))
    rest = net("Slice", x, net.ints(-1), net.ints(2**31 - 1), net.ints(1))
    flat = net("Reshape", x, listed(net, batch, -1))
    turned = net("Reshape", net("Transpose", x, perm=[0, 2, 1]), listed(net, batch, 5, steps))
    same = net("Reshape", x, net.ints(0, 0, 5, 1))
    model = net.model({"x": ["N", None, 3]}, [first, rest, flat, turned, same])
    return Case(model, ("steps",), STEPS)


def whole_shapes() -> Case:
    """An output of the first size of one input, and of the last of the other."""
    net = Network(17)
    scores = net("MatMul", "left", net("Transpose", "right", perm=[0, 2, 1]))
    model = net.model({"left": ["batch", None, 4], "right": ["batch", None, 4]}, [scores])
    return Case(model, ("left_steps", "right_steps"), ((1, 5), (6, 2), (3, 3)))


def same_symbol() -> Case:
    """Two inputs whose sizes the file does not name must be the same."""
    net = Network(17)
    model = net.model({"a": ["batch", None, 4], "b": ["batch", None, 4]}, [net("Add", "a", "b")])
    return Case(model, ("a_steps",), STEPS)


def from_the_end() -> Case:
    """Places that are counted from the end of an open axis, if they are negative."""
    net = Network(17)
    last = net("Gather", "x", net.ints(-1, 0), axis=1)
    rows = net("Gather", "rows", net("Neg", "places"), axis=0)
    elements = net("GatherElements", "x", net("Neg", "of_x"), axis=1)
    pairs = net("GatherND", "rows", net("Neg", "pairs"))
    dims: dict[str, Dims] = {
        "of_x": ["batch", "steps", 3],
        "places": [2],
        "pairs": [5, 2],
        "x": ["batch", "steps", 3],
        "rows": ["count", 4],
    }
    model = net.model(dims, [last, rows, elements, pairs], [np.int64] * 3)
    return Case(model, ("steps", "count"), ((1, 1), (2, 3), (7, 4)))


def detector() -> Case:
    """The end of a detector: boxes that are kept, with their classes and scores."""
    net = Network(17)
    size = net.constant(np.array([1, 1, 6, 6], np.float32))
    boxes = net("Mul", net("Abs", "x"), size)
    limits = [
        net.ints(3),
        net.constant(np.array([0.4], np.float32)),
        net.constant(np.array([0.6], np.float32)),
    ]
    kept = net("NonMaxSuppression", boxes, "scores", *limits, center_point_box=1)
    number = net("Gather", kept, net.constant(np.array(2, np.int64)), axis=1)
    classes = net("Gather", kept, net.constant(np.array(1, np.int64)), axis=1)
    found = net("Gather", net("Squeeze", boxes, net.ints(0)), number, axis=0)
    found = net("Concat", found, net("Unsqueeze", net("Cast", classes, to=1), net.ints(1)), axis=1)
    of_class = net("Transpose", "scores", perm=[0, 2, 1])
    places = net("Concat", net("Mul", kept, net.ints(1, 0, 0)), kept, axis=1)
    places = net("Gather", places, net.ints(0, 5, 4), axis=1)
    best = net("GatherND", of_class, places)
    high = net("Greater", "scores", net.constant(np.float32(0.9)))
    above = net("NonZero", high)
    last = net(
        "Compress", "x", net("Squeeze", net("Greater", "of_box", net.ints(0)), net.ints(0)), axis=1
    )
    dims: dict[str, Dims] = {
        "of_box": [1, "count"],
        "x": [1, "count", 4],
        "scores": [1, 3, "count"],
    }
    outputs = [kept, found, best, above, net("Relu", last)]
    return Case(net.model(dims, outputs, [np.int64]), ("count",), ((1,), (9,), (40,)))


def chosen_of_fixed() -> Case:
    """What is chosen where no dimension is open."""
    net = Network(17)
    positive = net("Greater", "x", net.constant(np.float32(0.5)))
    places = net("NonZero", positive)
    rows = net("GatherND", "x", net("Transpose", places, perm=[1, 0]))
    total = net("ReduceSum", rows, net.ints(0), keepdims=1)
    return Case(net.model({"x": [5, 6]}, [places, rows, total]), (), ((), ()))


def ranked() -> Case:
    """As many of the largest as there are, up to three, and matrices over the steps."""
    net = Network(17)
    steps = dimension(net, "x", 1)
    count = net("Min", steps, net.constant(np.array(3, np.int64)))
    best, _ = net.many("TopK", 2, "x", listed(net, count), axis=1)
    ordered, _ = net.many("TopK", 2, "x", listed(net, steps), axis=1, largest=0)
    first = net("Slice", "x", net.ints(0), net.ints(16), net.ints(1))
    place = net("ArgMax", "x", axis=1, keepdims=0)
    one_of = net("OneHot", place, steps, net.constant(np.array([0, 1], np.float32)))
    below = net("EyeLike", net("ConstantOfShape", listed(net, steps, steps)), dtype=1, k=-1)
    moved = net("MatMul", below, "x")
    model = net.model({"x": ["N", "steps", 4]}, [best, ordered, first, one_of, moved])
    return Case(model, ("steps",), STEPS)


def halves() -> Case:
    """Equal parts of a sequence."""
    net = Network(17)
    left, right = net.many("Split", 2, "x", axis=1)
    model = net.model({"x": ["N", "steps", 4]}, [net("Add", left, net("Neg", right))])
    return Case(model, ("steps",), ((2,), (6,), (40,)))


MODELS: tuple[Callable[[], Case], ...] = (
    bert,
    decoder,
    cnn,
    lstm,
    gru,
    shapes,
    whole_shapes,
    same_symbol,
    states,
    given_sum,
    from_the_end,
    detector,
    chosen_of_fixed,
    ranked,
    halves,
)
