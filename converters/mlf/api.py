"""The target: names, types and signatures of the generated Rust, decided from the model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from converters.mlf.model import CFile, Device, Entry, Interface, Pool, PoolKind, Tensor
from converters.mlf.parse.c_calls import Caller, Operator
from converters.mlf.rules import DTYPES, RESERVED_CRATES, RESERVED_MODULES, wants_token
from tools.codegen.conversion import Problem, UsageError
from tools.codegen.names import (
    KEYWORDS,
    PATH_KEYWORDS,
    Scope,
    constant_name,
    field_name,
    type_name,
)

_MODEL_TYPES = (
    "Model", "Inputs", "Outputs", "WorkspacePools", "Devices", "Pending", "DType", "Error", "Once",
    "Slot", "Arena", "Device", "DeviceCell", "DeviceError", "Hook", "RawDevice", "DlTensor",
    "TvmValue", "Self", "Option", "Some", "None", "Ok", "Err", "Result", "Default", "From", "Drop",
    "UntilFinished", "RawDevices", "BufferError", "Runner", "Recorder",
)  # fmt: skip


@dataclass(frozen=True)
class TensorApi:
    """A tensor as Rust sees it: `type_name` owns `[element; length]`, `memory_name` is borrowed."""

    tensor: Tensor
    side: str
    type_name: str
    memory_name: str
    field: str
    element: str
    zero: str
    variant: str
    length: int

    @property
    def nested(self) -> str | None:
        """The nested array type that the shape gives, or None without a fitting shape."""
        shape = self.tensor.shape
        if not shape or prod(shape) != self.length:
            return None
        text = self.element
        for dimension in reversed(shape):
            text = f"[{text}; {dimension}]"
        return text


@dataclass(frozen=True)
class PoolApi:
    """An external pool; `section` is the linker section asked for, or empty.

    `memory_name` is the type of borrowed constants; empty for a workspace.
    """

    pool: Pool
    type_name: str
    memory_name: str
    field: str
    static_name: str
    section: str
    holds_io: bool


@dataclass(frozen=True)
class HookApi:
    """A device hook: `Hook` variant, TVM's symbol, the symbol it is renamed to, the Rust shim."""

    hook: str
    tvm_symbol: str
    symbol: str
    shim: str


@dataclass(frozen=True)
class DeviceApi:
    """A device; `generic` is the type parameter of a Rust driver, None for a raw handle."""

    device: Device
    field: str
    generic: str | None
    hooks: tuple[HookApi, ...]


@dataclass(frozen=True)
class ModelApi:
    """Everything the emitter needs to know about one model's module."""

    model: Interface
    module: str
    once: bool
    inputs: tuple[TensorApi, ...]
    outputs: tuple[TensorApi, ...]
    pools: tuple[PoolApi, ...]
    devices: tuple[DeviceApi, ...]
    slots: Mapping[str, tuple[tuple[TensorApi, PoolApi, int], ...]]
    quantization: Mapping[str, tuple[int, ...]]
    starters: Mapping[str, str]
    renames: Mapping[str, str]
    symbols: Mapping[str, str]
    link_prefix: str
    callers: tuple[Caller, ...] = ()

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators whose calls are told to a profiler; none unless that is asked for."""
        return tuple(dict.fromkeys(o for c in self.callers for o in c.operators))

    @property
    def link_symbol(self) -> str:
        """Prefix of the symbols that the linker sees."""
        return self.link_prefix + self.model.symbol_prefix

    @property
    def io_in_pools(self) -> bool:
        """Inputs and outputs lie in the workspace pools."""
        return bool(self.slots)

    @property
    def packed(self) -> bool:
        """The entry point takes TVM's packed arguments."""
        return self.model.entry is Entry.PACKED


@dataclass(frozen=True)
class CrateApi:
    """One crate: its package name and its models."""

    name: str
    origin: str
    models: tuple[ModelApi, ...]
    sections: Mapping[str, str] = field(default_factory=dict)

    @property
    def alignment(self) -> int:
        """Greatest alignment of any model."""
        return max(m.model.alignment for m in self.models)


