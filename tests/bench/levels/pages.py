"""The pages of `levels.py`, and the numbers that they are made of."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.machine import processor

# QEMU's processors, and the instructions that multiply int8 numbers there.
INT8: Final = {"cortex-a72": "NEON", "cortex-a76": "dotprod", "max": "i8mm"}


@dataclass(frozen=True)
class Count:
    """A case on Arm: instructions of a call, and those that access memory."""

    case: str
    portable: tuple[int, int]
    level: tuple[int, int]


@dataclass(frozen=True)
class Int8:
    """A case in int8 on Arm: instructions of a call, by processor and of the portable level."""

    case: str
    portable: int
    levels: dict[str, int]


@dataclass(frozen=True)
class Loop:
    """The innermost loop of a product: instructions and cycles for each column of A."""

    core: str
    instructions: float
    cycles: float
    bound: float


@dataclass(frozen=True)
class Times:
    """A case in WebAssembly: seconds of a call by module, in rounds."""

    case: str
    seconds: dict[str, list[float]]


@dataclass(frozen=True)
class Modules:
    """What WebAssembly was measured with: bytes of each module, and the cases."""

    sizes: dict[str, int]
    times: list[Times]


_ARM_PAGE = """\
# Arm

Written on {date} by
`tools/bazel run //tests/bench:kernel_levels -- --on=arm --write docs/performance/arm.md`,
with {rustc}, {qemu} and {llvm}.

These are counts, not times: no Arm machine was at hand. Fewer instructions hint at less time, and
do not prove it.

## Instructions of a call

One thread. QEMU counts what it executes. The portable level is what crates had before: the compiler
makes NEON instructions of its loops, too. The geometric mean of the ratios of instructions is
{mean:.2f}.

| kernel | portable | NEON | ratio | memory accesses, portable | NEON | ratio |
|---|---:|---:|---:|---:|---:|---:|
{counts}

## Instructions of a call in int8

Products of int8 numbers have instructions of their own, which a processor has or not. QEMU's
processors here are {cores}. The geometric means of the
ratios are {means}.

| kernel | portable | {names} |
|---|---:|{dashes}
{whole}

`usmmla` multiplies twice as much as `sdot` does: fewer instructions are not all that it gains.

## The innermost loop of a matmul

A tile has 6 rows and 16 columns: {instructions:.0f} instructions for each column of the left-hand
side, of which 24 multiply and add. The cycles are those of llvm-mca's model of a processor. The
bound is 24 by the processor's pipes that multiply and add.

| processor | cycles | bound | share of the bound |
|---|---:|---:|---:|
{loops}
"""

_WEB_PAGE = """\
# WebAssembly

Written on {date} by
`tools/bazel run //tests/bench:kernel_levels -- --on=web --write docs/performance/web.md`,
with {rustc} and node {node}, on {machine}.

One thread, {rounds} rounds in turns. Microseconds of the processor for a call: the median, and in
brackets the lowest and the highest. Both modules may use WebAssembly's vectors: in the portable
one, which is what crates have without relaxed-simd, the compiler alone makes them. The geometric
mean of the ratios of medians is {relaxed:.2f}. The modules have {sizes} bytes.

| kernel | portable | relaxed-simd | ratio |
|---|---:|---:|---:|
{rows}
"""


def _whole_rows(whole: Sequence[Int8]) -> list[str]:
    return [
        f"| {row.case} | {row.portable:,} | "
        + " | ".join(f"{n:,} | {row.portable / n:.2f}" for n in row.levels.values())
        + " |"
        for row in whole
    ]


def arm_page(
    counts: Sequence[Count], whole: Sequence[Int8], loops: Sequence[Loop], tools: Mapping[str, str]
) -> str:
    """Returns the page; `tools` names the versions of rustc, QEMU and LLVM."""
    ratios = [count.portable[0] / count.level[0] for count in counts]
    rows = [
        f"| {c.case} | {c.portable[0]:,} | {c.level[0]:,} | {c.portable[0] / c.level[0]:.2f} "
        f"| {c.portable[1]:,} | {c.level[1]:,} | {c.portable[1] / c.level[1]:.2f} |"
        for c in counts
    ]
    cycles = [
        f"| {loop.core} | {loop.cycles:.1f} | {loop.bound:.0f} | {loop.bound / loop.cycles:.0%} |"
        for loop in loops
    ]
    return _ARM_PAGE.format(
        date=datetime.date.today(),
        **tools,
        mean=statistics.geometric_mean(ratios),
        counts="\n".join(rows),
        cores=", ".join(f"`{core}` ({name})" for core, name in INT8.items()),
        means=", ".join(
            f"{statistics.geometric_mean(r.portable / r.levels[core] for r in whole):.2f} ({name})"
            for core, name in INT8.items()
        ),
        names=" | ".join(f"{name} | ratio" for name in INT8.values()),
        dashes="---:|---:|" * len(INT8),
        whole="\n".join(_whole_rows(whole)),
        instructions=loops[0].instructions,
        loops="\n".join(cycles),
    )


def _cell(seconds: Sequence[float]) -> str:
    middle, low, high = statistics.median(seconds), min(seconds), max(seconds)
    return f"{middle * 1e6:.1f} ({low * 1e6:.1f} to {high * 1e6:.1f})"


def web_page(modules: Modules, rounds: int, tools: Mapping[str, str]) -> str:
    """Returns the page; `tools` names the versions of rustc and node."""
    ratios: dict[str, list[float]] = {"relaxed-simd": []}
    rows = []
    for row in modules.times:
        cells = [row.case, _cell(row.seconds["portable"])]
        for name, found in ratios.items():
            old, new = (statistics.median(row.seconds[key]) for key in ("portable", name))
            found.append(old / new)
            cells += [_cell(row.seconds[name]), f"{found[-1]:.2f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return _WEB_PAGE.format(
        date=datetime.date.today(),
        **tools,
        machine=processor(),
        rounds=rounds,
        relaxed=statistics.geometric_mean(ratios["relaxed-simd"]),
        sizes=", ".join(f"{size:,} ({name})" for name, size in modules.sizes.items()),
        rows="\n".join(rows),
    )
