"""Which nodes of a graph have no kernel on the device, from what TensorFlow has registered.

TensorFlow takes the kernel of the device's type whose constraints a node's attributes meet. Without
one, it takes a kernel of the type `DEFAULT`, else (with soft placement) the CPU's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

Message = Any
"""A protocol buffer of TensorFlow, which ships no types for them."""

DEFAULT: Final = "DEFAULT"
CPU: Final = "CPU"

NOT_FOR_DEVICES: Final = (
    ("Dataset", "the input pipeline runs on the CPU"),
    ("Iterator", "the input pipeline runs on the CPU"),
    ("Summary", "summaries are written by the CPU"),
    ("HashTable", "tables are in the CPU's memory"),
    ("LookupTable", "tables are in the CPU's memory"),
)
"""Parts of op names that say that an op belongs to the CPU, with the reason."""


@dataclasses.dataclass(frozen=True)
class Fallback:
    """A node that would run on the CPU.

    Attributes:
        node: Its name.
        op: Its op type.
        function: The function of the graph's library that it is in; empty for the graph itself.
        reason: Why.
    """

    node: str
    op: str
    function: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Replaced:
    """A node that the device runs as other ops.

    Attributes:
        node: Its name.
        op: Its op type.
        function: The function of the graph's library that it is in; empty for the graph itself.
        how: What stands in for it.
    """

    node: str
    op: str
    function: str
    how: str


@dataclasses.dataclass(frozen=True)
class Placement:
    """What would become of a graph.

    Attributes:
        nodes: How many nodes it has, those of the functions that it reaches included, each function
            once.
        fallbacks: Those that would run on the CPU, in the graph's order.
        replaced: Those that the device runs as other ops, in the graph's order.
    """

    nodes: int
    fallbacks: tuple[Fallback, ...]
    replaced: tuple[Replaced, ...] = ()


class Kernels:
    """What is registered for a device type, with what every device shares."""

    def __init__(self, kernels: Iterable[Message], device_type: str, op_def: Callable[..., Any]):
        """Sorts the kernels.

        Args:
            kernels: Every `KernelDef` of the process.
            device_type: The type of the device.
            op_def: Gives the `OpDef` of an op type, or None.
        """
        self._of: dict[str, dict[str, list[Message]]] = {device_type: {}, DEFAULT: {}, CPU: {}}
        for kernel in kernels:
            if kernel.device_type in self._of and not kernel.label:
                self._of[kernel.device_type].setdefault(kernel.op, []).append(kernel)
        self._device_type = device_type
        self._op_def = op_def

    def ops(self) -> dict[str, int]:
        """Returns how many kernels each op has on the device, those of `DEFAULT` not counted."""
        return {op: len(found) for op, found in sorted(self._of[self._device_type].items())}

    def knows(self, op: str) -> bool:
        """Says whether there is an op of this name; else it is the name of a function."""
        return self._op_def(op) is not None

    def reason(self, node: Message) -> str:
        """Says why a node can't run on the device; empty if it can."""
        pinned = node.device.rpartition("device:")[2] if "device:" in node.device else ""
        if pinned.partition(":")[0] == CPU:
            return f"the model pins it to {pinned}"
        types = self._types(node)
        candidates = [
            kernel
            for device in (self._device_type, DEFAULT)
            for kernel in self._of[device].get(node.op, [])
        ]
        if any(_matches(kernel, types) for kernel in candidates):
            return ""
        for part, reason in NOT_FOR_DEVICES:
            if part in node.op:
                return reason
        if any("string" in names for names in types.values()):
            return "strings are in the CPU's memory"
        if not candidates:
            on_cpu = any(_matches(kernel, types) for kernel in self._of[CPU].get(node.op, []))
            other = "" if on_cpu else ", nor has the CPU one for these types"
            return f"{self._device_type} has no kernel of this op{other}"
        return self._mismatch(candidates, types)

    def replacement(self, node: Message) -> str:
        """Says what stands in for a node that the device runs as other ops; empty if none does."""
        from tensorflow.python.framework import dtypes

        op_def = self._op_def(node.op)
        if op_def is None or node.op not in self._of[self._device_type]:
            return ""
        # The type of an argument that an attribute names is 0.
        if all(each.type != dtypes.resource.as_datatype_enum for each in op_def.input_arg):
            return ""
        # The type of the variable is that of the values.
        types = self._types(node)
        of = types.get("T", types.get("dtype", ()))
        wanted = {"T": of}
        computes = any(_matches(kernel, wanted) for kernel in self._of[self._device_type]["Mul"])
        if computes:
            return "runs as ops that read the variable, compute and assign, all on the device"
        return f"reads and assigns on the device, computes {', '.join(of)} on the CPU"

    def _mismatch(self, candidates: Sequence[Message], types: dict[str, tuple[str, ...]]) -> str:
        wrong = []
        for name, found in types.items():
            allowed = {
                _type_name(allowed)
                for kernel in candidates
                for constraint in kernel.constraint
                if constraint.name == name
                for allowed in constraint.allowed_values.list.type
            }
            if allowed and not set(found) <= allowed:
                wrong.append(f"{name} is {', '.join(found)}, its kernels take {_listed(allowed)}")
        if wrong:
            return "; ".join(wrong)
        given = ", ".join(f"{name}={'/'.join(found)}" for name, found in types.items())
        return f"no kernel takes {given} together"

    def _types(self, node: Message) -> dict[str, tuple[str, ...]]:
        """Returns the type attributes of a node, with the defaults of those that it leaves out."""
        found: dict[str, tuple[str, ...]] = {}
        op_def = self._op_def(node.op)
        for attr in op_def.attr if op_def is not None else ():
            value = node.attr.get(attr.name, attr.default_value)
            if attr.type == "type":
                found[attr.name] = (_type_name(value.type),)
            elif attr.type == "list(type)":
                found[attr.name] = tuple(_type_name(one) for one in value.list.type)
        return found


