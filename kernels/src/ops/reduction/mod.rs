//! Reductions along axes, running sums, arg max, top k, sorting, sums of segments.

pub mod arg_max;
pub mod cumulative;
pub mod introsort;
pub mod reductions;
pub mod top_k;
pub mod unsorted_segment_sum;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &arg_max::ARG_MAX,
    &arg_max::ARG_MIN,
    &cumulative::CUMPROD,
    &cumulative::CUMSUM,
    &reductions::ALL,
    &reductions::ANY,
    &reductions::MAX,
    &reductions::MEAN,
    &reductions::MIN,
    &reductions::PROD,
    &reductions::SUM,
    &unsorted_segment_sum::UNSORTED_SEGMENT_SUM,
];
