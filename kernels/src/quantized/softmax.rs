//! Softmax by a table of exponentials.

use super::{Range, expect, rounded};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::Result;
use crate::base::parallel::Parallel;

/// The softmax of rows of `columns` numbers.
///
/// `table` has the exponential of how far a number is below the largest one of its row: element 255
/// is that of 0. Exponentials are added in order, in `f32`.
///
/// # Errors
/// [`crate::base::error::Error::Length`] if the lengths differ or end within a row, or the table has
/// another number of elements than 256.
pub fn softmax(
    (x, columns): (&[i8], usize),
    table: &[f32],
    (scale, range): (f32, Range),
    out: &mut [i8],
    parallel: &dyn Parallel,
) -> Result<()> {
    expect("x", x.len(), out.len())?;
    expect("table", table.len(), 256)?;
    let rows = x.len().checked_div(columns).unwrap_or(0);
    expect("x", x.len(), rows * columns)?;
    if out.is_empty() {
        return Ok(());
    }
    let chunk = chunk_len(parallel, out.len(), columns, 8);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let rows = x[start..].chunks(columns);
        for (x, out) in rows.zip(out.chunks_mut(columns)) {
            let most = x.iter().copied().max().unwrap_or(0);
            let of = |x: i8| table[usize::from(255 - x.abs_diff(most))];
            let total = x.iter().fold(0.0_f32, |sum, &x| sum + of(x));
            let factor = 1.0 / (total * scale);
            for (out, &x) in out.iter_mut().zip(x) {
                *out = range.hold(rounded(of(x) * factor));
            }
        }
    });
    Ok(())
}
