"""Operators between DequantizeLinear and QuantizeLinear become those on levels.

onnxruntime does the same before it runs a model. So its results are those of operators such as
`QLinearConv`, not those of the float32 operators that the file has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from converters.tf.ir import Array
from converters.tf.load.onnx.file import Graph, Node

_MICROSOFT = "com.microsoft."
_KINDS = ("int8", "uint8")
_QUANTIZE = frozenset(["QuantizeLinear", f"{_MICROSOFT}QuantizeLinear"])
_DEQUANTIZE = frozenset(["DequantizeLinear", f"{_MICROSOFT}DequantizeLinear"])
# Operators of one operand, and of two, that have a counterpart of this name on levels.
_UNARY = frozenset(["AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Softmax"])
_BINARY = frozenset(["Add", "Mul"])
# Operators that move levels and leave them as they are.
_MOVING = frozenset(["Flatten", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"])


@dataclass(frozen=True)
class _Levels:
    """Levels with their scale and what stands for 0: names of tensors."""

    x: str
    scale: str
    zero: str
    axis: int

    @property
    def names(self) -> tuple[str, str, str]:
        """Returns the operands of an operator on levels."""
        return self.x, self.scale, self.zero


class _Fusion:
    """A graph while its operators are looked at."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants: dict[str, Array] = dict(graph.constants)
        self._makers = {name: node for node in graph.nodes for name in node.outputs if name}
        self._readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)
        # What else reads a tensor: outputs, and bodies of other nodes.
        self._kept = {*graph.outputs, *(n for node in graph.nodes for n in _inner(node))}

    def dequantized(self, name: str) -> _Levels | None:
        """Returns the levels that a tensor is made of, by one DequantizeLinear."""
        node = self._makers.get(name)
        if node is None or node.op not in _DEQUANTIZE:
            return None
        return self._levels(node, node.inputs[0]) if node.inputs else None

    def _levels(self, node: Node, x: str) -> _Levels | None:
        axis = node.attrs.get("axis", 1)
        if node.attrs.get("block_size") or len(node.inputs) < 2 or not isinstance(axis, int):
            return None
        scale = self.constants.get(node.inputs[1])
        if scale is None or scale.dtype != np.float32:
            return None
        zero = node.inputs[2] if len(node.inputs) > 2 else ""
        if not zero and x in self.constants:
            zero = f"{node.outputs[0]}/zero"
            self.constants[zero] = np.zeros((), self.constants[x].dtype)
        # Else nothing tells the type of levels.
        if zero not in self.constants:
            return None
        return _Levels(x, node.inputs[1], zero, axis)

    def kind(self, levels: _Levels) -> str:
        """Returns the type of levels."""
        return str(self.constants[levels.zero].dtype.name)

    def single(self, levels: _Levels) -> bool:
        """Returns whether one scale is that of all elements of 8 bits."""
        sizes = (self.constants[levels.scale].size, self.constants[levels.zero].size)
        return sizes == (1, 1) and self.kind(levels) in _KINDS

    def after(self, name: str) -> Node | None:
        """Returns the only node that reads a tensor."""
        readers = self._readers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self._kept else None

    def target(self, node: Node) -> tuple[Node, _Levels, list[Node]] | None:
        """Returns the QuantizeLinear after a node, its levels, and what goes with both.

        A Relu in between is of no effect where 0 is the least level.
        """
        if len(node.outputs) != 1:
            return None
        gone = [node]
        after = self.after(node.outputs[0])
        relu = after if after is not None and after.op == "Relu" else None
        if relu is not None and relu.outputs:
            gone.append(relu)
            after = self.after(relu.outputs[0])
        if after is None or after.op not in _QUANTIZE:
            return None
        levels = self._levels(after, after.outputs[0]) if after.outputs else None
        if levels is None or not self.single(levels):
            return None
        if relu is not None:
            zero = self.constants[levels.zero]
            if int(zero.reshape(-1)[0]) != np.iinfo(zero.dtype).min:
                return None
        return after, levels, gone


def _inner(node: Node) -> Iterator[str]:
    """Gives the names that bodies of a node read."""
    for value in node.attrs.values():
        for graph in value if isinstance(value, list | tuple) else [value]:
            if isinstance(graph, Graph):
                yield from graph.outputs
                for inner in graph.nodes:
                    yield from inner.inputs
                    yield from _inner(inner)


# The operator on levels, its operands and its further attributes; nothing if there is none.
_Found = tuple[str, tuple[str, ...], Mapping[str, Any]] | None
_Rule = Callable[[_Fusion, Node, list[_Levels], _Levels], _Found]


def _weighted(f: _Fusion, of: list[_Levels], axes: tuple[int, ...]) -> bool:
    """Returns whether levels are multiplied by constant ones, with scales along one of axes."""
    x, w = of[:2]
    if not f.single(x) or x.x in f.constants or w.x not in f.constants:
        return False
    many = f.constants[w.scale].size > 1 or f.constants[w.zero].size > 1
    return f.kind(w) in _KINDS and (not many or w.axis in axes)


