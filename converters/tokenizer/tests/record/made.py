"""Small tokenizers of KerasHub, trained on the words of a few texts."""

# Letters of other scripts look like Latin ones.

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

CORPUS = (
    "the quick brown fox jumps over the lazy dog and the dog sleeps",
    "a tensor is an array of numbers and a graph is a set of operations",
    "kernels compute what a model needs, don't they? It's 12 or 1234 o'clock!",
    "TensorFlow and Rust: a plug-in, a client, and two converters (see the documentation).",
    "Über die Straße läuft ein Fuchs; café, naïve, jalapeño, São Paulo, Ελλάδα, привет Москва",
    "東京 中文 안녕하세요 ありがとう שלום السلام 1 22 333 4444 3.14 1e-5 $5 #tag @name a_b",
    "training and trained, loading and loaded, words and wording, open and opened, read and reader",
) * 6


def _words() -> list[str]:
    """Returns a vocabulary of WordPiece."""
    pieces = {
        "the",
        "and",
        "a",
        "an",
        "of",
        "is",
        "tensor",
        "graph",
        "quick",
        "brown",
        "fox",
        "dog",
    }
    pieces |= {"train", "load", "word", "open", "read", "uber", "cafe", "naive", "don", "it", "12"}
    tails = {"ing", "ed", "s", "er", "flow", "34", "rain", "t", "the", "o", "é", "ß", "ss"}
    letters = sorted({c for line in CORPUS for c in line.lower() if not c.isspace()})
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [*specials, *letters, *sorted(pieces), *(f"##{tail}" for tail in sorted(tails))]
    return [*dict.fromkeys(tokens), "##a", "##b"]


def _pairs() -> tuple[dict[str, int], list[str]]:
    """Returns a vocabulary of byte pairs and their merges."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"],
        show_progress=False,
        max_token_length=12,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [" ".join(pair) for pair in model["merges"]]


def _pieces(**options: Any) -> bytes:
    """Returns a model of SentencePiece."""
    import sentencepiece

    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=out,
        minloglevel=2,
        num_threads=1,
        **{"vocab_size": 200, "hard_vocab_limit": False, **options},
    )
    return out.getvalue()


_T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "pad_piece": "<pad>"}
_ALBERT = {
    "pad_id": 0,
    "unk_id": 1,
    "bos_id": 2,
    "eos_id": 3,
    "pad_piece": "<pad>",
    "bos_piece": "[CLS]",
    "eos_piece": "[SEP]",
    "user_defined_symbols": "[MASK]",
    "normalization_rule_name": "nmt_nfkc_cf",
}
_PLAIN = {"normalization_rule_name": "identity"}
_DEBERTA = {
    **_PLAIN,
    "pad_id": 0,
    "bos_id": 1,
    "eos_id": 2,
    "unk_id": 3,
    "pad_piece": "[PAD]",
    "bos_piece": "[CLS]",
    "eos_piece": "[SEP]",
    "unk_piece": "[UNK]",
}
_LLAMA = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity"}
_SPACES = {**_PLAIN, "remove_extra_whitespaces": False, "user_defined_symbols": "<special>,👍"}


def made() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields names and what makes a tokenizer."""
    import keras_hub

    hub, words = keras_hub.models, _words()
    vocabulary, merges = _pairs()
    pairs = {"vocabulary": vocabulary, "merges": merges}
    piece, tokenizers = keras_hub.tokenizers.SentencePieceTokenizer, keras_hub.tokenizers
    yield (
        "bert",
        lambda: hub.BertTokenizer(
            words, lowercase=True, strip_accents=True, special_tokens_in_strings=True
        ),
    )
    yield (
        "cased",
        lambda: tokenizers.WordPieceTokenizer(
            words, sequence_length=12, special_tokens=["[MASK]"], special_tokens_in_strings=True
        ),
    )
    yield "lowercase", lambda: hub.DistilBertTokenizer(words, lowercase=True)
    yield "accents", lambda: hub.ElectraTokenizer(words, strip_accents=True)
    yield "words", lambda: tokenizers.WordPieceTokenizer(words, split=False, lowercase=True)
    yield "gpt2", lambda: hub.GPT2Tokenizer(**pairs)
    yield (
        "roberta",
        lambda: hub.RobertaTokenizer(**pairs, add_prefix_space=True, sequence_length=20),
    )
    yield "albert", lambda: hub.AlbertTokenizer(_pieces(**_ALBERT))
    yield "t5", lambda: hub.T5Tokenizer(_pieces(**_T5), sequence_length=24)
    yield "deberta", lambda: hub.DebertaV3Tokenizer(_pieces(**_DEBERTA))
    yield (
        "xlm_roberta",
        lambda: hub.XLMRobertaTokenizer(_pieces(**_PLAIN, bos_id=1, eos_id=2, unk_id=0)),
    )
    yield "llama", lambda: hub.LlamaTokenizer(_pieces(**_LLAMA, vocab_size=460), add_bos=True)
    yield "spaces", lambda: piece(_pieces(**_SPACES), add_bos=True, add_eos=True)
    yield "suffix", lambda: piece(_pieces(**_PLAIN, treat_whitespace_as_suffix=True))
    yield (
        "bpe",
        lambda: piece(_pieces(**_PLAIN, model_type="bpe", user_defined_symbols="<special>")),
    )
    yield "bytes", lambda: piece(_pieces(**_PLAIN, byte_fallback=True, vocab_size=420))
