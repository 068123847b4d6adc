"""The part of a frozen graph that some outputs need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from converters.tf.load.outputs import FLAG, listed
from tools.codegen.conversion import Problem, UsageError


def pruned(definition: Any, outputs: Sequence[str]) -> Any:
    """Returns a graph with what some tensors need, and the functions that this calls.

    Args:
        definition: The graph, a `GraphDef`.
        outputs: Names of nodes, or of their results as `split:1`.

    Raises:
        UsageError: There is no such node.
    """
    nodes = {node.name: node for node in definition.node}
    unknown = [name for name in outputs if _node_of(name) not in nodes]
    if unknown:
        read = {_node_of(name) for node in definition.node for name in node.input}
        last = [name for name in nodes if name not in read]
        raise UsageError.of(
            Problem(f"{FLAG} {name}", f"the graph has no such node; nothing reads {listed(last)}")
            for name in unknown
        )
    kept: set[str] = set()
    stack = [_node_of(name) for name in outputs]
    while stack:
        name = stack.pop()
        if name in kept or name not in nodes:
            continue
        kept.add(name)
        stack.extend(_node_of(read) for read in nodes[name].input)
    result = tf.compat.v1.GraphDef()
    result.versions.CopyFrom(definition.versions)
    result.node.extend(node for node in definition.node if node.name in kept)
    functions = {f.signature.name: f for f in definition.library.function}
    called: set[str] = set()
    wanted = list(_called(result.node))
    while wanted:
        name = wanted.pop()
        if name in called or name not in functions:
            continue
        called.add(name)
        wanted.extend(_called(functions[name].node_def))
    result.library.function.extend(f for name, f in functions.items() if name in called)
    return result


def _node_of(name: str) -> str:
    """Returns the node of a tensor or of a control input: `split` of `split:1` and of `^split`."""
    return name.removeprefix("^").split(":")[0]


def _called(nodes: Iterable[Any]) -> Iterator[str]:
    for node in nodes:
        for attr in node.attr.values():
            if attr.func.name:
                yield attr.func.name
            yield from (function.name for function in attr.list.func)
        # A function may be called as an op.
        yield node.op
