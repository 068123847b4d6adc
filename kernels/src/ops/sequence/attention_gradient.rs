//! The gradients of scaled dot-product attention.

use crate::base::adapt::check_count;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::scratch::take;
use crate::base::worth::Work;
use crate::frame::rows;
use crate::gemm::{Gemm, Matrix};
use crate::ops::sequence::attention::{Attention, QUERIES};
use crate::simd::blocks::for_each_chunk;
use crate::simd::body::dispatch_simd;
use crate::simd::{Body, Simd};

/// Where the gradients of an [`Attention`] go; each is as long as what it belongs to.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// `[heads, queries, depth]`
    pub queries: &'a mut [f32],
    /// `[heads, keys, depth]`
    pub keys: &'a mut [f32],
    /// `[heads, keys, width]`
    pub values: &'a mut [f32],
    /// `[queries, keys]`, summed over the heads. Only if the mask is learned.
    pub mask: Option<&'a mut [f32]>,
}

/// The products of some queries of a head, without their data.
struct Products {
    scores: (usize, usize, usize),
    values: (usize, usize, usize),
    weights: (usize, usize, usize),
    queries: (usize, usize, usize),
    keys: (usize, usize, usize),
}

impl Attention<'_> {
    fn products(&self, count: usize) -> Products {
        Products {
            scores: (count, self.keys, self.depth),
            values: (self.keys, self.width, count),
            weights: (count, self.keys, self.width),
            queries: (count, self.depth, self.keys),
            keys: (self.keys, self.depth, count),
        }
    }

    /// Elements of scratch memory that the products of so many queries need.
    fn product_scratch(&self, count: usize) -> Result<usize> {
        let Products {
            scores,
            values,
            weights,
            queries,
            keys,
        } = self.products(count);
        let (rows, columns) = (Matrix::rows(&[], 0), Matrix::columns(&[], 0));
        let mut most = 0;
        for (sizes, a, b) in [
            (scores, rows, columns),
            (values, columns, rows),
            (weights, rows, columns),
            (queries, rows, rows),
            (keys, columns, rows),
        ] {
            most = most.max(Gemm::new(sizes, a, b).scratch_len()?);
        }
        Ok(most)
    }

    /// Elements of scratch memory that [`Attention::backward`] needs: the weights of 64 queries,
    /// their gradients, and what products need.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn backward_scratch_len(&self) -> Result<usize> {
        let block = QUERIES.min(self.queries);
        let last = self.queries % QUERIES;
        let products = self
            .product_scratch(block)?
            .max(self.product_scratch(last)?);
        block
            .checked_mul(self.keys)
            .and_then(|scores| scores.checked_mul(2)?.checked_add(products))
            .ok_or(Error::Overflow { argument: "keys" })
    }

    /// Computes the gradients of queries, keys and values, and of the mask if asked for, from those
    /// of the output. What [`Attention::run`] computed on the way is computed again. A query that
    /// sees no key makes gradients NaN.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice has not the length that the sizes say; [`Error::Overflow`].
    pub fn backward(
        &self,
        (queries, keys, values): (&[f32], &[f32], &[f32]),
        output: &[f32],
        gradients: &mut Gradients<'_>,
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        self.check(queries, keys, values, ("output gradient", output.len()))?;
        check_count("queries", gradients.queries.len(), queries.len())?;
        check_count("keys", gradients.keys.len(), keys.len())?;
        check_count("values", gradients.values.len(), values.len())?;
        if let Some(mask) = &gradients.mask {
            check_count("mask", mask.len(), self.queries * self.keys)?;
        }
        let scratch = take(scratch, self.backward_scratch_len()?)?;
        if let Some(mask) = &mut gradients.mask {
            mask.fill(0.0);
        }
        gradients.queries.fill(0.0);
        gradients.keys.fill(0.0);
        gradients.values.fill(0.0);
        let (queries_each, keys_each) = (self.queries * self.depth, self.keys * self.depth);
        let (values_each, output_each) = (self.keys * self.width, self.queries * self.width);
        for head in 0..self.heads {
            let of = |each: usize| head * each..(head + 1) * each;
            let head = Head {
                of: self,
                queries: &queries[of(queries_each)],
                keys: &keys[of(keys_each)],
                values: &values[of(values_each)],
                output: &output[of(output_each)],
            };
            let mut gradients = Gradients {
                queries: &mut gradients.queries[of(queries_each)],
                keys: &mut gradients.keys[of(keys_each)],
                values: &mut gradients.values[of(values_each)],
                mask: gradients.mask.as_deref_mut(),
            };
            for first in (0..self.queries).step_by(QUERIES) {
                head.block(first, &mut gradients, scratch, parallel)?;
            }
        }
        Ok(())
    }
}

