"""Operators of `ai.onnx.ml`, which scikit-learn's models become, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.load.onnx import features, support_vectors
from converters.tf.load.onnx.registry import HANDLERS
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_cases import cases
from converters.tf.tests.onnx_graphs import LEARNED, Body, Dims, Network, checked, saved, trees
from tools.codegen.conversion import UnsupportedError

ROWS: Dims = ["N", 5]
tested: set[str] = set()


def _check(folder: Path, body: Body) -> None:
    tested.update(checked(folder, ROWS, body))


def test_linear_models_of_scikit_learn(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        scaled = net("Scaler", x, offset=[0.1, 0.2, 0.3, 0.4, 0.5], scale=[2.0] * 5)
        rest: dict[str, Any] = {"coefficients": [0.1 * i for i in range(15)]}
        rest |= {"intercepts": [0.1, -0.2, 0.3], "classlabels_ints": [4, 7, 9]}
        found = net.many("LinearClassifier", 2, scaled, post_transform="SOFTMAX", **rest)
        two: dict[str, Any] = {"coefficients": [-0.1, 0.2, 0.3, -0.4, 0.5], "intercepts": [0.05]}
        both = net.many(
            "LinearClassifier", 2, x, classlabels_ints=[0, 1], post_transform="LOGISTIC", **two
        )
        line = net("LinearRegressor", x, **two)
        return [*found, *both, line, *(net("Normalizer", x, norm=n) for n in ("MAX", "L1", "L2"))]

    _check(tmp_path, body)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_a_row_of_zeros_stays_one(tmp_path: Path, norm: str) -> None:
    """As a text without a word of the vocabulary."""

    def body(net: Network, x: str) -> str:
        zeros = net("Mul", x, net.constant(np.zeros(5, np.float32)))
        return net("Normalizer", zeros, norm=norm)

    _check(tmp_path, body)


PARTS = [
    "the",
    "Fox!",
    "lazy",
    "\u212aing",
    "\u0130t",
    "É",
    "a_b",
    "日本",
    "don't",
    "\n",
    "  ",
    "zzz",
]


def _pipeline(net: Network, x: str, **options: Any) -> str:
    """As scikit-learn's vectorizers are written."""
    expression = options.pop("tokenexp", "[a-zA-Z0-9_]+")
    flat = net("Reshape", x, net.ints(-1))
    if options.pop("lower", True):
        stops = options.pop("stopwords", None)
        attrs: dict[str, Any] = {"stopwords": stops, "is_case_sensitive": 0} if stops else {}
        flat = net("StringNormalizer", flat, case_change_action="LOWER", locale="C.UTF-8", **attrs)
    given: dict[str, Any] = {"mark": 0, "mincharnum": 1, "pad_value": "#", "tokenexp": expression}
    words = net("com.microsoft.Tokenizer", flat, **given)
    return net("TfIdfVectorizer", net("Flatten", words), max_skip_count=0, **options)


TOKENS: dict[str, dict[str, Any]] = {
    "words": {"pool_strings": ["the", "fox", "king", "it", "a_b", "don"], "ngram_counts": [0],
              "max_gram_length": 1, "min_gram_length": 1, "mode": "TF"},
    "pairs": {"pool_strings": ["the", "fox", "the", "fox", "fox", "lazy"], "ngram_counts": [0, 2],
              "max_gram_length": 2, "min_gram_length": 1, "mode": "TFIDF",
              "weights": [0.5, 2.0, 1.5, 3.0]},
    "capitals": {"pool_strings": ["the", "Fox", "King"], "ngram_counts": [0], "lower": False,
                 "max_gram_length": 1, "min_gram_length": 1, "mode": "IDF", "weights": [1.0, 2, 3],
                 "tokenexp": "[a-zA-Z]+"},
    "characters": {"pool_strings": ["t", "h", "e", "h", "e", " ", "f", "o", "x"], "tokenexp": ".",
                   "ngram_counts": [0, 0, 0], "max_gram_length": 3, "min_gram_length": 2,
                   "mode": "TF"},
    "all characters": {"pool_strings": ["É", "日", "本", "t"], "tokenexp": ".", "lower": False,
                       "ngram_counts": [0], "max_gram_length": 1, "min_gram_length": 1,
                       "mode": "TF"},
}  # fmt: skip


