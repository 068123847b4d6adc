"""Emits Rust: the module of one model, and the support module of a crate."""

# Lines of generated Rust stay whole.
# ruff: noqa: E501

from __future__ import annotations

from converters.mlf.api import CrateApi, ModelApi, PoolApi, TensorApi
from converters.mlf.emit_embedded import emit_hooks, emit_runner
from converters.mlf.emit_run import async_view, run_items, run_params, slot_lines
from converters.mlf.model import PoolKind
from converters.mlf.render import render, static_text
from converters.mlf.rules import CLIPPY_PARAMETERS, CLIPPY_RANK
from converters.mlf.rust_text import INDENT, fitted, imported, literal
from tools.codegen.rust import RustText, code_span, one_line, string_literal


def emit_support(crate: CrateApi) -> str:
    """Returns the support module: only the parts that the crate's models use."""
    parts = [static_text("support/core.rs")]
    pools = [p for m in crate.models for p in m.pools if p.pool.kind is PoolKind.WORKSPACE]
    if pools or any(m.once for m in crate.models):
        parts.append(static_text("support/slot.rs"))
    if any(m.model.allocator_bytes is not None for m in crate.models):
        parts.append(render("support/arena.rs.j2", alignment=crate.alignment))
    devices = [d for m in crate.models for d in m.devices]
    if any(d.generic for d in devices):
        parts.append(static_text("support/device.rs"))
    if any(not d.generic for d in devices):
        parts.append(static_text("support/raw_device.rs"))
    if any(m.operators for m in crate.models):
        parts.append(static_text("support/recorder.rs"))
    if any(m.packed for m in crate.models):
        parts.append(static_text("support/packed.rs"))
    return "\n".join(parts)


def emit_model(api: ModelApi, inline_data: bool, embedded: bool = False) -> str:
    """Returns the module of one model.

    Args:
      api: the model's names and types.
      inline_data: write constant pools as byte strings instead of `include_bytes!`.
      embedded: with a `Runner` that has the traits of `tfp-embedded`.
    """
    model = api.model
    alignment = model.alignment
    sections = [_module_doc(api), _imports(api)]
    for tensor in api.inputs + api.outputs:
        sections.append(render("tensor.rs.j2", t=_tensor_view(tensor), alignment=alignment))
    for pool in api.pools:
        sections.append(_pool(api, pool, inline_data))
    sections += [_quantization(name, values) for name, values in api.quantization.items()]
    sections += [render("struct.rs.j2", s=s) for s in _structs(api)]
    sections.append(_model(api))
    sections += [emit_runner(api)] if embedded else []
    if model.allocator_bytes is not None:
        sections.append(_arena(api))
    sections += [emit_hooks(api)] if api.operators else []
    sections += [_shims(api)] if any(d.hooks for d in api.devices) else []
    sections.append(
        render("extern.rs.j2", m={"externs": _externs(api), "devices": _raw_devices(api)})
    )
    sections.append(render("layout.rs.j2", m={"layout": _layout(api)}))
    return "\n".join(s.strip("\n") + "\n" for s in sections if s)


def _module_doc(api: ModelApi) -> str:
    model = api.model
    lines = [f"//! Model {code_span(model.name)}, compiled by {one_line(model.producer)}.", "//!"]
    for side, tensors in (("Input", api.inputs), ("Output", api.outputs)):
        lines += [f"//! * {_tensor_doc(t, side)}" for t in tensors]
    lines += [
        f"//! * {p.pool.kind.value.capitalize()} pool {code_span(p.pool.name)}: {p.pool.size} bytes."
        for p in api.pools
    ]
    lines += [f"//! * Device {code_span(d.device.name)}." for d in api.devices]
    return "\n".join(lines)


def _tensor_doc(tensor: TensorApi, side: str) -> str:
    source = tensor.tensor
    shape = (
        f"shape `{list(source.shape)}`" if source.shape is not None else f"{tensor.length} elements"
    )
    return f"{side} {code_span(source.name)}: {source.dtype}, {shape}, {source.size} bytes."


def _imports(api: ModelApi) -> str:
    names = {"BufferError", "DType", "Error", "check_buffer"}
    if api.once:
        names.add("Once")
    if any(p.pool.kind is PoolKind.WORKSPACE for p in api.pools):
        names.add("Slot")
    if api.model.allocator_bytes is not None:
        names.add("Arena")
    if any(d.generic for d in api.devices):
        names |= {"Device", "DeviceCell", "Hook"}
    if any(not d.generic for d in api.devices):
        names.add("RawDevice")
    if api.operators:
        names.add("Recorder")
    if api.packed:
        names |= {"DL_TENSOR_HANDLE", "DlDataType", "DlTensor", "TvmValue"}
    return imported("super::support", sorted(names))


