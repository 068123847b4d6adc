//! Layers that move elements: permutations, repetitions, borders.

use tfp_core::{Error, Result};

use super::described::{KerasLayer, pairs};
use super::{Built, Layer, check_sizes, wrong_input};
use crate::nn::Weights;
use crate::ops;

/// Its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity;

impl Layer for Identity {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Identity"))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        Built::new(input.to_vec(), |pass, x| {
            pass.pass_mask(pass.mask());
            Ok(x.clone())
        })
    }
}

/// The dimensions of a sample in another order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permute {
    /// The number of each dimension, from 1 on, in the new order.
    pub order: Vec<i64>,
}

impl Layer for Permute {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Permute").set("dims", &*self.order))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(1..=input.len() as i64) {
            let expected = format!("as many dimensions as the order {:?}", self.order);
            return Err(wrong_input("Permute", &expected, input));
        }
        let output = self.order.iter().map(|&from| input[from as usize - 1]);
        let order: Vec<i32> = std::iter::once(0)
            .chain(self.order.iter().map(|&from| from as i32))
            .collect();
        Built::new(output.collect(), move |pass, x| {
            ops::transpose(pass.context(), x, order.as_slice())
        })
    }
}

/// (features) to (count, features): the same for each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatVector(pub i64);

impl Layer for RepeatVector {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("RepeatVector").set("n", self.0))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let &[features] = input else {
            return Err(wrong_input("RepeatVector", "(features)", input));
        };
        let count = self.0;
        check_sizes("RepeatVector", "count", &[count])?;
        Built::new(vec![count, features], move |pass, x| {
            let cx = pass.context();
            let x = ops::expand_dims(cx, x, 1)?;
            ops::tile(cx, x, [1, count, 1])
        })
    }
}

/// Checks the number of dimensions beside the channels.
fn check_rank<T>(layer: &str, sides: &[T], input: &[i64]) -> Result<()> {
    if (1..=3).contains(&sides.len()) && input.len() == sides.len() + 1 {
        return Ok(());
    }
    let expected = format!("{} dimensions and channels", sides.len());
    Err(wrong_input(layer, &expected, input))
}

/// Without some elements at the borders of steps, images or volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cropping {
    /// How many are left out at the beginning and at the end of each dimension.
    pub sides: Vec<(i64, i64)>,
}

impl Layer for Cropping {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let class = format!("Cropping{}D", self.sides.len());
        Ok(KerasLayer::new(class).set("cropping", pairs(&self.sides)))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        check_rank("Cropping", &self.sides, input)?;
        let mut output = input.to_vec();
        let rank = input.len() as i32 + 1;
        let (mut begin, mut end) = (vec![0_i32; rank as usize], vec![0_i32; rank as usize]);
        let (mut begin_mask, mut end_mask) = (1_i64, 1_i64);
        for (index, (size, &(first, last))) in output.iter_mut().zip(&self.sides).enumerate() {
            let (Ok(from), Ok(to)) = (i32::try_from(first), i32::try_from(last)) else {
                return Err(wrong_input("Cropping", "sides that are smaller", input));
            };
            if from < 0 || to < 0 || (*size >= 0 && *size <= first + last) {
                let expected = format!("more elements than {:?} at the sides", self.sides);
                return Err(wrong_input("Cropping", &expected, input));
            }
            if *size >= 0 {
                *size -= first + last;
            }
            (begin[index + 1], end[index + 1]) = (from, -to);
            // An end of -0 would be the beginning.
            end_mask |= i64::from(to == 0) << (index + 1);
        }
        let channels = self.sides.len() + 1;
        begin_mask |= 1 << channels;
        end_mask |= 1 << channels;
        Built::new(output, move |pass, x| {
            let options = ops::StridedSliceOptions {
                begin_mask: Some(begin_mask),
                end_mask: Some(end_mask),
                ..Default::default()
            };
            let strides = vec![1_i32; begin.len()];
            let cx = pass.context();
            let (begin, end) = (begin.as_slice(), end.as_slice());
            ops::strided_slice(cx, x, begin, end, strides.as_slice(), options)
        })
    }
}

