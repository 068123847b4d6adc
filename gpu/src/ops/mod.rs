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
mod types;
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
const BOOL: &[DType] = &[DType::Bool];
const CAST: &[DType] = &[DType::Bool, DType::F32, DType::I32, DType::I64, DType::U8];
const CHOSEN: &[DType] = &[DType::Bool, DType::F32, DType::I32, DType::I64];
const COMPARED: &[DType] = &[DType::Bool, DType::F32, DType::I64];
const ORDERED: &[DType] = &[DType::F32, DType::I64];
const WORDS: &[DType] = &[DType::F32, DType::I32, DType::U32];

/// A row for each op: the body, the types, the ops.
macro_rules! rows {
    ($($plan:path [$dtypes:ident]: $($op:literal)*;)*) => {
        &[$($(Row { op: $op, dtypes: $dtypes, plan: $plan },)*)*]
    };
}

static ROWS: &[Row] = rows! {
    elementwise::plain [F32]:
        "Abs" "Ceil" "Elu" "Erf" "Erfc" "Exp" "Expm1" "Floor" "Inv" "Log" "Log1p" "Neg" "Reciprocal" "Relu"
        "Relu6" "Rint" "Round" "Rsqrt" "Selu" "Sigmoid" "Sign" "Softplus" "Softsign" "Sqrt" "Square" "Tanh"
        "Add" "AddV2" "DivNoNan" "Maximum" "Minimum" "Mul" "MulNoNan" "RealDiv" "SquaredDifference" "Sub"
        "EluGrad" "InvGrad" "ReciprocalGrad" "Relu6Grad" "ReluGrad" "RsqrtGrad" "SeluGrad" "SigmoidGrad"
        "SoftplusGrad" "SoftsignGrad" "SqrtGrad" "TanhGrad";
    elementwise::bias_add [F32]: "BiasAdd";
    elementwise::leaky_relu [F32]: "LeakyRelu";
    elementwise::clip [F32]: "ClipByValue";
    elementwise::add_n [F32]: "AddN";
    elementwise::expression [F32]: "TfpExpression";
    elementwise::scale_shift [F32]: "TfpScaleShift";
    rows::softmax [F32]: "LogSoftmax" "Softmax";
    rows::cross_entropy [F32]: "SoftmaxCrossEntropyWithLogits" "SparseSoftmaxCrossEntropyWithLogits";
    rows::place [F32]: "ArgMax" "ArgMin";
    columns::reduction [F32]: "Max" "Mean" "Min" "Sum";
    columns::bias_add_grad [F32]: "BiasAddGrad";
    norm::forward [F32]: "FusedBatchNorm" "FusedBatchNormV2" "FusedBatchNormV3";
    norm::gradient [F32]: "FusedBatchNormGrad" "FusedBatchNormGradV2" "FusedBatchNormGradV3";
    pooling::forward [F32]: "AvgPool" "MaxPool";
    pooling::largest_gradient [F32]: "MaxPoolGrad";
    pooling::mean_gradient [F32]: "AvgPoolGrad";
    mask::comparison [COMPARED]: "Equal" "NotEqual";
    mask::comparison [ORDERED]: "Greater" "GreaterEqual" "Less" "LessEqual";
    mask::combination [BOOL]: "LogicalAnd" "LogicalNot" "LogicalOr";
    mask::select [CHOSEN]: "Select" "SelectV2";
    types::cast [CAST]: "Cast";
    types::one_hot [WORDS]: "OneHot";
    random::uniform [F32]: "StatelessRandomUniformV2";
    gather::gather [F32]: "GatherV2";
    gather::segment_sum [F32]: "UnsortedSegmentSum";
    gather::scatter [F32]:
        "ScatterNd" "TensorScatterAdd" "TensorScatterMax" "TensorScatterMin" "TensorScatterSub"
        "TensorScatterUpdate" "TfpScatter";
    view::transpose [F32]: "Transpose";
    view::slice [F32]: "Slice";
    view::broadcast_to [F32]: "BroadcastTo";
    view::tile [F32]: "Tile";
    view::fill [F32]: "Fill" "OnesLike" "ZerosLike";
    view::pad [F32]: "Pad" "PadV2";
    view::strided_slice [F32]: "StridedSlice";
    view::strided_slice_grad [F32]: "StridedSliceGrad";
    view::join [F32]: "ConcatV2" "Pack";
    view::split [F32]: "Split" "SplitV" "Unpack";
    matmul::mat_mul [F32]: "MatMul" "TfpFusedMatMul";
    matmul::batch_mat_mul [F32]: "BatchMatMulV2";
    convolution::forward [F32]: "Conv2D" "TfpFusedConv2D";
    convolution::by_input [F32]: "Conv2DBackpropInput";
    convolution::by_filter [F32]: "Conv2DBackpropFilter";
    depthwise::forward [F32]: "DepthwiseConv2dNative";
    depthwise::by_input [F32]: "DepthwiseConv2dNativeBackpropInput";
    depthwise::by_filter [F32]: "DepthwiseConv2dNativeBackpropFilter";
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
