//! Recurrent layers and attention, with their gradients.

pub mod attention;
pub mod attention_gradient;
pub mod lstm;
pub mod recurrent;
pub mod recurrent_gradient;
