"""Where the installed TensorFlow is, without importing it."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path


def package_dir() -> Path:
    """Returns the folder of package tensorflow.

    Raises:
        FileNotFoundError: There is no such package.
    """
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("package tensorflow is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def include_dir() -> Path:
    """Returns TensorFlow's include folder.

    That of the file `TF_C_API_HEADER`, else `TF_INCLUDE_PATH`, else the package's.
    """
    header = os.environ.get("TF_C_API_HEADER")
    if header:
        return Path(header).absolute().parents[2]
    given = os.environ.get("TF_INCLUDE_PATH")
    return Path(given) if given else package_dir() / "include"
