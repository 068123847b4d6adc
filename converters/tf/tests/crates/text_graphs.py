"""Graphs that read text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from converters.tf import ir
from converters.tf.ir.expressions import unknown
from converters.tf.lower.ops.text.automata import automaton
from converters.tf.tests.crates.graphs import BOOL, F32, I32, I64, B, Sketch

# Words that would be code, if they became any.
HOSTILE = '"#*/ }} compile_error!("out"); {{ //\n'
WORDS = sorted(
    word.encode()
    for word in ("", "a", "fox", "the", "the fox", "THE", "é", "日本", "😀", "b-b", HOSTILE)
)
_PUNCTUATION = ir.Characters(frozenset(b"!,.;-()'\""))
_CHANGES: tuple[ir.Change, ...] = (
    ir.Letters.LOWER,
    ir.Each(_PUNCTUATION, b""),
    ir.Every(b"<br />", b" "),
    ir.Each(ir.Characters(frozenset([0]), True), b"?"),
    ir.Letters.UPPER,
)
_READINGS: dict[str, ir.Reading] = {
    "whole": ir.Reading(_CHANGES[:2]),
    "spaces": ir.Reading(_CHANGES[:3], ir.Split("space")),
    "neighbours": ir.Reading((), ir.Split("space"), (1, 2, 3), b" "),
    "characters": ir.Reading(_CHANGES, ir.Split("characters")),
    "fields": ir.Reading((), ir.Split("byte", ord(","))),
}
_RESTS: Sequence[ir.Rest] = (ir.Rest(), ir.Rest(5), ir.Rest(7, (3, 1 << 40)))


def _vocabulary(s: Sketch, words: Sequence[bytes]) -> list[ir.Value]:
    joined, ends = ir.packed_words(words)
    name = f"lookup_{len(s.nodes)}/vocabulary{HOSTILE}"
    return [ir.constant(joined, name), ir.constant(ends)]


def _numbers(classes: int, dtype: ir.DType) -> ir.Value:
    found = (np.arange(classes + 1) * 3) % 11
    return ir.constant((found % 2 == 1) if dtype is BOOL else found.astype(dtype.numpy))


def texts() -> ir.Graph:
    """Returns tokens of every kind as values and as counts, and hashes of numbers."""
    s = Sketch("texts")
    x = s.input("x", (B, 2), ir.DType.STR)
    for number, (name, reading) in enumerate(_READINGS.items()):
        for rest in _RESTS:
            classes = len(WORDS) + rest.buckets
            label = f"{name}_{rest.buckets}"
            dtype = (I64, F32, I32, BOOL)[number % 4]
            row = None if name == "whole" else 4
            shape = (B, 2) if row is None else (B, 2, 4)
            operands = [x, _numbers(classes, dtype), *_vocabulary(s, WORDS)]
            op = ir.TokenValues(reading, rest, row)
            s.op(op, operands, shape, dtype, name=label)
            bins = ir.constant((np.arange(classes, dtype=np.int32) % 9) - 1)
            count = (I64, F32, I32, ir.DType.F64)[number % 4]
            counts = ir.TokenCounts(reading, rest, 6, rest.buckets == 5)
            operands = [x, bins, *operands[2:]]
            s.op(counts, operands, (B, 2, 6), count, name=f"{label}_counts")
    y = s.input("y", (2,), ir.DType.STR)
    s.op(ir.SameText(), [x, x], (B, 2), BOOL, name="same")
    s.op(ir.SameText(differs=True), [x, y], (B, 2), BOOL, name="differs")
    for dtype in (I32, I64):
        numbers = s.input(f"numbers_{dtype}", (B, 3), dtype)
        of_digits = [ir.TokenValues(ir.Reading(), rest) for rest in _RESTS]
        for op in of_digits:
            operands = [numbers, _numbers(op.rest.buckets, I64)]
            s.op(op, operands, (B, 3), I64, name=f"{dtype}_{op.rest.buckets}")
    return s.graph()


def whole_texts() -> ir.Graph:
    """Returns whether texts match expressions, and their fingerprints."""
    s = Sketch("whole_texts")
    x = s.input("x", (B, 2), ir.DType.STR)
    for number, (changes, expression) in enumerate(
        [((), ".*fox|"), (_CHANGES[:2], r"(\w+\s?)*[é-日]*"), (_CHANGES, "(?s).*OUT.*")]
    ):
        found = automaton(expression)
        op = ir.TextMatch(changes, found.start, found.matching)
        table = [ir.constant(found.classes, f"c{HOSTILE}"), ir.constant(found.next)]
        s.op(op, [x, *table], (B, 2), BOOL, name=f"match_{number}")
        s.op(ir.TextPrint(changes), [x], (B, 2), I64, name=f"print_{number}")
    return s.graph()


def open_texts() -> ir.Graph:
    """Returns words of texts of which there may be any number."""
    s = Sketch("open_texts")
    shape: ir.Shape = (B, unknown("texts"))
    x = s.input("x", shape, ir.DType.STR)
    op = ir.TokenValues(_READINGS["spaces"], ir.Rest(), 3)
    operands = [x, _numbers(len(WORDS) + 1, I64), *_vocabulary(s, WORDS)]
    s.op(op, operands, (*shape, 3), I64, name="words")
    return s.graph()


def _named(s: Sketch, words: Sequence[bytes]) -> None:
    """Makes the last output the words that its numbers stand for."""
    s.outputs[-1] = replace(s.outputs[-1], words=tuple(words))


def chosen_words() -> ir.Graph:
    """Returns words that numbers and other words choose, some of which several outputs have."""
    s = Sketch("chosen_words")
    x = s.input("x", (B, 2), ir.DType.STR)
    table = ir.constant(((np.arange(len(WORDS) + 2) * 3) % len(WORDS)).astype(np.int32))
    operands = [x, table, *_vocabulary(s, WORDS)]
    of_words = s.op(ir.TokenValues(ir.Reading(), ir.Rest()), operands, (B, 2), I32, name="match")
    _named(s, WORDS)
    numbers = s.input("numbers", (B, 3), I32)
    places = ir.constant((np.arange(9) % 4).astype(np.int32))
    s.op(ir.Gather(0), [places, numbers], (B, 3), I32, name="labels")
    _named(s, [b"\xe2\x80\xae", HOSTILE.encode(), b"", b"of a batch"])
    s.op(ir.Reshape(), [of_words], (B, 2, 1), I32, name="reshaped")
    _named(s, WORDS)
    state = s.input("state", (2,), I32)
    s.op(ir.Gather(0), [places, state], (2,), I32, name="fixed")
    _named(s, [b"a", b"b", b"c", b"d"])
    return s.graph()


def open_words() -> ir.Graph:
    """Returns words of which there may be any number."""
    s = Sketch("open_words")
    shape: ir.Shape = (B, unknown("texts"))
    x = s.input("x", shape, ir.DType.STR)
    table = ir.constant(((np.arange(len(WORDS) + 2) * 5) % len(WORDS)).astype(np.int32))
    operands = [x, table, *_vocabulary(s, WORDS)]
    s.op(ir.TokenValues(ir.Reading(), ir.Rest()), operands, shape, I32, name="words")
    _named(s, WORDS)
    return s.graph()


def longest_texts() -> ir.Graph:
    """Returns as many words of each text as the longest has, and what depends on that number."""
    s = Sketch("longest_texts")
    x = s.input("x", (B, 1), ir.DType.STR)
    flat = s.op(ir.Reshape(), [x], (B,), ir.DType.STR)
    s.outputs.clear()
    tokens = unknown("tokens")
    op = ir.TokenValues(_READINGS["spaces"], ir.Rest(5), tokens)
    operands = [flat, _numbers(len(WORDS) + 5, F32), *_vocabulary(s, WORDS)]
    words = s.op(op, operands, (B, tokens), F32, name="words")
    s.op(ir.Softmax(), [words], (B, tokens), name="weights")
    steps = s.input("steps", (B, unknown("steps")))
    s.op(ir.Concat(1), [words, steps], (B, tokens + unknown("steps")), name="joined")
    return s.graph()


def written_texts() -> ir.Graph:
    """Returns texts that calls write: of inputs and of words, joined, changed and taken apart."""
    s = Sketch("written_texts")
    x = s.input("x", (B, 2), ir.DType.STR)
    y = s.input("y", (2,), ir.DType.STR)
    numbers = s.input("numbers", (B, 2), I32)
    state = s.input("state", (1,), I32)
    table = ir.constant((np.arange(9) % 5).astype(np.int32))
    places = s.op(ir.Gather(0), [table, numbers], (B, 2), I32, name="places")
    words = tuple(word.encode() for word in ("é", HOSTILE, ""))
    between = ir.Piece((b"\xe2\x80\xae-",))
    given = ir.Piece(sizes=(2,))
    chosen = ir.Piece(words, (2,), chosen=True)
    known = ir.Piece(words, chosen=True)
    joins: dict[str, tuple[tuple[ir.Piece, ...], list[ir.Value]]] = {
        "given": ((given,), [x]),
        "joined": ((given, between, chosen, between, given), [x, places, x, y]),
        "of_several": ((ir.Piece(words[:1], (2, 2), chosen=True),), [places, y, x]),
        "changed": (
            (replace(given, changes=_CHANGES), known),
            [x, ir.constant(np.array([2], np.int32))],
        ),
        "cut": ((replace(given, changes=(*_CHANGES[1:3], ir.Ends.SPACES)), between), [x]),
        "lower": ((replace(chosen, case=ir.Case.LOWER),), [places, x]),
        "upper": ((replace(given, changes=_CHANGES[1:3], case=ir.Case.UPPER), between), [x]),
    }
    whole = (*_CHANGES[1:3], ir.Ends.SPACES)
    lines = ir.JoinText((given, between, chosen), whole, ir.Case.UPPER)
    s.op(lines, [x, places, x], (B, 2), ir.DType.STR, name="whole")
    for name, (pieces, operands) in joins.items():
        s.op(ir.JoinText(pieces), operands, (B, 2), ir.DType.STR, name=name)
    fixed = [s.op(ir.Gather(0), [table, state], (1,), I32, name="place"), y]
    text = s.op(ir.JoinText((chosen,)), fixed, (1,), ir.DType.STR, name="fixed")
    s.op(ir.Reshape(), [text], (), ir.DType.STR, name="reshaped")
    splits = (
        ir.Split("space"),
        ir.Split("space", most=2),
        ir.Split("byte", ord(","), 3),
        ir.Split("characters"),
    )
    for number, split in enumerate(splits):
        reading = ir.Reading(_CHANGES[:2] if number else (), split)
        s.op(ir.SplitText(reading, 4), [x], (B, 2, 4), ir.DType.STR, name=f"split_{number}")
    return s.graph()


def open_written_texts() -> ir.Graph:
    """Returns texts that calls write, of which there may be any number."""
    s = Sketch("open_written_texts")
    shape: ir.Shape = (B, unknown("texts"))
    x = s.input("x", shape, ir.DType.STR)
    places = s.input("places", shape, I32)
    short = s.op(ir.Gather(0), [ir.constant(np.arange(9, dtype=np.int32) % 2), places], shape, I32)
    s.outputs.clear()
    pieces = (ir.Piece(sizes=(1,)), ir.Piece((b"a", b"\xc3\xa9"), chosen=True))
    s.op(ir.JoinText(pieces), [x, short], shape, ir.DType.STR, name="joined")
    y = s.input("y", (B,), ir.DType.STR)
    tokens = unknown("tokens")
    op = ir.SplitText(_READINGS["spaces"], tokens)
    s.op(op, [y], (B, tokens), ir.DType.STR, name="tokens")
    few = unknown("few")
    first = ir.SplitText(ir.Reading((), ir.Split("space", most=2)), few)
    s.op(first, [y], (B, few), ir.DType.STR, name="few")
    return s.graph()


def counted_texts() -> ir.Graph:
    """Returns texts of which the values of a call say how many there are."""
    s = Sketch("counted_texts")
    x = s.input("x", (4,), ir.DType.STR)
    numbers = s.input("numbers", (4,), I32)
    mask = s.op(
        ir.Compare(ir.CompareKind.LT), [numbers, ir.constant(np.array(5, np.int32))], (4,), BOOL
    )
    kept = unknown("kept", 4)
    places = s.op(ir.Chosen("kept"), [mask], (kept,), I32)
    s.outputs.clear()
    op = ir.JoinText((ir.Piece((), (4,), chosen=True),))
    s.op(op, [places, x], (kept,), ir.DType.STR, name="found")
    return s.graph()
