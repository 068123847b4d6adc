//! Normalizations, softmax and cross entropy, with their gradients.

pub mod cross_entropy;
pub mod fused_batch_norm;
pub mod layer_norm;
pub mod norm_gradient;
pub mod softmax;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &cross_entropy::SOFTMAX_CROSS_ENTROPY_WITH_LOGITS,
    &cross_entropy::SPARSE_SOFTMAX_CROSS_ENTROPY_WITH_LOGITS,
    &fused_batch_norm::FUSED_BATCH_NORM,
    &fused_batch_norm::FUSED_BATCH_NORM_GRAD,
    &fused_batch_norm::FUSED_BATCH_NORM_GRAD_V2,
    &fused_batch_norm::FUSED_BATCH_NORM_GRAD_V3,
    &fused_batch_norm::FUSED_BATCH_NORM_V2,
    &fused_batch_norm::FUSED_BATCH_NORM_V3,
    &softmax::LOG_SOFTMAX,
    &softmax::SOFTMAX,
];
