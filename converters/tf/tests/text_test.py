"""Text: Keras' layers that read some, TensorFlow's ops behind them, and what is refused."""

from __future__ import annotations

import io
import re
import string
from dataclasses import replace
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
from converters.tf.errors import FeaturesError
from converters.tf.ir.fixed import open_dims
from converters.tf.ir.interpret import interpret
from converters.tf.ir.ops.hashes import farm, sip
from converters.tf.ir.samples import made_texts
from converters.tf.load.model import LoadOptions, load, trace_model
from converters.tf.lower.convert import convert
from converters.tf.lower.trace import Loaded
from converters.tf.tests.checks import TOLERANCE, difference, model_of
from tools.codegen.cargo import CratePlace
from tools.codegen.conversion import UnsupportedError, UsageError

WORDS = ["the", "fox", "quick", "a", "é", "b", "don't", "dontstopthefox", "😀", "the quick", "日本"]
TEXTS = [
    "",
    "the quick brown fox",
    "  A, b!  C?\tthe\u00a0fox ",
    "É à la carte — “naïve”",
    "😀😀 the 😀",
    "a" * 300 + " fox",
    "[UNK] [MASK]",
    "don't-stop.the,fox",
    "\n\r\x0b\x0c\x1c\x85",
    "the " * 40,
    "İstanbul ß ǅ",
    "\u0301combining e\u0301",
    "zero\0inside the",
    *WORDS,
    string.printable,
]
_BATCH = len(TEXTS)


def texts(shape: tuple[int, ...]) -> ir.Array:
    """Returns all texts in an array, with an example for each."""
    count = int(np.prod(shape, dtype=int))
    found = [TEXTS[(5 * place + of) % _BATCH] for place in range(_BATCH) for of in range(count)]
    return np.array(found, object).reshape(_BATCH, *shape)


def compared(model: keras.Model | Loaded, given: ir.Array | None = None) -> ir.Graph:
    """Converts a model of one input and compares it with Keras."""
    loaded = model if isinstance(model, Loaded) else trace_model(model)
    graph = convert(loaded.trace)
    assert problems(graph) == []
    (port,) = graph.inputs
    shape = tuple(int(d) for d in port.value.shape[1:] if isinstance(d, int))
    arrays = {port.name: texts(shape) if given is None else given}
    found, expected = interpret(graph, arrays), loaded.predict(arrays)
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert difference(found[name], array) <= TOLERANCE, name
    return graph


def _model(layer: Any, shape: tuple[int, ...] = (1,), dtype: str = "string") -> keras.Model:
    return model_of([shape], lambda x: layer(x), [dtype])


_IDF = np.arange(len(WORDS)) / 7

LOOKUPS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "numbers": ({}, (2,)),
    "buckets": ({"num_oov_indices": 3, "mask_token": ""}, (2,)),
    "one hot": ({"output_mode": "one_hot"}, (1,)),
    "multi hot": ({"output_mode": "multi_hot"}, (4,)),
    "count": ({"output_mode": "count"}, (4,)),
    "tf idf": ({"output_mode": "tf_idf", "idf_weights": _IDF}, (4,)),
}


@pytest.mark.parametrize("options", LOOKUPS)
def test_string_lookup(options: str) -> None:
    given, shape = LOOKUPS[options]
    graph = compared(_model(layers.StringLookup(vocabulary=WORDS, **given), shape))
    assert sum(isinstance(node.op, ir.TokenValues) for node in graph.nodes) == 1


@pytest.mark.parametrize("salt", [None, 7, [1, 2**40]])
@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
def test_hashing(salt: Any, mode: str) -> None:
    for mask in (None, ""):
        layer = layers.Hashing(50, salt=salt, mask_value=mask, output_mode=mode)
        compared(_model(layer, (1,) if mode == "one_hot" else (3,)))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_hashing_of_numbers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    numbers = np.array([[0, 1], [-1, 10], [limits.min, limits.max]], dtype)
    compared(_model(layers.Hashing(1000), (2,), dtype), numbers)


