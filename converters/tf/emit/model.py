"""What the templates are filled with: the facts of one generated model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from converters.tf import ir
from converters.tf.emit.blocks import Block, Blocks
from converters.tf.emit.context import Context, Field, SlotName
from converters.tf.emit.names import snake
from converters.tf.emit.opened import Opened
from converters.tf.emit.ops.registry import OPS
from converters.tf.emit.ops.written import source_of, tables_of
from converters.tf.emit.options import Options, Profile
from converters.tf.emit.port_text import TEXT, WORD, WRITTEN, PortText
from converters.tf.emit.statements import MEMORY, Code, Kind, Name, code
from converters.tf.emit.timed import label, timed
from converters.tf.emit.weights import WeightFile, lay_out, packed_constants, rust_type
from converters.tf.ir.sizes import elements, is_fixed
from converters.tf.passes.rounded import WeightType
from converters.tf.plan.arena import Plan, plan_memory
from tools.codegen.names import Scope, type_name
from tools.codegen.rust import string_literal


@dataclass(frozen=True)
class ModelText:
    """Everything that the templates need.

    Attributes:
        crate: Name of the crate.
        type: Name of the struct.
        inputs: Inputs in their order.
        outputs: Outputs in their order.
        fields: Layers.
        slots: Places of tensors.
        lines: Statements of a run.
        timed: The same with the times of their layers.
        blocks: Repeated parts.
        uses: What layers and statements import, as paths below the runtime.
        needs: Files below the runtime that they need and do not name.
        weights: The file of weights.
        plan: The memory plan.
        binary: The column of the output that is the decision value, or nothing.
        opened: What depends on open dimensions besides the batch; nothing if none is open.
    """

    crate: str
    type: str
    inputs: tuple[PortText, ...]
    outputs: tuple[PortText, ...]
    fields: tuple[Field, ...]
    slots: tuple[SlotName, ...]
    lines: tuple[Code, ...]
    timed: tuple[Code, ...]
    blocks: tuple[Block, ...]
    uses: frozenset[str]
    needs: frozenset[str]
    weights: WeightFile
    plan: Plan
    binary: tuple[int, int] | None
    opened: Opened | None = None


def feature_keys(graph: ir.Graph) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the names of the arrays in `features.npz` by input and by output.

    Inputs have their own names; a single output is `predictions`, several have their own names
    unless an input is called so.
    """
    inputs = {port.name: port.name for port in graph.inputs}
    if len(graph.outputs) == 1:
        return inputs, {graph.outputs[0].name: "predictions"}
    taken = set(inputs)
    outputs = {}
    for port in graph.outputs:
        outputs[port.name] = f"predictions_{port.name}" if port.name in taken else port.name
    return inputs, outputs


def binary_column(graph: ir.Graph) -> tuple[int, int] | None:
    """Returns the width of a binary classifier's output and the column of class 1.

    Returns:
        `None` if the model has not one float output of one or two columns.
    """
    if len(graph.outputs) != 1:
        return None
    value = graph.outputs[0].value
    width = value.shape[-1] if value.shape else 1
    if value.dtype is not ir.DType.F32 or width not in (1, 2):
        return None
    if not isinstance(width, int) or elements(value.shape) != width:
        return None
    return width, width - 1


def model_text(graph: ir.Graph, options: Options) -> ModelText:
    """Writes a graph as statements and fields.

    Args:
        graph: A graph without problems (see `support.problems`).
        options: What the crate must be like.
    """
    std = options.profile is Profile.STD
    packs = options.packs
    plan = plan_memory(graph, options.inplace, options.memdrop, packed=packs, single=not std)
    graph = plan.graph
    rounded = options.weight_type is not WeightType.FLOAT32
    weights = lay_out(graph, packed_constants(graph) if packs else (), rounded)
    input_keys, output_keys = feature_keys(graph)
    opened = Opened.of(plan, dict(options.most))
    scope = Scope()
    inputs = []
    expressions: dict[ir.Value, Code] = {}
    for port in graph.inputs:
        field = scope.unique(snake(port.name, "input"))
        inputs.append(_port(port, field, input_keys[port.name]))
        form = "{}.data" if opened else "{}" if std else "{}.as_slice()"
        slice_of = code(form, Name(Kind.INPUT, field))
        if port.value.dtype is ir.DType.BOOL:
            slice_of = code("of_bools({})", slice_of, use=["bytes::of_bools"])
        expressions[port.value] = slice_of
    context = Context(plan, weights, expressions, OPS)
    found = [(line, label(step.node)) for step in plan.steps for line in context.statements(step)]
    lines, labels = [line for line, _ in found], [name for _, name in found]
    scope = Scope()
    made = {value: node for node in graph.nodes for value in node.outputs}
    outputs = []
    fields = [scope.unique(snake(port.name, "output")) for port in graph.outputs]
    lists = Scope({field.upper() for field in fields})
    for port, field in zip(graph.outputs, fields, strict=True):
        writer = made.get(plan.root(port.value))
        tables: dict[str, tuple[bytes, ...]] = {}
        if writer is not None and isinstance(writer.op, ir.WRITING):
            tables = tables_of(writer, field.upper(), lists)
            source = source_of(context, writer, tables)
        else:
            source = _output(context, port.value)
        view = _port(port, field, output_keys[port.name], source, made)
        outputs.append(replace(view, tables=_literals(tables)))
    if any(isinstance(n.op, ir.Random) and not is_fixed(n.output.shape) for n in graph.all_nodes()):
        # A call with one example draws the numbers of the first one.
        outputs = [replace(p, leading=False) for p in outputs]
    slots = tuple(context.slots.values())
    if opened is not None:
        lines = [opened.renamed(line) for line in lines]
        outputs = [replace(p, source=p.source and opened.renamed(p.source)) for p in outputs]
        opened.add_slots(slots)
    codes = [*lines, *(f.value for f in context.fields), *(p.source for p in outputs if p.source)]
    uses = frozenset[str]().union(*(c.uses for c in codes))
    taken = _TYPES.union(path.rpartition("::")[2] for path in uses)
    if opened is not None:
        taken |= _OPEN_TYPES
    if options.embedded is not None:
        taken |= {"Runner"}
    name = _type_name(options.name, taken)
    blocks: tuple[Block, ...] = ()
    if opened is None:
        blocks = tuple(Blocks(lines, context.fields, slots, taken | {name}).find())
    return ModelText(
        crate=_crate_name(options.name),
        type=name,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        fields=tuple(_with_blocks(context.fields, blocks)),
        slots=slots,
        lines=tuple(_calls(lines, blocks)),
        timed=tuple(timed(lines, labels, blocks)),
        blocks=blocks,
        uses=uses,
        needs=frozenset[str]().union(*(c.needs for c in codes)),
        weights=weights,
        plan=plan,
        binary=binary_column(graph) if options.binary else None,
        opened=opened,
    )


