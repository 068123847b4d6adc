"""Checkpoints and SavedModels that the client reads: a Rust program, told of a path a line."""

from __future__ import annotations

import os
import random
import select
import subprocess
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import tensor_bundle_pb2

from tests.fuzz import edits, protos, tables
from tests.fuzz.case import Case, Outcome, Reference, Status, Target
from tests.fuzz.clock import Clock
from tests.fuzz.targets.graphs import SavedModel

# Seconds of a processor that the program has for a path, less than those of a case, and how many
# times as long it may last.
_SECONDS = 50.0
_PATIENCE = 10.0
# Seconds between two looks.
_LOOK = 0.25


class Program:
    """The Rust program, which is started again when it ended."""

    def __init__(self, folder: Path) -> None:
        """Starts nothing yet."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "program.log"

    def read(self, kind: str, path: Path) -> Outcome:
        """Returns what came of a path."""
        if self._process is None:
            program = os.environ.get("READER", "tests/fuzz/reader")
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
                )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{kind} {path}\n".encode())
        process.stdin.flush()
        clock, late = Clock(process.pid, _SECONDS, _PATIENCE), ""
        while not late and not select.select([process.stdout], [], [], _LOOK)[0]:
            late = clock.over()
        line = "" if late else process.stdout.readline().decode("utf-8", "replace")
        if line.startswith("taken "):
            return Outcome(Status.TAKEN)
        if line.startswith("refused "):
            return Outcome(Status.REFUSED, line)
        process.kill()
        code = process.wait()
        self._process = None
        return self._ended(late or f"status {code}")

    def _ended(self, how: str) -> Outcome:
        """Returns the outcome of an end; an abort inside of TensorFlow is not one of ours."""
        text = self._log.read_text("utf-8", "replace")
        lines = [line for line in text.splitlines() if line.strip()] or [""]
        ours = [line for line in lines if "panicked at" in line or "memory allocation" in line]
        if ours or how.startswith("not done"):
            return Outcome(Status.FAULT, f"{how}: {(ours or lines)[-1][:400]}", (ours or [how])[0])
        checks = [line for line in lines if "Check failed" in line] or lines
        return Outcome(Status.BOUNDED, f"{how}: {checks[-1][:400]}")


class Checkpoint(Target):
    """Reads checkpoints, whose index is changed entry by entry with right checksums."""

    input_name = "ck"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Writes checkpoints of every type, sliced ones, and one of objects."""
        super().__init__(folder, reference)
        self._program = Program(folder)
        self._files = self.kept(self._written)

    def _written(self) -> list[dict[str, bytes]]:
        folder = self.folder
        random_numbers = np.random.default_rng(3)
        arrays: dict[str, Any] = {
            f"a_{t.name}": tf.cast(random_numbers.integers(0, 2, (3, 5)), t)
            for t in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int32, tf.int64,
                      tf.uint8, tf.uint16, tf.bool, tf.complex64)
        }  # fmt: skip
        arrays |= {"text": tf.constant(["a", "", "x" * 70]), "none": tf.zeros([0, 4])}
        arrays |= {"one": tf.constant(1.0), "deep/er/name": tf.zeros([2, 1, 3])}
        prefix = str(folder / "ck")
        tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=list(arrays),
            shape_and_slices=[""] * len(arrays),
            tensors=list(arrays.values()),
        )
        halves = [tf.zeros([2, 5]), tf.ones([2, 5])]
        tf.raw_ops.SaveV2(
            prefix=str(folder / "parts"),
            tensor_names=["w", "w"],
            shape_and_slices=["4 5 0,2:0,5", "4 5 2,2:0,5"],
            tensors=halves,
        )
        saved = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]), n=tf.Variable(3))
        Path(saved.write(str(folder / "objects")))
        return [
            {
                f.name.replace(name, "ck", 1): f.read_bytes()
                for f in sorted(folder.glob(f"{name}.*"))
            }
            for name in ("ck", "parts", "objects")
        ]

    @property
    def bases(self) -> int:
        """How many checkpoints there are."""
        return len(self._files)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a checkpoint."""
        files = dict(self._files[case.base])
        entries = list(tables.read(files["ck.index"]).items())
        tail = []
        for seed in case.edits:
            choose = random.Random(seed)
            kind = choose.random()
            if kind < 0.7 and entries:
                _edit(choose, entries)
            elif kind < 0.8:
                name = choose.choice([n for n in sorted(files) if n != "ck.index"])
                files[name] = edits.octets(choose, files[name])
            else:
                tail.append(choose)
        content = tables.written(entries)
        for choose in tail:
            content = edits.octets(choose, content)
        for name, data in {**files, "ck.index": content}.items():
            (folder / name).write_bytes(data)
        return folder / self.input_name

    def check(self, path: Path) -> Outcome:
        """Reads a checkpoint."""
        return self._program.read("checkpoint", path)


def _edit(choose: random.Random, entries: list[tuple[bytes, bytes]]) -> None:
    """Changes an entry: a field of its message, its key or bytes, or it is gone."""
    at = choose.randrange(len(entries))
    key, value = entries[at]
    kind = choose.random()
    if kind < 0.6:
        message = (
            tensor_bundle_pb2.BundleEntryProto() if key else tensor_bundle_pb2.BundleHeaderProto()
        )
        try:
            message.ParseFromString(value)
        except Exception:  # Another change damaged it.
            entries[at] = (key, edits.octets(choose, value))
            return
        protos.edit(choose, message)
        entries[at] = (key, message.SerializeToString())
    elif kind < 0.7:
        entries[at] = (key, edits.octets(choose, value))
    elif kind < 0.8:
        entries[at] = (edits.octets(choose, key), value)
    elif kind < 0.9:
        del entries[at]
    else:
        entries[at] = (key, choose.choice(entries)[1])


class ClientSavedModel(SavedModel):
    """Loads SavedModels with the client."""

    contained = False

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Exports the models."""
        super().__init__(folder, reference)
        self._program = Program(folder)

    def check(self, path: Path) -> Outcome:
        """Loads a model."""
        return self._program.read("model", path)
