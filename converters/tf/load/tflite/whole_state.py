"""Variables that hold int8 numbers: what is read is what was assigned, bit for bit."""

from __future__ import annotations

from typing import Any

from converters.tf.load.tflite.call import Constant
from converters.tf.load.tflite.control import assigned, held
from converters.tf.load.tflite.whole import Handler, NotServed, Whole, is_whole, signed


def _assign(whole: Whole) -> list[Any]:
    tensor = whole.tensor(1)
    if not is_whole(tensor):
        raise NotServed
    data = tensor.data
    assigned(whole.call, whole.value(1) if data is None else Constant(signed(data)))
    return []


def _read(whole: Whole) -> Any:
    if not is_whole(whole.call.results[0]):
        raise NotServed
    value = held(whole.call)
    return whole.call.weight("state", value.data) if isinstance(value, Constant) else value


OPS: dict[str, Handler] = {"ASSIGN_VARIABLE": _assign, "READ_VARIABLE": _read}
