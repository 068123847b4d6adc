//! The counter-based generator Philox 4x32-10, and how TensorFlow fills tensors with it.
//!
//! Source of the generator: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
//! The order in which words become numbers is TensorFlow's, so that equal seeds give equal bits.

pub mod distribution;

use self::distribution::{Distribution, box_muller};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::half::Half;
use crate::base::narrow::round;
use crate::base::parallel::Parallel;
use crate::simd::body::{Body, dispatch};

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Blocks that are computed side by side.
const LANES: usize = 16;
/// As many times [`LANES`] blocks are computed before they become numbers: they stay in the first
/// cache.
const GROUPS: usize = 8;

/// A position in a stream of blocks of four words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    /// Key: selects the stream.
    pub key: [u32; 2],
    /// Counter: number of the block within the stream.
    pub counter: u128,
}

impl Philox {
    /// The stream of an op with the attributes `seed` and `seed2`.
    #[must_use]
    pub const fn from_seeds(seed: u64, seed2: u64) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            counter: (seed2 as u128) << 64,
        }
    }

    /// The stream of an op with a key and a counter of two words, low one first.
    #[must_use]
    pub const fn from_key_counter(key: u64, counter: [u64; 2]) -> Self {
        Self {
            key: [key as u32, (key >> 32) as u32],
            counter: counter[0] as u128 | (counter[1] as u128) << 64,
        }
    }

    /// The position `blocks` further on.
    #[must_use]
    pub const fn skip(self, blocks: u128) -> Self {
        Self {
            key: self.key,
            counter: self.counter.wrapping_add(blocks),
        }
    }

    /// The block at this position.
    #[must_use]
    pub fn block(&self) -> [u32; 4] {
        let [block] = self.blocks();
        words_of(block)
    }

    /// The blocks at this and the following positions.
    // The words are in lanes as wide as their products: no round has to move them.
    #[inline(always)]
    fn blocks<const L: usize>(&self) -> [Block; L] {
        let word = |counter: u128, word: u32| u64::from((counter >> (32 * word)) as u32);
        let mut words = [0, 1, 2, 3].map(|i| [word(self.counter, i); L]);
        if (self.counter as u32).checked_add(L as u32 - 1).is_some() {
            for (lane, word) in words[0].iter_mut().enumerate() {
                *word += lane as u64;
            }
        } else {
            // The word above the last one changes in some lanes.
            for lane in 0..L {
                let counter = self.counter.wrapping_add(lane as u128);
                for (i, words) in words.iter_mut().enumerate() {
                    words[lane] = word(counter, i as u32);
                }
            }
        }
        let mut key = self.key;
        for _ in 0..ROUNDS {
            #[allow(clippy::needless_range_loop)]
            for lane in 0..L {
                let first = words[0][lane] * u64::from(MULTIPLIERS[0]);
                let second = words[2][lane] * u64::from(MULTIPLIERS[1]);
                words[0][lane] = (second >> 32) ^ words[1][lane] ^ u64::from(key[0]);
                words[1][lane] = u64::from(second as u32);
                words[2][lane] = (first >> 32) ^ words[3][lane] ^ u64::from(key[1]);
                words[3][lane] = u64::from(first as u32);
            }
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let mut blocks = [[0; 2]; L];
        for (lane, block) in blocks.iter_mut().enumerate() {
            *block = [[0, 1], [2, 3]].map(|[low, high]| words[low][lane] | words[high][lane] << 32);
        }
        blocks
    }
}

/// The key and counter that TensorFlow derives from a seed of two words, so that seeds which
/// differ in few bits give unlike streams.
#[must_use]
pub fn key_counter(seed: [u64; 2]) -> (u64, [u64; 2]) {
    let scrambler = Philox {
        key: [0x3ec8_f720, 0x0246_1e29],
        counter: u128::from(seed[0]) | u128::from(seed[1]) << 64,
    };
    let pair = |low, high| u64::from(low) | u64::from(high) << 32;
    let [a, b, c, d] = scrambler.block();
    (pair(a, b), [0, pair(c, d)])
}

/// The four words of a block, two in each number, the low one first.
type Block = [u64; 2];

#[inline(always)]
fn words_of([low, high]: Block) -> [u32; 4] {
    [
        low as u32,
        (low >> 32) as u32,
        high as u32,
        (high >> 32) as u32,
    ]
}

/// Blocks of the stream. They are the same for all distributions, which so share the rounds: those
/// are most of the code.
struct Blocks<'a> {
    stream: Philox,
    out: &'a mut [[Block; LANES]],
}

impl Body for Blocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut stream, out } = self;
        for out in out {
            *out = stream.blocks();
            stream = stream.skip(LANES as u128);
        }
    }
}

