//! Ops of models in float64. Of those, the crate of kernels has what moves, adds and multiplies numbers.

use tfp_bindings::DataType;

use super::{Row, row};

const F64: &[DataType] = &[DataType::DOUBLE];

/// The ops, each with the inputs that it has in the host's memory.
pub(super) const ROWS: &[Row] = &[
    row(
        &[
            "Acos",
            "Acosh",
            "Asin",
            "Asinh",
            "Atan",
            "Atan2",
            "Atanh",
            "Ceil",
            "Cos",
            "Cosh",
            "Elu",
            "EluGrad",
            "Erf",
            "Erfc",
            "Exp",
            "Expm1",
            "Floor",
            "FloorDiv",
            "InvGrad",
            "Log",
            "Log1p",
            "Pow",
            "ReciprocalGrad",
            "Relu6",
            "Relu6Grad",
            "Rint",
            "Round",
            "Rsqrt",
            "RsqrtGrad",
            "Selu",
            "SeluGrad",
            "Sigmoid",
            "SigmoidGrad",
            "Sign",
            "Sin",
            "Sinh",
            "Softplus",
            "SoftplusGrad",
            "Softsign",
            "SoftsignGrad",
            "SqrtGrad",
            "Tan",
            "Tanh",
            "TanhGrad",
            "Xdivy",
            "Xlog1py",
            "Xlogy",
        ],
        F64,
        &[],
    ),
    row(
        &[
            "BatchMatMulV2",
            "BiasAdd",
            "BiasAddGrad",
            "LogSoftmax",
            "MatMul",
            "Softmax",
            "SoftmaxCrossEntropyWithLogits",
            "SparseSoftmaxCrossEntropyWithLogits",
        ],
        F64,
        &[],
    ),
    row(
        &[
            "AvgPool",
            "Conv2D",
            "DepthwiseConv2dNative",
            "MaxPool",
            "MaxPoolGrad",
        ],
        F64,
        &[],
    ),
    row(&["AvgPoolGrad"], F64, &["orig_input_shape"]),
    row(
        &["Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput"],
        F64,
        &["input_sizes"],
    ),
    row(
        &[
            "Conv2DBackpropFilter",
            "DepthwiseConv2dNativeBackpropFilter",
        ],
        F64,
        &["filter_sizes"],
    ),
];
