"""Names of the files in which a model of the benchmark lies for all implementations."""

INPUT = "input.npy"
EXPECTED = "expected.npy"
FROZEN = "frozen.pb"
NAMES = "names.json"
TFLITE = "model.tflite"
ONNX = "model.onnx"
LIBRARY = "libmodel_bench.so"
