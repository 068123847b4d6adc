"""Layers that an operator of the user computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from converters.tf.ir.expressions import unknown
from converters.tf.load.custom_ops import FLAG, CustomOp, called, tensors
from tools.codegen.conversion import Problem, UsageError

# What Keras stores of every layer.
_BASE = frozenset({"name", "trainable", "dtype"})


def layers(ops: Mapping[str, CustomOp]) -> dict[str, Any]:
    """Returns the class that stands in for each layer, by the names that files have for it.

    `package::Name` is the layer `package>Name`, and `Name` one without a package.

    Raises:
        UsageError: One of them is a layer of Keras.
    """
    found: dict[str, Any] = {}
    for name, op in ops.items():
        package, _, kind = name.rpartition("::")
        if not package and hasattr(keras.layers, kind):
            raise UsageError(Problem(f"{FLAG} {name}", "tf2rust converts this layer itself"))
        for key in (f"{package}>{kind}",) if package else (kind, f"Custom>{kind}"):
            found[key] = _layer(op, kind)
    return found


def _layer(op: CustomOp, kind: str) -> Any:
    class Own(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types.
        def __init__(self, **config: Any) -> None:
            super().__init__(**{key: config[key] for key in _BASE & config.keys()})
            self._own = called(op, {k: v for k, v in config.items() if k not in _BASE})

        def call(self, *given: Any) -> Any:
            operands = [keras.ops.convert_to_tensor(t) for t in keras.tree.flatten(given)]
            shapes = [
                tuple(
                    unknown(f"size_{number}_{axis}") if size is None else int(size)
                    for axis, size in enumerate(tensor.shape)
                )
                for number, tensor in enumerate(operands)
            ]
            results = tensors(self._own, operands, shapes)
            return results if len(results) > 1 else results[0]

    Own.__name__ = Own.__qualname__ = kind
    return Own
