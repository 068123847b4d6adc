//! `TfpScaleShift`, an op that the plug-in defines: `activation(x * scale + shift)` with a number
//! per channel, the last axis. A batch norm comes down to this in inference.
//!
//! `x` and the result may be of a 16-bit float. With numbers per channel of that type the product is
//! rounded before the sum, as those of two ops. Where `x` is the mean of its channel, shift and product
//! then cancel exactly. With numbers of `f32`, as between two casts, the result alone is rounded.

use crate::base::adapt::{check_count, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, KernelDef, TensorRef};
use crate::base::error::{Error, Result};
use crate::base::half::Half;
use crate::base::parallel::Parallel;
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::gemm::Activation;
use crate::ops::matrix::fused_mat_mul::activation;
use crate::simd::body::{dispatch, dispatch_simd};
use crate::simd::stream::{self, AHEAD, Behind, Columns, Fence};
use crate::simd::{self, Simd, fetch_far};

use narrow::{Rounding, narrow};
use rows::{Part, Rows, affine, check_rows, limits};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F16 BF16, "U": F32];
        ["T": F16, "U": F16];
        ["T": BF16, "U": BF16];
    ),
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
        sink(inputs.get(0, "x")?.dtype(), x)
    },
    scratch: |inputs| {
        let narrow = Half::of(inputs.get(1, "scale")?.dtype()).is_some();
        let channels = inputs.shape(1, "scale")?.elements();
        if narrow {
            scratch::f32_bytes(channels.saturating_mul(2))
        } else {
            Ok(0)
        }
    },
    run,
    ..KernelDef::of("TfpScaleShift")
};

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
    let limits = limits(activation)?;
    check_rows(out.len(), scale.len())?;
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
                part: Part::All,
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

/// The numbers of a row, which are in `room` if they had to be widened.
fn row<'a>(
    tensor: &TensorRef<'a>,
    argument: &'static str,
    room: &'a mut [f32],
) -> Result<&'a [f32]> {
    if Half::of(tensor.dtype()).is_none() {
        return tensor.f32(argument);
    }
    let (half, bits) = tensor.halves(argument)?;
    check_count(argument, room.len(), bits.len())?;
    half.widen(bits, room);
    Ok(room)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let activation = activation(call.inputs.attrs.string("activation")?)?;
    let (x, parallel) = (call.inputs.get(0, "x")?, call.parallel);
    let (scale, shift) = (call.inputs.get(1, "scale")?, call.inputs.get(2, "shift")?);
    let room = scratch::f32s(core::mem::take(&mut call.scratch));
    let between = Half::of(scale.dtype()).is_some();
    let (first, second) = room.split_at_mut(room.len() / 2);
    let scale = row(&scale, "scale", first)?;
    let shift = row(&shift, "shift", second)?;
    let out = call.outputs.first_mut().ok_or(Error::Value {
        argument: "output",
        expected: "an output tensor",
    })?;
    if Half::of(x.dtype()).is_none() {
        let x = if x.is_forwarded() {
            None
        } else {
            Some(x.f32("x")?)
        };
        return scale_shift(
            x,
            (scale, shift),
            &activation,
            out.f32_mut("output")?,
            parallel,
        );
    }
    let (half, out) = out.halves_mut("output")?;
    let x = if x.is_forwarded() {
        None
    } else {
        Some(x.halves("x")?.1)
    };
    let rounding = Rounding { half, between };
    narrow((rounding, x), (scale, shift), &activation, out, parallel)
}

mod narrow;
mod rows;
#[cfg(test)]
mod tests;
