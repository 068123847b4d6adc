"""Text that a call writes: texts of inputs and words, joined, changed or taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from converters.tf import ir
from converters.tf.ir import Case, JoinText, Piece
from converters.tf.ir.sizes import broadcast
from converters.tf.lower.graph import Context, Result, Tensor, Unsupported
from converters.tf.lower.ops.text import classes, spelled
from converters.tf.lower.tensors import Spelled, Tokens, Written
from converters.tf.lower.trace import Variable

# Pieces of one text, at most: each is an operand of the model's code.
_MOST_PIECES = 64

# A piece of a text with its operands.
_Part = tuple[Piece, tuple[ir.Value, ...]]


def _parts(arg: Tensor) -> list[_Part]:
    """Returns what a text is joined of.

    Raises:
        Unsupported: It is other than text, or tokens.
    """
    if isinstance(arg, Written):
        if not arg.pieces:
            raise Unsupported("tokens that are joined, or text that was joined and then changed")
        operands, found = list(arg.operands), []
        for piece in arg.pieces:
            found.append((piece, tuple(operands[: piece.count])))
            del operands[: piece.count]
        return found
    if spelled.is_known(arg):
        assert isinstance(arg, ir.Value | Variable) and arg.data is not None
        words, places = spelled.listed(arg.data)
        if len(words) == 1 and places.ndim == 0:
            return [(Piece(words), ())]
        return [(Piece(words, chosen=True), (ir.constant(places),))]
    if isinstance(arg, Spelled):
        sizes = tuple(spelled.size_of(text) for text in arg.texts)
        return [(Piece(arg.words, sizes, chosen=True), (arg.places, *arg.texts))]
    if isinstance(arg, ir.Value) and arg.dtype is ir.DType.STR:
        arg = Tokens(arg, ir.Reading())
    if not isinstance(arg, Tokens):
        raise Unsupported("what is joined with text is not text")
    if arg.flat:
        raise Unsupported("the tokens of all texts together")
    if arg.texts.dtype is not ir.DType.STR:
        raise Unsupported("numbers that become text")
    return [(Piece(sizes=(1,), changes=arg.reading.changes), (arg.texts,))]


def _shape(part: _Part) -> ir.Shape:
    piece, operands = part
    return operands[0].shape if piece.count else ()


def _repeated(ctx: Context, part: _Part, whole: ir.Shape) -> _Part:
    """Returns a piece whose elements are those of a larger tensor, each where it is read."""
    piece, operands = part
    if not operands or ir.again(operands[0].shape, whole):
        return part
    places, *texts = operands
    if not piece.chosen:
        found = spelled.places_of(ctx, operands[0])
        places, texts = found.places, list(found.texts)
        piece = replace(piece, chosen=True, sizes=tuple(map(spelled.size_of, texts)))
    return piece, (ctx.build.broadcast_to(places, whole), *texts)


def joined(ctx: Context, parts: Sequence[_Part]) -> Tensor:
    """Returns the text that pieces make.

    Raises:
        Unsupported: There are too many of them, or it is in a loop.
    """
    if ctx.low.turns:
        raise Unsupported("text that is written in a loop")
    if len(parts) > _MOST_PIECES:
        raise Unsupported(f"text of {len(parts)} pieces; at most {_MOST_PIECES}")
    shape = broadcast(*map(_shape, parts))
    parts = [_repeated(ctx, part, shape) for part in parts]
    pieces = tuple(piece for piece, _ in parts)
    operands = tuple(operand for _, given in parts for operand in given)
    if not operands:
        text = "".join(ir.changed(p.words[0], p.changes, p.case) for p in pieces)
        return ir.constant(classes.object_array(text.encode()))
    value = ctx.build.emit(JoinText(pieces), operands, shape, ir.DType.STR)
    return Written(value, pieces, operands)


def altered(ctx: Context, text: Tensor, change: ir.Change | Case) -> Tensor:
    """Returns text after a change, or in another case."""
    if isinstance(text, Written) and not text.pieces:
        node = next(n for n in ctx.build.nodes if text.value in n.outputs)
        if not isinstance(node.op, JoinText):
            raise Unsupported("tokens that are changed; change the texts")
        return _altered(ctx, node.op, node.present, change)
    parts = _parts(text)
    if len(parts) > 1:
        whole = joined(ctx, parts)
        assert isinstance(whole, Written)
        return _altered(ctx, JoinText(whole.pieces), whole.operands, change)
    ((piece, operands),) = parts
    return joined(ctx, [(_with(piece, change), operands)])


def _altered(
    ctx: Context, op: JoinText, operands: Sequence[ir.Value | None], change: ir.Change | Case
) -> Tensor:
    value = ctx.build.emit(_with(op, change), operands, None, ir.DType.STR)
    return Written(value, (), ())


_Changed = TypeVar("_Changed", JoinText, Piece)


def _with(text: _Changed, change: ir.Change | Case) -> _Changed:
    if text.case is not None:
        raise Unsupported("text that is changed after its letters were")
    if isinstance(change, Case):
        return replace(text, case=change)
    return replace(text, changes=(*text.changes, change))


def _join(ctx: Context) -> Result:
    between = ctx.attr("separator", "")
    parts: list[_Part] = []
    for arg in ctx.args:
        if parts and between:
            parts.append((Piece(tuple(classes.utf8([between]))), ()))
        parts += _parts(arg)
    return joined(ctx, parts)


def _join_axis(ctx: Context) -> Result:
    """Joins the texts along the last axis."""
    arg = ctx.args[0]
    if isinstance(arg, ir.Value) and arg.dtype is ir.DType.STR and arg.data is None:
        arg = spelled.places_of(ctx, arg)
    if not isinstance(arg, Spelled):
        raise Unsupported("text that is joined along an axis; give words of the model, or an input")
    places = arg.places
    axes = [axis % places.rank for axis in ctx.ints(1)]
    size = places.shape[-1] if places.rank else 0
    if axes != [places.rank - 1] or not spelled.is_number(size) or not size:
        raise Unsupported("text that is joined along other axes than a last one of fixed size")
    between = ctx.attr("separator", "")
    keeps = bool(ctx.attr("keep_dims", False))
    shape = (*places.shape[:-1], *((1,) if keeps else ()))
    sizes = tuple(map(spelled.size_of, arg.texts))
    parts: list[_Part] = []
    for place in range(int(size) if isinstance(size, int) else 0):
        if parts and between:
            parts.append((Piece(tuple(classes.utf8([between]))), ()))
        own = ctx.build.part(places, places.rank - 1, place, 1)
        piece = Piece(arg.words, sizes, chosen=True)
        parts.append((piece, (ctx.build.reshape(own, shape), *arg.texts)))
    return joined(ctx, parts)


def whole(ctx: Context) -> Result:
    """Returns text as an output."""
    arg = ctx.args[0]
    if spelled.is_known(arg):
        return spelled.known(arg)
    return arg if isinstance(arg, Written) else joined(ctx, _parts(arg))


def split(ctx: Context, tokens: Tokens, row: int) -> Tensor:
    """Returns so many tokens of each text, as text."""
    if tokens.texts.dtype is not ir.DType.STR:
        raise Unsupported("numbers that become text")
    if ctx.low.turns:
        raise Unsupported("text that is written in a loop")
    op = ir.SplitText(tokens.reading, row)
    return Written(ctx.build.emit(op, [tokens.texts], None, ir.DType.STR), (), ())


def moved(ctx: Context, plain: Callable[[Context], Result]) -> Result:
    """Returns text in another shape."""
    text = ctx.args[0]
    assert isinstance(text, Written)
    found = plain(replace(ctx, args=(text.value, *ctx.args[1:])))
    if not isinstance(found, ir.Value):
        raise Unsupported("text in another shape")
    return Written(found, (), ())


OPS: Mapping[str, Callable[[Context], Result | None]] = {
    "ReduceJoin": _join_axis,
    "StringJoin": _join,
}
