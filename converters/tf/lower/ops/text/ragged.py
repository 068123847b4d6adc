"""The tokens of texts: how TensorFlow says where they lie, and what becomes of their numbers.

Ops such as `tf.strings.split` give all tokens of a call one after the other, and numbers from which
their texts follow. Here these numbers are never computed: what reads them is recognized.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from converters.tf import ir
from converters.tf.ir.dimensions import names
from converters.tf.ir.expressions import unknown
from converters.tf.ir.symbolic import Symbol
from converters.tf.lower.graph import Context, Result, Tensor, Unsupported
from converters.tf.lower.ops.math.elementwise import simplified
from converters.tf.lower.ops.text import classes, written
from converters.tf.lower.tensors import Classes, Partition, Tokens, Unknown
from converters.tf.lower.trace import TYPED

_LONGEST = "the longest of texts that no input gives decides how many tokens there are"


def tokens_of(arg: Tensor) -> Tokens | None:
    """Returns texts or tokens, or nothing for other operands."""
    if isinstance(arg, ir.Value) and arg.dtype is ir.DType.STR and arg.data is None:
        return Tokens(arg, ir.Reading())
    return arg if isinstance(arg, Tokens) else None


def _texts(ctx: Context) -> Tokens:
    """Returns texts along one axis."""
    found = tokens_of(ctx.args[0])
    if found is None or found.flat:
        raise Unsupported("text that no input gives")
    if found.texts.rank != 1:
        raise Unsupported(f"texts of rank {found.texts.rank} that are taken apart")
    return found


def _apart(tokens: Tokens, split: ir.Split) -> Tokens:
    if split.at == "space" and not split.most:
        return replace(tokens, reading=tokens.reading.at_spaces(), flat=True)
    return replace(tokens, reading=replace(tokens.reading, split=split), flat=True)


def _split(ctx: Context) -> Result:
    most = max(0, int(ctx.attr("maxsplit", -1)))
    (separator,) = classes.utf8(ctx.array(1).ravel())
    if len(separator) > 1 or separator > b"\x7f":
        raise Unsupported(f"the separator {separator!r}; it may be white space, or one of ASCII")
    split = ir.Split("byte", separator[0]) if separator else ir.Split("space")
    if most and not separator:
        # TensorFlow gives an empty token after the last one.
        raise Unsupported("texts that are taken apart at some white space only")
    tokens = _apart(_texts(ctx), replace(split, most=most and most + 1))
    return Partition(tokens, "index"), tokens, Partition(tokens, "shape")


def _decoded(ctx: Context) -> Result:
    # A text of Rust is UTF-8, so that nothing is replaced.
    if ctx.attr("input_encoding", "").upper() not in ("UTF-8", "UTF8"):
        raise Unsupported("text of another encoding than UTF-8")
    if ctx.attr("replace_control_characters", False):
        raise Unsupported("control characters that are replaced")
    tokens = _apart(_texts(ctx), ir.Split("characters"))
    return Partition(tokens, "splits"), Partition(tokens, "codes")


def _encoded(ctx: Context) -> Result:
    codes, each = ctx.args
    if not _is(codes, "codes") or not _is(each, "each"):
        raise Unsupported("characters that are joined")
    assert isinstance(codes, Partition)
    return codes.tokens


def _is(arg: Tensor, *forms: str) -> bool:
    return isinstance(arg, Partition) and arg.form in forms


def _joined(ctx: Context) -> Result:
    tokens, splits = ctx.args
    if not isinstance(tokens, Tokens) or tokens.reading.widths != (1,):
        raise Unsupported("n-grams of other text than tokens")
    _check(tokens, splits, "splits")
    padded = any(ctx.attr(name, "") for name in ("left_pad", "right_pad"))
    if padded or ctx.attr("pad_width", 0) or ctx.attr("preserve_short_sequences", False):
        raise Unsupported("n-grams that reach over the ends of a text")
    (between,) = classes.utf8([ctx.attr("separator", "")])
    widths = tuple(int(width) for width in ctx.attr("ngram_widths", ()))
    reading = replace(tokens.reading, widths=widths, between=between)
    found = replace(tokens, reading=reading)
    return found, Partition(found, "splits")


def _check(tokens: Tokens, partition: Tensor, form: str) -> None:
    """Refuses a partition that is not that of tokens."""
    if not isinstance(partition, Partition) or partition.form != form:
        raise Unsupported("tokens that are put into other texts")
    if not partition.tokens.same(tokens):
        raise Unsupported("tokens that are put into other texts")


def _row_count(tokens: Tokens) -> Result:
    count = np.empty((), object)
    count[()] = tokens.texts.shape[0]
    return simplified(Symbol(count, "int64"))


def _part(ctx: Context) -> Result | None:
    """Takes a part of what says where tokens lie."""
    first = ctx.args[0]
    if not isinstance(first, Partition):
        return None
    begin, shrink = ctx.ints(1), ctx.attr("shrink_axis_mask", 0)
    tokens = first.tokens
    masks = [ctx.attr(name, 0) for name in ("begin_mask", "end_mask")]
    if first.form == "index" and begin == [0, 0] and shrink == 2 and masks == [1, 1]:
        return Partition(tokens, "rows")
    if first.form == "shape" and shrink == 1:
        return _row_count(tokens) if begin == [0] else Unknown()
    if first.form == "shape of codes":
        if shrink == 1:
            return Partition(tokens, "count") if begin == [0] else _number(1)
        if begin == [2]:
            return ir.constant(np.zeros(0, np.int32))
    return None


def _number(number: int) -> ir.Value:
    return ir.constant(np.asarray(number, np.int32))


def _is_number(arg: Tensor, number: int) -> bool:
    known = isinstance(arg, ir.Value) and arg.data is not None and arg.data.size == 1
    return known and int(arg.data.reshape(())) == number  # type: ignore[union-attr]


def _to(before: str, after: str) -> Callable[[Context], Result | None]:
    """Returns what gives another form of a partition, if its first operand has a certain one."""

    def give(ctx: Context) -> Result | None:
        first = ctx.args[0]
        if _is(first, before):
            assert isinstance(first, Partition)
            return Partition(first.tokens, after)
        return None

    return give


def _bincount(ctx: Context) -> Result | None:
    first, size = ctx.args[:2]
    if not isinstance(first, Partition):
        return None
    rows = _row_count(first.tokens)
    if first.form != "rows" or not _same(size, rows) or ctx.attr("binary_output", False):
        return None
    return Partition(first.tokens, "lengths")


def _cumulative(ctx: Context) -> Result | None:
    if ctx.attr("exclusive", False) or ctx.attr("reverse", False):
        return None
    return _to("lengths", "ends")(ctx)


def _concat(ctx: Context) -> Result | None:
    *parts, axis = ctx.args
    if len(parts) != 2 or not _is_number(axis, 0):
        return None
    first, second = parts
    if isinstance(second, Partition) and second.form == "ends" and _is_number(first, 0):
        return Partition(second.tokens, "splits")
    if _is(first, "size") and isinstance(second, ir.Value) and second.data is not None:
        return first if second.data.size == 0 else None
    return None


def _reshaped(ctx: Context) -> Result | None:
    first, shape = ctx.args
    if _is(first, "rows") and isinstance(shape, ir.Value) and shape.data is not None:
        return first if shape.data.tolist() == [-1] else None
    if _is(first, "column") and _is(shape, "size"):
        return _to("column", "codes")(ctx)
    return None


def _product(ctx: Context) -> Result | None:
    for first, second in (ctx.args, ctx.args[::-1]):
        if _is(first, "count", "each") and _is_number(second, 1):
            return first
    return _unknown(ctx)


def _sum(ctx: Context) -> Result | None:
    for first, second in (ctx.args, ctx.args[::-1]):
        if isinstance(first, Partition) and first.form == "count" and _is_number(second, 1):
            return Partition(first.tokens, "after")
    return _unknown(ctx)


def _range(ctx: Context) -> Result | None:
    start, end, step = ctx.args
    known = _is_number(start, 0) and _is_number(step, 1)
    if known and isinstance(end, Partition) and end.form == "after":
        return Partition(end.tokens, "each")
    return None


def _open(arg: Tensor) -> bool:
    """Returns whether an operand has as many elements as there are tokens, or is their number."""
    flat = isinstance(arg, Tokens) and arg.flat
    return flat or isinstance(arg, Unknown) or (isinstance(arg, Classes) and arg.tokens.flat)


def _size(ctx: Context) -> Result | None:
    arg = ctx.args[0]
    return Unknown() if _open(arg) or isinstance(arg, Partition) else None


def _unknown(ctx: Context) -> Result | None:
    """Returns a number of which nothing is known, if it is computed of another such."""
    return Unknown() if any(isinstance(arg, Unknown) for arg in ctx.args) else None


def _cast(ctx: Context) -> Result | None:
    arg = ctx.args[0]
    return arg if isinstance(arg, Partition | Unknown) else None


def _at_least(ctx: Context) -> Result | None:
    for first, second in (ctx.args, ctx.args[::-1]):
        if isinstance(first, Unknown):
            return Unknown(second)
    return None


def _at_most(ctx: Context) -> Result | None:
    for first, second in (ctx.args, ctx.args[::-1]):
        if isinstance(first, Unknown):
            return second if _same(first.least, second) else Unknown()
    return None


def _same(a: object, b: object) -> bool:
    """Returns whether two operands are one number."""
    if isinstance(a, Symbol) and isinstance(b, Symbol):
        return bool(np.array_equal(a.dims, b.dims))
    if isinstance(a, ir.Value) and isinstance(b, ir.Value):
        return a.data is not None and b.data is not None and bool(np.array_equal(a.data, b.data))
    return False


def _dense(ctx: Context) -> Result | None:
    """Gives each text a row of numbers."""
    _, numbers, _, *partitions = ctx.args
    if not isinstance(numbers, Classes | Tokens):
        return None
    tokens = numbers if isinstance(numbers, Tokens) else numbers.tokens
    kinds = tuple(ctx.attr("row_partition_types", ()))
    if kinds == ("FIRST_DIM_SIZE", "VALUE_ROWIDS"):
        _check(tokens, partitions[1], "rows")
        if not _same(partitions[0], _row_count(tokens)):
            raise Unsupported("tokens that are put into other texts")
    elif kinds == ("ROW_SPLITS",):
        _check(tokens, partitions[0], "splits")
    else:
        raise Unsupported(f"tokens whose texts are said by {', '.join(kinds)}")
    sizes = ctx.ints(0)
    if sizes == [-1]:
        sizes = [-1, -1]
    if len(sizes) != 2 or sizes[0] != -1 or sizes[1] == 0:
        raise Unsupported(f"tokens in the shape {sizes}")
    row = sizes[1] if sizes[1] > 0 else _longest(ctx, tokens)
    if isinstance(numbers, Tokens):
        if classes.utf8(np.ravel(ctx.array(2))) != [b""]:
            raise Unsupported("tokens that are followed by other text than none")
        return written.split(ctx, numbers, row)
    return classes.rows(ctx, numbers, row, ctx.array(2))


def typed_split(ctx: Context) -> Result | None:
    """Returns the tokens that an op of a file format gives; nothing for other ops."""
    op, tokens = ctx.attr(TYPED), tokens_of(ctx.args[0])
    if not isinstance(op, ir.SplitText):
        return None
    if tokens is None or tokens.flat or tokens.reading != ir.Reading():
        raise Unsupported("texts that are taken apart and that no input gives as they are")
    tokens = Tokens(tokens.texts, op.reading, flat=True)
    return written.split(ctx, tokens, _longest(ctx, tokens))


def _longest(ctx: Context, tokens: Tokens) -> int:
    """Returns the open dimension that is the number of tokens of the longest text."""
    low = ctx.low
    if low.turns or tokens.texts.dtype is not ir.DType.STR:
        raise Unsupported(_LONGEST)
    tokens = replace(tokens, texts=_given(ctx, tokens.texts))
    for known, size in low.longest:
        if known.same(tokens):
            return size
    dims = (dim for port in low.trace.inputs for dim in port.shape)
    taken = {name for dim in dims for name in names(dim)} | {str(size) for _, size in low.longest}
    name = next(n for n in map(_numbered, itertools.count(1)) if n not in taken)
    low.longest.append((tokens, unknown(name)))
    return low.longest[-1][1]


def _given(ctx: Context, texts: ir.Value) -> ir.Value:
    """Returns the input of the model that texts in another shape are."""
    for node in reversed(ctx.build.nodes):
        if texts in node.outputs and isinstance(node.op, ir.Reshape):
            texts = node.input
    return texts


def _numbered(number: int) -> str:
    return "tokens" if number == 1 else f"tokens_{number}"


def _counted(ctx: Context) -> Result | None:
    splits, numbers = ctx.args[:2]
    if not isinstance(numbers, Classes):
        return None
    _check(numbers.tokens, splits, "splits")
    if ctx.array(3).size:
        raise Unsupported("tokens that are counted with weights")
    binary, dtype = bool(ctx.attr("binary_output", False)), ctx.dtype("T")
    return classes.counted(ctx, numbers, ctx.integer(2), binary, dtype)


RAGGED: Mapping[str, Callable[[Context], Result | None]] = {
    "AddV2": _sum,
    "Cast": _cast,
    "ConcatV2": _concat,
    "Cumsum": _cumulative,
    "DenseBincount": _bincount,
    "ExpandDims": _to("codes", "column"),
    "Greater": _unknown,
    "Max": _size,
    "Maximum": _at_least,
    "Minimum": _at_most,
    "Mul": _product,
    "Pack": _to("count", "size"),
    "RaggedBincount": _counted,
    "RaggedTensorToTensor": _dense,
    "Range": _range,
    "Reshape": _reshaped,
    "Shape": _to("column", "shape of codes"),
    "Size": _size,
    "StridedSlice": _part,
    "StringNGrams": _joined,
    "StringSplitV2": _split,
    "UnicodeDecode": _decoded,
    "UnicodeEncode": _encoded,
}
