"""Operators that skl2onnx writes for support vectors, neighbors and columns, against onnxruntime.

The graphs are those of skl2onnx 1.20, with random numbers.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir import Array
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.onnx import distances, features, support_vectors
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_crates import failures
from converters.tf.tests.onnx_graphs import Body, Dims, Network, checked, saved
from tools.codegen.conversion import UnsupportedError

ROWS: Dims = ["N", 5]
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
# Of probabilities, distances and sums of a few products in float32, in units of the largest one.
_TOLERANCE = 2e-6
tested: set[str] = set()


def _check(folder: Path, body: Body, dims: Dims = ROWS, dtype: Any = np.float32) -> None:
    tested.update(checked(folder, dims, body, dtype=dtype, batches=(1, 7)))


def _graph(model: Any, folder: Path) -> ir.Graph:
    graph = convert(load(saved(model, folder), LoadOptions()).trace)
    assert problems(graph) == []
    return graph


def _same(model: Any, graph: ir.Graph, **given: Array) -> list[Array]:
    """Compares a graph with onnxruntime, NaN and infinities alike; returns what it gives."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = list(interpret(graph, given).values())
    for array, expected in zip(found, session.run(None, given), strict=True):
        assert (array.shape, array.dtype) == (expected.shape, expected.dtype)
        if expected.dtype.kind != "f":
            assert np.array_equal(array, expected)
        else:
            scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.05)
            np.testing.assert_allclose(array, expected, 0, _TOLERANCE * scale)
    return found


def _kernel(net: Network, kind: str, vectors: int, degree: float = 3.0) -> dict[str, Any]:
    data = net.random.normal(size=vectors * 5).astype(np.float32)
    params = [0.3, 0.2, degree]
    return {"kernel_type": kind, "kernel_params": params, "support_vectors": data}


def _classes(
    net: Network, kind: str, counts: list[int], proba: bool, words: bool = False
) -> dict[str, Any]:
    """Returns attributes of a random classifier with some support vectors for each class."""
    classes, total = len(counts), sum(counts)
    pairs = classes * (classes - 1) // 2
    attrs = _kernel(net, kind, total) | {"vectors_per_class": counts, "post_transform": "NONE"}
    attrs["coefficients"] = net.random.normal(size=(classes - 1) * total).astype(np.float32)
    attrs["rho"] = net.random.normal(size=pairs).astype(np.float32)
    if words:
        attrs["classlabels_strings"] = [f"grün {c}" for c in range(classes)]
    else:
        attrs["classlabels_ints"] = [3 * c + 1 for c in range(classes)]
    if proba:
        attrs["prob_a"] = -net.random.uniform(0.5, 3, pairs).astype(np.float32)
        attrs["prob_b"] = net.random.normal(size=pairs).astype(np.float32) / 3
    return attrs


@pytest.mark.parametrize("kind", KERNELS)
def test_regression(tmp_path: Path, kind: str) -> None:
    def body(net: Network, x: str) -> list[str]:
        found = []
        for degree in (2.0, 3.0, 4.0):
            attrs = _kernel(net, kind, 9, degree) | {"rho": [0.1], "n_supports": 9}
            attrs["coefficients"] = net.random.normal(size=9).astype(np.float32)
            found.append(net("SVMRegressor", x, **attrs))
        one = net("SVMRegressor", x, one_class=1, **attrs)
        linear: dict[str, Any] = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]}
        linear |= {"coefficients": [0.1, -0.2, 0.3, 0.4, -0.5], "rho": [-0.3]}
        return [*found, one, net("SVMRegressor", x, **linear)]

    _check(tmp_path, body)


@pytest.mark.parametrize("counts", [[3, 2], [4, 1, 2], [2, 0, 3, 1, 2]])
@pytest.mark.parametrize("kind", KERNELS)
def test_classification(tmp_path: Path, kind: str, counts: list[int]) -> None:
    def body(net: Network, x: str) -> list[str]:
        found = []
        for proba, words in itertools.product((False, True), (False, True)):
            found += net.many("SVMClassifier", 2, x, **_classes(net, kind, counts, proba, words))
        for change in ("LOGISTIC", "SOFTMAX"):
            attrs = _classes(net, kind, counts, change == "SOFTMAX") | {"post_transform": change}
            found += net.many("SVMClassifier", 2, x, **attrs)
        return found

    _check(tmp_path, body)


