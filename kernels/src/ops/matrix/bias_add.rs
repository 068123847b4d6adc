//! `BiasAdd`: adds one number per channel; any rank from 2 on, channels last or second.

use crate::base::adapt::variants;
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::level::{Level, level};
use crate::base::parallel::Parallel;
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::base::worth::Work;
use crate::conv::attributes::Format;
use crate::conv::geometry::check_len;
use crate::simd::blocks::for_each_chunk;
use crate::simd::{Body, Simd, dispatch};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: &[("data_format", AttrKind::String)],
    forward: &[(0, 0)],
    outputs,
    run,
    ..KernelDef::of("BiasAdd")
};

/// A tensor seen as `[outer, channels, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Product of the dimensions before the channels.
    pub outer: usize,
    /// Channels.
    pub channels: usize,
    /// Product of the dimensions after the channels.
    pub inner: usize,
}

impl Channels {
    /// How `format` sees a tensor: the channels are its last or its second dimension.
    ///
    /// # Errors
    /// [`Error::Rank`] below 2.
    pub fn new(argument: &'static str, shape: &Shape, format: Format) -> Result<Self> {
        if shape.rank() < 2 {
            return Err(Error::Rank {
                argument,
                found: shape.rank(),
                expected: "at least 2",
            });
        }
        let axis = match format {
            Format::Nhwc => shape.rank() - 1,
            Format::Nchw => 1,
        };
        Ok(Self {
            outer: shape[..axis].iter().product(),
            channels: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        })
    }

    /// All elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.outer * self.channels * self.inner
    }
}

/// Writes `input` plus the bias of its channel to `output`; without `input`, works in place.
///
/// # Errors
/// [`Error::Length`].
pub fn bias_add(
    sizes: Channels,
    input: Option<&[f32]>,
    bias: &[f32],
    output: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    bias_add_for(level(), sizes, input, bias, output, parallel)
}

fn bias_add_for(
    level: Level,
    sizes: Channels,
    input: Option<&[f32]>,
    bias: &[f32],
    output: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_len("bias", bias.len(), sizes.channels)?;
    check_len("output", output.len(), sizes.elements())?;
    if let Some(input) = input {
        check_len("value", input.len(), sizes.elements())?;
    }
    if output.is_empty() {
        return Ok(());
    }
    let parallel = Work::Moved(output.len()).threads(parallel);
    // A row has one bias per element, or one bias in all.
    let row = if sizes.inner == 1 {
        sizes.channels
    } else {
        sizes.inner
    };
    let share = output.len().div_ceil(parallel.threads());
    let chunk = share.next_multiple_of(row);
    for_each_chunk(parallel, output, chunk, |start, output| {
        let input = input.map(|input| &input[start..][..output.len()]);
        dispatch(
            level,
            Add {
                input,
                bias,
                row,
                first: start / row,
                output,
                single: sizes.inner != 1,
            },
        );
    });
    Ok(())
}

struct Add<'a> {
    input: Option<&'a [f32]>,
    bias: &'a [f32],
    row: usize,
    first: usize,
    output: &'a mut [f32],
    /// All elements of a row share one bias.
    single: bool,
}

impl Body for Add<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self {
            input,
            bias,
            row,
            first,
            output,
            single,
        } = self;
        for (i, to) in output.chunks_exact_mut(row).enumerate() {
            let from = input.map(|input| &input[i * row..][..row]);
            let same = s.splat(bias[(first + i) % bias.len()]);
            let mut j = 0;
            while j + S::LANES <= row {
                let add = if single { same } else { s.load(&bias[j..]) };
                let x = match from {
                    Some(from) => s.load(&from[j..]),
                    None => s.load(&to[j..]),
                };
                s.store(&mut to[j..], s.add(x, add));
                j += S::LANES;
            }
            if j < row {
                let add = if single {
                    same
                } else {
                    s.load_partial(&bias[j..])
                };
                let x = match from {
                    Some(from) => s.load_partial(&from[j..]),
                    None => s.load_partial(&to[j..]),
                };
                s.store_partial(&mut to[j..], s.add(x, add));
            }
        }
    }
}

