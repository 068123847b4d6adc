"""Rust items to text: a file that calls every function, for tests."""

from __future__ import annotations

from typing import Any

from tools.codegen.render import environment, generated_header, render
from tools.codegen.rust import string_literal
from tools.opgen import rules, types
from tools.opgen.api import Parameter, RustCrate, RustOp
from tools.opgen.emit import TEMPLATES, TOOL
from tools.opgen.enums import RustEnum, allowed_strings
from tools.opgen.model import DATA_TYPES, ArgDef, AttrDef, DataType, OpDef

# The type of an attribute is the first of these that is allowed, else the allowed one that is
# first by number.
_PREFERRED = [DataType(name) for name in ("DT_FLOAT", "DT_INT32", "DT_INT64", "DT_STRING")]
_CHUNK = 100


# Lists of integers whose length follows from the rank of an input, by name; 4 is a batch of images.
_LENGTHS = {"ksize": 4, "strides": 4, "ksizes": 4, "rates": 4, "dilations": 4, "pooling_ratio": 4}
# Ops whose inputs have five dimensions.
_VOLUMES = ("3D", "Conv3D", "ExtractVolumePatches")


def _type(attr: AttrDef) -> DataType:
    allowed = [value for value in attr.allowed if isinstance(value, DataType)]
    if not allowed:
        return _PREFERRED[0]
    preferred = [dtype for dtype in _PREFERRED if dtype in allowed]
    return (preferred or sorted(allowed, key=lambda dtype: DATA_TYPES[dtype.name]))[0]


def _length(attr: AttrDef, least: int) -> int:
    return max(attr.minimum or 0, least)


def _tensor(dtype: DataType, is_ref: bool) -> str:
    method = "reference" if is_ref else "value"
    return f"cx.{method}({types.data_type_constant(dtype)})?"


def _input(arg: ArgDef, op: OpDef) -> str:
    if arg.type_list_attr:
        attr = op.attr(arg.type_list_attr)
        value, count = _tensor(_type(attr), arg.is_ref), _length(attr, 1)
    else:
        dtype = arg.type or _type(op.attr(arg.type_attr))
        value = _tensor(dtype, arg.is_ref)
        if not arg.number_attr:
            return value
        count = _length(op.attr(arg.number_attr), 2)
    return f"vec![{', '.join([value] * count)}]"


def _scalar(op: OpDef, attr: AttrDef, kind: str) -> str:
    match kind:
        case "int":
            # The minimum of a list is that of its length.
            return str(_length(attr, 1) if attr.type == "int" else 1)
        case "float":
            return "1.0"
        case "bool":
            return "false"
        case "string":
            raw = (op.name, attr.name) in rules.BYTES_LISTS
            return '"a".into()' if raw else '"a"'
        case "type":
            return types.data_type_constant(_type(attr))
        case "shape":
            return "Shape::unknown()"
        case "tensor":
            return "Tensor::from_slice(&[1.0f32], &[1])?"
    return '"smoke"'


def _attr(parameter: Parameter, attr: AttrDef, op: OpDef, enums: dict[str, RustEnum]) -> str:
    if allowed_strings(attr):
        name = parameter.type.removeprefix("impl Into<").removesuffix(">")
        return f"{name}::{enums[name].variants[0][0]}"
    kind = attr.type.removeprefix("list(").removesuffix(")")
    text = _scalar(op, attr, kind)
    if kind == attr.type:
        return f"&{text}" if kind in ("shape", "tensor") else text
    if kind == "func":
        text += ".into()"
    length = _LENGTHS.get(attr.name, 1)
    if length == 4 and any(part in op.name for part in _VOLUMES):
        length = 5
    return f"&[{', '.join([text] * _length(attr, length))}]"


def _call(op: RustOp, enums: dict[str, RustEnum]) -> dict[str, Any]:
    arguments = ["cx"] + [_input(arg, op.op) for arg in op.op.inputs]
    arguments += [_attr(p, p.attr, op.op, enums) for p in op.parameters if p.attr]
    if op.options:
        arguments.append(f"{op.options.name}::default()")
    return {
        "name": string_literal(op.op.name),
        "function": op.function,
        "arguments": arguments,
    }


def emit(crate: RustCrate, source: str) -> str:
    """Writes the file; equal input gives equal bytes.

    Args:
        crate: From the api stage.
        source: What the crate was generated from, for the marker.
    """
    enums = {enum.name: enum for enum in crate.enums}
    calls = [_call(op, enums) for op in sorted(crate.ops, key=lambda op: op.op.name)]
    chunks = [calls[start : start + _CHUNK] for start in range(0, len(calls), _CHUNK)]
    return render(
        environment(TEMPLATES),
        "smoke.rs.jinja",
        {"marker": generated_header(TOOL, source), "chunks": chunks},
    )
