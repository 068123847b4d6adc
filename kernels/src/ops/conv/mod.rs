//! Convolutions as TensorFlow defines them, over [`crate::conv`].

pub mod conv1d;
pub mod conv2d;
pub mod conv2d_backprop_filter;
pub mod conv2d_backprop_input;
pub mod conv3d;
pub mod depthwise_conv2d_native;
pub mod fused_conv2d;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &conv2d::DEF,
    &conv2d_backprop_filter::DEF,
    &conv2d_backprop_input::DEF,
    &conv3d::BACKPROP_FILTER,
    &conv3d::BACKPROP_INPUT,
    &conv3d::DEF,
    &depthwise_conv2d_native::BACKPROP_FILTER,
    &depthwise_conv2d_native::BACKPROP_INPUT,
    &depthwise_conv2d_native::DEF,
    &fused_conv2d::DEF,
];