def _bias(f: _Fusion, of: list[_Levels]) -> str | None:
    """Returns the levels of a bias, nothing if there is none; `None` if it has another type."""
    if len(of) < 3:
        return ""
    found = f.constants.get(of[2].x)
    return of[2].x if found is not None and found.dtype == np.int32 else None


def _conv(f: _Fusion, node: Node, of: list[_Levels], y: _Levels) -> _Found:
    bias = _bias(f, of)
    if bias is None or not _weighted(f, of, (0,)):
        return None
    operands = (*of[0].names, *of[1].names, y.scale, y.zero)
    return "QLinearConv", (*operands, bias) if bias else operands, {}


def _mat_mul(f: _Fusion, node: Node, of: list[_Levels], y: _Levels) -> _Found:
    rank = f.constants[of[1].x].ndim if of[1].x in f.constants else 0
    if rank != 2 or not _weighted(f, of, (1, -1)):
        return None
    return "QLinearMatMul", (*of[0].names, *of[1].names, y.scale, y.zero), {}


def _gemm(f: _Fusion, node: Node, of: list[_Levels], y: _Levels) -> _Found:
    bias = _bias(f, of)
    axes = (0, -2) if node.attrs.get("transB", 0) else (1, -1)
    plain = node.attrs.get("beta", 1.0) == 1.0 or not bias
    if bias is None or not plain or not _weighted(f, of, axes):
        return None
    operands = (*of[0].names, *of[1].names, bias, y.scale, y.zero)
    return f"{_MICROSOFT}QGemm", operands, {}


def _simple(f: _Fusion, node: Node, of: list[_Levels], y: _Levels) -> _Found:
    kinds = {f.kind(x) for x in (*of, y)}
    if len(kinds) > 1 or of[0].x in f.constants or not all(f.single(x) for x in of):
        return None
    names = [name for x in of for name in x.names]
    op = f"{_MICROSOFT}QLinear{node.op}"
    if node.op == "Concat":
        return op, (y.scale, y.zero, *names), {}
    return op, (*names, y.scale, y.zero), {"opset": node.version}


_RULES: Mapping[str, tuple[_Rule, int]] = {
    "Conv": (_conv, 3),
    "Gemm": (_gemm, 3),
    "MatMul": (_mat_mul, 2),
    "Concat": (_simple, 1 << 30),
    **dict.fromkeys(_UNARY, (_simple, 1)),
    **dict.fromkeys(_BINARY, (_simple, 2)),
}


def _moved(f: _Fusion, node: Node) -> tuple[Node, list[Node]] | None:
    """Returns a node on levels, where they go into it and come out of it with one scale."""
    found = f.target(node)
    before = f.dequantized(node.inputs[0]) if node.inputs else None
    if found is None or before is None or len(found[2]) > 1 or not f.single(before):
        return None
    after = found[1]
    same = all(
        np.array_equal(f.constants[a].reshape(-1), f.constants[b].reshape(-1))
        for a, b in ((before.scale, after.scale), (before.zero, after.zero))
    )
    if not same or f.kind(before) != f.kind(after) or before.x in f.constants:
        return None
    made = replace(node, inputs=(before.x, *node.inputs[1:]), outputs=found[0].outputs)
    return made, [node, found[0]]


def _fused(f: _Fusion, node: Node) -> tuple[Node, list[Node]] | None:
    """Returns the node on levels that a node becomes, and those that go."""
    if node.op in _MOVING:
        return _moved(f, node)
    if node.op not in _RULES:
        return None
    rule, most = _RULES[node.op]
    operands = [name for name in node.inputs if name]
    of = [found for name in operands if (found := f.dequantized(name)) is not None]
    target = f.target(node)
    if target is None or len(of) < len(operands) or not of or len(of) > most:
        return None
    quantize, y, gone = target
    becomes = rule(f, node, of, y)
    if becomes is None:
        return None
    op, inputs, more = becomes
    attrs = {**node.attrs, **more}
    made = replace(node, op=op, inputs=inputs, outputs=quantize.outputs, attrs=attrs)
    return made, [*gone, quantize]


def fused(graph: Graph) -> Graph:
    """Returns a graph whose operators between levels are those on levels."""
    f = _Fusion(graph)
    made: dict[int, Node] = {}
    gone: set[int] = set()
    for node in graph.nodes:
        found = _fused(f, node)
        if found is None:
            continue
        new, old = found
        gone.update(map(id, old))
        # Where the last one was, all operands are there.
        made[id(old[-1])] = new
    nodes = [made.get(id(n), n) for n in graph.nodes if id(n) not in gone or id(n) in made]
    return replace(graph, constants=f.constants, nodes=_read(nodes, graph.outputs))


def _read(nodes: list[Node], outputs: tuple[str, ...]) -> tuple[Node, ...]:
    """Returns nodes without those of DequantizeLinear that nobody reads any more."""
    readers = Counter(name for node in nodes for name in (*node.inputs, *_inner(node)))
    readers.update(outputs)
    return tuple(
        node
        for node in nodes
        if node.op not in _DEQUANTIZE or any(readers[name] for name in node.outputs)
    )
