//! The kernels of 16-bit floats: those of `f32`, between widening and one rounding.
//!
//! What only moves elements takes them as they are, and has its types in its own definition; so have
//! `Cast` and `AddN`.

use crate::base::adapt::variants;
use crate::base::def::{KernelDef, Variants};
use crate::base::narrow::Narrow;
use crate::ops::conv::{
    conv2d, conv2d_backprop_filter, conv2d_backprop_input, conv3d,
    depthwise_conv2d_native as depthwise, fused_conv2d,
};
use crate::ops::elementwise::{
    binary, clip, compare, division, gradient, leaky_relu, logical, unary,
};
use crate::ops::image::{max_pool, resize};
use crate::ops::matrix::{bias_add, bias_add_grad};
use crate::ops::moving::scatter;
use crate::ops::norm::{cross_entropy, fused_batch_norm, softmax};
use crate::ops::random::{stateful, stateless};
use crate::ops::reduction::{arg_max, cumulative, reductions, unsorted_segment_sum};
use crate::ops::sequence::cudnn_rnn;

mod products;

/// One row per op: its definition, the types, how many outputs are narrow, whether it works element
/// by element.
macro_rules! narrow {
    ($($def:path: $variants:expr, $outputs:expr, $elementwise:expr;)*) => {
        &[$(
            &KernelDef {
                op: $def.op,
                variants: $variants,
                attrs: $def.attrs,
                forward: $def.forward,
                outputs: |inputs, sink| {
                    narrow!(@of $def, $outputs, $elementwise).outputs(inputs, sink)
                },
                scratch: |inputs| narrow!(@of $def, $outputs, $elementwise).scratch(inputs),
                run: |call| narrow!(@of $def, $outputs, $elementwise).run(call),
            },
        )*]
    };
    (@of $def:path, $outputs:expr, $elementwise:expr) => {
        Narrow { def: &$def, outputs: $outputs, elementwise: $elementwise }
    };
}

/// Rows of ops that work element by element.
macro_rules! elementwise {
    ($($def:path;)*) => {
        narrow! { $($def: PLAIN, ALL, true;)* }
    };
}

/// As many outputs as there are.
const ALL: usize = usize::MAX;

const PLAIN: &[Variants] = variants!(["T": F16 BF16];);
const AXES: &[Variants] = variants!(["T": F16 BF16, "Tidx": I32 I64] host &["reduction_indices"];);
const AXIS: &[Variants] = variants!(["T": F16 BF16, "Tidx": I32 I64] host &["axis"];);
const SIZE: &[Variants] = variants!(["T": F16 BF16] host &["size"];);
const INPUT_SIZES: &[Variants] = variants!(["T": F16 BF16] host &["input_sizes"];);
const SIZES: &[Variants] = variants!(["T": F16 BF16, "Tshape": I32 I64] host &["input_sizes"];);
const FILTER_SIZES: &[Variants] = variants!(["T": F16 BF16] host &["filter_sizes"];);
const LABELS: &[Variants] = variants!(["T": F16 BF16, "Tlabels": I32 I64];);
const DRAWN: &[Variants] =
    variants!(["dtype": F16 BF16, "Tshape": I32 I64] host &["shape", "alg"];);
/// The statistics of a batch are `f32`.
const NORM: &[Variants] = variants!(["T": F16 BF16, "U": F32];);

/// The kernels of ops that work element by element.
pub static ELEMENTWISE: &[&KernelDef] = elementwise! {
    binary::ADD;
    binary::ADD_V2;
    binary::ATAN2;
    binary::DIV_NO_NAN;
    binary::MAXIMUM;
    binary::MINIMUM;
    binary::MUL;
    binary::MUL_NO_NAN;
    binary::REAL_DIV;
    binary::SQUARED_DIFFERENCE;
    binary::SUB;
    binary::XDIVY;
    binary::XLOG1PY;
    binary::XLOGY;
    clip::CLIP_BY_VALUE;
    compare::EQUAL;
    compare::GREATER;
    compare::GREATER_EQUAL;
    compare::LESS;
    compare::LESS_EQUAL;
    compare::NOT_EQUAL;
    division::DIV;
    division::FLOOR_DIV;
    division::FLOOR_MOD;
    division::POW;
    gradient::ELU_GRAD;
    gradient::INV_GRAD;
    gradient::RECIPROCAL_GRAD;
    gradient::RELU6_GRAD;
    gradient::RELU_GRAD;
    gradient::RSQRT_GRAD;
    gradient::SELU_GRAD;
    gradient::SIGMOID_GRAD;
    gradient::SOFTPLUS_GRAD;
    gradient::SOFTSIGN_GRAD;
    gradient::SQRT_GRAD;
    gradient::TANH_GRAD;
    leaky_relu::LEAKY_RELU;
    leaky_relu::LEAKY_RELU_GRAD;
    logical::IS_FINITE;
    logical::IS_INF;
    logical::IS_NAN;
    unary::ABS;
    unary::ACOS;
    unary::ACOSH;
    unary::ASIN;
    unary::ASINH;
    unary::ATAN;
    unary::ATANH;
    unary::CEIL;
    unary::COS;
    unary::COSH;
    unary::ELU;
    unary::ERF;
    unary::ERFC;
    unary::EXP;
    unary::EXPM1;
    unary::FLOOR;
    unary::INV;
    unary::LOG;
    unary::LOG1P;
    unary::NEG;
    unary::RECIPROCAL;
    unary::RELU;
    unary::RELU6;
    unary::RINT;
    unary::ROUND;
    unary::RSQRT;
    unary::SELU;
    unary::SIGMOID;
    unary::SIGN;
    unary::SIN;
    unary::SINH;
    unary::SOFTPLUS;
    unary::SOFTSIGN;
    unary::SQRT;
    unary::SQUARE;
    unary::TAN;
    unary::TANH;
};