VECTORS: dict[str, dict[str, Any]] = {
    "numbers": {"output_sequence_length": 6},
    "neighbours": {"output_sequence_length": 30, "ngrams": 2},
    "numbers of characters": {"output_sequence_length": 9, "split": "character"},
    "lower": {"output_sequence_length": 6, "standardize": "lower"},
    "without punctuation": {"output_sequence_length": 6, "standardize": "strip_punctuation"},
    "as it is": {"output_sequence_length": 6, "standardize": None},
    "multi hot": {"output_mode": "multi_hot"},
    "padded count": {"output_mode": "count", "max_tokens": 30, "pad_to_max_tokens": True},
    "count of characters": {"output_mode": "count", "split": "character"},
    "count of neighbours": {"output_mode": "count", "ngrams": (2, 3)},
    "tf idf": {"output_mode": "tf_idf", "idf_weights": _IDF},
}


@pytest.mark.parametrize("options", VECTORS)
def test_text_vectorization(options: str) -> None:
    for shape in ((1,), ()):
        layer = layers.TextVectorization(vocabulary=WORDS, **VECTORS[options])
        compared(_model(layer, shape))


OPEN: dict[str, dict[str, Any]] = {
    "words": {},
    "characters": {"split": "character"},
    "neighbours": {"ngrams": 2},
}


@pytest.mark.parametrize("options", OPEN)
def test_the_longest_text_decides(options: str) -> None:
    for shape in ((1,), ()):
        graph = compared(_model(layers.TextVectorization(vocabulary=WORDS, **OPEN[options]), shape))
        assert open_dims(graph) == ("tokens",)


@pytest.mark.parametrize("masked", [False, True])
def test_layers_over_the_longest_text(masked: bool) -> None:
    def body(x: Any) -> Any:
        x = layers.TextVectorization(vocabulary=WORDS)(x)
        x = layers.Embedding(len(WORDS) + 2, 4, mask_zero=masked)(x)
        return [layers.GlobalAveragePooling1D()(x), layers.LSTM(3)(x), layers.Conv1D(2, 1)(x)]

    compared(model_of([(1,)], body, ["string"]))


def _both(join: Any) -> keras.Model:
    def body(a: Any, b: Any) -> Any:
        vectors = layers.TextVectorization(vocabulary=WORDS)
        embedding = layers.Embedding(len(WORDS) + 2, 4)
        return join([embedding(vectors(a)), embedding(vectors(b))])

    return model_of([(1,), (1,)], body, ["string"] * 2)


def test_the_longest_of_two_inputs() -> None:
    loaded = trace_model(_both(layers.Concatenate(axis=1)))
    graph = convert(loaded.trace)
    assert open_dims(graph) == ("tokens", "tokens_2")
    first, second = (port.name for port in graph.inputs)
    arrays = {first: texts((1,)), second: texts((1,))[::-1][:, :1]}
    arrays[second] = np.array([[text[:9]] for (text,) in arrays[second]], object)
    found, expected = interpret(graph, arrays), loaded.predict(arrays)
    for name, array in expected.items():
        assert difference(found[name], array) <= TOLERANCE


def test_texts_that_are_read_twice_have_one_length() -> None:
    def body(x: Any) -> Any:
        vectors = layers.TextVectorization(vocabulary=WORDS)
        embeddings = [layers.Embedding(len(WORDS) + 2, 4) for _ in range(2)]
        return layers.Add()([embedding(vectors(x)) for embedding in embeddings])

    assert open_dims(compared(model_of([(1,)], body, ["string"]))) == ("tokens",)


def test_two_lengths_are_not_one() -> None:
    loaded = trace_model(_both(layers.Add()))
    with pytest.raises(UnsupportedError, match=r"tokens_2, 4.*don't broadcast"):
        tf2rust.graph_of(loaded)