/// With zeros around steps, images or volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeroPadding {
    /// How many there are at the beginning and at the end of each dimension.
    pub sides: Vec<(i64, i64)>,
}

impl Layer for ZeroPadding {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let class = format!("ZeroPadding{}D", self.sides.len());
        Ok(KerasLayer::new(class).set("padding", pairs(&self.sides)))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        check_rank("ZeroPadding", &self.sides, input)?;
        let mut output = input.to_vec();
        let mut paddings = vec![0_i64, 0];
        for (size, &(first, last)) in output.iter_mut().zip(&self.sides) {
            for side in [first, last] {
                if !(0..=i64::from(i32::MAX)).contains(&side) {
                    return Err(Error::argument(format!(
                        "ZeroPadding: {side} elements at a side"
                    )));
                }
            }
            if *size >= 0 {
                *size = size.saturating_add(first + last);
            }
            paddings.extend([first, last]);
        }
        paddings.extend([0, 0]);
        let rows = input.len() as i64 + 1;
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let paddings = ops::reshape(cx, paddings.as_slice(), [rows, 2])?;
            ops::pad(cx, x, paddings)
        })
    }
}

/// How images are made larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// Each element several times.
    #[default]
    Nearest,
    /// Weighted means of four neighbours.
    Bilinear,
}

/// Larger steps, images or volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpSampling {
    /// How much larger each dimension becomes.
    pub sizes: Vec<i64>,
    /// How; only images have more than one way.
    pub interpolation: Interpolation,
}

impl UpSampling {
    /// Each element several times.
    #[must_use]
    pub fn new(sizes: &[i64]) -> Self {
        Self {
            sizes: sizes.to_vec(),
            interpolation: Interpolation::Nearest,
        }
    }
}

impl Layer for UpSampling {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let dims = self.sizes.len();
        let layer = KerasLayer::new(format!("UpSampling{dims}D"));
        if let &[size] = self.sizes.as_slice() {
            return Ok(layer.set("size", size));
        }
        let layer = layer.set("size", &*self.sizes);
        Ok(match self.interpolation {
            Interpolation::Nearest => layer,
            Interpolation::Bilinear => layer.set("interpolation", "bilinear"),
        })
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        check_rank("UpSampling", &self.sizes, input)?;
        check_sizes("UpSampling", "sizes", &self.sizes)?;
        let mut output = input.to_vec();
        for (size, &factor) in output.iter_mut().zip(&self.sizes) {
            if *size >= 0 {
                *size = size.saturating_mul(factor);
            }
        }
        if self.interpolation == Interpolation::Bilinear {
            let &[rows, columns, _] = output.as_slice() else {
                return Err(wrong_input("UpSampling", "an image to interpolate", input));
            };
            check_sizes("UpSampling", "a known size of the result", &[rows, columns])?;
            return Built::new(output, move |pass, x| {
                let options = ops::ResizeBilinearOptions {
                    align_corners: Some(false),
                    half_pixel_centers: Some(true),
                };
                let size = [rows as i32, columns as i32];
                ops::resize_bilinear(pass.context(), x, size, options)
            });
        }
        let sizes = self.sizes.clone();
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let mut y = x.clone();
            for (index, &factor) in sizes.iter().enumerate() {
                if factor == 1 {
                    continue;
                }
                // (.., n, ..) to (.., n, factor, ..) to (.., n * factor, ..)
                let axis = index as i32 + 1;
                let shape = ops::shape(cx, &y, ops::ShapeOptions::default())?;
                let rank = sizes.len() as i32 + 2;
                let mut multiples = vec![1_i32; rank as usize + 1];
                multiples[axis as usize + 1] = factor as i32;
                let wide = ops::expand_dims(cx, &y, axis + 1)?;
                let wide = ops::tile(cx, wide, multiples.as_slice())?;
                let mut factors = vec![1_i32; rank as usize];
                factors[axis as usize] = factor as i32;
                let shape = ops::mul(cx, shape, factors.as_slice())?;
                y = ops::reshape(cx, wide, shape)?;
            }
            Ok(y)
        })
    }
}
