//! The bodies: each makes of a call a plan for the device, or declines it.

mod codes;
mod columns;
mod convolution;
mod depthwise;
mod elementwise;
mod gather;
mod mask;
mod matmul;
mod norm;
mod pooling;
mod product;
mod random;
mod rows;
mod view;

use tfp_kernels::base::dtype::DType;

use crate::request::Request;
use crate::vulkan::device::Limits;
use crate::work::Plan;

pub use self::elementwise::{negation, whole_words};

/// Makes the plan of a call; `None` if the CPU's kernel is to run.
pub type PlanOf = fn(&Request<'_>, &Limits) -> Option<Plan>;

/// An op, the types that its body serves, and the body.
pub struct Row {
    op: &'static str,
    dtypes: &'static [DType],
    plan: PlanOf,
}

const F32: &[DType] = &[DType::F32];

/// A row for each op.
macro_rules! rows {
    ($($plan:path: $($op:literal)*;)*) => {
        &[$($(Row { op: $op, dtypes: F32, plan: $plan },)*)*]
    };
}

static ROWS: &[Row] = rows! {
    elementwise::plain:
        "Abs" "Ceil" "Elu" "Erf" "Erfc" "Exp" "Expm1" "Floor" "Inv" "Log" "Log1p" "Neg" "Reciprocal" "Relu"
        "Relu6" "Rint" "Round" "Rsqrt" "Selu" "Sigmoid" "Sign" "Softplus" "Softsign" "Sqrt" "Square" "Tanh"
        "Add" "AddV2" "DivNoNan" "Maximum" "Minimum" "Mul" "MulNoNan" "RealDiv" "SquaredDifference" "Sub"
        "EluGrad" "InvGrad" "ReciprocalGrad" "Relu6Grad" "ReluGrad" "RsqrtGrad" "SeluGrad" "SigmoidGrad"
        "SoftplusGrad" "SoftsignGrad" "SqrtGrad" "TanhGrad";
    elementwise::bias_add: "BiasAdd";
    elementwise::leaky_relu: "LeakyRelu";
    elementwise::clip: "ClipByValue";
    elementwise::add_n: "AddN";
    elementwise::expression: "TfpExpression";
    elementwise::scale_shift: "TfpScaleShift";
    rows::softmax: "LogSoftmax" "Softmax";
    rows::cross_entropy: "SoftmaxCrossEntropyWithLogits" "SparseSoftmaxCrossEntropyWithLogits";
    rows::place: "ArgMax" "ArgMin";
    columns::reduction: "Max" "Mean" "Min" "Sum";
    columns::bias_add_grad: "BiasAddGrad";
    norm::forward: "FusedBatchNorm" "FusedBatchNormV2" "FusedBatchNormV3";
    norm::gradient: "FusedBatchNormGrad" "FusedBatchNormGradV2" "FusedBatchNormGradV3";
    pooling::forward: "AvgPool" "MaxPool";
    pooling::largest_gradient: "MaxPoolGrad";
    pooling::mean_gradient: "AvgPoolGrad";
    mask::comparison: "Equal" "Greater" "GreaterEqual" "Less" "LessEqual" "NotEqual";
    mask::select: "Select" "SelectV2";
    random::uniform: "StatelessRandomUniformV2";
    gather::gather: "GatherV2";
    gather::segment_sum: "UnsortedSegmentSum";
    view::transpose: "Transpose";
    view::slice: "Slice";
    view::broadcast_to: "BroadcastTo";
    view::tile: "Tile";
    view::fill: "Fill" "OnesLike" "ZerosLike";
    view::pad: "Pad" "PadV2";
    view::strided_slice: "StridedSlice";
    view::strided_slice_grad: "StridedSliceGrad";
    view::join: "ConcatV2" "Pack";
    view::split: "Split" "SplitV" "Unpack";
    matmul::mat_mul: "MatMul" "TfpFusedMatMul";
    matmul::batch_mat_mul: "BatchMatMulV2";
    convolution::forward: "Conv2D" "TfpFusedConv2D";
    convolution::by_input: "Conv2DBackpropInput";
    convolution::by_filter: "Conv2DBackpropFilter";
    depthwise::forward: "DepthwiseConv2dNative";
    depthwise::by_input: "DepthwiseConv2dNativeBackpropInput";
    depthwise::by_filter: "DepthwiseConv2dNativeBackpropFilter";
};

pub fn find(op: &str, dtype: DType) -> Option<(&'static str, PlanOf)> {
    let row = ROWS.iter().find(|row| row.op == op)?;
    row.dtypes.contains(&dtype).then_some((row.op, row.plan))
}

pub fn all() -> impl Iterator<Item = (&'static str, &'static [DType])> {
    let mut rows: Vec<_> = ROWS.iter().map(|row| (row.op, row.dtypes)).collect();
    rows.sort_unstable_by_key(|(op, _)| *op);
    rows.into_iter()
}
