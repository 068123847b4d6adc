"""The program behind the build rule `rust_model`: a model file in, one file per role out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from converters.tf.cli.arguments import parse_custom_ops, parse_shapes, parse_states, parse_values
from converters.tf.emit.options import Options, RuntimeMode, WeightType
from converters.tf.emit.single_file import crate_root, test_root
from converters.tf.load.model import LoadOptions
from converters.tf.load.shapes import FixedShapes
from converters.tf.tf2rust import Request, run
from tools.codegen import program
from tools.codegen.conversion import ConversionError

_MODEL = flags.DEFINE_string("model", None, "the model", required=True)
_NAME = flags.DEFINE_string("name", None, "name of the model", required=True)
_FEATURES = flags.DEFINE_string("features", None, "recorded features (.npz)")
_THRESHOLDS = flags.DEFINE_string("thresholds", None, "confidence levels (.json)")
_BINARY = flags.DEFINE_bool("binary", False, "turn the output into confidence levels")
_CODE = flags.DEFINE_bool("allow_custom_code", False, "run code that the model file holds")
_OBJECTS = flags.DEFINE_multi_string("custom_objects", [], "Python files of classes it names")
_OPS = flags.DEFINE_multi_string("custom_op", [], "domain::Name=module.py of the user's operators")
_TYPE = flags.DEFINE_enum_class(
    "weight_type", WeightType.FLOAT32, WeightType, "what large weights are rounded to in the file"
)
_INTEGER = flags.DEFINE_bool("integer", True, "let products of int8 be in integer arithmetic")
_SHAPE = flags.DEFINE_multi_string("input_shape", [], "dimensions that the model leaves open")
_VALUE = flags.DEFINE_multi_string("input_value", [], "INPUT=16000: an input that is a constant")
_BATCH = flags.DEFINE_integer("batch", None, "the examples of every call", lower_bound=1)
_STATE = flags.DEFINE_multi_string("state", [], "INPUT=OUTPUT that a step carries on")
_OUTPUT = flags.DEFINE_multi_string("output", [], "outputs that are wanted; all if not given")
_STATEFUL = flags.DEFINE_bool("stateful", False, "let steps carry on the model's variables")
_SIGNATURE = flags.DEFINE_string("signature", "", "signature of a SavedModel or a .tflite file")
_RUSTFMT = flags.DEFINE_string("rustfmt", None, "the program that lays out Rust text")
_RUST = flags.DEFINE_string("rust_out", None, "the crate's root", required=True)
_TEST = flags.DEFINE_string("test_out", None, "its test", required=True)
_BENCH = flags.DEFINE_string("bench_out", None, "its bench", required=True)
_WEIGHTS = flags.DEFINE_string("weights_out", None, "the weights", required=True)
_LEVELS = flags.DEFINE_string("thresholds_out", None, "the confidence levels", required=True)
_RECORDED = flags.DEFINE_string("features_out", None, "the recorded features", required=True)


def _main(_: Sequence[str]) -> int:
    model = Path(_MODEL.value)
    options = Options(
        name=_NAME.value,
        source=model.name,
        weight_type=_TYPE.value,
        runtime=RuntimeMode.CRATE,
        binary=_BINARY.value,
        thresholds=Path(_THRESHOLDS.value).read_text("utf-8") if _THRESHOLDS.value else "",
        from_environment=True,
        states=parse_states(_STATE.value),
    )
    shapes = FixedShapes(parse_shapes(_SHAPE.value), _BATCH.value)
    request = Request(
        model=model,
        options=options,
        load=LoadOptions(
            shapes=shapes,
            allow_custom_code=_CODE.value,
            custom_objects=tuple(Path(p) for p in _OBJECTS.value),
            signature=_SIGNATURE.value,
            integer=_INTEGER.value,
            custom_ops=parse_custom_ops(_OPS.value),
            values=parse_values(_VALUE.value),
            stateful=_STATEFUL.value,
            outputs=tuple(_OUTPUT.value),
        ),
        features=Path(_FEATURES.value) if _FEATURES.value else None,
        rustfmt=_RUSTFMT.value,
        crate_only=True,
    )
    try:
        result = run(request)
    except ConversionError as err:
        print(f"rust_model: {err}", file=sys.stderr)
        return 1
    for note in result.notes:
        print(f"rust_model: note: {note}", file=sys.stderr)
    prefix = "rust_generated_code/"
    files = {path.removeprefix(prefix): content for path, content in result.files.items()}
    Path(_RUST.value).write_text(crate_root(files), "utf-8")
    Path(_TEST.value).write_text(test_root(files, "tests/golden.rs"), "utf-8")
    Path(_BENCH.value).write_text(test_root(files, "benches/benchmarks.rs"), "utf-8")
    Path(_WEIGHTS.value).write_bytes(files["model/model_weights.bin"])
    # The build rule declares a file of levels for every model.
    Path(_LEVELS.value).write_bytes(files.get("model/thresholds.json", b""))
    Path(_RECORDED.value).write_bytes(files["testdata/features.npz"])
    return 0


if __name__ == "__main__":
    program.run("rust_model", _main)
