"""Text that a model chooses from words that it knows: the place of each word is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from converters.tf import ir
from converters.tf.ir.expressions import is_open
from converters.tf.ir.operands import Operands
from converters.tf.ir.sizes import elements, is_fixed
from converters.tf.lower.graph import Context, Handler, Result, Tensor, Unsupported
from converters.tf.lower.ops.text import classes
from converters.tf.lower.tensors import Spelled, Tokens, Written
from converters.tf.lower.trace import TYPED, Variable

# Ops whose results have no other words than their operands.
MOVED = frozenset(
    [
        *(
            "BroadcastTo",
            "ConcatV2",
            "ExpandDims",
            "Fill",
            "Gather",
            "GatherNd",
            "GatherV2",
            "Pack",
        ),
        *("PadV2", "Reshape", "ResourceGather", "ReverseV2", "Roll", "Select", "SelectV2"),
        *("Slice", "Split", "SplitV", "Squeeze", "StridedSlice", "Tile", "Transpose", "Unpack"),
    ]
)
# Ops that compare words with each other.
COMPARED = frozenset(["Equal", "NotEqual"])


def is_chosen(op: str, args: Sequence[Tensor]) -> bool:
    """Returns whether `chosen` lowers an op of these operands."""
    if op in COMPARED:
        return any(isinstance(arg, Spelled) for arg in args)
    return op in MOVED and any(isinstance(arg, Spelled) or is_known(arg) for arg in args)


def is_known(arg: Tensor) -> bool:
    """Returns whether an operand is a constant of text."""
    known = isinstance(arg, ir.Value | Variable) and arg.data is not None
    return known and arg.data.dtype.kind in "OSU"  # type: ignore[union-attr]


def is_number(size: ir.Dim) -> bool:
    """Returns whether a dimension is a number that is known."""
    return isinstance(size, int) and not is_open(size)


def size_of(text: ir.Value) -> int:
    """Returns how many texts an example has.

    Raises:
        Unsupported: That is not known, or there are none.
    """
    size = elements(text.shape)
    if is_open(size) or size == 0:
        raise Unsupported(f"texts of the shape {ir.shape_text(text.shape)} that are moved")
    return size


def places_of(ctx: Context, text: ir.Value) -> Spelled:
    """Returns the texts of an input as places of them."""
    shape = text.shape
    first = next((d for d in shape if d != 1), 1)
    if not is_fixed(shape) and first != ir.Batch():
        raise Unsupported("texts whose examples are not one after the other")
    numbers = np.arange(size_of(text), dtype=np.int32).reshape(ir.shape_at(shape, 1))
    places = ir.constant(numbers)
    return Spelled(
        places if is_fixed(shape) else ctx.build.broadcast_to(places, shape), (), (text,)
    )


def _spelled(ctx: Context, arg: Tensor) -> Spelled:
    """Returns text as places in a list.

    Raises:
        Unsupported: A call writes it, or changes it.
    """
    if isinstance(arg, Spelled):
        return arg
    if isinstance(arg, Written):
        raise Unsupported("text that is moved after it was joined or taken apart")
    if isinstance(arg, Tokens):
        if arg.flat or arg.reading != ir.Reading() or arg.texts.dtype is not ir.DType.STR:
            raise Unsupported("text that is moved after it was standardized")
        return places_of(ctx, arg.texts)
    if isinstance(arg, ir.Value) and arg.data is None:
        return places_of(ctx, arg)
    return known(arg)


def known(arg: Tensor) -> Spelled:
    """Returns a constant as places of its words."""
    assert isinstance(arg, ir.Value | Variable) and arg.data is not None
    words, places = listed(arg.data)
    return Spelled(ir.constant(places), words)


def listed(texts: ir.Array) -> tuple[tuple[bytes, ...], ir.Array]:
    """Returns the different words of an array, and the place of each in them.

    Raises:
        Unsupported: One is not UTF-8, or ends with a zero, which recorded features can't have.
    """
    found = classes.utf8(texts.ravel())
    for word in found:
        if word.endswith(b"\0"):
            raise Unsupported(f"the word {word!r}, which ends with a zero")
    places: dict[bytes, int] = {}
    numbers = [places.setdefault(word, len(places)) for word in found]
    return tuple(places), np.asarray(numbers, np.int32).reshape(np.shape(texts))


def chosen(ctx: Context, plain: Handler, others: Callable[[Tensor], Tensor]) -> Result:
    """Returns what an op of `MOVED` or `COMPARED` gives for text.

    Args:
        ctx: The node, of whose operands some are text.
        plain: What lowers it for numbers.
        others: Returns an operand that is not text as a tensor.
    """
    texts = {i: _spelled(ctx, arg) for i, arg in enumerate(ctx.args) if _is_text(arg)}
    words = tuple(dict.fromkeys(word for text in texts.values() for word in text.words))
    given = tuple(dict.fromkeys(value for text in texts.values() for value in text.texts))
    if given and ctx.node.op in COMPARED:
        raise Unsupported("text of an input among words that the model compares")
    args = tuple(
        _placed(ctx, texts[i], words, given) if i in texts else others(arg)
        for i, arg in enumerate(ctx.args)
    )
    result = plain(replace(ctx, args=args))
    if ctx.node.op in COMPARED:
        return result
    if isinstance(result, tuple):
        return tuple(_named(part, words, given) for part in result)
    return _named(result, words, given)


def _is_text(arg: Tensor) -> bool:
    given = isinstance(arg, ir.Value) and arg.dtype is ir.DType.STR
    return given or isinstance(arg, Spelled | Tokens | Written) or is_known(arg)


def _placed(
    ctx: Context, text: Spelled, words: Sequence[bytes], given: Sequence[ir.Value]
) -> ir.Value:
    """Returns the places of a text in a longer list."""
    same = text.words == words if text.texts else words[: len(text.words)] == text.words
    if same and given[: len(text.texts)] == text.texts:
        return text.places
    of = {word: place for place, word in enumerate(words)}
    numbers = [of[word] for word in text.words]
    ends = np.cumsum([len(words), *map(size_of, given)])
    for value in text.texts:
        at = given.index(value)
        numbers += range(ends[at], ends[at + 1])
    table = np.asarray(numbers, np.int32)
    if text.places.data is not None:
        return ir.constant(table[text.places.data])
    return ctx.build.gather(ir.constant(table), text.places, 0)


def _named(places: Tensor, words: tuple[bytes, ...], texts: tuple[ir.Value, ...] = ()) -> Tensor:
    if not isinstance(places, ir.Value):
        raise Unsupported("text whose places are not known")
    if places.data is not None and not texts:
        return ir.constant(np.array(words, object)[places.data])
    return Spelled(places, words, texts)


def read(ctx: Context) -> Result | None:
    """Returns what an op of a file format reads from words; nothing for others."""
    text, op = ctx.args[0], ctx.attr(TYPED)
    if not isinstance(text, Spelled) or not isinstance(op, ir.TokenValues | ir.TokenCounts):
        return None
    if text.texts:
        raise Unsupported("text that is moved before it is looked up")
    known = [ctx.array(index) for index in range(1, len(ctx.args))]
    words = np.array(text.words, object)
    (shape,) = op.shapes([words.shape, *(array.shape for array in known)])
    (found,) = op.meaning(Operands([words, *known]), ir.shape_at(shape, 1))
    table = ir.constant(found.astype(ctx.attr("dtypes")[0].numpy))
    return ctx.build.gather(table, text.places, 0)


def looked_up(ctx: Context, plain: Handler) -> Result | None:
    """Returns the words of a table, or nothing if it has numbers.

    Args:
        ctx: The node: table, keys and default.
        plain: What looks numbers up in a table of numbers.
    """
    table = ctx.args[0]
    if not isinstance(table, Variable) or table.entries is None:
        return None
    keys, values = table.entries
    if values.dtype.kind not in "OSU":
        return None
    default = ctx.array(2).ravel()
    if default.size != 1:
        raise Unsupported("a default word for each key")
    words, places = listed(np.append(values.astype(object), default))
    places, other = places[:-1], ir.constant(places[-1])
    numbers = replace(table, entries=(keys, places))
    if not words:
        return None
    found = plain(replace(ctx, args=(numbers, ctx.args[1], other)))
    assert not isinstance(found, tuple)
    return _named(found, words)
