"""Emits the signature and the body of `Model::run`, for every kind of entry point."""

# Lines of generated Rust stay whole.
# ruff: noqa: E501

from __future__ import annotations

from converters.mlf.api import ModelApi
from converters.mlf.rules import DTYPES
from converters.mlf.rust_text import INDENT, fitted, literal
from tools.codegen.rust import RustText


def run_params(api: ModelApi) -> list[tuple[str, str]]:
    """Returns (name, type) of the parameters of `run`, less `self`."""
    params = []
    if not api.io_in_pools:
        params = [("inputs", "&Inputs<'_>"), ("outputs", "&mut Outputs<'_>")]
    if api.pools:
        lifetime = "'p " if api.io_in_pools else ""
        params.append(("workspace_pools", f"&{lifetime}mut WorkspacePools<'_>"))
    if api.devices:
        generics = ", ".join(["'_", *(d.generic for d in api.devices if d.generic)])
        params.append(("devices", f"&mut Devices<{generics}>"))
    return params


def run_items(api: ModelApi) -> tuple[list[str], list[str]]:
    """Returns the lines of the signature and of the body of `run`."""
    receiver = "&mut self" if api.once else "&self"
    generics = ["'p"] if api.io_in_pools else []
    generics += [f"{d.generic}: Device" for d in api.devices if d.generic]
    result = "Outputs<'p>" if api.io_in_pools else "()"
    head = "pub fn run" + (f"<{', '.join(generics)}>" if generics else "")
    params = [f"{n}: {t}" for n, t in run_params(api)]
    signature = fitted(head, [receiver, *params], f" -> Result<{result}, Error> {{", 1)
    return signature, _run_body(api)


def _run_body(api: ModelApi) -> list[str]:
    body = ["ARENA.reset();"] if api.model.allocator_bytes is not None else []
    if api.packed:
        return body + _packed_body(api)
    arguments = []
    if not api.io_in_pools:
        arguments = ["(&raw const *inputs).cast_mut()", "outputs"]
    if api.pools:
        arguments.append("&raw mut *workspace_pools" if api.io_in_pools else "workspace_pools")
    safe = [d for d in api.devices if d.generic]
    if api.devices:
        body += [
            f"let mut cell_{d.field} = DeviceCell::new(&mut *devices.{d.field});" for d in safe
        ]
        body += ["let mut raw_devices = ffi::Devices {"]
        body += [
            f"{INDENT}{d.field}: "
            + (
                f"(&raw mut cell_{d.field}).cast(),"
                if d.generic
                else f"devices.{d.field}.as_ptr(),"
            )
            for d in api.devices
        ]
        body += ["};"]
        arguments.append("&mut raw_devices")
    body += [
        "// SAFETY: all pointers are valid for the sizes that `layout.c` asserts, aligned, and borrowed",
        "// for the call; the C keeps none of them"
        + (", unless the flag says so." if api.model.finished_flag else "."),
        f"let code = unsafe {{ ffi::run({', '.join(arguments)}) }};",
    ]
    for device in safe:
        finish = f'cell_{device.field}.finish("{device.device.name}")'
        body.append(f"let end_{device.field} = {finish};")
    body += [f"end_{d.field}?;" for d in safe]
    if api.io_in_pools:
        return [
            *body,
            "Error::from_code(code)?;",
            *slot_lines(api, "outputs", "workspace_pools", 0),
        ]
    return [*body, "Error::from_code(code)"]