def _tensor_view(tensor: TensorApi) -> dict[str, object]:
    shape_lines: list[str] = []
    nested_lines: list[str] = []
    shape = tensor.tensor.shape
    if shape is not None:
        dims = ", ".join(str(d) for d in shape)
        shape_lines = [
            f"{INDENT}/// Dimensions.",
            f"{INDENT}pub const SHAPE: [usize; {len(shape)}] = [{dims}];",
        ]
    nested = tensor.nested
    if nested is not None:
        deep = len(shape or ()) > CLIPPY_RANK
        for reference, method, pointer in (
            ("&", "as_nested", "&raw const self.0"),
            ("&mut ", "as_nested_mut", "&raw mut self.0"),
        ):
            self_ = f"{reference}self"
            nested_lines += [
                "",
                f"{INDENT}/// The elements as nested arrays, outermost dimension first.",
                *([f"{INDENT}#[allow(clippy::type_complexity)]"] if deep else []),
                f"{INDENT}pub const fn {method}({self_}) -> {reference}{nested} {{",
                f"{INDENT * 2}// SAFETY: nested arrays have the layout of the flat array of equal length.",
                f"{INDENT * 2}unsafe {{ {reference}*({pointer}).cast() }}",
                f"{INDENT}}}",
            ]
    return {
        "doc": _tensor_doc(tensor, tensor.side.capitalize()),
        "type_name": tensor.type_name,
        "memory_name": tensor.memory_name,
        "element": tensor.element,
        "length": tensor.length,
        "literal": string_literal(tensor.tensor.name),
        "variant": tensor.variant,
        "size": tensor.tensor.size,
        "zero": tensor.zero,
        "shape_lines": shape_lines,
        "nested_lines": nested_lines,
    }


def _pool(api: ModelApi, pool: PoolApi, inline_data: bool) -> str:
    section = [f'#[unsafe(link_section = "{pool.section}")]'] if pool.section else []
    view = {
        "c_name": one_line(pool.pool.name),
        "type_name": pool.type_name,
        "memory_name": pool.memory_name,
        "size": pool.pool.size,
        "static_name": pool.static_name,
        "section_lines": section,
        "data": "",
    }
    if pool.pool.kind is PoolKind.CONSTANT:
        view["data"] = (
            byte_string(pool.pool.data)
            if inline_data
            else f'*include_bytes!("../pools/{pool_file(api, pool)}")'
        )
        template = "constant_pool.rs.j2"
    else:
        template = "io_pool.rs.j2" if pool.holds_io else "workspace_pool.rs.j2"
    return render(template, p=view, alignment=api.model.alignment)


def pool_file(api: ModelApi, pool: PoolApi) -> str:
    """Returns the file name of a constant pool's data."""
    return f"{api.module}_{pool.field}.bin"


def byte_string(data: bytes) -> str:
    """Returns a Rust expression of type `[u8; N]`."""
    return '*b"' + "".join(f"\\x{b:02x}" for b in data) + '"'


def _quantization(name: str, values: tuple[int, ...]) -> str:
    shown = ", ".join(str(v) for v in values)
    return f"/// The vendor's constant from the interface header.\npub const {name}: [i32; {len(values)}] = [{shown}];"


