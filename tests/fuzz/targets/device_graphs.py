"""Random graphs: fused on the device, op by op on the device, and on the CPU."""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e import child

os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(child.library())
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# What oneDNN refuses depends on the processor: float16 convolutions on AVX-512 FP16 check less.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

from tests.conformance import random_graphs
from tests.fuzz.case import Case, Outcome, Status, Target


class Graphs(Target):
    """Compares random graphs; a case is the seed of one."""

    most_edits = 0
    input_name = "seed.txt"

    @property
    def bases(self) -> int:
        """How many graphs there are: any number."""
        return 1 << 40

    def write(self, case: Case, folder: Path) -> Path:
        """Writes the seed."""
        path = folder / self.input_name
        path.write_text(f"{case.base}\n", encoding="ascii")
        return path

    def check(self, path: Path) -> Outcome:
        """Compares a graph."""
        problem = random_graphs.check(int(path.read_text("ascii")))
        return Outcome(Status.FAULT, problem, "differs") if problem else Outcome(Status.TAKEN)
