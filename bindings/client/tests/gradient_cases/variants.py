"""Programs over variants: optional values, ragged tensors, sparse matrices in rows.

`variants.rs` has the same programs under the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

Program = Callable[..., Any]

_DOUBLE = tf.float64
_raw = tf.raw_ops
_PLACES = tf.constant([[0, 0], [0, 2], [1, 1]], tf.int64)


def _total(value: Any) -> Any:
    return tf.reduce_sum(tf.square(value) * value)


def _optional(x: Any) -> Any:
    kept = _raw.OptionalFromValue(components=[x, tf.square(x)])
    first, second = _raw.OptionalGetValue(
        optional=kept, output_types=[_DOUBLE, _DOUBLE], output_shapes=[[2, 3], [2, 3]]
    )
    return _total(first) * _total(second)


def _ragged(x: Any) -> Any:
    kept = _raw.RaggedTensorToVariant(
        rt_nested_splits=[tf.constant([0, 1, 2], tf.int64)], rt_dense_values=x, batched_input=True
    )
    _, values = _raw.RaggedTensorFromVariant(
        encoded_ragged=kept,
        input_ragged_rank=0,
        output_ragged_rank=1,
        Tvalues=_DOUBLE,
        Tsplits=tf.int64,
    )
    return _total(values)


def _csr(x: Any, places: Any = _PLACES) -> Any:
    return _raw.DenseToCSRSparseMatrix(dense_input=x, indices=places)


def _dense(matrix: Any, dtype: Any = _DOUBLE) -> Any:
    return _raw.CSRSparseMatrixToDense(sparse_input=matrix, type=dtype)


def _of_tensor(x: Any) -> Any:
    values = tf.reshape(x, [-1])[:3]
    matrix = _raw.SparseTensorToCSRSparseMatrix(
        indices=_PLACES, values=values, dense_shape=tf.constant([2, 3], tf.int64)
    )
    found = _raw.CSRSparseMatrixToSparseTensor(sparse_matrix=matrix, type=_DOUBLE)
    return _total(found.values)


def _turned(x: Any) -> Any:
    return _total(
        _dense(_raw.SparseMatrixTranspose(input=_csr(x), type=_DOUBLE, conjugate=False))
        * tf.reshape(x, [3, 2])
    )


def _product(x: Any) -> Any:
    return _total(_raw.SparseMatrixMatMul(a=_csr(x), b=tf.reshape(x, [3, 2])))


def _batch_product(x: Any) -> Any:
    places = tf.constant([[0, 0, 0], [0, 0, 2], [1, 0, 1]], tf.int64)
    matrices = _csr(tf.reshape(x, [2, 1, 3]), places)
    return _total(_raw.SparseMatrixMatMul(a=matrices, b=tf.reshape(x, [2, 3, 1])))


def _turned_product(x: Any) -> Any:
    return _total(
        _raw.SparseMatrixMatMul(
            a=_csr(x),
            b=tf.reshape(x, [3, 2]),
            transpose_a=True,
            transpose_b=True,
            transpose_output=True,
        )
    )


def _complex_product(adjoint: bool) -> Program:
    def call(x: Any) -> Any:
        whole = tf.complex(x, 0.5 * x)
        found = _raw.SparseMatrixMatMul(
            a=_csr(whole),
            b=tf.reshape(whole, [3, 2]),
            adjoint_a=adjoint,
            adjoint_b=adjoint,
            conjugate_output=not adjoint,
        )
        return _total(tf.math.real(found)) + _total(tf.math.imag(found))

    return call


def _sparse_product(x: Any) -> Any:
    other = _csr(tf.reshape(x, [3, 2]), tf.constant([[0, 1], [1, 0], [2, 1]], tf.int64))
    found = _raw.SparseMatrixSparseMatMul(a=_csr(x), b=other, type=_DOUBLE)
    return _total(_dense(found))


PROGRAMS: dict[str, Program] = {
    "optional": _optional,
    "ragged": _ragged,
    "csr": lambda x: _total(_dense(_csr(x))),
    "csr of a tensor": _of_tensor,
    "csr transposed": _turned,
    "csr product": _product,
    "csr batch product": _batch_product,
    "csr turned product": _turned_product,
    "csr complex product": _complex_product(False),
    "csr adjoint product": _complex_product(True),
    "csr sparse product": _sparse_product,
}