def _structs(api: ModelApi) -> list[dict[str, object]]:
    inputs_mut = "&'a mut " if api.io_in_pools else "&'a "
    outputs_mut = "&'a " if api.io_in_pools else "&'a mut "
    place = " It lies in the workspace pools." if api.io_in_pools else ""
    structs = [
        _struct(
            "Inputs",
            f"The model's inputs.{place}",
            [
                (t.field, f"{inputs_mut}{t.memory_name}", _tensor_doc(t, "Input"))
                for t in api.inputs
            ],
        ),
        _struct(
            "Outputs",
            f"The model's outputs.{place}",
            [
                (t.field, f"{outputs_mut}{t.memory_name}", _tensor_doc(t, "Output"))
                for t in api.outputs
            ],
        ),
    ]
    if not api.io_in_pools:
        for struct, tensors in zip(structs, (api.inputs, api.outputs), strict=True):
            struct["constructor"] = _constructor(str(struct["name"]), tensors)
    if api.pools:
        fields = []
        for pool in api.pools:
            constant = pool.pool.kind is PoolKind.CONSTANT
            doc = f"{pool.pool.kind.value.capitalize()} pool {code_span(pool.pool.name)}."
            of = pool.memory_name if constant else f"mut {pool.type_name}"
            fields.append((pool.field, f"&'a {of}", doc))
        structs.append(_struct("WorkspacePools", "The memory that the model works in.", fields))
        structs[-1]["constructor"] = _pools_constructor(api)
    if api.devices:
        fields = [
            (
                d.field,
                f"&'a mut {d.generic}" if d.generic else "RawDevice<'a>",
                f"Driver of device {code_span(d.device.name)}.",
            )
            for d in api.devices
        ]
        structs.append(_struct("Devices", "The devices that the model uses.", fields))
        generics = [d.generic for d in api.devices if d.generic]
        bounded = ", ".join(["'a", *(f"{g}: Device" for g in generics)])
        named = ", ".join(["'a", *generics])
        structs[-1]["generic_list"] = bounded
        params = [f"{name}: {kind}" for name, kind, _ in fields]
        structs[-1]["constructor"] = [
            "",
            f"impl<{bounded}> Devices<{named}> {{",
            f"{INDENT}/// Uses the given devices, in the order of the archive.",
            *_many_parameters(params),
            *fitted("pub const fn new", params, " -> Self {", 1),
            *literal("Self", [d.field for d in api.devices], "", 2),
            f"{INDENT}}}",
            "}",
        ]
    return structs


def _struct(name: str, doc: str, fields: list[tuple[str, str, str]]) -> dict[str, object]:
    return {
        "name": name,
        "doc": doc,
        "fields": [{"name": n, "type": t, "doc": d} for n, t, d in fields],
        "constructor": [],
        "generic_list": "'a",
    }


def _constructor(name: str, tensors: tuple[TensorApi, ...]) -> list[str]:
    mutable = "mut " if name == "Outputs" else ""
    params = [f"{t.field}: &'a {mutable}{t.memory_name}" for t in tensors]
    return [
        "",
        f"impl<'a> {name}<'a> {{",
        f"{INDENT}/// Borrows the buffers, in the order of the archive.",
        *_many_parameters(params),
        *fitted("pub const fn new", params, " -> Self {", 1),
        *literal("Self", [t.field for t in tensors], "", 2),
        f"{INDENT}}}",
        "}",
    ]


def _many_parameters(params: list[str]) -> list[str]:
    allowed = len(params) <= CLIPPY_PARAMETERS
    return [] if allowed else [f"{INDENT}#[allow(clippy::too_many_arguments)]"]


def _pools_constructor(api: ModelApi) -> list[str]:
    workspaces = [p for p in api.pools if p.pool.kind is PoolKind.WORKSPACE]
    constants = [p for p in api.pools if p.pool.kind is PoolKind.CONSTANT]
    params = [f"{p.field}: &'a mut {p.type_name}" for p in workspaces]
    about = " and the archive's constants" if constants else ""
    lines = ["", "impl<'a> WorkspacePools<'a> {", f"{INDENT}/// Uses the given memory{about}."]
    lines += _many_parameters(params)
    lines += fitted("pub const fn new", params, " -> Self {", 1)
    values = [f"{p.field}: &{p.static_name}.0" if p in constants else p.field for p in api.pools]
    lines += [*literal("Self", values, "", 2), f"{INDENT}}}"]
    if api.io_in_pools:
        lines += _map_method(api, "inputs")
    lines.append("}")
    return lines


def _map_method(api: ModelApi, side: str) -> list[str]:
    lines = [
        "",
        f"{INDENT}/// The inputs, to be written before a run; a run overwrites them.",
        f"{INDENT}pub fn inputs_mut(&mut self) -> Inputs<'_> {{",
    ]
    lines += slot_lines(api, side, "self", 2)
    lines.append(f"{INDENT}}}")
    return lines


