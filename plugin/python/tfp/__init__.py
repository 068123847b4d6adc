"""The former name of `tfp_plugin`, which most programs give to TensorFlow Probability."""

import warnings

from tfp_plugin import (
    DeviceError,
    __version__,
    device_type,
    enable,
    library,
    version,
)

__all__ = ["DeviceError", "__version__", "device_type", "enable", "library", "version"]

warnings.warn(
    "the module tfp is called tfp_plugin now, and goes with the next release",
    DeprecationWarning,
    stacklevel=2,
)
