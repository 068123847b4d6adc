//! Tensor compute over slices: no TensorFlow type, no allocation, no thread of its own.
//!
//! An op has a module named after it, or is in the module of its family, such as [`unary`] or
//! [`join`]. It is a plain typed function over slices, and a [`def::KernelDef`] through which an
//! adapter serves TensorFlow. Tensors are dense and row-major.
//! Threads are an argument ([`parallel::Parallel`]); SIMD bodies are chosen at one point
//! ([`level::level`]).
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]
// An error carries two shapes by value, because there is no allocator to box them.
#![allow(clippy::result_large_err)]

pub mod activation;
pub mod adapt;
pub mod add_n;
pub mod arg_max;
pub mod attention;
pub mod attention_gradient;
pub mod batch_mat_mul_v2;
pub mod bias_add;
pub mod bias_add_grad;
pub mod binary;
pub mod bitcast;
pub mod bitwise;
pub mod broadcast_to;
pub mod cast;
mod chunks;
pub mod clamp;
pub mod clip;
pub mod compare;
pub mod conv;
pub mod conv1d;
pub mod conv2d;
pub mod conv2d_backprop_filter;
pub mod conv2d_backprop_input;
pub mod cross_entropy;
pub mod cumulative;
pub mod def;
pub mod depthwise_conv2d_native;
pub mod division;
pub mod dtype;
pub mod dynamic_stitch;
pub mod error;
pub mod expression;
pub mod fill;
pub mod fused_batch_norm;
pub mod fused_conv2d;
pub mod fused_mat_mul;
pub mod gather;
pub mod gather_nd;
pub mod gemm;
pub mod gradient;
pub mod int32;
pub mod join;
pub mod leaky_relu;
pub mod level;
pub mod linear_system;
pub mod logical;
pub mod lstm;
pub mod map;
pub mod mat_mul;
mod math;
pub mod max_pool;
pub mod norm;
pub mod norm_gradient;
pub mod one_hot;
pub mod pad;
pub mod parallel;
pub mod philox;
pub mod pooling;
pub mod random;
pub mod random_stateless;
pub mod range;
pub mod recurrent_gradient;
pub mod reduce;
pub mod reductions;
pub mod resize;
pub mod reverse;
mod rounds;
mod rows;
pub mod scale_shift;
pub mod scatter;
pub mod scratch;
pub mod select;
pub mod sequence;
pub mod shape;
pub mod shift;
#[allow(unsafe_code)] // Vectors, and the views of memory that they read and write.
pub mod simd;
pub mod slice;
pub mod softmax;
pub mod special;
pub mod split;
pub mod strided;
pub mod strided_slice;
pub mod suppress;
#[cfg(test)]
mod testing;
pub mod thin;
#[allow(unsafe_code)] // Lends a caller's closure to its workers.
#[cfg(feature = "std")]
pub mod threads;
pub mod tile;
pub mod top_k;
pub mod transpose;
#[cfg(test)]
mod trial;
pub mod unary;
pub mod unsorted_segment_sum;
pub mod where_true;
pub mod whole;
pub mod whole_product;
pub mod zip;

