"""Text that a call writes, as an output: joined, changed, chosen or taken apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from converters.tf import ir, tf2rust
from converters.tf.emit.options import Options, Profile
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import trace_model
from converters.tf.lower.convert import convert
from converters.tf.tests.checks import model_of
from tools.codegen.conversion import UnsupportedError, UsageError

TEXTS = np.array(
    [
        ["A b", "É c ", "ΟΔΥΣΣΕΥΣ"],
        ["", "x  y z", "Straße, İ"],
        ["b", "ab", "ab-"],
        ["😀 ǅ", "\t", "\u0301combining e\u0301"],
    ],
    object,
)
NUMBERS = np.array([[0, 2], [1, 1], [2, 0], [0, 0]], np.int32)

Body = Callable[[Any, Any], Any]


def _model(body: Body) -> keras.Model:
    class Calls(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any, numbers: Any) -> Any:
            return body(x, numbers)

    return model_of([(3,), (2,)], lambda x, n: Calls()(x, n), ["string", "int32"])


def _text(array: Any) -> ir.Array:
    found = np.asarray(array)
    if found.dtype.kind not in "OSU":
        return found
    texts = [t.decode() if isinstance(t, bytes) else t for t in found.ravel()]
    return np.array(texts, object).reshape(found.shape)


def _compared(body: Body) -> ir.Graph:
    """Converts a model of texts and numbers, and compares it with TensorFlow."""
    loaded = trace_model(_model(body))
    graph = convert(loaded.trace)
    assert problems(graph) == []
    arrays = dict(zip((p.name for p in graph.inputs), (TEXTS, NUMBERS), strict=True))
    found, expected = interpret(graph, arrays), loaded.predict(arrays)
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].tolist() == _text(array).tolist()
    return graph


WRITTEN: dict[str, Body] = {
    "as it is": lambda x, n: x,
    "small": lambda x, n: tf.strings.lower(x),
    "small in all alphabets": lambda x, n: tf.strings.lower(x, encoding="utf-8"),
    "capital in all alphabets": lambda x, n: tf.strings.upper(x, encoding="utf-8"),
    "capital of joined": lambda x, n: tf.strings.upper(tf.strings.join([x, "é", x])),
    "replaced": lambda x, n: tf.strings.regex_replace(x, "[^a-z]", "?"),
    "cut": lambda x, n: tf.strings.upper(tf.strings.strip(x), "utf-8"),
    "joined and cut": lambda x, n: tf.strings.strip(tf.strings.join([" ", x, x, "\n"])),
    "joined": lambda x, n: tf.strings.join([x, "ü", tf.strings.lower(x)], separator=", "),
    "joined in another case": lambda x, n: tf.strings.lower(tf.strings.join([x, "Σ"]), "utf-8"),
    "joined and replaced": lambda x, n: tf.strings.regex_replace(
        tf.strings.lower(tf.strings.join([x, "B", x])), "bb", ""
    ),
    "word pieces": lambda x, n: tf.strings.regex_replace(
        tf.strings.reduce_join(tf.gather(["un", "##do", "##É"], n), axis=-1, separator=" "),
        " ##",
        "",
    ),
    "words in another case": lambda x, n: tf.strings.upper(tf.gather(["a", "é", "b"], n), "utf-8"),
    "joined twice": lambda x, n: tf.strings.join([tf.strings.join([x, "-"]), x]),
    "parts": lambda x, n: tf.strings.join([x[:, :1], x[:, 2:]], separator="-"),
    "columns": lambda x, n: tf.strings.join([x[:, 2], x[:, 0]]),
    "chosen": lambda x, n: tf.gather(x, n, batch_dims=1),
    "filled": lambda x, n: tf.where(tf.equal(x, ""), "none", x),
    "transposed": lambda x, n: tf.transpose(tf.stack([x, x], 2), [0, 2, 1]),
    "beside words": lambda x, n: tf.concat([x, tf.gather(["a", "é"], n % 2)], 1),
    "along an axis": lambda x, n: tf.strings.reduce_join(x, axis=-1, separator=" "),
    "kept axis": lambda x, n: tf.strings.reduce_join(x, axis=-1, keepdims=True),
    "words along an axis": lambda x, n: tf.strings.reduce_join(
        tf.gather(["un", "##do", "ing"], n), axis=-1
    ),
    "labels": lambda x, n: tf.strings.join(["label: ", tf.gather(["a", "b", "c"], n)]),
    "tokens": lambda x, n: tf.strings.split(tf.reshape(x, [-1])).to_tensor(),
    "tokens of a size": lambda x, n: tf.strings.split(tf.reshape(x, [-1])).to_tensor(
        shape=[None, 2]
    ),
    "fields": lambda x, n: tf.strings.split(tf.reshape(x, [-1]), "b").to_tensor(),
    "two fields": lambda x, n: tf.strings.split(tf.reshape(x, [-1]), "b", 1).to_tensor(),
    "characters": lambda x, n: tf.strings.unicode_split(
        tf.reshape(x[:, :], [-1]), "UTF-8"
    ).to_tensor(),
    "how many": lambda x, n: tf.strings.split(tf.reshape(x, [-1]), "b").row_lengths(),
    "how many of two": lambda x, n: tf.strings.split(tf.reshape(x, [-1]), "b", 1).row_lengths(),
    "known": lambda x, n: tf.constant(["a", "é", "a"]),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_text_as_an_output(case: str) -> None:
    _compared(WRITTEN[case])


def test_a_detokenizer() -> None:
    """Numbers become words, and these a text: the end of a model that writes."""
    words = ["the", "fox", "é", "jumps"]
    lookup = layers.StringLookup(vocabulary=words, invert=True)
    graph = _compared(lambda x, n: tf.strings.reduce_join(lookup(n), axis=-1, separator=" "))
    (port,) = graph.outputs
    assert port.words is None
    assert port.dtype is ir.DType.STR


REFUSED: dict[str, tuple[Body, str]] = {
    "looked up": (
        lambda x, n: tf.strings.to_hash_bucket_fast(tf.strings.join([x, x]), 9),
        "text that no input gives",
    ),
    "other axes": (lambda x, n: tf.strings.reduce_join(x), "text that is joined along other axes"),
    "tokens that are joined": (
        lambda x, n: tf.strings.join([tf.strings.split(tf.reshape(x, [-1])).to_tensor(), "a"]),
        "tokens that are joined",
    ),
    "changed after its letters": (
        lambda x, n: tf.strings.lower(tf.strings.upper(x, "utf-8")),
        "changed after its letters were",
    ),
    "cut in between": (
        lambda x, n: tf.strings.lower(tf.strings.strip(x)),
        "white space cut off",
    ),
    "tokens that are changed": (
        lambda x, n: tf.strings.lower(tf.strings.split(tf.reshape(x, [-1])).to_tensor()),
        "tokens that are changed",
    ),
    "numbers": (
        lambda x, n: tf.strings.join([tf.strings.as_string(n), "a"]),
        "numbers that become",
    ),
    "white space": (
        lambda x, n: tf.strings.split(tf.reshape(x, [-1]), maxsplit=1).to_tensor(),
        "at some white space only",
    ),
    "other filling": (
        lambda x, n: tf.strings.split(tf.reshape(x, [-1])).to_tensor("x"),
        "followed by other text",
    ),
    "batch": (
        lambda x, n: tf.boolean_mask(x, tf.equal(x, "a")),
        "depends on the values of all examples",
    ),
    "pieces": (lambda x, n: tf.strings.join([x] * 65), "text of 65 pieces; at most 64"),
}


def _refusing(body: Body) -> None:
    loaded = trace_model(_model(body))
    tf2rust.graph_of(loaded)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    body, message = REFUSED[case]
    with pytest.raises(UnsupportedError, match=message):
        _refusing(body)


def test_a_crate_without_std_has_no_strings(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    x = keras.Input((2,), dtype="string")
    keras.Model(x, x).save(path)
    options = Options("model", "model.keras", profile=Profile.NO_STD)
    with pytest.raises(UsageError, match="a crate without std has no strings"):
        tf2rust.run(tf2rust.Request(path, options, crate_only=True))
