"""The file of weights: every constant at a place of its own, and the names of these places."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from converters.tf import ir
from converters.tf.emit.names import wishes
from converters.tf.emit.stored import record
from tools.codegen.names import Scope

HEADER = 64
# The last byte is the version of the format.
MAGIC = b"tfpw\0\0\0\x02"
_ALIGN = 64
# Bytes of the header before the sums.
_BEFORE = 24
# Bytes that are summed at a time, and those of which the sums take a multiple.
_PART = 1 << 18
_LINE = 32


@dataclass(frozen=True)
class Tensor:
    """A constant of the file.

    Attributes:
        name: Name of its Rust constant.
        at: First byte, in memory.
        elements: Number of elements.
        value: The constant.
    """

    name: str
    at: int
    elements: int
    value: ir.Value

    @property
    def bytes(self) -> int:
        """Returns the bytes of the tensor in memory."""
        return self.elements * self.value.dtype.bytes


@dataclass(frozen=True)
class WeightFile:
    """The weights of a model.

    Attributes:
        tensors: All constants, in the order of the file.
        content: The file.
        plain: Bytes of the file that are in memory as they are; records of smaller numbers follow.
        size: Bytes in memory.
        kept: Bytes that a model needs after it was made; packed matrices follow.
        largest: Bytes of the largest tensor that follows those.
        fingerprint: The first eight bytes of the content's SHA-256, as a little-endian number.
    """

    tensors: Mapping[ir.Value, Tensor]
    content: bytes
    plain: int
    size: int
    kept: int
    largest: int
    fingerprint: int

    @property
    def has_records(self) -> bool:
        """Returns whether the file has fewer bytes than the weights in memory."""
        return self.plain < self.size


def lay_out(graph: ir.Graph, packed: Collection[ir.Value], rounded: bool) -> WeightFile:
    """Lays out the constants of a graph.

    Args:
        graph: The graph.
        packed: Constants that are packed when a model is made and not read afterwards.
        rounded: Whether weights were rounded, so that some fit into fewer bytes.
    """
    scope = Scope()
    values = list(graph.constants())
    found = {v: record(v.data) for v in values if rounded and v.data is not None}
    records = {v: small for v, small in found.items() if small is not None}
    # What follows the kept ones is given back; plain tensors come first, whatever becomes of them.
    ordered = sorted(values, key=lambda v: (v in records, v in packed))
    names = {v: scope.unique(wishes(v.name, "constant")[-1]).upper() for v in values}
    tensors: dict[ir.Value, Tensor] = {}
    # All is written to where it stays: a model's weights may take most of the memory.
    out = io.BytesIO()
    out.write(MAGIC.ljust(HEADER, b"\0"))
    size = plain = kept = HEADER
    for value in ordered:
        assert value.data is not None
        tensors[value] = Tensor(names[value], size, value.data.size, value)
        size += -(-tensors[value].bytes // _ALIGN) * _ALIGN
        if value in records:
            out.write(records[value])
        else:
            out.write(little_endian(value))
            out.write(bytes(-out.tell() % _ALIGN))
            plain = size
        if value not in packed:
            kept = size
    with out.getbuffer() as content:
        digest = hashlib.sha256(content[HEADER:]).digest()[:8]
        content[8:_BEFORE] = digest + (len(content) - HEADER).to_bytes(8, "little")
        totals = b"".join(total.to_bytes(8, "little") for total in sums(content))
        content[_BEFORE : _BEFORE + 16] = totals
    fingerprint = int.from_bytes(digest, "little")
    largest = max((t.bytes for t in tensors.values() if t.at >= kept), default=0)
    return WeightFile(tensors, out.getvalue(), plain, size, kept, largest, fingerprint)


def sums(content: bytes | memoryview) -> tuple[int, int]:
    """Returns the sum of the words of some bytes, and the sum of that sum after each word.

    converters/runtime/src/sums.rs compares them: modulo 2^64, of words of 32 bits, little-endian,
    with zeros up to a multiple of 32 bytes after them.
    """
    first = second = 0
    for at in range(0, len(content), _PART):
        part = content[at : at + _PART]
        if len(part) % _LINE:
            part = bytes(part) + bytes(-len(part) % _LINE)
        words = np.frombuffer(part, "<u4").astype(np.uint64)
        counts = np.arange(words.size, 0, -1, dtype=np.uint64)
        second += words.size * first + int((words * counts).sum())
        first += int(words.sum())
    return first % 2**64, second % 2**64


def little_endian(value: ir.Value) -> memoryview:
    """Returns the bytes of a constant, truth values as 0 and 1; not a copy if it lies so."""
    data = np.ascontiguousarray(value.data)
    return data.astype(data.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8).data


def rust_type(dtype: ir.DType) -> str:
    """Returns the Rust type of elements in memory."""
    return "u8" if dtype is ir.DType.BOOL else str(dtype)


def packed_constants(graph: ir.Graph) -> set[ir.Value]:
    """Returns the constants that are only packed."""
    packed: set[ir.Value] = set()
    read: set[ir.Value] = {port.value for port in graph.outputs}
    for node in graph.all_nodes():
        # All that a chain reads, its links read.
        if isinstance(node.op, ir.Chain):
            continue
        places = node.op.packed_operands(node)
        for index, value in enumerate(node.inputs):
            if value is not None and value.data is not None:
                (packed if index in places else read).add(value)
    return packed - read
