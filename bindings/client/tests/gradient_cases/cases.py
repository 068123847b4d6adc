"""Which ops are differentiated, at which points.

A case is the call of one op. Inputs are double where the op has a kernel for it, so that numeric
differences are exact to about ten digits.
"""

import dataclasses
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """One call of an op.

    Attributes:
      name: of the case, the op's with what is special.
      op: type of op.
      inputs: in the order of the op's definition; a list for a list input.
      attrs: attributes that inputs do not determine.
      numeric: whether the gradient is the slope of the op at this point. It is not for ops that
        define their gradient otherwise, as straight-through quantization.
      python: whether Python has the gradient, and the same one.
      second: whether the gradient's own gradient is compared.
    """

    name: str
    op: str
    inputs: list[Array | list[Array]]
    attrs: dict[str, Any]
    numeric: bool = True
    python: bool = True
    second: bool = True


class Values:
    """Reproducible values of one case."""

    def __init__(self, name: str) -> None:
        """Begins the sequence of a name."""
        self._random = np.random.default_rng(zlib.crc32(name.encode()))

    def real(self, *shape: int, low: float = -2.0, high: float = 2.0, dtype: str = "f8") -> Array:
        """Returns values between two limits, none of them close to a multiple of 1/2."""
        values = self._random.uniform(low, high, shape)
        steps = np.round(values * 2) / 2
        near = np.abs(values - steps) < 0.02
        return np.asarray(np.where(near, values + 0.05, values), dtype)

    def complex(self, *shape: int, dtype: str = "c16") -> Array:
        """Returns complex values."""
        return np.asarray(self.real(*shape) + 1j * self.real(*shape), dtype)

    def distinct(self, *shape: int, dtype: str = "f8") -> Array:
        """Returns values of which no two are close."""
        count = int(np.prod(shape))
        return np.asarray((self._random.permutation(count) - count / 3) / 4, dtype).reshape(shape)

    def positive_definite(self, *shape: int) -> Array:
        """Returns symmetric matrices with eigenvalues above zero."""
        root = self.real(*shape)
        return root @ np.swapaxes(root, -1, -2) + 2 * np.eye(shape[-1])

    def regular(self, *shape: int) -> Array:
        """Returns matrices that can be inverted well."""
        return self.real(*shape) + 4 * np.eye(shape[-1])


def ints(*values: int) -> Array:
    """Returns a vector of 32-bit integers."""
    return np.asarray(values, "i4")


def scalar(value: int) -> Array:
    """Returns a 32-bit integer."""
    return np.asarray(value, "i4")


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

_UNARY = """
Abs Acos Acosh Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1
BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Cos Cosh Dawsn Digamma Elu Erf Erfc Erfinv
Exp Expint Expm1 FresnelCos FresnelSin Identity Inv L2Loss Lgamma Log Log1p LogSoftmax Ndtri Neg
Reciprocal Relu Relu6 Rsqrt Selu Sigmoid Sin Sinh Softmax Softplus Softsign Spence Sqrt Square
Tan Tanh Snapshot
""".split()

# Python's registry has no gradient for these.
_NOT_IN_PYTHON = {"Snapshot"}


