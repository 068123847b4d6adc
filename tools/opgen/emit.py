"""Rust items to text: one file per group, the enums, the type sets and the crate root."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.codegen import names
from tools.codegen.render import environment, generated_header, render
from tools.codegen.rust import c_string_literal, doc_comment, string_literal
from tools.opgen import rules, types
from tools.opgen.api import Group, RustCrate, RustOp
from tools.opgen.enums import RustEnum, allowed_strings
from tools.opgen.model import ArgDef, AttrDef, DataType

TOOL = "tools/opgen"
_IDENTIFIER = re.compile(r"\w+")
TEMPLATES = Path(__file__).resolve().parent / "templates"
# What a module may use of the core.
_CORE = frozenset(
    [
        "ArgDesc",
        "AttrDefault",
        "AttrDesc",
        "AttrKind",
        "Bytes",
        "Call",
        "Context",
        "DataType",
        "FuncRef",
        "IntoOperand",
        "IntoOperands",
        "Shape",
        "Tensor",
        "TypeOf",
    ]
)


def _type_of(arg: ArgDef, positions: dict[str, int]) -> str:
    if arg.type is not None:
        return f"TypeOf::Fixed({types.data_type_constant(arg.type)})"
    return f"TypeOf::Attr({positions[arg.type_attr]})"


def _arg_desc(arg: ArgDef, positions: dict[str, int]) -> str:
    name = c_string_literal(arg.name)
    if arg.type_list_attr:
        text = f"ArgDesc::types({name}, {positions[arg.type_list_attr]})"
    elif arg.number_attr:
        count = positions[arg.number_attr]
        text = f"ArgDesc::many({name}, {count}, {_type_of(arg, positions)})"
    else:
        text = f"ArgDesc::one({name}, {_type_of(arg, positions)})"
    return text + (".reference()" if arg.is_ref else "")


def _default(attr: AttrDef) -> str:
    match attr.type, attr.default:
        case "int", int(value):
            return f"AttrDefault::Int({value})"
        case "type", DataType() as value:
            return f"AttrDefault::Type({types.data_type_constant(value)})"
        case "list(type)", tuple(values):
            members = [types.data_type_constant(v) for v in values if isinstance(v, DataType)]
            return f"AttrDefault::Types(&[{', '.join(members)}])"
    return "AttrDefault::Other"


def _attr_desc(attr: AttrDef, inferred: bool, sets: dict[tuple[DataType, ...], str]) -> str:
    kind = types.attr_type(attr.type).kind
    text = f"AttrDesc::new({c_string_literal(attr.name)}, AttrKind::{kind})"
    if inferred:
        text += ".inferred()"
    if attr.default is not None:
        text += f".default({_default(attr)})"
    if attr.minimum is not None:
        text += f".minimum({attr.minimum})"
    strings = allowed_strings(attr)
    if strings:
        text += f".strings(&[{', '.join(string_literal(value) for value in strings)}])"
    elif attr.allowed:
        members = [value for value in attr.allowed if isinstance(value, DataType)]
        if members:
            text += f".types({sets[tuple(types.by_number(members))]})"
    return text


def _returns(op: RustOp) -> str:
    if op.output:
        return f"{op.output}<C::Value>"
    if not op.results:
        return "C::Operation"
    return "Vec<C::Value>" if op.results[0].is_list else "C::Value"


def _op(op: RustOp, sets: dict[tuple[DataType, ...], str]) -> dict[str, Any]:
    positions = {name: index for index, name in enumerate(op.op.attr_names)}
    parameters = [f"{rules.CONTEXT_PARAMETER}: &C"]
    parameters += [f"{p.name}: {p.type}" for p in op.parameters]
    if op.options:
        lifetime = op.options.lifetime
        parameters.append(f"{rules.OPTIONS_PARAMETER}: {op.options.name}{lifetime}")
    values = f"&[{', '.join(op.values)}]"

    def execute(call: str) -> str:
        run = f"{rules.CONTEXT_PARAMETER}.execute({call}, {values})?"
        if op.output:
            return f"let mut results = {run};"
        return f"{run}.{op.results[0].take}()" if op.results else f"Ok({run}.operation())"

    plain = op.function.removeprefix("r#")
    return {
        "name": c_string_literal(op.op.name),
        "desc": op.desc,
        "function": op.function,
        "link": f"[`fn@{plain}`]" if plain == op.function else f"`{plain}`",
        "doc": op.doc,
        "deprecated": string_literal(op.deprecated) if op.deprecated is not None else "",
        "options": op.options,
        "output": op.output,
        "results": op.results,
        "inputs": [_arg_desc(arg, positions) for arg in op.op.inputs],
        "outputs": [_arg_desc(arg, positions) for arg in op.op.outputs],
        "attrs": [_attr_desc(attr, attr.name in op.inferred, sets) for attr in op.op.attrs],
        "generics": "'a, C: Context + ?Sized" if op.borrows else "C: Context + ?Sized",
        "parameters": parameters,
        "returns": _returns(op),
        "takes": [f"{p.method}({p.name})" for p in op.parameters if p.method],
        "execute_call": execute("&mut call"),
        "execute_new": execute(f"&mut Call::new(&{op.desc})"),
    }


def _code(op: dict[str, Any]) -> str:
    """Returns what an op of a group's template names, documentation left out."""
    options = op["options"]
    fields = [field.type for field in options.fields] if options else []
    lists = (op["inputs"], op["outputs"], op["attrs"], op["parameters"], op["takes"], fields)
    texts = [text for texts in lists for text in texts]
    calls = [op["execute_call"] if op["takes"] else op["execute_new"], op["generics"]]
    return "\n".join([*texts, *calls, "Call" if op["takes"] else ""])


