"""How much memory a model takes while it is made, keeps, and gives back afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit.options import Options, RuntimeMode, WeightsMode
from converters.tf.plan.arena import plan_memory
from converters.tf.tests.crates.crates import compile_crate, emitted, must, runtime_flags, write
from converters.tf.tests.crates.graphs import B, Sketch

_LAYERS, _UNITS, _EXAMPLES = 10, 768, 2048

_STATUS = """
fn status(name: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("the process' status");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    let kib: String = line.chars().filter(char::is_ascii_digit).collect();
    kib.parse::<usize>().expect("a number") << 10
}
"""

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

# Prints by how many bytes the process' own memory grew with a model of mapped weights and after a
# call, and a sum of the results' bits.
_MAPPED = """
use std::os::fd::AsRawFd;
use std::sync::Arc;

unsafe extern "C" {
    fn mmap(at: *mut u8, len: usize, allow: i32, kind: i32, file: i32, from: i64) -> *const u8;
}

fn mapped(path: &str) -> &'static [u8] {
    let file = std::fs::File::open(path).expect("the weights");
    let len = file.metadata().expect("a length").len() as usize;
    // SAFETY: nobody writes to the file, and the map stays.
    unsafe {
        let bytes = mmap(std::ptr::null_mut(), len, 1, 1, file.as_raw_fd(), 0);
        assert!(bytes.addr() != usize::MAX);
        std::slice::from_raw_parts(bytes, len)
    }
}

struct Map(&'static [u8]);

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

fn main() {
    let path = "model/model_weights.bin";
    let before = status("RssAnon:");
    let model = match std::env::args().nth(1).as_deref() {
        Some("static") => deep::Deep::from_static(mapped(path)),
        Some("shared") => deep::Deep::from_shared(Arc::new(Map(mapped(path)))),
        _ => deep::Deep::from_file(path),
    };
    let model = model.expect("a model");
    let made = status("RssAnon:").saturating_sub(before);
    let x: Vec<f32> = (0..7 * UNITS).map(|i| (i % 23) as f32 / 23.0).collect();
    let results = model.clone().predict(deep::Inputs { x: &x }).expect("a result");
    let bits = results.dense_9.iter().map(|x| u64::from(x.to_bits()));
    let sum = bits.fold(0, |sum: u64, x| sum.rotate_left(5) ^ x);
    println!("{made} {} {sum}", status("RssAnon:").saturating_sub(before));
    let refused = deep::Deep::from_static(&mapped(path)[8..]);
    assert!(matches!(refused, Err(deep::Error::Weights { .. })));
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
    text = (_STATUS + _MEASURED).replace("EXAMPLES", str(_EXAMPLES)).replace("UNITS", str(_UNITS))
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
    (tmp_path / "mapped.rs").write_text((_STATUS + _MAPPED).replace("UNITS", str(_UNITS)))
    flags = ["-Cdebug-assertions=off", "-Copt-level=1"]
    linking = compile_crate(tmp_path, graph.name, flags)
    must([*linking, "mapped.rs", "-o", "mapped"], tmp_path)
    sums = set()
    for source in ("file", "static", "shared"):
        made, called, found = map(int, must(["./mapped", source], tmp_path).split())
        sums.add(found)
        # Packed matrices are copies, and so is what is read from a file.
        least, most = (0.0, 0.05) if not pack and source != "file" else (0.9, 1.15)
        assert least * size <= made < most * size, source
        # A call adds its scratch memory: a part of the largest matrix.
        assert called < made + 0.4 * size, source
    assert len(sums) == 1