def crate_api(
    name: str,
    origin: str,
    models: tuple[Interface, ...],
    sections: Mapping[str, str],
    link_prefix: str | None = None,
) -> CrateApi:
    """Decides all Rust names of a crate.

    Args:
      name: package name; empty chooses `tvmgen_<model>`, or `tvm_models` for several.
      origin: what the crate is made from, for the generated headers.
      models: the models, sorted by name.
      sections: linker section of a pool, by "pool" or "model.pool".
      link_prefix: goes before the symbols of the models' C; None makes one from the content.

    Raises:
      UsageError: a name that no crate can have, a section for a pool that no model has, or a prefix
        that cannot be applied.
    """
    _check_crate_name(name)
    modules = Scope(RESERVED_MODULES)
    prefix = _content_prefix(name, models) if link_prefix is None else link_prefix
    apis = tuple(
        _model_api(m, modules.unique(field_name(m.name, "unnamed")), sections, prefix)
        for m in models
    )
    known = {key for a in apis for p in a.pools for key in _section_keys(a.model, p.pool)}
    unknown = sorted(set(sections) - known)
    if unknown:
        raise UsageError(
            Problem(
                "--section",
                f"no pool {unknown[0]!r}; pools are {', '.join(sorted(known)) or 'none'}",
            )
        )
    if not name:
        name = f"tvmgen_{apis[0].module}" if len(apis) == 1 else "tvm_models"
    return CrateApi(name, origin, apis, dict(sections))


def _check_crate_name(name: str) -> None:
    """Refuses what Cargo refuses; the name is also a file's."""
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name):
        what = f"{name!r}; expected a letter, then letters, digits, '_' and '-', 64 at most"
        raise UsageError(Problem("--crate_name", what))
    if name in KEYWORDS | PATH_KEYWORDS | RESERVED_CRATES:
        raise UsageError(Problem("--crate_name", f"{name!r} means something else in Rust"))


def _section_keys(model: Interface, pool: Pool) -> tuple[str, str]:
    return (f"{model.name}.{pool.name}", pool.name)


def _content_prefix(crate: str, models: tuple[Interface, ...]) -> str:
    """Returns a prefix that only the same C in a crate of the same name gets; none for objects."""
    if not all(m.sources for m in models):
        return ""
    digest = hashlib.sha256(crate.encode())
    for model in models:
        extra = (*model.extra_headers.items(), *model.source_headers.items())
        headers = [CFile(path, text) for path, text in sorted(extra)]
        headers += [model.header] if model.header is not None else []
        for file in (*model.sources, *headers):
            digest.update(f"\0{model.name}\0{file.name}\0{file.text}".encode())
        for pool in model.pools:
            digest.update(b"\0" + pool.data)
    return f"mlf_{digest.hexdigest()[:12]}_"


def _prefixed_symbols(model: Interface, link_prefix: str) -> dict[str, str]:
    """Returns the model's own identifiers in its C -> the same behind the prefix."""
    if not link_prefix:
        return {}
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", link_prefix):
        what = f"{link_prefix!r}; expected a C identifier"
        raise UsageError(Problem("--link_prefix", what))
    if not model.sources:
        what = f"model {model.name!r} is object code, whose symbols are fixed"
        advice = "rename them with objcopy --redefine-syms, and in the header"
        raise UsageError(Problem("--link_prefix", what, advice))
    texts = [s.text for s in model.sources]
    texts += [*model.extra_headers.values(), *model.source_headers.values()]
    texts += [model.header.text] if model.header is not None else []
    own = rf"{re.escape(model.symbol_prefix)}_\w+|TVMSystemLibEntryPoint"
    name = re.compile(rf"\b(?:{own})\b", re.ASCII)
    found = {n for text in texts for n in name.findall(text)} | {f"{model.symbol_prefix}_run"}
    return {n: link_prefix + n for n in sorted(found)}


