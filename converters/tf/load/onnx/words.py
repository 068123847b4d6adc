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
import tensorflow as tf

from converters.tf import ir
from converters.tf.ir import Array, Batch, Shape
from converters.tf.ir.expressions import is_open, unknown
from converters.tf.ir.sizes import broadcast
from converters.tf.load.onnx.context import Context, Handler, Result, Session
from converters.tf.load.onnx.values import Known, Tensor, wrapped
from converters.tf.load.saved_model.replay import Refused
from converters.tf.lower.graph import Unsupported
from converters.tf.lower.ops.text.automata import automaton
from converters.tf.lower.ops.text.patterns import characters_of

# Letters beyond ASCII whose small letters are of ASCII.
_SMALL = (("\u0130", "i"), ("\u212a", "k"))
_SMALL_LETTERS: tuple[ir.Change, ...] = (
    *(ir.Every(of.encode(), small.encode()) for of, small in _SMALL),
    ir.Letters.LOWER,
)
_SPACES = frozenset(b"\t\n\v\f\r ")


@dataclass(frozen=True)
class _Normal:
    """What a `StringNormalizer` does.

    Attributes:
        action: What the letters become: `NONE`, `LOWER` or `UPPER`.
        stops: Texts that are removed.
        exact: Whether these are compared letter by letter, or as small letters.
    """

    action: str
    stops: tuple[str, ...]
    exact: bool


