"""Pure half of tvm_export: a planned model -> the members of a version 7 archive.

The archive has the C interface; workspace and constants are external pools, `sram` and `flash`.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from converters.mlf.rules import DTYPES, MIN_ALIGNMENT

WORKSPACE_POOL = "sram"
CONSTANT_POOL = "flash"
ROW = 16


@dataclass(frozen=True)
class TensorPlan:
    """An input or output: C identifier, TVM dtype word, static shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return -(-prod(self.shape) * DTYPES[self.dtype].bits // 8)


@dataclass(frozen=True)
class Place:
    """Where a value lives.

    Attributes:
      kind: "input", "output", "workspace" or "constant".
      index: position of the input or output; byte offset in the pool for the others.
    """

    kind: str
    index: int


@dataclass(frozen=True)
class Call:
    """One step: a kernel with its arguments, or a copy of `size` bytes when `kernel` is empty."""

    kernel: str
    arguments: tuple[Place, ...]
    size: int = 0


@dataclass(frozen=True)
class Plan:
    """A model ready to be written.

    Attributes:
      name: module name, a lower-case C identifier.
      inputs: in argument order.
      outputs: in result order.
      constants: content of the constant pool.
      workspace_size: bytes of the workspace pool.
      calls: steps in order.
      kernels: C source of the kernels.
      prototypes: declarations of the kernels.
      producer: version of TVM.
      script: the model as text, for the reader.
    """

    name: str
    inputs: tuple[TensorPlan, ...]
    outputs: tuple[TensorPlan, ...]
    constants: bytes
    workspace_size: int
    calls: tuple[Call, ...]
    kernels: str
    prototypes: tuple[str, ...]
    producer: str
    script: str


def archive_files(plan: Plan) -> dict[str, str]:
    """Returns member name -> text of the archive."""
    return {
        "codegen/host/include/" + f"tvmgen_{plan.name}.h": header_text(plan),
        f"codegen/host/src/{plan.name}_lib0.c": entry_text(plan),
        f"codegen/host/src/{plan.name}_lib1.c": plan.kernels,
        "metadata.json": metadata_text(plan),
        f"src/{plan.name}.relax": plan.script,
    }


def archive_tar(files: Mapping[str, str]) -> bytes:
    """Returns a plain tar; the same files give the same bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as file:
        for name in sorted(files):
            data = files[name].encode("utf-8")
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _pools(plan: Plan) -> list[str]:
    pools = [CONSTANT_POOL] if plan.constants else []
    return [*pools, WORKSPACE_POOL] if plan.workspace_size else pools


def _parts(plan: Plan) -> list[str]:
    return ["inputs", "outputs", *(["workspace_pools"] if _pools(plan) else [])]


def header_text(plan: Plan) -> str:
    """Returns the interface header."""
    prefix = f"tvmgen_{plan.name}"
    upper = prefix.upper()
    fields = {
        "inputs": [t.name for t in plan.inputs],
        "outputs": [t.name for t in plan.outputs],
        "workspace_pools": _pools(plan),
    }
    lines = [f"#ifndef {upper}_H_", f"#define {upper}_H_", "#include <stdint.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    names = [t.name for t in plan.inputs + plan.outputs]
    lines += [
        f"#define {upper}_{t.name.upper()}_SIZE {t.size}"
        for t in plan.inputs + plan.outputs
        if [n.upper() for n in names].count(t.name.upper()) == 1
    ]
    for part in _parts(plan):
        lines += [f"struct {prefix}_{part} {{", *(f"  void* {f};" for f in fields[part]), "};", ""]
    params = [f"  struct {prefix}_{part}* {part}" for part in _parts(plan)]
    lines += [f"int32_t {prefix}_run(", ",\n".join(params), ");"]
    lines += [f"#define {upper}_WORKSPACE_SIZE {plan.workspace_size}"]
    if plan.workspace_size:
        lines += [
            f"#define {upper}_{WORKSPACE_POOL.upper()}_WORKSPACE_POOL_SIZE {plan.workspace_size}"
        ]
    if plan.constants:
        macro = f"{upper}_{CONSTANT_POOL.upper()}_CONSTANT_POOL"
        lines += [f"#define {macro}_SIZE {len(plan.constants)}", f"#define {macro}_DATA \\"]
        rows = [plan.constants[i : i + ROW] for i in range(0, len(plan.constants), ROW)]
        lines += ["    " + ", ".join(f"0x{b:02x}" for b in row) + ", \\" for row in rows]
        lines += [""]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif // {upper}_H_", ""]
    return "\n".join(lines)


def entry_text(plan: Plan) -> str:
    """Returns the C source with the entry point."""
    prefix = f"tvmgen_{plan.name}"
    lines = ["#include <stdint.h>", "#include <string.h>", f"#include <{prefix}.h>", ""]
    lines += [f"extern {p}" for p in plan.prototypes]
    params = ", ".join(f"struct {prefix}_{part}* {part}" for part in _parts(plan))
    lines += [f"int32_t {prefix}_run({params}) {{"]
    for call in plan.calls:
        arguments = [_pointer(plan, a) for a in call.arguments]
        if call.kernel:
            lines.append(f"  {call.kernel}({', '.join(arguments)});")
        else:
            lines.append(f"  memcpy({arguments[0]}, {arguments[1]}, {call.size});")
    return "\n".join([*lines, "  return 0;", "}", ""])


def _pointer(plan: Plan, place: Place) -> str:
    if place.kind == "input":
        return f"inputs->{plan.inputs[place.index].name}"
    if place.kind == "output":
        return f"outputs->{plan.outputs[place.index].name}"
    pool = CONSTANT_POOL if place.kind == "constant" else WORKSPACE_POOL
    return f"(void*)((uint8_t*)workspace_pools->{pool} + {place.index})"


def metadata_text(plan: Plan) -> str:
    """Returns `metadata.json`."""

    def tensors(items: Sequence[TensorPlan]) -> dict[str, object]:
        return {t.name: {"dtype": t.dtype, "size": t.size} for t in items}

    main = {
        "device": 1,
        "constants_size_bytes": len(plan.constants),
        "io_size_bytes": sum(t.size for t in plan.inputs + plan.outputs),
        "workspace_size_bytes": plan.workspace_size,
        "inputs": tensors(plan.inputs),
        "outputs": tensors(plan.outputs),
    }
    module = {
        "model_name": plan.name,
        "style": "full-model",
        "executors": ["aot"],
        "target": ["c"],
        "export_datetime": "1970-01-01 00:00:00Z",
        "external_dependencies": [
            {
                "short_name": "tvm_standalone_crt",
                "url": "./runtime",
                "url_type": "mlf_path",
                "version_spec": plan.producer,
            }
        ],
        "memory": {"functions": {"main": [main], "operator_functions": []}},
    }
    return json.dumps({"version": 7, "modules": {plan.name: module}}, indent=2, sort_keys=True)


class ConstantPool:
    """Collects constants at aligned offsets; equal constants share a place."""

    def __init__(self) -> None:
        """Starts an empty pool."""
        self._data = bytearray()
        self._places: dict[bytes, int] = {}

    def add(self, content: bytes) -> Place:
        """Returns where `content` lies."""
        if content not in self._places:
            self._data += bytes(-len(self._data) % MIN_ALIGNMENT)
            self._places[content] = len(self._data)
            self._data += content
        return Place("constant", self._places[content])

    def content(self) -> bytes:
        """Returns the pool's bytes."""
        return bytes(self._data)
