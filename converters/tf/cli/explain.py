"""What a converted model costs, layer by layer: for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from converters.tf import ir
from converters.tf.emit.options import WeightsMode
from converters.tf.ir.expressions import is_open
from converters.tf.plan.arena import Plan, Step

_PLACES = {
    WeightsMode.EMBED: "weights: in the program",
    WeightsMode.FILE: "weights: in model/model_weights.bin, for from_file",
    WeightsMode.BYTES: "weights: wherever the program has them, for from_bytes",
}
# What rustc 1.95 takes for the crate of a model and for every byte that it embeds.
_COMPILER_BYTES = 220 << 20
_COMPILER_FACTOR = 4.2


@dataclass(frozen=True)
class Row:
    """One op.

    Attributes:
        layer: Path of its layer.
        op: Its name with what was fused into it.
        shape: Shape of its first result.
        macs: Multiplications with addition for one example.
        weight_bytes: Bytes of its weights.
    """

    layer: str
    op: str
    shape: str
    macs: int
    weight_bytes: int


def rows(plan: Plan) -> list[Row]:
    """Returns a row per op in the order of the computation."""
    return [row for step in plan.steps for row in _rows(step)]


def _rows(step: Step) -> Iterator[Row]:
    node = step.node
    if not isinstance(node.op, ir.Chain):
        yield _row(node, step.macs, step.weight_bytes)
        return
    for link in node.op.links:
        weights = {v for v in link.present if v.data is not None}
        weight_bytes = sum(v.data.nbytes for v in weights if v.data is not None)
        yield _row(link, link.op.macs(link), weight_bytes)


def _row(node: ir.Node, cost: int, weight_bytes: int) -> Row:
    shape = ir.shape_text(node.outputs[0].shape)
    return Row(node.layer, op_text(node), shape, cost, weight_bytes)


def op_text(node: ir.Node) -> str:
    """Returns an op with its kind and what was fused into it: `Conv + residual + relu`."""
    return " + ".join(_parts(node))


def _parts(node: ir.Node) -> Iterator[str]:
    op = node.op
    kind = getattr(op, "kind", None)
    if isinstance(op, ir.Unary):
        yield _function(op.function)
    else:
        yield type(op).__name__ + (f" {kind}" if kind is not None else "")
    if isinstance(op, ir.ScaledDense):
        yield "scale"
        if node.operand(5) is not None:
            yield "shift"
        if op.bounds is not None:
            yield _function(op.bounds)
    if isinstance(op, ir.Dense | ir.ScaledDense | ir.Conv | ir.ConvTranspose | ir.MatMul):
        if node.operand(2) is not None:
            yield "bias"
        if node.operand(3) is not None:
            yield "residual"
    activation = getattr(op, "activation", None)
    if activation is not None:
        yield _function(activation)


def _function(function: ir.Function) -> str:
    known = {ir.RELU: "relu", ir.RELU6: "relu6"}
    if function in known:
        return known[function]
    numbers = ", ".join(f"{p:g}" for p in function.params)
    return f"{function.kind}({numbers})" if numbers else str(function.kind)


def print_table(plan: Plan, mode: WeightsMode, file_bytes: int, console: Console) -> None:
    """Prints the rows, their sums and where the weights are, in a file of so many bytes."""
    table = Table(title=f"{plan.graph.name}: one example", show_footer=True)
    found = rows(plan)
    total, weights = sum(r.macs for r in found), sum(r.weight_bytes for r in found)
    table.add_column("layer", f"{len(found)} ops", overflow="fold")
    table.add_column("op", overflow="fold")
    arena = "of each call" if plan.regions else f"{plan.arena_bytes:,} bytes"
    table.add_column("output", f"arena: {arena}", overflow="fold")
    table.add_column("MACs", _count(total), justify="right")
    table.add_column("weight bytes", f"{weights:,}", justify="right")
    for row in found:
        table.add_row(
            *(Text(row.layer), Text(row.op), Text(row.shape)),
            *(_count(row.macs), f"{row.weight_bytes:,}"),
        )
    table.caption = _PLACES[mode]
    if mode is WeightsMode.EMBED:
        megabytes = int(_COMPILER_BYTES + _COMPILER_FACTOR * file_bytes) >> 20
        table.caption += f"; the compiler needs about {megabytes:,} MiB of memory"
    console.print(table)


def _count(number: int) -> str:
    """Returns a number with commas, or an expression over open dimensions."""
    return str(number) if is_open(number) else f"{number:,}"


def _plain(number: int) -> int | str:
    """Returns a number, or an expression over open dimensions as text."""
    return str(number) if is_open(number) else number


def report(plan: Plan, mode: WeightsMode) -> dict[str, object]:
    """Returns the same for programs."""
    graph = plan.graph
    return {
        "model": graph.name,
        "inputs": [_port(p) for p in graph.inputs],
        "outputs": [_port(p) for p in graph.outputs],
        "arena_bytes": None if plan.regions else plan.arena_bytes,
        "macs": _plain(plan.macs),
        "weights": str(mode),
        "weight_bytes": sum(v.data.nbytes for v in graph.constants() if v.data is not None),
        "ops": [{**vars(row), "macs": _plain(row.macs)} for row in rows(plan)],
    }


def _port(port: ir.Port) -> dict[str, object]:
    dims = [str(d) if isinstance(d, ir.Batch) or is_open(d) else d for d in port.value.shape]
    return {"name": port.name, "dtype": port.dtype.value, "shape": dims}
