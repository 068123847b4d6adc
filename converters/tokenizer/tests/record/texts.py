"""Texts that tell tokenizers apart: words, numbers, accents, scripts, spaces and what is rare."""

# Letters of other scripts look like Latin ones.
# ruff: noqa: RUF001

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

_WORDS = [
    "the",
    "of",
    "and",
    "Tensor",
    "graph",
    "kernel",
    "model",
    "TensorFlow",
    "don't",
    "it's",
    "I'LL",
    "we've",
    "can't",
    "they're",
    "e.g.",
    "naïve",
    "Über",
    "straße",
    "café",
    "jalapeño",
    "São",
    "Ελλάδα",
    "привет",
    "Москва",
    "शांति",
    "السلام",
    "שלום",
    "東京",
    "東京都",
    "안녕하세요",
    "ありがとう",
    "中文",
    "1",
    "12",
    "123",
    "1234",
    "12345678",
    "3.14",
    "1e-5",
    "0x1F",
    "½",
    "²",
    "Ⅷ",
    "ﬁne",
    "ﬃ",
    "Ａｂｃ",
    "ｶﾞ",
    "Å",
    "Å",
    "ṩ",
    "ǅ",
    "İstanbul",
    "ſhort",
    "ΌΣΟΣ",
    "ᾳ",
    "한글",
    "",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[UNK]",
    "<s>",
    "</s>",
    "<pad>",
    "<unk>",
    "<mask>",
    "<|endoftext|>",
    "<special>",
    "<0x0A>",
    "👍",
    "👩\u200d👩\u200d👧\u200d👦",
    "🇩🇪",
    "☃",
    "…",
    "—",
    "“quotes”",
    "‘single’",
    "$5",
    "^",
    "`",
    "~",
    "|",
    "{x}",
    "#tag",
    "@name",
    "a_b",
    "a-b",
    "https://x.y/z?q=1",
]
_SPACES = (
    " ",
    " ",
    " ",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "\u00a0",
    "\u3000",
    "\u2009",
    "",
)
_ODD = (
    "\u0301\u0323\u0345\u200b\u200d\ufeff\u00ad\u2028\u0085"
    "\x00\x01\x1f\x7f\ufffd\u2581\u0966\u202f\u180e"
)


def fixed() -> list[str]:
    """Returns texts that are always tried."""
    return [
        "",
        " ",
        "   ",
        "\n",
        "a",
        "The quick brown fox jumped over the lazy dog.",
        "  two spaces  between   words and at the ends  ",
        "Don't stop: it's 12345 o'clock, WE'LL see!",
        "naïve café, Ångström, ﬁne ½ Ａｂｃ ｶﾞ",
        "東京 and 안녕하세요 and Привет",
        "[CLS] a [MASK] b [SEP]<mask></s>",
        "line one\nline two\r\n\r\n  line three\t\tend\n",
        "👍🏽 👩‍👩‍👧‍👦 ☃ \u200b\u00ad\ufeff",
        "x" * 101,
        "word" * 30,
        "\u0344\u0345\u1fb3 \u1e9b\u0323 \u0958 \u2126 \u212b \u1100\u1161\u11a8 \uac00\u11a8",
    ]


def drawn(random: np.random.Generator, count: int) -> list[str]:
    """Returns texts of random words, spaces and characters.

    Args:
        random: Draws them.
        count: How many.
    """
    known = _assigned()
    return [_text(random, known) for _ in range(count)]


def _assigned() -> Sequence[str]:
    """Characters that Unicode has had since version 13, of the first planes."""
    return [
        c
        for c in map(
            chr,
            [
                *range(0x2FF0),
                *range(0x3000, 0x3400),
                *range(0xA000, 0xA500),
                *range(0xF900, 0xFFFE),
            ],
        )
        if unicodedata.category(c) not in ("Cn", "Cs", "Co")
    ]


def _text(random: np.random.Generator, known: Sequence[str]) -> str:
    parts = []
    for _ in range(int(random.integers(0, 12))):
        match int(random.integers(0, 10)):
            case 0:
                parts += [known[int(at)] for at in random.integers(0, len(known), 3)]
            case 1:
                parts.append(_ODD[int(random.integers(0, len(_ODD)))])
            case 2:
                word = _WORDS[int(random.integers(0, len(_WORDS)))]
                parts.append(word[: int(random.integers(0, len(word) + 1))].upper())
            case 3:
                parts.append(
                    "".join(map(chr, random.integers(32, 127, int(random.integers(1, 6)))))
                )
            case _:
                parts.append(_WORDS[int(random.integers(0, len(_WORDS)))])
        parts.append(_SPACES[int(random.integers(0, len(_SPACES)))])
    return "".join(parts)
