"""The target: names, types and signatures of the generated Rust, decided from the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from converters.mlf.errors import Problem, UsageError
from converters.mlf.model import Device, Entry, Interface, Pool, Tensor
from converters.mlf.names import Scope, rust_camel, rust_const, rust_snake
from converters.mlf.rules import DTYPES, wants_token

_MODEL_TYPES = (
    "Model", "Inputs", "Outputs", "WorkspacePools", "Devices", "Pending", "DType", "Error", "Once",
    "Slot", "Arena", "Device", "DeviceCell", "DeviceError", "Hook", "RawDevice", "DlTensor",
    "TvmValue", "Self", "Option", "Some", "None", "Ok", "Err", "Result", "Default", "From", "Drop",
    "UntilFinished", "RawDevices",
)  # fmt: skip


@dataclass(frozen=True)
class TensorApi:
    """A tensor as Rust sees it: `type_name` wraps `[element; length]`."""

    tensor: Tensor
    side: str
    type_name: str
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
    """An external pool; `section` is the linker section asked for, or empty."""

    pool: Pool
    type_name: str
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
    name: str, origin: str, models: tuple[Interface, ...], sections: Mapping[str, str]
) -> CrateApi:
    """Decides all Rust names of a crate.

    Args:
      name: package name; empty chooses `tvmgen_<model>`, or `tvm_models` for several.
      origin: what the crate is made from, for the generated headers.
      models: the models, sorted by name.
      sections: linker section of a pool, by "pool" or "model.pool".

    Raises:
      UsageError: a section for a pool that no model has.
    """
    modules = Scope("support", "crate", "self", "super")
    apis = tuple(_model_api(m, modules.unique(rust_snake(m.name)), sections) for m in models)
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


def _section_keys(model: Interface, pool: Pool) -> tuple[str, str]:
    return (f"{model.name}.{pool.name}", pool.name)


def _model_api(model: Interface, module: str, sections: Mapping[str, str]) -> ModelApi:
    types = Scope(*_MODEL_TYPES)
    inputs = _tensors(model.inputs, "Input", types)
    outputs = _tensors(model.outputs, "Output", types)
    fields = Scope()
    statics = Scope()
    holding = {slot.pool for slots in model.io_slots.values() for slot in slots}
    pools = tuple(
        PoolApi(
            pool,
            types.unique(rust_camel(pool.name)),
            fields.unique(rust_snake(pool.name)),
            statics.unique(rust_const(pool.name)),
            next((sections[k] for k in _section_keys(model, pool) if k in sections), ""),
            pool.name in holding,
        )
        for pool in model.pools
    )
    devices = _devices(model, types)
    by_pool = {p.pool.name: p for p in pools}

    sides = {"inputs": inputs, "outputs": outputs}
    slots = {
        side: tuple(
            (tensor, by_pool[s.pool], s.offset)
            for tensor, s in zip(sides[side], found, strict=True)
        )
        for side, found in model.io_slots.items()
    }
    constants = Scope(*(p.static_name for p in pools))
    methods = Scope("new", "take", "run", "start", "launch", "is_finished")
    renames = {}
    if model.allocator_bytes is not None:
        for tvm, verb in (
            ("TVMBackendAllocWorkspace", "alloc"),
            ("TVMBackendFreeWorkspace", "free"),
        ):
            renames[tvm] = f"{model.symbol_prefix}_{verb}_workspace"
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
            constants.unique(rust_const(k)): v for k, v in sorted(model.quantization.items())
        },
        starters={methods.unique(rust_snake(s)): s for s in model.starters},
        renames=renames,
    )


def _tensors(tensors: tuple[Tensor, ...], side: str, types: Scope) -> tuple[TensorApi, ...]:
    fields = Scope()
    result = []
    for tensor in tensors:
        camel = rust_camel(tensor.name)
        if not camel.startswith(side):
            camel = side + camel
        dtype = DTYPES[tensor.dtype]
        storage = max(dtype.bits, 8)
        result.append(
            TensorApi(
                tensor=tensor,
                side=side.lower(),
                type_name=types.unique(camel),
                field=fields.unique(rust_snake(tensor.name)),
                element=dtype.rust,
                zero=dtype.zero,
                variant=dtype.variant,
                length=tensor.size * 8 // storage,
            )
        )
    return tuple(result)


def _devices(model: Interface, types: Scope) -> tuple[DeviceApi, ...]:
    fields = Scope()
    result = []
    for device in model.devices:
        name = fields.unique(rust_snake(device.name))
        hooks = tuple(
            HookApi(
                hook=hook,
                tvm_symbol=f"TVMDevice{device.hook_name}{hook}",
                symbol=f"{model.symbol_prefix}_device_{name}_{hook.lower()}",
                shim=f"{name}_{hook.lower()}",
            )
            for hook in device.hooks
        )
        generic = types.unique(rust_camel(device.name)) if hooks else None
        result.append(DeviceApi(device, name, generic, hooks))
    return tuple(result)
