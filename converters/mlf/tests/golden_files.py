"""The generated text that `golden/` records, and the program that writes it there."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from converters.mlf.convert import Request, convert
from converters.mlf.tests.dialects import DIALECTS
from converters.mlf.tests.requests import REAL, TESTDATA, request_of

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "tools/bazel run //converters/mlf/tests:update_golden"
_RECORDED = (".rs", ".toml", ".x")
#: Crates that are recorded with firmware -> its target.
_FIRMWARE = {"io_in_pools": "riscv32imac", "multi": "cortex-m4"}


def golden_names() -> list[str]:
    """Names of the recorded crates: all real and hand-made archives."""
    return sorted([*REAL, *DIALECTS])


def golden_texts(name: str, folder: Path) -> dict[str, str]:
    """Returns path -> text of a crate's Rust, build files and layout checks."""
    if name in DIALECTS:
        request = request_of(DIALECTS[name](), folder)
    else:
        request = Request(mlf=TESTDATA / f"{name}.tar", golden=TESTDATA / "golden.npz")
    files = convert(replace(request, target=_FIRMWARE.get(name, ""))).output.files
    return {
        path: content.decode("utf-8")
        for path, content in files.items()
        if path.endswith(_RECORDED) or path.startswith(("c/unit/", "c/guard/"))
    }


def update() -> None:
    """Writes all recorded files into the source tree."""
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    target = Path(root, "converters/mlf/tests/golden") if root else GOLDEN
    shutil.rmtree(target, ignore_errors=True)
    for name in golden_names():
        with tempfile.TemporaryDirectory() as folder:
            for path, text in golden_texts(name, Path(folder)).items():
                file = target / name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update()
