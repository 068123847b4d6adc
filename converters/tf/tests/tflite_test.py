from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.tf import ir
from converters.tf.convert import convert
from converters.tf.emit.support import problems
from converters.tf.interpret import interpret
from converters.tf.load.model import LoadOptions, load
from converters.tf.tests.checks import TOLERANCE, difference, inputs_for
from converters.tf.tests.tflite_files import Tensor, interpreted, kinds_of, single
from converters.tf.tests.tflite_ops import CASES, Case


def _agrees(path: Path, content: bytes, case: Case) -> ir.Graph:
    path.write_bytes(content)
    loaded = load(path, LoadOptions())
    graph = convert(loaded.trace)
    assert problems(graph) == []
    for batch in (1, 3) if case.batch else (1,):
        arrays = {n: np.asarray(case.change(a)) for n, a in inputs_for(graph, batch).items()}
        expected = interpreted(content, list(arrays.values()))
        for found in (interpret(graph, arrays), loaded.predict(arrays)):
            for array, wanted in zip(found.values(), expected, strict=True):
                assert difference(array, wanted) <= TOLERANCE
    return graph


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=f"{c.kind.lower()}_{i}") for i, c in enumerate(CASES)]
)
def test_an_operator(tmp_path: Path, case: Case) -> None:
    results = [Tensor((1, 1), dtype) for dtype in case.results]
    content = single(case.kind, case.operands, results, case.options)
    assert kinds_of(content) == {case.kind}
    _agrees(tmp_path / "m.tflite", content, case)
