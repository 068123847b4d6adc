"""Cases of element-wise ops, reductions, shapes and indices."""

from collections.abc import Iterator

import numpy as np

from bindings.client.tests.gradient_cases.case import Array, Case, Values, case, ints, scalar

_DOMAINS: dict[str, tuple[float, float]] = {
    "Acos": (-0.9, 0.9),
    "Acosh": (1.2, 3.0),
    "Asin": (-0.9, 0.9),
    "Atanh": (-0.9, 0.9),
    "Digamma": (0.3, 3.0),
    "Erfinv": (-0.9, 0.9),
    "Expint": (0.3, 3.0),
    "Lgamma": (0.3, 3.0),
    "Log": (0.3, 3.0),
    "Log1p": (-0.5, 3.0),
    "Ndtri": (0.1, 0.9),
    "Rsqrt": (0.3, 3.0),
    "Spence": (0.3, 3.0),
    "Sqrt": (0.3, 3.0),
    "Tan": (-1.2, 1.2),
}

_UNARY = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BesselI0",
    "BesselI0e",
    "BesselI1",
    "BesselI1e",
    "BesselJ0",
    "BesselJ1",
    "BesselK0",
    "BesselK0e",
    "BesselK1",
    "BesselK1e",
    "BesselY0",
    "BesselY1",
    "Cos",
    "Cosh",
    "Dawsn",
    "Digamma",
    "Elu",
    "Erf",
    "Erfc",
    "Erfinv",
    "Exp",
    "Expint",
    "Expm1",
    "FresnelCos",
    "FresnelSin",
    "Identity",
    "Inv",
    "L2Loss",
    "Lgamma",
    "Log",
    "Log1p",
    "LogSoftmax",
    "Ndtri",
    "Neg",
    "Reciprocal",
    "Relu",
    "Relu6",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Spence",
    "Sqrt",
    "Square",
    "Tan",
    "Tanh",
    "Snapshot",
]

# Python's registry has no gradient for these.
_NOT_IN_PYTHON = {"Snapshot"}


def _unary() -> Iterator[Case]:
    for op in _UNARY:
        values = Values(op)
        low, high = _DOMAINS.get(
            op, (0.3, 3.0) if op.startswith(("BesselK", "BesselY")) else (-2.0, 2.0)
        )
        point = values.real(2, 3, low=low, high=high)
        # Python has no gradient of SoftsignGrad.
        yield case(op, [point], {}, python=op not in _NOT_IN_PYTHON, second=op != "Softsign")
    complex_ops = (
        "Neg Inv Reciprocal Square Sqrt Rsqrt Exp Expm1 Log Log1p Sinh Cosh Tanh Sin Cos Tan "
        "Asin Acos Atan Asinh Acosh Atanh Sigmoid Conj"
    )
    for op in complex_ops.split():
        name = f"{op}_complex"
        second = op not in {"Sqrt", "Rsqrt"}
        yield case(name, [Values(name).complex(4)], {}, second=second)
    values = Values("parts")
    yield case("Real", [values.complex(3)], {"Tout": "f8"})
    yield case("Imag", [values.complex(3)], {"Tout": "f8"})
    yield case("Angle", [values.complex(3)], {"Tout": "f8"})
    yield case("ComplexAbs", [values.complex(3)], {"Tout": "f8"}, second=False)
    yield case("Complex", [values.real(3), values.real(3)], {"Tout": "c16"})
    yield case("Cast", [values.real(3, dtype="f4")], {"DstT": "f8"})
    yield case("Cast_down", [values.real(3)], {"DstT": "f4"}, numeric=False)
    yield case("Cast_complex", [values.real(3)], {"DstT": "c16"})
    yield case("LeakyRelu", [values.real(4)], {"alpha": 0.3})
    y, dy = values.real(4, low=0.2, high=0.8), values.real(4)
    for op in ["InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"]:
        yield case(op, [y, dy], {})
    for op in ["ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad"]:
        low, high = (-0.9, 2.0) if op in {"EluGrad", "SeluGrad"} else (-2.0, 2.0)
        # The second order of EluGrad and SeluGrad in Python takes another route to the same value.
        # With respect to the features of a ReluGrad the slope is zero, and given as none.
        yield case(
            op,
            [dy, values.real(4, low=low, high=high)],
            {},
            second=op not in {"EluGrad", "SeluGrad"},
        )
    yield case("LeakyReluGrad", [dy, values.real(4)], {"alpha": 0.3})
    yield case("CheckNumerics", [dy], {"message": "m"})
    yield case("CheckNumericsV2", [dy], {"message": "m"})


