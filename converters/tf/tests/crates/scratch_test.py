"""The plan's scratch memory against what the kernels ask for, at every SIMD level.

The kernels check the memory that a call is given: what is planned too short is an error in the
crate, what is planned too long is memory that nobody uses. Shapes are drawn with a fixed seed.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.tests.processor import processor_flags

LEVELS = ("portable", "avx2", "avx512")
DRAWS = 1500
_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
# Crates without std have these; they compute one example and their kernels no short cuts.
_ANY = (float("inf"), 0)
_CHANNELS = (1, 3, 8, 16, 17, 24, 31, 32, 33, 48, 64, 96, 128)


@dataclass(frozen=True)
class Case:
    """A node and the question whose answer its kernel gives.

    Attributes:
        node: The node, planned for one example.
        question: What `scratch_lens` is asked, with the batch in it.
        batch: Examples of the call.
        packed: Whether matrices of weights are packed beforehand.
        more: Elements beside the kernel's that the runtime takes.
        widest: Whether only the widest vectors need as much as is planned.
        slack: How many times as much as the kernels ask for may be planned for one example, and
            the elements by which it may be more in any case.
    """

    node: ir.Node
    question: str
    batch: int
    packed: bool = True
    more: int = 0
    widest: bool = False
    slack: tuple[float, int] = (1.0, 0)


def value(*shape: int, batch: bool = True) -> ir.Value:
    first: tuple[ir.Batch, ...] = (ir.Batch(1),) if batch else ()
    return ir.Value(shape=(*first, *shape), dtype=ir.DType.F32)


def weight(*shape: int) -> ir.Value:
    return value(*shape, batch=False)


def words(kind: str, *numbers: int) -> str:
    return " ".join([kind, *(str(int(number)) for number in numbers)])


def mat_mul(draw: random.Random) -> Case:
    lead = draw.choice([1, 1, 2, 5, 12])
    m = draw.choice([1, 2, 3, 4, 5, 6, 16, 33, 100, 500])
    n = draw.choice([1, 2, 15, 16, 17, 64, 100, 512])
    k = draw.choice([1, 3, 16, 64, 500, 511, 512, 513, 1500])
    over_a, over_b = draw.random() < 0.5, draw.random() < 0.5
    batch = draw.choice([1, 1, 2, 3, 8])
    a = value(lead, k, m) if over_a else value(lead, m, k)
    b = value(lead, n, k) if over_b else value(lead, k, n)
    node = ir.Node(ir.MatMul(over_a, over_b), (a, b), (value(lead, m, n),))
    question = words("matmul", lead * batch, m, n, k, over_a, over_b)
    return Case(node, question, batch, slack=(2.0, 512 * 512))


def _attention_sizes(draw: random.Random) -> tuple[int, int, int, int, int]:
    return (
        draw.choice([1, 2, 3, 4, 8, 12, 16]),
        draw.choice([1, 2, 7, 16, 63, 64, 65, 128, 200, 512]),
        draw.choice([1, 2, 7, 16, 17, 64, 100, 200, 512, 1000]),
        draw.choice([1, 8, 16, 31, 32, 64, 128]),
        draw.choice([1, 8, 16, 33, 64, 128]),
    )


def attention(draw: random.Random) -> Case:
    heads, queries, keys, depth, width = _attention_sizes(draw)
    batch = draw.choice([1, 1, 2, 3, 8])
    q, k, v = value(heads, queries, depth), value(heads, keys, depth), value(heads, keys, width)
    node = ir.Node(ir.Attention(1.0), (q, k, v), (value(heads, queries, width),))
    question = words("attention", heads * batch, queries, keys, depth, width)
    return Case(node, question, batch, slack=(2.0, 0))


def masked_attention(draw: random.Random) -> Case:
    """With a mask, the runtime computes head by head and keeps the mask of one."""
    heads, queries, keys, depth, width = _attention_sizes(draw)
    q, k, v = value(heads, queries, depth), value(heads, keys, depth), value(heads, keys, width)
    mask = weight(1, 1, queries, keys)
    node = ir.Node(ir.Attention(1.0), (q, k, v, mask), (value(heads, queries, width),))
    question = words("attention", 1, queries, keys, depth, width)
    return Case(node, question, 1, more=queries * keys, widest=True)


def attention_beside(draw: random.Random) -> Case:
    heads, queries, keys, depth, width = _attention_sizes(draw)
    batch = draw.choice([1, 2, 8])
    q, k, v = value(queries, heads, depth), value(keys, heads, depth), value(keys, heads, width)
    node = ir.Node(ir.Attention(1.0, beside=True), (q, k, v), (value(queries, heads, width),))
    question = words("beside", batch, heads, queries, keys, depth, width)
    return Case(node, question, batch, widest=True)


@dataclass(frozen=True)
class _Axis:
    input: int
    size: int
    stride: int
    dilation: int
    padding: tuple[int, int]

    @property
    def output(self) -> int:
        reach = (self.size - 1) * self.dilation + 1
        return (self.input + sum(self.padding) - reach) // self.stride + 1

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.input, self.size, self.stride, self.dilation, *self.padding)


def _axis(draw: random.Random, sizes: Sequence[int], most: int, steps: Sequence[int]) -> _Axis:
    while True:
        padding = (draw.randrange(4), draw.randrange(4))
        moves = (draw.choice(sizes), draw.choice(steps), draw.choice([1, 1, 1, 2, 3]))
        axis = _Axis(draw.randint(1, most), *moves, padding)
        reach = (axis.size - 1) * axis.dilation + 1
        if axis.input + sum(padding) >= reach:
            return axis


_NO_AXIS = _Axis(1, 1, 1, 1, (0, 0))


def _conv_axes(draw: random.Random, steps: Sequence[int]) -> tuple[_Axis, _Axis]:
    if draw.random() < 0.5:
        return _NO_AXIS, _axis(draw, (3, 4, 5), 300, steps)
    axes = _axis(draw, (3,), 40, steps), _axis(draw, (3,), 60, steps)
    return axes if draw.random() < 0.3 else (_still(axes[0]), _still(axes[1]))


def _still(axis: _Axis) -> _Axis:
    return _Axis(max(axis.input, 3), axis.size, axis.stride, 1, axis.padding)


def _conv_node(
    kind: type[ir.Conv] | type[ir.ConvTranspose],
    axes: Sequence[_Axis],
    channels: tuple[int, int],
    groups: int,
    images: int = 1,
) -> ir.Node:
    inputs, outputs = channels
    first = ir.Batch(images)
    if axes[0] == _NO_AXIS:
        axes = axes[1:]
    op = kind(
        strides=tuple(axis.stride for axis in axes),
        dilations=tuple(axis.dilation for axis in axes),
        padding=tuple(axis.padding for axis in axes),
        groups=groups,
    )
    x = ir.Value(shape=(first, *(axis.input for axis in axes), inputs), dtype=ir.DType.F32)
    y = ir.Value(shape=(first, *(axis.output for axis in axes), outputs), dtype=ir.DType.F32)
    taps = weight(*(axis.size for axis in axes), inputs // groups, outputs)
    if kind is ir.ConvTranspose:
        x, y = y, x
    return ir.Node(op, (x, taps), (y,))


def packed_conv(draw: random.Random) -> Case:
    axes = _conv_axes(draw, (1,))
    channels = draw.choice(_CHANNELS), draw.choice(_CHANNELS)
    images, batch = draw.choice([1, 1, 2, 3]), draw.choice([1, 1, 2, 5])
    numbers = [n for axis in axes for n in axis.numbers]
    node = _conv_node(ir.Conv, axes, channels, 1, images)
    question = words("packed", images * batch, *numbers, 1, *channels)
    return Case(node, question, batch, slack=(4.0, 0))


def plain_conv(draw: random.Random) -> Case:
    """Weights that are used where they lie, in crates for microcontrollers."""
    groups = draw.choice([1, 1, 2, 4])
    axes = _conv_axes(draw, (1, 2))
    # A group of one channel is another kernel's, which has no scratch memory.
    channels = groups * draw.choice(_CHANNELS[1:]), groups * draw.choice(_CHANNELS)
    numbers = [n for axis in axes for n in axis.numbers]
    node = _conv_node(ir.Conv, axes, channels, groups)
    question = words("plain", 1, *numbers, groups, *channels)
    return Case(node, question, 1, packed=False, slack=_ANY)


def plain_transpose(draw: random.Random) -> Case:
    groups = draw.choice([1, 1, 2])
    axes = _conv_axes(draw, (1, 2))
    channels = groups * draw.choice(_CHANNELS), groups * draw.choice(_CHANNELS)
    numbers = [n for axis in axes for n in axis.numbers]
    node = _conv_node(ir.ConvTranspose, axes, channels, groups)
    question = words("transpose", 1, *numbers, groups, *channels)
    return Case(node, question, 1, packed=False, slack=_ANY)


def plain_dense(draw: random.Random) -> Case:
    rows = draw.choice([1, 2, 4, 5, 16, 100])
    k, n = draw.choice([1, 3, 64, 500, 513, 1500]), draw.choice([1, 2, 15, 17, 64, 512])
    node = ir.Node(ir.Dense(), (value(rows, k), weight(k, n)), (value(rows, n),))
    question = words("product", rows, n, k)
    return Case(node, question, 1, packed=False, slack=_ANY)


def _recurrent(draw: random.Random, op: ir.Lstm | ir.Gru | ir.SimpleRnn, kind: str) -> Case:
    packed = draw.random() < 0.5
    sequences = draw.choice([1, 1, 2])
    batch = draw.choice([1, 1, 3, 8]) if packed else 1
    steps, inputs = draw.choice([1, 2, 7, 50, 100]), draw.choice([1, 2, 17, 64, 513])
    units = draw.choice([1, 2, 7, 16, 64, 100])
    gates = {"lstm": 4, "simple": 1}.get(kind, 3)
    x = ir.Value(shape=(ir.Batch(sequences), steps, inputs), dtype=ir.DType.F32)
    out = ir.Value(shape=(ir.Batch(sequences), steps, units), dtype=ir.DType.F32)
    weights = weight(inputs, gates * units), weight(units, gates * units)
    node = ir.Node(op, (x, *weights), (out,))
    question = words(kind, packed, sequences * batch, steps, inputs, units)
    return Case(node, question, batch, packed=packed, slack=_ANY)


def lstm(draw: random.Random) -> Case:
    return _recurrent(draw, ir.Lstm(), "lstm")


def gru(draw: random.Random) -> Case:
    after = draw.random() < 0.5
    return _recurrent(draw, ir.Gru(reset_after=after), "gru" if after else "gru_before")


def simple_rnn(draw: random.Random) -> Case:
    return _recurrent(draw, ir.SimpleRnn(), "simple")


def chain(draw: random.Random) -> Case:
    size, taps = draw.choice([16, 28, 56, 112]), draw.choice([3, 5])
    stride, dilation = draw.choice([1, 2]), draw.choice([1, 1, 2])
    inputs, middle, outputs = (draw.choice([8, 16, 24, 96]) for _ in range(3))
    reach = (taps - 1) * dilation
    moves = _Axis(size, taps, stride, dilation, (reach // 2, reach - reach // 2))
    image, after = _Axis(size, 1, 1, 1, (0, 0)), _Axis(moves.output, 1, 1, 1, (0, 0))
    widen = _conv_node(ir.Conv, (image, image), (inputs, middle), 1)
    between = _conv_node(ir.Conv, (moves, moves), (middle, middle), middle)
    narrow = _conv_node(ir.Conv, (after, after), (middle, outputs), 1)
    links = (widen, between, narrow)
    node = ir.Node(ir.Chain(links), (widen.input,), (narrow.output,))
    return Case(node, words("chain", size, taps, stride, dilation, inputs, middle, outputs), 1)


def solve(draw: random.Random) -> Case:
    size, columns = draw.randint(1, 12), draw.choice([1, 2, 5])
    sides = value(size, size), value(size, columns)
    node = ir.Node(ir.Solve(), sides, (value(size, columns),))
    return Case(node, words("solve", size), 1)


def log_determinant(draw: random.Random) -> Case:
    size = draw.randint(1, 12)
    node = ir.Node(ir.LogDeterminant(), (value(size, size),), (value(), value()))
    return Case(node, words("log_determinant", size), 1)


def suppress(draw: random.Random) -> Case:
    boxes, chosen = draw.randint(1, 60), draw.randint(1, 20)
    places = ir.Value(shape=(ir.Batch(1), chosen), dtype=ir.DType.I32)
    op = ir.Suppress(overlap=0.5, score=0.0, in_order=True)
    node = ir.Node(op, (value(boxes, 4), value(boxes)), (places,))
    return Case(node, words("suppress", boxes), 1)


DRAWN: tuple[Callable[[random.Random], Case], ...] = (
    mat_mul,
    attention,
    masked_attention,
    attention_beside,
    packed_conv,
    plain_conv,
    plain_transpose,
    plain_dense,
    lstm,
    gru,
    simple_rnn,
    chain,
    solve,
    log_determinant,
    suppress,
)


def _asked(cases: Sequence[Case]) -> list[int]:
    """Returns the most that any level of this processor needs, for each case."""
    programs = [Path(os.environ[name]).resolve() for name in ("SCRATCH_LENS", "SCRATCH_LENS_BARE")]
    answers = [0] * len(cases)
    for program, packed in zip(programs, (True, False), strict=True):
        places = [i for i, case in enumerate(cases) if case.packed == packed]
        questions = "".join(f"{cases[i].question}\n" for i in places)
        for level in LEVELS if packed else LEVELS[:1]:
            done = subprocess.run(
                [program],
                input=questions,
                env={"TFP_KERNELS": level},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            for place, line in zip(places, done.stdout.split(), strict=True):
                answers[place] = max(answers[place], int(line))
    return answers


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda drawn: drawn.__name__)
def test_a_plan_has_what_the_kernels_ask_for(drawn: Callable[[random.Random], Case]) -> None:
    draw = random.Random(20261125)
    cases = [drawn(draw) for _ in range(DRAWS)]
    wrong = []
    narrow = not processor_flags() >= _AVX512
    for case, kernels in zip(cases, _asked(cases), strict=True):
        planned = case.node.op.scratch(case.node, case.packed) * case.batch
        asked = kernels + case.more
        times, beside = case.slack
        if planned < asked:
            wrong.append(f"{case.question}: planned {planned}, the kernel asks for {asked}")
        elif case.widest and narrow:
            continue
        elif case.batch == 1 and asked and planned > max(times * asked, asked + beside):
            wrong.append(f"{case.question}: planned {planned} for the {asked} that are needed")
    assert not wrong, f"{len(wrong)} of {DRAWS}:\n" + "\n".join(wrong[:20])


def _cards(card: type[ir.Op]) -> set[type[ir.Op]]:
    return {card}.union(*(_cards(each) for each in card.__subclasses__()))


def test_every_card_with_scratch_memory_is_drawn() -> None:
    stated = {card for card in _cards(ir.Op) if card.scratch is not ir.Op.scratch}
    draw = random.Random(20261130)
    assert stated == {type(drawn(draw).node.op) for drawn in DRAWN}


def test_a_large_product_is_not_packed_for_all_matrices() -> None:
    """Its batch is gone through one product after the other."""
    a, b = value(12, 500, 1500), value(12, 1500, 64)
    node = ir.Node(ir.MatMul(False, False), (a, b), (value(12, 500, 64),))
    assert node.op.scratch(node) == 512 * 64
