//! Scaled dot-product attention: `softmax(Q * K^T * scale + mask) * V`.

mod beside;

use crate::base::error::{Error, Result};
use crate::base::level::level;
use crate::base::parallel::{Parallel, Serial};
use crate::base::scratch::take;
use crate::base::shape::Shape;
use crate::base::worth::Work;
use crate::conv::geometry::check_len;
use crate::frame::rows::in_place;
use crate::gemm::pack::packed_len;
use crate::gemm::{Gemm, Matrix, Packed};
use crate::simd::blocks::{for_each_chunk, for_each_pair};
use crate::simd::body::dispatch_simd;
use crate::simd::{Body, Simd};
pub use beside::Lines;

/// Queries whose scores are kept at a time.
pub(crate) const QUERIES: usize = 64;
/// Queries of a task, at least.
const ROWS: usize = 4;
/// Queries of which a thread makes weights at a time.
const SHARE: usize = 8;
/// Heads that are computed side by side, at most.
const TOGETHER: usize = 8;

/// Attention of `heads` independent heads (a batch times its heads), dense: queries
/// `[heads, queries, depth]`, keys `[heads, keys, depth]`, values `[heads, keys, width]`, output
/// `[heads, queries, width]`.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// Heads of all examples.
    pub heads: usize,
    /// Queries of a head.
    pub queries: usize,
    /// Keys and values of a head.
    pub keys: usize,
    /// Elements of a query or key.
    pub depth: usize,
    /// Elements of a value.
    pub width: usize,
    /// Factor of the scores; `1 / sqrt(depth)` in most models.
    pub scale: f32,
    /// `[queries, keys]`, added to the scores of every head; -infinity hides a key.
    pub mask: Option<&'a [f32]>,
    /// Hides the keys after the query's own place, counted from the end.
    pub causal: bool,
}