/// One head.
struct Head<'a> {
    of: &'a Attention<'a>,
    queries: &'a [f32],
    keys: &'a [f32],
    values: &'a [f32],
    output: &'a [f32],
}

impl Head<'_> {
    /// Adds the gradients of 64 queries, or of those that are left.
    fn block(
        &self,
        first: usize,
        gradients: &mut Gradients<'_>,
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let Attention {
            keys, depth, width, ..
        } = *self.of;
        let count = QUERIES.min(self.of.queries - first);
        let products = self.of.products(count);
        let (weights, rest) = scratch.split_at_mut(count * keys);
        let (slopes, scratch) = rest.split_at_mut(count * keys);
        let queries = &self.queries[first * depth..][..count * depth];
        let output = &self.output[first * width..][..count * width];
        let mut multiply = |sizes, a, b, c: &mut [f32]| {
            let (_, columns, _) = sizes;
            let gemm = Gemm {
                accumulate: true,
                ..Gemm::new(sizes, a, b)
            };
            gemm.run(c, columns, scratch, parallel)
        };

        weights.fill(0.0);
        multiply(
            products.scores,
            Matrix::rows(queries, depth),
            Matrix::columns(self.keys, depth),
            weights,
        )?;
        self.of.softmax(first, weights, parallel);
        multiply(
            products.values,
            Matrix::columns(weights, keys),
            Matrix::rows(output, width),
            gradients.values,
        )?;
        slopes.fill(0.0);
        multiply(
            products.weights,
            Matrix::rows(output, width),
            Matrix::columns(self.values, width),
            slopes,
        )?;
        let threads = Work::Scores(slopes.len()).threads(parallel);
        for_each_chunk(threads, slopes, keys, |start, slopes| {
            let weights = &weights[start..start + keys];
            dispatch_simd(Slopes { weights, slopes });
        });
        if let Some(mask) = &mut gradients.mask {
            for (mask, slope) in mask[first * keys..].iter_mut().zip(&*slopes) {
                *mask += slope;
            }
        }
        for slope in &mut *slopes {
            *slope *= self.of.scale;
        }
        multiply(
            products.queries,
            Matrix::rows(slopes, keys),
            Matrix::rows(self.keys, depth),
            &mut gradients.queries[first * depth..][..count * depth],
        )?;
        multiply(
            products.keys,
            Matrix::columns(slopes, keys),
            Matrix::rows(queries, depth),
            gradients.keys,
        )
    }
}

/// Turns the gradients of one query's weights into those of its scores.
struct Slopes<'a> {
    weights: &'a [f32],
    slopes: &'a mut [f32],
}

