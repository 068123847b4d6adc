"""Emits the `Runner` of a model: the model and its memory behind the traits of `tfp-embedded`."""

from __future__ import annotations

from collections.abc import Sequence

from converters.mlf.api import ModelApi, TensorApi
from converters.mlf.emit_c_calls import begins_symbol, ended_symbol
from converters.mlf.model import PoolKind
from converters.mlf.render import render
from converters.mlf.rust_text import INDENT, WIDTH, called, fitted, literal
from tools.codegen.rust import RustText, string_literal

#: Where Cargo and Bazel know the crate by.
PACKAGE = "tfp-embedded"


def emit_runner(api: ModelApi) -> str:
    """Returns the items of a model's module that implement the traits."""
    generics = [d.generic for d in api.devices if d.generic]
    names = ", ".join(["'a", *generics])
    fields = _fields(api)
    view = {
        "tensors": [*api.inputs, *api.outputs],
        "devices": bool(api.devices),
        "generics": names,
        "bounded": ", ".join(["'a", *(f"{g}: Device" for g in generics)]),
        "impl_generics": f"<{', '.join(f'{g}: Device' for g in generics)}>" if generics else "",
        "impl_names": ", ".join(["'_", *generics]),
        "fields": [f"{name}: {kind}" for name, kind in fields],
        "given": " and ".join(_GIVEN[name] for name, _ in fields if name in _GIVEN),
        "constructor": _constructor(fields),
        "take": [] if api.devices else _take(api),
        "types": [
            *_type("Input", api.inputs),
            *_type("Output", api.outputs),
        ],
        "body": [RustText(line) for line in _body(api)],
        "profiled": bool(api.operators),
    }
    return render("embedded.rs.j2", **view)


def emit_hooks(api: ModelApi) -> str:
    """Returns what the C calls around operators."""
    names = [o.name.removeprefix(f"{api.model.symbol_prefix}_") for o in api.operators]
    head = f"static OPERATORS: [&str; {len(names)}] = ["
    operators = ", ".join(string_literal(name) for name in names)
    if len(head) + len(operators) + 2 > WIDTH or len(operators) > 60:
        operators = "\n" + "".join(f"{INDENT}{string_literal(name)},\n" for name in names)
    return render(
        "recorder_hooks.rs.j2",
        count=len(names),
        operators=RustText(operators),
        begins=begins_symbol(api),
        ended=ended_symbol(api),
    )


_GIVEN = {"model": "model", "workspace_pools": "memory", "devices": "devices"}


def _fields(api: ModelApi) -> list[tuple[str, str]]:
    """Returns (name, type); a model without memory of its own borrows nothing."""
    fields = [("model", "Model")]
    if api.pools:
        fields.append(("workspace_pools", "WorkspacePools<'a>"))
    if api.devices:
        generics = ", ".join(["'a", *(d.generic for d in api.devices if d.generic)])
        fields.append(("devices", f"Devices<{generics}>"))
    if len(fields) == 1:
        fields.append(("memory", "core::marker::PhantomData<&'a mut ()>"))
    return fields


def _constructor(fields: Sequence[tuple[str, str]]) -> list[str]:
    given = [(name, kind) for name, kind in fields if name in _GIVEN]
    values = [n if n in _GIVEN else f"{n}: core::marker::PhantomData" for n, _ in fields]
    params = [f"{name}: {kind}" for name, kind in given]
    return [*fitted("pub const fn new", params, " -> Self {", 1), *literal("Self", values, "", 2)]


def _take(api: ModelApi) -> list[str]:
    workspaces = [p for p in api.pools if p.pool.kind is PoolKind.WORKSPACE]
    model = "Model::take()?" if api.once else "Model::new()"
    about = "The model, which needs no memory of its own; never `None`."
    if api.once or workspaces:
        about = "The model in the crate's static memory, the first time; `None` afterwards."
    lines = [
        "",
        "impl Runner<'static> {",
        f"{INDENT}/// {about}",
        f"{INDENT}pub fn take() -> Option<Self> {{",
        f"{INDENT * 2}let model = {model};",
    ]
    arguments = ["model"]
    if api.pools:
        taken = [f"{p.type_name}::take()?" for p in workspaces]
        lines += called("let workspace_pools = WorkspacePools::new", taken, ";", 2)
        arguments.append("workspace_pools")
    lines += [f"{INDENT * 2}Some(Self::new({', '.join(arguments)}))", f"{INDENT}}}", "}"]
    return lines


def _type(name: str, tensors: Sequence[TensorApi]) -> list[str]:
    """Returns the associated type for all tensors of a side: that of the only one, or a tuple."""
    names = [t.type_name for t in tensors]
    if len(names) == 1:
        return [f"{INDENT}type {name} = {names[0]};"]
    return called(f"type {name} = ", names, ";", 1)


def _places(value: str, tensors: Sequence[TensorApi]) -> list[str]:
    """Returns the expression of each tensor in an argument of the trait."""
    return [value] if len(tensors) == 1 else [f"{value}.{i}" for i in range(len(tensors))]


def _body(api: ModelApi) -> list[str]:
    inputs, outputs = _places("input", api.inputs), _places("output", api.outputs)
    # Names, because rustfmt would break a longer call.
    memory = ["let pools = &mut self.workspace_pools;"] if api.pools else []
    memory += ["let devices = &mut self.devices;"] if api.devices else []
    arguments = [*(["pools"] if api.pools else []), *(["devices"] if api.devices else [])]
    if api.io_in_pools:
        lines = ["let inputs = self.workspace_pools.inputs_mut();"]
        pairs = zip(api.inputs, inputs, strict=True)
        lines += [f"inputs.{t.field}.copy_from_slice(&{value}[..]);" for t, value in pairs]
        lines += [*memory, f"let outputs = self.model.run({', '.join(arguments)})?;"]
        pairs = zip(api.outputs, outputs, strict=True)
        lines += [f"{value}.copy_from_slice(&outputs.{t.field}[..]);" for t, value in pairs]
        return [f"{INDENT * 2}{line}" for line in [*lines, "Ok(())"]]
    if len(inputs) != 1:
        inputs = [f"&{value}" for value in inputs]
    if len(outputs) != 1:
        outputs = [f"&mut {value}" for value in outputs]
    return [
        *called("let inputs = Inputs::new", inputs, ";", 2),
        *called("let mut outputs = Outputs::new", outputs, ";", 2),
        *(f"{INDENT * 2}{line}" for line in memory),
        *called("self.model.run", ["&inputs", "&mut outputs", *arguments], "", 2),
    ]
