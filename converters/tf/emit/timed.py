"""The statements of a model with the times of their layers, for the feature `profile`."""

from __future__ import annotations

from collections.abc import Sequence

from converters.tf import ir
from converters.tf.emit.blocks import Block
from converters.tf.emit.statements import Code, Kind, Name, Part, code
from tools.codegen.rust import string_literal


def label(node: ir.Node) -> str:
    """Returns what a node is called where its time is shown: its layer, or else its op."""
    return node.layer or type(node.op).__name__


def timed(lines: Sequence[Code], labels: Sequence[str], blocks: Sequence[Block]) -> list[Code]:
    """Returns the statements of a model, each followed by one that takes its time.

    Args:
        lines: The statements before there were blocks.
        labels: What each of them is called.
        blocks: The blocks; a call of one is a statement that takes the times of its own.
    """
    starts = {use.start: (block, use) for block in blocks for use in block.uses}
    out: list[Code] = []
    index = 0
    while index < len(lines):
        if index not in starts:
            out.append(code("{} times.done({});", lines[index], string_literal(labels[index])))
            index += 1
            continue
        block, use = starts[index]
        field = Name(Kind.FIELD, use.name, block.type)
        end = index + len(block.lines)
        names: list[Part] = [string_literal(name) for name in labels[index:end]]
        out.append(code("{}.run_timed(m, &{}, times, {})?;", field, use.constant, names))
        index = end
    return out
