"""Systems of linear equations, factors and determinants."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from converters.tf.ir.interpret import interpret
from converters.tf.tests.checks import checked, few
from tools.codegen.conversion import UnsupportedError

_SIZES = st.integers(1, 9)


def _positive(x: Any) -> Any:
    """A positive definite matrix of every matrix, far from one that is singular."""
    return tf.matmul(x, x, transpose_b=True) / x.shape[-1] + tf.eye(x.shape[-1])


def _regular(x: Any) -> Any:
    return x + 3.0 * x.shape[-1] * tf.eye(x.shape[-1])[::-1]


@few
@given(_SIZES, st.integers(1, 4), st.booleans())
def test_positive_definite_systems(size: int, columns: int, nested: bool) -> None:
    def body(x: Any, right: Any) -> list[Any]:
        whole = _positive(x)
        factor = tf.linalg.cholesky(whole)
        inverse = tf.linalg.cholesky_solve(factor, right)
        return [factor, inverse, tf.linalg.logdet(whole), keras.ops.cholesky(whole)]

    lead = (2,) if nested else ()
    checked([(*lead, size, size), (*lead, size, columns)], body)


@few
@given(_SIZES, st.booleans(), st.booleans())
def test_triangles(size: int, lower: bool, adjoint: bool) -> None:
    def body(x: Any, right: Any) -> list[Any]:
        # What lies beside the triangle is not read.
        whole = x + 3.0 * size * tf.eye(size)
        one = tf.linalg.triangular_solve(whole, right, lower=lower, adjoint=adjoint)
        broadcast = tf.linalg.triangular_solve(
            tf.eye(size) * 2.0 + 0.5, right, lower=lower, adjoint=adjoint
        )
        return [one, broadcast, keras.ops.solve_triangular(whole, right, lower=lower)]

    checked([(size, size), (size, 2)], body)


@few
@given(_SIZES, st.booleans(), st.booleans())
def test_systems_whose_rows_change_places(size: int, adjoint: bool, nested: bool) -> None:
    def body(x: Any, right: Any) -> list[Any]:
        whole = _regular(x)
        return [
            tf.linalg.solve(whole, right, adjoint=adjoint),
            tf.linalg.inv(whole, adjoint=adjoint),
            *tf.linalg.slogdet(whole),
            tf.linalg.det(whole / (3.0 * size)),
        ]

    lead = (2,) if nested else ()
    checked([(*lead, size, size), (*lead, size, 3)], body)


def test_systems_of_keras() -> None:
    o = keras.ops

    def body(x: Any, right: Any) -> list[Any]:
        whole = _regular(x)
        return [
            o.inv(whole),
            o.det(whole / 12.0),
            o.solve(whole, right),
            o.solve(whole, right[..., 0]),
        ]

    checked([(4, 4), (4, 2)], body)


def test_a_system_that_is_a_layer_of_its_own() -> None:
    """A regression of every example over its own points."""

    def body(x: Any, y: Any) -> Any:
        ridge = tf.matmul(x, x, transpose_a=True) + 0.1 * tf.eye(3)
        return tf.linalg.matvec(
            x, tf.linalg.solve(ridge, tf.matmul(x, y[..., None], transpose_a=True))[..., 0]
        )

    checked([(12, 3), (12,)], body)


def test_matrices_without_an_inverse_are_errors() -> None:
    def body(x: Any) -> list[Any]:
        return [tf.linalg.inv(_regular(x))]

    graph = checked([(2, 2)], body)
    (port,) = graph.inputs
    singular = np.array([[[1.0, -5.0], [-5.0, 1.0]]], np.float32)
    with pytest.raises(ArithmeticError, match="no inverse"):
        interpret(graph, {port.name: singular})


def test_matrices_that_are_not_positive_definite_are_not_a_number() -> None:
    def body(x: Any) -> Any:
        # TensorFlow leaves what lies above unwritten.
        return tf.linalg.band_part(tf.linalg.cholesky(x - 100.0 * tf.eye(3)), -1, 0)

    checked([(3, 3)], body)


def test_determinants_without_an_inverse() -> None:
    def body(x: Any) -> list[Any]:
        zero = x * tf.constant([[0.0], [1.0]])
        return [tf.linalg.det(zero), *tf.linalg.slogdet(zero)]

    checked([(2, 2)], body)


def test_what_is_not_square_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="there is no kernel for the op Qr"):
        checked([(3, 3)], lambda x: tf.linalg.qr(x).q)
