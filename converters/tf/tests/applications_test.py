"""The models of keras.applications with random weights, on small images."""

from __future__ import annotations

import keras
import pytest

from converters.tf.tests.checks import check, ops, randomize

SIDES = {
    "MobileNet": 64,
    "MobileNetV2": 64,
    "MobileNetV3Small": 64,
    "MobileNetV3Large": 64,
    "ResNet50": 64,
    "ResNet50V2": 64,
    "EfficientNetB0": 64,
    "EfficientNetV2B0": 64,
    "DenseNet121": 64,
    "InceptionV3": 96,
    "InceptionResNetV2": 96,
    "Xception": 96,
    "NASNetMobile": 64,
    "ConvNeXtTiny": 64,
    "VGG16": 64,
}


@pytest.mark.parametrize("name", sorted(SIDES))
def test_application(name: str) -> None:
    side = SIDES[name]
    build = getattr(keras.applications, name)
    model = build(weights=None, input_shape=(side, side, 3), include_top=False, pooling="avg")
    randomize(model)
    graph = check(model, (2,))
    assert "Loop" not in ops(graph)
