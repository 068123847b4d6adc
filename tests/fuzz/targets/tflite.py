"""TFLite files: one model for each operator with options, changed table by table, beside TFLite."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from converters.tf.tests.tflite_files import Tensor, interpreted, single
from converters.tf.tests.tflite_ops import CASES
from tests.fuzz import edits
from tests.fuzz.case import Case, Reference
from tests.fuzz.targets.converter import Converter


class Tflite(Converter):
    """Converts, and compares with TFLite's own interpreter if the file was not changed.

    The interpreter does not check what it reads: a changed file may end the process, or read
    memory that is not its own.
    """

    input_name = "m.tflite"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Writes the models."""
        super().__init__(folder, reference)
        self._files = self.kept(_models)

    @property
    def bases(self) -> int:
        """How many models there are."""
        return len(self._files)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a model."""
        content = self._files[case.base]
        for seed in case.edits:
            choose = random.Random(seed)
            content = _edited(choose, content)
        path = folder / self.input_name
        path.write_bytes(content)
        return path

    def expected(self, path: Path, arrays: dict[str, Any]) -> list[Any] | None:
        """Returns what TFLite computes of a file of the suite."""
        content = path.read_bytes()
        if content not in self._files:
            return None
        case = CASES[self._files.index(content)]
        if not case.batch:
            return None
        return interpreted(content, [np.asarray(a) for a in arrays.values()])


def _models() -> list[bytes]:
    return [
        single(c.kind, c.operands, [Tensor((1, 1), d) for d in c.results], c.options) for c in CASES
    ]


def _edited(choose: random.Random, content: bytes) -> bytes:
    """Changes a value of a table, or bytes if it is no whole file any more."""
    if choose.random() < 0.15:
        return edits.octets(choose, content)
    try:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
        _edit(choose, model)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())
    except Exception:  # Values that no file can hold, and files that are none.
        return edits.octets(choose, content)


def _tables(table: Any) -> list[Any]:
    """Returns a table and all below it."""
    found = [table]
    for at in found:
        for value in vars(at).values():
            if hasattr(value, "__dict__"):
                found.append(value)
            elif isinstance(value, list):
                found.extend(v for v in value if hasattr(v, "__dict__"))
    return found


def _edit(choose: random.Random, model: Any) -> None:
    tables = _tables(model)
    table = choose.choice(tables)
    name = choose.choice(sorted(vars(table)))
    old = getattr(table, name)
    kind = choose.random()
    like = [getattr(t, name) for t in tables if type(t) is type(table)]
    if kind < 0.25:
        new = choose.choice(like)
    elif kind < 0.3:
        new = None
    else:
        new = _changed(choose, old)
    setattr(table, name, new)


def _changed(choose: random.Random, old: Any) -> Any:
    if isinstance(old, np.ndarray):
        old = old.tolist()
    if isinstance(old, bytes):
        return edits.text(choose, old.decode("utf-8", "replace")).encode("utf-8", "replace")
    if isinstance(old, list):
        items = list(old)
        if not items:
            return [edits.number(choose, 0)]
        at = choose.randrange(len(items))
        kind = choose.random()
        if kind < 0.2:
            del items[at]
        elif kind < 0.4:
            items.insert(at, items[at])
        elif kind < 0.6:
            items[at] = choose.choice(items)
        elif not hasattr(items[at], "__dict__"):
            items[at] = _changed(choose, items[at])
        return items
    if isinstance(old, bool):
        return not old
    if isinstance(old, int | np.integer):
        return edits.number(choose, int(old))
    if isinstance(old, float | np.floating):
        return choose.choice((*edits.FLOATS, float(old) * 2, -float(old)))
    if isinstance(old, str):
        return edits.text(choose, old)
    return old
