"""Operators of text: words that are looked up, and texts whose words are counted.

scikit-learn's text pipelines standardize a text, take it apart and count the n-grams of a
vocabulary. Between these operators there is no tensor here: how many words a text has is not
known. What they say of the text becomes one op.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.ir import Array
from converters.tf.load.onnx.context import Context, Handler, Result
from converters.tf.load.onnx.values import Known, Tensor
from converters.tf.load.saved_model.replay import Refused
from converters.tf.lower.graph import Unsupported
from converters.tf.lower.ops.text.automata import automaton
from converters.tf.lower.ops.text.patterns import characters_of

# Letters beyond ASCII whose small letters are of ASCII.
_SMALL = (("\u0130", "i"), ("\u212a", "k"))
_SPACES = frozenset(b"\t\n\v\f\r ")


@dataclass(eq=False)
class Texts(Tensor):
    """Texts that are standardized and perhaps taken apart: `shape` is that of the texts.

    Attributes:
        reading: How they become words.
        apart: Whether they are taken apart.
        without: The node that removes texts which are stop words, or nothing.
        stops: These words.
    """

    reading: ir.Reading = field(default_factory=ir.Reading)
    apart: bool = False
    without: str = ""
    stops: frozenset[str] = frozenset()


def utf8_words(words: Sequence[str]) -> Sequence[str]:
    """Returns words.

    Raises:
        Refused: One is not UTF-8.
    """
    if any("\ufffd" in word for word in words):
        raise Refused("a word that is not UTF-8")
    return words


def words_of(words: Sequence[str]) -> list[bytes]:
    """Returns the bytes of words.

    Raises:
        Refused: One is not UTF-8, or is there twice.
    """
    utf8_words(words)
    if len(set(words)) < len(words):
        raise Refused("a word that is there twice")
    return [word.encode() for word in words]


def labels_of(ctx: Context, numbers: str, words: str) -> Array:
    """Returns the labels of classes: whole numbers, or the bytes of words.

    Args:
        ctx: The node.
        numbers: The attribute of labels that are numbers.
        words: The attribute of labels that are words.

    Raises:
        Refused: The node has none, or one that is not UTF-8.
    """
    found = ctx.attr(numbers)
    if found:
        return np.asarray(found, np.int64)
    found = ctx.attr(words)
    if not found:
        raise Refused("classes without labels")
    return np.array([word.encode() for word in utf8_words(found)], object)


def _constant(ctx: Context, data: Array, role: str = "") -> Any:
    return ctx.session.tensor(Known(data, role=role))


def _vocabulary(ctx: Context, words: Sequence[bytes], order: Sequence[int]) -> list[Any]:
    joined, ends = ir.packed_words([words[place] for place in order])
    return [_constant(ctx, joined, "words"), _constant(ctx, ends)]


def looked_up(ctx: Context, words: Sequence[bytes], table: Array) -> Result:
    """Returns the number of each word, of a table with one more for all others."""
    order = sorted(range(len(words)), key=lambda place: words[place])
    # What stands where a text has no more tokens is never read: each text is one token.
    values = np.concatenate([table[order], table[-1:], table[-1:]])
    operands = [_constant(ctx, values), *_vocabulary(ctx, words, order)]
    op, dtype = ir.TokenValues(ir.Reading(), ir.Rest()), ir.DType.of(values.dtype)
    return ctx.elementwise(lambda x: ctx.session.typed(op, [x, *operands], dtype), 0)


def _matched(ctx: Context) -> Result:
    """Says of each text whether an expression matches it as a whole."""
    value = ctx.value(0)
    changes: tuple[ir.Change, ...] = ()
    if isinstance(value, Texts):
        if value.apart or value.without:
            raise Refused("words that an expression matches, or texts of which some are removed")
        changes = value.reading.changes
    try:
        found = automaton(str(ctx.attr("pattern")))
    except Unsupported as err:
        raise Refused(str(err)) from err
    table = [_constant(ctx, found.classes, "classes"), _constant(ctx, found.next, "states")]
    op = ir.TextMatch(changes, found.start, found.matching)
    return ctx.elementwise(lambda x: ctx.session.typed(op, [x, *table], ir.DType.BOOL), 0)


def _texts(ctx: Context) -> Texts:
    value = ctx.value(0)
    if isinstance(value, Texts):
        return value
    if not isinstance(value, Tensor) or value.dtype != "string" or value.rank != 1:
        raise Refused("texts that are computed, or of more than one axis")
    return Texts(value.shape, value.forms)


def _normalized(ctx: Context) -> Result:
    """Changes the case of texts.

    A text that is a stop word keeps its place: if words are counted, none of them is known.
    """
    texts = _texts(ctx)
    action = ctx.text("case_change_action", "NONE", ["NONE", "LOWER", "UPPER"])
    if ctx.attr("stopwords"):
        stops = texts.stops.union(utf8_words(ctx.attr("stopwords")))
        texts = replace(texts, without=texts.without or ctx.node.title, stops=stops)
    if texts.apart:
        raise Refused("words that are changed; change the texts")
    if action == "NONE":
        return texts
    if action == "UPPER":
        raise Refused("capital letters of other alphabets; take small ones")
    special = [ir.Every(of.encode(), small.encode()) for of, small in _SMALL]
    changes = (*texts.reading.changes, *special, ir.Letters.LOWER)
    return replace(texts, reading=replace(texts.reading, changes=changes))


def _apart(ctx: Context) -> Result:
    """Takes texts apart: into runs of some characters, or into characters."""
    texts, expression = _texts(ctx), ctx.attr("tokenexp")
    if texts.apart or ctx.attr("mark", 0) or ctx.attr("stopwords"):
        raise Refused("words with marks around, without stopwords, or taken apart again")
    if not expression or int(ctx.attr("mincharnum", 1)) != 1:
        raise Refused("words between separators, or of a least length; give a tokenexp")
    changes, split = texts.reading.changes, ir.Split("characters")
    if expression != ".":
        try:
            kept = characters_of(str(expression))
        except Unsupported as err:
            raise Refused(str(err)) from err
        if kept.ascii & _SPACES:
            raise Refused("words with white space inside")
        other = ir.Characters(frozenset(range(128)) - kept.ascii, not kept.beyond)
        changes, split = (*changes, ir.Each(other, b" ")), ir.Split("space")
    return replace(texts, reading=replace(texts.reading, changes=changes, split=split), apart=True)


def _same(ctx: Context) -> Result:
    """Leaves words as they are: a row for each text."""
    value = ctx.value(0)
    if isinstance(value, Texts) and value.apart and int(ctx.attr("axis", 1)) == 1:
        return value
    raise Refused("words in another shape")


def _counted(ctx: Context) -> Result:
    """Counts the n-grams of a vocabulary."""
    texts = _texts(ctx)
    if not texts.apart:
        raise Refused("texts that are not taken apart")
    pool, mode = ctx.attr("pool_strings") or [], ctx.text("mode", "TF", ["TF", "IDF", "TFIDF"])
    least, most = (int(ctx.attr(f"{n}_gram_length")) for n in ("min", "max"))
    if most > 1 and int(ctx.attr("max_skip_count", 0)):
        raise Refused("n-grams of words that are apart")
    starts = [*map(int, ctx.attr("ngram_counts")), len(pool)]
    columns = [int(column) for column in ctx.attr("ngram_indexes")]
    between = "" if texts.reading.split.at == "characters" else " "
    _check(texts.reading, pool)
    if texts.stops.intersection(pool):
        raise Refused("a vocabulary with stop words in it")
    grams: list[str] = []
    for size, (start, end) in enumerate(itertools.pairwise(starts), 1):
        found = [between.join(pool[at : at + size]) for at in range(start, end, size)]
        grams += found if least <= size <= most else [""] * len(found)
    kept = [place for place, gram in enumerate(grams) if gram]
    if len(grams) != len(columns) or len(set(columns)) < len(columns) or not kept:
        raise Refused(f"{len(grams)} n-grams for {len(columns)} columns, or two for one")
    words = words_of([grams[place] for place in kept])
    order = sorted(range(len(words)), key=lambda place: words[place])
    bins = np.array([*(columns[kept[place]] for place in order), -1], np.int32)
    count = max(columns) + 1
    sizes = range(least, min(most, len(starts) - 1) + 1)
    reading = replace(texts.reading, widths=tuple(sizes), between=between.encode())
    op = ir.TokenCounts(reading, ir.Rest(), count, mode == "IDF")
    operands = [texts.form(), _constant(ctx, bins), *_vocabulary(ctx, words, order)]
    y = ctx.session.typed(op, operands, ir.DType.F32)
    if mode != "TF" and ctx.attr("weights"):
        weights = np.ones(count, np.float32)
        weights[columns] = ctx.attr("weights")
        y = y * _constant(ctx, weights, "weights")
    return ctx.result(y)


def _check(reading: ir.Reading, pool: Sequence[str]) -> None:
    """Refuses words that could be taken for others, or whose small letters are not of ASCII."""
    characters = reading.split.at == "characters"
    if any(len(word) != 1 if characters else not word or set(word) & set(" #") for word in pool):
        raise Refused("words with white space, without letters, or like the padding")
    if ir.Letters.LOWER in reading.changes and not all(word.isascii() for word in pool):
        raise Refused("small letters of other alphabets; convert without lowercase")


OPS: Mapping[str, Handler] = {
    "RegexFullMatch": _matched,
    "StringNormalizer": _normalized,
    "com.microsoft.Tokenizer": _apart,
}
# What takes `Texts` besides.
OF_TEXTS: Mapping[str, Handler] = {**OPS, "Flatten": _same, "TfIdfVectorizer": _counted}
