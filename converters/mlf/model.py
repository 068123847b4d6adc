"""The model: what one TVM module offers its caller, in TVM's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from converters.mlf.parse.c_calls import Caller


class Entry(Enum):
    """Calling convention of the entry point."""

    C = "c"
    PACKED = "packed"


class PoolKind(Enum):
    """What an external pool holds."""

    WORKSPACE = "workspace"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Tensor:
    """An input or output.

    Attributes:
      name: field name in the C struct (sanitised); for packed entries the name in the metadata.
      dtype: TVM's dtype word, for instance "float32".
      size: bytes.
      shape: dimensions, or None when no source gives them.
    """

    name: str
    dtype: str
    size: int
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Pool:
    """A field of `workspace_pools`; `data` is the content of a constant pool, else empty."""

    name: str
    kind: PoolKind
    size: int
    data: bytes = b""


@dataclass(frozen=True)
class IoSlot:
    """Where an input or output lies inside a pool: byte offset from the pool's start."""

    tensor: Tensor
    pool: str
    offset: int


@dataclass(frozen=True)
class Device:
    """A field of `devices`; `hook_name` and `hooks` are empty when the C never calls its hooks."""

    name: str
    hook_name: str
    hooks: tuple[str, ...]


@dataclass(frozen=True)
class HiddenState:
    """One reason why two runs of the model cannot overlap: a static of the C or the crate."""

    what: str
    size: int


@dataclass(frozen=True)
class CFile:
    """A C source or header of the module: member base name and text."""

    name: str
    text: str


@dataclass(frozen=True)
class Interface:
    """One module of an archive.

    Attributes:
      name: module name as the user gave it, for instance "default".
      entry: calling convention.
      symbol_prefix: prefix of the symbols as the object code spells them ("tvmgen_default").
      header_prefix: the same as the header spells it (lower case).
      inputs: tensors in argument (struct field) order.
      outputs: likewise.
      io_slots: for models with I/O in pools, "inputs" and "outputs" -> slots in field order.
      pools: external pools in struct field order.
      devices: in struct field order.
      hidden_state: empty for a re-entrant model.
      allocator_bytes: bytes that `TVMBackendAllocWorkspace` has to serve; None if it is not called.
      alignment: bytes that every buffer has to be aligned to.
      finished_flag: the entry point returns early, and `<prefix>_finished` tells the end.
      starters: C functions without arguments to be called once before the first run.
      quantization: vendor's constants, name -> values.
      header: interface header; None for packed entries.
      sources: C sources to compile.
      static_library: object code that stands in for `sources`; None if there are sources.
      extra_headers: path under the archive's include folder -> text of headers that the sources,
        or other headers, include from there.
      source_headers: the same of headers that lie beside the sources; path under their folder.
      missing_headers: included names that neither the archive nor the crate provides.
      producer: what made the archive, for the generated text.
      callers: the C functions whose calls of operators are told to a profiler.
    """

    name: str
    entry: Entry
    symbol_prefix: str
    header_prefix: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    io_slots: Mapping[str, tuple[IoSlot, ...]] = field(default_factory=dict)
    pools: tuple[Pool, ...] = ()
    devices: tuple[Device, ...] = ()
    hidden_state: tuple[HiddenState, ...] = ()
    allocator_bytes: int | None = None
    alignment: int = 16
    finished_flag: bool = False
    starters: tuple[str, ...] = ()
    quantization: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    header: CFile | None = None
    sources: tuple[CFile, ...] = ()
    static_library: bytes | None = None
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    source_headers: Mapping[str, str] = field(default_factory=dict)
    missing_headers: tuple[str, ...] = ()
    producer: str = ""
    callers: tuple[Caller, ...] = ()


@dataclass(frozen=True)
class Override:
    """Type of a tensor given by the user; `model` is empty when it holds for any model."""

    model: str
    tensor: str
    dtype: str
    shape: tuple[int, ...]
