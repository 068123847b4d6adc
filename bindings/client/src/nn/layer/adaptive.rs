//! Pooling to a given size.

use tfp_core::{Error, Result};

use super::described::KerasLayer;
use super::pool::name;
use super::{Built, Layer, check_sizes, wrong_input};
use crate::nn::Weights;
use crate::nn::functional::Pool;
use crate::ops;

/// How many windows there are at most along a dimension: each is an op.
const MOST: i64 = 1 << 16;

/// Pools to a given number of steps, or of rows and columns, whatever the input's. Window `i` of `n` along
/// a dimension of size `s` is from `floor(i s / n)` to `ceil((i + 1) s / n)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdaptivePooling {
    /// What a window becomes.
    pub kind: Pool,
    /// The size of each dimension between batch and channels.
    pub sizes: Vec<i64>,
}

impl Layer for AdaptivePooling {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let class = format!("Adaptive{}Pooling{}D", name(self.kind), self.sizes.len());
        Ok(KerasLayer::new(class).set("output_size", &*self.sizes))
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        let Self { kind, sizes } = self.clone();
        let fits = matches!(sizes.len(), 1..=3) && input.len() == sizes.len() + 1;
        if !fits {
            let expected = format!("channels and {} known sizes before them", sizes.len());
            return Err(wrong_input("AdaptivePooling", &expected, input));
        }
        check_sizes(
            "AdaptivePooling",
            "known sizes before channels",
            &input[..sizes.len()],
        )?;
        if !sizes.iter().all(|size| (1..=MOST).contains(size)) {
            return Err(Error::argument(format!(
                "AdaptivePooling: sizes {sizes:?}, expected 1 to {MOST}"
            )));
        }
        let known = input.iter().zip(&sizes);
        let windows: Vec<Vec<(i32, i32)>> = known
            .map(|(&from, &to)| {
                let window = |at: i64| (at * from / to, ((at + 1) * from + to - 1) / to);
                let range = |(first, end): (i64, i64)| (first as i32, (end - first) as i32);
                (0..to).map(window).map(range).collect()
            })
            .collect();
        let rank = input.len() + 1;
        let mut output = input.to_vec();
        output[..sizes.len()].copy_from_slice(&sizes);
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let mut y = x.clone();
            for (index, windows) in windows.iter().enumerate() {
                let axis = index as i32 + 1;
                let (mut begin, mut size) = (vec![0_i32; rank], vec![-1_i32; rank]);
                let mut parts = Vec::with_capacity(windows.len());
                for &(first, length) in windows {
                    (begin[index + 1], size[index + 1]) = (first, length);
                    let window = ops::slice(cx, &y, begin.as_slice(), size.as_slice())?;
                    parts.push(match kind {
                        Pool::Max => {
                            let keep_dims = Some(true);
                            ops::max(cx, window, axis, ops::MaxOptions { keep_dims })?
                        }
                        Pool::Average => {
                            let keep_dims = Some(true);
                            ops::mean(cx, window, axis, ops::MeanOptions { keep_dims })?
                        }
                    });
                }
                y = ops::concat_v2(cx, &parts, axis)?;
            }
            Ok(y)
        })
    }
}
