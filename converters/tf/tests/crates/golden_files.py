"""Expected text of generated crates; as a program, writes it anew."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from converters.tf.emit.options import Options, Profile
from converters.tf.tests.crates.crates import emitted
from converters.tf.tests.crates.graphs import blocks, mlp, sequences

GOLDENS = ("blocks", "mlp", "mlp_no_std", "sequences")
_GRAPHS = {"blocks": blocks, "sequences": sequences}
_FOLDER = "converters/tf/tests/crates/golden"
_FILES = (
    *(
        "Cargo.toml",
        "README.md",
        "src/blocks.rs",
        "src/blocks/profile.rs",
        "src/lib.rs",
        "src/model.rs",
        "src/model/profile.rs",
        "src/places.rs",
        "src/weights.rs",
    ),
    *("tests/golden.rs", "benches/benchmarks.rs"),
)
_UPDATE = "tools/bazel run //converters/tf/tests/crates:update_golden"


def texts(name: str) -> dict[str, str]:
    """Returns the files of a golden crate that are compared."""
    graph = _GRAPHS.get(name, mlp)()
    profile = Profile.NO_STD if name.endswith("no_std") else Profile.STD
    binary = name == "mlp"
    files = emitted(graph, Options(name, "graphs.py", profile=profile, binary=binary))
    return {path: files[path].decode() for path in _FILES if path in files}


def difference(name: str) -> str:
    """Returns what differs between the golden and what is emitted now, or nothing."""
    folder = Path(__file__).parent / "golden" / name
    lines: list[str] = []
    for path, text in texts(name).items():
        golden = folder / f"{path}.golden"
        old = golden.read_text("utf-8") if golden.exists() else ""
        lines += difflib.unified_diff(
            old.splitlines(), text.splitlines(), f"golden/{name}/{path}", "emitted", lineterm=""
        )
    return "\n".join([*lines, f"update: {_UPDATE}"]) if lines else ""


def main() -> None:
    """Writes all goldens into the checkout."""
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / _FOLDER
    for name in GOLDENS:
        for path, text in texts(name).items():
            golden = root / name / f"{path}.golden"
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
