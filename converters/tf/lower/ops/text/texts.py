"""Texts: standardized, taken apart, looked up and hashed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from converters.tf import ir
from converters.tf.ir import Case, Ends, Letters
from converters.tf.lower.graph import Context, Handler, Result, Tensor, Unsupported
from converters.tf.lower.ops.text import classes, crossed, spelled, written
from converters.tf.lower.ops.text.automata import automaton
from converters.tf.lower.ops.text.patterns import change_of
from converters.tf.lower.ops.text.ragged import RAGGED, tokens_of, typed_split
from converters.tf.lower.tensors import (
    Classes,
    Crossed,
    Partition,
    Spelled,
    Tokens,
    Unknown,
    Written,
)
from converters.tf.lower.trace import TYPED_NODE, WRITE, Variable

# What gives tensors on, and what moves the elements of one without a change.
_GIVEN_ON = frozenset(
    ["EnsureShape", "Identity", "IdentityN", "PreventGradient", "Snapshot", "StopGradient"]
)
_MOVED = frozenset(["ExpandDims", "Reshape", "Squeeze"])


def _tokens(ctx: Context, index: int = 0) -> Tokens:
    found = tokens_of(ctx.args[index])
    if found is None:
        raise Unsupported("text that no input gives")
    return found


def _text(ctx: Context, index: int) -> bytes:
    """Returns a known text.

    Raises:
        Unsupported: There are several.
    """
    found = classes.utf8(ctx.array(index).ravel())
    if len(found) != 1:
        raise Unsupported(f"{len(found)} texts where one is expected")
    return found[0]


def _letters(letters: Letters) -> Handler:
    def change(ctx: Context) -> Result:
        unicode = bool(ctx.attr("encoding", ""))
        if not unicode and tokens_of(ctx.args[0]) is not None:
            return _with(_tokens(ctx), letters)
        return written.altered(ctx, ctx.args[0], Case(str(letters)) if unicode else letters)

    return change


def _stripped(ctx: Context) -> Result:
    if isinstance(ctx.args[0], Written | Spelled):
        return written.altered(ctx, ctx.args[0], Ends.SPACES)
    return _with(_tokens(ctx), Ends.SPACES)


def _with(tokens: Tokens, *changes: ir.Change) -> Tokens:
    if tokens.flat:
        raise Unsupported("a change of tokens; change the texts")
    reading = replace(tokens.reading, changes=(*tokens.reading.changes, *changes))
    return replace(tokens, reading=reading)


def _replaced(ctx: Context) -> Result:
    if ctx.node.op == "RegexReplace":
        pattern, rewrite = (_text(ctx, index).decode() for index in (1, 2))
    else:
        pattern, rewrite = ctx.attr("pattern", ""), ctx.attr("rewrite", "")
    if not ctx.attr("replace_global", True):
        raise Unsupported("a regular expression whose first match alone is replaced")
    change = change_of(pattern, rewrite)
    if isinstance(ctx.args[0], Written | Spelled):
        return written.altered(ctx, ctx.args[0], change)
    return _with(_tokens(ctx), change)


def _found(ctx: Context) -> Result:
    table = ctx.args[0]
    if not isinstance(table, Variable) or table.entries is None:
        raise Unsupported("a lookup table whose entries are not known")
    keys, values = table.entries
    return classes.looked_up(_tokens(ctx, 1), keys, values, ctx.array(2))


def _hashed(ctx: Context) -> Result:
    key = ctx.attr("key") if ctx.node.op == "StringToHashBucketStrong" else None
    return classes.hashed(_tokens(ctx), int(ctx.attr("num_buckets")), key)


def _matched(ctx: Context) -> Result:
    static = ctx.node.op == "StaticRegexFullMatch"
    pattern = ctx.attr("pattern", "") if static else _text(ctx, 1).decode()
    tokens = _tokens(ctx)
    if tokens.flat or tokens.texts.dtype is not ir.DType.STR:
        raise Unsupported("tokens that an expression matches; match the texts")
    found = automaton(pattern)
    op = ir.TextMatch(tokens.reading.changes, found.start, found.matching)
    table = [ir.constant(found.classes), ir.constant(found.next)]
    return ctx.build.emit(op, [tokens.texts, *table], dtype=ir.DType.BOOL)


def _output(ctx: Context) -> Result:
    """Returns an output of text, or how many tokens texts have."""
    if isinstance(ctx.args[0], Partition):
        return _plain(ctx, ctx.args[0])
    return written.whole(ctx)


def _typed(ctx: Context) -> Result | None:
    """Returns what an op of a file format reads; nothing for one of the input's texts."""
    return spelled.read(ctx) or typed_split(ctx)


