//! The ops, in rooms of one family each. A room lists its kernels.

pub mod conv;
pub mod elementwise;
pub mod image;
pub mod matrix;
pub mod moving;
pub mod narrow;
pub mod norm;
pub mod random;
pub mod reduction;
pub mod sequence;

use crate::base::def::KernelDef;

/// The kernels of every room.
pub static KERNELS: &[&[&KernelDef]] = &[
    conv::KERNELS,
    elementwise::KERNELS,
    image::KERNELS,
    matrix::KERNELS,
    moving::KERNELS,
    narrow::ELEMENTWISE,
    narrow::KERNELS,
    narrow::PRODUCTS,
    norm::KERNELS,
    random::KERNELS,
    reduction::KERNELS,
    sequence::KERNELS,
];