def _binary() -> Iterator[Case]:
    plain = (
        "Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan Maximum Minimum SquaredDifference Atan2 "
        "Pow Xlogy Xlog1py Xdivy FloorMod"
    )
    shapes = {
        "": ((2, 3), (2, 3)),
        "_row": ((2, 3), (3,)),
        "_column": ((2, 1), (2, 3)),
        "_scalar": ((), (2, 2)),
    }
    for op in plain.split():
        for suffix, (left, right) in shapes.items():
            name = op + suffix
            values = Values(name)
            low = 0.3 if op in {"Pow", "Xlogy", "Xlog1py", "Xdivy"} else -2.0
            x = values.real(*left, low=low)
            y = values.real(*right, low=0.3 if op != "Atan2" else -2.0)
            yield case(name, [x, y], {})
    for op in ["AddV2", "Sub", "Mul", "Div", "RealDiv", "Pow", "SquaredDifference"]:
        name = f"{op}_complex"
        values = Values(name)
        # Python's gradient of SquaredDifference is not the slope of complex numbers.
        numeric = op != "SquaredDifference"
        yield case(name, [values.complex(2, 2), values.complex(2)], {}, numeric=numeric)
    values = Values("gamma")
    positive = values.positive
    yield case("Igamma", [positive(2, 3), positive(3)], {}, second=False)
    yield case("Igammac", [positive(2, 3), positive(3)], {}, second=False)
    yield case(
        "Betainc", [positive(3), positive(3), values.real(3, low=0.2, high=0.8)], {}, slopes=(2,)
    )
    yield case("Polygamma", [np.asarray([1.0, 2.0, 1.0]), positive(3)], {}, slopes=(1,))
    yield case("Zeta", [positive(3) + 1.5, positive(3)], {}, slopes=(1,))
    yield case("NextAfter", [values.real(3), values.real(3)], {})
    mask = np.asarray([True, False, True])
    yield case("Select", [mask, values.real(3), values.real(3)], {})
    yield case("Select_rows", [mask, values.real(3, 2), values.real(3, 2)], {})
    yield case("SelectV2", [mask, values.real(2, 1), values.real(3)], {})
    x = np.asarray([-2.0, -0.5, 0.25, 3.0])
    yield case("ClipByValue", [x, np.asarray(-1.0), np.asarray(1.0)], {})
    yield case("Cross", [values.real(2, 3), values.real(2, 3)], {})
    yield case("AddN", [[values.real(2), values.real(2), values.real(2)]], {})
    yield case("IdentityN", [[values.real(2), values.real(3)]], {})


