"""Reads `kTvmgenMetadata`, the description that TVM writes as C beside a packed entry point."""

from __future__ import annotations

import re
from dataclasses import dataclass

from converters.mlf.errors import FormatError
from converters.mlf.parse.relay import TensorType
from tools.codegen.conversion import Problem

_SHAPE = re.compile(
    r"kTvmgenMetadata_(inputs|outputs)_([0-9]{1,4})_shape\[[0-9]{1,4}\]\s{0,8}=\s{0,8}"
    r"\{([-0-9L,\s]{0,4096})\}"
)
_TENSOR = re.compile(
    r'\{\s{0,8}"([^"\\\n]{1,256})"[^,"]{0,64},\s{0,8}kTvmgenMetadata_(inputs|outputs)_([0-9]{1,4})_shape,'
    r"[^,]{0,64},\s{0,8}\{([0-9]{1,3}), ?([0-9]{1,3}), ?([0-9]{1,3})\}"
)
_POOLS = re.compile(r"([0-9]{1,6})L\s{0,4}/\*\s{0,4}num_workspace_pools\s{0,4}\*/")

#: DLPack type codes.
_CODES = {0: "int", 1: "uint", 2: "float"}

#: What TVM says of truth values, each in a byte.
_BOOL = "uint1"


@dataclass(frozen=True)
class PackedMetadata:
    """Types of a packed entry point's tensors, in argument order."""

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    workspace_pools: int


def parse_c_metadata(text: str, where: str) -> PackedMetadata:
    """Parses the C that defines `kTvmgenMetadata`; raises FormatError when parts are missing."""
    shapes = {
        (side, int(index)): tuple(int(d.strip().rstrip("L")) for d in dims.split(",") if d.strip())
        for side, index, dims in _SHAPE.findall(text)
        if re.fullmatch(r"[\s0-9L,]*", dims)
        and all(re.fullmatch(r"\s*[0-9]{1,12}L?\s*", d) for d in dims.split(",") if d.strip())
    }
    tensors: dict[str, dict[int, TensorType]] = {"inputs": {}, "outputs": {}}
    for name, side, index, code, bits, lanes in _TENSOR.findall(text):
        if int(code) not in _CODES or int(lanes) != 1:
            raise FormatError(
                Problem(where, f"tensor {name!r} has DLDataType {{{code}, {bits}, {lanes}}}")
            )
        shape = shapes.get((side, int(index)))
        if shape is None:
            raise FormatError(Problem(where, f"tensor {name!r} has no shape array"))
        dtype = f"{_CODES[int(code)]}{int(bits)}"
        dtype = "bool" if dtype == _BOOL else dtype
        tensors[side][int(index)] = TensorType(name, shape, dtype)
    for side, found in tensors.items():
        if sorted(found) != list(range(len(found))):
            raise FormatError(Problem(where, f"{side} {sorted(found)} are not numbered from 0"))
    pools = _POOLS.search(text)
    return PackedMetadata(
        tuple(t for _, t in sorted(tensors["inputs"].items())),
        tuple(t for _, t in sorted(tensors["outputs"].items())),
        int(pools[1]) if pools else 0,
    )
