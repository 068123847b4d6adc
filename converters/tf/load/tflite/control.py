"""Branches, loops, variables, and operators that are TensorFlow's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
from flatbuffers import flexbuffers
from tensorflow.python.framework import op_def_registry

from converters.tf.load.effects import harmless
from converters.tf.load.saved_model.replay import Refused, Tensor
from converters.tf.load.tflite import file
from converters.tf.load.tflite.call import Call, Constant, Handler, Value
from converters.tf.load.tflite.lists import restored

# How the names of custom operators start that are TensorFlow's.
_FLEX = "Flex"


class Handle:
    """A variable that the model keeps."""

    def __init__(self, name: str) -> None:
        self.name = name


def _while(call: Call) -> Sequence[Value]:
    """Variables are not values of the loop: it finds them outside."""
    condition, body = (int(call.option(f"{n}SubgraphIndex")) for n in ("cond", "body"))
    operands = [call.value(i) for i in range(len(call.operands))]
    carried = [i for i, v in enumerate(operands) if not isinstance(v, Handle)]
    starts = [
        tf.constant(v.data) if isinstance(v, Constant) else v
        for v in map(operands.__getitem__, carried)
    ]
    declared = call.signature(body)
    if len(declared) != len(operands):
        raise Refused(f"{len(operands)} values for a body of {len(declared)}")

    def whole(args: Sequence[Tensor]) -> list[Value]:
        values = list(operands)
        for place, arg in zip(carried, args, strict=True):
            values[place] = arg
        return values

    def turn(*args: Tensor) -> list[Tensor]:
        results = call.run(body, whole(args))
        return [restored(a, results[i]) for a, i in zip(args, carried, strict=True)]

    found = tf.while_loop(
        lambda *args: tf.reshape(call.run(condition, whole(args))[0], []),
        turn,
        starts,
        shape_invariants=[_invariant(s, declared[i]) for s, i in zip(starts, carried, strict=True)],
    )
    return whole(found if isinstance(found, tuple | list) else [found])


def _invariant(start: Tensor, declared: file.Tensor) -> tf.TensorShape:
    """Returns the shape that a carried value keeps, unless it is a list or the file has none."""
    known = declared.dtype != "variant" and (declared.shape or start.shape.rank == 0)
    return tf.TensorShape(declared.shape if known else None)


def _if(call: Call) -> Sequence[Tensor]:
    then, other = (int(call.option(f"{n}SubgraphIndex")) for n in ("then", "else"))
    args = [call.value(i) for i in range(1, len(call.operands))]

    def branch(number: int) -> Callable[[], list[Tensor]]:
        return lambda: [tf.identity(t) for t in call.run(number, args)]

    found = tf.cond(tf.reshape(call.tensor(0), []), branch(then), branch(other))
    return list(found) if isinstance(found, tuple | list) else [found]


def _once(call: Call) -> Sequence[Tensor]:
    call.run(int(call.option("initSubgraphIndex")), [])
    call.variables.values |= call.variables.given
    return []


def _handle(call: Call) -> Sequence[Value]:
    names = [call.option(name, b"") for name in ("container", "sharedName")]
    return [Handle("/".join(name.decode("utf-8", "replace") for name in names if name))]


def _name(call: Call) -> str:
    handle = call.value(0)
    if not isinstance(handle, Handle):
        raise Refused("a variable that is handed to a subgraph")
    return handle.name


def held(call: Call) -> Value:
    """Returns what the variable holds that an operator reads.

    A variable has its first value when a call begins, unless it is an input of the call.

    Raises:
        Refused: It holds nothing, or is not known.
    """
    name = _name(call)
    if name not in call.variables.values:
        raise Refused("a variable without a value: the model was converted without its weights")
    value = call.variables.values[name]
    if isinstance(value, Constant):
        call.variables.first.setdefault(name, (value.data.shape, value.data))
    return value


def assigned(call: Call, value: Value) -> None:
    """Gives the variable of an operator a value.

    Raises:
        Refused: That may happen or not, or the variable is not known.
    """
    if call.replay.inside:
        raise Refused("a variable changes in a loop or branch")
    call.variables.values[_name(call)] = value


def _assign(call: Call) -> Sequence[Value]:
    assigned(call, call.value(1))
    return []


def flex(call: Call) -> Sequence[Tensor]:
    """Replays an operator of TensorFlow: its node is in the options."""
    try:
        parts = flexbuffers.GetRoot(bytearray(call.operator.custom_options)).AsVector
        node = tf.compat.v1.NodeDef.FromString(bytes(parts[1].AsStringBytes))
    except Exception as err:  # The reader raises whatever the damaged part made it raise.
        raise Refused("its options hold no node of TensorFlow") from err
    definition = op_def_registry.get(node.op)
    if definition is None:
        raise Refused(f"the op {node.op} is not part of TensorFlow")
    if definition.is_stateful:
        raise Refused(f"the op {node.op} has a state")
    if not harmless(node.op):
        raise Refused(f"the op {node.op} may do more than compute")
    graph = tf.compat.v1.get_default_graph()
    made = graph.create_op(node.op, call.tensors(), attrs=dict(node.attr), name=node.op)
    return list(made.outputs)


def is_flex(call: Call) -> bool:
    """Returns whether an operator is TensorFlow's own."""
    return call.operator.custom and call.operator.kind.startswith(_FLEX)


OPS: dict[str, Handler] = {
    "ASSIGN_VARIABLE": _assign,
    "CALL_ONCE": _once,
    "IF": _if,
    "READ_VARIABLE": lambda call: [held(call)],
    "VAR_HANDLE": _handle,
    "WHILE": _while,
}
