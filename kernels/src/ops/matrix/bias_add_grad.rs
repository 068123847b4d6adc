//! `BiasAddGrad`: the sum over all but the channels.

use crate::base::adapt::variants;
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::level::{Level, level};
use crate::base::parallel::Parallel;
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::base::worth::Work;
use crate::conv::attributes::Format;
use crate::conv::geometry::check_len;
use crate::ops::matrix::bias_add::Channels;
use crate::simd::blocks::for_each_chunk;
use crate::simd::{Body, Simd, dispatch};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: &[("data_format", AttrKind::String)],
    outputs,
    run,
    ..KernelDef::of("BiasAddGrad")
};

/// Channels that a task sums, at least: a cache line and more.
const CHANNELS: usize = 32;
/// Terms that are summed before they are added to the total, so that long sums stay exact.
const TERMS: usize = 256;

/// Sums `gradient` over all but the channels into `output`. The error of a sum of `n` terms is at
/// most `(n / 256 + 256) * 2^-24` times the sum of their magnitudes.
///
/// # Errors
/// [`crate::base::error::Error::Length`].
pub fn bias_add_grad(
    sizes: Channels,
    gradient: &[f32],
    output: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    bias_add_grad_for(level(), sizes, gradient, output, parallel)
}

fn bias_add_grad_for(
    level: Level,
    sizes: Channels,
    gradient: &[f32],
    output: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_len("out_backprop", gradient.len(), sizes.elements())?;
    check_len("output", output.len(), sizes.channels)?;
    let parallel = Work::Moved(gradient.len()).threads(parallel);
    let chunk = sizes
        .channels
        .div_ceil(parallel.threads())
        .next_multiple_of(CHANNELS);
    for_each_chunk(parallel, output, chunk, |first, output| {
        dispatch(
            level,
            Sums {
                sizes,
                gradient,
                first,
                output,
            },
        );
    });
    Ok(())
}

struct Sums<'a> {
    sizes: Channels,
    gradient: &'a [f32],
    first: usize,
    output: &'a mut [f32],
}

impl Body for Sums<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Channels {
            outer,
            channels,
            inner,
        } = self.sizes;
        if inner != 1 {
            for (c, output) in self.output.iter_mut().enumerate() {
                *output = 0.0;
                for i in 0..outer {
                    let row = &self.gradient[(i * channels + self.first + c) * inner..][..inner];
                    for part in row.chunks(TERMS * S::LANES) {
                        let mut sum = s.zero();
                        for part in part.chunks(S::LANES) {
                            sum = s.add(sum, s.load_up_to(part));
                        }
                        *output += s.sum(sum);
                    }
                }
            }
            return;
        }
        let mut j = 0;
        while j < self.output.len() {
            let width = S::LANES.min(self.output.len() - j);
            let mut total = s.zero();
            let mut from = 0;
            while from < outer {
                let to = outer.min(from + TERMS);
                let mut sum = s.zero();
                for i in from..to {
                    let row = &self.gradient[i * channels + self.first + j..][..width];
                    sum = s.add(sum, s.load_up_to(row));
                }
                total = s.add(total, sum);
                from = to;
            }
            s.store_up_to(&mut self.output[j..j + width], total);
            j += width;
        }
    }
}

fn sizes(inputs: &Inputs<'_>) -> Result<Channels> {
    let format = Format::read(inputs.attrs)?;
    Channels::new("out_backprop", &inputs.shape(0, "out_backprop")?, format)
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    sink(DType::F32, Shape::new(&[sizes(inputs)?.channels])?)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let sizes = sizes(&call.inputs)?;
    let gradient = call.inputs.get(0, "out_backprop")?.f32("out_backprop")?;
    let parallel = call.parallel;
    bias_add_grad(
        sizes,
        gradient,
        scratch::first_output(call.outputs)?.f32_mut("output")?,
        parallel,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::available;
    use crate::testing::{Interleaved, Value, call, close, numbers};

    proptest! {
        #[test]
        fn sums_match_f64(
            outer in prop_oneof![0..7_usize, 250..600_usize],
            channels in 1..70_usize,
            inner in prop_oneof![Just(1_usize), 2..40_usize],
            seed in any::<u64>(),
        ) {
            let sizes = Channels { outer, channels, inner };
            let gradient = numbers(sizes.elements(), seed);
            let mut exact = vec![(0.0, 0.0); channels];
            for (i, &x) in gradient.iter().enumerate() {
                let sum = &mut exact[i / inner % channels];
                *sum = (sum.0 + f64::from(x), sum.1 + f64::from(x.abs()));
            }
            for level in available() {
                let mut found = vec![f32::NAN; channels];
                bias_add_grad_for(level, sizes, &gradient, &mut found, &Interleaved).unwrap();
                for (&found, exact) in found.iter().zip(&exact) {
                    prop_assert!(close(found, exact.0, exact.1 * 2e-6 + 1e-30));
                }
            }
        }
    }

    #[test]
    fn the_channels_are_where_the_format_says() {
        for (format, channels) in [("NHWC", 5), ("NCHW", 3)] {
            let input = (vec![2, 3, 4, 5], vec![1.0; 120]);
            let attrs = [("data_format", Value::Text(format))];
            let output = call(&DEF, &attrs, &[input]).unwrap().remove(0);
            assert_eq!(
                output,
                (vec![channels], vec![120.0 / channels as f32; channels])
            );
        }
    }
}
