"""Reads a model file of the SentencePiece library."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from converters.tokenizer.errors import FileError
from converters.tokenizer.load.wire import WireError, data, fields, number, single, text
from converters.tokenizer.model import Kind, Piece, SentencePiece
from tools.codegen.conversion import Problem, UnsupportedError

_KINDS = {kind.value: kind for kind in Kind}
_MODELS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_BYTES = 256


@dataclass
class _Found:
    """What a file says, beside its defaults."""

    pieces: list[Piece] = field(default_factory=list)
    model: int = 1
    falls_back: bool = False
    after: bool = False
    first: str = "<s>"
    last: str = "</s>"
    surface: str = " \N{DOUBLE QUESTION MARK} "
    charsmap: bytes = b""
    prefix: bool = True
    trim: bool = True
    mark: bool = True


def read(
    where: str, content: bytes, *, add_bos: bool = False, add_eos: bool = False
) -> SentencePiece:
    """Reads a model.

    Args:
        where: The file's name, for errors.
        content: Its bytes.
        add_bos: The token that begins a text is put before it.
        add_eos: The token that ends a text is put after it.

    Raises:
        FileError: The file is damaged.
        UnsupportedError: The model works in another way than by unigrams or pairs.
    """
    try:
        found = _found(content)
    except WireError as err:
        raise FileError(Problem(where, f"is not a model of SentencePiece: {err}")) from err
    kind = _MODELS.get(found.model, str(found.model))
    if kind not in ("unigram", "bpe"):
        what = f"models of type {kind} are not supported"
        raise UnsupportedError(Problem(where, what, "train one of type unigram or bpe"))
    _check(where, found)
    texts = [piece.text for piece in found.pieces]
    kinds = [piece.kind for piece in found.pieces]

    def place(token: str, flag: str) -> int:
        if token not in texts:
            raise FileError(Problem(where, f"{flag} needs the token {token!r}, which is not there"))
        return texts.index(token)

    return SentencePiece(
        pieces=tuple(found.pieces),
        unigram=kind == "unigram",
        charsmap=found.charsmap,
        unknown=kinds.index(Kind.UNKNOWN),
        surface=found.surface,
        falls_back=found.falls_back,
        first=place(found.first, "add_bos") if add_bos else None,
        last=place(found.last, "add_eos") if add_eos else None,
        prefix=found.prefix,
        after=found.after,
        trim=found.trim,
        mark=found.mark,
        silent=None,
    )


def shifted(model: SentencePiece, *, mask: bool) -> SentencePiece:
    """Returns a model whose numbers are those of the models after XLM-RoBERTa.

    They have the tokens `<s>`, `<pad>`, `</s>` and `<unk>` in the place of the file's first three.

    Args:
        model: The model of the file.
        mask: The last token is `<mask>`, and padding is decoded as unknown.
    """
    pad = Kind.UNKNOWN if mask else Kind.CONTROL
    kinds = (("<s>", Kind.CONTROL), ("<pad>", pad), ("</s>", Kind.CONTROL), ("<unk>", pad))
    first = tuple(Piece(text, 0.0, kind) for text, kind in kinds)
    last = (Piece("<mask>", 0.0, Kind.CONTROL),) if mask else ()
    return replace(model, pieces=(*first, *model.pieces[3:], *last), unknown=3)


def with_mask(model: SentencePiece, mask: str) -> SentencePiece:
    """Returns a model that has a token for masked text, which decoding leaves out."""
    texts = [piece.text for piece in model.pieces]
    if mask in texts:
        return replace(model, silent=texts.index(mask))
    piece = Piece(mask, 0.0, Kind.CONTROL)
    return replace(model, pieces=(*model.pieces, piece), silent=len(texts))


def _check(where: str, found: _Found) -> None:
    """Checks what the search for tokens relies on.

    Raises:
        FileError: The file contradicts itself.
        UnsupportedError: It has what the search does not know.
    """

    def wrong(what: str) -> FileError:
        return FileError(Problem(where, what))

    kinds = [piece.kind for piece in found.pieces]
    if kinds.count(Kind.UNKNOWN) != 1:
        raise wrong(f"has {kinds.count(Kind.UNKNOWN)} tokens for unknown characters, not one")
    texts = [piece.text for piece in found.pieces]
    if "" in texts:
        raise wrong(f"token {texts.index('')} is empty")
    if len(set(texts)) < len(texts):
        twice = next(text for at, text in enumerate(texts) if text in texts[:at])
        raise wrong(f"has the token {twice!r} twice")
    if any(not math.isfinite(piece.score) for piece in found.pieces):
        raise wrong("has a score that is not finite")
    if not any(kind is Kind.NORMAL for kind in kinds):
        raise wrong("has no ordinary tokens")
    bytes_ = [piece.text for piece in found.pieces if piece.kind is Kind.BYTE]
    if found.falls_back and bytes_ != [f"<0x{byte:02X}>" for byte in range(_BYTES)]:
        raise wrong("falls back to bytes, and its tokens of bytes are not the 256 in their order")
    if _MODELS[found.model] == "bpe" and Kind.UNUSED in kinds:
        what = "merges of unused tokens are not supported"
        raise UnsupportedError(Problem(where, what, "export the model without unused tokens"))


def _found(content: bytes) -> _Found:
    found = _Found()
    for key, value in fields(content):
        if key == 1:
            found.pieces.append(_piece(data(value)))
        elif key == 2:
            _train(found, data(value))
        elif key == 3:
            _normalize(found, data(value))
    return found


def _piece(message: bytes) -> Piece:
    piece = Piece("", 0.0, Kind.NORMAL)
    for key, value in fields(message):
        match key:
            case 1:
                piece = replace(piece, text=text(value))
            case 2:
                piece = replace(piece, score=single(value))
            case 3:
                kind = _KINDS.get(number(value))
                if kind is None:
                    raise WireError(f"a token has the kind {number(value)}, which there is not")
                piece = replace(piece, kind=kind)
            case _:
                pass
    return piece


def _train(found: _Found, message: bytes) -> None:
    for key, value in fields(message):
        match key:
            case 3:
                found.model = number(value)
            case 24:
                found.after = bool(number(value))
            case 35:
                found.falls_back = bool(number(value))
            case 44:
                found.surface = text(value)
            case 46:
                found.first = text(value)
            case 47:
                found.last = text(value)
            case _:
                pass


def _normalize(found: _Found, message: bytes) -> None:
    for key, value in fields(message):
        match key:
            case 2:
                found.charsmap = data(value)
            case 3:
                found.prefix = bool(number(value))
            case 4:
                found.trim = bool(number(value))
            case 5:
                found.mark = bool(number(value))
            case _:
                pass