def _packed_body(api: ModelApi) -> list[str]:
    tensors = api.inputs + api.outputs
    count = len(tensors)
    body = []
    for tensor in tensors:
        shape = ", ".join(str(d) for d in tensor.tensor.shape or ())
        body.append(
            f"static {tensor.side.upper()}_{tensor.field.upper()}: [i64; "
            f"{len(tensor.tensor.shape or ())}] = [{shape}];"
        )
    body.append("let mut tensors = [")
    for tensor in tensors:
        dtype = DTYPES[tensor.tensor.dtype]
        code = 2 if tensor.tensor.dtype.startswith("float") else int(dtype.rust.startswith("u"))
        # TVM stores a truth value in a byte and calls it an unsigned integer of one bit.
        bits = 1 if tensor.tensor.dtype == "bool" else dtype.bits
        pointer = (
            f"(&raw const *inputs.{tensor.field}).cast_mut().cast()"
            if tensor.side == "input"
            else f"(&raw mut *outputs.{tensor.field}).cast()"
        )
        body += [
            f"{INDENT}DlTensor::new(",
            f"{INDENT * 2}{pointer},",
            f"{INDENT * 2}&{tensor.side.upper()}_{tensor.field.upper()},",
            f"{INDENT * 2}DlDataType {{",
            f"{INDENT * 3}code: {code},",
            f"{INDENT * 3}bits: {bits},",
            f"{INDENT * 3}lanes: 1,",
            f"{INDENT * 2}}},",
            f"{INDENT}),",
        ]
    body += [
        "];",
        "let mut values = tensors.each_mut().map(|tensor| TvmValue {",
        f"{INDENT}v_handle: (&raw mut *tensor).cast(),",
        "});",
        f"let mut codes = [DL_TENSOR_HANDLE; {count}];",
        "let mut result = TvmValue { v_int64: 0 };",
        "let mut result_code = 0;",
        "// SAFETY: the entry point takes handles of dense tensors, inputs first, with the types and",
        "// shapes that the archive's metadata lists; all live until it returns.",
        "let code = unsafe {",
        f"{INDENT}ffi::run(",
        f"{INDENT * 2}values.as_mut_ptr(),",
        f"{INDENT * 2}codes.as_mut_ptr(),",
        f"{INDENT * 2}{count},",
        f"{INDENT * 2}&mut result,",
        f"{INDENT * 2}&mut result_code,",
        f"{INDENT * 2}core::ptr::null_mut(),",
        f"{INDENT})",
        "};",
        "Error::from_code(code)",
    ]
    return body


def async_view(api: ModelApi, launch_body: list[str]) -> dict[str, object]:
    """Returns what the templates of asynchronous runs need."""
    parts = [("inputs", "Inputs<'static>"), ("outputs", "Outputs<'static>")]
    if api.pools:
        parts.append(("workspace_pools", "WorkspacePools<'static>"))
    mutable = {"outputs", "workspace_pools"}
    params = [f"{n}: {t}" for n, t in run_params(api)]
    return {
        "parts_type": f"(Model, {', '.join(t for _, t in parts)})",
        "parts": f"self, {', '.join(n for n, _ in parts)}",
        "start_params": [f"{'mut ' if n in mutable else ''}{n}: {t}" for n, t in parts],
        "start_args": ", ".join(f"&mut {n}" if n in mutable else f"&{n}" for n, _ in parts),
        "launch_signature": RustText(
            "\n".join(fitted("fn launch", ["&mut self", *params], " -> Result<(), Error> {", 1))
        ),
        "launch_body": launch_body,
    }


def slot_lines(api: ModelApi, side: str, pools: str, depth: int) -> list[str]:
    """Returns lines that make `Inputs` or `Outputs` of places inside the pools."""
    pad = INDENT * depth
    mutable = side == "inputs"
    reference = "&mut " if mutable else "&"
    lines = [
        f"{pad}let at_{field} = (&raw mut *{pools}.{field}).cast::<u8>();"
        for field in dict.fromkeys(pool.field for _, pool, _ in api.slots[side])
    ]
    lines += [
        f"{pad}// SAFETY: the generator checked that each tensor lies inside its pool at an aligned",
        f"{pad}// offset and apart from the other {side}; the pools' bytes are initialized, and the",
        f"{pad}// pools stay mutably borrowed.",
        f"{pad}unsafe {{",
    ]
    values = [
        f"{tensor.field}: {reference}*at_{pool.field}.add({offset}).cast()"
        for tensor, pool, offset in api.slots[side]
    ]
    head, tail = ("Inputs", "") if mutable else ("Ok(Outputs", ")")
    return [*lines, *literal(head, values, tail, depth + 1), f"{pad}}}"]