/// Numbers of a distribution, from the blocks that they take.
struct Numbers<'a, D: Distribution> {
    distribution: D,
    blocks: &'a [Block],
    out: &'a mut [D::Out],
}

impl<D: Distribution> Body for Numbers<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            distribution,
            blocks,
            out,
        } = self;
        let whole = out.len() / D::PER_BLOCK;
        let mut parts = out.chunks_exact_mut(D::PER_BLOCK);
        for (out, &block) in (&mut parts).zip(blocks) {
            let numbers = distribution.numbers(words_of(block));
            out.copy_from_slice(&numbers[..D::PER_BLOCK]);
        }
        if let Some(&block) = blocks.get(whole) {
            let numbers = distribution.numbers(words_of(block));
            for (out, number) in parts.into_remainder().iter_mut().zip(numbers) {
                *out = number;
            }
        }
    }
}

/// Fills `out` with numbers of a distribution that takes the same number of words for each.
pub fn fill<D: Distribution>(
    distribution: D,
    stream: Philox,
    out: &mut [D::Out],
    parallel: &dyn Parallel,
) {
    let group = D::PER_BLOCK * LANES;
    let chunk = chunk_len(parallel, out.len(), group, D::COST);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let mut stream = stream.skip((start / D::PER_BLOCK) as u128);
        if out.len() <= group {
            let mut blocks = [[[0; 2]; LANES]];
            fill_part(distribution, stream, &mut blocks, out);
            return;
        }
        let mut blocks = [[[0; 2]; LANES]; GROUPS];
        for out in out.chunks_mut(group * GROUPS) {
            let blocks = &mut blocks[..out.len().div_ceil(group)];
            fill_part(distribution, stream, blocks, out);
            stream = stream.skip((LANES * GROUPS) as u128);
        }
    });
}

/// As [`fill`], on this thread; `blocks` is memory for the blocks that `out` takes.
fn fill_part<D: Distribution>(
    distribution: D,
    stream: Philox,
    blocks: &mut [[Block; LANES]],
    out: &mut [D::Out],
) {
    let to = &mut *blocks;
    dispatch(Blocks { stream, out: to });
    let blocks = blocks.as_flattened();
    dispatch(Numbers {
        distribution,
        blocks,
        out,
    });
}

/// Uniform numbers in `[0, 1)` of so few bits that a 16-bit float holds them.
#[derive(Clone, Copy, Debug)]
struct UniformHalf {
    mask: u32,
    step: f32,
}

impl Distribution for UniformHalf {
    type Out = f32;

    const PER_BLOCK: usize = 4;
    const COST: usize = 4;

    #[inline(always)]
    fn numbers(self, words: [u32; 4]) -> [f32; 4] {
        words.map(|word| (word & self.mask) as f32 * self.step)
    }
}

/// Fills `out`, 16-bit floats as their bits, with uniform numbers in `[0, 1)`. `wide` is memory for
/// as many `f32`.
pub fn fill_uniform_half(
    stream: Philox,
    (half, out): (Half, &mut [u16]),
    wide: &mut [f32],
    parallel: &dyn Parallel,
) {
    let bits = match half {
        Half::F16 => 10,
        Half::BF16 => 7,
    };
    let distribution = UniformHalf {
        mask: (1 << bits) - 1,
        step: 1.0 / (1_u32 << bits) as f32,
    };
    let count = wide.len().min(out.len());
    fill(distribution, stream, &mut wide[..count], parallel);
    round(half, wide, out, parallel);
}

/// Blocks that each group of four truncated normal numbers may use.
const TRUNCATED_BLOCKS: u128 = 256;

/// Fills `out` with normal numbers of mean 0 and deviation 1, drawn again while they lie 2 or more
/// from the mean. Each group of four numbers has its own part of the stream.
pub fn fill_truncated_normal(stream: Philox, out: &mut [f32], parallel: &dyn Parallel) {
    let chunk = chunk_len(parallel, out.len(), 4, 64);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        for (index, out) in out.chunks_mut(4).enumerate() {
            let group = (start / 4 + index) as u128;
            let mut position = stream.skip(group * TRUNCATED_BLOCKS);
            let mut kept = [0.0; 4];
            let mut count = 0;
            while count < 4 {
                let [a, b, c, d] = position.block();
                position = position.skip(1);
                for number in box_muller(a, b).into_iter().chain(box_muller(c, d)) {
                    if number.abs() < 2.0
                        && let Some(slot) = kept.get_mut(count)
                    {
                        *slot = number;
                        count += 1;
                    }
                }
            }
            for (out, number) in out.iter_mut().zip(kept) {
                *out = number;
            }
        }
    });
}

#[cfg(test)]
mod tests;