def _digits(ctx: Context) -> Result:
    plain = {"precision": -1, "scientific": False, "shortest": False, "width": -1, "fill": ""}
    if any(ctx.attr(name, default) != default for name, default in plain.items()):
        raise Unsupported("numbers as text of a certain length")
    x = replace(ctx, args=(_plain(ctx, ctx.args[0]),)).value(0)
    if x.dtype.numpy.kind not in "iu" or x.dtype is ir.DType.U64:
        raise Unsupported(f"text of {x.dtype}")
    if x.dtype not in (ir.DType.I32, ir.DType.I64):
        x = ctx.build.cast(x, ir.DType.I64)
    return Tokens(x, ir.Reading())


def _equal(ctx: Context) -> Result | None:
    found = [tokens_of(arg) for arg in ctx.args]
    differs = ctx.node.op == "NotEqual"
    for place, tokens in enumerate(found):
        other = ctx.args[1 - place]
        known = isinstance(other, ir.Value | Variable) and other.data is not None
        if tokens is not None and known:
            return classes.equal_to(tokens, _text(ctx, 1 - place), differs)
    if all(tokens is None for tokens in found):
        return None
    sides = replace(ctx, args=tuple(_plain(ctx, arg) for arg in ctx.args)).values
    if any(x.dtype is not ir.DType.STR for x in sides):
        raise Unsupported("text that is compared with other than text")
    return ctx.build.emit(ir.SameText(differs), sides, dtype=ir.DType.BOOL)


_OWN: Mapping[str, Callable[[Context], Result | None]] = {
    **RAGGED,
    **crossed.OPS,
    **written.OPS,
    WRITE: _output,
    "AsString": _digits,
    "Equal": _equal,
    "LookupTableFindV2": _found,
    "NotEqual": _equal,
    "RegexFullMatch": _matched,
    "RegexReplace": _replaced,
    "StaticRegexFullMatch": _matched,
    "StaticRegexReplace": _replaced,
    "StringLower": _letters(Letters.LOWER),
    "StringStrip": _stripped,
    "StringToHashBucketFast": _hashed,
    "StringToHashBucketStrong": _hashed,
    "StringUpper": _letters(Letters.UPPER),
    TYPED_NODE: _typed,
}