def _unary() -> Iterator[Case]:
    for op in _UNARY:
        values = Values(op)
        low, high = _DOMAINS.get(op, (0.3, 3.0) if op.startswith(("BesselK", "BesselY")) else (-2.0, 2.0))
        point = values.real(2, 3, low=low, high=high)
        # Python has no gradient of SoftsignGrad.
        yield Case(op, op, [point], {}, python=op not in _NOT_IN_PYTHON, second=op != "Softsign")
    complex_ops = "Neg Inv Reciprocal Square Sqrt Rsqrt Exp Expm1 Log Log1p Sinh Cosh Tanh Sin Cos Tan Asin Acos Atan Asinh Acosh Atanh Sigmoid Conj"
    for op in complex_ops.split():
        name = f"{op}_complex"
        second = op not in {"Sqrt", "Rsqrt"}
        yield Case(name, op, [Values(name).complex(4)], {}, numeric=False, second=second)
    values = Values("parts")
    yield Case("Real", "Real", [values.complex(3)], {"Tout": "f8"}, numeric=False)
    yield Case("Imag", "Imag", [values.complex(3)], {"Tout": "f8"}, numeric=False)
    yield Case("Angle", "Angle", [values.complex(3)], {"Tout": "f8"}, numeric=False)
    yield Case("ComplexAbs", "ComplexAbs", [values.complex(3)], {"Tout": "f8"}, numeric=False, second=False)
    yield Case("Complex", "Complex", [values.real(3), values.real(3)], {"Tout": "c16"}, numeric=False)
    yield Case("Cast", "Cast", [values.real(3, dtype="f4")], {"DstT": "f8"})
    yield Case("Cast_down", "Cast", [values.real(3)], {"DstT": "f4"}, numeric=False)
    yield Case("Cast_complex", "Cast", [values.real(3)], {"DstT": "c16"}, numeric=False)
    yield Case("LeakyRelu", "LeakyRelu", [values.real(4)], {"alpha": 0.3})
    y, dy = values.real(4, low=0.2, high=0.8), values.real(4)
    for op in "InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad".split():
        yield Case(op, op, [y, dy], {})
    for op in "ReluGrad Relu6Grad EluGrad SeluGrad SoftplusGrad".split():
        low, high = (-0.9, 2.0) if op in {"EluGrad", "SeluGrad"} else (-2.0, 2.0)
        # The second order of EluGrad and SeluGrad in Python takes another route to the same value.
        # With respect to the features of a ReluGrad the slope is zero, and given as none.
        yield Case(op, op, [dy, values.real(4, low=low, high=high)], {}, python=op not in {"EluGrad", "SeluGrad"})
    yield Case("LeakyReluGrad", "LeakyReluGrad", [dy, values.real(4)], {"alpha": 0.3})
    yield Case("CheckNumerics", "CheckNumerics", [dy], {"message": "m"})
    yield Case("CheckNumericsV2", "CheckNumericsV2", [dy], {"message": "m"})


def _binary() -> Iterator[Case]:
    plain = "Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan Maximum Minimum SquaredDifference Atan2 Pow Xlogy Xlog1py Xdivy FloorMod"
    shapes = {"": ((2, 3), (2, 3)), "_row": ((2, 3), (3,)), "_column": ((2, 1), (2, 3)), "_scalar": ((), (2, 2))}
    for op in plain.split():
        for suffix, (left, right) in shapes.items():
            name = op + suffix
            values = Values(name)
            low = 0.3 if op in {"Pow", "Xlogy", "Xlog1py", "Xdivy"} else -2.0
            x = values.real(*left, low=low)
            y = values.real(*right, low=0.3 if op != "Atan2" else -2.0)
            yield Case(name, op, [x, y], {})
    for op in "AddV2 Sub Mul Div RealDiv Pow SquaredDifference".split():
        name = f"{op}_complex"
        values = Values(name)
        yield Case(name, op, [values.complex(2, 2), values.complex(2)], {}, numeric=False)
    values = Values("gamma")
    positive = lambda *shape: values.real(*shape, low=0.4, high=3.0)  # noqa: E731
    yield Case("Igamma", "Igamma", [positive(2, 3), positive(3)], {}, second=False)
    yield Case("Igammac", "Igammac", [positive(2, 3), positive(3)], {}, second=False)
    yield Case("Betainc", "Betainc", [positive(3), positive(3), values.real(3, low=0.2, high=0.8)], {}, numeric=False)
    yield Case("Polygamma", "Polygamma", [np.asarray([1.0, 2.0, 1.0]), positive(3)], {}, numeric=False)
    yield Case("Zeta", "Zeta", [positive(3) + 1.5, positive(3)], {}, numeric=False)
    yield Case("NextAfter", "NextAfter", [values.real(3), values.real(3)], {})
    mask = np.asarray([True, False, True])
    yield Case("Select", "Select", [mask, values.real(3), values.real(3)], {})
    yield Case("Select_rows", "Select", [mask, values.real(3, 2), values.real(3, 2)], {})
    yield Case("SelectV2", "SelectV2", [mask, values.real(2, 1), values.real(3)], {})
    x = np.asarray([-2.0, -0.5, 0.25, 3.0])
    yield Case("ClipByValue", "ClipByValue", [x, np.asarray(-1.0), np.asarray(1.0)], {})
    yield Case("Cross", "Cross", [values.real(2, 3), values.real(2, 3)], {})
    yield Case("AddN", "AddN", [[values.real(2), values.real(2), values.real(2)]], {})
    yield Case("IdentityN", "IdentityN", [[values.real(2), values.real(3)]], {})