@pytest.mark.parametrize("kind", TOKENS)
def test_text_pipelines_of_scikit_learn(tmp_path: Path, kind: str) -> None:
    options, sizes = dict(TOKENS[kind]), {"pairs": 4, "characters": 3}
    columns = sizes.get(kind, len(options["pool_strings"]))
    net = Network()
    y = _pipeline(net, "x", ngram_indexes=list(range(columns))[::-1], **options)
    model = net.model({"x": ["N", 1]}, [y], [object])
    tested.update(f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in net.nodes)
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(PARTS, 6)) for _ in range(20)]
    given = {"x": np.array([*texts, "", "the", " the  the fox ", "the\uff26ox"], object)[:, None]}
    loaded = load(saved(model, tmp_path), LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, given)
    assert expected.any()
    for found in (interpret(graph, given), loaded.predict(given)):
        (counts,) = found.values()
        assert np.array_equal(counts, expected)


def test_stop_words_of_scikit_learn(tmp_path: Path) -> None:
    """A text that is one keeps its row, as in scikit-learn; onnxruntime removes it."""
    options = TOKENS["pairs"] | {"stopwords": ["and", "of", "it"]}
    net = Network()
    y = _pipeline(net, "x", ngram_indexes=[3, 2, 1, 0], **options)
    model = net.model({"x": ["N", 1]}, [y], [object])
    random = np.random.default_rng(2)
    texts = [" ".join(random.choice([*PARTS, "of", "And"], 6)) for _ in range(20)]
    given = np.array(texts, object)[:, None]
    graph = convert(load(saved(model, tmp_path), LoadOptions()).trace)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, {"x": given})
    assert np.array_equal(interpret(graph, {"x": given})[y], expected)
    stopped = np.array([["of"], ["the"], ["And"]], object)
    assert session.run(None, {"x": stopped})[0].shape == (1, 4)
    found = interpret(graph, {"x": stopped})[y]
    assert found.any(1).tolist() == [False, True, False]


def test_pipelines_that_are_refused(tmp_path: Path) -> None:
    words = TOKENS["words"]
    refused: list[tuple[str, dict[str, Any]]] = [
        ("small letters of other alphabets", words | {"pool_strings": ["é"] * 6}),
        ("with white space", words | {"pool_strings": ["a b"] * 6}),
        ("like the padding", words | {"pool_strings": ["#"] * 6}),
        ("there twice", words | {"pool_strings": ["a"] * 6}),
        ("regular expression", words | {"tokenexp": "a|b"}),
        ("white space inside", words | {"tokenexp": "[a ]+"}),
        ("stop words in it", words | {"stopwords": ["of", "the"]}),
    ]
    for expected, options in refused:
        net = Network()
        y = _pipeline(net, "x", ngram_indexes=[0, 1, 2, 3, 4, 5], **options)
        path = saved(net.model({"x": ["N", 1]}, [y], [object]), tmp_path)
        with pytest.raises(UnsupportedError, match=expected):
            load(path, LoadOptions())
    net = Network()
    x = net("Reshape", "x", net.ints(-1))
    y = net("com.microsoft.Tokenizer", x, tokenexp=".", mark=0, pad_value="#", mincharnum=1)
    with pytest.raises(UnsupportedError, match="words that stay text"):
        load(saved(net.model({"x": ["N", 1]}, [y], [object]), tmp_path), LoadOptions())


