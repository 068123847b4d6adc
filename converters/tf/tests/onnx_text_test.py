"""ONNX's operators whose results are text, against the reference of onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.lower.convert import convert
from converters.tf.tests.onnx_graphs import Body, Dims, Network, saved
from tools.codegen.conversion import UnsupportedError

TEXTS = np.array(
    [
        "Monday",
        "tuesday b",
        "",
        "MONDAY",
        "ΟΔΥΣΣΕΥΣ É, a,b",
        "straße",
    ],
    object,
)
# The reference removes accents and empty texts where it changes letters; onnxruntime does not.
LETTERS = np.array(["Monday", "tuesday b", "MONDAY", "ΟΔΥΣΣΕΥΣ", "straße", "ж"], object)


def _graph(folder: Path, dims: Dims, body: Body) -> tuple[Any, ir.Graph]:
    net = Network()
    results = body(net, "x")
    outputs = [results] if isinstance(results, str) else list(results)
    model = net.model({"x": dims}, outputs, [object])
    graph = convert(load(saved(model, folder), LoadOptions()).trace)
    assert problems(graph) == []
    return model, graph


def _compared(folder: Path, dims: Dims, body: Body, given: ir.Array) -> None:
    model, graph = _graph(folder, dims, body)
    expected = ReferenceEvaluator(model).run(None, {"x": given})
    found = interpret(graph, {"x": given})
    for port, array in zip(model.graph.output, expected, strict=True):
        assert found[port.name].shape == array.shape
        assert found[port.name].tolist() == array.tolist()


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
def test_texts_in_another_case(action: str, tmp_path: Path) -> None:
    def body(net: Network, x: str) -> str:
        return net("StringNormalizer", x, case_change_action=action)

    _compared(tmp_path, ["N"], body, LETTERS)


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("exact", [0, 1])
def test_texts_that_are_removed(exact: int, action: str, tmp_path: Path) -> None:
    def body(net: Network, x: str) -> str:
        options: dict[str, Any] = {"case_change_action": action, "is_case_sensitive": exact}
        return net("StringNormalizer", x, stopwords=["Monday", "ж"][: 1 + exact], **options)

    if action == "NONE" and not exact:
        # The reference compares letter by letter there; neither the operator nor onnxruntime does.
        _, graph = _graph(tmp_path, [6], body)
        (found,) = interpret(graph, {"x": LETTERS}).values()
        assert found.tolist() == ["tuesday b", "ΟΔΥΣΣΕΥΣ", "straße", "ж"]
        return
    _compared(tmp_path, [6], body, LETTERS)
    _compared(tmp_path, [1, 6], body, LETTERS[None])
    _compared(tmp_path, [2], body, np.array(["Monday", "Monday"], object))


def test_texts_that_are_joined(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        end = net.constant(np.array(["-é"], object))
        three = net.constant(np.array(["a", "b", "c"], object))
        ended = net("StringConcat", x, end)
        small = net("StringNormalizer", x, case_change_action="LOWER")
        return [ended, net("StringConcat", small, ended), net("StringConcat", x, x), three]

    _compared(tmp_path, ["N"], body, LETTERS)


def test_texts_of_several_axes_are_joined(tmp_path: Path) -> None:
    def body(net: Network, x: str) -> list[str]:
        three = net.constant(np.array(["a", "b", "c"], object))
        part = net("Gather", x, net.ints(1, 0), axis=1)
        return [
            net("StringConcat", x, three),
            net("StringConcat", part, part),
            net("Transpose", x, perm=[1, 0]),
            net("Concat", x, part, axis=1),
        ]

    _compared(tmp_path, [2, 3], body, TEXTS.reshape(2, 3))

    def spread(net: Network, x: str) -> str:
        return net("StringConcat", x, net.constant(np.array([["a", "b", "c"]], object)))

    _compared(tmp_path, [2, 1], spread, TEXTS[:2].reshape(2, 1))


@pytest.mark.parametrize("delimiter", [None, ",", " "])
@pytest.mark.parametrize("most", [None, 0, 1])
def test_texts_that_are_taken_apart(
    delimiter: str | None, most: int | None, tmp_path: Path
) -> None:
    given = {"delimiter": delimiter, "maxsplit": most}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}

    def body(net: Network, x: str) -> list[str]:
        return net.many("StringSplit", 2, x, **options)

    _compared(tmp_path, ["N"], body, TEXTS)
    _compared(tmp_path, [2, 3], body, TEXTS.reshape(2, 3))


REFUSED: dict[str, tuple[Body, str]] = {
    "batch": (
        lambda net, x: net("StringNormalizer", x, stopwords=["a"]),
        "removed from a batch of any size",
    ),
    "twice": (
        lambda net, x: net(
            "StringNormalizer",
            net("StringNormalizer", x, case_change_action="UPPER"),
            case_change_action="LOWER",
        ),
        "standardized twice",
    ),
    "read": (
        lambda net, x: net("Identity", net("StringNormalizer", x, stopwords=["a"])),
        "some are removed, where a tensor is read",
    ),
    "delimiter": (
        lambda net, x: net.many("StringSplit", 2, x, delimiter="ab"),
        "the delimiter b'ab'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, tmp_path: Path) -> None:
    body, message = REFUSED[case]
    with pytest.raises(UnsupportedError, match=message):
        _graph(tmp_path, ["N"], body)


def test_stop_words_in_letters_of_other_alphabets(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="letters of other alphabets"):
        _graph(tmp_path, [2], lambda net, x: net("StringNormalizer", x, stopwords=["é"]))
