"""How much memory a model takes that reads its weights from a file."""

from __future__ import annotations

from pathlib import Path

from converters.tf import ir
from converters.tf.emit.options import Options, RuntimeMode, WeightsMode
from converters.tf.tests.crates.crates import compile_crate, emitted, must, runtime_flags, write
from converters.tf.tests.crates.graphs import B, Sketch

_LAYERS, _UNITS = 10, 768

# Prints by how many bytes the process grew at most while it made a model.
_MEASURED = """
fn status(name: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("the process' status");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    let kib: String = line.chars().filter(char::is_ascii_digit).collect();
    kib.parse::<usize>().expect("a number") << 10
}

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
    model.expect("a model");
}
"""


def _deep() -> ir.Graph:
    s = Sketch("deep")
    x = s.input("x", (B, _UNITS))
    for _ in range(_LAYERS):
        x = s.op(ir.Dense(), [x, s.weight(_UNITS, _UNITS), s.weight(_UNITS)], (B, _UNITS))
    return s.graph()


def test_weights_of_a_file_are_in_memory_once(tmp_path: Path) -> None:
    graph = _deep()
    options = Options(graph.name, "graphs.py", runtime=RuntimeMode.CRATE, weights=WeightsMode.FILE)
    files = emitted(graph, options)
    write(files, tmp_path)
    size = len(files["model/model_weights.bin"])
    assert size > _LAYERS * _UNITS**2 * 4
    (tmp_path / "measured.rs").write_text(_MEASURED)
    linking = compile_crate(tmp_path, graph.name, runtime_flags())
    must([*linking, "measured.rs", "-o", "measured"], tmp_path)
    for source in ("file", "bytes"):
        grown = int(must(["./measured", source], tmp_path))
        # All are packed; beside them is at most the largest one as it is in the file.
        assert 0.9 * size < grown < 1.2 * size, source
