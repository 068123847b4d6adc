"""The file of weights: every constant at a place of its own, and the names of these places."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from converters.tf import ir
from converters.tf.emit.names import Scope, screaming, wishes

HEADER = 64
MAGIC = b"tfpw\0\0\0\x01"
_ALIGN = 64


@dataclass(frozen=True)
class Tensor:
    """A constant of the file.

    Attributes:
        name: Name of its Rust constant.
        at: First byte.
        elements: Number of elements.
        value: The constant.
    """

    name: str
    at: int
    elements: int
    value: ir.Value


@dataclass(frozen=True)
class WeightFile:
    """The weights of a model.

    Attributes:
        tensors: All constants, in the order of the file.
        content: The file.
        kept: Bytes that a model needs after it was made; packed matrices follow.
        fingerprint: The first eight bytes of the content's SHA-256, as a little-endian number.
    """

    tensors: Mapping[ir.Value, Tensor]
    content: bytes
    kept: int
    fingerprint: int


def lay_out(graph: ir.Graph, packed: Collection[ir.Value]) -> WeightFile:
    """Lays out the constants of a graph.

    Args:
        graph: The graph.
        packed: Constants that are packed when a model is made and not read afterwards.
    """
    scope = Scope()
    values = list(graph.constants())
    ordered = [v for v in values if v not in packed] + [v for v in values if v in packed]
    names = {v: screaming(scope.unique(wishes(v.name, "constant")[-1])) for v in values}
    tensors: dict[ir.Value, Tensor] = {}
    body = bytearray()
    kept = HEADER
    for value in ordered:
        data = little_endian(value)
        tensors[value] = Tensor(
            names[value], HEADER + len(body), len(data) // value.dtype.bytes, value
        )
        body += data
        body += bytes(-len(body) % _ALIGN)
        if value not in packed:
            kept = HEADER + len(body)
    digest = hashlib.sha256(bytes(body)).digest()[:8]
    header = MAGIC + digest + len(body).to_bytes(8, "little")
    content = header.ljust(HEADER, b"\0") + bytes(body)
    return WeightFile(tensors, content, kept, int.from_bytes(digest, "little"))


def little_endian(value: ir.Value) -> bytes:
    """Returns the bytes of a constant, truth values as 0 and 1."""
    data = np.ascontiguousarray(value.data)
    if data.dtype == np.bool_:
        data = data.astype(np.uint8)
    return data.astype(data.dtype.newbyteorder("<"), copy=False).tobytes()


def rust_type(dtype: ir.DType) -> str:
    """Returns the Rust type of elements in memory."""
    return "u8" if dtype is ir.DType.BOOL else str(dtype)
