"""What happens in a Python program whose TensorFlow has loaded libtfp.so.

libtfp.so holds the text of this module and of those in `PARTS`, and executes them under their
names. It serves without this package, so none of them imports anything of it.
"""

from __future__ import annotations

import os
import sys
from typing import Final

SWITCH: Final = "TFP_AUTO"
PARTS: Final = {
    "_xla": "XLA is still asked for",
    "_strategies": "strategies take our devices by name only",
    "_batches": "batches stay on the CPU",
}
"""The modules with a function `install`, and what holds if one of them fails."""

loaded: str | None = None
"""The type of device that libtfp.so has offered to this process' TensorFlow, if any."""


def automatic(device_type: str) -> None:
    """Calls the parts, unless `TFP_AUTO` is 0; says in one line if one of them fails.

    Called by libtfp.so while TensorFlow loads it.

    Args:
        device_type: Type of our device.
    """
    global loaded
    loaded = device_type
    if os.environ.get(SWITCH, "").strip() == "0" or "tensorflow" not in sys.modules:
        return
    for part, otherwise in PARTS.items():
        try:
            sys.modules[f"tfp_plugin.{part}"].install(device_type)
        except Exception as error:
            print(f"tfp: {otherwise}: {error}", file=sys.stderr, flush=True)