def _used(candidates: Iterable[str], text: str) -> list[str]:
    return sorted(set(candidates) & set(_IDENTIFIER.findall(text)))


def _enum(enum: RustEnum, by_name: dict[str, RustEnum]) -> dict[str, Any]:
    return {
        "name": enum.name,
        "doc": [
            f"Values of {', '.join(f'`{name}`' for name in enum.attrs)}.",
            "",
            f"Of the ops {', '.join(f'`{use.split(chr(46))[0]}`' for use in enum.uses)}.",
        ],
        "variants": [
            {"name": name, "literal": string_literal(value), "shown": value or '""'}
            for name, value in enum.variants
        ],
        "narrower": [
            {"name": name, "variants": [{"name": v} for v, _ in by_name[name].variants]}
            for name in enum.wider_than
        ],
    }


def _module_name(group: Group) -> str:
    return names.rust_identifier(group.name)


def emit(crate: RustCrate, source: str) -> dict[str, str]:
    """Writes the crate as text; equal input gives equal bytes.

    Args:
        crate: From the api stage.
        source: What the crate was generated from, for the marker.

    Returns:
        Text by file name: `lib.rs`, `items.rs` (what `lib.rs` includes; a build script's crate
        root includes it too), `enums.rs`, `type_sets.rs` and one file per group.
    """
    env = environment(TEMPLATES)
    env.filters["doc"] = doc_comment
    marker = generated_header(TOOL, source)
    sets = dict(crate.type_sets)
    enum_names = [enum.name for enum in crate.enums]
    files: dict[str, str] = {}
    groups = []
    for group in crate.groups:
        ops = [_op(op, sets) for op in group.ops]
        code = "\n".join(_code(op) for op in ops)
        values = {
            "marker": marker,
            "title": f"Ops of the group `{group.name}`.",
            "ops": ops,
            "imports": {
                "core": sorted([*_used(_CORE, code), "OpDesc", "Result"]),
                "enums": _used(enum_names, code),
                "sets": _used(sets.values(), code),
            },
        }
        files[f"{group.name}.rs"] = render(env, "group.rs.jinja", values)
        groups.append(
            {
                "name": group.name,
                "module": _module_name(group),
                "count": len(group.ops),
                "deprecated": any(op.deprecated is not None for op in group.ops),
                "exports": sorted(
                    name
                    for op in group.ops
                    for name in (op.function, op.options.name if op.options else "", op.output)
                    if name
                ),
            }
        )
    by_name = {enum.name: enum for enum in crate.enums}
    root = {
        "marker": marker,
        "groups": groups,
        "features": len(groups) > 1,
        "count": len(crate.ops),
    }
    files["enums.rs"] = render(
        env,
        "enums.rs.jinja",
        {"marker": marker, "enums": [_enum(enum, by_name) for enum in crate.enums]},
    )
    files["type_sets.rs"] = render(
        env,
        "type_sets.rs.jinja",
        {
            "marker": marker,
            "sets": [
                {"name": name, "members": [types.data_type_constant(t) for t in members]}
                for members, name in crate.type_sets.items()
            ],
        },
    )
    for name in ("items", "lib"):
        files[f"{name}.rs"] = render(env, f"{name}.rs.jinja", root)
    return dict(sorted(files.items()))