/// Matmuls.
pub static PRODUCTS: &[&KernelDef] = &[
    &products::BATCH_MAT_MUL_V2,
    &products::FUSED_MAT_MUL,
    &products::MAT_MUL,
];

/// The kernels of all other ops.
pub static KERNELS: &[&KernelDef] = narrow! {
    arg_max::ARG_MAX: arg_max::NARROW, ALL, false;
    arg_max::ARG_MIN: arg_max::NARROW, ALL, false;
    bias_add::DEF: PLAIN, ALL, false;
    bias_add_grad::DEF: PLAIN, ALL, false;
    conv2d::DEF: PLAIN, ALL, false;
    conv2d_backprop_filter::DEF: FILTER_SIZES, ALL, false;
    conv2d_backprop_input::DEF: INPUT_SIZES, ALL, false;
    conv3d::BACKPROP_FILTER: FILTER_SIZES, ALL, false;
    conv3d::BACKPROP_INPUT: SIZES, ALL, false;
    conv3d::DEF: PLAIN, ALL, false;
    cross_entropy::SOFTMAX_CROSS_ENTROPY_WITH_LOGITS: PLAIN, ALL, false;
    cross_entropy::SPARSE_SOFTMAX_CROSS_ENTROPY_WITH_LOGITS: LABELS, ALL, false;
    cudnn_rnn::BACKPROP: PLAIN, ALL, false;
    cudnn_rnn::BACKPROP_V2: variants!(["T": F16 BF16] host cudnn_rnn::HOST;), ALL, false;
    cudnn_rnn::BACKPROP_V3: variants!(["T": F16 BF16] host cudnn_rnn::HOST_V3;), ALL, false;
    cudnn_rnn::DEF: PLAIN, ALL, false;
    cudnn_rnn::V2: variants!(["T": F16 BF16] host cudnn_rnn::HOST;), ALL, false;
    cudnn_rnn::V3: variants!(["T": F16 BF16] host cudnn_rnn::HOST_V3;), ALL, false;
    cumulative::CUMPROD: AXIS, ALL, false;
    cumulative::CUMSUM: AXIS, ALL, false;
    depthwise::BACKPROP_FILTER: FILTER_SIZES, ALL, false;
    depthwise::BACKPROP_INPUT: INPUT_SIZES, ALL, false;
    depthwise::DEF: PLAIN, ALL, false;
    fused_batch_norm::FUSED_BATCH_NORM_GRAD_V2: NORM, 1, false;
    fused_batch_norm::FUSED_BATCH_NORM_GRAD_V3: NORM, 1, false;
    fused_batch_norm::FUSED_BATCH_NORM_V2: NORM, 1, false;
    fused_batch_norm::FUSED_BATCH_NORM_V3: NORM, 1, false;
    fused_conv2d::DEF: fused_conv2d::NARROW, ALL, false;
    max_pool::AVG_POOL: PLAIN, ALL, false;
    max_pool::AVG_POOL_GRAD: variants!(["T": F16 BF16] host &["orig_input_shape"];), ALL, false;
    max_pool::MAX_POOL: PLAIN, ALL, false;
    max_pool::MAX_POOL_GRAD: PLAIN, ALL, false;
    reductions::MAX: AXES, ALL, false;
    reductions::MEAN: AXES, ALL, false;
    reductions::MIN: AXES, ALL, false;
    reductions::PROD: AXES, ALL, false;
    reductions::SUM: AXES, ALL, false;
    // The result of an interpolation is `f32` whatever the images are.
    resize::RESIZE_BILINEAR: SIZE, 0, false;
    resize::RESIZE_BILINEAR_GRAD: PLAIN, ALL, false;
    resize::RESIZE_NEAREST_NEIGHBOR_GRAD: SIZE, ALL, false;
    scatter::SCATTER: scatter::NARROW, ALL, false;
    scatter::SCATTER_ND: variants!(["T": F16 BF16, "Tindices": I32 I64] host &["shape"];), ALL, false;
    scatter::TENSOR_SCATTER_ADD: scatter::NARROW, ALL, false;
    scatter::TENSOR_SCATTER_MAX: scatter::NARROW, ALL, false;
    scatter::TENSOR_SCATTER_MIN: scatter::NARROW, ALL, false;
    scatter::TENSOR_SCATTER_SUB: scatter::NARROW, ALL, false;
    scatter::TENSOR_SCATTER_UPDATE: scatter::NARROW, ALL, false;
    softmax::LOG_SOFTMAX: PLAIN, ALL, false;
    softmax::SOFTMAX: PLAIN, ALL, false;
    stateful::RANDOM_STANDARD_NORMAL: stateful::NARROW, ALL, false;
    stateful::TRUNCATED_NORMAL: stateful::NARROW, ALL, false;
    stateless::STATELESS_RANDOM_NORMAL_V2: DRAWN, ALL, false;
    stateless::STATELESS_TRUNCATED_NORMAL_V2: DRAWN, ALL, false;
    unsorted_segment_sum::UNSORTED_SEGMENT_SUM: unsorted_segment_sum::NARROW, ALL, false;
};