def _reduce() -> Iterator[Case]:
    for op in ["Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"]:
        for suffix, axes, keep in (
            ("", ints(1), False),
            ("_keep", ints(0, 2), True),
            ("_all", ints(0, 1, 2), False),
            ("_negative", scalar(-1), False),
        ):
            name = op + suffix
            values = Values(name)
            yield case(
                name,
                [values.distinct(2, 3, 2) + 0.1, axes],
                {"keep_dims": keep},
                second=op not in {"Max", "Min"},
            )
    values = Values("complex_sum")
    yield case("Sum_complex", [values.complex(2, 3), ints(1)], {})
    yield case("Mean_complex", [values.complex(2, 3), ints(1)], {})
    zero = np.asarray([[0.0, 2.0, 3.0], [1.5, 0.0, 0.0]])
    yield case("Prod_zeros", [zero, ints(1)], {})
    for exclusive in (False, True):
        for reverse in (False, True):
            attrs = {"exclusive": exclusive, "reverse": reverse}
            suffix = f"_{exclusive:d}{reverse:d}"
            for op in ["Cumsum", "Cumprod", "CumulativeLogsumexp"]:
                second = op != "CumulativeLogsumexp"
                name = op + suffix
                yield case(
                    name,
                    [Values(name).real(3, 2, low=0.3), scalar(0)],
                    attrs,
                    second=second,
                    numeric=not (exclusive and op == "CumulativeLogsumexp"),
                )
    ids = ints(0, 0, 1, 3, 3)
    for op in ["SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"]:
        name = op
        yield case(
            name,
            [Values(name).distinct(5, 2), ids],
            {},
            second=op not in {"SegmentMax", "SegmentMin"},
        )
    for op in [
        "UnsortedSegmentSum",
        "UnsortedSegmentMax",
        "UnsortedSegmentMin",
        "UnsortedSegmentProd",
    ]:
        data = Values(op).distinct(5, 2) + 0.1
        yield case(
            op,
            [data, ints(2, -1, 0, 2, 0), scalar(4)],
            {},
            second=op == "UnsortedSegmentSum",
            # A segment without elements has the least or the greatest number.
            numeric=op[-3:] not in {"Max", "Min"},
        )
        if op[-3:] in {"Max", "Min"}:
            yield case(f"{op}_full", [data, ints(2, -1, 0, 2, 1), scalar(3)], {}, second=False)
    yield case(
        "UnsortedSegmentProd_zero",
        [np.asarray([0.0, 2.0, 3.0, 0.0, 0.0]), ints(0, 0, 1, 2, 2), scalar(3)],
        {},
        second=False,
    )
    zeros = np.asarray([1.5, 0.0, 2.0, 0.0, 0.0])
    yield case("SegmentProd_zero", [zeros, ints(0, 0, 1, 2, 2)], {}, second=False)
    rising = np.asarray([[3.0, 1.0, 4.2, 1.5, 5.1], [2.0, 7.0, 1.0, 8.6, 2.5]])
    double = {"output_dtype": "f8"}
    yield case("IsotonicRegression", [rising], double, second=False)
    # Python's gradient of a row is a column.
    yield case("IsotonicRegression_row", [rising[0]], double, python=False, second=False)
    for reverse in (False, True):
        yield case(
            f"NthElement_{reverse:d}",
            [values.distinct(3, 5), scalar(1)],
            {"reverse": reverse},
            second=False,
        )
    for op in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]:
        data = Values(op).real(4, 2)
        yield case(op, [data, ints(0, 2, 2, 3), ints(0, 0, 1, 2)], {}, second=False)
        yield case(
            f"{op}WithNumSegments",
            [data, ints(0, 2, 3), ints(0, 0, 2), scalar(4)],
            {},
            second=False,
        )