/// Every kernel that an adapter can register.
pub static KERNELS: &[&def::KernelDef] = &[
    &add_n::ADD_N,
    &arg_max::ARG_MAX,
    &arg_max::ARG_MIN,
    &batch_mat_mul_v2::DEF,
    &bias_add::DEF,
    &bias_add_grad::DEF,
    &binary::ADD,
    &binary::ADD_V2,
    &binary::ATAN2,
    &binary::DIV_NO_NAN,
    &binary::MAXIMUM,
    &binary::MINIMUM,
    &binary::MUL,
    &binary::MUL_NO_NAN,
    &binary::REAL_DIV,
    &binary::SQUARED_DIFFERENCE,
    &binary::SUB,
    &binary::XDIVY,
    &binary::XLOG1PY,
    &binary::XLOGY,
    &bitcast::BITCAST,
    &bitwise::BITWISE_AND,
    &bitwise::BITWISE_OR,
    &bitwise::BITWISE_XOR,
    &broadcast_to::BROADCAST_TO,
    &cast::CAST,
    &clip::CLIP_BY_VALUE,
    &compare::EQUAL,
    &compare::GREATER,
    &compare::GREATER_EQUAL,
    &compare::LESS,
    &compare::LESS_EQUAL,
    &compare::NOT_EQUAL,
    &conv2d::DEF,
    &conv2d_backprop_filter::DEF,
    &conv2d_backprop_input::DEF,
    &cross_entropy::SOFTMAX_CROSS_ENTROPY_WITH_LOGITS,
    &cross_entropy::SPARSE_SOFTMAX_CROSS_ENTROPY_WITH_LOGITS,
    &cumulative::CUMPROD,
    &cumulative::CUMSUM,
    &depthwise_conv2d_native::BACKPROP_FILTER,
    &depthwise_conv2d_native::BACKPROP_INPUT,
    &depthwise_conv2d_native::DEF,
    &division::DIV,
    &division::FLOOR_DIV,
    &division::FLOOR_MOD,
    &division::MOD,
    &division::POW,
    &division::TRUNCATE_DIV,
    &division::TRUNCATE_MOD,
    &dynamic_stitch::DYNAMIC_STITCH,
    &expression::DEF,
    &fill::FILL,
    &fill::ONES_LIKE,
    &fill::ZEROS_LIKE,
    &fused_batch_norm::FUSED_BATCH_NORM,
    &fused_batch_norm::FUSED_BATCH_NORM_GRAD,
    &fused_batch_norm::FUSED_BATCH_NORM_GRAD_V2,
    &fused_batch_norm::FUSED_BATCH_NORM_GRAD_V3,
    &fused_batch_norm::FUSED_BATCH_NORM_V2,
    &fused_batch_norm::FUSED_BATCH_NORM_V3,
    &fused_conv2d::DEF,
    &fused_mat_mul::DEF,
    &gather::GATHER_V2,
    &gather_nd::GATHER_ND,
    &gradient::ELU_GRAD,
    &gradient::INV_GRAD,
    &gradient::RECIPROCAL_GRAD,
    &gradient::RELU6_GRAD,
    &gradient::RELU_GRAD,
    &gradient::RSQRT_GRAD,
    &gradient::SELU_GRAD,
    &gradient::SIGMOID_GRAD,
    &gradient::SOFTPLUS_GRAD,
    &gradient::SOFTSIGN_GRAD,
    &gradient::SQRT_GRAD,
    &gradient::TANH_GRAD,
    &join::CONCAT_V2,
    &join::PACK,
    &leaky_relu::LEAKY_RELU,
    &leaky_relu::LEAKY_RELU_GRAD,
    &logical::IS_FINITE,
    &logical::IS_INF,
    &logical::IS_NAN,
    &logical::LOGICAL_AND,
    &logical::LOGICAL_NOT,
    &logical::LOGICAL_OR,
    &mat_mul::DEF,
    &max_pool::AVG_POOL,
    &max_pool::AVG_POOL_GRAD,
    &max_pool::MAX_POOL,
    &max_pool::MAX_POOL_GRAD,
    &one_hot::ONE_HOT,
    &pad::MIRROR_PAD,
    &pad::PAD,
    &pad::PAD_V2,
    &random::RANDOM_STANDARD_NORMAL,
    &random::RANDOM_UNIFORM,
    &random::RANDOM_UNIFORM_INT,
    &random::TRUNCATED_NORMAL,
    &random_stateless::STATELESS_RANDOM_GET_ALG,
    &random_stateless::STATELESS_RANDOM_GET_KEY_COUNTER,
    &random_stateless::STATELESS_RANDOM_GET_KEY_COUNTER_ALG,
    &random_stateless::STATELESS_RANDOM_NORMAL_V2,
    &random_stateless::STATELESS_RANDOM_UNIFORM_FULL_INT_V2,
    &random_stateless::STATELESS_RANDOM_UNIFORM_INT_V2,
    &random_stateless::STATELESS_RANDOM_UNIFORM_V2,
    &random_stateless::STATELESS_TRUNCATED_NORMAL_V2,
    &range::RANGE,
    &reductions::ALL,
    &reductions::ANY,
    &reductions::MAX,
    &reductions::MEAN,
    &reductions::MIN,
    &reductions::PROD,
    &reductions::SUM,
    &resize::RESIZE_BILINEAR,
    &resize::RESIZE_BILINEAR_GRAD,
    &resize::RESIZE_NEAREST_NEIGHBOR,
    &resize::RESIZE_NEAREST_NEIGHBOR_GRAD,
    &reverse::REVERSE_V2,
    &scale_shift::DEF,
    &scatter::SCATTER,
    &scatter::SCATTER_ND,
    &scatter::TENSOR_SCATTER_ADD,
    &scatter::TENSOR_SCATTER_MAX,
    &scatter::TENSOR_SCATTER_MIN,
    &scatter::TENSOR_SCATTER_SUB,
    &scatter::TENSOR_SCATTER_UPDATE,
    &select::SELECT,
    &select::SELECT_V2,
    &slice::SLICE,
    &softmax::LOG_SOFTMAX,
    &softmax::SOFTMAX,
    &split::SPLIT,
    &split::SPLIT_V,
    &split::UNPACK,
    &strided_slice::STRIDED_SLICE,
    &strided_slice::STRIDED_SLICE_GRAD,
    &strided_slice::TENSOR_STRIDED_SLICE_UPDATE,
    &tile::TILE,
    &transpose::TRANSPOSE,
    &unary::ABS,
    &unary::ACOS,
    &unary::ACOSH,
    &unary::ASIN,
    &unary::ASINH,
    &unary::ATAN,
    &unary::ATANH,
    &unary::CEIL,
    &unary::COS,
    &unary::COSH,
    &unary::ELU,
    &unary::ERF,
    &unary::ERFC,
    &unary::EXP,
    &unary::EXPM1,
    &unary::FLOOR,
    &unary::INV,
    &unary::LOG,
    &unary::LOG1P,
    &unary::NEG,
    &unary::RECIPROCAL,
    &unary::RELU,
    &unary::RELU6,
    &unary::RINT,
    &unary::ROUND,
    &unary::RSQRT,
    &unary::SELU,
    &unary::SIGMOID,
    &unary::SIGN,
    &unary::SIN,
    &unary::SINH,
    &unary::SOFTPLUS,
    &unary::SOFTSIGN,
    &unary::SQRT,
    &unary::SQUARE,
    &unary::TAN,
    &unary::TANH,
    &unsorted_segment_sum::UNSORTED_SEGMENT_SUM,
    &where_true::DEF,
];