def _reduce() -> Iterator[Case]:
    for op in "Sum Mean Max Min Prod EuclideanNorm".split():
        for suffix, axes, keep in (("", ints(1), False), ("_keep", ints(0, 2), True), ("_all", ints(0, 1, 2), False), ("_negative", scalar(-1), False)):
            name = op + suffix
            values = Values(name)
            yield Case(name, op, [values.distinct(2, 3, 2) + 0.1, axes], {"keep_dims": keep}, second=op not in {"Max", "Min"})
    values = Values("complex_sum")
    yield Case("Sum_complex", "Sum", [values.complex(2, 3), ints(1)], {}, numeric=False)
    yield Case("Mean_complex", "Mean", [values.complex(2, 3), ints(1)], {}, numeric=False)
    zero = np.asarray([[0.0, 2.0, 3.0], [1.5, 0.0, 0.0]])
    yield Case("Prod_zeros", "Prod", [zero, ints(1)], {})
    for exclusive in (False, True):
        for reverse in (False, True):
            attrs = {"exclusive": exclusive, "reverse": reverse}
            suffix = f"_{exclusive:d}{reverse:d}"
            for op in "Cumsum Cumprod CumulativeLogsumexp".split():
                second = op != "CumulativeLogsumexp"
                name = op + suffix
                yield Case(name, op, [Values(name).real(3, 2, low=0.3), scalar(0)], attrs, second=second, numeric=not (exclusive and op == "CumulativeLogsumexp"))
    ids = ints(0, 0, 1, 3, 3)
    for op in "SegmentSum SegmentMean SegmentMax SegmentMin".split():
        name = op
        yield Case(name, op, [Values(name).distinct(5, 2), ids], {}, second=op not in {"SegmentMax", "SegmentMin"})
    for op in "UnsortedSegmentSum UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd".split():
        data = Values(op).distinct(5, 2) + 0.1
        yield Case(op, op, [data, ints(2, -1, 0, 2, 0), scalar(4)], {}, second=op == "UnsortedSegmentSum", numeric=op[-3:] not in {"Max", "Min"})
    yield Case("UnsortedSegmentProd_zero", "UnsortedSegmentProd", [np.asarray([0.0, 2.0, 3.0, 0.0, 0.0]), ints(0, 0, 1, 2, 2), scalar(3)], {}, second=False)
    for op in "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN".split():
        data = Values(op).real(4, 2)
        yield Case(op, op, [data, ints(0, 2, 2, 3), ints(0, 0, 1, 2)], {}, second=False)
        yield Case(f"{op}WithNumSegments", f"{op}WithNumSegments", [data, ints(0, 2, 3), ints(0, 0, 2), scalar(4)], {}, second=False)


