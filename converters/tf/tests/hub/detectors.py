"""Models that say what is where in an image, and how far away."""

from __future__ import annotations

from typing import Any, Final

from keras_hub import layers, models
from keras_hub.src.models.retinanet.retinanet_label_encoder import RetinaNetLabelEncoder

from converters.tf.tests.hub.entry import IMAGE, Entry
from converters.tf.tests.hub.images import hgnet_v2, mit, resnet

_LARGE: Final = (128, 128, 3)


def _bas_net() -> Any:
    encoder = resnet(image_shape=(None, None, 3), stackwise_num_filters=[64, 32, 32, 32])
    backbone = models.BASNetBackbone(encoder, num_classes=1, image_shape=IMAGE)
    return models.BASNetImageSegmenter(backbone)


def _deep_lab() -> Any:
    encoder = resnet(
        stackwise_num_filters=[64, 32, 32],
        stackwise_num_blocks=[1, 1, 1],
        stackwise_num_strides=[1, 2, 2],
    )
    backbone = models.DeepLabV3Backbone(
        image_encoder=encoder,
        low_level_feature_key="P2",
        spatial_pyramid_pooling_key="P4",
        dilation_rates=[2, 4],
        upsampling_size=4,
        image_shape=IMAGE,
    )
    return models.DeepLabV3ImageSegmenter(backbone, num_classes=3)


def _depth_anything() -> Any:
    encoder = models.DINOV2Backbone(
        patch_size=8,
        num_layers=4,
        hidden_dim=16,
        num_heads=2,
        intermediate_dim=32,
        image_shape=IMAGE,
        position_embedding_shape=IMAGE,
    )
    backbone = models.DepthAnythingBackbone(
        image_encoder=encoder,
        reassemble_factors=[4, 2, 1, 0.5],
        neck_hidden_dims=[8, 8, 8, 8],
        fusion_hidden_dim=8,
        head_hidden_dim=8,
        head_in_index=-1,
        feature_keys=["stage1", "stage2", "stage3", "stage4"],
    )
    return models.DepthAnythingDepthEstimator(backbone, depth_estimation_type="relative")


def _d_fine() -> Any:
    stages = ["stage3", "stage4"]
    return models.DFineBackbone(
        backbone=hgnet_v2(stages),
        decoder_in_channels=[16, 16],
        encoder_hidden_dim=16,
        num_denoising=0,
        num_labels=5,
        hidden_dim=16,
        learn_initial_query=False,
        num_queries=6,
        anchor_image_size=IMAGE[:2],
        feat_strides=[16, 32],
        num_feature_levels=2,
        encoder_in_channels=[32, 48],
        encode_proj_layers=[1],
        num_attention_heads=2,
        encoder_ffn_dim=32,
        num_encoder_layers=1,
        hidden_expansion=0.34,
        depth_multiplier=0.5,
        eval_idx=-1,
        num_decoder_layers=2,
        decoder_attention_heads=2,
        decoder_ffn_dim=32,
        decoder_n_points=[3, 3],
        lqe_hidden_dim=16,
        num_lqe_layers=2,
        out_features=stages,
        image_shape=IMAGE,
        seed=0,
    )


def _retina_net() -> Any:
    return models.RetinaNetBackbone(
        image_encoder=resnet(image_shape=_LARGE),
        min_level=3,
        max_level=5,
        use_p5=False,
        use_fpn_batch_norm=True,
        image_shape=_LARGE,
    )


def _retina_net_detector() -> Any:
    anchors = layers.AnchorGenerator(
        bounding_box_format="yxyx",
        min_level=3,
        max_level=5,
        num_scales=3,
        aspect_ratios=[0.5, 1.0, 2.0],
        anchor_size=4.0,
    )
    return models.RetinaNetObjectDetector(
        _retina_net(),
        num_classes=3,
        label_encoder=RetinaNetLabelEncoder(anchors, "yxyx"),
        anchor_generator=anchors,
    )


def _seg_former() -> Any:
    backbone = models.SegFormerBackbone(image_encoder=mit(), projection_filters=16)
    return models.SegFormerImageSegmenter(backbone=backbone, num_classes=4)


def _vit_det() -> Any:
    return models.ViTDetBackbone(
        hidden_size=16,
        num_layers=2,
        intermediate_dim=32,
        num_heads=2,
        global_attention_layer_indices=[1],
        patch_size=8,
        num_output_channels=8,
        window_size=3,
        image_shape=IMAGE,
    )


def _sam() -> Any:
    prompts = layers.SAMPromptEncoder(
        hidden_size=8, image_embedding_size=(8, 8), input_image_size=IMAGE[:2], mask_in_channels=16
    )
    masks = layers.SAMMaskDecoder(
        num_layers=2,
        hidden_size=8,
        intermediate_dim=16,
        num_heads=2,
        embedding_dim=8,
        num_multimask_outputs=3,
        iou_head_depth=2,
        iou_head_hidden_dim=8,
    )
    backbone = models.SAMBackbone(
        image_encoder=_vit_det(), prompt_encoder=prompts, mask_decoder=masks
    )
    return models.SAMImageSegmenter(backbone)


ENTRIES: Final = {
    "BASNetImageSegmenter": Entry(_bas_net),
    "DeepLabV3ImageSegmenter": Entry(_deep_lab),
    "DepthAnythingDepthEstimator": Entry(_depth_anything),
    "DFineBackbone": Entry(_d_fine),
    "DFineObjectDetector": Entry(lambda: models.DFineObjectDetector(_d_fine(), num_classes=5)),
    "RetinaNetBackbone": Entry(_retina_net),
    "RetinaNetObjectDetector": Entry(_retina_net_detector),
    "SAMImageSegmenter": Entry(
        _sam, {"points": (2, 2), "labels": (2,), "boxes": (1, 2, 2), "masks": (1, 32, 32, 1)}
    ),
    "SegFormerImageSegmenter": Entry(_seg_former),
    "ViTDetBackbone": Entry(_vit_det),
}
