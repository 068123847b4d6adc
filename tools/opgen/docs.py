"""The documentation of functions, fields and results, as Markdown lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tools.opgen import markdown, rules, types
from tools.opgen.model import ArgDef, AttrDef, DataType, OpDef, Tensor
from tools.opgen.prose import Prose

if TYPE_CHECKING:
    from tools.opgen.enums import Enums


def _words(dtypes: Sequence[DataType]) -> str:
    return ", ".join(f"`{types.data_type_word(dtype)}`" for dtype in types.by_number(dtypes))


def _allowed_types(attr: AttrDef) -> str:
    return _words([value for value in attr.allowed if isinstance(value, DataType)])


def _argument_type(arg: ArgDef, op: OpDef) -> str:
    ref = "reference to a " if arg.is_ref else ""
    if arg.type_list_attr:
        text = f"tensors of types `{arg.type_list_attr}`"
        allowed = _allowed_types(op.attr(arg.type_list_attr))
        return text + (f" (of {allowed})" if allowed else "")
    of = f"`{types.data_type_word(arg.type)}`" if arg.type else f"type `{arg.type_attr}`"
    if arg.number_attr:
        least = op.attr(arg.number_attr).minimum
        at_least = f", at least {least}" if least else ""
        return f"`{arg.number_attr}` {ref}tensors of {of}{at_least}"
    return f"{ref}tensor of {of}"


def _item(name: str, facts: str, text: str) -> list[str]:
    head = f"- `{name}`: {facts}."
    if not text.strip():
        return [head]
    first, *rest = markdown.item(text)
    if first.startswith(("```", "~~~")) or not first:
        return [head, "", "  " + first, *rest]
    return [f"{head} {first}", *rest]


def _attr_facts(attr: AttrDef, enum: str | None, known: types.AttrType) -> str:
    if enum:
        return f"[`{enum}`]"
    facts = known.words
    if attr.type == "int" and attr.minimum is not None:
        facts += f", at least {attr.minimum}"
    elif attr.minimum:
        facts += f", at least {attr.minimum} of them"
    allowed = _allowed_types(attr) if attr.type in ("type", "list(type)") else ""
    return facts + (f", of {allowed}" if allowed else "")


def default_text(attr: AttrDef) -> str:
    """Returns the default of an optional attribute as code, that of a tensor in words."""
    if isinstance(attr.default, Tensor):
        return "TensorFlow's own"
    text = types.value_text(attr.default) if attr.default is not None else ""
    mark = "``" if "`" in text else "`"
    return f"{mark}{text}{mark}"


def field(attr: AttrDef, enum: str | None, text: str) -> list[str]:
    """Returns the documentation of an options field.

    Args:
        attr: The attribute.
        enum: The enum of its values, if it has one.
        text: What TensorFlow says about it.
    """
    facts = _attr_facts(attr, enum, types.attr_type(attr.type))
    head = f"{facts[0].upper()}{facts[1:]}; by default {default_text(attr)}."
    body = markdown.lines(text)
    return [head, "", *body] if body else [head]


def result(arg: ArgDef, op: OpDef, text: str) -> list[str]:
    """Returns the documentation of an output as a field."""
    facts = _argument_type(arg, op)
    head = f"{facts[0].upper()}{facts[1:]}."
    body = markdown.lines(text)
    return [head, "", *body] if body else [head]


def function(
    op: OpDef,
    prose: Prose,
    inputs: Sequence[str],
    required: Sequence[tuple[str, AttrDef]],
    enums: Enums,
    options: str | None,
    linked: bool,
) -> list[str]:
    """Returns the documentation of an op's function.

    Args:
        op: The op.
        prose: What TensorFlow says.
        inputs: Rust names of the inputs.
        required: Rust names of the attributes that are arguments, each with the attribute.
        enums: The enums of the crate.
        options: Name of the options struct, if there is one.
        linked: Whether TensorFlow's site has a page about the op.
    """
    summary = markdown.escape_line(prose.summary) or f"The op `{op.name}`."
    out = [summary, "", *markdown.lines(prose.body)]
    out += ["", f"Op type: `{op.name}`" + ("; stateful." if op.is_stateful else ".")]
    if op.inputs:
        out += ["", "# Inputs", ""]
        for name, arg in zip(inputs, op.inputs, strict=True):
            text = prose.args.get(arg.name, "")
            out += _item(name.removeprefix("r#"), _argument_type(arg, op), text)
    given = {attr.name for _, attr in required}
    inferred = [attr for attr in op.attrs if attr.name not in given and _is_inferred(attr.name, op)]
    limits = [attr for attr in inferred if attr.allowed]
    if required or limits:
        out += ["", "# Attributes", ""]
        for name, attr in required:
            enum = enums.of(attr)
            facts = _attr_facts(attr, enum.name if enum else None, types.attr_type(attr.type))
            out += _item(name.removeprefix("r#"), facts, prose.args.get(attr.name, ""))
        for attr in limits:
            out.append(f"- `{attr.name}` follows from the inputs: {_allowed_types(attr)}.")
    if options:
        out += ["", f"Optional attributes, with their defaults: [`{options}`]."]
    if len(op.outputs) == 1:
        out += ["", "# Output", ""]
        text = prose.results.get(op.outputs[0].name, "")
        out += _item(op.outputs[0].name, _argument_type(op.outputs[0], op), text)
    if linked:
        out += ["", f"See <{rules.DOC_LINK.format(op=op.name)}>."]
    return _squeeze(out)


def _is_inferred(name: str, op: OpDef) -> bool:
    return any(name in (a.type_attr, a.number_attr, a.type_list_attr) for a in op.inputs)


def _squeeze(lines: list[str]) -> list[str]:
    out: list[str] = []
    fence = ""
    for line in lines:
        mark = line.strip()[:3]
        if mark in ("```", "~~~"):
            fence = "" if mark == fence else fence or mark
        if line or fence or (out and out[-1]):
            out.append(line)
    while out and not out[-1]:
        out.pop()
    return out
