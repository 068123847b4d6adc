//! Convolution along one axis, channels last: a [`Conv`] whose vertical axis has one element.

use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::conv::{Conv, Filter, Forward, Padding, Window};
use crate::gemm::Activation;

/// What a convolution along one axis does.
#[derive(Clone, Copy, Debug)]
pub struct Conv1d<'a> {
    /// Elements from one stop of the filter to the next.
    pub stride: usize,
    /// Elements from one tap of the filter to the next.
    pub dilation: usize,
    /// How the axis is padded; [`Padding::causal`] for Keras's `causal`.
    pub padding: Padding,
    /// One element per output channel.
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
}

impl Conv1d<'_> {
    /// The sizes for an input `[batch, steps, in_channels]` and a filter `[taps, in_channels /
    /// groups, out_channels]`; [`Conv::x`] has the steps of the output, for gradients too.
    ///
    /// # Errors
    /// [`Error::Value`] for a stride or dilation of 0, channels that do not fit, and an input that
    /// is too short; [`Error::Overflow`].
    pub fn sizes(&self, input: [usize; 3], filter: [usize; 3]) -> Result<Conv> {
        let [batch, steps, in_channels] = input;
        let [taps, depth, out_channels] = filter;
        if depth == 0 || !in_channels.is_multiple_of(depth) {
            return Err(Error::Value {
                argument: "filter",
                expected: "a second dimension that divides the input's channels",
            });
        }
        let conv = Conv {
            batch,
            y: Window::UNIT,
            x: Window::new(steps, taps, self.stride, self.dilation, self.padding)?,
            in_channels,
            out_channels,
            groups: (in_channels / depth).max(1),
        };
        conv.check()?;
        Ok(conv)
    }
}

/// Elements of scratch memory that [`conv1d`] needs.
///
/// # Errors
/// As [`Forward::scratch_len`].
pub fn scratch_len(conv: &Conv, filter: Filter<'_>) -> Result<usize> {
    Forward::new(*conv, filter).scratch_len()
}

/// `activation(conv(input, filter) + bias)` with the sizes that [`Conv1d::sizes`] gave; the output
/// is `[batch, steps, out_channels]`.
///
/// # Errors
/// As [`Forward::run`].
pub fn conv1d(
    how: &Conv1d<'_>,
    conv: &Conv,
    input: &[f32],
    filter: Filter<'_>,
    output: &mut [f32],
    scratch: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    let forward = Forward {
        bias: how.bias,
        activation: how.activation,
        ..Forward::new(*conv, filter)
    };
    forward.run(input, output, scratch, parallel)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Interleaved, numbers};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn matches_its_definition(
            batch in 1..3_usize,
            steps in 1..40_usize,
            taps in 1..6_usize,
            depth in 1..5_usize,
            each in 1..20_usize,
            groups in 1..3_usize,
            stride in 1..4_usize,
            dilation in 1..3_usize,
            causal in any::<bool>(),
        ) {
            let bias = numbers(each * groups, 3);
            let padding = if causal { Padding::causal(taps, dilation) } else { Padding::Same };
            let how = Conv1d {
                stride,
                dilation,
                padding,
                bias: Some(&bias),
                activation: Activation::RELU,
            };
            let (channels, outs) = (depth * groups, each * groups);
            let conv = how.sizes([batch, steps, channels], [taps, depth, outs]).unwrap();
            let (x, w) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2));
            let filter = Filter::Plain(&w);
            let mut scratch = vec![f32::NAN; scratch_len(&conv, filter).unwrap()];
            let mut y = vec![f32::NAN; conv.output_len()];
            conv1d(&how, &conv, &x, filter, &mut y, &mut scratch, &Interleaved).unwrap();
            if causal {
                prop_assert_eq!(conv.x.output, steps.div_ceil(stride));
            }
            for (index, &found) in y.iter().enumerate() {
                let (line, out) = (index / outs, index % outs);
                let (image, stop) = (line / conv.x.output, line % conv.x.output);
                let mut sum = f64::from(bias[out]);
                for tap in 0..taps {
                    let at = stop * stride + tap * dilation;
                    if at < conv.x.before || at - conv.x.before >= steps {
                        continue;
                    }
                    let pixel = image * steps + at - conv.x.before;
                    for c in 0..depth {
                        sum += f64::from(x[pixel * channels + out / each * depth + c])
                            * f64::from(w[(tap * depth + c) * outs + out]);
                    }
                }
                prop_assert!((f64::from(found) - sum.max(0.0)).abs() < 1e-5, "{} {}", found, sum);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let how = Conv1d {
            stride: 1,
            dilation: 1,
            padding: Padding::Valid,
            bias: None,
            activation: Activation::None,
        };
        assert!(how.sizes([1, 5, 3], [3, 2, 4]).is_err());
        assert!(how.sizes([1, 1, 3], [3, 3, 4]).is_err());
        assert!(how.sizes([1, 5, 3], [0, 3, 4]).is_err());
        let zero = Conv1d { stride: 0, ..how };
        assert!(zero.sizes([1, 5, 3], [3, 3, 4]).is_err());
    }
}