def _array() -> Iterator[Case]:
    values = Values("array")
    r = values.real
    yield Case("Reshape", "Reshape", [r(2, 3), ints(3, 2)], {})
    yield Case("ExpandDims", "ExpandDims", [r(2, 3), scalar(1)], {})
    yield Case("Squeeze", "Squeeze", [r(2, 1, 3)], {"squeeze_dims": [1]})
    yield Case("EnsureShape", "EnsureShape", [r(2, 3)], {"shape": [2, 3]})
    yield Case("Transpose", "Transpose", [r(2, 3, 4), ints(2, 0, 1)], {})
    yield Case("ConjugateTranspose", "ConjugateTranspose", [values.complex(2, 3), ints(1, 0)], {}, numeric=False)
    yield Case("Concat", "Concat", [scalar(1), [r(2, 1), r(2, 3)]], {})
    yield Case("ConcatV2", "ConcatV2", [[r(2, 1), r(2, 3)], scalar(-1)], {})
    yield Case("Pack", "Pack", [[r(2, 2), r(2, 2)]], {"axis": 1})
    yield Case("Unpack", "Unpack", [r(2, 3)], {"num": 3, "axis": 1})
    yield Case("Split", "Split", [scalar(1), r(2, 4)], {"num_split": 2})
    yield Case("SplitV", "SplitV", [r(2, 4), ints(1, 3), scalar(1)], {"num_split": 2})
    yield Case("Slice", "Slice", [r(3, 4), ints(1, 0), ints(2, 3)], {})
    yield Case("StridedSlice", "StridedSlice", [r(4, 5), ints(0, 1), ints(3, 5), ints(1, 2)], {"begin_mask": 1, "shrink_axis_mask": 0})
    yield Case("StridedSlice_shrink", "StridedSlice", [r(4, 5), ints(-1, 4), ints(0, 0), ints(1, -2)], {"shrink_axis_mask": 1, "end_mask": 2})
    yield Case("StridedSliceGrad", "StridedSliceGrad", [ints(4), ints(1), ints(4), ints(2), r(2)], {})
    yield Case("Pad", "Pad", [r(2, 3), np.asarray([[1, 0], [0, 2]], "i4")], {})
    yield Case("PadV2", "PadV2", [r(2, 3), np.asarray([[1, 0], [0, 2]], "i4"), np.asarray(1.5)], {}, numeric=True)
    for mode in ("REFLECT", "SYMMETRIC"):
        yield Case(f"MirrorPad_{mode}", "MirrorPad", [r(3, 3), np.asarray([[1, 2], [0, 1]], "i4")], {"mode": mode})
    yield Case("MirrorPadGrad", "MirrorPadGrad", [r(5, 4), np.asarray([[1, 1], [0, 1]], "i4")], {"mode": "REFLECT"})
    yield Case("Tile", "Tile", [r(2, 3), ints(2, 1)], {})
    yield Case("BroadcastTo", "BroadcastTo", [r(2, 1), ints(3, 2, 4)], {})
    yield Case("Fill", "Fill", [ints(2, 3), np.asarray(1.5)], {})
    yield Case("Reverse", "Reverse", [r(2, 3), np.asarray([False, True])], {})
    yield Case("ReverseV2", "ReverseV2", [r(2, 3), ints(0)], {})
    yield Case("ReverseSequence", "ReverseSequence", [r(2, 4), ints(2, 3)], {"seq_dim": 1, "batch_dim": 0})
    yield Case("Roll", "Roll", [r(3, 4), ints(1, -2), ints(0, 1)], {})
    yield Case("TopKV2", "TopKV2", [values.distinct(2, 2, 5), scalar(3)], {}, second=False)
    yield Case("DepthToSpace", "DepthToSpace", [r(1, 2, 2, 4)], {"block_size": 2})
    yield Case("SpaceToDepth", "SpaceToDepth", [r(1, 4, 4, 1)], {"block_size": 2})
    yield Case("SpaceToBatch", "SpaceToBatch", [r(1, 4, 2, 1), np.asarray([[0, 0], [1, 1]], "i4")], {"block_size": 2})
    yield Case("BatchToSpace", "BatchToSpace", [r(4, 2, 2, 1), np.asarray([[0, 1], [1, 0]], "i4")], {"block_size": 2})
    yield Case("SpaceToBatchND", "SpaceToBatchND", [r(1, 4, 2), ints(2), np.asarray([[1, 1]], "i4")], {})
    yield Case("BatchToSpaceND", "BatchToSpaceND", [r(2, 3, 2), ints(2), np.asarray([[1, 0]], "i4")], {})
    yield Case("ExtractImagePatches", "ExtractImagePatches", [r(2, 4, 5, 2)], {"ksizes": [1, 2, 3, 1], "strides": [1, 1, 2, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}, second=False)
    yield Case("Diag", "Diag", [r(3)], {})
    yield Case("DiagPart", "DiagPart", [r(3, 3)], {})
    yield Case("MatrixBandPart", "MatrixBandPart", [r(2, 3, 3), np.asarray(1, "i8"), np.asarray(0, "i8")], {})
    yield Case("MatrixDiag", "MatrixDiag", [r(2, 3)], {})
    yield Case("MatrixDiagV2", "MatrixDiagV2", [r(2, 3), scalar(1), scalar(4), scalar(4), np.asarray(0.0)], {})
    yield Case("MatrixDiagV3", "MatrixDiagV3", [r(2, 3), scalar(1), scalar(4), scalar(4), np.asarray(0.0)], {})
    yield Case("MatrixDiagPart", "MatrixDiagPart", [r(2, 3, 3)], {})
    yield Case("MatrixDiagPartV2", "MatrixDiagPartV2", [r(2, 3, 3), scalar(1), np.asarray(0.0)], {})
    yield Case("MatrixDiagPartV3", "MatrixDiagPartV3", [r(2, 3, 3), scalar(-1), np.asarray(0.0)], {})
    yield Case("MatrixSetDiag", "MatrixSetDiag", [r(2, 3, 3), r(2, 3)], {})
    yield Case("MatrixSetDiagV2", "MatrixSetDiagV2", [r(2, 3, 3), r(2, 2), scalar(1)], {})
    yield Case("MatrixSetDiagV3", "MatrixSetDiagV3", [r(2, 3, 3), r(2, 2), scalar(1)], {})
    yield Case("PlaceholderWithDefault", "PlaceholderWithDefault", [r(2)], {"shape": [2]})
    yield Case("Print", "Print", [r(2), [r(1)]], {"first_n": 0, "message": ""}, numeric=True)
    for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3"):
        limits: list[Array | list[Array]] = [np.asarray(-2.0), np.asarray(2.0)]
        if op == "QuantizeAndDequantizeV3":
            limits.append(scalar(8))
        yield Case(op, op, [r(4), *limits], {"range_given": True}, numeric=False, second=False)
    f = lambda *shape: r(*shape, dtype="f4")  # noqa: E731
    yield Case("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgs", [f(6)], {"min": -1.0, "max": 1.0}, numeric=False, second=False)
    yield Case("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVars", [f(6), np.asarray(-1, "f4"), np.asarray(1, "f4")], {}, numeric=False, second=False)
    yield Case("FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannel", [f(3, 2), np.asarray([-1, -1], "f4"), np.asarray([1, 1], "f4")], {}, numeric=False, second=False)


def _index() -> Iterator[Case]:
    values = Values("index")
    r = values.real
    yield Case("Gather", "Gather", [r(4, 2), ints(1, 3, 1)], {})
    yield Case("GatherV2", "GatherV2", [r(4, 2), np.asarray([[1, 3], [1, 0]], "i4"), scalar(0)], {})
    yield Case("GatherV2_axis", "GatherV2", [r(2, 4, 3), np.asarray([[1, 3], [1, 0]], "i4"), scalar(1)], {})
    yield Case("GatherV2_last", "GatherV2", [r(2, 4), ints(2, 2), scalar(-1)], {})
    yield Case("GatherV2_batch", "GatherV2", [r(2, 4, 3), np.asarray([[1, 3], [1, 0]], "i4"), scalar(1)], {"batch_dims": 1})
    yield Case("GatherV2_batch_axis", "GatherV2", [r(2, 3, 4), np.asarray([[1, 3], [1, 0]], "i4"), scalar(2)], {"batch_dims": 1})
    places = np.asarray([[0, 1], [1, 1], [0, 1]], "i4")
    yield Case("GatherNd", "GatherNd", [r(2, 2, 3), places], {})
    yield Case("ScatterNd", "ScatterNd", [places, r(3, 2), ints(2, 2, 2)], {})
    yield Case("ScatterNdNonAliasingAdd", "ScatterNdNonAliasingAdd", [r(2, 2), places, r(3)], {})
    unique = np.asarray([[0, 1], [1, 1]], "i4")
    for op in "TensorScatterAdd TensorScatterSub TensorScatterUpdate TensorScatterMax TensorScatterMin".split():
        yield Case(op, op, [values.distinct(2, 2), unique, values.distinct(2) + 0.1], {}, second=op[-3:] not in {"Max", "Min"})
    yield Case("TensorStridedSliceUpdate", "TensorStridedSliceUpdate", [r(4), ints(1), ints(3), ints(1), r(2)], {})
    yield Case("SparseToDense", "SparseToDense", [np.asarray([[0, 1], [1, 0]], "i4"), ints(2, 3), r(2), np.asarray(0.5)], {})
    yield Case("DynamicPartition", "DynamicPartition", [r(5, 2), ints(0, 2, 0, 1, 2)], {"num_partitions": 3})
    yield Case("DynamicStitch", "DynamicStitch", [[ints(0, 2), ints(1, 3)], [r(2, 2), r(2, 2)]], {})
    # Python gives a value that another one has replaced the gradient of its place; the slope is zero.
    yield Case("DynamicStitch_twice", "DynamicStitch", [[ints(0, 2), ints(2, 1)], [r(2), r(2)]], {}, python=False)
    yield Case("ParallelDynamicStitch", "ParallelDynamicStitch", [[ints(0, 2), ints(1)], [r(2, 2), r(1, 2)]], {})


def _conv() -> Iterator[Case]:
    values = Values("conv")
    r = values.real
    for padding in ("SAME", "VALID"):
        for strides in ([1, 1, 1, 1], [1, 2, 2, 1]):
            name = f"Conv2D_{padding}_{strides[1]}"
            attrs: dict[str, Any] = {"strides": strides, "padding": padding}
            yield Case(name, "Conv2D", [r(2, 5, 4, 2), r(3, 2, 2, 3)], attrs)
    yield Case("Conv2D_explicit", "Conv2D", [r(1, 4, 4, 1), r(2, 2, 1, 2)], {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]})
    same = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    yield Case("Conv2DBackpropInput", "Conv2DBackpropInput", [ints(1, 4, 4, 2), r(2, 2, 2, 3), r(1, 4, 4, 3)], same)
    yield Case("Conv2DBackpropFilter", "Conv2DBackpropFilter", [r(1, 4, 4, 2), ints(2, 2, 2, 3), r(1, 4, 4, 3)], same)
    yield Case("DepthwiseConv2dNative", "DepthwiseConv2dNative", [r(1, 4, 4, 2), r(2, 2, 2, 2)], same)
    yield Case("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropInput", [ints(1, 4, 4, 2), r(2, 2, 2, 2), r(1, 4, 4, 4)], same)
    yield Case("DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropFilter", [r(1, 4, 4, 2), ints(2, 2, 2, 2), r(1, 4, 4, 4)], same)
    same3 = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    yield Case("Conv3D", "Conv3D", [r(1, 3, 3, 3, 2), r(2, 2, 2, 2, 2)], same3)
    yield Case("Conv3DBackpropInputV2", "Conv3DBackpropInputV2", [ints(1, 3, 3, 3, 1), r(2, 2, 2, 1, 2), r(1, 3, 3, 3, 2)], same3)
    yield Case("Conv3DBackpropFilterV2", "Conv3DBackpropFilterV2", [r(1, 3, 3, 3, 1), ints(2, 2, 2, 1, 2), r(1, 3, 3, 3, 2)], same3)
    yield Case("Dilation2D", "Dilation2D", [values.distinct(1, 4, 4, 1), r(2, 2, 1)], {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}, second=False)
    pool = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    pool3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    yield Case("AvgPool", "AvgPool", [r(1, 5, 4, 2)], pool)
    yield Case("AvgPoolGrad", "AvgPoolGrad", [ints(1, 4, 4, 1), r(1, 2, 2, 1)], pool)
    yield Case("AvgPool3D", "AvgPool3D", [r(1, 3, 4, 4, 1, dtype="f4")], pool3)
    yield Case("AvgPool3DGrad", "AvgPool3DGrad", [ints(1, 4, 4, 4, 1), r(1, 2, 2, 2, 1, dtype="f4")], pool3)
    big, small = values.distinct(1, 4, 4, 1), np.zeros((1, 2, 2, 1))
    for row in range(2):
        for column in range(2):
            small[0, row, column, 0] = big[0, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, 0].max()
    yield Case("MaxPool", "MaxPool", [values.distinct(1, 5, 4, 2)], pool)
    yield Case("MaxPoolGrad", "MaxPoolGrad", [big, small, r(1, 2, 2, 1)], pool, second=False)
    yield Case("MaxPoolGradGrad", "MaxPoolGradGrad", [big, small, r(1, 4, 4, 1)], pool, second=False)
    short = {"padding": "SAME"}
    yield Case("MaxPoolV2", "MaxPoolV2", [values.distinct(1, 4, 4, 1), ints(1, 2, 2, 1), ints(1, 2, 2, 1)], short, second=False)
    yield Case("MaxPoolGradV2", "MaxPoolGradV2", [big, small, r(1, 2, 2, 1), ints(1, 2, 2, 1), ints(1, 2, 2, 1)], short, second=False, python=False)
    yield Case("MaxPoolWithArgmax", "MaxPoolWithArgmax", [values.distinct(1, 4, 4, 1)], pool, second=False)
    cube = values.distinct(1, 4, 4, 4, 1, dtype="f4")
    tops = cube.reshape(1, 2, 2, 2, 2, 2, 2, 1).max(axis=(2, 4, 6))
    yield Case("MaxPool3D", "MaxPool3D", [cube], pool3, second=False)
    yield Case("MaxPool3DGrad", "MaxPool3DGrad", [cube, tops, r(1, 2, 2, 2, 1, dtype="f4")], pool3, second=False)
    yield Case("MaxPool3DGradGrad", "MaxPool3DGradGrad", [cube, tops, r(1, 4, 4, 4, 1, dtype="f4")], pool3, second=False)
    fractional = {"pooling_ratio": [1.0, 1.5, 1.5, 1.0], "deterministic": True, "seed": 3, "seed2": 4}
    yield Case("FractionalMaxPool", "FractionalMaxPool", [values.distinct(1, 5, 5, 1)], fractional, second=False)
    yield Case("FractionalAvgPool", "FractionalAvgPool", [r(1, 5, 5, 1)], fractional, second=False)


