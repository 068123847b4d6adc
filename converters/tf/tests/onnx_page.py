"""The page of ONNX's test suite, and the file of what is expected of its cases."""

from __future__ import annotations

import collections
import csv
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import onnx

from converters.tf.tests.onnx_cases import Case
from converters.tf.tests.onnx_outcomes import Kind, Outcome

# Reasons of one operator that a row shows.
_REASONS: Final = 2
_CHARACTERS: Final = 110


@dataclasses.dataclass(frozen=True)
class Row:
    """What became of a case.

    Attributes:
        folder: The folder of the suite.
        name: The case.
        kind: What became of it.
        reason: Why it does not pass with every input as an input, or empty.
        operator: Its operator.
        version: The version of the operator set that changed the operator last.
    """

    folder: str
    name: str
    kind: Kind
    reason: str
    operator: str = ""
    version: int = 0

    @classmethod
    def of(cls, case: Case, outcome: Outcome) -> Row:
        """Returns the row of a case."""
        reason = " ".join(outcome.reason.split())
        return cls(case.folder, case.name, outcome.kind, reason, case.operator, since(case))


def since(case: Case) -> int:
    """Returns the version of the operator set that changed a case's operator last."""
    nodes = case.model.graph.node
    if case.folder != "node" or len(nodes) != 1:
        return 0
    try:
        schema = onnx.defs.get_schema(nodes[0].op_type, case.version, nodes[0].domain)
    except onnx.defs.SchemaError:
        return case.version
    return int(schema.since_version)


def expected(path: Path) -> dict[tuple[str, str], Kind]:
    """Returns what is expected of the cases that a file names; all others pass."""
    with path.open(newline="") as stream:
        return {(f, n): Kind(kind) for f, n, kind, _ in csv.reader(stream, delimiter="\t")}


def write_expected(path: Path, rows: Iterable[Row]) -> None:
    """Writes what is expected of the cases that do not pass with every input as an input."""
    lines = [
        "\t".join((r.folder, r.name, str(r.kind), r.reason.replace("\t", " ")))
        for r in rows
        if r.kind is not Kind.PASS
    ]
    path.write_text("\n".join(lines) + "\n")


def unexpected(rows: Iterable[Row], known: Mapping[tuple[str, str], Kind]) -> list[str]:
    """Returns a line for each case of which something else is expected."""
    found = []
    for row in rows:
        wanted = known.get((row.folder, row.name), Kind.PASS)
        if row.kind is not wanted:
            why = f": {row.reason}" if row.reason else ""
            found.append(f"{row.folder}/{row.name}: expected {wanted}, found {row.kind}{why}")
    return found


PAGE: Final = """\
# ONNX's own test suite

All cases that the package `onnx` {version} carries, through tf2rust. A case is a model, its inputs
and what it has to give. tf2rust converts it as it is: what the suite gives at run time, such as
weights and shapes, is an input. NumPy computes the graph by its definition and compares.
{relative:g} of an element is allowed, {narrow:g} for floats of 16 bits or less; integers are equal.

Where a shape, an axis or another size is an input, the crate has the sizes that the file states for
[the results](tf2rust/onnx.md#axes-and-sizes-that-a-call-gives). A case that needs more is tried
once more with some inputs as constants, and counts as *with constants*. *Refused* means that
`tf2rust` says why and writes nothing, or that the crate's `predict` returns an error.

Written by `tools/bazel run //converters/tf/tests:onnx_nodes -- --write docs/onnx.md`. It
compares with `converters/tf/tests/onnx_nodes.tsv`, which names every case that does not pass;
`--expect FILE` writes that file.
{crates} of the cases were compiled as crates, whose own tests passed.

| folder | cases | pass | with constants | refused | wrong |
|---|---|---|---|---|---|
{totals}

## Reasons

| cases | why a case is refused |
|---|---|
{reasons}

Ten refused cases compare with numbers of NumPy's random generator, which ONNX does not define:
six of `Bernoulli` and `RandomUniformLike`, and the four of `training_dropout`, whose call is an
error.

## Operators

A row for each operator and each version of the operator set that changed it, for cases of one node.

| operator | version | cases | pass | with constants | refused | wrong | why not all pass |
|---|---|---|---|---|---|---|---|
{operators}
"""


def page(rows: Sequence[Row], crates: int, relative: float, narrow: float) -> str:
    """Returns the page."""
    folders = list(dict.fromkeys(r.folder for r in rows))
    totals = [_cells(f"`{f}`", [r for r in rows if r.folder == f]) for f in folders]
    if len(folders) > 1:
        totals.insert(0, _cells("all", rows))
    refused = collections.Counter(_reason(r) for r in rows if r.kind is Kind.REFUSED)
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in sorted(rows, key=lambda r: (r.operator.lower(), r.version)):
        groups.setdefault((row.operator, row.version), []).append(row)
    operators = []
    for (operator, version), found in groups.items():
        name = f"{operator} | {version or '-'}"
        operators.append(f"{_cells(name, found)} {_why(found)} |")
    return PAGE.format(
        version=onnx.__version__,
        relative=relative,
        narrow=narrow,
        crates=crates or "None",
        totals="\n".join(totals),
        reasons="\n".join(f"| {count} | {why} |" for why, count in refused.most_common()),
        operators="\n".join(operators),
    )


def _cells(name: str, rows: Sequence[Row]) -> str:
    kinds = collections.Counter(row.kind for row in rows)
    wrong = kinds[Kind.WRONG] + kinds[Kind.CRASH]
    numbers = (len(rows), kinds[Kind.PASS], kinds[Kind.CONSTANTS], kinds[Kind.REFUSED], wrong)
    return f"| {name} | {' | '.join(map(str, numbers))} |"


def _reason(row: Row) -> str:
    """Returns a reason without the names of one case."""
    where, _, what = row.reason.partition(": ")
    if where.startswith(("tensor ", "input ", "output ")):
        return _short(what)
    return _short(f"{where.rpartition('(')[2].removesuffix(')')}: {what}" if what else where)


def _short(text: str) -> str:
    text = text.replace("|", "/")
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 2]}.."


def _why(rows: Sequence[Row]) -> str:
    reasons = [_short(row.reason.partition(": ")[2]) for row in rows if row.reason]
    found = [reason for reason, _ in collections.Counter(reasons).most_common(_REASONS)]
    return "; ".join(found)