impl Attention<'_> {
    /// Elements of scratch memory that [`Attention::run`] needs: keys and values of a head,
    /// packed, and the scores of 64 queries; for up to 8 heads, as long as this is no more than
    /// all inputs and outputs have.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len(&self) -> Result<usize> {
        let overflow = Error::Overflow { argument: "keys" };
        self.room()?.checked_mul(self.together()?).ok_or(overflow)
    }

    /// Heads that there is room for.
    fn together(&self) -> Result<usize> {
        let lines = self.queries.saturating_add(self.keys);
        let elements = lines.saturating_mul(self.depth.saturating_add(self.width));
        let most = elements.saturating_mul(self.heads) / self.room()?.max(1);
        Ok(most.min(self.heads).clamp(1, TOGETHER))
    }

    /// Elements of scratch memory that a head needs.
    fn room(&self) -> Result<usize> {
        let overflow = Error::Overflow { argument: "keys" };
        packed_len(level(), self.depth, self.keys)?
            .checked_add(packed_len(level(), self.keys, self.width)?)
            .and_then(|x| x.checked_add(self.keys.checked_mul(QUERIES.min(self.queries))?))
            .ok_or(overflow)
    }

    /// Computes the output. A query whose keys are all hidden gets NaN, and 0 without keys.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice has not the length that the sizes say; [`Error::Overflow`].
    pub fn run(
        &self,
        queries: &[f32],
        keys: &[f32],
        values: &[f32],
        output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        self.check(queries, keys, values, ("output", output.len()))?;
        let scratch = take(scratch, self.scratch_len()?)?;
        if output.is_empty() || self.keys == 0 {
            output.fill(0.0);
            return Ok(());
        }
        let (room, each) = (self.room()?, self.queries * self.width);
        let inputs = (queries, keys, values);
        let threads = parallel.threads().clamp(1, self.together()?);
        // As many heads as make equal shares; the others are shared out query by query.
        let shared = self.heads - self.heads % threads;
        let flops = 2 * self.queries.saturating_mul(self.weights());
        let (together, single) = if !Work::Product(flops.saturating_mul(shared), 0).repays() {
            output.split_at_mut(0)
        } else {
            output.split_at_mut(shared * each)
        };
        let count = together.len() / each;
        let heads = count / threads;
        let rooms = (&mut scratch[..room * threads], room);
        for_each_pair(
            parallel,
            (together, heads * each),
            rooms,
            |share, output, room| {
                for (head, output) in output.chunks_exact_mut(each).enumerate() {
                    // The lengths have been checked.
                    let _ = self.head(share * heads + head, inputs, output, room, &Serial);
                }
            },
        );
        for (head, output) in single.chunks_exact_mut(each).enumerate() {
            self.head(count + head, inputs, output, &mut scratch[..room], parallel)?;
        }
        Ok(())
    }

    /// Elements of keys and values of a head.
    fn weights(&self) -> usize {
        self.keys.saturating_mul(self.depth + self.width)
    }

    /// Computes the output of a head. All lengths have been checked.
    fn head(
        &self,
        head: usize,
        (queries, keys, values): (&[f32], &[f32], &[f32]),
        output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let (key_memory, rest) = scratch.split_at_mut(packed_len(level(), self.depth, self.keys)?);
        let (value_memory, scores) = rest.split_at_mut(packed_len(level(), self.keys, self.width)?);
        let flops = self.weights().saturating_mul(2 * QUERIES.min(self.queries));
        let threads = Work::Product(flops, 0).threads(parallel);
        let packing = Work::Packed(self.weights()).threads(parallel);
        let of = |x: &'_ [f32], lines: usize, depth: usize| {
            let from = head * lines * depth;
            from..(from + lines * depth).min(x.len())
        };
        let queries = &queries[of(queries, self.queries, self.depth)];
        let keys = Matrix::columns(&keys[of(keys, self.keys, self.depth)], self.depth);
        let values = Matrix::rows(&values[of(values, self.keys, self.width)], self.width);
        let size = (self.keys, self.width);
        let keys = Packed::pack(&keys, (self.depth, self.keys), key_memory, packing)?;
        let values = Packed::pack(&values, size, value_memory, packing)?;
        let blocks = output.chunks_mut(QUERIES * self.width);
        for (block, output) in blocks.enumerate() {
            let first = block * QUERIES;
            let count = output.len() / self.width;
            let scores = &mut scores[..count * self.keys];
            let each = count.div_ceil(threads.threads()).max(ROWS);
            let output = (output, each * self.width);
            let scores = (scores, each * self.keys);
            for_each_pair(threads, output, scores, |part, output, scores| {
                let (first, count) = (first + part * each, output.len() / self.width);
                let queries = Matrix::rows(&queries[first * self.depth..], self.depth);
                // The lengths have been checked.
                let product = Gemm::packed(count, queries, keys);
                let _ = product.run(scores, self.keys, &mut [], &Serial);
                self.softmax(first, scores, &Serial);
                let scores = Matrix::rows(scores, self.keys);
                let product = Gemm::packed(count, scores, values);
                let _ = product.run(output, self.width, &mut [], &Serial);
            });
        }
        Ok(())
    }

    /// Fails unless the slices have the lengths that the sizes say; `output` is named.
    pub(crate) fn check(
        &self,
        queries: &[f32],
        keys: &[f32],
        values: &[f32],
        output: (&'static str, usize),
    ) -> Result<()> {
        let len = |lines: usize, depth: usize| {
            Shape::new(&[self.heads, lines, depth, 4]).map(|_| self.heads * lines * depth)
        };
        check_len("queries", queries.len(), len(self.queries, self.depth)?)?;
        check_len("keys", keys.len(), len(self.keys, self.depth)?)?;
        check_len("values", values.len(), len(self.keys, self.width)?)?;
        check_len(output.0, output.1, len(self.queries, self.width)?)?;
        let scores = Shape::new(&[self.queries, self.keys, 4]).map(|_| self.queries * self.keys)?;
        match self.mask {
            Some(mask) => check_len("mask", mask.len(), scores),
            None => Ok(()),
        }
    }

    /// The scores of a query that are not hidden, scaled and masked unless that is done `later`; the
    /// others become 0, or NaN if there are only such.
    #[inline(always)]
    fn seen<'a>(&self, query: usize, row: &'a mut [f32], later: bool) -> &'a mut [f32] {
        let mut count = self.keys;
        if self.causal {
            // The last query sees all keys.
            count = count.min((query + 1 + self.keys).saturating_sub(self.queries));
        }
        let (row, hidden) = row.split_at_mut(count);
        hidden.fill(if count == 0 { f32::NAN } else { 0.0 });
        match self.mask.map(|mask| &mask[query * self.keys..]) {
            Some(mask) => {
                for (x, mask) in row.iter_mut().zip(mask) {
                    *x = *x * self.scale + mask;
                }
            }
            None if later => {}
            None => row.iter_mut().for_each(|x| *x *= self.scale),
        }
        row
    }

    /// Turns the scores of the queries from `first` on into weights.
    pub(crate) fn softmax(&self, first: usize, scores: &mut [f32], parallel: &dyn Parallel) {
        let parallel = Work::Scores(scores.len()).threads(parallel);
        // All of them, or few enough that threads get equal shares.
        let rows = match parallel.threads() {
            1 => scores.len(),
            _ => SHARE * self.keys,
        };
        for_each_chunk(parallel, scores, rows.max(1), |start, scores| {
            let first = first + start / self.keys;
            dispatch_simd(Weights {
                of: self,
                first,
                scores,
            });
        });
    }
}