fn sizes(inputs: &Inputs<'_>) -> Result<Channels> {
    let format = Format::read(inputs.attrs)?;
    let (value, bias) = (inputs.shape(0, "value")?, inputs.shape(1, "bias")?);
    let sizes = Channels::new("value", &value, format)?;
    if bias.rank() != 1 {
        return Err(Error::Rank {
            argument: "bias",
            found: bias.rank(),
            expected: "1",
        });
    }
    if bias[0] != sizes.channels {
        return Err(Error::Shape {
            argument: "bias",
            found: bias,
            expected: Shape::new(&[sizes.channels])?,
        });
    }
    Ok(sizes)
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    sizes(inputs)?;
    sink(DType::F32, inputs.shape(0, "value")?)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let sizes = sizes(&call.inputs)?;
    let (value, bias) = (call.inputs.get(0, "value")?, call.inputs.get(1, "bias")?);
    let input = match value.is_forwarded() {
        true => None,
        false => Some(value.f32("value")?),
    };
    let output = scratch::first_output(call.outputs)?.f32_mut("output")?;
    bias_add(sizes, input, bias.f32("bias")?, output, call.parallel)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::parallel::Serial;
    use crate::simd::available;
    use crate::testing::{Interleaved, numbers};

    proptest! {
        #[test]
        fn adds_the_bias_of_the_channel(
            outer in 0..7_usize,
            channels in 1..40_usize,
            inner in prop_oneof![Just(1_usize), 2..40_usize],
            seed in any::<u64>(),
        ) {
            let sizes = Channels { outer, channels, inner };
            let value = numbers(sizes.elements(), seed);
            let bias = numbers(channels, seed + 1);
            for level in available() {
                let mut output = vec![f32::NAN; value.len()];
                bias_add_for(level, sizes, Some(&value), &bias, &mut output, &Interleaved).unwrap();
                let mut in_place = value.clone();
                bias_add_for(level, sizes, None, &bias, &mut in_place, &Interleaved).unwrap();
                for (i, &x) in value.iter().enumerate() {
                    prop_assert_eq!(output[i], x + bias[i / inner % channels]);
                }
                prop_assert_eq!(output, in_place);
            }
        }
    }

    #[test]
    fn large_ones_are_shared_out() {
        let sizes = Channels {
            outer: 3000,
            channels: 67,
            inner: 1,
        };
        let value = vec![1.0; sizes.elements()];
        let bias = numbers(67, 1);
        let mut output = vec![f32::NAN; value.len()];
        bias_add(sizes, Some(&value), &bias, &mut output, &Interleaved).unwrap();
        assert!(
            output
                .iter()
                .enumerate()
                .all(|(i, &x)| x == 1.0 + bias[i % 67])
        );
    }

    #[test]
    fn ranks_and_lengths() {
        let shape = |dims: &[usize]| Shape::new(dims).unwrap();
        let seen = |dims, format| Channels::new("value", &shape(dims), format);
        let sizes = |outer, channels, inner| {
            Ok(Channels {
                outer,
                channels,
                inner,
            })
        };
        assert_eq!(seen(&[2, 3], Format::Nhwc), sizes(2, 3, 1));
        assert_eq!(seen(&[2, 3, 4, 5], Format::Nchw), sizes(2, 3, 20));
        assert_eq!(seen(&[2, 3, 4, 5, 6], Format::Nhwc), sizes(120, 6, 1));
        assert!(seen(&[3], Format::Nhwc).is_err());
        let sizes = Channels {
            outer: 2,
            channels: 3,
            inner: 1,
        };
        let run = |v: &[f32], b: &[f32], o: &mut [f32]| bias_add(sizes, Some(v), b, o, &Serial);
        assert!(run(&[0.0; 5], &[0.0; 3], &mut [0.0; 6]).is_err());
        assert!(run(&[0.0; 6], &[0.0; 2], &mut [0.0; 6]).is_err());
        assert!(run(&[0.0; 6], &[0.0; 3], &mut [0.0; 7]).is_err());
    }
}
