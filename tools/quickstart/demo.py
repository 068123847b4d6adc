"""The demo graph as data: one case per node whose value is looked at."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

Tensor = Any
"""A symbolic tensor; TensorFlow ships no type for it that mypy can check."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A node of the demo graph.

    Attributes:
        name: Name of the node, unique in the graph.
        op: Op type of the node.
        inputs: Names of earlier cases whose values are the node's inputs.
        build: Makes the node; gets its name and then one tensor per input.
        exact: Whether the value has to equal the CPU's in every bit.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    build: Callable[..., Tensor]
    exact: bool = False


def _normal(seed: int, *dims: int) -> Callable[..., Tensor]:
    def build(name: str) -> Tensor:
        return tf.raw_ops.RandomStandardNormal(
            shape=list(dims), dtype=tf.float32, seed=seed, seed2=seed + 1, name=name
        )

    return build


def _scaled(factor: float) -> Callable[..., Tensor]:
    return lambda name, x: tf.raw_ops.Mul(x=x, y=tf.constant(factor), name=name)


def _bias(data_format: str) -> Callable[..., Tensor]:
    return lambda name, x, bias: tf.raw_ops.BiasAdd(
        value=x, bias=bias, data_format=data_format, name=name
    )


def _conv(
    strides: int, dilations: int, padding: str, explicit: Sequence[int] = ()
) -> Callable[..., Tensor]:
    return lambda name, x, filters: tf.raw_ops.Conv2D(
        input=x,
        filter=filters,
        strides=[1, strides, strides, 1],
        dilations=[1, dilations, dilations, 1],
        padding=padding,
        explicit_paddings=list(explicit),
        name=name,
    )


def _binary(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda name, x, y: op(x=x, y=y, name=name)


def _all_of(name: str, x: Tensor) -> Tensor:
    axes = list(range(x.shape.rank))
    return tf.raw_ops.All(input=x, axis=tf.constant(axes, tf.int32), name=name)


CHANNELS = 8

CASES: tuple[Case, ...] = (
    Case("random", "RandomStandardNormal", (), _normal(11, 4, 30, 30, CHANNELS), exact=True),
    Case("random_bias", "RandomStandardNormal", (), _normal(12, CHANNELS), exact=True),
    Case("random_filter", "RandomStandardNormal", (), _normal(13, 3, 3, CHANNELS, 16), exact=True),
    Case("random_2d", "RandomStandardNormal", (), _normal(14, 64, CHANNELS), exact=True),
    Case("random_3d", "RandomStandardNormal", (), _normal(15, 5, 7, CHANNELS), exact=True),
    Case("random_5d", "RandomStandardNormal", (), _normal(16, 2, 3, 4, 5, CHANNELS), exact=True),
    Case("random_nchw", "RandomStandardNormal", (), _normal(17, 2, CHANNELS, 9, 11), exact=True),
    Case("mul", "Mul", ("random",), _scaled(2.0)),
    Case("mul_filter", "Mul", ("random_filter",), _scaled(0.05)),
    Case("add", "AddV2", ("mul", "random_bias"), _binary(tf.raw_ops.AddV2)),
    Case("relu", "Relu", ("add",), lambda name, x: tf.raw_ops.Relu(features=x, name=name)),
    Case("bias_add_2d", "BiasAdd", ("random_2d", "random_bias"), _bias("NHWC")),
    Case("bias_add_3d", "BiasAdd", ("random_3d", "random_bias"), _bias("NHWC")),
    Case("bias_add_4d", "BiasAdd", ("relu", "random_bias"), _bias("NHWC")),
    Case("bias_add_5d", "BiasAdd", ("random_5d", "random_bias"), _bias("NHWC")),
    Case("bias_add_nchw", "BiasAdd", ("random_nchw", "random_bias"), _bias("NCHW")),
    Case("conv_same", "Conv2D", ("bias_add_4d", "mul_filter"), _conv(1, 1, "SAME")),
    Case("conv_valid", "Conv2D", ("bias_add_4d", "mul_filter"), _conv(1, 1, "VALID")),
    Case("conv_strided", "Conv2D", ("bias_add_4d", "mul_filter"), _conv(2, 1, "SAME")),
    Case("conv_dilated", "Conv2D", ("bias_add_4d", "mul_filter"), _conv(1, 2, "SAME")),
    Case(
        "conv_explicit",
        "Conv2D",
        ("bias_add_4d", "mul_filter"),
        _conv(1, 1, "EXPLICIT", (0, 0, 2, 1, 0, 3, 0, 0)),
    ),
    Case("sub", "Sub", ("conv_same", "conv_dilated"), _binary(tf.raw_ops.Sub)),
    Case("abs", "Abs", ("sub",), lambda name, x: tf.raw_ops.Abs(x=x, name=name)),
    Case(
        "less",
        "Less",
        ("abs",),
        lambda name, x: tf.raw_ops.Less(x=x, y=tf.constant(1e3), name=name),
        exact=True,
    ),
    Case("all", "All", ("less",), _all_of, exact=True),
)


def build(device: str) -> tuple[tf.Graph, dict[str, Tensor]]:
    """Builds the demo graph with every node pinned to one device.

    Args:
        device: Device string such as `/device:TFP:0`.

    Returns:
        The graph, and the tensor of each case by name.
    """
    graph = tf.Graph()
    tensors: dict[str, Tensor] = {}
    with graph.as_default(), tf.device(device):
        for case in CASES:
            inputs = [tensors[name] for name in case.inputs]
            tensors[case.name] = case.build(case.name, *inputs)
    return graph, tensors
