"""Reads the folder that KerasHub's `save_to_preset` writes of a tokenizer."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from converters.tokenizer.errors import FileError
from converters.tokenizer.load import sentence_piece
from converters.tokenizer.model import BytePair, SentencePiece, Split, Tokenizer, WordPiece
from tools.codegen.conversion import Problem, UnsupportedError

CONFIG = "tokenizer.json"
_ASSETS = Path("assets", "tokenizer")

# Classes by the file that they have, and the tokens that a text of theirs may hold whole.
_WORD_PIECE = {
    "WordPieceTokenizer": (),
    "BertTokenizer": ("[CLS]", "[SEP]", "[PAD]", "[MASK]"),
    "DistilBertTokenizer": ("[CLS]", "[SEP]", "[PAD]", "[MASK]"),
    "ElectraTokenizer": ("[CLS]", "[SEP]", "[PAD]", "[MASK]"),
    "ESMTokenizer": ("<cls>", "<eos>", "<pad>", "<mask>"),
    "RoformerV2Tokenizer": ("[CLS]", "[SEP]", "[PAD]", "[MASK]"),
}
# Classes, and the tokens that they pad with; number 0 where there is none.
_BYTE_PAIR = {
    "BLIP2OPTTokenizer": "<pad>",
    "BartTokenizer": "<pad>",
    "BloomTokenizer": "<pad>",
    "BytePairTokenizer": "",
    "FalconTokenizer": "",
    "GPT2Tokenizer": "",
    "GPTNeoXTokenizer": "",
    "GptOssTokenizer": "",
    "Llama3Tokenizer": "",
    "OPTTokenizer": "<pad>",
    "Qwen3MoeTokenizer": "<|endoftext|>",
    "Qwen3Tokenizer": "<|endoftext|>",
    "Qwen3_5MoeTokenizer": "<|endoftext|>",
    "Qwen3_5Tokenizer": "<|endoftext|>",
    "QwenMoeTokenizer": "",
    "QwenTokenizer": "",
    "RobertaTokenizer": "<pad>",
    "SmolLM3Tokenizer": "",
}
_SENTENCE_PIECE = {
    "AlbertTokenizer": "<pad>",
    "BLIP2FlanT5Tokenizer": "<pad>",
    "DebertaV3Tokenizer": "[PAD]",
    "FNetTokenizer": "<pad>",
    "Gemma3Tokenizer": "<pad>",
    "Gemma3nTokenizer": "<pad>",
    "Gemma4Tokenizer": "<pad>",
    "GemmaTokenizer": "<pad>",
    "LlamaTokenizer": "",
    "MetaCLIP2Tokenizer": "<pad>",
    "MistralTokenizer": "",
    "MixtralTokenizer": "",
    "MoonshineTokenizer": "",
    "PaliGemmaTokenizer": "<pad>",
    "Phi3Tokenizer": "",
    "SentencePieceTokenizer": "",
    "SigLIPTokenizer": "</s>",
    "T5Gemma2Tokenizer": "<pad>",
    "T5GemmaTokenizer": "<pad>",
    "T5Tokenizer": "<pad>",
    "VideoPrismTokenizer": "",
    "XLMRobertaTokenizer": "<pad>",
}
_SHIFTED = ("MetaCLIP2Tokenizer", "XLMRobertaTokenizer")
# Numbers of tokens are at most this many times their count, so that a table of them has a bound.
_SPARSE = 4


def read(folder: Path, split: Split | None) -> Tokenizer:
    """Reads a tokenizer.

    Args:
        folder: Where `tokenizer.json` is.
        split: How a text is taken apart before bytes are merged.

    Raises:
        FileError: A file is missing or damaged.
        UnsupportedError: The class is not known.
    """
    described = _object(folder / CONFIG)
    name, config = described.get("class_name"), described.get("config")
    if not isinstance(name, str) or not isinstance(config, dict):
        what = "has no class_name and config, which KerasHub's save_to_preset writes"
        raise FileError(Problem(str(folder / CONFIG), what))
    where = f"{folder / CONFIG}: {name}"
    length = _length(where, config)
    files = folder / _ASSETS
    if name in _WORD_PIECE:
        model = _word_piece(where, name, config, files / "vocabulary.txt")
        return Tokenizer(name, model, 0, length)
    if name in _BYTE_PAIR:
        pairs = _byte_pair(where, config, files, split or Split.WHOLE)
        pad = _id(where, pairs.ids, _BYTE_PAIR[name])
        return Tokenizer(name, pairs, pad, length)
    if name in _SENTENCE_PIECE:
        pieces = _sentence_piece(where, name, config, files / "vocabulary.spm")
        ids = {piece.text: id_ for id_, piece in enumerate(pieces.pieces)}
        return Tokenizer(name, pieces, _id(where, ids, _SENTENCE_PIECE[name]), length)
    what = "is not a tokenizer of KerasHub whose way to take text apart is known"
    advice = "there are WordPiece, BytePair and SentencePiece tokenizers; see the documentation"
    raise UnsupportedError(Problem(where, what, advice))


def _word_piece(where: str, name: str, config: dict[str, Any], file: Path) -> WordPiece:
    # As Python reads lines, whichever ends they have.
    tokens = tuple(line.rstrip() for line in io.StringIO(_text(file), newline=None))
    unknown = _string(where, config, "oov_token", "[UNK]")
    if unknown not in tokens:
        raise FileError(Problem(str(file), f"has no {unknown!r}, the token of unknown words"))
    split = _flag(where, config, "split", default=True)
    specials: tuple[str, ...] = ()
    if split and _flag(where, config, "special_tokens_in_strings", default=False):
        specials = (*_WORD_PIECE[name], *_strings(where, config, "special_tokens"))
        if "" in specials:
            raise FileError(Problem(where, "a special token is empty"))
    return WordPiece(
        tokens,
        unknown,
        suffix=_string(where, config, "suffix_indicator", "##"),
        specials=specials,
        lowercase=_flag(where, config, "lowercase", default=False),
        strip_accents=_flag(where, config, "strip_accents", default=False),
        split=split,
        split_on_cjk=_flag(where, config, "split_on_cjk", default=True),
    )


def _byte_pair(where: str, config: dict[str, Any], files: Path, split: Split) -> BytePair:
    file = files / "vocabulary.json"
    ids = _object(file)
    if not all(isinstance(id_, int) and not isinstance(id_, bool) for id_ in ids.values()):
        raise FileError(Problem(str(file), "has a token whose number is not an integer"))
    most = _SPARSE * len(ids) + 1000
    if wrong := next((token for token, id_ in ids.items() if not 0 <= id_ < most), None):
        what = f"the number of {wrong!r} is {ids[wrong]}, and there are {len(ids)} tokens"
        raise FileError(Problem(str(file), what))
    file = files / "merges.txt"
    merges = []
    for at, line in enumerate(io.StringIO(_text(file), newline=None), 1):
        rule = line.rstrip()
        if "#version:" in rule.lstrip():
            continue
        pair = rule.split(" ")
        tokens = [*pair, "".join(pair)]
        if len(pair) != 2 or any(token not in ids for token in tokens):
            what = f"line {at}, {rule!r}, is not two tokens that are one token of the vocabulary"
            raise FileError(Problem(str(file), what))
        merges.append((pair[0], pair[1]))
    whole: dict[str, int] = {}
    added = len(ids)
    for token in _strings(where, config, "unsplittable_tokens"):
        if token and token not in whole:
            whole[token] = ids.get(token, added)
            added += token not in ids
    prefix = _flag(where, config, "add_prefix_space", default=False)
    return BytePair({**ids, **whole}, tuple(merges), whole, prefix, split)


def _sentence_piece(where: str, name: str, config: dict[str, Any], file: Path) -> SentencePiece:
    first = _flag(where, config, "add_bos", default=False)
    last = _flag(where, config, "add_eos", default=False)
    model = sentence_piece.read(str(file), _bytes(file), add_bos=first, add_eos=last)
    if name == "DebertaV3Tokenizer":
        return sentence_piece.with_mask(model, "[MASK]")
    if name not in _SHIFTED:
        return model
    if first or last:
        raise UnsupportedError(Problem(where, "add_bos and add_eos are not supported there"))
    return sentence_piece.shifted(model, mask=name == "XLMRobertaTokenizer")


def _id(where: str, ids: dict[str, int], pad: str) -> int:
    if pad and pad not in ids:
        raise FileError(
            Problem(where, f"the vocabulary has no {pad!r}, with which texts are padded")
        )
    return ids[pad] if pad else 0


def _length(where: str, config: dict[str, Any]) -> int | None:
    length = config.get("sequence_length")
    if length is None or (isinstance(length, int) and 0 < length < 1 << 31):
        return length
    raise FileError(Problem(where, f"sequence_length is {length!r}, not a count of tokens"))


def _flag(where: str, config: dict[str, Any], name: str, *, default: bool) -> bool:
    value = config.get(name, default)
    if not isinstance(value, bool):
        raise FileError(Problem(where, f"{name} is {value!r}, not true or false"))
    return value


def _string(where: str, config: dict[str, Any], name: str, default: str) -> str:
    value = config.get(name, default)
    if not isinstance(value, str):
        raise FileError(Problem(where, f"{name} is {value!r}, not a text"))
    return value


def _strings(where: str, config: dict[str, Any], name: str) -> tuple[str, ...]:
    values = config.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise FileError(Problem(where, f"{name} is {values!r}, not a list of texts"))
    return tuple(values)


def _object(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(file))
        # An escape may be half of a pair of UTF-16, which is no text.
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as err:
        raise FileError(Problem(str(file), f"has a text that is not Unicode: {err}")) from err
    except (ValueError, RecursionError) as err:
        raise FileError(Problem(str(file), f"is not JSON: {err}")) from err
    if not isinstance(found, dict):
        raise FileError(Problem(str(file), "is not an object of JSON"))
    return found


def _text(file: Path) -> str:
    try:
        return _bytes(file).decode()
    except UnicodeDecodeError as err:
        raise FileError(Problem(str(file), f"is not UTF-8: {err}")) from err


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as err:
        raise FileError(Problem(str(file), f"can't be read: {err.strerror or err}")) from err