def _nn() -> Iterator[Case]:
    values = Values("nn")
    r = values.real
    labels = np.asarray([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    yield Case("SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", [r(2, 3), labels], {}, second=False)
    yield Case("SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", [r(2, 3), ints(2, 0)], {}, second=False)
    yield Case("BiasAdd", "BiasAdd", [r(2, 3), r(3)], {})
    yield Case("BiasAdd_NCHW", "BiasAdd", [r(2, 3, 2, 2), r(3)], {"data_format": "NCHW"})
    yield Case("BiasAddGrad", "BiasAddGrad", [r(2, 3)], {})
    yield Case("BiasAddV1", "BiasAddV1", [r(2, 3), r(3)], {})
    f = lambda *shape: r(*shape, dtype="f4")  # noqa: E731
    p = lambda *shape: r(*shape, low=0.5, high=2.0, dtype="f4")  # noqa: E731
    none = np.zeros((0,), "f4")
    for version in ("", "V2", "V3"):
        op = f"FusedBatchNorm{version}"
        yield Case(f"{op}_training", op, [f(3, 2, 2, 2), f(2), f(2), none, none], {"is_training": True}, second=version == "V3")
        yield Case(f"{op}_inference", op, [f(3, 2, 2, 2), f(2), f(2), f(2), p(2)], {"is_training": False}, second=version == "V3")
    yield Case("LRN", "LRN", [f(1, 2, 2, 5)], {"depth_radius": 2}, second=False)
    yield Case("ResizeBilinear", "ResizeBilinear", [f(1, 3, 3, 2), ints(5, 4)], {"half_pixel_centers": True}, second=False)
    yield Case("ResizeBicubic", "ResizeBicubic", [f(1, 3, 3, 2), ints(5, 4)], {"half_pixel_centers": True}, second=False)
    yield Case("ResizeNearestNeighbor", "ResizeNearestNeighbor", [r(1, 3, 3, 2), ints(5, 4)], {}, second=False)
    boxes = np.asarray([[0.1, 0.2, 0.8, 0.9], [0.0, 0.1, 0.7, 0.6]], "f4")
    yield Case("CropAndResize", "CropAndResize", [f(1, 4, 4, 2), boxes, ints(0, 0), ints(3, 3)], {}, numeric=False, second=False)


def _linalg() -> Iterator[Case]:
    values = Values("linalg")
    r = values.real
    for a in (False, True):
        for b in (False, True):
            left = r(3, 2) if a else r(2, 3)
            right = r(4, 3) if b else r(3, 4)
            suffix = f"_{a:d}{b:d}"
            yield Case(f"MatMul{suffix}", "MatMul", [left, right], {"transpose_a": a, "transpose_b": b})
            batch = np.stack([left, left + 0.5])
            yield Case(f"BatchMatMul{suffix}", "BatchMatMul", [batch, np.stack([right, right - 0.25])], {"adj_x": a, "adj_y": b})
            yield Case(f"BatchMatMulV2{suffix}", "BatchMatMulV2", [batch, right], {"adj_x": a, "adj_y": b})
            c = [np.asarray(left + 1j * left[::-1]), np.asarray(right - 0.5j * right)]
            yield Case(f"BatchMatMulV2_complex{suffix}", "BatchMatMulV2", c, {"adj_x": a, "adj_y": b}, numeric=False)
    yield Case("BatchMatMulV3", "BatchMatMulV3", [r(2, 1, 2, 3), r(4, 3, 2)], {"Tout": "f8"})
    yield Case("SparseMatMul", "SparseMatMul", [r(2, 3, dtype="f4"), r(3, 2, dtype="f4")], {}, second=False)
    for index, (equation, shapes) in enumerate((
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
    )):
        operands: list[Array] = [r(*shape) for shape in shapes]
        yield Case(f"Einsum_{index}", "Einsum", [operands], {"equation": equation})
    yield Case("MatrixInverse", "MatrixInverse", [values.regular(2, 3, 3)], {})
    yield Case("MatrixInverse_adjoint", "MatrixInverse", [values.regular(3, 3)], {"adjoint": True})
    yield Case("MatrixDeterminant", "MatrixDeterminant", [values.regular(2, 3, 3)], {})
    yield Case("LogMatrixDeterminant", "LogMatrixDeterminant", [values.positive_definite(2, 3, 3)], {}, second=False)
    for adjoint in (False, True):
        yield Case(f"MatrixSolve_{adjoint:d}", "MatrixSolve", [values.regular(2, 3, 3), r(2, 3, 2)], {"adjoint": adjoint})
        for lower in (False, True):
            name = f"MatrixTriangularSolve_{adjoint:d}{lower:d}"
            matrix = values.regular(3, 3)
            yield Case(name, "MatrixTriangularSolve", [matrix, r(3, 2)], {"adjoint": adjoint, "lower": lower})
    yield Case("Cholesky", "Cholesky", [values.positive_definite(2, 3, 3)], {}, numeric=False, second=False)
    symmetric = values.positive_definite(3, 3)
    yield Case("SelfAdjointEigV2", "SelfAdjointEigV2", [symmetric], {"compute_v": False}, numeric=False, second=False)


def cases() -> list[Case]:
    """Returns all cases."""
    groups: Iterable[Iterator[Case]] = (
        _unary(), _binary(), _reduce(), _array(), _index(), _conv(), _nn(), _linalg(),
    )
    return [case for group in groups for case in group]