def _array() -> Iterator[Case]:
    values = Values("array")
    r = values.real
    yield case("Reshape", [r(2, 3), ints(3, 2)], {})
    yield case("ExpandDims", [r(2, 3), scalar(1)], {})
    yield case("Squeeze", [r(2, 1, 3)], {"squeeze_dims": [1]})
    yield case("EnsureShape", [r(2, 3)], {"shape": [2, 3]})
    yield case("Transpose", [r(2, 3, 4), ints(2, 0, 1)], {})
    yield case("ConjugateTranspose", [values.complex(2, 3), ints(1, 0)], {})
    yield case("Concat", [scalar(1), [r(2, 1), r(2, 3)]], {})
    yield case("ConcatV2", [[r(2, 1), r(2, 3)], scalar(-1)], {})
    yield case("Pack", [[r(2, 2), r(2, 2)]], {"axis": 1})
    yield case("Unpack", [r(2, 3)], {"num": 3, "axis": 1})
    yield case("Split", [scalar(1), r(2, 4)], {"num_split": 2})
    yield case("SplitV", [r(2, 4), ints(1, 3), scalar(1)], {"num_split": 2})
    yield case("Slice", [r(3, 4), ints(1, 0), ints(2, 3)], {})
    yield case(
        "StridedSlice",
        [r(4, 5), ints(0, 1), ints(3, 5), ints(1, 2)],
        {"begin_mask": 1, "shrink_axis_mask": 0},
    )
    yield case(
        "StridedSlice_shrink",
        [r(4, 5), ints(-1, 4), ints(0, 0), ints(1, -2)],
        {"shrink_axis_mask": 1, "end_mask": 2},
    )
    yield case("StridedSliceGrad", [ints(4), ints(1), ints(4), ints(2), r(2)], {})
    yield case("Pad", [r(2, 3), np.asarray([[1, 0], [0, 2]], "i4")], {})
    yield case(
        "PadV2", [r(2, 3), np.asarray([[1, 0], [0, 2]], "i4"), np.asarray(1.5)], {}, numeric=True
    )
    for mode in ("REFLECT", "SYMMETRIC"):
        yield case(
            f"MirrorPad_{mode}", [r(3, 3), np.asarray([[1, 2], [0, 1]], "i4")], {"mode": mode}
        )
    yield case("MirrorPadGrad", [r(5, 4), np.asarray([[1, 1], [0, 1]], "i4")], {"mode": "REFLECT"})
    yield case("Tile", [r(2, 3), ints(2, 1)], {})
    yield case("BroadcastTo", [r(2, 1), ints(3, 2, 4)], {})
    yield case("Fill", [ints(2, 3), np.asarray(1.5)], {})
    yield case("Reverse", [r(2, 3), np.asarray([False, True])], {})
    yield case("ReverseV2", [r(2, 3), ints(0)], {})
    yield case("ReverseSequence", [r(2, 4), ints(2, 3)], {"seq_dim": 1, "batch_dim": 0})
    yield case("Roll", [r(3, 4), ints(1, -2), ints(0, 1)], {})
    yield case("TopKV2", [values.distinct(2, 2, 5), scalar(3)], {}, second=False)
    yield case("ApproxTopK", [values.distinct(2, 2, 5, dtype="f4")], {"k": 3}, second=False)
    yield case("DepthToSpace", [r(1, 2, 2, 4)], {"block_size": 2})
    yield case("SpaceToDepth", [r(1, 4, 4, 1)], {"block_size": 2})
    yield case(
        "SpaceToBatch", [r(1, 4, 2, 1), np.asarray([[0, 0], [1, 1]], "i4")], {"block_size": 2}
    )
    yield case(
        "BatchToSpace", [r(4, 2, 2, 1), np.asarray([[0, 1], [1, 0]], "i4")], {"block_size": 2}
    )
    yield case("SpaceToBatchND", [r(1, 4, 2), ints(2), np.asarray([[1, 1]], "i4")], {})
    yield case("BatchToSpaceND", [r(2, 3, 2), ints(2), np.asarray([[1, 0]], "i4")], {})
    yield case(
        "ExtractImagePatches",
        [r(2, 4, 5, 2)],
        {"ksizes": [1, 2, 3, 1], "strides": [1, 1, 2, 1], "rates": [1, 1, 1, 1], "padding": "SAME"},
        second=False,
    )
    yield case(
        "ExtractVolumePatches",
        [r(2, 3, 4, 5, 2)],
        {"ksizes": [1, 2, 2, 3, 1], "strides": [1, 1, 1, 2, 1], "padding": "SAME"},
        second=False,
    )
    yield case("Diag", [r(3)], {})
    yield case("DiagPart", [r(3, 3)], {})
    yield case("MatrixBandPart", [r(2, 3, 3), np.asarray(1, "i8"), np.asarray(0, "i8")], {})
    yield case("MatrixDiag", [r(2, 3)], {})
    yield case("MatrixDiagV2", [r(2, 3), scalar(1), scalar(4), scalar(4), np.asarray(0.0)], {})
    yield case("MatrixDiagV3", [r(2, 3), scalar(1), scalar(4), scalar(4), np.asarray(0.0)], {})
    yield case("MatrixDiagPart", [r(2, 3, 3)], {})
    yield case("MatrixDiagPartV2", [r(2, 3, 3), scalar(1), np.asarray(0.0)], {})
    yield case("MatrixDiagPartV3", [r(2, 3, 3), scalar(-1), np.asarray(0.0)], {})
    yield case("MatrixSetDiag", [r(2, 3, 3), r(2, 3)], {})
    yield case("MatrixSetDiagV2", [r(2, 3, 3), r(2, 2), scalar(1)], {})
    yield case("MatrixSetDiagV3", [r(2, 3, 3), r(2, 2), scalar(1)], {})
    yield case("PlaceholderWithDefault", [r(2)], {"shape": [2]})
    yield case("Print", [r(2), [r(1)]], {"first_n": 0, "message": ""}, numeric=True)
    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3"):
        limits: list[Array | list[Array]] = [np.asarray(-2.0), np.asarray(2.0)]
        if op == "QuantizeAndDequantizeV3":
            limits.append(scalar(8))
        yield case(op, [r(4), *limits], {"range_given": True}, numeric=False, second=False)
    low, high = np.asarray(-1.0), np.asarray(1.2)
    yield case(
        "QuantizeAndDequantizeV4",
        [r(2, 5), low, high],
        {"range_given": True},
        numeric=False,
        second=False,
    )
    f = values.single
    yield case(
        "FakeQuantWithMinMaxArgs", [f(6)], {"min": -1.0, "max": 1.0}, numeric=False, second=False
    )
    yield case(
        "FakeQuantWithMinMaxVars",
        [f(6), np.asarray(-1, "f4"), np.asarray(1, "f4")],
        {},
        numeric=False,
        second=False,
    )
    yield case(
        "FakeQuantWithMinMaxVarsPerChannel",
        [f(3, 2), np.asarray([-1, -1], "f4"), np.asarray([1, 1], "f4")],
        {},
        numeric=False,
        second=False,
    )


