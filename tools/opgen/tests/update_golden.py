"""Rewrites golden/: what opgen writes for constructs.pbtxt.

tools/bazel run //tools/opgen/tests:update_golden
python -m tools.opgen.tests.update_golden
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from absl import app

from tools.opgen.tests import suite


def main(argv: Sequence[str]) -> None:
    """Writes the files, and removes those that are gone."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    folder = Path(root) / "tools/opgen/tests/golden" if root else suite.GOLDEN
    folder.mkdir(exist_ok=True)
    files = suite.golden_files()
    for old in folder.glob("*.rs"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
