"""How much memory a model takes while it is made, keeps, and gives back afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit.options import Options, RuntimeMode, WeightsMode
from converters.tf.plan.arena import plan_memory
from converters.tf.tests.crates.crates import compile_crate, emitted, must, runtime_flags, write
from converters.tf.tests.crates.graphs import B, Sketch
from converters.tf.tests.crates.mapped_program import SOURCES, STATUS, mapped_program

_LAYERS, _UNITS, _EXAMPLES = 10, 768, 2048

# Prints by how many bytes the process grew at most while it made a model, and which it gave back.
_MEASURED = """
fn main() {
    let path = "model/model_weights.bin";
    let given = match std::env::args().nth(1).as_deref() {
        Some("bytes") => Some(std::fs::read(path).expect("the weights")),
        _ => None,
    };
    let before = status("VmRSS:");
    let model = match &given {
        Some(bytes) => deep::Deep::from_bytes(bytes),
        None => deep::Deep::from_file(path),
    };
    println!("{}", status("VmHWM:") - before);
    let model = model.expect("a model");
    if std::env::args().nth(1).as_deref() == Some("shrink") {
        let x = vec![1.0; EXAMPLES * UNITS];
        drop(model.predict(deep::Inputs { x: &x }).expect("a result"));
        let before = status("VmRSS:");
        model.shrink();
        println!("{}", before - status("VmRSS:"));
    }
}
"""


def _deep() -> ir.Graph:
    s = Sketch("deep")
    x = s.input("x", (B, _UNITS))
    for _ in range(_LAYERS):
        x = s.op(ir.Dense(), [x, s.weight(_UNITS, _UNITS), s.weight(_UNITS)], (B, _UNITS))
    s.outputs[:] = s.outputs[-1:]
    return s.graph()


def test_what_a_model_takes_and_gives_back(tmp_path: Path) -> None:
    graph = _deep()
    options = Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE, weights=WeightsMode.FILE)
    files = emitted(graph, options)
    write(files, tmp_path)
    size = len(files["model/model_weights.bin"])
    assert size > _LAYERS * _UNITS**2 * 4
    text = (STATUS + _MEASURED).replace("EXAMPLES", str(_EXAMPLES)).replace("UNITS", str(_UNITS))
    (tmp_path / "measured.rs").write_text(text)
    linking = compile_crate(tmp_path, graph.name, runtime_flags())
    must([*linking, "measured.rs", "-o", "measured"], tmp_path)
    for source in ("file", "bytes"):
        grown = int(must(["./measured", source], tmp_path))
        # All are packed; beside them is at most the largest one as it is in the file.
        assert 0.9 * size < grown < 1.2 * size, source
    _, given_back = map(int, must(["./measured", "shrink"], tmp_path).split())
    arena = plan_memory(graph).arena_bytes * _EXAMPLES
    assert arena > 1 << 24
    assert given_back > 0.9 * arena


@pytest.mark.parametrize("pack", [True, False])
def test_weights_of_a_mapped_file_stay_there(pack: bool, tmp_path: Path) -> None:
    graph = _deep()
    options = Options(graph.name, "graphs.py", weights=WeightsMode.FILE, pack=pack)
    files = emitted(graph, options)
    write(files, tmp_path)
    size = len(files["model/model_weights.bin"])
    (tmp_path / "mapped.rs").write_text(mapped_program("deep", "Deep", "dense_9", _UNITS, 7))
    flags = ["-Cdebug-assertions=off", "-Copt-level=1"]
    linking = compile_crate(tmp_path, graph.name, flags)
    must([*linking, "mapped.rs", "-o", "mapped"], tmp_path)
    sums = set()
    for source in SOURCES:
        made, called, found = map(int, must(["./mapped", source], tmp_path).split())
        sums.add(found)
        # Packed matrices are copies, and so is what is read from a file.
        least, most = (0.0, 0.05) if not pack and source != "file" else (0.9, 1.15)
        assert least * size <= made < most * size, source
        # A call adds its scratch memory: a part of the largest matrix.
        assert called < made + 0.4 * size, source
    assert len(sums) == 1
