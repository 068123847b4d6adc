"""Runs the functions that XLA would compile for our device without XLA, which does not know it.

libtfp.so holds this text and executes it when a Python program's TensorFlow loads it, so nothing of
this package is imported here. `tfp_plugin.enable` calls the same function.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

SWITCH: Final = "TFP_AUTO"
MUST_COMPILE: Final = "_XlaMustCompile"
_FIELD: Final = "_jit_compile"
_LOADER: Final = "load_function_def_library"
_IMPORTER: Final = "_ProcessGraphDefParam"
_LOG: Final = logging.getLogger("tfp_plugin")


class SwitchError(RuntimeError):
    """This TensorFlow has no such switch; the message says which, and what to do."""


loaded: str | None = None
"""The type of device that libtfp.so has offered to this process' TensorFlow, if any."""


def automatic(device_type: str) -> None:
    """Does what `install` does, unless `TFP_AUTO` is 0; says in one line if it can't.

    Called by libtfp.so while TensorFlow loads it.

    Args:
        device_type: Type of our device.
    """
    global loaded
    loaded = device_type
    if os.environ.get(SWITCH, "").strip() == "0" or "tensorflow" not in sys.modules:
        return
    try:
        install(device_type)
    except Exception as error:
        print(f"tfp: XLA is still asked for: {error}", file=sys.stderr, flush=True)


def install(device_type: str) -> None:
    """Keeps TensorFlow from compiling for our device; a second call changes nothing.

    Functions made before the call, and those of SavedModels and graphs loaded after it, are no
    exception. In the scope of another device functions are compiled as ever.

    Args:
        device_type: Type of our device.

    Raises:
        SwitchError: If the TensorFlow in use has no such switch.
    """
    from tensorflow.python.eager.polymorphic_function import polymorphic_function
    from tensorflow.python.framework import importer
    from tensorflow.python.saved_model import function_deserialization

    kind = polymorphic_function.Function
    if isinstance(vars(kind).get(_FIELD), property):
        return
    found = (
        (f"Function.{_FIELD}", _FIELD in vars(kind(lambda: None, "probe", jit_compile=False))),
        (f"function_deserialization.{_LOADER}", hasattr(function_deserialization, _LOADER)),
        (f"importer.{_IMPORTER}", hasattr(importer, _IMPORTER)),
    )
    missing = [name for name, there in found if not there]
    if missing:
        raise SwitchError(
            f"this TensorFlow has no {' and no '.join(missing)} to switch it off: pass "
            "jit_compile=False to `tf.function` and to `compile`"
        )

    def read(function: Any) -> bool | None:
        value: bool | None = vars(function)[_FIELD]
        if not value or _elsewhere(device_type):
            return value
        _say(device_type)
        return False

    def write(function: Any, value: bool | None) -> None:
        vars(function)[_FIELD] = value

    setattr(kind, _FIELD, property(read, write))
    load, convert = getattr(function_deserialization, _LOADER), getattr(importer, _IMPORTER)

    def load_functions(library: Any, *args: Any, **kwargs: Any) -> Any:
        if not _elsewhere(device_type):
            _forget(_holders(library.function), device_type)
        return load(library, *args, **kwargs)

    def convert_graph(graph: Any) -> Any:
        graph = convert(graph)
        if not _elsewhere(device_type):
            _forget((*graph.node, *_holders(graph.library.function)), device_type)
        return graph

    setattr(function_deserialization, _LOADER, load_functions)
    setattr(importer, _IMPORTER, convert_graph)


def _holders(functions: Iterable[Any]) -> Iterator[Any]:
    """Yields the functions and their nodes: both can say that XLA compiles them."""
    for function in functions:
        yield function
        yield from function.node_def


def _forget(holders: Iterable[Any], device_type: str) -> None:
    """Makes functions and nodes forget that XLA compiles them."""
    for holder in holders:
        if MUST_COMPILE in holder.attr and holder.attr[MUST_COMPILE].b:
            holder.attr[MUST_COMPILE].b = False
            _say(device_type)


_said: set[str] = set()


def _say(device_type: str) -> None:
    if device_type not in _said:
        _said.add(device_type)
        _LOG.debug("functions with jit_compile=True run on %s without XLA", device_type)


def _elsewhere(device_type: str) -> bool:
    """Whether the innermost scope that names a type of device names another one than ours."""
    return next((kind != device_type for kind in _scopes()), False)


def _scopes() -> Iterator[str]:
    """Yields the types of device that the scopes around a call name, the innermost first."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import device_spec, ops

    names = []
    graph = None if context.executing_eagerly() else ops.get_default_graph()
    while graph is not None:
        names += [str(each.display_name) for each in graph._device_function_stack.peek_objs()]
        graph = getattr(graph, "outer_graph", None)
    for name in (*names, context.context().device_name or ""):
        try:
            kind = device_spec.DeviceSpecV2.from_string(name).device_type
        except ValueError:
            # A function that chooses a device per node.
            continue
        if kind:
            yield kind
