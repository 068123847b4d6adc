"""Parses the values of flags that have a syntax of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from converters.mlf.model import Override
from converters.mlf.rules import DTYPES
from tools.codegen.conversion import Problem, UsageError

_SHAPE = re.compile(r"(?:([^.=]+)\.)?([^=]+)=([a-z]+[0-9]*)\[([0-9, ]*)\]")
_SECTION = re.compile(r"([^=]+)=([.\w$,]+)")


def parse_overrides(values: Sequence[str]) -> tuple[Override, ...]:
    """Parses `[MODEL.]TENSOR=dtype[d0,d1,...]`; raises UsageError for any other form."""
    result = []
    for value in values:
        found = _SHAPE.fullmatch(value)
        if found is None or found[3] not in DTYPES:
            raise UsageError(
                Problem(
                    f"--shape {value}",
                    f"expected [MODEL.]TENSOR=dtype[1,16]; dtypes: {', '.join(sorted(DTYPES))}",
                )
            )
        shape = tuple(int(d) for d in found[4].split(",") if d.strip())
        result.append(Override(found[1] or "", found[2], found[3], shape))
    return tuple(result)


def parse_sections(values: Sequence[str]) -> dict[str, str]:
    """Parses `[MODEL.]POOL=.section`; raises UsageError for any other form."""
    result = {}
    for value in values:
        found = _SECTION.fullmatch(value)
        if found is None:
            raise UsageError(Problem(f"--section {value}", "expected [MODEL.]POOL=.section"))
        result[found[1]] = found[2]
    return result