def test_examples_that_are_integers(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        return net.many("SVMClassifier", 2, x, **_classes(net, "RBF", [3, 2], proba=True))

    _check(tmp_path, body, dtype=np.int64)


@pytest.mark.parametrize("sign", ["positive", "mixed"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classification_without_vectors(tmp_path: Path, sign: str, classes: int) -> None:
    """The second of two classes wins more often, as in onnxruntime."""

    def body(net: Network, x: str) -> list[str]:
        found = []
        for change in ("NONE", "LOGISTIC", "SOFTMAX"):
            weights = net.random.normal(size=classes * 5).astype(np.float32) / 3
            attrs: dict[str, Any] = {"classlabels_ints": list(range(classes)), "rho": [0.1]}
            attrs |= {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]}
            attrs["coefficients"] = np.abs(weights) if sign == "positive" else weights
            found += net.many("SVMClassifier", 2, x, post_transform=change, **attrs)
        return found

    tested.update(checked(tmp_path, ROWS, body, batches=(1, 40)))


def _voting(rho: list[float], proba: bool = False) -> Any:
    """Returns a model of three classes whose scores are what `rho` says."""
    net = Network()
    attrs = _classes(net, "LINEAR", [1, 1, 1], proba)
    attrs |= {"coefficients": [0.0] * 6, "rho": rho}
    return net.model({"x": ROWS}, net.many("SVMClassifier", 2, "x", **attrs))


@pytest.mark.parametrize(
    ("rho", "label"),
    [
        ([1.0, -1.0, 1.0], 1),  # One vote each: the first class.
        ([0.0, 0.0, 0.0], 7),  # A score of 0 is a vote for the second of a pair.
        ([-1.0, 1.0, 1.0], 4),
        ([-1.0, -1.0, 0.0], 7),
    ],
)
def test_votes_that_are_equal(tmp_path: Path, rho: list[float], label: int) -> None:
    for proba in (False, True):
        model = _voting(rho, proba)
        x = np.zeros((3, 5), np.float32)
        found = _same(model, _graph(model, tmp_path), x=x)
        assert found[0].tolist() == [label] * 3


@pytest.mark.parametrize("rho", [[50.0, -50.0, 50.0], [90.0, 90.0, -90.0], [-60.0, 0.0, 60.0]])
def test_pairs_that_are_sure(tmp_path: Path, rho: list[float]) -> None:
    """Their probabilities are at the limits; a round more or less would be another result."""
    model = _voting(rho, proba=True)
    _same(model, _graph(model, tmp_path), x=np.zeros((2, 5), np.float32))


def test_examples_that_are_not_numbers(tmp_path: Path) -> None:
    net = Network()
    found = net.many("SVMClassifier", 2, "x", **_classes(net, "RBF", [2, 2, 2], proba=True))
    found += net.many("SVMClassifier", 2, "x", **_classes(net, "RBF", [2, 2, 2], proba=False))
    model = net.model({"x": ROWS}, found)
    x = net.random.normal(size=(4, 5)).astype(np.float32)
    x[1, 2], x[2] = np.nan, np.inf
    _same(model, _graph(model, tmp_path), x=x)


NUMBERS = [0, 3, -2, 1]
CATEGORIES = ["the", "é", "", "日本"]


def test_categories(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        whole = net("Round", x)
        column = net("Cast", net("Gather", whole, net.ints(1), axis=1), to=TensorProto.INT64)
        encoded = net("OneHotEncoder", column, cats_int64s=NUMBERS, zeros=1)
        last = net("Concat", encoded, encoded, axis=-1)
        return [
            net("Reshape", last, net.ints(-1, 2 * len(NUMBERS))),
            net("OneHotEncoder", x, cats_int64s=NUMBERS),
            net("OneHotEncoder", net("Reshape", whole, net.ints(-1)), cats_int64s=NUMBERS),
        ]

    tested.update(checked(tmp_path, ROWS, body, batches=(1, 7)))


def test_categories_of_floats(tmp_path: Path) -> None:
    """A float is cut to an integer; no category is NaN, or one that float32 does not have."""
    net = Network()
    numbers = [*NUMBERS, 16777217]
    model = net.model({"x": ["N"]}, [net("OneHotEncoder", "x", cats_int64s=numbers)])
    x = np.array([-2.9, -0.9, 0.9, 3.0, np.nan, 4.0, 16777216.0], np.float32)
    (found,) = _same(model, _graph(model, tmp_path), x=x)
    assert found.sum(1).tolist() == [1, 1, 1, 1, 0, 0, 0]


def test_categories_that_are_words(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> str:
        return net("OneHotEncoder", x, cats_strings=CATEGORIES, zeros=1)

    tested.update(checked(tmp_path, ROWS, body, dtype=object, batches=(1, 7)))


@pytest.mark.parametrize("words", [False, True])
def test_a_category_that_must_be_known(tmp_path: Path, words: bool) -> None:
    """As scikit-learn's `handle_unknown="error"` is written."""
    net = Network()
    attrs: dict[str, Any] = {"cats_strings": CATEGORIES} if words else {"cats_int64s": NUMBERS}
    kind: Any = object if words else np.int64
    model = net.model({"x": ["N", 1]}, [net("OneHotEncoder", "x", zeros=0, **attrs)], [kind])
    graph = _graph(model, tmp_path)
    known = np.array(CATEGORIES if words else NUMBERS, kind)[:, None]
    _same(model, graph, x=known)
    other = np.array([*known[:2], ["?"] if words else [9]], kind)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    with pytest.raises(Exception, match="Unknown Category"):
        session.run(None, {"x": other})
    with pytest.raises(ValueError, match="an index is not below"):
        interpret(graph, {"x": other})


@pytest.mark.parametrize("missing", [np.nan, 0.0, -3.5])
@pytest.mark.parametrize("values", [[7.5], [1.0, -2.0, 3.0, 4.0, 5.0]])
def test_missing_floats(tmp_path: Path, missing: float, values: list[float]) -> None:
    net = Network()
    y = net("Imputer", "x", imputed_value_floats=values, replaced_value_float=missing)
    model = net.model({"x": ROWS}, [y])
    tested.add("ai.onnx.ml.Imputer")
    x = np.random.default_rng(1).normal(size=(8, 5)).round().astype(np.float32)
    x[::3, 1], x[1::2, 4], x[0], x[1, 0] = missing, missing, missing, np.inf
    (found,) = _same(model, _graph(model, tmp_path), x=x)
    assert np.isfinite(found[0]).all()


@pytest.mark.parametrize("values", [[7], [10, 20, 30, 40, 50]])
def test_missing_integers(tmp_path: Path, values: list[int]) -> None:
    def body(net: Network, x: str) -> str:
        return net("Imputer", x, imputed_value_int64s=values, replaced_value_int64=2)

    _check(tmp_path, body, dtype=np.int64)


def test_columns_side_by_side(tmp_path: Path) -> None:
    """Each is cut, or filled up with zeros, to its size."""

    def body(net: Network, x: str) -> list[str]:
        whole = net("Cast", net("Round", x), to=TensorProto.INT64)
        blocks = net("Unsqueeze", net("Concat", x, x, axis=1), net.ints(1))
        return [
            net("FeatureVectorizer", whole, whole, inputdimensions=[5, 5]),
            net("FeatureVectorizer", x, x, blocks, inputdimensions=[3, 7, 10]),
        ]

    _check(tmp_path, body)


def test_distances(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        rows = net.weight("rows", 100, 5)
        return [
            *(net("com.microsoft.CDist", x, rows, metric=m) for m in ("euclidean", "sqeuclidean")),
            net("com.microsoft.CDist", rows, x, metric="sqeuclidean"),
        ]

    _check(tmp_path, body)


def test_distances_of_rows_far_from_zero(tmp_path: Path) -> None:
    """Differences are exact; onnxruntime subtracts products of float32, and loses their digits."""
    net = Network()
    model = net.model({"x": ["N", 2], "y": [2, 2]}, [net("com.microsoft.CDist", "x", "y")])
    rows = np.array([[1000.0, 1000.5], [-999.5, 1000.0]], np.float32)
    found = interpret(_graph(model, tmp_path), {"x": rows + np.float32(0.25), "y": rows})
    assert np.diag(next(iter(found.values()))).tolist() == [0.125, 0.125]


def _scan(nodes: list[Any], constants: dict[str, Array], results: tuple[str, ...]) -> Any:
    """Returns a body that reads the state `next_in` and the row `next`."""
    names = ("next_in", "next")
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in results]
    tensors = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    return helper.make_graph(nodes, "OnnxIdentity", infos, outputs, tensors)


def _pairwise(metric: str = "sqeuclidean") -> Any:
    """Returns the body of distances between the rows of two matrices."""
    nodes = [
        helper.make_node("Identity", ["next_in"], ["next_out"]),
        helper.make_node("Sub", ["next_in", "next"], ["C0"]),
    ]
    one = {"axes": np.array([1], np.int64)}
    if metric == "sqeuclidean":
        nodes.append(helper.make_node("ReduceSumSquare", ["C0", "axes"], ["sum"], keepdims=0))
    else:
        nodes += [
            helper.make_node("Abs", ["C0"], ["size"]),
            helper.make_node("Pow", ["size", "power"], ["powers"]),
            helper.make_node("ReduceSum", ["powers", "axes"], ["total"], keepdims=0),
            helper.make_node("Pow", ["total", "root"], ["sum"]),
        ]
        one |= {"power": np.array([3], np.float32), "root": np.array([1 / 3], np.float32)}
    nodes.append(helper.make_node("Identity", ["sum"], ["scan_out"]))
    return _scan(nodes, one, ("next_out", "scan_out"))


def _neighbors(net: Network, x: str, rows: int, count: int, metric: str = "sqeuclidean") -> str:
    """Adds the means of what the nearest of some rows have, as `KNeighborsRegressor`."""
    known = net.constant(net.random.normal(size=(rows, 5)).astype(np.float32))
    found = net.many("Scan", 2, x, known, body=_pairwise(metric), num_scan_inputs=1)[1]
    wide = net("Transpose", found, perm=[1, 0])
    nearest = net.many("TopK", 2, net("Sqrt", wide), net.ints(count), largest=0, sorted=1)
    values = net.constant(net.random.normal(size=(1, rows)).astype(np.float32))
    taken = net("ArrayFeatureExtractor", values, net("Flatten", nearest[1]))
    shaped = net("Reshape", taken, net.ints(-1, count))
    return net("ReduceMean", shaped, net.ints(1), keepdims=1)


@pytest.mark.parametrize("rows", [20, 300])
def test_neighbors(tmp_path: Path, rows: int) -> None:
    """More rows than turns of a loop that is written out."""

    def body(net: Network, x: str) -> list[str]:
        return [
            _neighbors(net, x, rows, 1),
            _neighbors(net, x, rows, 5),
            _neighbors(net, x, rows, 3, "minkowski"),
        ]

    _check(tmp_path, body)


def test_a_scan_over_the_examples(tmp_path: Path) -> None:
    """The turns are the examples of a call: of one or two inputs, along any axis."""

    def body(net: Network, x: str) -> list[str]:
        rows = net.weight("rows", 6, 5)
        first = net.many("Scan", 2, rows, x, body=_pairwise(), num_scan_inputs=1)[1]
        columns = net("Transpose", x, perm=[1, 0])
        along: dict[str, Any] = {"num_scan_inputs": 1, "scan_input_axes": [1]}
        last = net.many("Scan", 2, rows, columns, body=_pairwise(), scan_output_axes=[-1], **along)[
            1
        ]
        nodes = [
            helper.make_node("Mul", ["next_in", "next"], ["product"]),
            helper.make_node("ReduceMax", ["next_in"], ["most"], keepdims=1),
            helper.make_node("Sub", ["product", "most"], ["rest"]),
            helper.make_node("ReduceMean", ["next"], ["mean"], keepdims=0),
        ]
        both = _scan(nodes, {}, ("rest", "mean"))
        return [first, last, *net.many("Scan", 2, x, x, body=both, num_scan_inputs=2)]

    _check(tmp_path, body)


def test_parts_of_fewer_axes(tmp_path: Path) -> None:
    """What a turn reads has fewer axes than the state; the turns stay the first axis."""
    net = Network()
    nodes = [
        helper.make_node("Identity", ["next_in"], ["same"]),
        helper.make_node("Identity", ["same"], ["next_out"]),
        helper.make_node("Where", ["more", "next_in", "next"], ["chosen"]),
        helper.make_node("ReduceMin", ["chosen", "axes"], ["least"], keepdims=1),
    ]
    nodes.insert(0, helper.make_node("Greater", ["next_in", "next"], ["more"]))
    body = _scan(nodes, {"axes": np.array([-2], np.int64)}, ("next_out", "least", "chosen"))
    found = net.many("Scan", 3, "x", "s", body=body, num_scan_inputs=1)
    model = net.model({"x": ["N", 5], "s": [70]}, found)
    given = {"s": net.random.normal(size=70).astype(np.float32)}
    with pytest.raises(UnsupportedError, match="the batch"):
        _graph(model, tmp_path)  # The least of all examples.
    model = net.model({"x": [4, 5], "s": [70]}, found)
    _same(model, _graph(model, tmp_path), x=net.random.normal(size=(4, 5)).astype("f"), **given)


@pytest.mark.parametrize(
    "nodes",
    [
        [("Add", ["next_in", "next"], "next_out"), ("Neg", ["next"], "scan_out")],
        [("Identity", ["next_in"], "next_out"), ("CumSum", ["next", "axis"], "scan_out")],
        [("Identity", ["next_in"], "next_out"), ("Neg", ["next_in"], "scan_out")],
    ],
)
def test_scans_turn_by_turn(tmp_path: Path, nodes: list[Any]) -> None:
    """A state that changes, an operator along an axis, and a result that is the same each time."""
    made = [helper.make_node(op, inputs, [result]) for op, inputs, result in nodes]
    body = _scan(made, {"axis": np.array(0)}, ("next_out", "scan_out"))
    for rows in (6, 65):
        net = Network()
        found = net.many("Scan", 2, "x", "rows", body=body, num_scan_inputs=1)
        model = net.model({"x": ROWS, "rows": [rows, 5]}, found)
        if rows == 65:
            with pytest.raises(UnsupportedError, match="a loop with 65 iterations"):
                _graph(model, tmp_path)
            continue
        x, y = (net.random.normal(size=(n, 5)).astype(np.float32) for n in (3, rows))
        _same(model, _graph(model, tmp_path), x=x, rows=y)


def test_what_is_refused(tmp_path: Path) -> None:
    net = Network()
    good = _classes(net, "RBF", [3, 2], proba=True)
    line = {"coefficients": [1.0] * 5, "rho": [0.0]}
    refused: list[tuple[str, str, dict[str, Any]]] = [
        ("a single class", "SVMClassifier", good | {"classlabels_ints": [1]}),
        ("2 rho, 1 prob_a", "SVMClassifier", good | {"rho": [1.0, 2.0]}),
        ("1 rho, 2 prob_a", "SVMClassifier", good | {"prob_a": [1.0, 2.0]}),
        ("3 vectors_per_class", "SVMClassifier", good | {"vectors_per_class": [3, 1, 1]}),
        ("5 rows of 5 features", "SVMClassifier", good | {"support_vectors": [1.0] * 24}),
        ("kernel_params", "SVMClassifier", good | {"kernel_params": [1.0]}),
        ("post_transform='PROBIT'", "SVMClassifier", good | {"post_transform": "PROBIT"}),
        ("kernel_type='NONE'", "SVMClassifier", good | {"kernel_type": "NONE"}),
        ("4 coefficients for 1 rows", "SVMRegressor", line | {"coefficients": [1.0] * 4}),
        ("2 rho", "SVMRegressor", line | {"rho": [1.0, 2.0]}),
        ("5 coefficients of 3 vectors", "SVMRegressor", line | {"n_supports": 3}),
        ("no categories", "OneHotEncoder", {}),
        ("both numbers and words", "OneHotEncoder", {"cats_int64s": [1], "cats_strings": ["a"]}),
        ("there twice", "OneHotEncoder", {"cats_int64s": [1, 2, 1]}),
        ("0 values for 5 columns", "Imputer", {"imputed_value_int64s": [1]}),
        ("2 values for 5 columns", "Imputer", {"imputed_value_floats": [1.0, 2.0]}),
        ("a dimension of -5", "FeatureVectorizer", {"inputdimensions": [-5]}),
        ("1 operands and 2 inputdimensions", "FeatureVectorizer", {"inputdimensions": [1, 2]}),
    ]
    for expected, op, attrs in refused:
        net = Network()
        found = net.many(op, 2 if op == "SVMClassifier" else 1, "x", **attrs)
        with pytest.raises(UnsupportedError, match=expected):
            _graph(net.model({"x": ROWS}, found), tmp_path)
    net = Network()
    far = net("com.microsoft.CDist", "x", net.weight("rows", 4, 5), metric="cityblock")
    with pytest.raises(UnsupportedError, match="metric='cityblock'"):
        _graph(net.model({"x": ROWS}, [far]), tmp_path)


def test_crates_agree(tmp_path: Path) -> None:
    """Pipelines as crates, whose own tests compare them with their meaning."""
    models = []
    for counts in ([3, 2], [4, 1, 2]):
        net = Network()
        y = net("Imputer", "x", imputed_value_floats=[0.5], replaced_value_float=float("nan"))
        found = net.many("SVMClassifier", 2, y, **_classes(net, "RBF", counts, proba=True))
        found += net.many("SVMClassifier", 2, y, **_classes(net, "POLY", counts, proba=False))
        x = net.random.normal(size=(3, 5)).astype(np.float32)
        x[1, 2] = np.nan
        models.append((_graph(net.model({"x": ROWS}, found), tmp_path), {"x": x}))
    net = Network()
    column = net("Gather", "n", net.ints(1), axis=1)
    first = net("Squeeze", net("OneHotEncoder", column, cats_int64s=NUMBERS, zeros=0), net.ints(1))
    words = net("OneHotEncoder", "w", cats_strings=CATEGORIES, zeros=1)
    flat = net("Reshape", words, net.ints(-1, len(CATEGORIES)))
    y = net("FeatureVectorizer", first, flat, "x", inputdimensions=[4, 4, 5])
    attrs = _kernel(net, "RBF", 4) | {"rho": [0.1], "n_supports": 4}
    attrs |= {"support_vectors": net.random.normal(size=52), "coefficients": [1.0, -1.0, 2.0, -2]}
    result = net("SVMRegressor", y, **attrs)
    inputs: dict[str, Dims] = {"n": ["N", 2], "w": ["N", 1], "x": ROWS}
    given = {"n": np.array([[0, 3], [1, -2], [5, 1]]), "w": np.array([["é"], ["?"], [""]], object)}
    given["x"] = net.random.normal(size=(3, 5)).astype(np.float32)
    models.append((_graph(net.model(inputs, [y, result], [np.int64, object]), tmp_path), given))
    net = Network()
    near = [_neighbors(net, "x", 80, 3), net("com.microsoft.CDist", "x", net.weight("r", 4, 5))]
    models.append((_graph(net.model({"x": ROWS}, near), tmp_path), {"x": given["x"]}))
    assert failures(models) == {}


def test_every_operator_was_tested() -> None:
    """Comes after the others: all that these modules have."""
    known = {*distances.OPS, *features.OPS, *support_vectors.OPS}
    assert known <= tested
