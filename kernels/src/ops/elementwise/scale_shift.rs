//! `TfpScaleShift`, an op that the plug-in defines: `activation(x * scale + shift)` with a number
//! per channel, the last axis. A batch norm comes down to this in inference.

use crate::base::adapt::{check_count, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::gemm::Activation;
use crate::ops::matrix::fused_mat_mul::activation;
use crate::simd::body::{Body, dispatch, dispatch_simd};
use crate::simd::stream::{self, AHEAD, Behind, Columns, Fence};
use crate::simd::{self, Simd, fetch_far};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: &[("activation", AttrKind::String)],
    forward: &[(0, 0)],
    outputs: |inputs, sink| {
        let x = inputs.shape(0, "x")?;
        let &channels = x.last().ok_or(Error::Rank {
            argument: "x",
            found: 0,
            expected: "at least 1",
        })?;
        for (index, argument) in [(1, "scale"), (2, "shift")] {
            // Axes of one element may be in front.
            let found = inputs.shape(index, argument)?;
            let fits = found.last() == Some(&channels)
                && found.elements() == channels
                && found.rank() <= x.rank();
            if !fits {
                return Err(Error::Shape {
                    argument,
                    found,
                    expected: Shape::new(&[channels])?,
                });
            }
        }
        sink(DType::F32, x)
    },
    run,
    ..KernelDef::of("TfpScaleShift")
};

/// Channels below which several rows are worked on as one.
const WIDE: usize = 64;
/// Most lanes of a vector.
const LANES: usize = 16;

/// Whole rows of the tensor.
struct Rows<'a> {
    /// The values; those of `out` if there are none.
    x: Option<&'a [f32]>,
    scale: &'a [f32],
    shift: &'a [f32],
    limits: Option<(f32, f32)>,
    out: &'a mut [f32],
}

impl Body for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut memory = [[0.0; 2 * WIDE]; 2];
        let (scale, shift) = if self.scale.len() < WIDE && self.out.len() > 4 * WIDE {
            // Whole vectors, if they fit.
            let unit = self.scale.len() * LANES;
            let width = match 2 * WIDE / unit {
                0 => WIDE.next_multiple_of(self.scale.len()),
                units => units * unit,
            };
            let [scale, shift] = &mut memory;
            for (all, few) in [(&mut *scale, self.scale), (&mut *shift, self.shift)] {
                for part in all[..width].chunks_exact_mut(few.len()) {
                    part.copy_from_slice(few);
                }
            }
            (&scale[..width], &shift[..width])
        } else {
            (self.scale, self.shift)
        };
        let width = scale.len();
        for (row, out) in self.out.chunks_mut(width).enumerate() {
            let x = self.x.map(|x| &x[row * width..][..out.len()]);
            affine(x, (scale, shift), self.limits, out);
        }
    }
}

/// A row, or a part of one, with a factor and a shift per column.
#[inline(always)]
fn affine(
    x: Option<&[f32]>,
    (scale, shift): (&[f32], &[f32]),
    limits: Option<(f32, f32)>,
    out: &mut [f32],
) {
    let factors = scale.iter().zip(shift);
    match x {
        Some(x) => {
            for ((out, &x), (&scale, &shift)) in out.iter_mut().zip(x).zip(factors) {
                *out = x * scale + shift;
            }
        }
        None => {
            for (out, (&scale, &shift)) in out.iter_mut().zip(factors) {
                *out = *out * scale + shift;
            }
        }
    }
    if let Some((low, high)) = limits {
        for out in out {
            // A NaN stays.
            let x = if *out < low { low } else { *out };
            *out = if x > high { high } else { x };
        }
    }
}

/// Elements of a row from which on it is worth writing past the caches.
const LONG: usize = 256;

/// Whole rows that no cache holds.
struct FarRows<'a> {
    x: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    limits: Option<(f32, f32)>,
    out: &'a mut [f32],
}

impl simd::Body for FarRows<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (scale, shift, limits) = (self.scale, self.shift, self.limits);
        let Some(fence) = Fence::new(s, true) else {
            return;
        };
        let rows = self.x.chunks(scale.len());
        for (x, out) in rows.zip(self.out.chunks_mut(scale.len())) {
            let columns = Channels {
                x,
                scale,
                shift,
                limits,
            };
            Behind::new(&fence, columns, out).rest();
        }
    }
}

/// A row of the result.
struct Channels<'a> {
    x: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    limits: Option<(f32, f32)>,
}

