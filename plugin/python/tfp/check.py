"""The former name of `tfp_plugin.check`."""

import sys

from tfp_plugin.check import fallbacks, installation, main

__all__ = ["fallbacks", "installation", "main"]

if __name__ == "__main__":
    sys.exit(main())
