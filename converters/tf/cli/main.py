"""tf2rust: a trained Keras, TensorFlow, TFLite or ONNX model becomes a pure Rust crate.

Reads .keras, .h5, SavedModel folders, frozen graphs (.pb), .tflite and .onnx files. Writes a folder
with rust_generated_code (the crate) and saved_model_from_tensorflow (what the source model is).

  tf2rust --path_to_tf_model=mnist.keras --path_to_save=out --model_name=Mnist
  tf2rust --path_to_tf_model=mnist.keras --explain
  tf2rust --path_to_tf_model=saved_model/ --path_to_save=out --weight_type=int8 --json

The conversion runs in a child process: a file that makes TensorFlow abort, run for ever or take all
memory is one line of error.

Exit codes: 0 done; 2 wrong usage; 3 the model file is missing, damaged or unsafe, or the conversion
passed --max_memory or --max_seconds; 4 the recorded features don't match the model; 6 the model
needs what is not supported.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from absl import flags

from converters.tf.cli import supervise
from converters.tf.cli.arguments import (
    joined,
    parse_custom_ops,
    parse_most,
    parse_shapes,
    parse_states,
    parse_values,
)
from converters.tf.cli.output_folder import check_folder, write_folder
from converters.tf.emit.options import (
    Options,
    Profile,
    RuntimeMode,
    Target,
    WeightsMode,
    WeightType,
)
from converters.tf.emit.packages import VENDORED
from converters.tf.errors import FileError
from converters.tf.web.compile import Compiler, find_compiler
from tools.codegen import program
from tools.codegen.cargo import CratePlace
from tools.codegen.conversion import ConversionError, Problem, UsageError

_MODEL = flags.DEFINE_string("path_to_tf_model", None, "the model: a file or a SavedModel's folder")
_SAVE = flags.DEFINE_string("path_to_save", None, "folder to write; it must be empty or missing")
_NAME = flags.DEFINE_string("model_name", None, "name of the model in Rust, such as MnistCnn")
_BINARY = flags.DEFINE_bool(
    "binary_classification", False, "turn the output into confidence levels (thresholds.json)"
)
_INPLACE = flags.DEFINE_bool("enable_inplace", True, "let elementwise ops write over their operand")
_MEMDROP = flags.DEFINE_bool(
    "enable_memdrop", True, "use the memory of a tensor again after its last use"
)
_FV = flags.DEFINE_string(
    "path_to_fv",
    None,
    "recorded features (.npz): an array per input, and `predictions`; becomes the crate's test",
)
_WEIGHTS = flags.DEFINE_enum_class(
    "weights",
    WeightsMode.AUTO,
    WeightsMode,
    "where the crate has its weights; auto embeds up to 256 MiB and leaves more in a file",
)
_TYPE = flags.DEFINE_enum_class(
    "weight_type",
    WeightType.FLOAT32,
    WeightType,
    "what large weights are rounded to in the crate's file, which is a half or a quarter as large;"
    " the model still computes in float32, except that matmuls and convolutions multiply int8"
    " numbers with int8, unless --nointeger is given",
)
_PACK = flags.DEFINE_bool(
    "pack_weights",
    True,
    "pack matrices when the model is made; else it reads them where the weights are, such as in a"
    " mapped file, and computes more slowly",
)
_PROFILE = flags.DEFINE_enum_class("profile", Profile.STD, Profile, "what the crate may use")
_TARGET = flags.DEFINE_enum_class(
    "target",
    Target.CRATE,
    Target,
    "what to write: web adds an npm package in the folder web, compiled by an installed rustc",
)
_THREADS = flags.DEFINE_bool(
    "web_threads",
    False,
    "for --target=web: also write modules that compute with several threads, where a page or node"
    " can share memory between them",
)
_RUNTIME = flags.DEFINE_enum_class(
    "runtime", RuntimeMode.INCLUDE, RuntimeMode, "whether the runtime comes as source or as a crate"
)
_RUNTIME_FROM = flags.DEFINE_string(
    "runtime_from",
    "vendored",
    "where Cargo finds the crate tfp-runtime, for --runtime=crate: vendored (in the crate's folder"
    " vendor, which is written as well), path=FOLDER (such a folder vendor/tfp-runtime of another"
    " crate, or converters/runtime of a checkout; absolute or from the crate's folder), git=URL, or"
    " registry=NAME,version=VERSION with a registry of yours",
)
_EMBEDDED_FROM = flags.DEFINE_string(
    "embedded_from",
    None,
    "where Cargo finds the crate tfp-embedded, for --profile=no_std: path=FOLDER"
    " (converters/embedded of a checkout), git=URL, or registry=NAME,version=VERSION with a"
    " registry of yours; the crate then has a Runner with its traits",
)
_EXPLAIN = flags.DEFINE_bool("explain", False, "print layers, ops, shapes, MACs and bytes")
_JSON = flags.DEFINE_bool("json", False, "print a JSON report on standard output")
_OVERWRITE = flags.DEFINE_bool("overwrite", False, "replace a folder that tf2rust wrote")
_SHAPE = flags.DEFINE_multi_string(
    "input_shape",
    [],
    "dimensions that the model leaves open, all or all but the batch: [NAME=]224,224,3; ? for one"
    " that the crate is to leave open, too",
)
_VALUE = flags.DEFINE_multi_string(
    "input_value",
    [],
    "INPUT=16000 or INPUT=false: an input that becomes a constant, which no call gives; several"
    " elements as 1,2,3",
)
_BATCH = flags.DEFINE_integer(
    "batch",
    None,
    "the number of batch elements of every call, where the model leaves it open; 1 lets a model"
    " convert whose batch elements meet each other",
    lower_bound=1,
)
_MOST = flags.DEFINE_multi_string(
    "max",
    [],
    "DIMENSION=512: the most that an open dimension may be in a crate without std, whose memory is"
    " that of the largest call",
)
_CODE = flags.DEFINE_bool(
    "allow_custom_code", False, "run code that the model file holds, such as lambdas"
)
_OBJECTS = flags.DEFINE_multi_string(
    "custom_objects",
    [],
    "a Python file with classes that the model file names; needs --allow_custom_code",
)
_OPS = flags.DEFINE_multi_string(
    "custom_op",
    [],
    "domain::Name=module.py: an operator of your own; the module, which runs, says its shapes, its"
    " meaning in NumPy and the Rust function that the crate calls",
)
_STATE = flags.DEFINE_multi_string(
    "state",
    [],
    "INPUT=OUTPUT: an input that is this output of the call before; the crate gets a State and the"
    " method step",
)
_OUTPUT = flags.DEFINE_multi_string(
    "output", [], "an output that is wanted, or a tensor of a frozen graph; all if not given"
)
_STATEFUL = flags.DEFINE_bool(
    "stateful",
    False,
    "carry variables from call to call: a State with their first values, and step",
)
_SIGNATURE = flags.DEFINE_string("signature", "", "signature of a SavedModel or a .tflite file")
_INTEGER = flags.DEFINE_bool(
    "integer",
    True,
    "let a .tflite or .onnx file in int8 compute in integer arithmetic, as TFLite's reference"
    " kernels and onnxruntime do; else it computes in float32",
)
_MEMORY = flags.DEFINE_float(
    "max_memory",
    0.0,
    "GiB of memory that the conversion may take; 0 for nine tenths of the machine's",
    lower_bound=0.0,
)
_SECONDS = flags.DEFINE_float(
    "max_seconds",
    3600.0,
    "seconds that the conversion may take; 0 for as many as it needs",
    lower_bound=0.0,
)
_QUIET = flags.DEFINE_bool("quiet", False, "print no progress and no line on success")


def _progress(text: str) -> None:
    if not _QUIET.value and sys.stderr.isatty():
        print(f"tf2rust: {text} ...", file=sys.stderr, flush=True)


def _done(text: str) -> None:
    if not _QUIET.value:
        print(f"tf2rust: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keeps what TensorFlow's C++ logs while it starts away from the error stream."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _rustfmt() -> str | None:
    """Returns the program that lays out Rust text: of the build rule, or an installed one."""
    return os.environ.get("TF2RUST_RUSTFMT") or shutil.which("rustfmt")


def _web_compiler() -> Compiler:
    """Returns what compiles WebAssembly, before the work that needs it."""
    for flag, wrong in (
        ("--profile", _PROFILE.value is not Profile.STD),
        ("--runtime", _RUNTIME.value is not RuntimeMode.INCLUDE),
        ("--binary_classification", _BINARY.value),
    ):
        if wrong:
            what = "--target=web compiles a crate with std and the runtime inside, and only that"
            raise UsageError(Problem(flag, what, "leave it out, or leave out --target=web"))
    return find_compiler(os.environ)


def _runtime_place(linked: bool) -> CratePlace:
    """Returns where Cargo finds the runtime; what a crate that copies it does not ask."""
    if not linked:
        return Options.runtime_place
    if _RUNTIME_FROM.value == _RUNTIME_FROM.default:
        return VENDORED
    why = f"leave it out, or write {_RUNTIME_FROM.default}, for a copy in the crate's folder"
    return CratePlace.parse(_RUNTIME_FROM.value, "--runtime_from", why)


def _embedded_place() -> CratePlace | None:
    """Returns where Cargo finds the interface of firmware, for crates that have it."""
    if _EMBEDDED_FROM.value is None:
        return None
    if _PROFILE.value is not Profile.NO_STD:
        what = "crates with std do not have the interface of firmware"
        raise UsageError(Problem("--embedded_from", what, "add --profile=no_std"))
    why = "a crate with the traits of tfp-embedded has to say where Cargo finds it"
    return CratePlace.parse(_EMBEDDED_FROM.value, "--embedded_from", why)


def _convert() -> int:
    if not _MODEL.value:
        raise UsageError(Problem("--path_to_tf_model", "no model given"))
    if not _SAVE.value and not _EXPLAIN.value:
        raise UsageError(Problem("--path_to_save", "no folder given", "or pass --explain alone"))
    out = Path(_SAVE.value) if _SAVE.value else None
    if out is not None:
        check_folder(out.absolute(), _OVERWRITE.value)
    linked = _RUNTIME.value is RuntimeMode.CRATE
    if _RUNTIME_FROM.present and not linked:
        raise UsageError(Problem("--runtime_from", "only --runtime=crate depends on a crate"))
    if _THREADS.value and _TARGET.value is not Target.WEB:
        what = "only npm packages have modules for threads; a crate has with_threads"
        raise UsageError(Problem("--web_threads", what, "add --target=web"))
    compiler = _web_compiler() if _TARGET.value is Target.WEB else None
    model = Path(_MODEL.value)
    shapes = parse_shapes(_SHAPE.value)
    values = parse_values(_VALUE.value)
    options = Options(
        name=_NAME.value or model.stem,
        source=model.name,
        weights=_WEIGHTS.value,
        weight_type=_TYPE.value,
        profile=_PROFILE.value,
        pack=_PACK.value,
        runtime=_RUNTIME.value,
        runtime_place=_runtime_place(linked),
        embedded=_embedded_place(),
        inplace=_INPLACE.value,
        memdrop=_MEMDROP.value,
        binary=_BINARY.value,
        states=parse_states(_STATE.value),
        most=parse_most(_MOST.value),
        web_threads=_THREADS.value,
    )
    _progress("start TensorFlow")
    with _silent():
        from converters.tf import tf2rust
        from converters.tf.cli import explain
        from converters.tf.emit.model import binary_column
        from converters.tf.load.model import LoadOptions
        from converters.tf.load.shapes import FixedShapes

    # TensorFlow's modules are very many objects that live to the end.
    gc.freeze()
    request = tf2rust.Request(
        model=model,
        options=options,
        load=LoadOptions(
            FixedShapes(shapes, _BATCH.value),
            _CODE.value,
            tuple(Path(p) for p in _OBJECTS.value),
            _SIGNATURE.value,
            _INTEGER.value,
            parse_custom_ops(_OPS.value),
            values,
            _STATEFUL.value,
            tuple(_OUTPUT.value),
        ),
        features=Path(_FV.value) if _FV.value else None,
        rustfmt=_rustfmt(),
        web=compiler is not None,
    )
    start = time.monotonic()
    result = tf2rust.run(request, _progress)
    files = result.files
    if compiler is not None and out is not None:
        from converters.tf.web.package import web_files

        files = {**files, **web_files(result.text, result.options, files, compiler, _progress)}
    if options.binary and binary_column(result.plan.graph) is None:
        what = (
            "the model has not one output of one or two floats, so there are no confidence levels"
        )
        print(f"tf2rust: --binary_classification: {what}", file=sys.stderr)
    if result.rounding is not None and not _JSON.value:
        largest, mean = result.rounding.largest, result.rounding.mean
        what = f"{_TYPE.value} changes outputs by up to {largest:.1e} of the largest, {mean:.1e} on"
        size = f"the file has {result.weight_file_bytes:,} bytes"
        print(f"tf2rust: {what} average; {size}", file=sys.stderr)
    for note in () if _JSON.value else result.notes:
        print(f"tf2rust: note: {note}", file=sys.stderr)
    if out is not None:
        write_folder(out, files, _OVERWRITE.value)
        seconds = time.monotonic() - start
        _done(f"wrote {len(files)} files to {out} in {seconds:.1f} s")
        for path in sorted(p for p in files if p.endswith(".wasm")):
            _done(f"{out / path} has {len(files[path]):,} bytes")
    if _JSON.value:
        report = {
            "ok": True,
            **explain.report(result.plan, result.weights),
            "weight_type": str(options.weight_type),
            "weight_file_bytes": result.weight_file_bytes,
            "rounding": result.rounding and result.rounding.largest,
            "rounding_mean": result.rounding and result.rounding.mean,
            "notes": list(result.notes),
            "files": list(files),
        }
        print(json.dumps(report, indent=2))
    elif _EXPLAIN.value:
        from rich.console import Console

        console = Console(width=None if sys.stdout.isatty() else 140)
        explain.print_table(result.plan, result.weights, result.weight_file_bytes, console)
    return 0


def main(argv: Sequence[str]) -> int:
    """Converts as the flags say; returns the exit code."""
    try:
        if len(argv) > 1:
            raise UsageError(Problem("command line", f"unexpected argument {argv[1]!r}"))
        return _convert()
    except ConversionError as err:
        return _failed(err)


def _failed(err: ConversionError) -> int:
    if _JSON.value:
        print(json.dumps(err.report(), indent=2))
    print(err.text("tf2rust"), file=sys.stderr)
    return err.exit_code


def supervised(argv: Sequence[str]) -> int:
    """Converts in a child process; returns its exit code."""
    limits = supervise.Limits(int(_MEMORY.value * 2**30), _SECONDS.value)
    try:
        return supervise.run(lambda: program.shown("tf2rust", main, argv), limits)
    except supervise.EndedError as err:
        return _failed(FileError(Problem(str(_MODEL.value), err.what, err.advice)))


def run() -> None:
    """Entry point of the program; under `bazel run`, paths are relative to the caller's folder."""
    for name in ("TF2RUST_RUSTC", "TF2RUST_RUSTFMT", "TF2RUST_WASM_SYSROOT"):
        if name in os.environ:
            os.environ[name] = str(Path(os.environ[name]).absolute())
    program.run("tf2rust", supervised, joined)


if __name__ == "__main__":
    run()
