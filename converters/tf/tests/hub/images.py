"""Models that say what an image is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from keras_hub import models

from converters.tf.tests.hub.entry import IMAGE, Entry

_CLASSES: Final = 4
_VIT: Final = {
    "image_shape": (32, 32, 3),
    "patch_size": (8, 8),
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
}
_DINO: Final = {
    "patch_size": 8,
    "num_layers": 2,
    "hidden_dim": 16,
    "num_heads": 2,
    "intermediate_dim": 32,
    "image_shape": IMAGE,
}


def resnet(**other: Any) -> Any:
    """Returns a small ResNet.

    Args:
        **other: Arguments of its class in place of those here.
    """
    sizes: dict[str, Any] = {
        "input_conv_filters": [64],
        "input_conv_kernel_sizes": [7],
        "stackwise_num_filters": [64, 32, 32, 32],
        "stackwise_num_blocks": [2, 2, 1, 1],
        "stackwise_num_strides": [1, 2, 2, 2],
        "block_type": "basic_block",
        "image_shape": IMAGE,
    }
    return models.ResNetBackbone(**{**sizes, **other})


def mit() -> Any:
    """Returns a small mixed transformer."""
    return models.MiTBackbone(
        layerwise_depths=[1, 1, 1, 1],
        num_layers=4,
        layerwise_num_heads=[1, 2, 2, 4],
        layerwise_sr_ratios=[8, 4, 2, 1],
        max_drop_path_rate=0.1,
        layerwise_patch_sizes=[7, 3, 3, 3],
        layerwise_strides=[4, 2, 2, 2],
        image_shape=IMAGE,
        hidden_dims=[8, 16, 24, 32],
    )


def hgnet_v2(out: Sequence[str] | None = None) -> Any:
    """Returns a small HGNetV2.

    Args:
        out: Stages that are its outputs; the last one alone if not given.
    """
    return models.HGNetV2Backbone(
        depths=[1, 1, 2, 1],
        embedding_size=8,
        hidden_sizes=[16, 24, 32, 48],
        stem_channels=[3, 8, 8],
        hidden_act="relu",
        use_learnable_affine_block=True,
        stackwise_stage_filters=[
            [8, 8, 16, 1, 3, 3],
            [16, 8, 24, 1, 3, 3],
            [24, 8, 32, 2, 3, 5],
            [32, 8, 48, 1, 3, 5],
        ],
        apply_downsample=[False, True, True, True],
        use_lightweight_conv_block=[False, False, True, True],
        image_shape=IMAGE,
        out_features=out,
    )


def _csp_net(**other: Any) -> Any:
    sizes: dict[str, Any] = {
        "stem_filters": 8,
        "stem_kernel_size": 3,
        "stem_strides": 1,
        "stackwise_depth": [1, 2],
        "stackwise_strides": [2, 2],
        "stackwise_num_filters": [16, 24],
        "block_type": "dark_block",
        "image_shape": IMAGE,
        "stage_type": "csp",
        "bottle_ratio": [0.5],
        "block_ratio": [0.5],
        "expand_ratio": [1.0],
    }
    return models.CSPNetBackbone(**{**sizes, **other})


def _darknet() -> Any:
    return _csp_net(stage_type="dark", stem_filters=16, bottle_ratio=[1.0], block_ratio=[1.0])


def _csp_net_bottleneck() -> Any:
    return _csp_net(
        block_type="bottleneck_block",
        stem_pooling="max",
        stem_strides=4,
        stage_type="cs3",
        stem_filters=16,
    )


def _dense_net() -> Any:
    return models.DenseNetBackbone(
        stackwise_num_repeats=[2, 2, 2], compression_ratio=0.5, growth_rate=4, image_shape=IMAGE
    )


def _efficient_net() -> Any:
    return models.EfficientNetBackbone(
        stackwise_kernel_sizes=[3, 3, 5],
        stackwise_num_repeats=[1, 2, 1],
        stackwise_input_filters=[8, 8, 16],
        stackwise_output_filters=[8, 16, 16],
        stackwise_expansion_ratios=[1, 4, 4],
        stackwise_squeeze_and_excite_ratios=[0.25] * 3,
        stackwise_strides=[1, 2, 2],
        stackwise_block_types=["v1", "unfused", "fused"],
        stackwise_width_coefficients=[1.0] * 3,
        stackwise_depth_coefficients=[1.0] * 3,
        num_features=32,
        input_shape=IMAGE,
    )


def _mobile_net() -> Any:
    return models.MobileNetBackbone(
        stackwise_expansion=[[40, 56], [64, 144, 144], [72, 72], [144, 288, 288]],
        stackwise_num_blocks=[2, 3, 2, 3],
        stackwise_num_filters=[[16, 16], [24, 24, 24], [24, 24], [48, 48, 48]],
        stackwise_kernel_size=[[3, 3], [5, 5, 5], [5, 5], [5, 5, 5]],
        stackwise_num_strides=[[2, 1], [2, 1, 1], [1, 1], [2, 1, 1]],
        stackwise_se_ratio=[[None, None], [0.25, 0.25, 0.25], [0.3, 0.3], [0.3, 0.25, 0.25]],
        stackwise_activation=[
            ["relu", "relu"],
            ["hard_swish"] * 3,
            ["hard_swish"] * 2,
            ["hard_swish"] * 3,
        ],
        stackwise_padding=[[1, 1], [2, 2, 2], [2, 2], [2, 2, 2]],
        output_num_filters=64,
        input_activation="hard_swish",
        output_activation="hard_swish",
        input_num_filters=16,
        depthwise_filters=8,
        depthwise_stride=2,
        depthwise_residual=False,
        squeeze_and_excite=0.5,
        last_layer_filter=64,
        image_shape=IMAGE,
    )


def _mobile_net_v5() -> Any:
    return models.MobileNetV5Backbone(
        stackwise_block_types=[["er"], ["uir", "mqa"]],
        stackwise_num_blocks=[1, 2],
        stackwise_num_filters=[[24], [48, 48]],
        stackwise_strides=[[2], [2, 1]],
        stackwise_act_layers=[["relu"], ["relu", "relu"]],
        stackwise_exp_ratios=[[4.0], [6.0, 6.0]],
        stackwise_se_ratios=[[0.0], [0.0, 0.0]],
        stackwise_dw_kernel_sizes=[[0], [5, 5]],
        stackwise_dw_start_kernel_sizes=[[0], [0, 0]],
        stackwise_dw_end_kernel_sizes=[[0], [0, 0]],
        stackwise_exp_kernel_sizes=[[3], [0, 0]],
        stackwise_pw_kernel_sizes=[[1], [0, 0]],
        stackwise_num_heads=[[0], [0, 2]],
        stackwise_key_dims=[[0], [0, 8]],
        stackwise_value_dims=[[0], [0, 8]],
        stackwise_kv_strides=[[0], [0, 2]],
        stackwise_use_cpe=[[False], [False, False]],
        use_msfa=True,
        msfa_output_resolution=4,
        num_features=32,
        image_shape=IMAGE,
    )


def _swin() -> Any:
    return models.SwinTransformerBackbone(
        image_shape=IMAGE, embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=4
    )


def _vgg() -> Any:
    return models.VGGBackbone(
        stackwise_num_repeats=[1, 2], stackwise_num_filters=[8, 16], image_shape=(32, 32, 3)
    )


def _xception() -> Any:
    return models.XceptionBackbone(
        stackwise_conv_filters=[[8, 8], [16, 16], [16, 16, 16], [24, 24]],
        stackwise_pooling=[False, True, False, True],
        image_shape=IMAGE,
    )


def _dino_v2(**other: Any) -> Any:
    return models.DINOV2Backbone(**_DINO, position_embedding_shape=(32, 32, 3), **other)


def _classifier(kind: Any, backbone: Any, **other: Any) -> Entry:
    return Entry(lambda: kind(backbone(), num_classes=_CLASSES, **other))


ENTRIES: Final = {
    "CSPNetBackbone": Entry(_csp_net),
    "CSPNetBackbone-bottleneck": Entry(_csp_net_bottleneck),
    "CSPNetImageClassifier-darknet": _classifier(models.CSPNetImageClassifier, _darknet),
    "DeiTImageClassifier": _classifier(
        models.DeiTImageClassifier, lambda: models.DeiTBackbone(**_VIT, intermediate_dim=16)
    ),
    "DenseNetImageClassifier": _classifier(models.DenseNetImageClassifier, _dense_net),
    "DINOV2Backbone": Entry(_dino_v2),
    "DINOV2Backbone-swiglu": Entry(
        lambda: _dino_v2(
            use_swiglu_ffn=True, num_register_tokens=2, antialias_in_interpolation=True
        )
    ),
    "DINOV3Backbone": Entry(lambda: models.DINOV3Backbone(**_DINO)),
    "EfficientNetImageClassifier": _classifier(models.EfficientNetImageClassifier, _efficient_net),
    "HGNetV2ImageClassifier": _classifier(
        models.HGNetV2ImageClassifier, hgnet_v2, preprocessor=None
    ),
    "MiTImageClassifier": _classifier(models.MiTImageClassifier, mit),
    "MobileNetImageClassifier": _classifier(models.MobileNetImageClassifier, _mobile_net),
    "MobileNetV5Backbone": Entry(_mobile_net_v5),
    "MobileNetV5ImageClassifier": _classifier(models.MobileNetV5ImageClassifier, _mobile_net_v5),
    "ResNetBackbone": Entry(resnet),
    "ResNetBackbone-bottleneck-v2": Entry(
        lambda: resnet(block_type="bottleneck_block", use_pre_activation=True)
    ),
    "ResNetBackbone-channels-first": Entry(
        lambda: resnet(data_format="channels_first", image_shape=(3, 64, 64))
    ),
    "ResNetBackbone-vd": Entry(
        lambda: resnet(
            input_conv_filters=[8, 8, 64],
            input_conv_kernel_sizes=[3, 3, 3],
            block_type="bottleneck_block_vd",
        )
    ),
    "ResNetImageClassifier": _classifier(models.ResNetImageClassifier, resnet),
    "SwinTransformerImageClassifier": _classifier(models.SwinTransformerImageClassifier, _swin),
    "VGGImageClassifier": _classifier(models.VGGImageClassifier, _vgg, pooling="avg"),
    "ViTImageClassifier": _classifier(
        models.ViTImageClassifier, lambda: models.ViTBackbone(**_VIT, mlp_dim=16)
    ),
    "XceptionImageClassifier": _classifier(models.XceptionImageClassifier, _xception),
}
