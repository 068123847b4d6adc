"""Graphs that read text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.tf import ir
from converters.tf.ir.expressions import unknown
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
    for dtype in (I32, I64):
        numbers = s.input(f"numbers_{dtype}", (B, 3), dtype)
        of_digits = [ir.TokenValues(ir.Reading(), rest) for rest in _RESTS]
        for op in of_digits:
            operands = [numbers, _numbers(op.rest.buckets, I64)]
            s.op(op, operands, (B, 3), I64, name=f"{dtype}_{op.rest.buckets}")
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
