"""Texts as a whole: regular expressions that match them, and texts that are hashed together."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnx
import pytest
import tensorflow as tf
from keras import layers
from onnx import TensorProto, helper

from converters.tf import ir
from converters.tf.emit.support import problems
from converters.tf.ir.interpret import interpret
from converters.tf.load.model import LoadOptions, load, trace_model
from converters.tf.lower.convert import convert
from converters.tf.lower.graph import Unsupported
from converters.tf.lower.ops.text.automata import automaton
from converters.tf.tests.checks import model_of
from tools.codegen.conversion import UnsupportedError

_EXPRESSIONS = [
    *("", "a", "a*b+c?", "(ab|a)(c|bcd)", r"\w+@\w+\.com", "[^a-c]+", "[^a-c]*é?", ".*", "(?s).*"),
    *(r"\bab\b.*", "^a$|b", r"a\Bb", "x{2,3}y{2}", "x{2}?", "[à-ü]+", r"[日-本a]+\d", r"\S+\s\S+"),
    *(r"www.[\w.-]+.\bcom\b", r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", "[[:punct:]]+"),
    *("[[:^alpha:]]+", r"\x41\x{e9}", "(?P<n>a|b)*c", "[]a^-]+", "a{,2}", r"\D*\z", "(a|b)*?abb"),
    *(r"(\b|a)*b", r"[\d\-x]+", r"[^\n]*", r"\.\*", "(a*)*b", "(|a)+", r"[\s\S]*x", r"[a\]]+"),
    *("a||b", "(?:ab){0}c", "[^é]*", "[\U0001f600-\U0001f64f]+"),
]
_PARTS = [*"aabbccxy@. \n-_]}{0159日本é😀à\tÀü!A", "com", "www.", "gmail", "yahoo", "ab", "xx"]


def _texts(count: int, seed: int = 3) -> list[str]:
    """Returns random texts of the parts that the expressions speak of."""
    chosen = random.Random(seed)
    made = ["".join(chosen.choices(_PARTS, k=chosen.randint(0, 6))) for _ in range(count)]
    return [*made, "www.google.com", "x.y@gmail.com", "abb", "a|b", "xxyy", "Aé", "zero\0", ""]


@pytest.mark.parametrize("expression", _EXPRESSIONS)
def test_expressions_match_what_they_match_in_tensorflow(expression: str) -> None:
    made, texts = automaton(expression), _texts(300)
    expected = tf.strings.regex_full_match(texts, expression).numpy()
    assert [made.matches(text.encode()) for text in texts] == expected.tolist()


def test_every_character_is_one() -> None:
    """The ends of all lengths of UTF-8, and what lies beside the surrogates."""
    ends = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
    for low in ends:
        for high in (end for end in ends if end >= low):
            made = automaton(f"[\\x{{{low:x}}}-\\x{{{high:x}}}]")
            found = [made.matches(chr(end).encode()) for end in ends]
            assert found == [low <= end <= high for end in ends]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("a(?=b)", "a group with flags, or that only looks"),
        ("(?i)a", "a group with flags"),
        ("(?<=a)b", "a look behind"),
        (r"\pL", r"\\p"),
        (r"(a)\1", r"\\1"),
        ("a++", "repeated twice"),
        ("[z-a]", "a range without an end"),
        ("(a", "not closed"),
        ("a)", "nothing opens"),
        ("*a", "nothing is repeated"),
        ("a{1001}", "1001} times"),
        ("[[:foo:]]", "[:foo:]"),
        ("[a", "ends too early"),
        (r"\x{d800}", "d800"),
        ("(.{100}){100}", "more than 20000 parts"),
        ("(a|b)*a(a|b){14}", "more than 4096 states"),
    ],
)
def test_other_expressions_are_refused(expression: str, why: str) -> None:
    with pytest.raises(Unsupported) as caught:
        automaton(expression)
    assert why.replace("\\\\", "\\") in str(caught.value)


def _calls(body: Any, shape: tuple[int, ...] = (1,)) -> keras.Model:
    class Calls(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return body(x)

    return model_of([shape], lambda x: Calls()(x), ["string"])


def _asked(x: Any) -> Any:
    lower = tf.strings.lower(x)
    plain = tf.strings.regex_replace(lower, "[!.]", "")
    return [
        tf.strings.regex_full_match(x, "[a-c]*"),
        tf.cast(tf.strings.regex_full_match(plain, r"\w+com"), tf.float32) * 2.0,
        tf.raw_ops.RegexFullMatch(input=x, pattern=".*é.*"),
    ]


def test_texts_that_match_in_a_model() -> None:
    loaded = trace_model(_calls(_asked, (2,)))
    graph = convert(loaded.trace)
    assert problems(graph) == []
    (port,) = graph.inputs
    texts = np.array(_texts(40), object).reshape(-1, 2)
    found, expected = interpret(graph, {port.name: texts}), loaded.predict({port.name: texts})
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


@pytest.mark.parametrize("expression", ["www[.].*", r"[^@]+@\w+\.(com|org)"])
def test_texts_that_match_in_an_onnx_file(expression: str, tmp_path: Path) -> None:
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=expression)
    ports = [
        [helper.make_tensor_value_info(name, kind, ["N", 3])]
        for name, kind in (("x", TensorProto.STRING), ("y", TensorProto.BOOL))
    ]
    graph = helper.make_graph([node], "g", *ports)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    found = convert(load(path, LoadOptions()).trace)
    assert problems(found) == []
    texts = np.array(_texts(31), object).reshape(-1, 3)
    expected = tf.strings.regex_full_match(texts.tolist(), expression).numpy()
    assert np.array_equal(interpret(found, {"x": texts})["y"], expected)


def _spaced(text: Any) -> Any:
    text = tf.strings.regex_replace(tf.strings.lower(text), r"\s+", " ")
    return tf.strings.regex_replace(text, "[^a-z ]+", " ")


def test_runs_of_characters_that_become_white_space() -> None:
    words = ["the", "fox", "a", "b", "com", "gmail"]
    layer = layers.TextVectorization(
        vocabulary=words, standardize=_spaced, output_sequence_length=7
    )
    loaded = trace_model(model_of([(1,)], lambda x: layer(x), ["string"]))
    graph = convert(loaded.trace)
    assert problems(graph) == []
    (port,) = graph.inputs
    texts = [*_texts(60), "the  \t fox--a\n\nb", "  the "]
    given = {port.name: np.array(texts, object)[:, None]}
    found, expected = interpret(graph, given), loaded.predict(given)
    for name, array in expected.items():
        assert np.array_equal(found[name], array)


def test_runs_that_make_a_difference_are_refused() -> None:
    def whole(x: Any) -> Any:
        return tf.strings.to_hash_bucket_fast(tf.strings.regex_replace(x, r"\s+", " "), 9)

    def sought(x: Any) -> Any:
        spaced = tf.strings.regex_replace(x[:, 0], r"\s+", " ")
        found = tf.strings.split(tf.strings.regex_replace(spaced, "a b", ""))
        numbers = tf.ragged.map_flat_values(tf.strings.to_hash_bucket_fast, found, 9)
        return numbers.to_tensor(shape=[None, 3])

    def lettered(x: Any) -> Any:
        spaced = tf.strings.regex_replace(x[:, 0], r"\s+", " ")
        found = tf.strings.split(tf.strings.regex_replace(spaced, "[ a]", "_"))
        numbers = tf.ragged.map_flat_values(tf.strings.to_hash_bucket_fast, found, 9)
        return numbers.to_tensor(shape=[None, 3])

    for body in (whole, sought, lettered):
        graph = convert(trace_model(_calls(body)).trace)
        assert "runs of characters that become b' '" in problems(graph)[0][1]


def _stripped(text: Any) -> Any:
    text = tf.strings.regex_replace(tf.strings.strip(text), r"[^A-Za-z \t]", "")
    return tf.strings.lower(tf.strings.strip(text))


@pytest.mark.parametrize("ragged", [False, True])
def test_white_space_at_the_ends(ragged: bool, tmp_path: Path) -> None:
    """A ragged layer in a SavedModel whose function makes a tensor of what it gives."""
    words = ["the", "fox", "a", "b", "com", "gmail"]
    layer = layers.TextVectorization(vocabulary=words, standardize=_stripped, ragged=ragged)
    module = tf.Module()
    module.layer = layer

    def numbers(texts: Any) -> Any:
        return layer(texts).to_tensor() if ragged else layer(texts)

    spec = tf.TensorSpec([None], tf.string)
    function = tf.function(numbers, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path), signatures=function)
    loaded = load(tmp_path, LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    (port,) = graph.inputs
    texts = [*_texts(60), "\v the\t\f fox\r\n", " \n", "the"]
    given = {port.name: np.array(texts, object)}
    found, expected = interpret(graph, given), loaded.predict(given)
    for name, array in expected.items():
        assert np.array_equal(found[name], array)


def test_white_space_cut_off_from_whole_texts_is_refused() -> None:
    def body(x: Any) -> Any:
        return tf.strings.to_hash_bucket_fast(tf.strings.strip(x), 9)

    graph = convert(trace_model(_calls(body)).trace)
    assert "white space cut off" in problems(graph)[0][1]


@pytest.mark.parametrize("form", ["keras", "saved_model"])
@pytest.mark.parametrize("kind", ["ragged", "sparse"])
def test_outputs_that_are_no_tensors_are_refused(kind: str, form: str, tmp_path: Path) -> None:
    mode = "int" if kind == "ragged" else "multi_hot"
    options: dict[str, Any] = {kind: True, "output_mode": mode}
    layer = layers.TextVectorization(vocabulary=["the", "fox"], **options)
    advice = {"ragged": r"ragged=False, or give .to_tensor\(\)", "sparse": "sparse=False"}[kind]
    with pytest.raises(UnsupportedError, match=f"^(?s:.*)output .*: it is {kind}.*{advice}"):
        if form == "keras":
            x = keras.Input((), dtype="string")
            trace_model(keras.Model(x, layer(x)))
        else:
            module = tf.Module()
            module.layer = layer
            spec = tf.TensorSpec([None], tf.string)
            function = tf.function(lambda x: layer(x), input_signature=[spec])
            tf.saved_model.save(module, str(tmp_path), signatures=function)
            load(tmp_path, LoadOptions())


_FEATURES = {
    "string": np.array([[text] for text in _texts(20)], object),
    "int64": np.array([[(n - 9) * (1 << 55) // 7 + n] for n in range(28)]),
    "int32": np.array([[n * 77_777_777 - (1 << 30)] for n in range(28)], np.int32),
}


@pytest.mark.parametrize("kinds", [("string", "string"), ("string", "int32"), ("int64", "string")])
@pytest.mark.parametrize("mode", ["int", "one_hot"])
@pytest.mark.parametrize("bins", [7, 1 << 14])
def test_crossed_features(kinds: tuple[str, str], mode: str, bins: int) -> None:
    if mode == "one_hot":
        bins = min(bins, 50)
    layer = layers.HashedCrossing(bins, output_mode=mode)
    model = model_of([(1,), (1,)], lambda a, b: layer([a, b]), list(kinds))
    loaded = trace_model(model)
    graph = convert(loaded.trace)
    assert problems(graph) == []
    names = [port.name for port in graph.inputs]
    given = {name: _FEATURES[kind] for name, kind in zip(names, kinds, strict=True)}
    found, expected = interpret(graph, given), loaded.predict(given)
    for name, array in expected.items():
        assert np.array_equal(found[name], array)


def test_three_features_of_large_buckets() -> None:
    """More buckets than a half of 64 bits, of bits whose sign is set."""

    def body(x: Any) -> Any:
        parts = [x, tf.strings.lower(x), tf.fill(tf.shape(x), tf.constant(-5, tf.int64))]
        crossed = tf.raw_ops.SparseCross(
            indices=[],
            values=[],
            shapes=[],
            dense_inputs=parts,
            hashed_output=True,
            num_buckets=1 << 60,
            hash_key=-3,
            out_type=tf.int64,
            internal_type=tf.int64,
        )
        return tf.sparse.to_dense(tf.SparseTensor(*crossed))

    loaded = trace_model(_calls(body))
    graph = convert(loaded.trace)
    (port,) = graph.inputs
    given = {port.name: _FEATURES["string"]}
    found, expected = interpret(graph, given), loaded.predict(given)
    for name, array in expected.items():
        assert np.array_equal(found[name], array)


def test_features_that_stay_sparse_are_refused() -> None:
    def body(x: Any) -> Any:
        return tf.cast(tf.sparse.cross_hashed([x, x], 9).values, tf.float32)

    with pytest.raises(UnsupportedError, match="crossed features that are sparse"):
        convert(trace_model(_calls(body)).trace)


def test_several_features_of_an_example_are_refused() -> None:
    def body(x: Any) -> Any:
        return tf.sparse.to_dense(tf.sparse.cross_hashed([x, x], 9))

    with pytest.raises(UnsupportedError, match="several features of an example"):
        convert(trace_model(_calls(body, (2,))).trace)


def test_operations_have_one_type() -> None:
    graph = convert(trace_model(_calls(_asked)).trace)
    assert sum(isinstance(node.op, ir.TextMatch) for node in graph.nodes) == 3
