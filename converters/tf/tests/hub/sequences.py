"""Models that make a sentence of another one, or of speech."""

from __future__ import annotations

from typing import Any, Final

from keras_hub import models

from converters.tf.tests.hub.encoders import LENGTH, SIZES
from converters.tf.tests.hub.entry import WORDS, Entry


def _bart() -> Any:
    return models.BartBackbone(**SIZES, **LENGTH)


def _moonshine() -> Any:
    return models.MoonshineBackbone(
        vocabulary_size=WORDS,
        filter_dim=8,
        encoder_num_layers=1,
        decoder_num_layers=1,
        hidden_dim=8,
        intermediate_dim=16,
        encoder_num_heads=2,
        decoder_num_heads=2,
    )


def _ed_rec() -> Any:
    return models.EdRecBackbone(
        vocab_size=WORDS,
        num_layers_enc=2,
        num_layers_dec=2,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
    )


def _gemma_sizes() -> dict[str, Any]:
    sizes: dict[str, Any] = {"vocabulary_size": WORDS}
    for side in ("encoder", "decoder"):
        sizes |= {
            f"{side}_hidden_dim": 8,
            f"{side}_intermediate_dim": 16,
            f"{side}_num_layers": 2,
            f"{side}_num_attention_heads": 2,
            f"{side}_num_key_value_heads": 1,
            f"{side}_head_dim": 4,
            f"{side}_layer_types": ["sliding_attention", "full_attention"],
        }
    return sizes | {
        "sliding_window": 4,
        "cross_attention_hidden_size": 8,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "query_pre_attn_scalar": 4,
    }


def _t5_gemma() -> Any:
    return models.T5GemmaSeq2SeqLM(models.T5GemmaBackbone(**_gemma_sizes()))


def _t5_gemma_2() -> Any:
    return models.T5Gemma2Seq2SeqLM(models.T5Gemma2Backbone(**_gemma_sizes()))


def _whisper() -> Any:
    return models.WhisperBackbone(
        **SIZES, num_mels=8, max_encoder_sequence_length=24, max_decoder_sequence_length=10
    )


ENTRIES: Final = {
    "BartBackbone": Entry(_bart),
    "BartSeq2SeqLM": Entry(lambda: models.BartSeq2SeqLM(_bart())),
    "EdRecSeq2SeqLM": Entry(lambda: models.EdRecSeq2SeqLM(_ed_rec())),
    "MoonshineBackbone": Entry(
        _moonshine, {"encoder_input_values": (2000, 1), "encoder_padding_mask": (2000,)}
    ),
    "T5Backbone": Entry(lambda: models.T5Backbone(**SIZES)),
    "T5GemmaSeq2SeqLM": Entry(_t5_gemma),
    "T5Gemma2Seq2SeqLM": Entry(_t5_gemma_2),
    "WhisperBackbone": Entry(_whisper, {"encoder_features": (24, 8)}),
}
