//! Attention whose heads lie side by side, as products give them: nothing is moved between the
//! products in front of it and the one behind.

use super::{Attention, QUERIES, ROWS, TOGETHER};
use crate::base::adapt::check_count;
use crate::base::error::{Error, Result};
use crate::base::level::level;
use crate::base::parallel::{Parallel, Serial};
use crate::base::scratch::take;
use crate::base::worth::Work;
use crate::gemm::pack::packed_len;
use crate::gemm::{Gemm, Matrix, Packed};
use crate::simd::blocks::{for_each_chunk, for_each_pair};

/// Queries, keys or values of all examples: a row for each, with the elements of all heads of an
/// example one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The elements, from those of the first row's first head on.
    pub data: &'a [f32],
    /// Elements from one row to the next.
    pub ld: usize,
}

impl<'a> Lines<'a> {
    /// Fails unless there are `rows` rows of `heads` heads of `depth` elements.
    fn check(&self, argument: &'static str, rows: usize, heads: usize, depth: usize) -> Result<()> {
        let overflow = Error::Overflow { argument };
        let columns = heads.checked_mul(depth).ok_or(overflow)?;
        Matrix::rows(self.data, self.ld).check(argument, rows, columns)
    }

    /// The lines of a head from row `first` on, as a matrix.
    fn head(&self, first: usize, head: usize, depth: usize) -> Matrix<'a> {
        let from = first * self.ld + head * depth;
        Matrix::rows(self.data.get(from..).unwrap_or(&[]), self.ld)
    }
}

