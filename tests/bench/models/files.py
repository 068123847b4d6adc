"""Names of the files in which a model of the benchmark lies for all implementations.

The folder of a model has its facts and the library, which serves every batch; it has a folder for
each batch, which has the rest.
"""

INPUT = "input.npy"
EXPECTED = "expected.npy"
FROZEN = "frozen.pb"
NAMES = "names.json"
FACTS = "facts.json"
TFLITE = "model.tflite"
ONNX = "model.onnx"
LIBRARY = "libmodel_bench.so"
WEIGHTS = "model/model_weights.bin"


def batch_folder(batch: int) -> str:
    """The name of the folder of a batch, in that of the model."""
    return f"batch_{batch}"
