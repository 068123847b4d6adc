"""Models that Keras 2 wrote: files and SavedModels convert to what Keras 2 predicted."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from converters.tf.convert import convert
from converters.tf.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.tests.checks import TOLERANCE, check, difference

# Written by `keras_2/write.py`, which says how.
ARCHIVE = Path(__file__).parent / "keras_2/models.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    NAMES = sorted({name.partition("/")[0] for name in _archive.namelist()})
MODELS = [name for name in NAMES if not name.endswith(".npz")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive."""
    path = tmp_path_factory.mktemp("keras_2")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_model_of_keras_2(folder: Path, name: str) -> None:
    loaded = load(folder / name, LoadOptions())
    check(loaded, (1, 3))
    graph = convert(loaded.trace)
    with np.load(folder / f"{name.partition('.')[0]}.npz") as recorded:
        arrays = {port.name: recorded[port.name] for port in graph.inputs}
        found = list(interpret(graph, arrays).values())
        expected = [recorded[f"output_{i}"] for i in range(len(recorded.files) - len(arrays))]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert difference(a, b) <= TOLERANCE
