"""Cases of sparse and ragged tensors, Fourier transforms and factorizations."""

from collections.abc import Iterator

import numpy as np

from bindings.client.tests.gradient_cases.case import Array, Case, Values, case, ints, scalar


def _longs(*values: int) -> Array:
    return np.asarray(values, "i8")


_PLACES = np.asarray([[0, 1], [0, 3], [1, 0], [2, 2], [2, 3]], "i8")
_SIZE = _longs(3, 4)


def _sparse() -> Iterator[Case]:
    values = Values("sparse")
    r = values.real
    for kind, of in (("", r), ("_complex", values.complex)):
        for name, adjoint_a, adjoint_b in (
            ("plain", False, False),
            ("a", True, False),
            ("b", False, True),
            ("both", True, True),
        ):
            inner = 3 if adjoint_a else 4
            dense = of(2, inner) if adjoint_b else of(inner, 2)
            yield case(
                f"SparseTensorDenseMatMul_{name}{kind}",
                [_PLACES, of(5), _SIZE, dense],
                {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b},
            )
    other = np.asarray([[0, 0], [0, 3], [2, 2]], "i8")
    sum_of = [_PLACES, r(5), _SIZE, other, r(3), _SIZE, np.asarray(0.0)]
    # The threshold decides which values are there: it has no slope.
    yield case("SparseAdd", sum_of, {}, slopes=[1, 4], second=False)
    yield case("SparseTensorDenseAdd", [_PLACES, r(5), _SIZE, r(3, 4)], {})
    for name, shape in (("", (3, 4)), ("_row", (4,)), ("_column", (3, 1)), ("_one", (1, 1))):
        yield case(f"SparseDenseCwiseMul{name}", [_PLACES, r(5), _SIZE, r(*shape)], {})
        dense = values.positive(*shape)
        yield case(f"SparseDenseCwiseDiv{name}", [_PLACES, r(5), _SIZE, dense], {})
        added = [_PLACES, r(5), _SIZE, r(*shape)]
        # Python has no gradient of a sum.
        yield case(f"SparseDenseCwiseAdd{name}", added, {}, python=False)
    deep = np.asarray([[0, 0, 1], [0, 1, 2], [1, 0, 2], [1, 1, 0]], "i8")
    for name, axes in (
        ("last", ints(-1)),
        ("two", ints(0, 2)),
        ("none", ints()),
        ("scalar", scalar(1)),
    ):
        for keep in (False, True):
            yield case(
                f"SparseReduceSum_{name}{keep:d}",
                [deep, r(4), _longs(2, 2, 3), axes],
                {"keep_dims": keep},
            )
    mixed = _PLACES[[3, 0, 4, 2, 1]]
    yield case("SparseReorder", [mixed, r(5), _SIZE], {})
    parts = [[_PLACES, other], [r(5), r(3)], [_SIZE, _SIZE]]
    for axis in (0, 1):
        # Python has no gradient of it.
        yield case(f"SparseConcat_{axis}", parts, {"concat_dim": axis}, python=False)
    yield case("SparseSlice", [_PLACES, r(5), _SIZE, _longs(0, 1), _longs(2, 3)], {}, second=False)
    yield case("SparseSoftmax", [_PLACES, r(5), _SIZE], {}, second=False)
    yield case(
        "SparseFillEmptyRows", [_PLACES, r(5), _longs(5, 4), np.asarray(0.5)], {}, second=False
    )


def _ragged() -> Iterator[Case]:
    values = Values("ragged")
    r = values.real
    splits = _longs(0, 2, 2, 5)
    for name, shape, default in (
        ("", _longs(-1, -1), np.asarray(0.25)),
        ("_cut", _longs(2, 1), np.asarray(0.25)),
        ("_long", _longs(4, 6), np.asarray(0.25)),
    ):
        yield case(
            f"RaggedTensorToTensor{name}",
            [shape, r(5), default, [splits]],
            {"row_partition_types": ["ROW_SPLITS"]},
            second=False,
        )
    yield case(
        "RaggedTensorToTensor_inner",
        [_longs(-1, -1, 2), r(5, 2), r(2), [splits]],
        {"row_partition_types": ["ROW_SPLITS"]},
        second=False,
    )
    yield case(
        "RaggedGather",
        [[splits], r(5, 2), ints(2, 0, 2)],
        {"OUTPUT_RAGGED_RANK": 1},
        second=False,
    )
    yield case(
        "RaggedFillEmptyRows",
        [_longs(0, 0, 2, 3), r(4), _longs(5).reshape(()), np.asarray(0.25)],
        {},
        second=False,
    )
    yield case("RaggedTensorToSparse", [[splits], r(5)], {}, second=False)


def _fourier() -> Iterator[Case]:
    values = Values("fourier")
    for axes in (1, 2, 3):
        name = "" if axes == 1 else f"{axes}D"
        for direction in ("", "I"):
            yield case(f"{direction}FFT{name}", [values.complex(2, 3, 2, 5)], {})
        lengths = {
            "odd": [3, 2, 5][-axes:],
            "even": [3, 2, 6][-axes:],
            "cut": [2, 1, 4][-axes:],
        }
        for kind, length in lengths.items():
            # Python has the gradients of one and two axes, of whole inputs.
            python = axes < 3 and kind != "cut"
            real = values.real(2, 3, 2, 5) if kind != "even" else values.real(2, 3, 2, 6)
            yield case(
                f"RFFT{name}_{kind}", [real, ints(*length)], {"Tcomplex": "c16"}, python=python
            )
            half = values.complex(2, 3, 2, 4 if kind == "even" else 3)
            yield case(f"IRFFT{name}_{kind}", [half, ints(*length)], {"Treal": "f8"}, python=python)


def _factors() -> Iterator[Case]:
    values = Values("factors")
    r = values.real
    for name, shape in (("square", (2, 3, 3)), ("tall", (4, 2)), ("wide", (2, 2, 4))):
        yield case(f"Qr_{name}", [r(*shape)], {"full_matrices": False}, second=False)
        yield case(f"Svd_values_{name}", [r(*shape)], {"compute_uv": False}, second=False)
        yield case(f"Svd_{name}", [r(*shape)], {"full_matrices": False}, second=False)
    for name, rows, columns in (("tall", 4, 2), ("wide", 2, 4), ("square", 3, 3)):
        rhs, regularizer = r(2, rows, 2), np.asarray(0.3)
        yield case(
            f"MatrixSolveLs_{name}",
            [r(2, rows, columns), rhs, regularizer],
            {"fast": True},
            slopes=[0, 1],
            second=False,
        )
    yield case("TridiagonalMatMul", [r(2, 1, 4), r(2, 1, 4), r(2, 1, 4), r(2, 4, 3)], {})
    diagonals = r(2, 3, 4) + np.asarray([0, 5, 0])[:, None]
    yield case(
        "TridiagonalSolve", [diagonals, r(2, 4, 2)], {"partial_pivoting": True}, second=False
    )


def cases() -> Iterator[Case]:
    """Returns the cases of this file."""
    for group in (_sparse, _ragged, _fourier, _factors):
        yield from group()
