"""Sources of TensorFlow's Python op wrappers (`gen_*.py`) -> one docstring per op.

The files are read, never imported. In each, a wrapper is a function with a docstring, and a line
`Name = tf_export("raw_ops.Name")(_ops.to_raw_op(function))` says which op it wraps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tools.codegen.errors import Collector, Location

_FUNCTION = re.compile(r'^def (\w+)\([^\n]*:\n  (r?""".*?""")$', re.MULTILINE | re.DOTALL)
_RAW_OP = re.compile(
    r'^\w+ = tf_export\("raw_ops\.(\w+)"\)\(_ops\.to_raw_op\((\w+)\)\)', re.MULTILINE
)


@dataclass(frozen=True)
class Docstring:
    """What the Python wrapper of an op says.

    Attributes:
        op: The op's name.
        function: The wrapper's name.
        file: The file of the wrapper.
        text: The docstring.
    """

    op: str
    function: str
    file: str
    text: str


def parse_docstrings(files: Mapping[str, str]) -> dict[str, Docstring]:
    """Reads the wrappers of several files.

    Args:
        files: Source text by file name.

    Returns:
        Docstrings by name of the op.

    Raises:
        CodegenError: A file exports an op but has no docstring for it, so its form is not the one
            that this reads.
    """
    out: dict[str, Docstring] = {}
    problems = Collector()
    for file, text in sorted(files.items()):
        literals = {match.group(1): match.group(2) for match in _FUNCTION.finditer(text)}
        for match in _RAW_OP.finditer(text):
            op, function = match.groups()
            if function not in literals:
                line = text.count("\n", 0, match.start()) + 1
                problems.add(
                    Location(file, line),
                    f"op {op}: expected a function {function} with a docstring above; found none",
                )
                continue
            out[op] = Docstring(op, function, file, ast.literal_eval(literals[function]))
    problems.check()
    return out
