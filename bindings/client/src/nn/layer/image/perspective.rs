//! Images as seen from another place.

use tfp_core::{Error, Result};

use super::range::applies;
use super::transform::{Fill, Sizes, transformed};
use super::{augment, check_bounds, interpolation_name, pair, per_sample};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::{Built, Interpolation, Layer};
use crate::ops;

/// Moves the corners of some samples while training. The top left one stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomPerspective {
    /// The smallest and the largest probability.
    pub factor: (f32, f32),
    /// How far corners move: 1 is half of the image at most.
    pub scale: f32,
    /// The value beyond the edges.
    pub fill: f32,
    /// How pixels are made.
    pub interpolation: Interpolation,
}

impl RandomPerspective {
    /// With probabilities up to this one, and a scale from 0 to 1.
    #[must_use]
    pub fn new(factor: f32, scale: f32) -> Self {
        Self {
            factor: (0.0, factor),
            scale,
            fill: 0.0,
            interpolation: Interpolation::Bilinear,
        }
    }
}

impl Layer for RandomPerspective {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("RandomPerspective")
            .set("factor", pair(self.factor))
            .set("scale", self.scale)
            .set("fill_value", self.fill)
            .set("interpolation", interpolation_name(self.interpolation)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        check_bounds("RandomPerspective", "the factor", layer.factor)?;
        if !(0.0..=1.0).contains(&layer.scale) {
            return Err(Error::argument(format!(
                "RandomPerspective: the scale is {}, expected 0 to 1",
                layer.scale
            )));
        }
        let seeds = [weights.next_seed(), weights.next_seed()];
        let seed = weights.next_seed();
        let shape = input.to_vec();
        augment("RandomPerspective", weights, input, move |pass, x| {
            let cx = pass.context();
            let sizes = Sizes::of(cx, x, &shape)?;
            let half = layer.scale / 2.0;
            let factor = per_sample(pass, x, &[4, 2], seed, (-half, half))?;
            let (row, column) = sizes.last(cx)?;
            // The corners, (4, 2): x and y.
            let zero = ops::zeros_like(cx, &row)?;
            let corners = [&zero, &zero, &column, &zero, &zero, &row, &column, &row];
            let corners = ops::pack(cx, corners, ops::PackOptions::default())?;
            let from = ops::reshape(cx, corners, [1, 4, 2])?;
            let to = ops::add_v2(cx, &from, ops::mul(cx, &from, factor)?)?;
            let matrix = homography(cx, &from, &to)?;
            let fill = Fill::Constant(layer.fill);
            let y = transformed(cx, x, &matrix, &sizes, fill, layer.interpolation)?;
            ops::select_v2(cx, applies(pass, x, seeds, layer.factor)?, y, x)
        })
    }
}

/// The matrices (batch, 8) that map four places of the result to those of an image: `to` and `from`,
/// (batch, 4, 2) or (1, 4, 2).
fn homography(cx: &AnyContext, from: &AnyValue, to: &AnyValue) -> Result<AnyValue> {
    let from = ops::add_v2(cx, from, ops::zeros_like(cx, to)?)?;
    let parts = ops::split(cx, 2, &from, 2)?;
    let [x, y] = parts.as_slice() else {
        return Err(Error::argument("two coordinates"));
    };
    let (zero, one) = (ops::zeros_like(cx, x)?, ops::ones_like(cx, x)?);
    // Of x: a0 x' + a1 y' + a2 - x (c0 x' + c1 y') = x, and so of y.
    let minus = |value: &AnyValue| ops::neg(cx, ops::mul(cx, value, to)?);
    let of_x = ops::concat_v2(cx, [to, &one, &zero, &zero, &zero, &minus(x)?], 2)?;
    let of_y = ops::concat_v2(cx, [&zero, &zero, &zero, to, &one, &minus(y)?], 2)?;
    let equations = ops::pack(cx, [of_x, of_y], ops::PackOptions { axis: Some(2) })?;
    let equations = ops::reshape(cx, equations, [-1, 8, 8])?;
    let places = ops::reshape(cx, from, [-1, 8, 1])?;
    let found = ops::matrix_solve(cx, equations, places, ops::MatrixSolveOptions::default())?;
    ops::reshape(cx, found, [-1, 8])
}

#[cfg(test)]
mod tests {
    use tfp_core::{Context, Tensor};

    use super::*;
    use crate::EagerContext;
    use crate::context::any::Mode;

    #[test]
    fn each_matrix_maps_its_places() -> Result<()> {
        let eager = EagerContext::new()?;
        let cx = eager.any();
        let from: [f32; 8] = [0.0, 0.0, 5.0, 0.0, 0.0, 4.0, 5.0, 4.0];
        let to: [f32; 16] = [
            1.0, 0.5, 6.0, 0.25, -1.0, 3.0, 4.0, 4.5, 0.0, 0.0, 4.0, 1.0, 1.0, 5.0, 6.0, 3.0,
        ];
        let place = |numbers: &[f32]| {
            cx.constant(&Tensor::from_slice(
                numbers,
                &[numbers.len() as i64 / 8, 4, 2],
            )?)
        };
        let AnyValue::Handle(found) = homography(&cx, &place(&from)?, &place(&to)?)? else {
            panic!("a value of an eager context");
        };
        let found = found.to_tensor()?.to_vec::<f32>()?;
        assert_eq!(found.len(), 16);
        for (m, to) in found.chunks(8).zip(to.chunks(8)) {
            for (to, from) in to.chunks(2).zip(from.chunks(2)) {
                let rest = m[6] * to[0] + m[7] * to[1] + 1.0;
                let x = (m[0] * to[0] + m[1] * to[1] + m[2]) / rest;
                let y = (m[3] * to[0] + m[4] * to[1] + m[5]) / rest;
                assert!((x - from[0]).abs() < 1e-3, "{x}, not {}", from[0]);
                assert!((y - from[1]).abs() < 1e-3, "{y}, not {}", from[1]);
            }
        }
        Ok(())
    }
}