def _type_name(number: int) -> str:
    from tensorflow.python.framework import dtypes

    return str(dtypes.as_dtype(number).name)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _matches(kernel: Message, types: dict[str, tuple[str, ...]]) -> bool:
    return all(
        set(types.get(constraint.name, ()))
        <= {_type_name(one) for one in constraint.allowed_values.list.type}
        for constraint in kernel.constraint
    )


def registered(device_type: str) -> Kernels:
    """Returns the kernels of this process.

    Args:
        device_type: The type of the device, such as `TFP`.
    """
    import tensorflow as tf
    from tensorflow.python.framework import kernels, op_def_registry

    del tf
    return Kernels(kernels.get_all_registered_kernels().kernel, device_type, op_def_registry.get)


def place(kernels: Kernels, graph: Message, roots: Sequence[Message] | None = None) -> Placement:
    """Looks at every node of a graph and of the functions that it reaches.

    Args:
        kernels: What the device has.
        graph: A `GraphDef`.
        roots: The nodes of the graph to begin with; all of them if None.

    Returns:
        The nodes that would run on the CPU, those that run as other ops, and how many there are in
        all.
    """
    library = {function.signature.name: function for function in graph.library.function}
    nodes = 0
    fallbacks = []
    replaced = []
    seen: set[str] = set()
    pending: list[tuple[str, Sequence[Message]]] = [("", graph.node if roots is None else roots)]
    while pending:
        function, body = pending.pop(0)
        for node in body:
            nodes += 1
            for name in sorted(_calls(node, library)):
                if name not in seen:
                    seen.add(name)
                    pending.append((name, library[name].node_def))
            if node.op in library and not kernels.knows(node.op):
                continue
            reason = kernels.reason(node)
            how = "" if reason else kernels.replacement(node)
            if reason:
                fallbacks.append(Fallback(node.name, node.op, function, reason))
            elif how:
                replaced.append(Replaced(node.name, node.op, function, how))
    return Placement(nodes, tuple(fallbacks), tuple(replaced))


def _calls(node: Message, library: dict[str, Message]) -> Iterator[str]:
    if node.op in library:
        yield node.op
    for value in node.attr.values():
        for name in (value.func.name, *(func.name for func in value.list.func)):
            if name in library:
                yield name


def ancestors(graph: Message, outputs: Iterable[str]) -> list[Message]:
    """Returns the nodes of a graph that some outputs need.

    Args:
        graph: A `GraphDef`.
        outputs: Names of tensors or nodes.
    """
    by_name = {node.name: node for node in graph.node}
    needed: set[str] = set()
    pending = [name.lstrip("^").partition(":")[0] for name in outputs]
    while pending:
        name = pending.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            pending += [each.lstrip("^").partition(":")[0] for each in by_name[name].input]
    return [node for node in graph.node if node.name in needed]
