//! `TfpScaleShift` of 16-bit floats.

use super::rows::{Part, Rows, check_rows, limits};
use crate::base::adapt::check_count;
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::Result;
use crate::base::half::Half;
use crate::base::parallel::Parallel;
use crate::gemm::Activation;
use crate::simd::body::dispatch;

/// The type of 16-bit floats, and where they round.
#[derive(Clone, Copy)]
pub struct Rounding {
    pub half: Half,
    /// Whether the product is rounded before the sum.
    pub between: bool,
}

/// As [`super::scale_shift`], of 16-bit floats.
///
/// # Errors
/// As [`super::scale_shift`].
pub fn narrow(
    (rounding, x): (Rounding, Option<&[u16]>),
    (scale, shift): (&[f32], &[f32]),
    activation: &Activation,
    out: &mut [u16],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("shift", shift.len(), scale.len())?;
    if let Some(x) = x {
        check_count("out", out.len(), x.len())?;
    }
    let limits = limits(activation)?;
    check_rows(out.len(), scale.len())?;
    let chunk = chunk_len(parallel, out.len(), scale.len(), 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let x = x.map(|x| &x[start..start + out.len()]);
        NarrowRows {
            rounding,
            x,
            scale,
            shift,
            limits,
            out,
        }
        .run();
    });
    Ok(())
}

/// What a part of a tensor of 16-bit floats becomes.
struct NarrowRows<'a> {
    rounding: Rounding,
    /// The values; those of `out` if there are none.
    x: Option<&'a [u16]>,
    scale: &'a [f32],
    shift: &'a [f32],
    limits: Option<(f32, f32)>,
    out: &'a mut [u16],
}

/// Elements of a 16-bit float that are worked on at a time.
const BLOCK: usize = 1024;

impl NarrowRows<'_> {
    fn run(self) {
        let mut wide = [0.0; BLOCK];
        let Rounding { half, between } = self.rounding;
        let width = self.scale.len();
        // Whole rows, or a part of one.
        let step = (BLOCK / width * width).max(width.min(BLOCK));
        let mut at = 0;
        while at < self.out.len() {
            let column = at % width;
            let left = if width < BLOCK {
                step
            } else {
                step.min(width - column)
            };
            let len = left.min(self.out.len() - at);
            let (out, wide) = (&mut self.out[at..at + len], &mut wide[..len]);
            match self.x {
                Some(x) => half.widen(&x[at..at + len], wide),
                None => half.widen(out, wide),
            }
            let columns = column..(column + len).min(width);
            let step = |part, out: &mut [f32]| {
                dispatch(Rows {
                    part,
                    x: None,
                    scale: &self.scale[columns.clone()],
                    shift: &self.shift[columns.clone()],
                    limits: self.limits,
                    out,
                });
            };
            if between {
                step(Part::Product, wide);
                half.keep(wide);
                step(Part::Sum, wide);
            } else {
                step(Part::All, wide);
            }
            half.round(wide, out);
            at += len;
        }
    }
}
