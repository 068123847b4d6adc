"""What a tokenizer is, as data: one class for each way to take a text apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum


class Split(Enum):
    """How a text is taken apart before pairs of bytes are merged."""

    WHOLE = "whole"
    GPT2 = "gpt2"
    LLAMA3 = "llama3"


class Kind(IntEnum):
    """Kinds of tokens of SentencePiece, by their numbers in its files."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    OWN = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True)
class WordPiece:
    """A vocabulary of words and their parts.

    Attributes:
        tokens: Tokens by number.
        unknown: The token of words that have no parts.
        suffix: What tokens begin with that continue a word.
        specials: Tokens that are found in a text before it is taken apart.
        lowercase: Capital letters become small ones.
        strip_accents: Letters lose their accents.
        split: Text is taken apart at white space and punctuation.
        split_on_cjk: Each character of Chinese, Japanese and Korean is a word.
    """

    tokens: tuple[str, ...]
    unknown: str
    suffix: str
    specials: tuple[str, ...]
    lowercase: bool
    strip_accents: bool
    split: bool
    split_on_cjk: bool


@dataclass(frozen=True)
class BytePair:
    """A vocabulary of bytes and what pairs of them become.

    Attributes:
        ids: Numbers by token; a byte is shown as one character.
        merges: Pairs in the order in which they are merged.
        whole: Numbers of tokens that are found in a text before it is taken apart.
        prefix: Text begins with a space; one is put there if it does not.
        split: How a text is taken apart.
    """

    ids: dict[str, int]
    merges: tuple[tuple[str, str], ...]
    whole: dict[str, int]
    prefix: bool
    split: Split


@dataclass(frozen=True)
class Piece:
    """A token of SentencePiece.

    Attributes:
        text: The token; U+2581 stands for a space.
        score: The logarithm of its probability, or its place among merges.
        kind: What it is for.
    """

    text: str
    score: float
    kind: Kind


@dataclass(frozen=True)
class SentencePiece:
    """A model of the SentencePiece library.

    Attributes:
        pieces: Tokens by number.
        unigram: The most probable tokens are looked for; else pairs are merged.
        charsmap: What is replaced in a text, as the library's file has it.
        unknown: The number of unknown characters.
        surface: What decoding makes of them.
        falls_back: Unknown characters become tokens of their bytes.
        first: The number of a token that is put before a text.
        last: The number of a token that is put after a text.
        prefix: A space is put before a text.
        after: Spaces belong to the words before them.
        trim: Spaces at the ends and after spaces are removed.
        mark: Spaces become U+2581.
        silent: The number of a token that decoding leaves out.
    """

    pieces: tuple[Piece, ...]
    unigram: bool
    charsmap: bytes
    unknown: int
    surface: str
    falls_back: bool
    first: int | None
    last: int | None
    prefix: bool
    after: bool
    trim: bool
    mark: bool
    silent: int | None


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer and how it fills a model's input.

    Attributes:
        name: What its class is called.
        model: How it takes a text apart.
        pad: The number of what stands behind a short text.
        length: To how many tokens a text is padded and cut; `None` if it is not.
    """

    name: str
    model: WordPiece | BytePair | SentencePiece
    pad: int
    length: int | None