impl Attention<'_> {
    /// Elements of scratch memory that [`Attention::run_beside`] needs for `beside` heads of an
    /// example: their keys and values, packed, and the scores of up to 512 queries of a head.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len_beside(&self, beside: usize) -> Result<usize> {
        let overflow = Error::Overflow { argument: "keys" };
        let scores = self.keys.checked_mul(self.queries.min(TOGETHER * QUERIES));
        self.packed()?
            .checked_mul(beside)
            .and_then(|x| x.checked_add(scores?))
            .ok_or(overflow)
    }

    /// Elements of keys and values of a head, packed.
    fn packed(&self) -> Result<usize> {
        let overflow = Error::Overflow { argument: "keys" };
        packed_len(level(), self.depth, self.keys)?
            .checked_add(packed_len(level(), self.keys, self.width)?)
            .ok_or(overflow)
    }

    /// As [`Attention::run`], where `beside` heads of an example lie side by side: queries are
    /// `[examples, queries, beside, depth]`, keys and values alike, and the output is dense
    /// `[examples, queries, beside, width]`.
    ///
    /// # Errors
    /// As [`Attention::run`]; [`Error::Value`] if rows overlap or the heads are not whole batch elements.
    pub fn run_beside(
        &self,
        beside: usize,
        [queries, keys, values]: [Lines<'_>; 3],
        output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        if beside == 0 || !self.heads.is_multiple_of(beside) {
            return Err(Error::Value {
                argument: "heads",
                expected: "whole examples",
            });
        }
        let examples = self.heads / beside;
        let overflow = Error::Overflow {
            argument: "queries",
        };
        let rows = |each: usize| examples.checked_mul(each).ok_or(overflow);
        queries.check("queries", rows(self.queries)?, beside, self.depth)?;
        keys.check("keys", rows(self.keys)?, beside, self.depth)?;
        values.check("values", rows(self.keys)?, beside, self.width)?;
        let row = beside.checked_mul(self.width).ok_or(overflow)?;
        let expected = rows(self.queries)?.checked_mul(row).ok_or(overflow)?;
        check_count("output", output.len(), expected)?;
        if let Some(mask) = self.mask {
            check_count("mask", mask.len(), self.queries * self.keys)?;
        }
        let scratch = take(scratch, self.scratch_len_beside(beside)?)?;
        if output.is_empty() || self.keys == 0 {
            output.fill(0.0);
            return Ok(());
        }
        let (memory, scores) = scratch.split_at_mut(self.packed()? * beside);
        for (example, output) in output.chunks_exact_mut(self.queries * row).enumerate() {
            let first = example * self.keys;
            self.pack(first, beside, (keys, values), memory, parallel)?;
            self.example(
                example * self.queries,
                beside,
                (queries, memory),
                output,
                scores,
                parallel,
            )?;
        }
        Ok(())
    }

    /// Packs the keys and values of all heads of an example, whose first row is given.
    fn pack(
        &self,
        first: usize,
        beside: usize,
        (keys, values): (Lines<'_>, Lines<'_>),
        memory: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let each = self.packed()?;
        let of_keys = packed_len(level(), self.depth, self.keys)?;
        let parallel = Work::Packed(self.weights().saturating_mul(beside)).threads(parallel);
        for_each_chunk(parallel, memory, each, |start, memory| {
            let head = start / each.max(1);
            let (key_memory, value_memory) = memory.split_at_mut(of_keys);
            let keys = Matrix {
                transposed: true,
                ..keys.head(first, head, self.depth)
            };
            let values = values.head(first, head, self.width);
            // The lengths have been checked.
            let _ = Packed::pack(&keys, (self.depth, self.keys), key_memory, &Serial);
            let _ = Packed::pack(&values, (self.keys, self.width), value_memory, &Serial);
        });
        Ok(())
    }

    /// Computes the output of an example, whose keys and values have been packed and whose first
    /// query's row is given.
    fn example(
        &self,
        first: usize,
        beside: usize,
        (queries, memory): (Lines<'_>, &[f32]),
        output: &mut [f32],
        scores: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let row = beside * self.width;
        let each = self.packed()?;
        let of_keys = packed_len(level(), self.depth, self.keys)?;
        let most = TOGETHER * QUERIES;
        for (part, output) in output.chunks_mut(most * row).enumerate() {
            let count = output.len() / row.max(1);
            let flops = self
                .weights()
                .saturating_mul(2 * count)
                .saturating_mul(beside);
            let parallel = Work::Product(flops, 0).threads(parallel);
            let mut lines = count.div_ceil(parallel.threads()).clamp(ROWS, QUERIES);
            // Products of a single row add in another order: none is left alone.
            while count > 1 && count % lines == 1 {
                lines += 1;
            }
            let output = (output, lines * row);
            let scores = (&mut scores[..count * self.keys], lines * self.keys);
            for_each_pair(parallel, output, scores, |task, output, scores| {
                let query = part * most + task * lines;
                let count = output.len() / row;
                for (head, memory) in memory.chunks_exact(each).enumerate() {
                    let (keys, values) = memory.split_at(of_keys);
                    let queries = queries.head(first + query, head, self.depth);
                    // The lengths have been checked.
                    if let Ok(keys) = Packed::from_packed((self.depth, self.keys), keys) {
                        let product = Gemm::packed(count, queries, keys);
                        let _ = product.run(scores, self.keys, &mut [], &Serial);
                    }
                    self.softmax(query, scores, &Serial);
                    if let Ok(values) = Packed::from_packed((self.keys, self.width), values) {
                        let product = Gemm::packed(count, Matrix::rows(scores, self.keys), values);
                        let output = &mut output[head * self.width..];
                        let _ = product.run(output, row, &mut [], &Serial);
                    }
                }
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Interleaved, Threads, numbers};

    /// Rows of `beside` heads with a gap, from lines that are apart by head.
    fn rows(apart: &[f32], (beside, lines, depth): (usize, usize, usize), gap: usize) -> Vec<f32> {
        let ld = beside * depth + gap;
        let examples = apart.len() / (beside * lines * depth);
        let mut rows = vec![f32::NAN; examples * lines * ld];
        for (index, line) in apart.chunks_exact(depth).enumerate() {
            let (head, line_index) = (index / lines, index % lines);
            let row = head / beside * lines + line_index;
            rows[row * ld + head % beside * depth..][..depth].copy_from_slice(line);
        }
        rows.truncate(rows.len() - gap);
        rows
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn is_attention_with_heads_apart(
            (examples, beside) in (1..3_usize, 1..5_usize),
            queries in prop_oneof![1..20_usize, 60..140_usize, 510..600_usize],
            more in 0..20_usize,
            (depth, width) in (1..20_usize, 1..20_usize),
            (masked, causal) in any::<(bool, bool)>(),
            gaps in (0..9_usize, 0..9_usize, 0..9_usize),
        ) {
            let keys = if causal { queries + more } else { more + 1 };
            let heads = examples * beside;
            let q = numbers(heads * queries * depth, 1);
            let k = numbers(heads * keys * depth, 2);
            let v = numbers(heads * keys * width, 3);
            let mask = numbers(queries * keys, 4);
            let attention = Attention {
                heads, queries, keys, depth, width,
                scale: 0.7,
                mask: masked.then_some(&mask[..]),
                causal,
            };
            let mut expected = vec![f32::NAN; heads * queries * width];
            let mut scratch = vec![f32::NAN; attention.scratch_len().unwrap()];
            attention.run(&q, &k, &v, &mut expected, &mut scratch, &Serial).unwrap();
            let expected = rows(&expected, (beside, queries, width), 0);
            let q = rows(&q, (beside, queries, depth), gaps.0);
            let k = rows(&k, (beside, keys, depth), gaps.1);
            let v = rows(&v, (beside, keys, width), gaps.2);
            let lines = [
                Lines { data: &q, ld: beside * depth + gaps.0 },
                Lines { data: &k, ld: beside * depth + gaps.1 },
                Lines { data: &v, ld: beside * width + gaps.2 },
            ];
            let with = |parallel: &dyn Parallel| {
                let mut scratch = vec![f32::NAN; attention.scratch_len_beside(beside).unwrap()];
                let mut output = vec![f32::NAN; heads * queries * width];
                attention.run_beside(beside, lines, &mut output, &mut scratch, parallel).unwrap();
                output
            };
            let found = with(&Serial);
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 2e-6, "{} {}", found, expected);
            }
            prop_assert_eq!(&with(&Interleaved), &found);
            prop_assert_eq!(&with(&Threads(8)), &found);
        }
    }

    #[test]
    fn no_thread_is_left_a_single_query() {
        for queries in [1, 5, 36, 37, 65, 129, 548] {
            let (beside, keys, depth, width) = (2, 548, 2, 11);
            let q = numbers(queries * beside * depth, 1);
            let k = numbers(keys * beside * depth, 2);
            let v = numbers(keys * beside * width, 3);
            let attention = Attention {
                heads: beside,
                queries,
                keys,
                depth,
                width,
                scale: 0.7,
                mask: None,
                causal: true,
            };
            let lines = |data, depth| Lines {
                data,
                ld: beside * depth,
            };
            let lines = [
                lines(&q[..], depth),
                lines(&k[..], depth),
                lines(&v[..], width),
            ];
            let with = |parallel: &dyn Parallel| {
                let mut scratch = vec![f32::NAN; attention.scratch_len_beside(beside).unwrap()];
                let mut output = vec![f32::NAN; queries * beside * width];
                attention
                    .run_beside(beside, lines, &mut output, &mut scratch, parallel)
                    .unwrap();
                output
            };
            for threads in [2, 4, 8] {
                assert_eq!(with(&Threads(threads)), with(&Serial), "{queries} queries");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let attention = Attention {
            heads: 4,
            queries: 3,
            keys: 5,
            depth: 2,
            width: 6,
            scale: 1.0,
            mask: None,
            causal: false,
        };
        let data = [0.0; 200];
        let lines = |ld: usize, len: usize| Lines {
            data: &data[..len],
            ld,
        };
        let good = [lines(4, 24), lines(4, 40), lines(12, 120)];
        let name = |beside: usize, lines: [Lines<'_>; 3], output: usize, less: usize| {
            let mut scratch = vec![0.0; attention.scratch_len_beside(2).unwrap() - less];
            let mut output = vec![0.0; output];
            match attention.run_beside(beside, lines, &mut output, &mut scratch, &Serial) {
                Ok(()) => "",
                Err(Error::Length { argument, .. } | Error::Value { argument, .. }) => argument,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(name(2, good, 72, 0), "");
        assert_eq!(name(3, good, 72, 0), "heads");
        assert_eq!(name(0, good, 72, 0), "heads");
        assert_eq!(name(2, good, 71, 0), "output");
        assert_eq!(name(2, good, 72, 1), "scratch");
        assert_eq!(name(2, [lines(4, 23), good[1], good[2]], 72, 0), "queries");
        assert_eq!(name(2, [good[0], lines(3, 40), good[2]], 72, 0), "keys");
        assert_eq!(name(2, [good[0], good[1], lines(13, 120)], 72, 0), "values");
    }
}
