"""A generated crate as a shared library that times itself."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.emit.crate import Features, emit_crate
from converters.tf.emit.options import Options, RuntimeMode, WeightsMode
from tests.bench.models import files

_ABI = """
/// Makes the model, for batches of one size; null if it can't be made.
#[unsafe(no_mangle)]
pub extern "C" fn bench_new(threads: usize, batch: usize) -> *mut Bench {
    let weights = concat!(env!("CARGO_MANIFEST_DIR"), "/model/model_weights.bin");
    let Ok(model) = @TYPE::from_file(weights) else {
        return core::ptr::null_mut();
    };
    let model = model.with_threads(threads);
    let workspace = model.workspace(batch);
    Box::into_raw(Box::new(Bench { model, workspace, outputs: Outputs::zeroed(batch) }))
}

/// A model with its memory.
pub struct Bench {
    model: @TYPE,
    workspace: Workspace,
    outputs: Outputs,
}

/// Seconds of one of `calls` calls; negative if one fails.
///
/// # Safety
/// The model comes from `bench_new`, the input has a batch's length, the output room for `len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_run(
    bench: *mut Bench,
    input: *const @IN,
    elements: usize,
    output: *mut f32,
    len: usize,
    calls: u32,
) -> f64 {
    // SAFETY: see above.
    let (bench, input) = unsafe { (&mut *bench, core::slice::from_raw_parts(input, elements)) };
    // SAFETY: see above.
    let output = unsafe { core::slice::from_raw_parts_mut(output, len) };
    let start = std::time::Instant::now();
    for _ in 0..calls {
        let inputs = std::hint::black_box(Inputs { @FIELD: input });
        if bench.model.predict_into(inputs, &mut bench.workspace, bench.outputs.as_mut()).is_err() {
            return -1.0;
        }
    }
    let seconds = start.elapsed().as_secs_f64() / f64::from(calls);
    output.copy_from_slice(&bench.outputs.@OUT);
    seconds
}
"""


def load(folder: Path, threads: int) -> tuple[Callable[[int], float], Callable[[], Any]]:
    """Loads a compiled model with one input and one output for the batch of a folder.

    Returns:
        A function that returns the seconds of one of so many calls, and one that returns what the
        last call computed.
    """
    library = ctypes.CDLL(str(folder.parent / files.LIBRARY))
    library.bench_new.restype = ctypes.c_void_p
    library.bench_run.restype = ctypes.c_double
    x = np.load(folder / files.INPUT)
    address = library.bench_new(ctypes.c_size_t(threads), ctypes.c_size_t(x.shape[0]))
    if not address:
        raise RuntimeError("the generated model can't be made")
    model = ctypes.c_void_p(address)
    output = np.zeros(np.load(folder / files.EXPECTED).shape, np.float32)

    def run(calls: int) -> float:
        seconds = library.bench_run(
            model,
            ctypes.c_void_p(x.ctypes.data),
            ctypes.c_size_t(x.size),
            ctypes.c_void_p(output.ctypes.data),
            ctypes.c_size_t(output.size),
            ctypes.c_uint32(calls),
        )
        if seconds < 0:
            raise RuntimeError("the generated model refused its input")
        return float(seconds)

    return run, lambda: output


def _open_abi(sizes: Mapping[str, int], shape: Sequence[int]) -> str:
    """The functions of a crate with open sizes, for calls of these."""
    given = ", ".join(["batch", *(f"{name}: {size}" for name, size in sizes.items())])
    dims = ", ".join(["elements / EACH", *map(str, shape[1:])])
    each = f"const EACH: usize = {math.prod(shape[1:])};\n"
    changed = (
        ("model.workspace(batch);", f"model.workspace(&Sizes {{ {given} }});"),
        (
            "    Box::into_raw",
            "    let Ok(workspace) = workspace else {\n        "
            "return core::ptr::null_mut();\n    };\n    Box::into_raw",
        ),
        ("Outputs::zeroed(batch)", f"Outputs::zeroed(&Sizes {{ {given} }}).unwrap()"),
        ("Inputs { @FIELD: input }", f"Inputs {{ @FIELD: View::new(input, [{dims}]) }}"),
        ("&bench.outputs.@OUT", "&bench.outputs.@OUT.data"),
    )
    text = _ABI
    for old, new in changed:
        assert old in text, old
        text = text.replace(old, new)
    return each + text


def compile_crate(
    graph: ir.Graph,
    sample: Any,
    outputs: Any,
    folder: Path,
    sizes: Mapping[str, int] | None = None,
) -> float:
    """Writes the crate of a model with one input and one output, and compiles it to a library.

    Args:
        graph: The model.
        sample: An input.
        outputs: What the model computes of it.
        folder: Where the crate is written.
        sizes: Of open dimensions besides the batch, by name; None if all are fixed.

    Returns:
        The seconds of the compiler.
    """
    features = Features({graph.inputs[0].name: sample}, {graph.outputs[0].name: outputs})
    mode = WeightsMode.FILE
    options = Options("bench_model", "zoo.py", runtime=RuntimeMode.CRATE, weights=mode)
    found = emit_crate(graph, options, features)
    for name, content in found.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    root = folder / "src/lib.rs"
    text = root.read_text("utf-8").replace("#![deny(missing_docs)]", "")
    model = found["src/model.rs"].decode()
    abi = (
        (_ABI if sizes is None else _open_abi(sizes, sample.shape))
        .replace("@TYPE", "BenchModel")
        .replace("@IN", "i32" if sample.dtype == np.int32 else "f32")
        .replace("@FIELD", _field(model, "pub struct Inputs"))
        .replace("@OUT", _field(model, "pub struct Outputs"))
    )
    root.write_text(text + abi, "utf-8")
    runtime = [Path(p).absolute() for p in os.environ["TFP_RUNTIME"].split()]
    rlib = next(p for p in runtime if p.name.startswith("libtfp_runtime"))
    command = [
        str(Path(os.environ["RUSTC"]).absolute()),
        *("--edition=2024", "--crate-type=cdylib", "--crate-name=model_bench"),
        *("-Copt-level=3", "-Cstrip=symbols", f"--extern=tfp_runtime={rlib}"),
        *(f"-Ldependency={folder}" for folder in dict.fromkeys(str(p.parent) for p in runtime)),
        *("src/lib.rs", "-o", str(folder / files.LIBRARY)),
    ]
    env = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return time.perf_counter() - start


def _field(text: str, struct: str) -> str:
    """Returns the name of the first field of a struct."""
    body = text.split(struct, 1)[1]
    return next(
        line.strip().removeprefix("pub ").split(":")[0]
        for line in body.split("\n")
        if line.strip().startswith("pub ")
    )
