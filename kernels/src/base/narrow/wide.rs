//! A node of 16-bit floats, as the kernel of `f32` has to see it.

use crate::base::def::{Attrs, Spec};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::half::Half;

/// The attributes of a node, as the kernel of `f32` has to see them.
pub(super) struct Wide<'a>(pub(super) &'a dyn Attrs);

impl Attrs for Wide<'_> {
    fn int(&self, name: &'static str) -> Result<i64> {
        self.0.int(name)
    }

    fn float(&self, name: &'static str) -> Result<f32> {
        self.0.float(name)
    }

    fn boolean(&self, name: &'static str) -> Result<bool> {
        self.0.boolean(name)
    }

    fn string(&self, name: &'static str) -> Result<&str> {
        self.0.string(name)
    }

    fn dtype(&self, name: &'static str) -> Result<DType> {
        self.0.dtype(name).map(widened)
    }

    fn ints(&self, name: &'static str) -> Result<&[i64]> {
        self.0.ints(name)
    }
}

/// The type that a kernel computes with.
pub(super) fn widened(dtype: DType) -> DType {
    match Half::of(dtype) {
        Some(_) => DType::F32,
        None => dtype,
    }
}

/// What stands in a place that is not filled yet.
pub(super) static NO_SPEC: Spec = Spec::scalar(DType::U8);
