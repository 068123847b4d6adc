"""What a variable holds where a model that assigns to it reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from converters.tf.lower.trace import FunctionName, Trace, TraceFunction, TraceNode

# Ops whose result is what their variable, the first operand, holds afterwards.
WRITERS = frozenset(["AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"])
# Ops whose first operand is a condition or the number of a branch.
_BRANCHES = frozenset(["If", "StatelessIf", "Case", "StatelessCase"])


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
            if _writes(node, place, functions):
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
    """Returns the variables whose value TensorFlow carries from one call to the next, sorted.

    A variable that the model writes before it reads it carries nothing, nor does one that it never
    reads, such as a counter of calls.
    """
    before = written_before(trace.main, trace.functions)
    written: set[str] = set()
    added: set[str] = set()
    read: dict[str, bool] = {}
    for node in trace.main.nodes.values():
        for place, ref in enumerate(node.inputs):
            if ref.node not in trace.variables:
                continue
            if _writes(node, place, trace.functions):
                written.add(ref.node)
            if node.op in WRITERS:
                added |= {ref.node} if node.op != "AssignVariableOp" else set()
            else:
                first = place not in before.get(node.name, {})
                read[ref.node] = read.get(ref.node, False) or first
    kept = {v for v in written if v in read and (read[v] or v in added)}
    return tuple(sorted({trace.variables[v].name for v in kept}))


def _writes(node: TraceNode, place: int, functions: Mapping[str, TraceFunction]) -> bool:
    if node.op in WRITERS:
        return place == 0
    place -= node.op in _BRANCHES
    for function in _called(node, functions):
        if not 0 <= place < len(function.arguments):
            continue
        argument = function.arguments[place]
        for inner in function.nodes.values():
            places = (i for i, ref in enumerate(inner.inputs) if ref.node == argument)
            if any(_writes(inner, i, functions) for i in places):
                return True
    return False


def _called(node: TraceNode, functions: Mapping[str, TraceFunction]) -> Iterator[TraceFunction]:
    for attr in node.attrs.values():
        for name in attr if isinstance(attr, tuple) else (attr,):
            if isinstance(name, FunctionName) and name.name in functions:
                yield functions[name.name]
