//! Pooling, resizing and boxes.

pub mod max_pool;
pub mod pooling;
pub mod resize;
pub mod suppress;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &max_pool::AVG_POOL,
    &max_pool::AVG_POOL_GRAD,
    &max_pool::MAX_POOL,
    &max_pool::MAX_POOL_GRAD,
    &resize::RESIZE_BILINEAR,
    &resize::RESIZE_BILINEAR_GRAD,
    &resize::RESIZE_NEAREST_NEIGHBOR,
    &resize::RESIZE_NEAREST_NEIGHBOR_GRAD,
];