def _calls(lines: Sequence[Code], blocks: Sequence[Block]) -> list[Code]:
    """Returns the statements with a call for every use of a block."""
    starts = {use.start: (block, use) for block in blocks for use in block.uses}
    out = []
    skip = 0
    for index, line in enumerate(lines):
        if index in starts:
            block, use = starts[index]
            field = Name(Kind.FIELD, use.name, block.type)
            out.append(code("{}.run(m, &{})?;", field, use.constant))
            skip = len(block.lines)
        if skip:
            skip -= 1
            continue
        out.append(line)
    return out


def _with_blocks(fields: Sequence[Field], blocks: Sequence[Block]) -> list[Field]:
    """Returns the fields of the model, with one for every use of a block."""
    inside: dict[str, Field] = {}
    for block in blocks:
        for use in block.uses:
            places = ", ".join(f"{role.name}: {{}}" for role in block.fields)
            template = f"{block.type} {{ {places} }}"
            value = code(template, *(f.value for f in use.fields))
            first, last = (f.doc.partition(":")[0] for f in (use.fields[0], use.fields[-1]))
            made = sum(f.made for f in use.fields)
            whole = Field(use.name, block.type, "", f"{first} to {last}", value, made)
            inside |= {f.name: whole for f in use.fields}
    return list(dict.fromkeys(inside.get(f.name, f) for f in fields))


# Cargo refuses them, or they are crates that every program has.
_CRATES = frozenset(
    ["alloc", "build", "core", "deps", "examples", "incremental", "proc_macro", "std", "test"]
)
# What the generated modules import or declare, or have from the language.
_TYPES = frozenset(
    [
        *("Aligned", "BinaryModelResult", "Box", "Confidence", "DType", "Default", "Engine", "Err"),
        *("Error", "From", "Inputs", "Memory", "None", "Ok", "Option", "Outputs", "OutputsMut"),
        *(
            "Arc",
            "Layers",
            "Path",
            "Port",
            "Result",
            "ScanPrediction",
            "Self",
            "Serial",
            "State",
            "StepInputs",
            "StepOutputs",
            "Slot",
            "Some",
            "String",
        ),
        *("Tensor", "Thresholds", "Vec", "Weights", "Workspace"),
    ]
)

# What they import or declare besides where dimensions are open.
_OPEN_TYPES = frozenset(
    ["Array", "Extent", "Held", "Open", "Places", "Size", "Sizes", "View", "Wanted"]
)


def _crate_name(name: str) -> str:
    crate = snake(name, "model")
    return f"{crate}_model" if crate in _CRATES else crate


def _type_name(name: str, taken: frozenset[str]) -> str:
    kind = type_name(name, "Model")
    return f"{kind}Model" if kind in taken else kind


def _port(
    port: ir.Port,
    field: str,
    key: str,
    source: Code | None = None,
    made: Mapping[ir.Value, ir.Node] = MappingProxyType({}),
) -> PortText:
    value = port.value
    text = TEXT if source is None else WRITTEN
    kind = {ir.DType.BOOL: "bool", ir.DType.STR: text}.get(value.dtype, rust_type(value.dtype))
    words = tuple(string_literal(word.decode()) for word in port.words or ())
    return PortText(
        field,
        port.name,
        key,
        kind if port.words is None else WORD,
        elements(value.shape),
        is_fixed(value.shape),
        ir.shape_text(value.shape),
        ir.shape_at(value.shape, 1),
        is_fixed(value.shape) or _follow(value, made),
        source,
        value.shape,
        words,
    )


def _literals(
    tables: Mapping[str, tuple[bytes, ...]],
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns lists of words as literals of Rust."""
    return tuple(
        (name, tuple(string_literal(word.decode()) for word in words))
        for name, words in tables.items()
    )


def _follow(value: ir.Value, made: Mapping[ir.Value, ir.Node]) -> bool:
    """Returns whether the elements of each example are next to each other.

    They are not if an axis of several times the batch had the batch behind another axis.
    """
    while True:
        first = next((d for d in value.shape if d != 1), 1)
        if not isinstance(first, ir.Batch) or first.scale == 1:
            return isinstance(first, ir.Batch)
        operands = made[value].present if value in made else ()
        before = [v for v in operands if not is_fixed(v.shape)]
        if not before:
            return True
        value = before[0]


def _output(c: Context, value: ir.Value) -> Code:
    root = c.plan.root(value)
    if root.data is not None:
        return code("{}.of({}.weights)?", c.tensor(root), MEMORY)
    if root in c.inputs:
        return c.inputs[root]
    return code("{}.get({})?", MEMORY, c.slot(value))
