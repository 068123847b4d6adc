"""The device of libtfp.so in TensorFlow.

TensorFlow loads the plug-in by itself once the wheel is installed beside it, and programs run on
the device unchanged. This package is for those who ask::

    import tfp_plugin

    tfp_plugin.enable()  # the names of the devices, or an error that says why there is none

`python -m tfp_plugin.check` says what is installed, whether it works, and which nodes of a model
would run on the CPU instead.
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
