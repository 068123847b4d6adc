"""Models of images and text together, and those that make images."""

from __future__ import annotations

from typing import Any, Final

from keras_hub import models
from keras_hub.src.models.clip.clip_text_encoder import CLIPTextEncoder
from keras_hub.src.models.clip.clip_vision_encoder import CLIPVisionEncoder
from keras_hub.src.models.siglip.siglip_text_encoder import SigLIPTextEncoder
from keras_hub.src.models.siglip.siglip_vision_encoder import SigLIPVisionEncoder
from keras_hub.src.models.stable_diffusion_3.mmdit import MMDiT
from keras_hub.src.models.vae.vae_backbone import VAEBackbone

from converters.tf.tests.hub.entry import IMAGE, WORDS, Entry

_TOWER: Final = {"hidden_dim": 16, "num_layers": 2, "num_heads": 2, "intermediate_dim": 32}
_EYES: Final = {**_TOWER, "patch_size": 8, "image_shape": IMAGE}
_WORDS: Final = {
    **_TOWER,
    "vocabulary_size": WORDS,
    "embedding_dim": 16,
    "max_sequence_length": 12,
}


def _clip() -> Any:
    eyes, words = CLIPVisionEncoder(**_EYES), CLIPTextEncoder(**_WORDS)
    return models.CLIPBackbone(eyes, words, projection_dim=8)


def _sig_lip() -> Any:
    return models.SigLIPBackbone(SigLIPVisionEncoder(**_EYES), SigLIPTextEncoder(**_WORDS))


def _flux() -> Any:
    return models.FluxBackbone(
        input_channels=16,
        hidden_size=32,
        mlp_ratio=2.0,
        num_heads=2,
        depth=1,
        depth_single_blocks=1,
        axes_dim=[4, 6, 6],
        theta=10000,
        use_bias=True,
        guidance_embed=True,
        image_shape=(6, 16),
        text_shape=(5, 24),
        image_ids_shape=(6, 3),
        text_ids_shape=(5, 3),
        y_shape=(12,),
    )


def _mm_di_t() -> Any:
    return MMDiT(
        patch_size=2,
        hidden_dim=32,
        num_layers=2,
        num_heads=2,
        position_size=12,
        qk_norm="rms_norm",
        dual_attention_indices=(0,),
        output_dim=4,
        latent_shape=(8, 8, 4),
        context_shape=(5, 16),
        pooled_projection_shape=(12,),
    )


def _pali_gemma() -> Any:
    return models.PaliGemmaBackbone(
        vocabulary_size=WORDS,
        image_size=16,
        num_layers=2,
        num_query_heads=2,
        num_key_value_heads=1,
        hidden_dim=8,
        intermediate_dim=16,
        head_dim=4,
        vit_patch_size=8,
        vit_num_heads=2,
        vit_hidden_dim=8,
        vit_num_layers=1,
        vit_intermediate_dim=16,
    )


def _par_seq() -> Any:
    encoder = models.ViTBackbone(
        image_shape=(16, 32, 3),
        patch_size=(4, 8),
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        mlp_dim=32,
        use_class_token=False,
    )
    return models.PARSeqBackbone(
        image_encoder=encoder,
        vocabulary_size=WORDS,
        max_label_length=7,
        decoder_hidden_dim=16,
        num_decoder_layers=1,
        num_decoder_heads=2,
        decoder_mlp_dim=32,
    )


def _vae() -> Any:
    return VAEBackbone(
        [32, 32], [1, 1], [32, 32], [1, 1], sampler_method="mode", image_shape=(16, 16, 3)
    )


def _video_prism() -> Any:
    return models.VideoPrismBackbone(
        num_frames=3,
        patch_size=8,
        hidden_dim=16,
        intermediate_dim=32,
        num_heads=2,
        num_spatial_layers=1,
        num_temporal_layers=1,
        num_auxiliary_layers=0,
        image_shape=(32, 32, 3),
    )


ENTRIES: Final = {
    "CLIPBackbone": Entry(_clip, refused=True),
    "FluxBackbone": Entry(_flux),
    "MMDiT": Entry(_mm_di_t),
    "PaliGemmaBackbone": Entry(_pali_gemma),
    "PARSeqBackbone": Entry(_par_seq, {"token_ids": (7,), "padding_mask": (7,)}),
    "SigLIPBackbone": Entry(_sig_lip, refused=True),
    "VAEBackbone": Entry(_vae, {"": (16, 16, 3)}),
    "VideoPrismBackbone": Entry(_video_prism),
}
