//! How a product is cut into tasks.

use super::{block, pack};
use crate::base::level::Level;
use crate::simd::blocks::Cut;

/// Tasks per thread, at most.
const ROUNDS: usize = 4;
/// The part of the time that is spent on smaller tasks than would be best, so that a thread that
/// is held up does not hold up all.
const SLACK: usize = 32;
/// The part of the time that columns must save.
const GAIN: usize = 12;
/// Multiplications in the time in which an element comes that another thread has written.
const SHARED: usize = 32;
/// Multiplications in the time in which an element is written that the caches of another thread
/// hold, and is read by that one.
const PACKED: usize = 256;

/// How C, the product of `m` x `k` and `k` x `n` elements, is cut into one block for each task: so
/// that no thread has much more to do than it must, where it also waits for B, whose panels come
/// from far away in about the time in which they meet a strip, and for what another thread has
/// written.
///
/// Blocks of whole rows come first: what follows a product mostly works on the same rows, and so
/// each thread finds what it wrote itself. Columns leave each thread a part of B.
pub(crate) fn cut(level: Level, sizes: (usize, usize, usize), threads: usize) -> Cut {
    best_cut(level, sizes, threads, 0)
}

/// As [`cut`], for a B that the threads pack just before: columns leave each thread the panels
/// that it packs itself.
pub(crate) fn cut_packing(level: Level, sizes: (usize, usize, usize), threads: usize) -> Cut {
    best_cut(level, sizes, threads, PACKED)
}

/// As [`cut`], where it costs so many multiplications to pack an element of B for other threads.
fn best_cut(level: Level, (m, n, k): (usize, usize, usize), threads: usize, packed: usize) -> Cut {
    let (strip, panel) = (block::strip_rows(level), pack::panel(level));
    let (strips, panels) = (m.div_ceil(strip).max(1), pack::panels(level, n).max(1));
    let (mut rows, mut columns) = (strips, panels);
    let (mut best, mut across) = (usize::MAX, 1);
    if threads > 1 {
        loop {
            let width = panels.div_ceil(across);
            let across_now = panels.div_ceil(width);
            // What a thread packs, and the part of it that others read.
            let packs = (k.saturating_mul(panels) / threads).saturating_mul(packed);
            let for_others = packs - packs / threads * threads.min(across_now);
            let mut best_now = best - best / GAIN;
            for rounds in 1..=ROUNDS {
                let height = strips.div_ceil((rounds * threads).div_ceil(across_now));
                let tasks = strips.div_ceil(height) * across_now;
                // In rows, because the last strip may be thin.
                let lines = (height * strip).min(m);
                let multiply = (lines + strip).saturating_mul(width.saturating_mul(k));
                let shared = lines.saturating_mul(SHARED.saturating_mul(width).saturating_add(k));
                let task = multiply.saturating_add(shared - shared / across_now);
                let cost = tasks.div_ceil(threads).saturating_mul(task);
                let cost = cost.saturating_add(for_others);
                if cost <= best_now.saturating_add(best_now / SLACK) {
                    (rows, columns) = (height, width);
                    best_now = best_now.min(cost);
                    best = best_now;
                }
            }
            if across >= panels.min(ROUNDS * threads) {
                break;
            }
            across *= 2;
        }
    }
    Cut {
        rows: rows * strip,
        columns: columns * panel,
        // The last panel may be one vector wider.
        rest: pack::lanes(level),
    }
}