impl Columns for Channels<'_> {
    #[inline(always)]
    fn write(&self, first: usize, out: &mut [f32]) {
        let columns = first..first + out.len();
        let x = &self.x[columns.clone()];
        fetch_far(x, AHEAD);
        let factors = (&self.scale[columns.clone()], &self.shift[columns]);
        affine(Some(x), factors, self.limits, out);
    }
}

/// `out = activation(x * scale + shift)`, whose last axis has as many elements as `scale`; without
/// `x`, works in place. The activation is none or a clamp.
///
/// # Errors
/// [`Error::Length`] unless the slices are whole rows and equally long, [`Error::Value`] for
/// another activation.
pub fn scale_shift(
    x: Option<&[f32]>,
    (scale, shift): (&[f32], &[f32]),
    activation: &Activation,
    out: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("shift", shift.len(), scale.len())?;
    if let Some(x) = x {
        check_count("out", out.len(), x.len())?;
    }
    let limits = match *activation {
        Activation::None => None,
        Activation::Clamp(low, high) => Some((low, high)),
        Activation::Map(_) => {
            return Err(Error::Value {
                argument: "activation",
                expected: "none or a clamp",
            });
        }
    };
    if out.is_empty() {
        return Ok(());
    }
    if scale.is_empty() || !out.len().is_multiple_of(scale.len()) {
        return Err(Error::Length {
            argument: "x",
            found: out.len(),
            expected: scale.len(),
        });
    }
    let chunk = chunk_len(parallel, out.len(), scale.len(), 1);
    let far = scale.len() >= LONG && stream::is_far::<f32>(out.len());
    for_each_chunk(
        parallel,
        out,
        chunk,
        &|start, out| match x.map(|x| &x[start..start + out.len()]) {
            Some(x) if far => dispatch_simd(FarRows {
                x,
                scale,
                shift,
                limits,
                out,
            }),
            x => dispatch(Rows {
                x,
                scale,
                shift,
                limits,
                out,
            }),
        },
    );
    Ok(())
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let activation = activation(call.inputs.attrs.string("activation")?)?;
    let x = call.inputs.get(0, "x")?;
    let scale = call.inputs.get(1, "scale")?.f32("scale")?;
    let shift = call.inputs.get(2, "shift")?.f32("shift")?;
    let x = if x.is_forwarded() {
        None
    } else {
        Some(x.f32("x")?)
    };
    let parallel = call.parallel;
    let out = call.output(0)?.f32_mut("output")?;
    scale_shift(x, (scale, shift), &activation, out, parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::body::forced::same_bits;
    use crate::testing::{Interleaved, numbers};

    #[test]
    fn in_place_and_elsewhere() {
        for (rows, width) in [
            (0, 3),
            (1, 1),
            (7, 5),
            (301, 3),
            (300, 9),
            (3000, 1),
            (90, 63),
            (300, 257),
        ] {
            let x = numbers(rows * width, 1);
            let (scale, shift) = (numbers(width, 2), numbers(width, 3));
            for limits in [
                Activation::None,
                Activation::RELU,
                Activation::Clamp(-0.5, 0.5),
            ] {
                let (low, high) = match limits {
                    Activation::Clamp(low, high) => (low, high),
                    _ => (f32::NEG_INFINITY, f32::INFINITY),
                };
                let factors = (&*scale, &*shift);
                let out = same_bits(|| {
                    let mut out = vec![f32::NAN; x.len()];
                    scale_shift(Some(&x), factors, &limits, &mut out, &Interleaved).unwrap();
                    out
                });
                let mut same = x.clone();
                scale_shift(None, factors, &limits, &mut same, &Interleaved).unwrap();
                assert_eq!(out, same);
                for (i, &found) in out.iter().enumerate() {
                    let value = x[i] * scale[i % width] + shift[i % width];
                    assert_eq!(found, value.clamp(low, high));
                }
            }
        }
    }

    #[test]
    fn what_is_no_row_is_refused() {
        let two = [1.0; 2];
        let none = Activation::None;
        let mut out = [0.0; 3];
        assert!(scale_shift(None, (&two, &two), &none, &mut out, &Interleaved).is_err());
        assert!(scale_shift(None, (&two, &two[..1]), &none, &mut out, &Interleaved).is_err());
        assert!(scale_shift(Some(&two), (&two, &two), &none, &mut out, &Interleaved).is_err());
        let map = Activation::Map(|_| ());
        assert!(scale_shift(None, (&[1.0], &[1.0]), &map, &mut out, &Interleaved).is_err());
    }
}
