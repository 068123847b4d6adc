"""The device of libtfp.so in TensorFlow.

TensorFlow loads the plug-in by itself once the wheel is installed beside it. What is left to do in
a program that uses Keras is one call::

    import tfp

    tfp.enable()

`python -m tfp.check` says what is installed, whether it works, and which nodes of a model would run
on the CPU instead.
"""

from __future__ import annotations

from ._device import (
    DeviceError,
    device_type,
    enable,
    library,
    version,
)

__all__ = ["DeviceError", "device_type", "enable", "library", "version"]
__version__ = version()
