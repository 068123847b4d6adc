"""What a variable holds where a model that assigns to it reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace

from converters.tf.lower.trace import FunctionName, TensorRef, Trace, TraceFunction, TraceNode

# Ops whose result is what their variable, the first operand, holds afterwards.
WRITERS = frozenset(["AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"])
# Ops whose first operand is a condition or the number of a branch.
_BRANCHES = frozenset(["If", "StatelessIf", "Case", "StatelessCase"])
_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])


def written_before(
    function: TraceFunction, functions: Mapping[str, TraceFunction]
) -> dict[str, dict[int, str]]:
    """Returns which operands of a node are variables that another node wrote before it.

    TensorFlow orders what uses a variable by control edges. A writer may be a call: then the value
    is not a result of it.

    Args:
        function: The function.
        functions: All that nodes call.

    Returns:
        The node that wrote last, by the place of the operand, by the name of the node that reads.
    """
    writers: dict[str, dict[str, int]] = {}
    for number, node in enumerate(function.nodes.values()):
        for place, ref in enumerate(node.inputs):
            if writes(node, place, functions):
                writers.setdefault(ref.node, {})[node.name] = number
    found: dict[str, dict[int, str]] = {}
    for node in function.nodes.values():
        for place, ref in enumerate(node.inputs):
            own = writers.get(ref.node, {})
            before = [name for name in node.after if name in own]
            if before:
                found.setdefault(node.name, {})[place] = max(before, key=lambda n: own[n])
    return found


def carried(trace: Trace) -> tuple[str, ...]:
    """Returns the variables whose value TensorFlow carries from one call to the next.

    A variable that the model writes before it reads it carries nothing, nor does one that it never
    reads, such as a counter of calls.

    Returns:
        Their placeholders, in the order of their names.
    """
    main = flat(trace.main, trace.functions, trace.variables.keys())
    before = written_before(main, trace.functions)
    written: set[str] = set()
    added: set[str] = set()
    read: dict[str, bool] = {}
    for node in main.nodes.values():
        for place, ref in enumerate(node.inputs):
            if ref.node not in trace.variables:
                continue
            if writes(node, place, trace.functions):
                written.add(ref.node)
            if node.op in WRITERS:
                added |= {ref.node} if node.op != "AssignVariableOp" else set()
            else:
                first = place not in before.get(node.name, {})
                read[ref.node] = read.get(ref.node, False) or first
    kept = {v for v in written if v in read and (read[v] or v in added)}
    return tuple(sorted(kept, key=lambda v: trace.variables[v].name))


def writes(node: TraceNode, place: int, functions: Mapping[str, TraceFunction]) -> bool:
    """Returns whether a node writes the variable that is its operand at a place."""
    if node.op in WRITERS:
        return place == 0
    place -= node.op in _BRANCHES
    for function in called(node, functions):
        if not 0 <= place < len(function.arguments):
            continue
        argument = function.arguments[place]
        for inner in function.nodes.values():
            places = (i for i, ref in enumerate(inner.inputs) if ref.node == argument)
            if any(writes(inner, i, functions) for i in places):
                return True
    return False


def called(node: TraceNode, functions: Mapping[str, TraceFunction]) -> Iterator[TraceFunction]:
    """Yields the functions that a node calls."""
    for attr in node.attrs.values():
        for name in attr if isinstance(attr, tuple) else (attr,):
            if isinstance(name, FunctionName) and name.name in functions:
                yield functions[name.name]


def flat(
    function: TraceFunction, functions: Mapping[str, TraceFunction], kept: Set[str]
) -> TraceFunction:
    """Returns a function with the bodies of those that it calls to write variables.

    Args:
        function: The function.
        functions: All that nodes call.
        kept: The arguments and placeholders that are the variables.
    """
    nodes: dict[str, TraceNode] = {}
    moved: dict[TensorRef, TensorRef] = {}
    writers: dict[str, tuple[str, ...]] = {}
    for node in function.nodes.values():
        own = [i for i, ref in enumerate(node.inputs) if ref.node in kept]
        if node.op not in _CALLS or not any(writes(node, i, functions) for i in own):
            nodes[node.name] = node
            continue
        (body,) = called(node, functions)
        inner = flat(body, functions, {body.arguments[i] for i in own})
        prefix = f"{node.name}/"
        for name, ref in zip(inner.arguments, node.inputs, strict=True):
            moved[TensorRef(prefix + name, 0)] = ref
        for index, ref in enumerate(inner.results):
            moved[TensorRef(node.name, index)] = replace(ref, node=prefix + ref.node)
        for name, part in inner.nodes.items():
            if name not in inner.arguments:
                nodes[prefix + name] = replace(
                    part,
                    name=prefix + name,
                    inputs=tuple(replace(ref, node=prefix + ref.node) for ref in part.inputs),
                    after=(*node.after, *(prefix + before for before in part.after)),
                    layer=part.layer or node.layer,
                )
        writers[node.name] = tuple(prefix + n for n, p in inner.nodes.items() if p.op in WRITERS)

    def resolved(ref: TensorRef) -> TensorRef:
        while ref in moved:
            ref = moved[ref]
        return ref

    found = {
        name: replace(
            node,
            inputs=tuple(map(resolved, node.inputs)),
            after=tuple(w for before in node.after for w in writers.get(before, (before,))),
        )
        for name, node in nodes.items()
    }
    return replace(function, nodes=found, results=tuple(map(resolved, function.results)))
