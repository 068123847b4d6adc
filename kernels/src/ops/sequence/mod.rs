//! Recurrent layers and attention, with their gradients.

pub mod attention;
pub mod attention_gradient;
pub mod cudnn_rnn;
pub mod lstm;
pub mod recurrent;
pub mod recurrent_gradient;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &cudnn_rnn::BACKPROP,
    &cudnn_rnn::BACKPROP_V2,
    &cudnn_rnn::BACKPROP_V3,
    &cudnn_rnn::DEF,
    &cudnn_rnn::V2,
    &cudnn_rnn::V3,
];
