//! Matrix products, biases and linear systems, over [`crate::gemm`].

pub mod batch_mat_mul_v2;
pub mod bias_add;
pub mod bias_add_grad;
pub mod fused_mat_mul;
pub mod linear_system;
pub mod mat_mul;
pub mod whole_product;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &batch_mat_mul_v2::DEF,
    &bias_add::DEF,
    &bias_add_grad::DEF,
    &fused_mat_mul::DEF,
    &mat_mul::DEF,
];