def _model_api(
    model: Interface, module: str, sections: Mapping[str, str], link_prefix: str
) -> ModelApi:
    types = Scope(_MODEL_TYPES)
    inputs = _tensors(model.inputs, "Input", types)
    outputs = _tensors(model.outputs, "Output", types)
    fields = Scope()
    statics = Scope()
    holding = {slot.pool for slots in model.io_slots.values() for slot in slots}
    pools = tuple(
        PoolApi(
            pool,
            types.unique(type_name(pool.name, "Unnamed")),
            "",
            fields.unique(field_name(pool.name, "unnamed")),
            statics.unique(constant_name(pool.name, "unnamed")),
            next((sections[k] for k in _section_keys(model, pool) if k in sections), ""),
            pool.name in holding,
        )
        for pool in model.pools
    )
    devices = _devices(model, types, link_prefix)
    # After all other types, so that no tensor's or device's own name depends on these.
    inputs, outputs = (
        tuple(replace(t, memory_name=types.unique(t.type_name + "Memory")) for t in side)
        for side in (inputs, outputs)
    )
    pools = tuple(
        replace(p, memory_name=types.unique(p.type_name + "Memory"))
        if p.pool.kind is PoolKind.CONSTANT
        else p
        for p in pools
    )
    by_pool = {p.pool.name: p for p in pools}

    sides = {"inputs": inputs, "outputs": outputs}
    slots = {
        side: tuple(
            (tensor, by_pool[s.pool], s.offset)
            for tensor, s in zip(sides[side], found, strict=True)
        )
        for side, found in model.io_slots.items()
    }
    constants = Scope(p.static_name for p in pools)
    methods = Scope(("new", "take", "run", "start", "launch", "is_finished"))
    renames = {}
    if model.allocator_bytes is not None:
        for tvm, verb in (
            ("TVMBackendAllocWorkspace", "alloc"),
            ("TVMBackendFreeWorkspace", "free"),
        ):
            renames[tvm] = f"{link_prefix}{model.symbol_prefix}_{verb}_workspace"
    for device in devices:
        renames.update({h.tvm_symbol: h.symbol for h in device.hooks})
    return ModelApi(
        model=model,
        module=module,
        once=wants_token(model),
        inputs=inputs,
        outputs=outputs,
        pools=pools,
        devices=devices,
        slots=slots,
        quantization={
            constants.unique(constant_name(k, "unnamed")): v
            for k, v in sorted(model.quantization.items())
        },
        starters={methods.unique(field_name(s, "unnamed")): s for s in model.starters},
        renames=renames,
        symbols=_prefixed_symbols(model, link_prefix),
        link_prefix=link_prefix,
        callers=model.callers,
    )


def _tensors(tensors: tuple[Tensor, ...], side: str, types: Scope) -> tuple[TensorApi, ...]:
    fields = Scope()
    result = []
    for tensor in tensors:
        kind = type_name(tensor.name, "Unnamed")
        if not kind.startswith(side):
            kind = type_name(f"{side}_{tensor.name}", side)
        dtype = DTYPES[tensor.dtype]
        storage = max(dtype.bits, 8)
        result.append(
            TensorApi(
                tensor=tensor,
                side=side.lower(),
                type_name=types.unique(kind),
                memory_name="",
                field=fields.unique(field_name(tensor.name, "unnamed")),
                element=dtype.rust,
                zero=dtype.zero,
                variant=dtype.variant,
                length=tensor.size * 8 // storage,
            )
        )
    return tuple(result)


def _devices(model: Interface, types: Scope, link_prefix: str) -> tuple[DeviceApi, ...]:
    fields = Scope()
    result = []
    for device in model.devices:
        name = fields.unique(field_name(device.name, "unnamed"))
        hooks = tuple(
            HookApi(
                hook=hook,
                tvm_symbol=f"TVMDevice{device.hook_name}{hook}",
                symbol=f"{link_prefix}{model.symbol_prefix}_device_{name}_{hook.lower()}",
                shim=f"{hook.lower()}_{name}",
            )
            for hook in device.hooks
        )
        generic = types.unique(type_name(device.name, "Unnamed")) if hooks else None
        result.append(DeviceApi(device, name, generic, hooks))
    return tuple(result)
