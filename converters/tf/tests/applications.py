"""The models of keras.applications as crates: converted, compiled, run, compared with Keras.

Weights are random, nothing is downloaded. Exit status: 0 if every crate agrees with Keras and
compiles within the limits, 1 if not.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from absl import app, flags

from converters.tf.tests.crates.crates import program, write
from converters.tf.tests.pages import known_rows
from tests.bench.machine import processor

_ONLY = flags.DEFINE_list("only", [], "Models to try; all of the list if not given.")
_WRITE = flags.DEFINE_string("write", None, "The page to write.")
_CONVERT = flags.DEFINE_string("convert", None, "Convert this one model; the program calls itself.")
_FOLDER = flags.DEFINE_string("folder", None, "Where to work; a temporary folder if not given.")

MODELS: Final = (
    "MobileNet",
    "MobileNetV2",
    "MobileNetV3Small",
    "MobileNetV3Large",
    "ResNet50",
    "ResNet50V2",
    "EfficientNetB0",
    "EfficientNetV2B0",
    "DenseNet121",
    "InceptionV3",
    "InceptionResNetV2",
    "Xception",
    "NASNetMobile",
    "ConvNeXtTiny",
    "VGG16",
)
TOLERANCE: Final = 1e-4
"""Largest difference of a logit, relative to the largest logit."""
SECONDS: Final = 60.0
"""Most processor time of a compilation."""
MEGABYTES: Final = 1500.0
"""Most memory of one process of a compilation."""

PAGE: Final = """\
# keras.applications as crates

Every model has its own image size, its 1000 classes as logits and random weights. tf2rust converts
it with default flags, and `cargo build --release` compiles it with the runtime as source. A program
runs it on three images and compares with Keras; the generated tests pass, too. The
difference is the largest one of a logit over the largest logit; {tolerance:g} is allowed. Lines
are those of `model.rs` and `blocks.rs`. Compiling may take {seconds:.0f} s of processor time,
of all cores together, and {megabytes:.0f} MB in one process.

Written by `tools/bazel run //converters/tf/tests:applications_sweep -- --write
docs/performance/applications.md`; with `--only=MODELS` it renews their rows alone.
{cpu}.

| model | parameters | weights | lines | rustc | its memory | difference | measured |
|---|---|---|---|---|---|---|---|
{rows}
"""

_OUTPUTS = """\
//! Predicts for the floats of one file and writes those of another.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let bytes = std::fs::read(&files[0])?;
    let float = |c: &[u8]| f32::from_le_bytes([c[0], c[1], c[2], c[3]]);
    let image: Vec<f32> = bytes.chunks_exact(4).map(float).collect();
    let model = CRATE::TYPE::CONSTRUCTOR?;
    let found = model.predict_from_array(&image)?;
    let bytes: Vec<u8> = found.iter().flat_map(|x| x.to_le_bytes()).collect();
    Ok(std::fs::write(&files[1], bytes)?)
}
"""


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one model.

    Attributes:
        model: Its name.
        parameters: Their number.
        mode: Where the crate has its weights.
        weight_bytes: Bytes of the weights.
        lines: Lines of the model's own text.
        processor: Processor time of `cargo build`, in seconds.
        megabytes: Most memory of one of its processes.
        difference: Largest difference from Keras, over the largest logit.
        error: What failed, or empty.
    """

    model: str
    parameters: int = 0
    mode: str = ""
    weight_bytes: int = 0
    lines: int = 0
    processor: float = 0.0
    megabytes: float = 0.0
    difference: float = float("nan")
    error: str = ""

    @property
    def good(self) -> bool:
        """Returns whether everything is within the limits."""
        measured = self.processor <= SECONDS and self.megabytes <= MEGABYTES
        return not self.error and measured and self.difference <= TOLERANCE

    def row(self) -> str:
        """Returns the line of the page."""
        date = datetime.datetime.now(datetime.UTC).date()
        if self.error:
            return f"| {self.model} | {self.error} | | | | | | {date} |"
        return (
            f"| {self.model} | {self.parameters / 1e6:.1f} M "
            f"| {self.weight_bytes / 1e6:.0f} MB, {self.mode} | {self.lines} "
            f"| {self.processor:.0f} s | {self.megabytes:.0f} MB | {self.difference:.1e} "
            f"| {date} |"
        )


