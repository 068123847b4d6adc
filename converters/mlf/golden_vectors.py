"""Reads recorded inputs and outputs (`.npz`) and matches them with the models' tensors."""

from __future__ import annotations

import ast
import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from converters.mlf.emit_golden import GoldenCase
from converters.mlf.errors import FormatError, MismatchError
from converters.mlf.model import Interface, Tensor
from converters.mlf.rules import DTYPES
from tools.codegen.conversion import Problem

MAX_ARRAY_BYTES = 256 << 20
MAX_ARRAYS = 1024

_NUMPY_KINDS = {"f": "float", "i": "int", "u": "uint", "b": "bool"}


@dataclass(frozen=True)
class Array:
    """One array: dtype word as TVM spells it, dimensions, little-endian row-major bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def read_npz(content: bytes, where: str) -> dict[str, Array]:
    """Parses an `.npz` file of plain arrays (no pickles); raises FormatError with the reason."""
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            infos = file.infolist()
            if len(infos) > MAX_ARRAYS:
                raise FormatError(Problem(where, f"{len(infos)} arrays; at most {MAX_ARRAYS}"))
            for info in infos:
                if info.file_size > MAX_ARRAY_BYTES:
                    raise FormatError(
                        Problem(
                            f"{where}:{info.filename}",
                            f"{info.file_size} bytes; at most {MAX_ARRAY_BYTES}",
                        )
                    )
                with file.open(info) as member:
                    data = member.read(MAX_ARRAY_BYTES + 1)
                name = info.filename.removesuffix(".npy")
                arrays[name] = _npy(data, f"{where}:{info.filename}")
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as err:
        raise FormatError(Problem(where, f"not an .npz file: {err}")) from err
    return arrays


def _npy(data: bytes, where: str) -> Array:
    if data[:6] != b"\x93NUMPY" or data[6:7] not in (b"\x01", b"\x02", b"\x03"):
        raise FormatError(Problem(where, "not a .npy array"))
    wide = data[6:7] != b"\x01"
    start = 12 if wide else 10
    if len(data) < start:
        raise FormatError(Problem(where, "truncated"))
    length = struct.unpack("<I" if wide else "<H", data[8:start])[0]
    text = data[start : start + length].decode("latin-1")
    try:
        header = ast.literal_eval(text.strip()) if len(text) < 4096 else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        header = None
    if not isinstance(header, dict) or header.get("fortran_order") is not False:
        raise FormatError(Problem(where, "header is not a plain row-major array's"))
    descr, shape = header.get("descr"), header.get("shape")
    if (
        not isinstance(descr, str)
        or len(descr) < 3
        or descr[0] not in "<|"
        or descr[1] not in _NUMPY_KINDS
        or not descr[2:].isdigit()
        or not isinstance(shape, tuple)
        or not all(isinstance(d, int) for d in shape)
    ):
        raise FormatError(
            Problem(where, f"dtype {descr!r}, shape {shape!r}; expected plain numbers")
        )
    kind = _NUMPY_KINDS[descr[1]]
    dtype = kind if kind == "bool" else f"{kind}{int(descr[2:]) * 8}"
    return Array(dtype, shape, data[start + length :])


def golden_cases(
    models: tuple[Interface, ...], arrays: Mapping[str, Array], where: str
) -> tuple[GoldenCase, ...]:
    """Matches arrays with tensors, for every model that all its tensors are found for.

    An array belongs to a tensor when it is called `<model>_input_<tensor>` (or `_output_`),
    `<model>_<tensor>` or `<tensor>`; else when it is the only one of the tensor's dtype and size,
    first among those called `<model>_...`.

    Raises:
      FormatError: no model has all its arrays; the message lists tensors and arrays.
      MismatchError: an array has the name and not the size of its tensor.
    """
    cases = []
    missing = []
    for model in models:
        sides = []
        for side, tensors in (("input", model.inputs), ("output", model.outputs)):
            found = {}
            for tensor in tensors:
                array = _find(model.name, side, tensor, arrays, where)
                if array is None:
                    missing.append(
                        f"{model.name}.{tensor.name} ({tensor.dtype}, {tensor.size} bytes)"
                    )
                else:
                    found[tensor.name] = array.data
            sides.append(found)
        if len(sides[0]) == len(model.inputs) and len(sides[1]) == len(model.outputs):
            cases.append(GoldenCase(model.name, sides[0], sides[1]))
    if not cases:
        listed = ", ".join(
            f"{n} ({a.dtype}, {len(a.data)} bytes)" for n, a in sorted(arrays.items())
        )
        raise FormatError(Problem(where, f"no array for {', '.join(missing)}; arrays are {listed}"))
    return tuple(cases)


def _find(
    model: str, side: str, tensor: Tensor, arrays: Mapping[str, Array], where: str
) -> Array | None:
    names = (f"{model}_{side}_{tensor.name}", f"{model}_{tensor.name}", tensor.name)
    for name in names:
        array = arrays.get(name)
        if array is not None:
            if not _fits(tensor, array):
                raise MismatchError(
                    Problem(
                        f"{where}:{name}",
                        f"{array.dtype}, {len(array.data)} bytes; the tensor is {tensor.dtype}, "
                        f"{tensor.size} bytes",
                    )
                )
            return array
    fitting = {n: a for n, a in arrays.items() if _fits(tensor, a)}
    own = {n: a for n, a in fitting.items() if n.startswith(f"{model}_")}
    for candidates in (own, fitting):
        if len(candidates) == 1:
            return next(iter(candidates.values()))
    return None


def _fits(tensor: Tensor, array: Array) -> bool:
    stored = {
        "float16": ("float16", "uint16"),
        "int4": ("int8", "uint8"),
        "bool": ("bool", "uint8"),
    }
    return (
        len(array.data) == tensor.size
        and array.dtype in stored.get(tensor.dtype, (tensor.dtype,))
        and tensor.dtype in DTYPES
    )