@pytest.mark.parametrize("most", [0, 3])
def test_texts_are_made_within_a_bound(most: int, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    _model(layers.TextVectorization(vocabulary=WORDS)).save(path)
    options = Options("net", "net")
    if most:
        options = replace(options, profile=Profile.NO_STD, most=(("tokens", most),))
    files = tf2rust.run(tf2rust.Request(path, options, crate_only=True)).files
    with np.load(io.BytesIO(files["rust_generated_code/testdata/features.npz"])) as found:
        length = found["predictions"].shape[1]
    assert length == most if most else length > 3


def test_whole_texts_as_tokens() -> None:
    compared(_model(layers.TextVectorization(vocabulary=WORDS, split=None)))


def _classifier(**options: Any) -> keras.Model:
    def body(x: Any) -> Any:
        x = layers.TextVectorization(vocabulary=WORDS, output_sequence_length=8, **options)(x)
        x = layers.Embedding(len(WORDS) + 2, 4)(x)
        x = layers.GlobalAveragePooling1D()(x)
        return layers.Dense(1, activation="sigmoid")(x)

    return model_of([(1,)], body, ["string"])


def _without_tags(text: Any) -> Any:
    text = tf.strings.regex_replace(tf.strings.lower(text), "<br />", " ")
    return tf.strings.regex_replace(text, f"[{re.escape(string.punctuation)}]", "")


def _fields(text: Any) -> Any:
    return tf.strings.split(text, sep=",")


def test_classifier() -> None:
    compared(_classifier())
    tagged = np.array([["The<br />fox<br /><br/>A"], ["<br <br />b"], ["<br />"]], object)
    compared(_classifier(standardize=_without_tags), tagged)
    fields = np.array([["the,fox,,a"], [","], [""], ["é"]], object)
    compared(_classifier(standardize=None, split=_fields), fields)


@pytest.mark.parametrize("form", ["keras", "saved_model"])
def test_files(form: str, tmp_path: Path) -> None:
    path = tmp_path / ("model.keras" if form == "keras" else "model")
    model = _classifier()
    model.save(path) if form == "keras" else model.export(path, verbose=False)
    compared(load(path, LoadOptions()))


_PATTERNS = [
    ("[^a-z0-9 ]", ""),
    ("[^a-z0-9 ]+", ""),
    ("[^[:alnum:]]", "_"),
    ("[[:punct:]]", " "),
    ("[]a-]", "x"),
    (r"[\s\d]", "."),
    (r"[\W]", ""),
    (r"\s", "__"),
    (r"\S", "s"),
    (r"\.", ""),
    ("<br />", r"\\"),
    ("the", "THE"),
    ("é", "e"),
    (r"a\+b", "sum"),
]


@pytest.mark.parametrize(("pattern", "rewrite"), _PATTERNS)
def test_regular_expressions(pattern: str, rewrite: str) -> None:
    class Replace(layers.Layer):  # type: ignore[misc]  # Keras has no types.
        def call(self, x: Any) -> Any:
            x = tf.strings.regex_replace(x, pattern, rewrite)
            return tf.strings.to_hash_bucket_fast(tf.strings.upper(x), 1 << 20)

    given = np.array([[*TEXTS, "aa+b<br />.thethe<br / >é9\t "]], object).T
    compared(_model(Replace()), given)


def _calls(body: Any, dtype: str = "string") -> keras.Model:
    class Calls(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return body(x)

    return model_of([(1,)], lambda x: Calls()(x), [dtype])


def _number(x: Any) -> Any:
    return tf.strings.to_hash_bucket_fast(x, 10)


def _given_on(x: Any) -> Any:
    bucket, word = _number(x), tf.equal(x, "the")
    first, text, second = tf.raw_ops.IdentityN(input=[bucket, x, word])
    return first + tf.cast(second, tf.int64) + _number(tf.strings.upper(text))


def test_numbers_and_texts_that_are_given_on_together() -> None:
    compared(_calls(_given_on))


REFUSED: dict[str, tuple[Any, str]] = {
    "longest": (
        lambda x: layers.TextVectorization(vocabulary=["1"], standardize=None)(
            tf.strings.as_string(_number(x))
        ),
        "the longest of texts that no input gives",
    ),
    "given": (lambda x: tf.equal(tf.where(_number(x) > 3, x, "a"), "b"), "words that the model"),
    "moved": (lambda x: _number(tf.where(_number(x) > 3, x, "a")), "text that no input gives"),
    "changed": (
        lambda x: tf.where(_number(x) > 3, tf.strings.lower(x), "a"),
        "moved after it was standardized",
    ),
    "joined and moved": (
        lambda x: tf.where(_number(x) > 3, tf.strings.join([x, x]), "a"),
        "moved after it was joined",
    ),
    "zero": (lambda x: tf.gather(["a", "b\0"], _number(x) % 2), "which ends with a zero"),
    "word": (lambda x: tf.gather(np.array([b"a", b"\xff"]), _number(x) % 2), "which is not UTF-8"),
    "words": (lambda x: _number(tf.gather(["a", "b"], _number(x) % 2)), "text that no input gives"),
    "unicode": (lambda x: _number(tf.strings.lower(x, "utf-8")), "text that no input gives"),
    "expression": (lambda x: _number(tf.strings.regex_replace(x, "a|b", "")), r"expression 'a\|b'"),
    "any": (lambda x: _number(tf.strings.regex_replace(x, "a.b", "")), "expression 'a.b'"),
    "match": (lambda x: _number(tf.strings.regex_replace(x, "[a]", r"\0")), "parts of a match"),
    "first": (
        lambda x: _number(tf.strings.regex_replace(x, "a", "", replace_global=False)),
        "first match alone",
    ),
    "joined": (lambda x: _number(tf.strings.join([x, x])), "text that no input gives"),
    "compared": (lambda x: tf.equal(x, tf.strings.lower(x)), "text that is standardized"),
    "separator": (
        lambda x: _number(tf.strings.split(x[:, 0], "--").to_tensor(shape=[None, 3])),
        "the separator b'--'",
    ),
    "tokens": (
        lambda x: _number(tf.strings.split(x[:, 0]).to_tensor(shape=[None, 3])),
        "text that no input gives",
    ),
    "buckets": (lambda x: tf.strings.to_hash_bucket_fast(x, 1 << 40), "buckets of a hash; at most"),
    "not UTF-8": (lambda x: tf.equal(x, b"\xff\xfe"), "which is not UTF-8"),
    "pattern that is not UTF-8": (
        lambda x: _number(tf.strings.regex_replace(x, b"\xff", "")),
        "not UTF-8",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    body, message = REFUSED[case]
    with pytest.raises(UnsupportedError, match=message):
        convert(trace_model(_calls(body)).trace)


INVERTED: dict[str, dict[str, Any]] = {
    "words": {},
    "mask": {"mask_token": ""},
    "word of a mask": {"mask_token": "the quick\u202e", "num_oov_indices": 3},
}


@pytest.mark.parametrize("options", INVERTED)
def test_words_of_numbers(options: str) -> None:
    given = np.array([[0, 1, 2], [-7, 5, 11], [12, 13, 40], [10, 4, 1 << 40]])
    layer = layers.StringLookup(vocabulary=WORDS, invert=True, **INVERTED[options])
    graph = compared(_model(layer, (3,), "int64"), given)
    assert [port.dtype for port in graph.outputs] == [ir.DType.STR]


def _chosen(x: Any) -> Any:
    words = tf.constant(["the", "é", "", "日本"])
    first = tf.gather(words, _number(x) % 4)
    second = tf.where(tf.equal(x, "fox"), "fox", tf.reshape(first, [-1, 1]))
    both = tf.concat([first, second, tf.fill(tf.shape(x), "the")], 1)
    return tf.where(tf.equal(both, tf.reverse(both, [1])), both[:, ::-1], "other")


@pytest.mark.parametrize("compare", [tf.equal, tf.not_equal])
def test_texts_that_are_compared(compare: Any) -> None:
    class Compare(layers.Layer):  # type: ignore[misc]
        def call(self, a: Any, b: Any) -> Any:
            return compare(a, b)

    model = model_of([(2,), (2,)], lambda a, b: Compare()(a, b), ["string"] * 2)
    loaded = trace_model(model)
    graph = convert(loaded.trace)
    first, second = (port.name for port in graph.inputs)
    arrays = {first: texts((2,)), second: texts((2,))}
    arrays[second][::2] = "the"
    (found,), (expected,) = interpret(graph, arrays).values(), loaded.predict(arrays).values()
    assert found.any()
    assert not found.all()
    assert np.array_equal(found, expected)
    columns = model_of([(2,), (1,)], lambda a, b: Compare()(a, b), ["string"] * 2)
    ((_, reason),) = problems(convert(trace_model(columns).trace))
    assert reason == "texts [batch, 1] compared as [batch, 2]"


def test_words_that_other_words_choose() -> None:
    compared(_calls(_chosen))


def test_words_of_a_table_of_words() -> None:
    start = tf.lookup.KeyValueTensorInitializer(WORDS, WORDS[::-1])
    table = tf.lookup.StaticHashTable(start, "none")
    compared(_calls(lambda x: table.lookup(x)))


def test_labels_of_a_classifier(tmp_path: Path) -> None:
    class Labels(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return tf.gather(tf.constant(["spam", "ham"]), tf.argmax(x, -1))

    def body(x: Any) -> Any:
        x = layers.Dense(2)(x)
        return [x, Labels()(x)]

    model = model_of([(3,)], body)
    given = np.random.default_rng(1).normal(size=(9, 3)).astype(np.float32)
    compared(model, given)
    model.export(tmp_path / "model", verbose=False)
    compared(load(tmp_path / "model", LoadOptions()), given)


def _request(folder: Path, features: Path | None = None, **options: Any) -> tf2rust.Request:
    path = folder / "model.keras"
    _classifier().save(path)
    chosen = Options("net", "model.keras", **options)
    return tf2rust.Request(path, chosen, features=features, crate_only=True)


def test_tensors_of_firmware_take_no_text(tmp_path: Path) -> None:
    place = CratePlace("path", "embedded")
    with pytest.raises(UsageError, match=r"the input .* borrows its text"):
        tf2rust.run(_request(tmp_path, profile=Profile.NO_STD, embedded=place))


def test_the_description_of_the_model_has_numbers_alone(tmp_path: Path) -> None:
    files = tf2rust.run(replace(_request(tmp_path), crate_only=False)).files
    (name,) = (path for path in files if path.endswith("model_weights.npz"))
    with np.load(io.BytesIO(files[name])) as found:
        assert {found[key].dtype for key in found.files} == {np.dtype(np.float32)}
        assert {(len(WORDS) + 2, 4), (4, 1)} <= {found[key].shape for key in found.files}


def test_recorded_texts(tmp_path: Path) -> None:
    features = tmp_path / "features.npz"
    recorded = np.array([["the fox"], ["é 😀"], [""], ["Ünknown, words."]])
    path = _request(tmp_path).model
    name = load(path, LoadOptions()).trace.inputs[0].name
    records: dict[str, Any] = {name: recorded}
    np.savez(features, **records)
    request = tf2rust.Request(path, Options("net", "net"), features=features, crate_only=True)
    files = tf2rust.run(request).files
    with np.load(io.BytesIO(files["rust_generated_code/testdata/features.npz"])) as found:
        assert found[name].tolist() == recorded.tolist()
    records = {name: np.zeros((2, 1), np.float32)}
    np.savez(features, **records)
    with pytest.raises(FeaturesError, match="expected text"):
        tf2rust.run(request)


def test_recorded_words(tmp_path: Path) -> None:
    model = _model(layers.StringLookup(vocabulary=["é", "b"], invert=True), (1,), "int64")
    path, features = tmp_path / "model.keras", tmp_path / "features.npz"
    model.save(path)
    name = load(path, LoadOptions()).trace.inputs[0].name
    request = tf2rust.Request(path, Options("net", "net"), features=features, crate_only=True)
    records: dict[str, Any] = {name: np.array([[1], [0], [2]])}
    words = np.array([["é"], ["[UNK]"], ["b"]])
    np.savez(features, predictions=words, **records)
    files = tf2rust.run(request).files
    with np.load(io.BytesIO(files["rust_generated_code/testdata/features.npz"])) as found:
        assert found["predictions"].tolist() == words.tolist()
    assert '"\u00e9"' in files["rust_generated_code/src/words.rs"].decode()
    np.savez(features, predictions=words[::-1], **records)
    with pytest.raises(FeaturesError, match="other text than the model gives"):
        tf2rust.run(request)


def test_hashes() -> None:
    random = np.random.default_rng(3)
    for size in [*range(70), 127, 128, 129, 191, 192, 193, 1000]:
        text = random.bytes(size)
        key = [int(k) for k in random.integers(0, 1 << 62, 2)]
        fast = tf.strings.to_hash_bucket_fast([text], 1 << 62).numpy()[0]
        strong = tf.strings.to_hash_bucket_strong([text], 1 << 62, key).numpy()[0]
        assert farm(text) % (1 << 62) == fast
        assert sip(text, (key[0], key[1])) % (1 << 62) == strong


def test_recorded_texts_have_words_of_the_model() -> None:
    graph = convert(trace_model(_classifier()).trace)
    found = [str(text) for text in made_texts(graph, graph.inputs[0].value, (8, 1)).ravel()]
    assert found == [str(t) for t in made_texts(graph, graph.inputs[0].value, (8, 1)).ravel()]
    assert any("fox" in text.lower() for text in found)
    assert any(not text.isascii() for text in found)
