"""Where the plug-in is, what TensorFlow made of it, and what Keras has to be told."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
from typing import Final

DISTRIBUTION: Final = "tfp-plugin"
FILE: Final = "libtfp.so"
FOLDER: Final = "tensorflow-plugins"
LIBRARY_VARIABLE: Final = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"
OLDEST: Final = (2, 16)
NEWEST: Final = (2, 21)


class DeviceError(RuntimeError):
    """The device can't be used; the message says why and what to do."""


def version() -> str:
    """Returns the version of the installed wheel, or `source` outside of one."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "source"


def library() -> pathlib.Path | None:
    """Returns the plug-in that TensorFlow loads.

    Returns:
        The file that `TF_PLUGGABLE_DEVICE_LIBRARY_PATH` names; else the one of the wheel; None if
        there is none.
    """
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        path = pathlib.Path(named)
        return path / FILE if path.is_dir() else path
    installed = pathlib.Path(__file__).parents[1] / FOLDER / FILE
    return installed if installed.is_file() else None


def device_type() -> str:
    """Returns the type of the device as `tf.device` takes it."""
    return os.environ.get("TFP_DEVICE_TYPE") or "TFP"


def served(tensorflow: str) -> str:
    """Judges a version of TensorFlow.

    Args:
        tensorflow: Its version, such as `2.21.0`.

    Returns:
        Nothing if the plug-in is tested with it; else one sentence.
    """
    found = tuple(int(part) for part in tensorflow.split(".")[:2] if part.isdigit())
    first, last = (".".join(map(str, end)) for end in (OLDEST, NEWEST))
    if len(found) == 2 and OLDEST <= found <= NEWEST:
        return ""
    if found < OLDEST:
        return (
            f"TensorFlow {tensorflow} is too old for libtfp.so, which serves {first} to {last}: "
            "install one of these"
        )
    return f"libtfp.so is tested with TensorFlow {first} to {last}, not with {tensorflow}"


def absence() -> str:
    """Says why TensorFlow lists no device of ours."""
    if os.environ.get("TFP_DISABLE", "0") not in ("", "0"):
        return "TFP_DISABLE is set: unset it"
    if os.environ.get("TFP_NUM_DEVICES", "").strip() == "0":
        return "TFP_NUM_DEVICES is 0: unset it"
    path = library()
    if path is None:
        return (
            f"there is no {FOLDER}/{FILE} beside this module: install the wheel {DISTRIBUTION}, or "
            f"name the file in {LIBRARY_VARIABLE}"
        )
    if not path.is_file():
        return f"{LIBRARY_VARIABLE} names {path}, which is no file"
    return (
        f"{path} offered none; a line that begins with `tfp:` in the error output of the program "
        "says why"
    )


def devices() -> list[str]:
    """Returns the names of our devices as TensorFlow lists them, such as `TFP:0`.

    Where TensorFlow has not loaded the installed plug-in, because it is in a folder in which
    TensorFlow does not look, this loads it. One that was loaded and offered nothing has said why.
    """
    import tensorflow as tf

    if not tf.config.list_physical_devices(device_type()):
        path = library()
        if path is not None and path.is_file() and not _is_loaded(path):
            from tensorflow.python.framework import load_library

            load_library.load_pluggable_device_library(str(path))
    found = tf.config.list_physical_devices(device_type())
    return [device.name.rpartition("physical_device:")[2] for device in found]


def _is_loaded(path: pathlib.Path) -> bool:
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return any(line.endswith(f" {path.resolve()}") for line in maps.splitlines())


def enable() -> list[str]:
    """Makes Keras models run on the device without further arguments.

    Keras compiles models with XLA unless told otherwise (`jit_compile="auto"`), and grouped
    convolutions always; XLA knows no plug-in device. After this call `auto` means no compilation,
    for every model of the process, and `jit_compile=True` is a warning of Keras in place of an
    error. A `tf.function(jit_compile=True)`, older or newer than the call, is compiled in the scope
    of another device alone. Call it before `compile`, `fit` and `predict`; a second call changes
    nothing.

    Returns:
        The names of the devices, such as `TFP:0`; none where `TFP_DISABLE` is set, and then Keras
        is left alone.

    Raises:
        DeviceError: If there is no device, or if the TensorFlow or the Keras in use has no such
            switch.
    """
    import tensorflow as tf

    if os.environ.get("TFP_DISABLE", "0") not in ("", "0"):
        return []
    found = devices()
    if not found:
        reason = served(str(tf.__version__)) or absence()
        raise DeviceError(f"TensorFlow {tf.__version__} has no {device_type()} device: {reason}")
    _compile_no_function()
    _compile_no_model()
    return found


def _compile_no_function() -> None:
    """Makes `jit_compile` of functions that may run on our device False, of the old ones too."""
    import tensorflow as tf
    from tensorflow.python.eager import context
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    name = "_jit_compile"
    kind = polymorphic_function.Function
    if isinstance(vars(kind).get(name), property):
        return
    if name not in vars(tf.function(lambda: None, jit_compile=False)):
        raise DeviceError(
            f"TensorFlow {tf.__version__} has no Function.{name} to switch off: pass "
            "jit_compile=False to `tf.function` and to `compile`"
        )

    def elsewhere() -> bool:
        """Whether the scope names a device that is not ours."""
        scope = context.context().device_name
        return bool(scope) and f":{device_type()}:" not in scope

    def read(function: object) -> bool | None:
        value: bool | None = vars(function)[name]
        return value if not value or elsewhere() else False

    def write(function: object, value: bool | None) -> None:
        vars(function)[name] = value

    setattr(kind, name, property(read, write))


def _compile_no_model() -> None:
    try:
        import keras
        from keras.src.trainers import trainer
    except ImportError:
        return
    if not hasattr(trainer, "model_supports_jit"):
        raise DeviceError(
            f"Keras {keras.__version__} has no trainer.model_supports_jit to switch off: pass "
            "jit_compile=False to `compile`"
        )

    def model_supports_jit(model: object) -> bool:
        """XLA compiles for no plug-in device."""
        del model
        return False

    trainer.model_supports_jit = model_supports_jit
