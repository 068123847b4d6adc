"""Files of other programs that the client reads: models of Keras, weights, and records."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import h5py
import numpy as np
import tensorflow as tf

from tests.fuzz import edits, protos
from tests.fuzz.case import Case, Outcome, Reference, Target
from tests.fuzz.tables import masked_crc
from tests.fuzz.targets.client import Program
from tests.fuzz.targets.h5_files import H5, described
from tests.fuzz.targets.keras_files import Keras, weights_edited

_ARRAYS: dict[str, Any] = {
    "dense/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "dense/bias": np.zeros(3, np.float64),
    "flags": np.array([True, False]),
    "none": np.zeros((0, 4), np.int64),
    "one": np.float32(7),
}


class ClientKeras(Keras):
    """Makes models of `.keras` files."""

    contained = False

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Saves the models."""
        super().__init__(folder, reference)
        self._program = Program(folder)

    def check(self, path: Path) -> Outcome:
        """Makes a model."""
        return self._program.read("keras", path)


class ClientH5(H5):
    """Makes models of `.h5` files."""

    contained = False

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Saves the models."""
        super().__init__(folder, reference)
        self._program = Program(folder)

    def check(self, path: Path) -> Outcome:
        """Makes a model."""
        return self._program.read("keras", path)


class Weights(Target):
    """Reads safetensors, also several with an index, `.npz` and HDF5; a case is a folder."""

    input_name = "w"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Writes the files."""
        super().__init__(folder, reference)
        self._program = Program(folder)
        self._files: Sequence[Callable[[Sequence[random.Random]], dict[str, bytes]]] = (
            _safetensors,
            _indexed,
            _stored,
            _packed,
            _hdf5,
        )

    @property
    def bases(self) -> int:
        """How many formats there are."""
        return len(self._files)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a file, or several with an index."""
        path = folder / self.input_name
        path.mkdir()
        choices = [random.Random(seed) for seed in case.edits]
        tail = [c for c in choices if c.random() < 0.2]
        files = self._files[case.base]([c for c in choices if c not in tail])
        for choose in tail:
            name = choose.choice(sorted(files))
            files[name] = edits.octets(choose, files[name])
        for name, content in files.items():
            (path / name).write_bytes(content)
        return path

    def check(self, path: Path) -> Outcome:
        """Reads every tensor."""
        names = sorted(path.iterdir(), key=lambda file: not file.name.endswith(".index.json"))
        return self._program.read("weights", names[0])


class Records(Target):
    """Reads records of examples, whose checksums are right if no byte of them was changed."""

    input_name = "r.tfrecord"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Makes the examples."""
        super().__init__(folder, reference)
        self._program = Program(folder)
        self._examples = [_example(seed) for seed in range(8)]

    @property
    def bases(self) -> int:
        """How many examples may come first."""
        return len(self._examples)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes three records."""
        rows = [
            self._examples[(case.base + i) % len(self._examples)].SerializeToString()
            for i in range(3)
        ]
        tail = []
        for seed in case.edits:
            choose = random.Random(seed)
            at, kind = choose.randrange(3), choose.random()
            if kind < 0.5:
                example = tf.train.Example()
                example.CopyFrom(self._examples[(case.base + at) % len(self._examples)])
                protos.edit(choose, example)
                rows[at] = example.SerializeToString()
            elif kind < 0.8:
                rows[at] = edits.octets(choose, rows[at])
            else:
                tail.append(choose)
        content = b"".join(map(_record, rows))
        for choose in tail:
            content = edits.octets(choose, content)
        path = folder / self.input_name
        path.write_bytes(content)
        return path

    def check(self, path: Path) -> Outcome:
        """Reads every record."""
        return self._program.read("records", path)


def _safetensors(choices: Sequence[random.Random]) -> dict[str, bytes]:
    return {"w.safetensors": _tensors(choices, _ARRAYS)}


def _indexed(choices: Sequence[random.Random]) -> dict[str, bytes]:
    names = sorted(_ARRAYS)
    parts = {"a.safetensors": names[:2], "b.safetensors": names[2:]}
    places = {name: part for part, inside in parts.items() for name in inside}
    index: dict[str, Any] = {"metadata": {"total_size": 52}, "weight_map": places}
    files = {}
    for place, (part, inside) in enumerate(parts.items()):
        own = [c for i, c in enumerate(choices) if i % 3 == place]
        files[part] = _tensors(own, {name: _ARRAYS[name] for name in inside})
    for choose in choices[2::3]:
        edits.tree(choose, index)
    files["w.index.json"] = json.dumps(index).encode("utf-8", "replace")
    return files


def _tensors(choices: Sequence[random.Random], arrays: dict[str, Any]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    kinds = {"float32": "F32", "float64": "F64", "bool": "BOOL", "int64": "I64"}
    for name, array in arrays.items():
        content = array.tobytes()
        ends = [len(data), len(data) + len(content)]
        shape = list(np.shape(array))
        header[name] = {"dtype": kinds[array.dtype.name], "shape": shape, "data_offsets": ends}
        data += content
    for choose in choices:
        edits.tree(choose, header)
    text = json.dumps(header).encode("utf-8", "replace")
    return struct.pack("<Q", len(text)) + text + data


def _stored(choices: Sequence[random.Random]) -> dict[str, bytes]:
    return {"w.npz": _archive(choices, zipfile.ZIP_STORED)}


def _packed(choices: Sequence[random.Random]) -> dict[str, bytes]:
    return {"w.npz": _archive(choices, zipfile.ZIP_DEFLATED)}


def _archive(choices: Sequence[random.Random], method: int) -> bytes:
    members = {}
    for name, array in _ARRAYS.items():
        buffer = io.BytesIO()
        ordered = np.asfortranarray(array) if name == "dense/kernel" else array
        np.save(buffer, ordered)
        members[f"{name}.npy"] = buffer.getvalue()
    for choose in choices:
        name = choose.choice(sorted(members))
        start, end = 10, members[name].find(b"\n", 10)
        # Another change may have damaged the header.
        if end > 0 and choose.random() < 0.5:
            header = members[name][start:end].decode("latin-1")
            words = header.split(" ")
            at = choose.randrange(len(words))
            words[at] = edits.text(choose, words[at])
            changed = " ".join(words).encode("utf-8", "replace")[: end - start].ljust(end - start)
            members[name] = members[name][:start] + changed + members[name][end:]
        else:
            members[name] = edits.octets(choose, members[name])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def _hdf5(choices: Sequence[random.Random]) -> dict[str, bytes]:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, array in _ARRAYS.items():
            file[name] = array
        file.attrs["layer_names"] = ["dense", "flags"]
        file.attrs["backend"] = "tensorflow"
    content = buffer.getvalue()
    for choose in choices:
        change = choose.choice((weights_edited, described, edits.octets))
        content = change(choose, content)
    return {"w.h5": content}


def _record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    sums = [struct.pack("<I", masked_crc(part)) for part in (length, content)]
    return length + sums[0] + content + sums[1]


def _example(seed: int) -> Any:
    choose = random.Random(seed)
    feature: dict[str, Any] = {}
    for name in ("a", "b", "long name", "\u00e9")[: choose.randrange(5)]:
        values = range(choose.randrange(4))
        feature[name] = choose.choice(
            (
                tf.train.Feature(int64_list=tf.train.Int64List(value=[-v for v in values])),
                tf.train.Feature(float_list=tf.train.FloatList(value=[v / 3 for v in values])),
                tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x" * v for v in values])),
                tf.train.Feature(),
            )
        )
    return tf.train.Example(features=tf.train.Features(feature=feature))