def _model(api: ModelApi) -> str:
    once = api.once
    view: dict[str, object] = {
        "name": one_line(api.model.name),
        "state": [
            f"* {one_line(s.what)}{f' ({s.size} bytes)' if s.size else ''}."
            for s in api.model.hidden_state
        ],
    }
    text = render("model_once.rs.j2" if once else "model_many.rs.j2", m=view).rstrip("\n")
    signature, body = run_items(api)
    asynchronous = api.model.finished_flag and not api.devices and not api.io_in_pools
    if asynchronous:
        view |= async_view(api, body)
        text += "\n" + render("start.rs.j2", m=view).rstrip("\n")
        arguments = ", ".join(name for name, _ in run_params(api))
        body = [f"self.launch({arguments})?;", "drop(UntilFinished);", "Ok(())"]
    view |= {"run_signature": RustText("\n".join(signature)), "run_body": body}
    text += "\n"
    text += render("run_c.rs.j2", m=view).rstrip("\n")
    for method, symbol in api.starters.items():
        text += (
            f"\n\n{INDENT}/// Calls the vendor's `{symbol}`, which has to happen once before the first run.\n"
            f"{INDENT}pub fn {method}(&mut self) {{\n"
            f"{INDENT * 2}// SAFETY: a C function without arguments; `&mut self` keeps runs apart from it.\n"
            f"{INDENT * 2}unsafe {{ ffi::{method}() }};\n{INDENT}}}"
        )
    text += "\n}\n"
    if asynchronous:
        text += render("pending.rs.j2", m=view)
    return text


def _arena(api: ModelApi) -> str:
    model = api.model
    alloc = api.renames["TVMBackendAllocWorkspace"]
    free = api.renames["TVMBackendFreeWorkspace"]
    return render(
        "arena_shims.rs.j2", m={"size": model.allocator_bytes, "alloc": alloc, "free": free}
    )


def _shims(api: ModelApi) -> str:
    hooks = [h for d in api.devices for h in d.hooks]
    return "\n".join(render("hook_shim.rs.j2", h=h).strip("\n") + "\n" for h in hooks)


def _externs(api: ModelApi) -> list[str]:
    model = api.model
    lines = [f'{INDENT * 2}#[link_name = "{api.link_symbol}_run"]']
    if api.packed:
        params = [
            "args: *mut TvmValue",
            "type_codes: *mut i32",
            "num_args: i32",
            "out_value: *mut TvmValue",
            "out_type_code: *mut i32",
            "resource_handle: *mut core::ffi::c_void",
        ]
    else:
        types = {"inputs": "Inputs", "outputs": "Outputs", "workspace_pools": "WorkspacePools"}
        params = [f"{n}: *mut {types[n]}<'_>" for n, _ in run_params(api) if n in types]
        params += ["devices: *mut Devices"] if api.devices else []
    lines += fitted("pub(super) fn run", params, " -> i32;", 2)
    if model.finished_flag:
        lines += [
            f'{INDENT * 2}#[link_name = "{api.link_symbol}_finished"]',
            f"{INDENT * 2}pub(super) static mut finished: i32;",
        ]
    for method, symbol in api.starters.items():
        lines += [
            f'{INDENT * 2}#[link_name = "{symbol}"]',
            f"{INDENT * 2}pub(super) fn {method}();",
        ]
    return lines


def _raw_devices(api: ModelApi) -> list[str]:
    if not api.devices:
        return []
    return [
        "",
        f"{INDENT}#[repr(C)]",
        f"{INDENT}pub(super) struct Devices {{",
        *(f"{INDENT * 2}pub(super) {d.field}: *mut core::ffi::c_void," for d in api.devices),
        f"{INDENT}}}",
    ]


def _words(count: int) -> str:
    return "0" if count == 0 else "WORD" if count == 1 else f"{count} * WORD"


def _layout(api: ModelApi) -> list[str]:
    lines = [
        "use core::mem::{align_of, offset_of, size_of};"
        if not api.packed
        else "use core::mem::{align_of, size_of};"
    ]
    for tensor in api.inputs + api.outputs:
        lines += [
            f"assert!(size_of::<{tensor.memory_name}>() == {tensor.tensor.size});",
            f"assert!(align_of::<{tensor.type_name}>() == {api.model.alignment});",
        ]
    for pool in api.pools:
        if pool.pool.size:
            lines.append(f"assert!(size_of::<{pool.type_name}>() >= {pool.pool.size});")
        lines.append(f"assert!(align_of::<{pool.type_name}>() == {api.model.alignment});")
    if api.packed:
        return lines
    lines.append("const WORD: usize = size_of::<usize>();")
    groups: list[tuple[str, list[str]]] = [
        ("Inputs<'_>", [t.field for t in api.inputs]),
        ("Outputs<'_>", [t.field for t in api.outputs]),
    ]
    if api.pools:
        groups.append(("WorkspacePools<'_>", [p.field for p in api.pools]))
    if api.devices:
        groups.append(("ffi::Devices", [d.field for d in api.devices]))
    for name, fields in groups:
        lines.append(f"assert!(size_of::<{name}>() == {_words(len(fields))});")
        lines += [f"assert!(offset_of!({name}, {f}) == {_words(i)});" for i, f in enumerate(fields)]
    return lines
