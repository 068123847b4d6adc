"""Runs the functions that XLA would compile for our device without XLA, which does not know it.

libtfp.so holds this text, see `_start`; `tfp_plugin.enable` calls the same function.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Final

MUST_COMPILE: Final = "_XlaMustCompile"
_FIELD: Final = "_jit_compile"
_LOADER: Final = "load_function_def_library"
_IMPORTER: Final = "_ProcessGraphDefParam"
_LOG: Final = logging.getLogger("tfp_plugin")


class SwitchError(RuntimeError):
    """This TensorFlow has no such switch; the message says which, and what to do."""


def install(device_type: str) -> None:
    """Keeps TensorFlow from compiling for our device; a second call changes nothing.

    This also holds for functions made before the call, and those of SavedModels and graphs loaded
    after it. In the scope of another device functions are compiled as ever.

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
    _rescue(kind, device_type)
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


# What TensorFlow's kernels for the CPU say of what they leave to XLA, and what it says without one.
_LIMITS: Final = (
    "only supported for NHWC",
    "only supports NHWC",
    "only supports NDHWC",
    "only supports the NHWC",
    "grouped convolutions are not supported on CPU",
    "not yet support dilation rates larger than 1",
    "only supports dilated rates of 1",
)
_MISSING: Final = ("No OpKernel was registered", "No registered '")


def _rescue(kind: Any, device_type: str) -> None:
    """Lets XLA compute on the CPU what a function asks it for and nothing else can compute.

    A function that has failed so runs there from then on; it must not have changed anything before.
    Under a tape it fails, because its gradient would be asked for on the device.
    """
    from tensorflow.python.eager import record
    from tensorflow.python.framework import errors, ops

    call = kind.__call__
    rescued: Any = weakref.WeakKeyDictionary()
    # Keras makes a function anew for each call of a layer.
    told: set[tuple[str, str]] = set()

    def on_cpu(function: Any, args: Any, kwargs: Any) -> Any:
        with ops.device("/device:CPU:0"):
            return rescued[function](*args, **kwargs)

    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self in rescued and not _elsewhere(device_type) and not record.could_possibly_record():
            return on_cpu(self, args, kwargs)
        try:
            return call(self, *args, **kwargs)
        except (
            errors.InvalidArgumentError,
            errors.UnimplementedError,
            errors.NotFoundError,
        ) as error:
            if not vars(self)[_FIELD] or _elsewhere(device_type) or record.could_possibly_record():
                raise
            reason = str(error.message)
            if not _is_missing(reason) and not (_is_limit(reason) and _is_pure(self, args, kwargs)):
                raise
        with ops.device("/device:CPU:0"):
            rescued[self] = self._clone(None)
        line = next(line for line in reason.splitlines() if _is_missing(line) or _is_limit(line))
        if (self._name, line) not in told:
            told.add((self._name, line))
            _LOG.warning(
                "function %s runs on the CPU with XLA, because nothing else computes it: %s",
                self._name,
                line,
            )
        return on_cpu(self, args, kwargs)

    kind.__call__ = guarded


def _is_missing(reason: str) -> bool:
    """Whether there is no kernel, which TensorFlow says before it runs anything."""
    return any(text in reason for text in _MISSING)


def _is_limit(reason: str) -> bool:
    return any(text in reason for text in _LIMITS)


def _is_pure(function: Any, args: Any, kwargs: Any) -> bool:
    """Whether a function has changed nothing when one of its ops fails.

    One that reads a variable is none of these: XLA reads no variable of another device.
    """
    from tensorflow.python.framework import op_def_registry

    definition = function.get_concrete_function(*args, **kwargs).graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    own = {f.signature.name for f in definition.library.function}
    found = (op_def_registry.get(node.op) for node in nodes if node.op not in own)
    calls = ("PartitionedCall", "StatefulPartitionedCall", "Placeholder")
    return all(d is not None and (d.name in calls or not d.is_stateful) for d in found)


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
