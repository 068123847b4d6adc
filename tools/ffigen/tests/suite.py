"""The construct headers and how they are generated: shared by the tests and the update command."""

from __future__ import annotations

import os
from pathlib import Path

from tools.ffigen.pipeline import Generated, generate
from tools.ffigen.rules import HeaderRule, TableRule

HERE = Path(__file__).resolve().parent
CONSTRUCTS = HERE / "constructs"
GOLDEN = HERE / "golden"
BAD = HERE / "bad"
UPDATE = "tools/bazel run //tools/ffigen/tests:update_golden"
TABLES = (
    TableRule("GoldenApi", ("function", "callback", "keywords"), ("cxx",), "process", "A table."),
)
OPTIONAL = {"entry_point": "its function is missing on purpose"}


def rustfmt() -> str:
    """Returns the formatter: `RUSTFMT`, or the one on the path."""
    given = os.environ.get("RUSTFMT")
    return str(Path(given).absolute()) if given else "rustfmt"


def header_rules() -> list[HeaderRule]:
    """Returns a rule for each construct; the module has the header's name."""
    paths = sorted(CONSTRUCTS.glob("*.h"))
    return [HeaderRule(p.name, p.stem, OPTIONAL.get(p.stem, "")) for p in paths]


def generated() -> Generated:
    """Generates the bindings of all constructs as one crate."""
    return generate(CONSTRUCTS, rustfmt(), header_rules(), TABLES)
