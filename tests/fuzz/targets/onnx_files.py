"""ONNX files: the models of ONNX's own test suite, changed field by field, beside onnxruntime."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from converters.tf.tests.onnx_cases import cases
from tests.fuzz import edits, protos
from tests.fuzz.case import Case, Reference
from tests.fuzz.targets.converter import Converter

# Bytes of a model of the suite; larger ones are slow and alike.
_LARGEST = 200_000


class Onnx(Converter):
    """Converts, and compares with onnxruntime where that takes the file, too."""

    input_name = "m.onnx"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Reads the suite."""
        super().__init__(folder, reference)
        self._models = self.kept(_suite)
        onnxruntime.set_default_logger_severity(4)

    @property
    def bases(self) -> int:
        """How many models there are."""
        return len(self._models)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a model."""
        model = type(self._models[0])()
        model.CopyFrom(self._models[case.base])
        tail: list[random.Random] = []
        for seed in case.edits:
            choose = random.Random(seed)
            if choose.random() < 0.05:
                tail.append(choose)
            else:
                protos.edit(choose, model)
        content = model.SerializeToString(deterministic=True)
        for choose in tail:
            content = edits.octets(choose, content)
        path = folder / self.input_name
        path.write_bytes(content)
        return path

    def expected(self, path: Path, arrays: dict[str, Any]) -> list[Any] | None:
        """Returns what onnxruntime computes."""
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(
                path.read_bytes(), options, providers=["CPUExecutionProvider"]
            )
            ports = {p.name: p for p in session.get_inputs()}
            given = {
                name: array.astype(_KINDS[ports[name].type])
                for name, array in arrays.items()
                if name in ports
            }
            kinds = [_BITS.get(port.type) for port in session.get_outputs()]
            found = [np.asarray(a) for a in session.run(None, given)]
            return [
                a.view(k).astype(np.float32) if k else a for a, k in zip(found, kinds, strict=True)
            ]
        except Exception:  # It refuses the file, has no kernel, or the numbers don't fit.
            return None


def _suite() -> list[Any]:
    found = [c.model for name in ("node", "simple", "pytorch-converted") for c in cases(name)]
    return [m for m in found if m.ByteSize() < _LARGEST]


# Floats of few bits, which onnxruntime gives as their bits and a crate as numbers.
_BITS = {
    f"tensor({TensorProto.DataType.Name(number).lower()})": helper.tensor_dtype_to_np_dtype(number)
    for number in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
                   TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ)
}  # fmt: skip
_KINDS = {
    f"tensor({name})": kind
    for name, kind in (
        ("float", np.float32), ("double", np.float64), ("float16", np.float16), ("bool", np.bool_),
        ("int8", np.int8), ("int16", np.int16), ("int32", np.int32), ("int64", np.int64),
        ("uint8", np.uint8), ("uint16", np.uint16), ("uint32", np.uint32), ("uint64", np.uint64),
    )
}  # fmt: skip
