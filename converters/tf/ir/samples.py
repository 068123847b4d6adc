"""Texts for a model that reads some: its own words, others, and what is rarely thought of."""

from __future__ import annotations

import numpy as np

from converters.tf import ir

# Texts of characters that are white space, punctuation, capital, of several bytes, or not there.
_RARE = (
    "",
    "One two,  three!\tFour\n-- five; (six) it's <br />seven",
    "À la carte: naïve “quotes”, İstanbul, Straße",
    "e\u0301 \u00a0\u2003 日本語 😀👍🏽 \x1c\x7f",
    "a" * 70 + " " + "b" * 300,
    " \r\n\x0b\x0c ",
)
# Words of the model's vocabulary of which texts are made, and words of a text, at most.
_KNOWN, _LONGEST = 200, 24


def made_texts(
    graph: ir.Graph, value: ir.Value, shape: tuple[int, ...], attempt: int = 0
) -> ir.Array:
    """Returns texts that are always the same: an array of Python's strings.

    Args:
        graph: The graph, whose vocabularies are read.
        value: The input.
        shape: The shape of the array.
        attempt: Other texts for every number.
    """
    random = np.random.default_rng(2021 + attempt)
    known = [word for word in _vocabulary(graph, value) if "\0" not in word]
    several = any(op.reading.split.at != "whole" for op, _ in _readers(graph, value))
    found = []
    for place in range(int(np.prod(shape))):
        kind = (place + attempt) % 4
        if kind == 3 or not known:
            text = _RARE[(place // 4 + attempt + (0 if known else place)) % len(_RARE)]
        elif not several:
            word = known[random.integers(len(known))]
            text = word if kind else f"{word}?"
        else:
            count = int(random.integers(1, _LONGEST))
            words = [known[i] for i in random.integers(0, len(known), count)]
            words = [w.upper() if random.random() < 0.1 else w for w in words]
            text = ("! ", ", ", " unheard of ")[kind].join(words)
        found.append(text)
    out = np.empty(len(found), object)
    out[:] = found
    return out.reshape(shape)


def _readers(
    graph: ir.Graph, value: ir.Value
) -> list[tuple[ir.TokenValues | ir.TokenCounts, ir.Node]]:
    """Returns the ops that read the tokens of an input, with their nodes."""
    same = {value}
    found = []
    for node in graph.nodes:
        if isinstance(node.op, ir.Reshape) and node.input in same:
            same.update(node.outputs)
        if isinstance(node.op, ir.TokenValues | ir.TokenCounts) and node.input in same:
            found.append((node.op, node))
    return found


def _vocabulary(graph: ir.Graph, value: ir.Value) -> list[str]:
    """Returns words of the vocabularies in which an input is looked up."""
    found: dict[str, None] = {}
    for _, node in _readers(graph, value):
        words, ends = (node.operand(index) for index in (2, 3))
        if words is not None and ends is not None:
            listed = ir.listed_words(words.data, ends.data)
            step = max(1, len(listed) // _KNOWN)
            found |= {word.decode(): None for word in listed[::step]}
    return list(found)
