"""How much of the runtime that a crate carries nothing in it uses, by the compiler's own count."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit.options import Options, Profile
from converters.tf.emit.vendor import ALLOW
from converters.tf.tests.crates.crates import emitted, program, write
from converters.tf.tests.crates.graphs import Sketch, digits, mlp, paired
from converters.tf.tests.crates.more_graphs import quantized


def _warnings(folder: Path) -> Counter[str]:
    """Returns how often each lint of unused code warns; an item counts for itself."""
    command = [program("RUSTC", "rustc"), "--edition=2024", "--crate-type=rlib", "--emit=metadata"]
    command += ["--error-format=json", "--crate-name=model", "src/lib.rs", "-o", "model.rmeta"]
    env = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    found: Counter[str] = Counter()
    for message in map(json.loads, done.stderr.splitlines()):
        if message["code"]:
            found[message["code"]["code"]] += sum(s["is_primary"] for s in message["spans"])
    return found


def _two() -> ir.Graph:
    """Returns a classifier of small images: two dense layers."""
    s = Sketch("two")
    x = s.input("x", (ir.Batch(), 784))
    hidden = [x, s.weight(784, 128), s.weight(128)]
    h = s.op(ir.Dense(ir.RELU), hidden, (ir.Batch(), 128))
    y = s.op(ir.Dense(), [h, s.weight(128, 10), s.weight(10)], (ir.Batch(), 10))
    s.op(ir.Softmax(), [y], (ir.Batch(), 10))
    s.outputs[:] = [s.outputs[-1]]
    return s.graph()


def _code_lines(files: Mapping[str, bytes]) -> int:
    """Returns the lines of all Rust files that are neither empty nor a comment."""
    texts = (text.decode() for path, text in files.items() if path.endswith(".rs"))
    lines = (line.strip() for text in texts for line in text.splitlines())
    return sum(bool(line) and not line.startswith("//") for line in lines)


# What is left: methods whose name others have, and what other processors use.
@pytest.mark.parametrize(
    ("make", "profile", "dead", "lines"),
    [
        (_two, Profile.STD, 10, 6_000),
        (_two, Profile.NO_STD, 8, 5_850),
        (mlp, Profile.STD, 10, 6_050),
        (digits, Profile.STD, 25, 8_650),
        (paired, Profile.STD, 65, 7_150),
        (quantized, Profile.STD, 15, 6_500),
        (quantized, Profile.NO_STD, 8, 6_050),
    ],
)
def test_little_of_a_crate_is_dead(
    make: Callable[[], ir.Graph], profile: Profile, dead: int, lines: int, tmp_path: Path
) -> None:
    graph = make()
    files = emitted(graph, Options(graph.name, "graphs.py", profile=profile))
    assert _code_lines(files) < lines
    top = files["src/runtime/mod.rs"].decode()
    assert ALLOW in top
    files["src/runtime/mod.rs"] = top.replace(ALLOW, "").encode()
    write(files, tmp_path)
    found = _warnings(tmp_path)
    assert 0 < found["dead_code"] <= dead
    assert found["unused_imports"] <= 3
    assert found["unused_macros"] == 0
