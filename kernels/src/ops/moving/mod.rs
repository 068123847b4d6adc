//! Ops that move elements and compute nothing: slices, joins, gathers, transposes.

pub mod bitcast;
pub mod broadcast_to;
pub mod dynamic_stitch;
pub mod fill;
pub mod gather;
pub mod gather_nd;
pub mod join;
pub mod one_hot;
pub mod pad;
pub mod range;
pub mod reverse;
pub mod scatter;
pub mod slice;
pub mod split;
pub mod strided_slice;
pub mod tile;
pub mod transpose;
pub mod where_true;

use crate::base::def::KernelDef;

/// The kernels of this room.
pub static KERNELS: &[&KernelDef] = &[
    &bitcast::BITCAST,
    &broadcast_to::BROADCAST_TO,
    &dynamic_stitch::DYNAMIC_STITCH,
    &fill::FILL,
    &fill::ONES_LIKE,
    &fill::ZEROS_LIKE,
    &gather::GATHER_V2,
    &gather_nd::GATHER_ND,
    &join::CONCAT_V2,
    &join::PACK,
    &one_hot::ONE_HOT,
    &pad::MIRROR_PAD,
    &pad::PAD,
    &pad::PAD_V2,
    &range::RANGE,
    &reverse::REVERSE_V2,
    &scatter::SCATTER,
    &scatter::SCATTER_ND,
    &scatter::TENSOR_SCATTER_ADD,
    &scatter::TENSOR_SCATTER_MAX,
    &scatter::TENSOR_SCATTER_MIN,
    &scatter::TENSOR_SCATTER_SUB,
    &scatter::TENSOR_SCATTER_UPDATE,
    &slice::SLICE,
    &split::SPLIT,
    &split::SPLIT_V,
    &split::UNPACK,
    &strided_slice::STRIDED_SLICE,
    &strided_slice::STRIDED_SLICE_GRAD,
    &strided_slice::TENSOR_STRIDED_SLICE_UPDATE,
    &tile::TILE,
    &transpose::TRANSPOSE,
    &where_true::DEF,
];
