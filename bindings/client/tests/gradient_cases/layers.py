"""Cases of convolutions, pooling, normalization, losses and linear algebra."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bindings.client.tests.gradient_cases.case import Case, Values, case, ints


def _conv() -> Iterator[Case]:
    values = Values("conv")
    r = values.real
    for padding in ("SAME", "VALID"):
        for strides in ([1, 1, 1, 1], [1, 2, 2, 1]):
            name = f"Conv2D_{padding}_{strides[1]}"
            attrs: dict[str, Any] = {"strides": strides, "padding": padding}
            yield case(name, [r(2, 5, 4, 2), r(3, 2, 2, 3)], attrs)
    yield case(
        "Conv2D_explicit",
        [r(1, 4, 4, 1), r(2, 2, 1, 2)],
        {
            "strides": [1, 1, 1, 1],
            "padding": "EXPLICIT",
            "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0],
        },
    )
    same = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    yield case("Conv2DBackpropInput", [ints(1, 4, 4, 2), r(2, 2, 2, 3), r(1, 4, 4, 3)], same)
    yield case("Conv2DBackpropFilter", [r(1, 4, 4, 2), ints(2, 2, 2, 3), r(1, 4, 4, 3)], same)
    yield case("DepthwiseConv2dNative", [r(1, 4, 4, 2), r(2, 2, 2, 2)], same)
    yield case(
        "DepthwiseConv2dNativeBackpropInput", [ints(1, 4, 4, 2), r(2, 2, 2, 2), r(1, 4, 4, 4)], same
    )
    yield case(
        "DepthwiseConv2dNativeBackpropFilter",
        [r(1, 4, 4, 2), ints(2, 2, 2, 2), r(1, 4, 4, 4)],
        same,
    )
    same3 = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    yield case("Conv3D", [r(1, 3, 3, 3, 2), r(2, 2, 2, 2, 2)], same3)
    yield case(
        "Conv3DBackpropInputV2", [ints(1, 3, 3, 3, 1), r(2, 2, 2, 1, 2), r(1, 3, 3, 3, 2)], same3
    )
    yield case(
        "Conv3DBackpropFilterV2", [r(1, 3, 3, 3, 1), ints(2, 2, 2, 1, 2), r(1, 3, 3, 3, 2)], same3
    )
    yield case(
        "Dilation2D",
        [values.distinct(1, 4, 4, 1), r(2, 2, 1)],
        {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"},
        second=False,
    )
    pool = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    pool3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    yield case("AvgPool", [r(1, 5, 4, 2)], pool)
    yield case("AvgPoolGrad", [ints(1, 4, 4, 1), r(1, 2, 2, 1)], pool)
    yield case("AvgPool3D", [r(1, 3, 4, 4, 1, dtype="f4")], pool3)
    yield case("AvgPool3DGrad", [ints(1, 4, 4, 4, 1), r(1, 2, 2, 2, 1, dtype="f4")], pool3)
    big, small = values.distinct(1, 4, 4, 1), np.zeros((1, 2, 2, 1))
    for row in range(2):
        for column in range(2):
            small[0, row, column, 0] = big[
                0, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, 0
            ].max()
    yield case("MaxPool", [values.distinct(1, 5, 4, 2)], pool)
    yield case("MaxPoolGrad", [big, small, r(1, 2, 2, 1)], pool, second=False)
    yield case("MaxPoolGradGrad", [big, small, r(1, 4, 4, 1)], pool, second=False)
    short = {"padding": "SAME"}
    yield case(
        "MaxPoolV2",
        [values.distinct(1, 4, 4, 1), ints(1, 2, 2, 1), ints(1, 2, 2, 1)],
        short,
        second=False,
    )
    yield case(
        "MaxPoolGradV2",
        [big, small, r(1, 2, 2, 1), ints(1, 2, 2, 1), ints(1, 2, 2, 1)],
        short,
        second=False,
    )
    yield case("MaxPoolWithArgmax", [values.distinct(1, 4, 4, 1)], pool, second=False)
    cube = values.distinct(1, 4, 4, 4, 1, dtype="f4")
    tops = cube.reshape(1, 2, 2, 2, 2, 2, 2, 1).max(axis=(2, 4, 6))
    yield case("MaxPool3D", [cube], pool3, second=False)
    yield case("MaxPool3DGrad", [cube, tops, r(1, 2, 2, 2, 1, dtype="f4")], pool3, second=False)
    yield case("MaxPool3DGradGrad", [cube, tops, r(1, 4, 4, 4, 1, dtype="f4")], pool3, second=False)
    fractional = {
        "pooling_ratio": [1.0, 1.5, 1.5, 1.0],
        "deterministic": True,
        "seed": 3,
        "seed2": 4,
    }
    yield case("FractionalMaxPool", [values.distinct(1, 5, 5, 1)], fractional, second=False)
    yield case("FractionalAvgPool", [r(1, 5, 5, 1)], fractional, second=False)


def _nn() -> Iterator[Case]:
    values = Values("nn")
    r = values.real
    labels = np.asarray([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    yield case("SoftmaxCrossEntropyWithLogits", [r(2, 3), labels], {}, second=False)
    yield case("SparseSoftmaxCrossEntropyWithLogits", [r(2, 3), ints(2, 0)], {}, second=False)
    yield case("BiasAdd", [r(2, 3), r(3)], {})
    yield case("BiasAdd_NCHW", [r(2, 3, 2, 2), r(3)], {"data_format": "NCHW"})
    yield case("BiasAddGrad", [r(2, 3)], {})
    yield case("BiasAddV1", [r(2, 3), r(3)], {})
    f = values.single
    none = np.zeros((0,), "f4")
    for version in ("", "V2", "V3"):
        op = f"FusedBatchNorm{version}"
        yield case(
            f"{op}_training",
            [f(3, 2, 2, 2), f(2), f(2), none, none],
            {"is_training": True},
            second=version == "V3",
        )
        yield case(
            f"{op}_inference",
            [f(3, 2, 2, 2), f(2), f(2), f(2), f(2, low=0.5)],
            {"is_training": False},
            second=version == "V3",
        )
    yield case("LRN", [f(1, 2, 2, 5)], {"depth_radius": 2}, second=False)
    yield case(
        "ResizeBilinear", [f(1, 3, 3, 2), ints(5, 4)], {"half_pixel_centers": True}, second=False
    )
    yield case(
        "ResizeBicubic", [f(1, 3, 3, 2), ints(5, 4)], {"half_pixel_centers": True}, second=False
    )
    yield case("ResizeNearestNeighbor", [r(1, 3, 3, 2), ints(5, 4)], {}, second=False)
    yield case(
        "ScaleAndTranslate",
        [f(1, 3, 3, 2), ints(5, 4), np.asarray([1.6, 1.3], "f4"), np.zeros(2, "f4")],
        {"kernel_type": "lanczos3", "antialias": False},
        slopes=(0,),
        second=False,
    )
    turned = np.asarray([[0.9, 0.1, 0.2, -0.1, 1.1, 0.3, 0.01, -0.02]], "f4")
    for name, more in (("V2", []), ("V3", [np.asarray(0.5, "f4")])):
        yield case(
            f"ImageProjectiveTransform{name}",
            [f(1, 4, 3, 2), turned, ints(4, 3), *more],
            {"interpolation": "BILINEAR", "fill_mode": "REFLECT"},
            numeric=False,
            slopes=(0,),
            second=False,
        )
    places = np.asarray([[0, 0], [0, 1], [1, 0]], "i8")
    yield case("CTCLoss", [f(4, 2, 3), places, ints(0, 1, 1), ints(4, 3)], {}, second=False)
    colors = values.distinct(2, 4, 3) / 8 + 0.6
    yield case("RGBToHSV", [colors], {}, second=False)
    yield from _recurrent(values)
    boxes = np.asarray([[0.1, 0.2, 0.8, 0.9], [0.0, 0.1, 0.7, 0.6]], "f4")
    yield case(
        "CropAndResize",
        [f(1, 4, 4, 2), boxes, ints(0, 0), ints(3, 3)],
        {},
        slopes=(0,),
        second=False,
    )


def _recurrent(values: Values) -> Iterator[Case]:
    f = values.single
    steps, batch, inputs, units = 3, 2, 2, 3
    weights = [f(inputs + units, 4 * units), *(f(units) for _ in range(3)), f(4 * units)]
    given = [f(steps, batch, inputs), f(batch, units), f(batch, units), *weights]
    for name, peephole in (("", False), ("_peephole", True)):
        attrs = {"cell_clip": -1.0, "use_peephole": peephole}
        first = [np.asarray(steps, "i8"), *given]
        yield case(f"BlockLSTM{name}", first, attrs | {"forget_bias": 0.0}, second=False)
        # Python calls the function of the first version, whose gates are in another order.
        yield case(f"BlockLSTMV2{name}", first, attrs, python=False, second=False)


def _linalg() -> Iterator[Case]:
    values = Values("linalg")
    r = values.real
    for a in (False, True):
        for b in (False, True):
            left = r(3, 2) if a else r(2, 3)
            right = r(4, 3) if b else r(3, 4)
            suffix = f"_{a:d}{b:d}"
            yield case(f"MatMul{suffix}", [left, right], {"transpose_a": a, "transpose_b": b})
            batch = np.stack([left, left + 0.5])
            yield case(
                f"BatchMatMul{suffix}",
                [batch, np.stack([right, right - 0.25])],
                {"adj_x": a, "adj_y": b},
            )
            yield case(f"BatchMatMulV2{suffix}", [batch, right], {"adj_x": a, "adj_y": b})
            c = [np.asarray(left + 1j * left[::-1]), np.asarray(right - 0.5j * right)]
            yield case(f"BatchMatMulV2_complex{suffix}", c, {"adj_x": a, "adj_y": b})
    yield case("BatchMatMulV3", [r(2, 1, 2, 3), r(4, 3, 2)], {"Tout": "f8"})
    yield case("SparseMatMul", [r(2, 3, dtype="f4"), r(3, 2, dtype="f4")], {}, second=False)
    einsums: list[tuple[str, list[tuple[int, ...]]]] = [
        ("ab,bc->ac", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("abc->ca", [(2, 3, 4)]),
        ("ab->b", [(2, 3)]),
        ("...ij,...jk->...ik", [(2, 2, 3), (3, 4)]),
        ("aab,bc->ac", [(2, 2, 3), (3, 4)]),
        ("bqhd,bkhd->bhqk", [(2, 2, 2, 3), (2, 3, 2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii->", [(3, 3)]),
    ]
    for index, (equation, shapes) in enumerate(einsums):
        operands = [r(*shape) for shape in shapes]
        yield case(f"Einsum_{index}", [operands], {"equation": equation})
    yield case("MatrixInverse", [values.regular(2, 3, 3)], {})
    yield case("MatrixInverse_adjoint", [values.regular(3, 3)], {"adjoint": True})
    yield case("MatrixDeterminant", [values.regular(2, 3, 3)], {})
    yield case("LogMatrixDeterminant", [values.positive_definite(2, 3, 3)], {}, second=False)
    for adjoint in (False, True):
        yield case(
            f"MatrixSolve_{adjoint:d}", [values.regular(2, 3, 3), r(2, 3, 2)], {"adjoint": adjoint}
        )
        for lower in (False, True):
            name = f"MatrixTriangularSolve_{adjoint:d}{lower:d}"
            matrix = values.regular(3, 3)
            yield case(name, [matrix, r(3, 2)], {"adjoint": adjoint, "lower": lower})
    yield case("Cholesky", [values.positive_definite(2, 3, 3)], {}, symmetric=True, second=False)
    symmetric = values.positive_definite(3, 3)
    basis = values.regular(3, 3)
    distinct = basis @ np.diag([1.0, 4.0, 8.0]) @ np.linalg.inv(basis)
    for vectors in (False, True):
        attrs = {"compute_v": vectors, "Tout": "c16"}
        yield case(f"Eig_{vectors:d}", [distinct], attrs, second=False)
    turning = np.asarray([[1.0, 2.0, 0.3], [-2.0, 1.5, 0.2], [0.1, 0.4, 3.0]])
    yield case("Eig_pairs", [turning], {"compute_v": False, "Tout": "c16"}, second=False)
    yield case("MatrixSquareRoot", [values.positive_definite(2, 3, 3)], {})
    yield case("MatrixSquareRoot_complex", [values.regular(3, 3) + 1j * r(3, 3)], {}, python=False)
    for adjoint in (False, True):
        for lower in (False, True):
            name = f"BandedTriangularSolve_{adjoint:d}{lower:d}"
            bands = r(2, 2, 4)
            bands[:, -1 if lower else 0] += 4
            yield case(name, [bands, r(2, 4, 3)], {"adjoint": adjoint, "lower": lower})
    yield case("BandedTriangularSolve_shared", [bands[:1], r(2, 4, 3)], {"lower": True})
    yield case("SelfAdjointEigV2", [symmetric], {"compute_v": False}, symmetric=True, second=False)


def cases() -> Iterator[Case]:
    """Returns the cases of this file."""
    for group in (_conv, _nn, _linalg):
        yield from group()
