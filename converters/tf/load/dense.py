"""Outputs that are not tensors, whose rows a crate can't give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tools.codegen.conversion import Problem, UnsupportedError

_RAGGED = (tf.RaggedTensor, tf.RaggedTensorSpec)
_SPARSE = (tf.SparseTensor, tf.SparseTensorSpec)


def check_dense(outputs: Iterable[tuple[str, Any]]) -> None:
    """Checks that the outputs of a model are tensors.

    Args:
        outputs: The name of each, and what TensorFlow gives or says of it.

    Raises:
        UnsupportedError: With each that is ragged or sparse.
    """
    problems = []
    for name, output in outputs:
        if isinstance(output, _RAGGED):
            what = "it is ragged: its rows have different lengths"
            advice = "build the layer with ragged=False, or give .to_tensor()"
        elif isinstance(output, _SPARSE):
            what = "it is sparse"
            advice = "build the layer with sparse=False, or give tf.sparse.to_dense() of it"
        else:
            continue
        problems.append(Problem(f"output {name}", what, advice))
    if problems:
        raise UnsupportedError.of(problems)