def _index() -> Iterator[Case]:
    values = Values("index")
    r = values.real
    yield case("Gather", [r(4, 2), ints(1, 3, 1)], {})
    yield case("GatherV2", [r(4, 2), np.asarray([[1, 3], [1, 0]], "i4"), scalar(0)], {})
    yield case("GatherV2_axis", [r(2, 4, 3), np.asarray([[1, 3], [1, 0]], "i4"), scalar(1)], {})
    yield case("GatherV2_last", [r(2, 4), ints(2, 2), scalar(-1)], {})
    yield case(
        "GatherV2_batch",
        [r(2, 4, 3), np.asarray([[1, 3], [1, 0]], "i4"), scalar(1)],
        {"batch_dims": 1},
    )
    yield case(
        "GatherV2_batch_axis",
        [r(2, 3, 4), np.asarray([[1, 3], [1, 0]], "i4"), scalar(2)],
        {"batch_dims": 1},
    )
    places = np.asarray([[0, 1], [1, 1], [0, 1]], "i4")
    yield case("GatherNd", [r(2, 2, 3), places], {})
    yield case("ScatterNd", [places, r(3, 2), ints(2, 2, 2)], {})
    yield case("ScatterNdNonAliasingAdd", [r(2, 2), places, r(3)], {})
    unique = np.asarray([[0, 1], [1, 1]], "i4")
    for op in [
        "TensorScatterAdd",
        "TensorScatterSub",
        "TensorScatterUpdate",
        "TensorScatterMax",
        "TensorScatterMin",
    ]:
        yield case(
            op,
            [values.distinct(2, 2), unique, values.distinct(2) + 0.1],
            {},
            second=op[-3:] not in {"Max", "Min"},
        )
    yield case("TensorStridedSliceUpdate", [r(4), ints(1), ints(3), ints(1), r(2)], {})
    yield case(
        "SparseToDense", [np.asarray([[0, 1], [1, 0]], "i4"), ints(2, 3), r(2), np.asarray(0.5)], {}
    )
    yield case("DynamicPartition", [r(5, 2), ints(0, 2, 0, 1, 2)], {"num_partitions": 3})
    yield case("DynamicStitch", [[ints(0, 2), ints(1, 3)], [r(2, 2), r(2, 2)]], {})
    # Python gives a value that another one has replaced the gradient of its place: not its slope.
    yield case("DynamicStitch_twice", [[ints(0, 2), ints(2, 1)], [r(2), r(2)]], {}, python=False)
    yield case("ParallelDynamicStitch", [[ints(0, 2), ints(1)], [r(2, 2), r(1, 2)]], {})


def cases() -> Iterator[Case]:
    """Returns the cases of this file."""
    for group in (_unary, _binary, _reduce, _array, _index):
        yield from group()
