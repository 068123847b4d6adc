"""Calls of ops that the device computes with TensorFlow's kernels for the CPU.

What is compared is that the inputs, the attributes and the outputs arrive where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tests.conformance.cases import Array, Call, values

Types = Mapping[str, np.dtype[Any]]
Calls = Callable[[Types], Iterator[Call]]

FLOAT = np.dtype(np.float32)
COMPLEX = np.dtype(np.complex64)


def _some(dtype: np.dtype[Any], *shape: int, seed: int = 0, low: float = -2) -> Array:
    found = values(shape, dtype, seed, low, 2)
    return found + values(shape, FLOAT, seed + 9, -1, 1) * 1j if dtype == COMPLEX else found


def _ints(*items: Any, dtype: Any = np.int32) -> Array:
    return np.array(items, dtype)


def _one(value: int, dtype: Any = np.int32) -> Array:
    return np.array(value, dtype)


def _positive(dtype: np.dtype[Any], size: int = 4) -> Array:
    """Two symmetric matrices with positive eigenvalues."""
    a = _some(dtype, 2, size, size)
    return np.asarray(a @ np.swapaxes(a, 1, 2) + 3 * np.eye(size, dtype=dtype))


def _of(*calls: Callable[[np.dtype[Any]], Call]) -> Calls:
    """Calls that depend on the only type that a kernel is registered for."""

    def made(types: Types) -> Iterator[Call]:
        for call in calls:
            yield call(next(iter(types.values()), FLOAT))

    return made


def _call(attributes: Mapping[str, Any] | None = None, /, **inputs: Any) -> Call:
    return Call(inputs, attributes or {})


def _einsum(types: Types) -> Iterator[Call]:
    dtype = types["T"]
    for equation, shapes in (
        ("ij,jk->ik", ((3, 4), (4, 5))),
        ("bqhd,bkhd->bhqk", ((2, 3, 2, 4), (2, 5, 2, 4))),
        ("...ij->...ji", ((2, 3, 4),)),
        ("ii->i", ((3, 3),)),
        ("ab,bc->", ((0, 2), (2, 3))),
    ):
        inputs = [_some(dtype, *shape, seed=n) for n, shape in enumerate(shapes)]
        yield Call({"inputs": inputs}, {"equation": equation})


CUBE = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}
POOL = {"ksize": [1, 2, 2, 1, 1], **CUBE}
IMAGE = (2, 4, 5, 3, 2)
POOLED = (2, 4, 3, 3, 2)


def _max_pool_3d_grad(dtype: np.dtype[Any]) -> Call:
    image = _some(dtype, *IMAGE)
    parts = [image[:, :, :2].max(2), image[:, :, 2:4].max(2), image[:, :, 4]]
    rows = np.stack(parts, 2)
    below = np.concatenate([rows[:, 1:], rows[:, -1:]], 1)
    output = np.maximum(rows, below)
    return _call(POOL, orig_input=image, orig_output=output, grad=_some(dtype, *POOLED, seed=3))


def _max_pool_3d_grad_grad(dtype: np.dtype[Any]) -> Call:
    call = _max_pool_3d_grad(dtype)
    return Call({**call.inputs, "grad": _some(dtype, *IMAGE, seed=4)}, call.attributes)


def _max_pool_grad_grad(dtype: np.dtype[Any]) -> Call:
    image = _some(dtype, 2, 4, 6, 3)
    output = image.reshape(2, 2, 2, 3, 2, 3).max((2, 4))
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    inputs = {"orig_input": image, "orig_output": output, "grad": _some(dtype, 2, 4, 6, 3, seed=3)}
    return Call(inputs, window)


def _matrix(**more: Callable[[np.dtype[Any]], Array]) -> Calls:
    def made(dtype: np.dtype[Any]) -> Call:
        return _call(input=_positive(dtype), **{k: v(dtype) for k, v in more.items()})

    return _of(made)


def _solve(lower: bool) -> Callable[[np.dtype[Any]], Call]:
    return lambda t: _call({"adjoint": lower}, matrix=_positive(t), rhs=_some(t, 2, 4, 3))


def _segment(types: Types) -> Iterator[Call]:
    for kind in (np.int32, np.int64):
        yield _call(data=_some(types["T"], 5, 2), segment_ids=_ints(0, 0, 1, 3, 3, dtype=kind))


def _unsorted(types: Types) -> Iterator[Call]:
    for kind in (np.int32, np.int64):
        ids = _ints(2, 0, -1, 2, 1, dtype=kind)
        yield _call(data=_some(types["T"], 5, 2), segment_ids=ids, num_segments=_one(4))


def _hosted_images(op: str) -> Calls:
    return _of(
        lambda t: _call(
            images=values((2, 3, 4, 3), t, 0, 0, 1),
            **(
                {}
                if op.endswith("HSV") or op.startswith("HSV")
                else {_FACTORS[op]: np.float32(0.4)}
            ),
        )
    )


_FACTORS = {
    "AdjustContrastv2": "contrast_factor",
    "AdjustHue": "delta",
    "AdjustSaturation": "scale",
}


def _resize(size: tuple[int, int]) -> Callable[[np.dtype[Any]], Call]:
    return lambda t: _call(images=_some(t, 2, 4, 5, 3), size=_ints(*size))


def _boxes(**more: Any) -> dict[str, Any]:
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9]], np.float32)
    return {"boxes": boxes, "box_ind": _ints(0, 1), **more}


def _transform(t: np.dtype[Any]) -> Call:
    turned = np.array([[0.9, -0.2, 1, 0.2, 0.9, -1, 0, 0]] * 2, np.float32)
    return _call(
        {"interpolation": "BILINEAR", "fill_mode": "REFLECT"},
        images=_some(t, 2, 5, 6, 3),
        transforms=turned,
        output_shape=_ints(4, 5),
        fill_value=np.float32(0.5),
    )


def _special(names: tuple[str, ...]) -> Calls:
    return _of(
        lambda t: Call({n: values((3, 5), t, i, 0.2, 0.9) for i, n in enumerate(names)}),
        lambda t: Call({n: values((0,), t, i, 0.2, 0.9) for i, n in enumerate(names)}),
    )


def _quantized(op: str) -> Calls:
    def made(dtype: np.dtype[Any]) -> Call:
        inputs: dict[str, Any] = {"inputs": _some(dtype, 6, 4)}
        if op.endswith("Gradient"):
            inputs = {"gradients": _some(dtype, 6, 4, seed=2), **inputs}
        if "Args" in op:
            return Call(inputs, {"min": -1.0, "max": 1.5, "num_bits": 4})
        shape = (4,) if "PerChannel" in op else ()
        limits = {"min": np.full(shape, -1, dtype), "max": np.full(shape, 1.5, dtype)}
        return Call({**inputs, **limits}, {"num_bits": 4, "narrow_range": True})

    return _of(made)


QUANTIZED = ("Args", "ArgsGradient", "Vars", "VarsGradient", "VarsPerChannel")

CALLS: Mapping[str, Calls] = {
    "Einsum": _einsum,
    "L2Loss": _of(lambda t: _call(t=_some(t, 3, 5)), lambda t: _call(t=_some(t, 0))),
    "MaxPool3D": _of(lambda t: _call(POOL, input=_some(t, *IMAGE))),
    "AvgPool3D": _of(lambda t: _call(POOL, input=_some(t, *IMAGE))),
    "MaxPool3DGrad": _of(_max_pool_3d_grad),
    "MaxPool3DGradGrad": _of(_max_pool_3d_grad_grad),
    "MaxPoolGradGrad": _of(_max_pool_grad_grad),
    "AvgPool3DGrad": _of(
        lambda t: _call(POOL, orig_input_shape=_ints(*IMAGE), grad=_some(t, *POOLED))
    ),
    "TopKV2": _of(
        lambda t: _call(input=_some(t, 3, 9, low=-50), k=_one(4)),
        lambda t: _call({"sorted": False}, input=_some(t, 7, low=-50), k=_one(0)),
    ),
    "InTopKV2": _of(
        lambda t: _call(
            predictions=_some(FLOAT, 4, 6), targets=_ints(0, 5, 2, 2, dtype=t), k=_one(2, t)
        )
    ),
    "DepthToSpace": _of(lambda t: _call({"block_size": 2}, input=_some(t, 2, 3, 2, 8))),
    "SpaceToDepth": _of(lambda t: _call({"block_size": 2}, input=_some(t, 2, 4, 2, 3))),
    "ExtractImagePatches": _of(
        lambda t: _call(
            {
                "ksizes": [1, 2, 3, 1],
                "strides": [1, 2, 1, 1],
                "rates": [1, 1, 2, 1],
                "padding": "SAME",
            },
            images=_some(t, 2, 5, 6, 3),
        )
    ),
    "BatchToSpaceND": _of(
        lambda t: _call(
            input=_some(t, 8, 2, 3, 2), block_shape=_ints(2, 2), crops=_ints([0, 1], [0, 0])
        )
    ),
    "SpaceToBatchND": _of(
        lambda t: _call(
            input=_some(t, 2, 3, 4, 2), block_shape=_ints(2, 2), paddings=_ints([1, 0], [0, 0])
        )
    ),
    "MirrorPadGrad": _of(
        lambda t: _call({"mode": "REFLECT"}, input=_some(t, 5, 6), paddings=_ints([1, 1], [2, 0]))
    ),
    "Roll": _of(lambda t: _call(input=_some(t, 4, 5), shift=_ints(1, -2), axis=_ints(0, 1))),
    "ResizeBicubic": _of(_resize((7, 3)), _resize((4, 5))),
    "ResizeArea": _of(_resize((7, 3)), _resize((2, 2))),
    "ResizeBicubicGrad": _of(
        lambda t: _call(grads=_some(FLOAT, 2, 7, 3, 3), original_image=_some(t, 2, 4, 5, 3))
    ),
    "LRN": _of(lambda t: _call({"depth_radius": 2}, input=_some(t, 2, 3, 3, 7))),
    "LRNGrad": _of(
        lambda t: _call(
            input_grads=_some(t, 2, 3, 3, 7),
            input_image=_some(t, 2, 3, 3, 7, seed=1),
            output_image=_some(t, 2, 3, 3, 7, seed=2),
        )
    ),
    **{op: _hosted_images(op) for op in ("RGBToHSV", "HSVToRGB", *_FACTORS)},
    "CropAndResize": _of(
        lambda t: _call(image=_some(t, 2, 6, 5, 3), **_boxes(crop_size=_ints(3, 4)))
    ),
    "CropAndResizeGradImage": _of(
        lambda t: _call(
            {"T": t}, grads=_some(FLOAT, 2, 3, 4, 3), **_boxes(image_size=_ints(2, 6, 5, 3))
        )
    ),
    "CropAndResizeGradBoxes": _of(
        lambda t: _call(grads=_some(FLOAT, 2, 3, 4, 3), image=_some(t, 2, 6, 5, 3), **_boxes())
    ),
    "ImageProjectiveTransformV3": _of(_transform),
    **{f"Segment{how}": _segment for how in ("Max", "Mean", "Min", "Prod", "Sum")},
    **{f"UnsortedSegment{how}": _unsorted for how in ("Max", "Min", "Prod")},
    "MatrixBandPart": _matrix(
        num_lower=lambda _: _one(1, np.int64), num_upper=lambda _: _one(-1, np.int64)
    ),
    "MatrixDiagV3": _of(
        lambda t: _call(
            diagonal=_some(t, 2, 3),
            k=_one(1),
            num_rows=_one(-1),
            num_cols=_one(-1),
            padding_value=t.type(7),
        )
    ),
    "MatrixDiagPartV3": _of(
        lambda t: _call(input=_some(t, 2, 3, 4), k=_ints(-1, 1), padding_value=t.type(7))
    ),
    "MatrixSetDiagV3": _of(
        lambda t: _call(input=_some(t, 2, 3, 4), diagonal=_some(t, 2, 3, seed=1), k=_one(0))
    ),
    "Cholesky": _matrix(),
    "CholeskyGrad": _of(
        lambda t: _call(l=np.linalg.cholesky(_positive(t)), grad=_some(t, 2, 4, 4))
    ),
    "LogMatrixDeterminant": _matrix(),
    "MatrixDeterminant": _matrix(),
    "MatrixInverse": _matrix(),
    "MatrixSolve": _of(_solve(False), _solve(True)),
    "MatrixTriangularSolve": _of(_solve(False), _solve(True)),
    "Qr": _matrix(),
    "Svd": _matrix(),
    "SelfAdjointEigV2": _matrix(),
    "CumulativeLogsumexp": _of(lambda t: _call({"reverse": True}, x=_some(t, 3, 4), axis=_one(1))),
    "Betainc": _special(("a", "b", "x")),
    "Igamma": _special(("a", "x")),
    "Igammac": _special(("a", "x")),
    "Polygamma": _of(lambda t: _call(a=np.full(5, 2, t), x=values((5,), t, 0, 0.2, 3))),
    "Zeta": _of(lambda t: _call(x=values((5,), t, 0, 1.2, 3), q=values((5,), t, 1, 0.2, 3))),
    "BatchMatMulV3": _of(
        lambda t: _call(
            {"Tout": t, "adj_y": True}, x=_some(t, 2, 3, 4), y=_some(t, 1, 5, 4, seed=1)
        )
    ),
    "RFFT": _of(lambda t: _call(input=_some(t, 3, 16), fft_length=_ints(12))),
    "RFFT2D": _of(lambda t: _call(input=_some(t, 3, 8, 6), fft_length=_ints(8, 6))),
    "IRFFT": _of(lambda t: _call(input=_some(t, 3, 9), fft_length=_ints(16))),
    "IRFFT2D": _of(lambda t: _call(input=_some(t, 3, 8, 4), fft_length=_ints(8, 6))),
    **{
        op: _of(lambda t: _call(input=_some(t, 3, 4, 6)))
        for op in ("FFT", "FFT2D", "IFFT", "IFFT2D")
    },
    **{op: _of(lambda t: _call(input=_some(t, 3, 5))) for op in ("Angle", "Conj", "Imag", "Real")},
    "ComplexAbs": _of(lambda t: _call(x=_some(t, 3, 5))),
    **{
        f"FakeQuantWithMinMax{kind}": _quantized(kind)
        for kind in (*QUANTIZED, "VarsPerChannelGradient")
    },
}
"""The calls of an op."""