def test_columns(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        labels = net.constant(np.array([4, 7, 9, 2, 1], np.int64))
        first = net.many("TopK", 2, x, net.ints(3))[1]
        return [
            net("ArrayFeatureExtractor", x, net.ints(3, 0)),
            net("ArrayFeatureExtractor", labels, net("ArgMax", x, axis=1)),
            net("Reshape", net("ArrayFeatureExtractor", labels, first), net.ints(-1, 3)),
        ]

    _check(tmp_path, body)


def test_forests_of_several_kinds_of_branches(tmp_path: Path) -> None:
    """As LightGBM writes categories."""

    def body(net: Network, x: str) -> str:
        forest = trees(net, "target", (0, 1), "BRANCH_LEQ")
        inner = [i for i, mode in enumerate(forest["nodes_modes"]) if mode != "LEAF"]
        for i in inner[::2]:
            forest["nodes_modes"][i] = "BRANCH_EQ"
            forest["nodes_values"][i] = 1.0
        whole = net("Round", x)
        return net("TreeEnsembleRegressor", whole, n_targets=2, **forest)

    _check(tmp_path, body)


@pytest.mark.parametrize("keys", ["int64s", "floats"])
def test_numbers_for_labels(tmp_path: Path, keys: str) -> None:
    """As scikit-learn's isolation forests have them."""

    def body(net: Network, x: str) -> list[str]:
        kind = TensorProto.INT64 if keys == "int64s" else TensorProto.FLOAT
        whole = net("Cast", net("Round", x), to=kind)
        given: list[Any] = [0, 1, -1] if keys == "int64s" else [0.0, 1.0, -1.0]
        listed: dict[str, Any] = {f"keys_{keys}": given}
        return [
            net("LabelEncoder", whole, default_float=-3.0, values_floats=[5.5, 6.5, 7.5], **listed),
            net("LabelEncoder", whole, default_int64=9, values_int64s=[70, 80, 90], **listed),
        ]

    _check(tmp_path, body)


WORDS = ["the", "é", "", "the fox", "日本", "a"]


def test_numbers_for_words(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        floats = [float(i) - 2.5 for i in range(len(WORDS))]
        listed: dict[str, Any] = {"keys_strings": WORDS}
        return [
            net("LabelEncoder", x, default_float=-3.0, values_floats=floats, **listed),
            net("LabelEncoder", x, values_int64s=[5, 4, 3, 2, 1, 0], **listed),
        ]

    tested.update(checked(tmp_path, ROWS, body, dtype=object, batches=(1, 7)))


def test_words_for_words(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        listed: dict[str, Any] = {"keys_strings": WORDS, "values_strings": WORDS[::-1]}
        return [
            net("LabelEncoder", x, default_string="naïve", **listed),
            net("LabelEncoder", net("LabelEncoder", x, **listed), **listed),
        ]

    tested.update(checked(tmp_path, ROWS, body, dtype=object, batches=(1, 7)))


@pytest.mark.parametrize("keys", ["int64s", "floats"])
def test_words_for_numbers(tmp_path: Path, keys: str) -> None:
    def body(net: Network, x: str) -> str:
        kind = TensorProto.INT64 if keys == "int64s" else TensorProto.FLOAT
        listed: dict[str, Any] = {f"keys_{keys}": [0, 1] if keys == "int64s" else [0.0, 1.0]}
        whole = net("Cast", net("Round", x), to=kind)
        return net("LabelEncoder", whole, values_strings=["é", ""], **listed)

    _check(tmp_path, body)


def test_classes_whose_labels_are_words(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        linear: dict[str, Any] = {"coefficients": [0.1 * i for i in range(-7, 8)]}
        linear |= {"intercepts": [0.1, -0.2, 0.3], "classlabels_strings": ["b", "日本", "a"]}
        two: dict[str, Any] = {"coefficients": [-0.1, 0.2, 0.3, -0.4, 0.5], "intercepts": [0.05]}
        two |= {"classlabels_strings": ["ham", "spam"], "post_transform": "LOGISTIC"}
        forest = trees(net, "class", (0, 1, 2)) | {"classlabels_strings": ["x", "y", "z"]}
        return [
            *net.many("LinearClassifier", 2, x, post_transform="SOFTMAX", **linear),
            *net.many("LinearClassifier", 2, x, **two),
            *net.many("TreeEnsembleClassifier", 2, x, post_transform="NONE", **forest),
        ]

    _check(tmp_path, body)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_counts_of_words(tmp_path: Path, mode: str) -> None:
    def body(net: Network, x: str) -> list[str]:
        words: dict[str, Any] = {"pool_strings": [*WORDS, "the", "a", "a", "the"], "mode": mode}
        words |= {"ngram_counts": [0, len(WORDS)], "ngram_indexes": [2, 1, 0, 3, 4, 6, 5, 7]}
        words |= {"weights": [0.5 * i for i in range(8)]} if mode != "TF" else {}
        span: dict[str, Any] = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1}
        return [net("TfIdfVectorizer", x, **span, **words)]

    tested.update(checked(tmp_path, ROWS, body, dtype=object, batches=(1, 7)))


def test_words_that_are_refused(tmp_path: Path) -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("there twice", {"keys_strings": ["a", "a"], "values_int64s": [1, 2]}),
        ("not UTF-8", {"keys_strings": ["a"], "values_strings": [b"\xff"]}),
        ("1 keys and 2 values", {"keys_strings": ["a"], "values_int64s": [1, 2]}),
    ]
    for expected, attrs in refused:
        net = Network()
        y = net("LabelEncoder", "x", **attrs)
        path = saved(net.model({"x": ROWS}, [y], [object]), tmp_path)
        with pytest.raises(UnsupportedError, match=expected):
            load(path, LoadOptions())


@pytest.mark.parametrize("mode", ["LEQ", "LT", "GTE", "GT"])
def test_forests_give_numbers(tmp_path: Path, mode: str) -> None:
    def body(net: Network, x: str) -> list[str]:
        two = trees(net, "target", (0, 1), f"BRANCH_{mode}")
        mean = trees(net, "target", (0,), f"BRANCH_{mode}")
        tracks = [int(i) for i in net.random.integers(0, 2, len(mean["nodes_modes"]))]
        odd = net("Div", net("Floor", x), net("Floor", x))  # NaN where it divides by 0.
        return [
            net("TreeEnsembleRegressor", x, n_targets=2, base_values=[0.5, -1.0], **two),
            net("TreeEnsembleRegressor", x, n_targets=1, aggregate_function="AVERAGE", **mean),
            net("TreeEnsembleRegressor", odd, n_targets=1,
                nodes_missing_value_tracks_true=tracks, **mean),
        ]  # fmt: skip

    _check(tmp_path, body)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_forests_choose(tmp_path: Path, transform: str) -> None:
    def body(net: Network, x: str) -> list[str]:
        attrs: dict[str, Any] = {"post_transform": transform}
        three = trees(net, "class", (0, 1, 2))
        found = net.many(
            "TreeEnsembleClassifier", 2, x, classlabels_int64s=[4, 7, 9], **three, **attrs
        )
        for shift in (0.0, 0.6):
            one = trees(net, "class", (0,))
            one["class_weights"] = [w - shift for w in one["class_weights"]]
            found += net.many(
                "TreeEnsembleClassifier", 2, x, classlabels_int64s=[0, 1], **one, **attrs
            )
        return found

    _check(tmp_path, body)


def test_forests_that_are_none(tmp_path: Path) -> None:
    net = Network()
    good = trees(net, "target", (0,))
    endless: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"],
        "nodes_truenodeids": [1, 1, 0],
        "nodes_falsenodeids": [2, 1, 0],
    }
    spoiled: list[tuple[str, dict[str, Any]]] = [
        ("an end", endless),
        ("without a root", {"nodes_truenodeids": [0] * len(good["nodes_modes"])}),
        ("operands don't fit", {"nodes_falsenodeids": [99] * len(good["nodes_modes"])}),
        ("a feature out of 5", {"nodes_featureids": [7] * len(good["nodes_modes"])}),
        ("two of the same name", {"nodes_nodeids": [0] * len(good["nodes_modes"])}),
    ]
    for expected, change in spoiled:
        net = Network()
        y = net("TreeEnsembleRegressor", "x", **(good | change))
        path = saved(net.model({"x": ROWS}, [y]), tmp_path)
        with pytest.raises(UnsupportedError, match=expected):
            load(path, LoadOptions())


def test_every_operator_was_tested() -> None:
    """Comes last: all of the domain that are in the registry, here or in the suite's cases."""
    of_suite = {case.operator for case in cases("node")}
    known = {op for op in HANDLERS if op.startswith(LEARNED)}
    elsewhere = {*features.OPS, *support_vectors.OPS}  # In onnx_sklearn_test.
    assert known - of_suite - elsewhere <= tested