impl Body for Slopes<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { weights, slopes } = self;
        for (slope, weight) in slopes.iter_mut().zip(weights) {
            *slope *= weight;
        }
        let sum = rows::sum(s, slopes, rows::Sum) as f32;
        for (slope, weight) in slopes.iter_mut().zip(weights) {
            *slope -= weight * sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::parallel::Serial;
    use crate::testing::{Interleaved, numbers};

    /// The output in `f64`, after the definition.
    fn forward(a: &Attention<'_>, q: &[f64], k: &[f64], v: &[f64], mask: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; a.heads * a.queries * a.width];
        for line in 0..a.heads * a.queries {
            let (head, query) = (line / a.queries, line % a.queries);
            let seen = if a.causal {
                query + 1 + a.keys - a.queries
            } else {
                a.keys
            };
            let weights: Vec<f64> = (0..seen)
                .map(|key| {
                    let terms = (0..a.depth)
                        .map(|p| q[line * a.depth + p] * k[(head * a.keys + key) * a.depth + p]);
                    let score = terms.sum::<f64>() * f64::from(a.scale);
                    (score + mask.get(query * a.keys + key).unwrap_or(&0.0)).exp()
                })
                .collect();
            let sum: f64 = weights.iter().sum();
            for (key, weight) in weights.iter().enumerate() {
                for column in 0..a.width {
                    out[line * a.width + column] +=
                        weight / sum * v[(head * a.keys + key) * a.width + column];
                }
            }
        }
        out
    }

    fn wide(x: &[f32]) -> Vec<f64> {
        x.iter().map(|&x| f64::from(x)).collect()
    }

    /// Gradients of queries, keys, values and mask.
    fn gradients(a: &Attention<'_>, inputs: [&[f32]; 3], output: &[f32]) -> [Vec<f32>; 4] {
        let [q, k, v] = inputs;
        let mut found = [q.len(), k.len(), v.len(), a.queries * a.keys].map(|n| vec![f32::NAN; n]);
        let [dq, dk, dv, dm] = &mut found;
        let mut gradients = Gradients {
            queries: dq,
            keys: dk,
            values: dv,
            mask: Some(dm),
        };
        let mut scratch = vec![f32::NAN; a.backward_scratch_len().unwrap()];
        a.backward(
            (q, k, v),
            output,
            &mut gradients,
            &mut scratch,
            &Interleaved,
        )
        .unwrap();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]
        #[test]
        fn match_differences_in_double_precision(
            heads in 1..3_usize,
            queries in prop_oneof![4 => 1..8_usize, 1 => 60..70_usize],
            more in 0..5_usize,
            depth in 1..6_usize,
            width in 1..6_usize,
            masked in any::<bool>(),
            causal in any::<bool>(),
            places in any::<[u16; 4]>(),
        ) {
            let keys = if causal { queries + more } else { more + 1 };
            let q = numbers(heads * queries * depth, 1);
            let k = numbers(heads * keys * depth, 2);
            let v = numbers(heads * keys * width, 3);
            let mask = numbers(queries * keys, 4);
            let d = numbers(heads * queries * width, 5);
            let a = Attention {
                heads, queries, keys, depth, width,
                scale: 0.7,
                mask: masked.then_some(&mask[..]),
                causal,
            };
            let found = gradients(&a, [&q, &k, &v], &d);
            let mask = if masked { wide(&mask) } else { vec![0.0; mask.len()] };
            let inputs = [wide(&q), wide(&k), wide(&v), mask];
            let loss = |inputs: &[Vec<f64>; 4]| -> f64 {
                let [q, k, v, mask] = inputs;
                let out = forward(&a, q, k, v, mask);
                out.iter().zip(&d).map(|(o, &d)| o * f64::from(d)).sum()
            };
            // Some elements of each gradient.
            for (which, found) in found.iter().enumerate() {
                for place in places {
                    let at = usize::from(place) % found.len();
                    let moved = |by: f64| {
                        let mut inputs = inputs.clone();
                        inputs[which][at] += by;
                        loss(&inputs)
                    };
                    let exact = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    let error = (f64::from(found[at]) - exact).abs();
                    prop_assert!(error < 1e-5, "{} {} {} {}", which, at, found[at], exact);
                }
            }
        }
    }

    #[test]
    fn match_tensorflow() {
        let a = Attention {
            heads: 2,
            queries: 2,
            keys: 3,
            depth: 2,
            width: 2,
            scale: 0.5,
            mask: Some(&numbers(6, 4)),
            causal: false,
        };
        let (q, k, v) = (numbers(8, 1), numbers(12, 2), numbers(12, 3));
        let found = gradients(&a, [&q, &k, &v], &numbers(8, 5));
        // `tf.GradientTape` of TensorFlow 2.21 over matmul, softmax and matmul in float64.
        let expected: [&[f32]; 4] = [
            &[
                -0.003626, 0.086289, -0.026250, -0.027814, -0.019291, 0.012732, -0.010929, 0.005124,
            ],
            &[
                -0.067280, 0.011040, 0.016737, -0.022390, 0.050542, 0.011350, 0.011884, -0.027841,
                0.002280, 0.011321, -0.014163, 0.016520,
            ],
            &[
                -0.304736, 0.069766, -0.049495, 0.199166, -0.337247, -0.272130, 0.048431, 0.501926,
                0.035651, 0.352524, 0.007432, 0.391219,
            ],
            &[
                0.209018, -0.113067, -0.095951, -0.015859, -0.057923, 0.073782,
            ],
        ];
        for (found, expected) in found.iter().zip(expected) {
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 2e-6, "{found} {expected}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let a = Attention {
            heads: 1,
            queries: 2,
            keys: 3,
            depth: 4,
            width: 5,
            scale: 1.0,
            mask: None,
            causal: false,
        };
        let needed = a.backward_scratch_len().unwrap();
        let run = |lens: [usize; 7], scratch: usize| {
            let [q, k, v, d, dq, dk, dv] = lens.map(|n| vec![0.0; n]);
            let (mut dq, mut dk, mut dv) = (dq, dk, dv);
            let mut gradients = Gradients {
                queries: &mut dq,
                keys: &mut dk,
                values: &mut dv,
                mask: None,
            };
            let mut scratch = vec![0.0; scratch];
            a.backward((&q, &k, &v), &d, &mut gradients, &mut scratch, &Serial)
        };
        let lens = [8, 12, 15, 10, 8, 12, 15];
        assert!(run(lens, needed).is_ok());
        assert!(run(lens, needed - 1).is_err());
        for place in 0..lens.len() {
            let mut lens = lens;
            lens[place] += 1;
            assert!(matches!(run(lens, needed), Err(Error::Length { .. })));
        }
    }
}
