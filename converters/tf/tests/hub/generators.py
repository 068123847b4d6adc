"""Models that continue a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from keras_hub import models

from converters.tf.tests.hub.encoders import LENGTH, SIZES
from converters.tf.tests.hub.entry import WORDS, Entry

GROUPED: Final[Mapping[str, Any]] = {
    "vocabulary_size": WORDS,
    "num_layers": 2,
    "num_query_heads": 4,
    "num_key_value_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
}
"""Of every transformer whose queries share keys and values."""
_SLIDING: Final = {"use_sliding_window_attention": True, "sliding_window_size": 4}

_LINEAR: Final = {
    "head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 4,
    "linear_value_head_dim": 4,
    "linear_conv_kernel_dim": 3,
}


def _bloom() -> Any:
    return models.BloomBackbone(**SIZES)


def _falcon() -> Any:
    return models.FalconBackbone(
        vocabulary_size=WORDS,
        num_layers=2,
        num_attention_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
    )


def _gemma() -> Any:
    return models.GemmaBackbone(**GROUPED, head_dim=4)


def _gemma_2() -> Any:
    return models.GemmaBackbone(
        **GROUPED,
        **_SLIDING,
        head_dim=4,
        use_post_ffw_norm=True,
        use_post_attention_norm=True,
        attention_logit_soft_cap=50.0,
        final_logit_soft_cap=30.0,
    )


def _gemma_3() -> Any:
    backbone = models.Gemma3Backbone(**GROUPED, **_SLIDING, head_dim=4, image_size=16)
    return models.Gemma3CausalLM(preprocessor=None, backbone=backbone)


def _gemma_4() -> Any:
    sizes = {**GROUPED, "num_layers": 6}
    backbone = models.Gemma4Backbone(**sizes, head_dim=4, image_size=16, sliding_window_size=4)
    return models.Gemma4CausalLM(preprocessor=None, backbone=backbone)


def _gpt_2() -> Any:
    return models.GPT2Backbone(**SIZES, **LENGTH)


def _gpt_neo_x() -> Any:
    return models.GPTNeoXBackbone(**{**SIZES, "hidden_dim": 16})


def _gpt_oss() -> Any:
    return models.GptOssBackbone(**GROUPED, num_experts=4, head_dim=4, sliding_window=4)


def _llama() -> Any:
    return models.LlamaBackbone(**GROUPED)


def _llama_3() -> Any:
    return models.Llama3Backbone(
        **GROUPED,
        rope_frequency_adjustment_factor=8,
        rope_low_freq_factor=1,
        rope_high_freq_factor=4,
        rope_pretraining_sequence_length=8,
    )


def _mistral() -> Any:
    return models.MistralBackbone(**GROUPED, sliding_window=4)


def _mixtral() -> Any:
    return models.MixtralBackbone(**GROUPED, num_experts=4)


def _opt() -> Any:
    return models.OPTBackbone(**SIZES, **LENGTH)


def _phi_3() -> Any:
    return models.Phi3Backbone(**GROUPED)


def _phi_3_su() -> Any:
    return models.Phi3Backbone(
        **GROUPED,
        max_sequence_length=20,
        pretraining_sequence_length=8,
        rope_scaling_type="su",
        rope_scaling_short_factor=[1.2, 1.1],
        rope_scaling_long_factor=[1.5, 1.3],
    )


def _qwen() -> Any:
    return models.QwenBackbone(**GROUPED)


def _qwen_3() -> Any:
    return models.Qwen3Backbone(**GROUPED, head_dim=4)


def _qwen_3_5() -> Any:
    return models.Qwen3_5Backbone(**{**GROUPED, "num_layers": 4}, **_LINEAR)


def _qwen_3_5_moe() -> Any:
    sizes = {name: size for name, size in GROUPED.items() if name != "intermediate_dim"}
    return models.Qwen3_5MoeBackbone(
        **{**sizes, "num_layers": 4},
        **_LINEAR,
        moe_intermediate_dim=8,
        shared_expert_intermediate_size=8,
        num_experts=4,
        top_k=2,
    )


def _qwen_moe() -> Any:
    return models.QwenMoeBackbone(
        **GROUPED,
        moe_intermediate_dim=8,
        shared_expert_intermediate_dim=8,
        num_experts=4,
        top_k=2,
    )


def _qwen_3_moe() -> Any:
    return models.Qwen3MoeBackbone(
        **GROUPED, moe_intermediate_dim=8, num_experts=4, top_k=2, head_dim=4
    )


def _rwkv_7() -> Any:
    return models.RWKV7Backbone(
        vocabulary_size=WORDS,
        num_layers=2,
        hidden_size=16,
        head_size=8,
        intermediate_dim=24,
        gate_lora=4,
        mv_lora=4,
        aaa_lora=4,
        decay_lora=4,
    )


def _smol_lm_3() -> Any:
    return models.SmolLM3Backbone(
        vocabulary_size=WORDS,
        hidden_dim=16,
        intermediate_dim=24,
        num_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        attention_bias=False,
        attention_dropout=0.0,
        rope_layer_enabled_list=[True, False],
        layer_types=["full_attention"] * 2,
        mlp_bias=False,
        layer_norm_epsilon=1e-6,
        max_position_embeddings=20,
        rope_theta=1e4,
        partial_rotary_factor=1.0,
    )


def _causal(kind: Any, backbone: Callable[[], Any]) -> Entry:
    return Entry(lambda: kind(backbone()))


ENTRIES: Final = {
    "BloomBackbone": Entry(_bloom),
    "BloomCausalLM": _causal(models.BloomCausalLM, _bloom),
    "FalconBackbone": Entry(_falcon),
    "FalconCausalLM": _causal(models.FalconCausalLM, _falcon),
    "GemmaBackbone": Entry(_gemma),
    "GemmaCausalLM": _causal(models.GemmaCausalLM, _gemma),
    "GemmaCausalLM-2": _causal(models.GemmaCausalLM, _gemma_2),
    "Gemma3CausalLM": Entry(_gemma_3),
    "Gemma4CausalLM": Entry(_gemma_4),
    "GPT2Backbone": Entry(_gpt_2),
    "GPT2CausalLM": _causal(models.GPT2CausalLM, _gpt_2),
    "GPTNeoXBackbone": Entry(_gpt_neo_x),
    "GPTNeoXCausalLM": _causal(models.GPTNeoXCausalLM, _gpt_neo_x),
    "GptOssBackbone": Entry(_gpt_oss),
    "LlamaBackbone": Entry(_llama),
    "LlamaCausalLM": _causal(models.LlamaCausalLM, _llama),
    "Llama3Backbone": Entry(_llama_3),
    "MistralBackbone": Entry(_mistral),
    "MistralCausalLM": _causal(models.MistralCausalLM, _mistral),
    "MixtralBackbone": Entry(_mixtral),
    "MixtralCausalLM": _causal(models.MixtralCausalLM, _mixtral),
    "OPTBackbone": Entry(_opt),
    "OPTCausalLM": _causal(models.OPTCausalLM, _opt),
    "Phi3Backbone": Entry(_phi_3),
    "Phi3Backbone-su": Entry(_phi_3_su),
    "Phi3CausalLM": _causal(models.Phi3CausalLM, _phi_3),
    "QwenCausalLM": _causal(models.QwenCausalLM, _qwen),
    "Qwen3CausalLM": _causal(models.Qwen3CausalLM, _qwen_3),
    "Qwen3_5Backbone": Entry(_qwen_3_5),
    "Qwen3_5MoeBackbone": Entry(_qwen_3_5_moe),
    "QwenMoeBackbone": Entry(_qwen_moe),
    "Qwen3MoeBackbone": Entry(_qwen_3_moe),
    "RWKV7Backbone": Entry(_rwkv_7, {"token_ids": (16,), "padding_mask": (16,)}),
    "SmolLM3Backbone": Entry(_smol_lm_3),
}
