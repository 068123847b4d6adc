"""tvm_export: an ONNX, TFLite or TensorFlow model becomes a version 7 archive with the C interface.

Current TVM has no exporter of its own. A Keras file or a SavedModel goes through TFLite, in float32
with batch size 1; a quantized one is converted to TFLite by its owner, who has the calibration
data. Exit codes are those of mlf2rust.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from converters.mlf.tvm_export_lower import load_model, plan_module
from converters.mlf.tvm_export_plan import archive_files, archive_tar
from tools.codegen import program
from tools.codegen.conversion import ConversionError, Problem, UsageError

_MODEL = flags.DEFINE_string(
    "model",
    None,
    "model to export: .onnx, .tflite, .keras, .h5, or the folder of a SavedModel (required)",
)
_OUT = flags.DEFINE_string("out", None, "archive to write, a .tar file (required)")
_SIGNATURE = flags.DEFINE_string("signature", "serving_default", "signature of a SavedModel")
_NAME = flags.DEFINE_string("name", "default", "module name in the archive")
_QUIET = flags.DEFINE_bool("quiet", False, "print no line on success")


def main(argv: Sequence[str]) -> int:
    """Exports as the flags say; returns the exit code."""
    del argv
    try:
        if not _MODEL.value or not _OUT.value:
            raise UsageError(Problem("command line", "--model and --out are required"))
        plan = plan_module(load_model(Path(_MODEL.value), _SIGNATURE.value), _NAME.value)
        out = Path(_OUT.value)
        staging = out.with_name(out.name + ".part")
        try:
            size = staging.write_bytes(archive_tar(archive_files(plan)))
            staging.replace(out)
        finally:
            staging.unlink(missing_ok=True)
        if not _QUIET.value:
            print(f"tvm_export: wrote {out}, {size:,} bytes", file=sys.stderr)
    except ConversionError as err:
        print(err.text("tvm_export"), file=sys.stderr)
        return err.exit_code
    except OSError as err:
        print(f"tvm_export: {_OUT.value}: cannot be written: {err}", file=sys.stderr)
        return UsageError.exit_code
    return 0


def run() -> None:
    """Entry point of the program."""
    program.run("tvm_export", main)


if __name__ == "__main__":
    run()
