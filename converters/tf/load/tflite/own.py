"""Custom operators that a module of the user computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flatbuffers import flexbuffers

from converters.tf.ir.build import ShapeError
from converters.tf.ir.expressions import unknown
from converters.tf.load.custom_ops import CustomOp, called, tensors
from converters.tf.load.saved_model.replay import Refused
from converters.tf.load.tflite.call import Call, Handler


def handler(op: CustomOp) -> Handler:
    """Returns what replays an operator of the user."""

    def replayed(call: Call) -> Any:
        if None in call.operands:
            raise Refused(f"operand {call.operands.index(None)} of {op.name} is left out")
        operands = call.tensors()
        shapes = [
            tuple(
                unknown(f"size_{number}_{axis}") if size is None else int(size)
                for axis, size in enumerate(tensor.shape)
            )
            for number, tensor in enumerate(operands)
        ]
        try:
            return tensors(called(op, _attributes(call.operator.custom_options)), operands, shapes)
        except ShapeError as err:
            raise Refused(str(err)) from err

    return replayed


def _attributes(options: bytes) -> Mapping[str, Any]:
    """Returns the options of an operator, which are a map of FlexBuffers or bytes of any form."""
    if not options:
        return {}
    try:
        found = flexbuffers.Loads(options)
    except Exception:  # The reader raises whatever the bytes made it raise.
        found = None
    if isinstance(found, dict) and all(isinstance(name, str) for name in found):
        return found
    return {"options": list(options)}