def convert(name: str, folder: Path) -> None:
    """Builds and converts a model; writes the crate and prints its facts as JSON."""
    import keras

    from converters.tf.emit.options import Options, WeightsMode
    from converters.tf.tests.checks import randomize
    from converters.tf.tests.crates.crates import rustfmt
    from converters.tf.tf2rust import Request, run

    model = getattr(keras.applications, name)(weights=None, classifier_activation=None)
    randomize(model)
    path = folder / f"{name}.keras"
    model.save(path)
    options = Options(name, path.name, weights=WeightsMode.AUTO)
    result = run(Request(path, options, rustfmt=rustfmt()))
    write(result.files, folder)
    path.unlink()
    facts = {
        "parameters": int(model.count_params()),
        "mode": str(result.weights),
        "weight_bytes": len(result.files["rust_generated_code/model/model_weights.bin"]),
    }
    print(json.dumps(facts))


def attempt(name: str, folder: Path) -> Result:
    """Converts, compiles, runs and compares one model."""
    here = str(Path(__file__).absolute())
    again = [sys.executable, here, f"--convert={name}", f"--folder={folder}"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        facts: dict[str, Any] = json.loads(_must(again, Path.cwd(), env).splitlines()[-1])
        crate = folder / "rust_generated_code"
        texts = [crate / "src" / f for f in ("model.rs", "blocks.rs")]
        facts["lines"] = sum(t.read_text("utf-8").count("\n") for t in texts if t.exists())
        facts |= _compiled(crate)
        facts["difference"] = _difference(crate, facts["mode"])
        _must([program("CARGO", "cargo"), "test", "--offline", "--release"], crate, _rust(crate))
    except RuntimeError as err:
        return Result(name, error=" ".join(str(err).split())[-400:])
    return Result(name, **facts)


def _must(command: Sequence[str], cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return done.stdout


def _rust(crate: Path) -> dict[str, str]:
    env = {**os.environ, "CARGO_TARGET_DIR": "target", "CARGO_HOME": str(crate / "target/home")}
    if "RUSTC" in os.environ:
        env["RUSTC"] = program("RUSTC", "rustc")
    return env


def _compiled(crate: Path) -> dict[str, float]:
    """Compiles a crate; returns what that took."""
    command = [program("CARGO", "cargo"), "build", "--offline", "--release", "--quiet"]
    with subprocess.Popen(command, cwd=crate, env=_rust(crate)) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError("cargo build fails")
    return {
        "processor": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss * 1024 / 1e6,
    }


def _difference(crate: Path, mode: str) -> float:
    """Runs a crate on its recorded images; returns how far it is from what Keras predicted."""
    name = re.search(r'^name = "(\w+)"', (crate / "Cargo.toml").read_text("utf-8"), re.MULTILINE)
    kind = re.search(r"impl (\w+) \{\n +/// Bytes", (crate / "src/model.rs").read_text("utf-8"))
    if name is None or kind is None:
        raise RuntimeError("the crate does not say what it is called")
    constructor = "new()" if mode == "embed" else 'from_file("model/model_weights.bin")'
    text = _OUTPUTS.replace("CRATE", name[1]).replace("TYPE", kind[1])
    write({"examples/outputs.rs": text.replace("CONSTRUCTOR", constructor).encode()}, crate)
    with np.load(crate / "testdata/features.npz") as recorded:
        expected = recorded["predictions"].astype(np.float64)
        (image,) = (recorded[key] for key in recorded.files if key != "predictions")
    image.astype("<f4").tofile(crate / "image")
    cargo = [program("CARGO", "cargo"), "run", "--offline", "--release", "--example=outputs"]
    _must([*cargo, "--", "image", "logits"], crate, _rust(crate))
    found = np.fromfile(crate / "logits", "<f4").reshape(expected.shape)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _page(rows: dict[str, str]) -> str:
    return PAGE.format(
        tolerance=TOLERANCE,
        seconds=SECONDS,
        megabytes=MEGABYTES,
        cpu=processor(),
        rows="\n".join(rows[model] for model in MODELS if model in rows),
    )


def main(argv: Sequence[str]) -> int:
    """Tries every model; returns the exit status."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    if _CONVERT.value:
        convert(_CONVERT.value, Path(_FOLDER.value or "."))
        return 0
    results = []
    for name in _ONLY.value or MODELS:
        with tempfile.TemporaryDirectory(prefix="tfp-applications-") as folder:
            results.append(attempt(name, Path(folder)))
        print(results[-1].row(), file=sys.stderr, flush=True)
    if _WRITE.value:
        page = Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / _WRITE.value
        rows = known_rows(page) if _ONLY.value else {}
        rows |= {result.model: result.row() for result in results}
        page.write_text(_page(rows), encoding="utf-8")
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    app.run(main)
