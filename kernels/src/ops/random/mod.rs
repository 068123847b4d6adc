//! Random numbers, bit-equal to TensorFlow's.

pub mod philox;
pub mod stateful;
pub mod stateless;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &stateful::RANDOM_STANDARD_NORMAL,
    &stateful::RANDOM_UNIFORM,
    &stateful::RANDOM_UNIFORM_INT,
    &stateful::TRUNCATED_NORMAL,
    &stateless::STATELESS_RANDOM_GET_ALG,
    &stateless::STATELESS_RANDOM_GET_KEY_COUNTER,
    &stateless::STATELESS_RANDOM_GET_KEY_COUNTER_ALG,
    &stateless::STATELESS_RANDOM_NORMAL_V2,
    &stateless::STATELESS_RANDOM_UNIFORM_FULL_INT_V2,
    &stateless::STATELESS_RANDOM_UNIFORM_INT_V2,
    &stateless::STATELESS_RANDOM_UNIFORM_V2,
    &stateless::STATELESS_TRUNCATED_NORMAL_V2,
];
