"""Text that a call writes: no statement of the run, but what its outputs are delivered from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from converters.tf import ir
from converters.tf.emit.context import Context, Emit
from converters.tf.emit.readings import changes_of, split_of
from converters.tf.emit.statements import MEMORY, Code, Kind, Name, Part, code
from converters.tf.plan.arena import Step
from tools.codegen.names import Scope


def tables_of(node: ir.Node, name: str, scope: Scope) -> dict[str, tuple[bytes, ...]]:
    """Returns the lists of words of an output, by the names that `source_of` gives them.

    Args:
        node: The node that writes it.
        name: A wish for the beginning of their names.
        scope: The names of all lists.
    """
    op = node.op
    if not isinstance(op, ir.JoinText):
        return {}
    listed = dict.fromkeys(piece.words for piece in op.pieces if piece.words)
    return {scope.unique(f"{name}_{place}"): words for place, words in enumerate(listed, 1)}


def source_of(c: Context, node: ir.Node, tables: Mapping[str, tuple[bytes, ...]]) -> Code:
    """Returns what an output of text is written from.

    Args:
        c: The model.
        node: The node that writes it.
        tables: The lists of words, by name.
    """
    op = node.op
    if isinstance(op, ir.SplitText):
        use = ["written::Apart"]
        split, changes = op.reading.split, changes_of(op.reading.changes)
        parts: list[Part] = [c.source(node.input), changes, split_of(split), split.most, op.row]
        template = "&Apart { texts: {}, changes: {}, split: {}, most: {}, row: {} }"
        return code(template, *parts, use=use)
    assert isinstance(op, ir.JoinText)
    names = {words: name for name, words in tables.items()}
    pieces: list[Part] = [
        _piece(c, piece, values, names.get(piece.words)) for piece, values in op.operands(node)
    ]
    template = "&Joined { pieces: &{}, edit: {} }"
    return code(template, pieces, _edit(op.changes, op.case), use=["written::Joined"])


def _piece(c: Context, piece: ir.Piece, values: tuple[ir.Value, ...], table: str | None) -> Code:
    places: Part = "None"
    texts = values
    if piece.chosen:
        chosen, *rest = values
        texts = tuple(rest)
        places = code("Some({})", _numbers(c, chosen))
    given: list[Part] = [
        (c.source(text), size) for text, size in zip(texts, piece.sizes, strict=True)
    ]
    return code(
        "Piece { words: {}, texts: &{}, places: {}, edit: {} }",
        "&[]" if table is None else f"&words::{table}",
        given,
        places,
        _edit(piece.changes, piece.case),
        use=["written::Piece"],
    )


def _edit(changes: Sequence[ir.Change], case: ir.Case | None) -> Code:
    if not changes and case is None:
        return code("Edit::NONE", use=["written::Edit"])
    changes, cut = ir.trimmed(changes)
    name = "Kept" if case is None else str(case.value).capitalize()
    template = f"Edit {{ changes: {{}}, trimmed: {{}}, case: Case::{name} }}"
    return code(template, changes_of(changes), cut, use=["written::Case", "written::Edit"])


def _numbers(c: Context, value: ir.Value) -> Code:
    """Returns the elements of a tensor after the run."""
    source = c.source(value)
    if isinstance(source, Name) and source.kind is Kind.TENSOR:
        return code("{}.of({}.weights)?", source, MEMORY)
    if isinstance(source, Name) and source.kind is Kind.SLOT:
        return code("{}.get({})?", MEMORY, source)
    return code("{}", source)


def _later(c: Context, step: Step) -> list[Code]:
    return []


OPS: Mapping[type[ir.Op], Emit] = dict.fromkeys(ir.WRITING, _later)
