"""Convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from converters.tf.ir.graph import Node, Op
from converters.tf.ir.ops.functions import Function

__all__ = ["Chain", "Conv", "ConvTranspose"]


@dataclass(frozen=True)
class Conv(Op):
    """A convolution over one or two axes: (x, filter, bias [Cout]?, residual?), f32.

    x is [batch, *spatial, Cin], the filter [*size, Cin / groups, Cout] and constant or not, the
    residual has the shape of the output, `activation` comes last. With `groups == Cin` it is
    depthwise: output channel `c * multiplier + m` reads input channel `c`.

    Attributes:
        strides: One per spatial axis.
        dilations: One per spatial axis.
        padding: Zeros before and after, per spatial axis.
        groups: Divides Cin and Cout.
        activation: Applied last.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int = 1
    activation: Function | None = None


@dataclass(frozen=True)
class ConvTranspose(Op):
    """The gradient of a convolution's input: (x, filter, bias [Cout]?), f32.

    x is [batch, *spatial, Cin], the filter [*size, Cout / groups, Cin]. Strides, dilations and
    padding are those of the convolution that maps the output of this op to its input.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int = 1
    activation: Function | None = None


@dataclass(frozen=True)
class Chain(Op):
    """Layers each of which reads what the one before it gives: (x, weights, ...), f32.

    They are convolutions, between which no image is there as a whole, or two products of one row.
    Weights are the constants that the layers read, each once.

    Attributes:
        links: The layers, which have neither residuals nor other readers.
    """

    links: tuple[Node, ...]

    def inner(self) -> Iterator[Node]:
        """Yields the links."""
        yield from self.links
