"""Files of Keras 3: descriptions changed place by place, weights and archives changed, too."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from converters.tf.tests.every_layer import CASES
from converters.tf.tests.models import MODELS
from tests.fuzz import edits
from tests.fuzz.case import Case, Reference
from tests.fuzz.targets.converter import Converter

_CONFIG, _WEIGHTS = "config.json", "model.weights.h5"


class Keras(Converter):
    """Converts; what Keras computes is what tf2rust records, and compares itself."""

    input_name = "m.keras"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Saves a model of every kind, and one for every third layer."""
        super().__init__(folder, reference)
        self._files = self.kept(self._saved)

    def _saved(self) -> list[dict[str, bytes]]:
        files = []
        path = self.folder / "m.keras"
        for model in (*(make() for make in MODELS.values()), *(c.model() for c in CASES[::3])):
            # Layers of the tests' own can't be saved.
            try:
                model.save(path)
            except TypeError:
                continue
            with zipfile.ZipFile(path) as archive:
                files.append({name: archive.read(name) for name in archive.namelist()})
        return files

    @property
    def bases(self) -> int:
        """How many models there are."""
        return len(self._files)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a model."""
        members = dict(self._files[case.base])
        config = json.loads(members[_CONFIG])
        tail: list[random.Random] = []
        for seed in case.edits:
            choose = random.Random(seed)
            kind = choose.random()
            if kind < 0.7:
                edits.tree(choose, config)
            elif kind < 0.8:
                members[_WEIGHTS] = weights_edited(choose, members[_WEIGHTS])
            elif kind < 0.9:
                members[_WEIGHTS] = edits.octets(choose, members[_WEIGHTS])
            else:
                tail.append(choose)
        members[_CONFIG] = json.dumps(config).encode("utf-8", "replace")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name), content)
        content = buffer.getvalue()
        for choose in tail:
            content = edits.octets(choose, content)
        path = folder / self.input_name
        path.write_bytes(content)
        return path


def weights_edited(choose: random.Random, content: bytes) -> bytes:
    """Changes an array of weights: its shape, type or numbers, or it is gone."""
    buffer = io.BytesIO(content)
    try:
        with h5py.File(buffer, "r+") as file:
            names: list[str] = []
            file.visititems(
                lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
            )
            if not names:
                return content
            _changed(choose, file, choose.choice(sorted(names)), names)
    except Exception:  # Another change damaged the file.
        return edits.octets(choose, content)
    return buffer.getvalue()


def _changed(choose: random.Random, file: Any, name: str, names: list[str]) -> None:
    kind, array = choose.randrange(6), np.asarray(file[name])
    del file[name]
    if kind == 0:
        return
    file[name] = (
        lambda: array.reshape(-1),
        lambda: array[..., None],
        lambda: array.astype(choose.choice(("float64", "int8", "float16", "uint64", "complex64"))),
        lambda: np.full(array.shape, choose.choice(edits.FLOATS), np.float32),
        lambda: np.asarray(file[choose.choice([n for n in names if n in file] or ["/"])]),
    )[kind - 1]()
