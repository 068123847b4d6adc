//! A layer that a configuration describes.

use tfp_core::Result;

use crate::nn::layer::Layer;

/// A layer, and where the file has its variables, in the order in which it makes them.
pub(super) struct Described {
    pub layer: Box<dyn Layer>,
    pub places: Vec<String>,
}

impl Described {
    /// A layer whose own variables are so many.
    pub fn own(layer: impl Layer + 'static, count: usize) -> Result<Self> {
        Ok(Self {
            layer: Box::new(layer),
            places: vars("", count),
        })
    }

    /// A layer without variables.
    pub fn plain(layer: impl Layer + 'static) -> Result<Self> {
        Self::own(layer, 0)
    }
}

/// The places of an object's own variables.
pub(super) fn vars(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("{prefix}vars/{index}"))
        .collect()
}