def with_texts(handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Returns handlers that also take texts, tokens, and what is computed of them."""
    ops = {*handlers, *_OWN}
    return {op: _taking(op, handlers.get(op)) for op in ops}


def _is_text(arg: Tensor) -> bool:
    if isinstance(arg, ir.Value):
        return arg.dtype is ir.DType.STR
    kinds = Tokens | Classes | Spelled | Written | Partition | Crossed | Unknown
    return isinstance(arg, kinds) or spelled.is_known(arg)


def _is_given(arg: Tensor) -> bool:
    """Returns whether an operand is text of an input."""
    tokens = tokens_of(arg)
    return tokens is not None and not tokens.flat


def _taking(op: str, plain: Handler | None) -> Handler:
    own = _OWN.get(op)

    def handler(ctx: Context) -> Result:
        if plain is not None and not any(map(_is_text, ctx.args)):
            return plain(ctx)
        if op in _GIVEN_ON:
            given = tuple(_given_on(ctx, arg) for arg in ctx.args)
            return given if op == "IdentityN" else given[0]
        if plain is not None and spelled.is_chosen(op, ctx.args):
            return spelled.chosen(ctx, plain, lambda arg: _plain(ctx, arg))
        if op == "LookupTableFindV2":
            words = spelled.looked_up(ctx, lambda numbers: _number_of(ctx, handler(numbers)))
            if words is not None:
                return words
        result = None if own is None else own(ctx)
        if result is not None:
            return result
        if op in classes.FOLDED and any(isinstance(arg, Classes) for arg in ctx.args):
            folded = classes.computed(ctx)
            if folded is not None:
                return folded
        if plain is None:
            raise Unsupported(f"there is no kernel for the op {op} of these tensors")
        if op in _MOVED and isinstance(ctx.args[0], Tokens | Classes):
            return _moved(ctx, plain)
        if op in _MOVED and isinstance(ctx.args[0], Written):
            return written.moved(ctx, plain)
        if op in spelled.MOVED and any(map(_is_given, ctx.args)):
            return _chosen(ctx, plain)
        return plain(replace(ctx, args=tuple(_plain(ctx, arg) for arg in ctx.args)))

    return handler


def _chosen(ctx: Context, plain: Handler) -> Result:
    """Returns texts of inputs in another shape, or as places of them."""
    nodes = ctx.build.nodes
    before = len(nodes)
    try:
        found = plain(replace(ctx, args=tuple(_plain(ctx, arg) for arg in ctx.args)))
    except Unsupported:
        found = None
    made = [node.op for node in nodes[before:] if node.outputs[0].dtype is ir.DType.STR]
    if found is not None and all(isinstance(op, ir.Reshape) for op in made):
        return found
    del nodes[before:]
    return spelled.chosen(ctx, plain, lambda arg: _plain(ctx, arg))


def _given_on(ctx: Context, arg: Tensor) -> Tensor:
    """Returns an operand, or the tensor of a number for each text."""
    return _plain(ctx, arg) if isinstance(arg, Classes) and not arg.tokens.flat else arg


def _number_of(ctx: Context, result: Result) -> Result:
    """Returns a result, or the tensor of a number for each text."""
    return classes.tensor(ctx, result) if isinstance(result, Classes) else result


def _moved(ctx: Context, plain: Handler) -> Result:
    """Returns texts, or the numbers of tokens, in another shape."""
    first = ctx.args[0]
    assert isinstance(first, Tokens | Classes)
    tokens = first if isinstance(first, Tokens) else first.tokens
    if tokens.flat:
        raise Unsupported("the tokens of all texts in another shape")
    moved = plain(replace(ctx, args=(tokens.texts, *ctx.args[1:])))
    if not isinstance(moved, ir.Value):
        raise Unsupported("texts in another shape")
    tokens = replace(tokens, texts=moved)
    if isinstance(first, Tokens):
        return tokens
    return Classes(tokens, first.words, first.rest, first.values)


def _plain(ctx: Context, arg: Tensor) -> Tensor:
    """Returns an operand as handlers of numbers take it."""
    if isinstance(arg, Classes):
        return classes.tensor(ctx, arg)
    if isinstance(arg, Tokens):
        if arg.flat:
            raise Unsupported("the tokens of all texts together")
        if arg.reading != ir.Reading() or arg.texts.dtype is not ir.DType.STR:
            raise Unsupported("text that is standardized, where a number is expected")
        return arg.texts
    if isinstance(arg, Written):
        raise Unsupported("text that a call writes, which only an output may be")
    if isinstance(arg, Crossed):
        raise Unsupported("crossed features that are sparse")
    if isinstance(arg, Partition) and arg.form == "lengths" and not ctx.low.turns:
        return classes.lengths(ctx, arg.tokens)
    if isinstance(arg, Partition | Unknown):
        raise Unsupported("how many tokens the texts of a call have")
    if isinstance(arg, Spelled):
        raise Unsupported("words that the model has chosen, where a number is expected")
    return arg
