"""Writes `.npz` files whose bytes depend on nothing but their arrays."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np

from converters.tf import ir

# The first moment that a zip file can name.
_TIME = (1980, 1, 1, 0, 0, 0)


def npz_bytes(arrays: Mapping[str, ir.Array]) -> bytes:
    """Returns an uncompressed `.npz` file.

    Args:
        arrays: Arrays by name, written in this order.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", _TIME)
            info.external_attr = 0o644 << 16
            # About: it decides whether the file has the fields for sizes above 4 GiB.
            info.file_size = array.nbytes
            with archive.open(info, "w") as content:
                data = np.ascontiguousarray(array)
                np.lib.format.write_array(content, data, allow_pickle=False)
    return out.getvalue()