@dataclass(eq=False)
class Texts(Tensor):
    """Texts that are standardized and perhaps taken apart: `shape` is that of the texts.

    Attributes:
        reading: How they become words.
        apart: Whether they are taken apart.
        steps: What the operators that standardize them do, in their order.
        session: The replay, whose nodes they may become.
    """

    reading: ir.Reading = field(default_factory=ir.Reading)
    apart: bool = False
    steps: tuple[_Normal, ...] = ()
    session: Any = None

    @property
    def stops(self) -> frozenset[str]:
        """Returns the texts that are removed."""
        return frozenset(word for step in self.steps for word in step.stops)

    @property
    def capital(self) -> bool:
        """Returns whether letters become capital: of all alphabets, which no reading says."""
        return any(step.action == "UPPER" for step in self.steps)


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
    """Returns the labels of classes: integers, or the bytes of words.

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
        if value.apart or value.stops or value.capital:
            raise Refused(
                "words that an expression matches, or texts that are removed or become capital"
            )
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
    if not isinstance(value, Tensor) or value.dtype != "string":
        raise Refused("texts that are not an input")
    return Texts(value.shape, value.forms, session=ctx.session)


def _readable(ctx: Context) -> Texts:
    """Returns texts along one axis, as a reading says them."""
    texts = _texts(ctx)
    if texts.rank != 1:
        raise Refused("texts of more than one axis")
    if texts.capital:
        raise Refused("capital letters of other alphabets; take small ones")
    return texts


def _normalized(ctx: Context) -> Result:
    """Changes the case of texts, and removes some.

    A text that is a stop word keeps its place if words are counted: none of them is known.
    """
    texts = _texts(ctx)
    action = ctx.text("case_change_action", "NONE", ["NONE", "LOWER", "UPPER"])
    stops = tuple(utf8_words(ctx.attr("stopwords") or []))
    if texts.apart:
        raise Refused("words that are changed; change the texts")
    step = _Normal(action, stops, bool(ctx.attr("is_case_sensitive", 0)))
    texts = replace(texts, steps=(*texts.steps, step))
    if action != "LOWER":
        return texts
    changes = (*texts.reading.changes, *_SMALL_LETTERS)
    return replace(texts, reading=replace(texts.reading, changes=changes))


def standardized(texts: Texts) -> Any:
    """Returns texts as a tensor of TensorFlow.

    Raises:
        Refused: They are taken apart, or there is no op for what becomes of them.
    """
    if texts.apart:
        raise Refused("words that stay text")
    steps = [step for step in texts.steps if step.stops or step.action != "NONE"]
    if len(steps) > 1:
        raise Refused("texts that are standardized twice")
    x = texts.form()
    for step in steps:
        if step.stops:
            x = _without(texts.session, x, step)
        if step.action != "NONE":
            change = tf.strings.lower if step.action == "LOWER" else tf.strings.upper
            x = change(x, encoding="utf-8")
    return x


def finished(texts: Texts) -> Tensor:
    """Returns texts as an operator reads them.

    Raises:
        Refused: As `standardized`, or a call counts how many there are.
    """
    if texts.stops:
        raise Refused("texts of which some are removed, where a tensor is read")
    return wrapped(standardized(texts), None, Batch(), texts.shape)


def _without(session: Session, x: Any, step: _Normal) -> Any:
    """Returns texts of which some are removed; of which none is left, an empty one.

    Raises:
        Refused: How many there are is not known, or words differ from texts in other letters.
    """
    sizes = x.shape.as_list()
    if None in sizes or len(sizes) > 2 or (len(sizes) == 2 and sizes[0] != 1):
        raise Refused("texts that are removed from a batch of any size; fix it by --batch")
    words = [word if step.exact else word.lower() for word in dict.fromkeys(step.stops)]
    if not step.exact and not all(word.isascii() for word in words):
        raise Refused("texts that are removed, in large or small letters of other alphabets")
    reading = ir.Reading() if step.exact else ir.Reading(_SMALL_LETTERS)
    known = sorted(word.encode() for word in dict.fromkeys(words))
    joined, ends = ir.packed_words(known)
    found = np.array([*(False for _ in known), True, True])
    operands = [session.tensor(Known(data)) for data in (found, joined, ends)]
    flat = tf.reshape(x, [-1])
    kept = session.typed(ir.TokenValues(reading, ir.Rest()), [flat, *operands], ir.DType.BOOL)
    # The text after the last one is there if no other is.
    kept = tf.concat([kept, ~tf.reduce_any(kept, keepdims=True)], 0)
    left = tf.boolean_mask(tf.concat([flat, [""]], 0), kept)
    return left if len(sizes) == 1 else left[None]


def _joined(ctx: Context) -> Result:
    """Joins the texts of two tensors."""
    shapes = [ctx.shape(index) for index in range(2)]
    if any(not isinstance(value, Tensor | Known) for value in ctx.args):
        raise Refused("text that is joined with other than text")
    return ctx.elementwise(lambda *sides: tf.strings.join(_broadcast(sides, shapes)))


def _broadcast(sides: Sequence[Any], shapes: Sequence[Shape]) -> list[Any]:
    """Returns texts of one shape, or of which one has no axis."""
    whole = broadcast(*shapes)
    if any(isinstance(d, Batch) or is_open(d) for d in whole):
        return [
            tf.reshape(side, []) if set(shape) <= {1} and shape != whole else side
            for side, shape in zip(sides, shapes, strict=True)
        ]
    return [
        side if shape == whole else tf.broadcast_to(side, whole)
        for side, shape in zip(sides, shapes, strict=True)
    ]


def _split(ctx: Context) -> Result:
    """Takes texts apart: their tokens, and how many each has."""
    value, separator = ctx.value(0), str(ctx.attr("delimiter") or "").encode()
    if not isinstance(value, Tensor) or value.dtype != "string":
        raise Refused("texts that are not an input")
    if len(separator) > 1 or separator > b"\x7f":
        raise Refused(f"the delimiter {separator!r}; it may be white space, or one of ASCII")
    limit = ctx.attr("maxsplit")
    most = 0 if limit is None or int(limit) < 0 else int(limit) + 1
    split = ir.Split("byte", separator[0]) if separator else ir.Split("space")
    x, shape = ctx.form(0), ctx.shape(0)
    if 0 in shape:
        # The longest of no texts has no token.
        none = np.zeros([0 if isinstance(d, Batch) else d for d in shape], np.int64)
        return [Known(np.zeros((*none.shape, 0), object)), Known(none)]
    op = ir.SplitText(ir.Reading((), replace(split, most=most)), unknown("tokens"))
    tokens = ctx.session.typed(op, [x], ir.DType.STR)
    counts = ir.TokenCounts(ir.Reading((), split), ir.Rest(), 1, binary=False)
    operands = [x, _constant(ctx, np.zeros(1, np.int32))]
    count = tf.squeeze(ctx.session.typed(counts, operands, ir.DType.I64), -1)
    if most:
        count = tf.minimum(count, np.int64(most))
    return [ctx.result(tokens, None, (*shape, op.row)), ctx.result(count, None, shape)]


def _apart(ctx: Context) -> Result:
    """Takes texts apart: into runs of some characters, or into characters."""
    texts, expression = _readable(ctx), ctx.attr("tokenexp")
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
    texts = _readable(ctx)
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
    "StringConcat": _joined,
    "StringNormalizer": _normalized,
    "StringSplit": _split,
    "com.microsoft.Tokenizer": _apart,
}
# What takes `Texts`.
OF_TEXTS: Mapping[str, Handler] = {
    "RegexFullMatch": _matched,
    "StringNormalizer": _normalized,
    "com.microsoft.Tokenizer": _apart,
    "Flatten": _same,
    "TfIdfVectorizer": _counted,
}
