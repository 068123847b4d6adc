"""One operator with its operands, for the function that replays it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from converters.tf.ir import Array
from converters.tf.load.saved_model.replay import Refused, Replay, Tensor
from converters.tf.load.tflite import file

# Elements of a table of integers that is a weight and no shape.
_TABLE = 128
_FUSED: Mapping[int, Callable[[Tensor], Tensor]] = {
    0: lambda x: x,
    1: tf.nn.relu,
    2: lambda x: tf.clip_by_value(x, -1.0, 1.0),
    3: tf.nn.relu6,
}
# Between what numbers their results are.
_BOUNDS = {0: (-np.inf, np.inf), 1: (0.0, np.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}


class Constant:
    """A tensor whose value is known; a large one becomes one weight for all its readers."""

    def __init__(self, data: Array) -> None:
        self.data = data
        self._weights: dict[tuple[int, ...], Tensor] = {}

    def tensor(self, replay: Replay, layer: str, role: str, axes: tuple[int, ...] = ()) -> Tensor:
        """Returns the value in the graph.

        Args:
            replay: What is replayed.
            layer: Layer that reads it.
            role: What it is there.
            axes: In which order it has its axes; empty for as they are.
        """
        data = self.data.transpose(axes) if axes else self.data
        weighs = data.dtype.kind == "f" and data.size > 1
        if not weighs and data.size <= _TABLE:
            return tf.constant(data)
        if axes not in self._weights:
            self._weights[axes] = replay.weight(layer, role, np.ascontiguousarray(data))
        return self._weights[axes]


Value: TypeAlias = Constant | Tensor


class Kept(NamedTuple):
    """A variable that is an operand of its operator.

    Attributes:
        name: Its name, which another one may have, too.
        subgraph: The subgraph.
        place: The tensor in it.
    """

    name: str
    subgraph: int
    place: int


# A variable; one with a handle is known by its name.
Key: TypeAlias = str | Kept
# What variables hold before the first call: the shape, and the value in the file.
Firsts: TypeAlias = dict[Key, tuple[tuple[int | None, ...], Array]]


def label(key: Key) -> str:
    """Returns the name of a variable."""
    return key if isinstance(key, str) else key.name


@dataclass
class Variables:
    """What the variables of a model hold.

    Attributes:
        values: What they hold.
        first: Those that were read before the model wrote them.
        given: What a call begins with, of those that it gets as inputs.
    """

    values: dict[Key, Value] = field(default_factory=dict)
    first: Firsts = field(default_factory=dict)
    given: dict[Key, Tensor] = field(default_factory=dict)

    def carried(self) -> Firsts:
        """Returns the variables whose value TFLite carries on, as `first`, sorted by name."""
        keys = [k for k in self.first if not isinstance(self.values[k], Constant)]
        return {key: self.first[key] for key in sorted(keys, key=label)}


@dataclass(frozen=True)
class Call:
    """An operator.

    Attributes:
        replay: What is replayed.
        operator: The operator.
        layer: Path of its layer.
        operands: Values of its inputs; `None` for one that is missing.
        results: What it writes.
        run: Replays a subgraph in the graph at hand: its number and arguments to its results.
        signature: Returns the arguments that a subgraph takes, by its number.
        variables: The variables that the model keeps.
        kept: Those that are operands, by place.
    """

    replay: Replay
    operator: file.Operator
    layer: str
    operands: Sequence[Value | None]
    results: Sequence[file.Tensor]
    run: Callable[[int, Sequence[Value]], list[Tensor]]
    signature: Callable[[int], Sequence[file.Tensor]]
    variables: Variables
    kept: Mapping[int, Kept] = field(default_factory=dict)

    def option(self, name: str, default: Any = 0) -> Any:
        """Returns an option by its name in the schema."""
        value = self.operator.options.get(name)
        return default if value is None else value

    def has(self, index: int) -> bool:
        """Returns whether there is an operand."""
        return index < len(self.operands) and self.operands[index] is not None

    def value(self, index: int) -> Value:
        """Returns an operand.

        Raises:
            Refused: It is missing.
        """
        if not self.has(index):
            raise Refused(f"operand {index} is missing")
        return self.operands[index]

    def tensor(self, index: int, role: str = "weight", axes: tuple[int, ...] = ()) -> Tensor:
        """Returns an operand in the graph, its axes in another order if one is given."""
        value = self.value(index)
        if isinstance(value, Constant):
            return value.tensor(self.replay, self.layer, role, axes)
        return tf.transpose(value, axes) if axes else value

    def tensors(self) -> list[Tensor]:
        """Returns all operands."""
        return [self.tensor(i) for i in range(len(self.operands))]

    def array(self, index: int) -> Array:
        """Returns an operand that must be known.

        Raises:
            Refused: It is computed.
        """
        value = self.value(index)
        if not isinstance(value, Constant):
            raise Refused(f"operand {index} is computed and no constant")
        return value.data

    def weight(self, role: str, data: Array) -> Tensor:
        """Returns a new weight of the layer."""
        return self.replay.weight(self.layer, role, np.ascontiguousarray(data))

    def ints(self, index: int) -> list[int]:
        """Returns a known operand as numbers."""
        return [int(i) for i in np.ravel(self.array(index))]

    def activated(self, x: Tensor) -> Tensor:
        """Returns a result after the activation that the operator has."""
        kind = int(self.option("fusedActivationFunction"))
        if kind not in _FUSED:
            what = "NONE, RELU, RELU_N1_TO_1 and RELU6 (0 to 3) are known"
            raise Refused(f"the fused activation {kind}, which TFLite leaves out; {what}")
        ends = self.results[0].bounds
        if ends is None:
            return _FUSED[kind](x)
        least, most = _BOUNDS[kind]
        return tf.clip_by_value(x, max(ends[0], least), min(ends[1], most))

    def biased(self, x: Tensor, index: int) -> Tensor:
        """Returns a result with the bias that an operand may be, and activated.

        TFLite's converter writes zeros where there is none; they would hide that a convolution is a
        dilated one.
        """
        bias = self.value(index) if self.has(index) else None
        if bias is None or (isinstance(bias, Constant) and not bias.data.any()):
            return self.activated(x)
        return self.activated(tf.nn.bias_add(x, self.tensor(index, "bias")))


Handler: TypeAlias = Callable[[Call], "Tensor | Sequence[Tensor]"]
