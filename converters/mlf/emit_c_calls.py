"""Emits the C that tells a profiler about calls of operators; the archive's text stays as it is.

The text is cut before and after the function that calls operators. Between the cuts, macros lead
its calls to functions that measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from converters.mlf.api import ModelApi
from converters.mlf.model import CFile
from converters.mlf.parse.c_calls import Caller


def begins_symbol(api: ModelApi) -> str:
    """Symbol of the Rust function that the C calls before an operator."""
    return f"{api.link_symbol}_measured_begins"


def ended_symbol(api: ModelApi) -> str:
    """Symbol of the Rust function that the C calls after an operator."""
    return f"{api.link_symbol}_measured_ended"


def part_texts(api: ModelApi, source: CFile) -> Mapping[str, str]:
    """Returns path under the include folder -> text of a source, which may be in parts."""
    cuts = [0, *(at for c in _callers(api, source) for at in (c.start, c.end)), len(source.text)]
    texts = [source.text[a:b] for a, b in pairwise(cuts)]
    return dict(zip(_paths(api, source), texts, strict=True))


def body_lines(api: ModelApi, source: CFile) -> list[str]:
    """Returns the lines of a unit that include a source."""
    paths = _paths(api, source)
    lines = [f'#include "{paths[0]}"']
    for number, caller in enumerate(_callers(api, source)):
        lines += _measuring(api, caller)
        lines.append(f'#include "{paths[2 * number + 1]}"')
        lines += [f"#undef {operator.name}" for operator in caller.operators]
        lines += [
            f"#define {o.name} {api.symbols[o.name]}"
            for o in caller.operators
            if o.name in api.symbols
        ]
        lines.append(f'#include "{paths[2 * number + 2]}"')
    return lines


def _callers(api: ModelApi, source: CFile) -> list[Caller]:
    return [caller for caller in api.callers if caller.file == source.name]


def _paths(api: ModelApi, source: CFile) -> list[str]:
    count = 2 * len(_callers(api, source)) + 1
    stem = f"{api.module}/{source.name}"
    return [f"{stem}.inc"] if count == 1 else [f"{stem}.{part}.inc" for part in range(count)]


def _measuring(api: ModelApi, caller: Caller) -> list[str]:
    """Returns functions that measure operators, and macros that lead to them."""
    begins, ended = begins_symbol(api), ended_symbol(api)
    lines = ["#include <stdint.h>", f"void {begins}(void);", f"void {ended}(uint32_t);"]
    for operator in caller.operators:
        number = api.operators.index(operator)
        parameters = operator.parameters or "void"
        call = f"{operator.name}({', '.join(operator.arguments)});"
        returns = operator.result != "void"
        lines += [
            f"static {operator.result} measured_{number}({parameters}) {{",
            f"  {begins}();",
            f"  {operator.result} measured_result = {call}" if returns else f"  {call}",
            f"  {ended}({number}u);",
            *(["  return measured_result;"] if returns else []),
            "}",
        ]
    for operator in caller.operators:
        lines += [
            f"#undef {operator.name}",
            f"#define {operator.name} measured_{api.operators.index(operator)}",
        ]
    return lines
