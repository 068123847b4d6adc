"""`.h5` files of Keras 2 and 3: their description, lists of names, weights and bytes changed."""

from __future__ import annotations

import io
import json
import os
import random
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from converters.tf.tests.models import MODELS
from tests.fuzz import edits
from tests.fuzz.case import Case, Reference
from tests.fuzz.targets.converter import Converter
from tests.fuzz.targets.keras_files import weights_edited

_KERAS_2 = Path(os.environ.get("KERAS_2", "bindings/client/tests/keras_2/words.h5")).parent
# The attributes that describe a model, in JSON.
_DESCRIBED = ("model_config", "training_config")


class H5(Converter):
    """Converts; what Keras computes is what tf2rust records, and compares itself."""

    input_name = "m.h5"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Saves models of every kind, and reads those of Keras 2."""
        super().__init__(folder, reference)
        self._files = self.kept(lambda: _models(folder))

    @property
    def bases(self) -> int:
        """How many models there are."""
        return len(self._files)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a model."""
        path = folder / self.input_name
        path.write_bytes(_edited(case, self._files[case.base]))
        return path


def _models(folder: Path) -> list[bytes]:
    """Returns whole models as `.h5` files: of every kind, and those of Keras 2."""
    files = [path.read_bytes() for path in sorted(_KERAS_2.glob("*.h5"))]
    path = folder / "made.h5"
    for make in MODELS.values():
        model = make()
        # Layers of the tests' own can't be saved.
        try:
            model.save(path)
        except (TypeError, NotImplementedError):
            continue
        files.append(path.read_bytes())
    return files


def _edited(case: Case, content: bytes) -> bytes:
    """Returns an `.h5` file with changes: of its description, its weights, its bytes."""
    tail = []
    for seed in case.edits:
        choose = random.Random(seed)
        kind = choose.random()
        if kind < 0.6:
            content = described(choose, content)
        elif kind < 0.8:
            content = weights_edited(choose, content)
        else:
            tail.append(choose)
    for choose in tail:
        content = edits.octets(choose, content)
    return content


def described(choose: random.Random, content: bytes) -> bytes:
    """Changes an attribute of a file: its description, or a list of names."""
    buffer = io.BytesIO(content)
    try:
        with h5py.File(buffer, "r+") as file:
            groups: list[Any] = [file]
            file.visititems(
                lambda _, item: groups.append(item) if isinstance(item, h5py.Group) else None
            )
            holder = file if choose.random() < 0.7 else choose.choice(groups)
            if not len(holder.attrs):
                return content
            name = choose.choice(sorted(holder.attrs))
            value = holder.attrs[name]
            if name in _DESCRIBED:
                tree = json.loads(value)
                edits.tree(choose, tree)
                holder.attrs[name] = json.dumps(tree)
            elif isinstance(value, np.ndarray):
                names = [v if isinstance(v, bytes) else str(v).encode() for v in value]
                at = choose.randrange(len(names) + 1)
                kind = choose.random()
                if kind < 0.3 or at == len(names):
                    names.insert(at, choose.choice([*names, b"x"]))
                elif kind < 0.6:
                    del names[at]
                else:
                    names[at] = edits.octets(choose, names[at])
                holder.attrs[name] = names
            else:
                holder.attrs[name] = edits.text(choose, str(value))
    except Exception:  # Another change damaged the file, or HDF5 has no such value.
        return edits.octets(choose, content)
    return buffer.getvalue()
