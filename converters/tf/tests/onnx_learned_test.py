"""Operators of `ai.onnx.ml`, which scikit-learn's models become, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from converters.tf.load.model import LoadOptions, load
from converters.tf.load.onnx.registry import HANDLERS
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
    assert known - of_suite <= tested
