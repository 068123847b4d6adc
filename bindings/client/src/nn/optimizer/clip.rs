//! Clipping of gradients.

use tfp_core::{Context, Result};
use tfp_ops as ops;

/// How gradients are limited before a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Clip {
    /// Not at all.
    #[default]
    None,
    /// Each element to `[-limit, limit]`.
    Value(f32),
    /// Each gradient to a Euclidean norm of at most the limit.
    Norm(f32),
    /// All gradients together to a Euclidean norm of at most the limit.
    GlobalNorm(f32),
}

impl Clip {
    /// Limits gradients. Shapes and element types stay.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn apply<C: Context + ?Sized>(
        self,
        cx: &C,
        gradients: &[C::Value],
    ) -> Result<Vec<C::Value>> {
        match self {
            Self::None => Ok(gradients.to_vec()),
            Self::Value(limit) => gradients
                .iter()
                .map(|g| ops::minimum(cx, ops::maximum(cx, g, -limit)?, limit))
                .collect(),
            Self::Norm(limit) => gradients
                .iter()
                .map(|g| {
                    let norm = ops::sqrt(cx, squares(cx, g)?)?;
                    let scale = ops::div(cx, limit, ops::maximum(cx, norm, limit)?)?;
                    ops::mul(cx, g, scale)
                })
                .collect(),
            Self::GlobalNorm(limit) => {
                if gradients.is_empty() {
                    return Ok(Vec::new());
                }
                let sums = gradients
                    .iter()
                    .map(|g| squares(cx, g))
                    .collect::<Result<Vec<_>>>()?;
                let norm = ops::sqrt(cx, ops::add_n(cx, &sums)?)?;
                let scale = ops::div(cx, limit, ops::maximum(cx, norm, limit)?)?;
                gradients.iter().map(|g| ops::mul(cx, g, &scale)).collect()
            }
        }
    }
}

/// The sum of the squares of all elements: a scalar.
fn squares<C: Context + ?Sized>(cx: &C, x: &C::Value) -> Result<C::Value> {
    let flat = ops::reshape(cx, ops::square(cx, x)?, [-1])?;
    ops::sum(cx, flat, 0, ops::SumOptions::default())
}
