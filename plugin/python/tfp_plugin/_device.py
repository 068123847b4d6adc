"""Where the plug-in is, and what TensorFlow made of it."""

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
    from . import _start

    return _start.loaded or os.environ.get("TFP_DEVICE_TYPE") or "TFP"


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
        return f"{LIBRARY_VARIABLE} names {path}, which is not a file"
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
    """Returns the devices, and makes sure that programs made for GPUs run on them unchanged.

    Keras compiles models with XLA unless told otherwise (`jit_compile="auto"`), and grouped
    convolutions always; XLA knows no plug-in device. The plug-in tells TensorFlow so when it is
    loaded, and every such function runs on the device without XLA; in the scope of another device
    it is compiled as ever. Strategies of `tf.distribute` that are given no devices take ours, and
    `prefetch_to_device` brings batches to them. So no program needs this call, unless `TFP_AUTO` is
    0; a second one changes nothing.

    Returns:
        The names of the devices, such as `TFP:0`; none where `TFP_DISABLE` is set, and then
        TensorFlow is left alone.

    Raises:
        DeviceError: If there is no device, or if the TensorFlow in use has no such switch.
    """
    import tensorflow as tf

    from . import _batches, _strategies, _xla

    if os.environ.get("TFP_DISABLE", "0") not in ("", "0"):
        return []
    found = devices()
    if not found:
        reason = served(str(tf.__version__)) or absence()
        raise DeviceError(f"TensorFlow {tf.__version__} has no {device_type()} device: {reason}")
    try:
        for part in (_xla, _strategies, _batches):
            part.install(device_type())
    except _xla.SwitchError as error:
        raise DeviceError(f"TensorFlow {tf.__version__}: {error}") from error
    return found