/// Turns the scores of the queries from `first` on into weights.
struct Weights<'a> {
    of: &'a Attention<'a>,
    first: usize,
    scores: &'a mut [f32],
}

impl Body for Weights<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { of, first, scores } = self;
        let keys = of.keys;
        // What a mask is added to is scaled before, and so is what a factor turns round.
        let later = of.mask.is_none() && of.scale > 0.0 && of.scale < f32::INFINITY;
        let together = in_place::together(keys);
        for (group, rows) in scores.chunks_mut(together * keys).enumerate() {
            let first = first + group * together;
            let rows = rows.chunks_exact_mut(keys).enumerate();
            let seen = rows.map(|(i, row)| of.seen(first + i, row, later));
            in_place::softmax(s, seen, if later { of.scale } else { 1.0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Interleaved, Threads, numbers};

    #[test]
    fn threads_change_no_bit() {
        for (heads, queries, keys) in [(1, 130, 70), (3, 40, 64), (8, 64, 33), (21, 30, 30)] {
            let (depth, width) = (32, 40);
            let q = numbers(heads * queries * depth, 1);
            let k = numbers(heads * keys * depth, 2);
            let v = numbers(heads * keys * width, 3);
            let attention = Attention {
                heads,
                queries,
                keys,
                depth,
                width,
                scale: 0.2,
                mask: None,
                causal: false,
            };
            let with = |parallel: &dyn Parallel| {
                let mut scratch = vec![f32::NAN; attention.scratch_len().unwrap()];
                let mut output = vec![f32::NAN; heads * queries * width];
                attention
                    .run(&q, &k, &v, &mut output, &mut scratch, parallel)
                    .unwrap();
                output
            };
            let one = with(&Serial);
            for threads in [2, 3, 8, 20] {
                assert_eq!(
                    with(&Threads(threads)),
                    one,
                    "{heads} heads, {threads} threads"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn matches_its_definition(
            heads in 1..4_usize,
            queries in prop_oneof![1..20_usize, 60..140_usize],
            more in 0..20_usize,
            depth in 1..20_usize,
            width in 1..20_usize,
            masked in any::<bool>(),
            causal in any::<bool>(),
        ) {
            let keys = if causal { queries + more } else { more + 1 };
            let q = numbers(heads * queries * depth, 1);
            let k = numbers(heads * keys * depth, 2);
            let v = numbers(heads * keys * width, 3);
            let mut mask = numbers(queries * keys, 4);
            // Hide some keys, but never the first one.
            for (i, x) in mask.iter_mut().enumerate() {
                if i % keys != 0 && *x > 0.5 {
                    *x = f32::NEG_INFINITY;
                }
            }
            let attention = Attention {
                heads, queries, keys, depth, width,
                scale: 0.7,
                mask: masked.then_some(&mask[..]),
                causal,
            };
            let mut scratch = vec![f32::NAN; attention.scratch_len().unwrap()];
            let mut output = vec![f32::NAN; heads * queries * width];
            attention.run(&q, &k, &v, &mut output, &mut scratch, &Interleaved).unwrap();
            for (index, &found) in output.iter().enumerate() {
                let (line, column) = (index / width, index % width);
                let (head, query) = (line / queries, line % queries);
                let seen = if causal { query + 1 + keys - queries } else { keys };
                let weights: Vec<f64> = (0..seen)
                    .map(|key| {
                        let score: f64 = (0..depth)
                            .map(|p| f64::from(q[line * depth + p])
                                * f64::from(k[(head * keys + key) * depth + p]))
                            .sum();
                        let mask = if masked { f64::from(mask[query * keys + key]) } else { 0.0 };
                        (score * 0.7_f32 as f64 + mask).exp()
                    })
                    .collect();
                let sum: f64 = weights.iter().sum();
                let exact: f64 = weights
                    .iter()
                    .enumerate()
                    .map(|(key, w)| w / sum * f64::from(v[(head * keys + key) * width + column]))
                    .sum();
                prop_assert!((f64::from(found) - exact).abs() < 5e-6, "{} {}", found, exact);
            }
        }
    }
}
