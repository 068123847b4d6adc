"""Inputs and outputs of a generated crate, as the templates see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from converters.tf.emit.model import ModelText
from converters.tf.emit.port_text import TEXT, WORD, WRITTEN, PortText
from converters.tf.emit.statements import Code, Part, code
from converters.tf.ir.expressions import counted
from converters.tf.ir.sizes import numbers
from tools.codegen.names import Scope, type_name
from tools.codegen.rust import one_line, string_literal

# What a module without std declares, imports or has from the language.
_TENSORS_NOT = frozenset(
    [
        *("Inputs", "Outputs", "Workspace", "Error", "Memory", "Aligned", "Self", "Default"),
        *("DType", "From", "Ok", "Err", "Some", "None", "Option", "Result", "Runner"),
        *("Serial", "Slot"),
    ]
)
# How tensors of the crates without std name the types of their elements.
_VARIANTS = {
    "f32": "Float32",
    "f64": "Float64",
    "i8": "Int8",
    "i16": "Int16",
    "i32": "Int32",
    "i64": "Int64",
    "u8": "UInt8",
    "u16": "UInt16",
    "u32": "UInt32",
    "u64": "UInt64",
    "bool": "Bool",
    TEXT: "Text",
    WORD: "Text",
}
# How a tensor is borrowed, what then gives nested arrays, and the pointer to its elements.
_VIEWS = (
    ("&", "as_nested", "&raw const"),
    ("&mut ", "as_nested_mut", "&raw mut"),
)


class PortView:
    """An input or output as the templates see it: with the expression of its length."""

    def __init__(self, port: PortText) -> None:
        self.field = port.field
        self.name = one_line(port.name).replace("`", "'")
        self.literal = string_literal(port.name)
        self.key = string_literal(port.key)
        self.type = port.type
        self.shape = port.shape
        self.dims = port.dims
        self.extents = port.extents
        self.variant = _VARIANTS.get(port.type, "")
        self.element = port.element
        self.lifetime = port.lifetime
        self.kind = port.kind
        self.lists = port.lists
        self.read = port.read
        self.nested = port.element
        for size in reversed(port.dims):
            self.nested = f"[{self.nested}; {size}]"
        # Without dimensions there is one element and nothing to nest.
        self.views = _VIEWS if port.dims else ()
        self.zero = port.zero
        self.sample = port.sample
        self.fixed = port.fixed
        self.leading = port.leading
        self.elements = port.elements
        if port.fixed:
            self.length = str(port.elements)
        else:
            self.length = "batch" if port.elements == 1 else f"batch * {port.elements}"


class Dynamic:
    """An input whose length depends on the batch."""

    def __init__(self, port: PortText) -> None:
        self.field = port.field
        self.elements = port.elements
        self.zero = port.zero


def tensor_types(ports: Sequence[PortText], taken: Iterable[str]) -> list[str]:
    """Returns the names of the types of inputs and outputs, of the crates without std."""
    scope = Scope(_TENSORS_NOT | set(taken))
    names = [type_name(port.name, "Tensor") for port in ports]
    return [scope.unique(name, f"{name}Tensor") for name in names]


def together(types: Sequence[str]) -> str:
    """Returns one type for all tensors of a side: that of the only one, or a tuple."""
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def batch_lines(text: ModelText) -> list[str]:
    """Returns the body of the function that counts the examples."""
    if not text.inputs:
        return ["Ok(1)"]
    lines = []
    dynamic = [p for p in text.inputs if not p.fixed]
    for port in dynamic[:1]:
        lines.append(
            f"let batch = examples({string_literal(port.name)}, self.{port.field}.len(), "
            f"{port.elements}, None)?;"
        )
    if not dynamic:
        lines.append("let batch = 1;")
    for port in [*dynamic[1:], *(p for p in text.inputs if p.fixed)]:
        count = "1" if port.fixed else "batch"
        lines.append(
            f"examples({string_literal(port.name)}, self.{port.field}.len(), "
            f"{port.elements}, Some({count}))?;"
        )
    return [*lines, "Ok(batch)"]


def deliver_lines(text: ModelText, slice_of: str) -> list[Code]:
    """Returns the statements that copy the outputs to the caller's memory.

    Args:
        text: The model.
        slice_of: What an output's expression ends with to be a slice.
    """
    lines = []
    for p in text.outputs:
        opened = text.opened
        ending = {"bool": "_bools", WORD: "_words", WRITTEN: "_texts"}.get(p.type, "")
        source: Part = p.source or ""
        if p.type == WORD:
            source = code("({}, {})", f"&words::{p.table}", source)
        if opened is not None and (opened.most or any(map(counted, numbers(p.full)))):
            shape: list[Part] = [opened.dim(d) for d in p.full]
            template = f"outputs.{p.field}.take{ending}({{}}, {{}}, {{}})?;"
            lines.append(code(template, string_literal(p.name), source, shape))
            continue
        function = f"deliver{ending}"
        parts = (string_literal(p.name), source, f"outputs.{p.field}{slice_of}")
        use = [f"{'written' if p.type == WRITTEN else 'ports'}::{function}"]
        lines.append(code(f"{function}({{}}, {{}}, {{}})?;", *parts, use=use))
    return lines
