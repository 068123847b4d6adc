//! What a tile reads and writes, checked once for all of its vectors.

use core::marker::PhantomData;

/// Some columns of some rows of an output.
pub struct Patch<'a> {
    start: *mut f32,
    ld: usize,
    rows: usize,
    columns: usize,
    matrix: PhantomData<&'a mut [f32]>,
}

impl Patch<'_> {
    /// Rows of `columns` elements, `ld` apart, from `start` on.
    ///
    /// # Safety
    /// They lie in one slice, and nobody else sees them while the patch is there.
    pub(crate) const unsafe fn new(
        start: *mut f32,
        ld: usize,
        (rows, columns): (usize, usize),
    ) -> Self {
        Self {
            start,
            ld,
            rows,
            columns,
            matrix: PhantomData,
        }
    }

    /// Asks for what is about to be written, which another processor may have in its caches.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        for row in 0..self.rows {
            for column in (0..self.columns).step_by(16) {
                let to = self.start.wrapping_add(row * self.ld + column);
                // SAFETY: a hint has no effect that a program can see, wherever it points; this
                // architecture takes it for no operation where a processor does not know it.
                unsafe {
                    core::arch::asm!(
                        "prefetchw [{}]",
                        in(reg) to,
                        options(nostack, preserves_flags, readonly),
                    );
                }
            }
        }
    }

    /// A row of the patch.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(always)]
    pub(crate) fn row(&mut self, index: usize) -> &mut [f32] {
        assert!(index < self.rows, "a row outside of the patch");
        // SAFETY: by whoever made the patch, which is borrowed as long as the row.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(index * self.ld), self.columns) }
    }

    pub(crate) const fn start(&mut self) -> *mut f32 {
        self.start
    }

    pub(crate) const fn ld(&self) -> usize {
        self.ld
    }

    pub(crate) const fn columns(&self) -> usize {
        self.columns
    }
}

/// The rows of A that a tile multiplies: each has `lines` times `k` elements in a row, the first
/// ones of its lines `pitch` apart.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// From the first element of the first row on.
    pub data: &'a [f32],
    /// Lines.
    pub lines: usize,
    /// Elements from one line to the next.
    pub pitch: usize,
    /// Elements of a line.
    pub k: usize,
}

impl Rows<'_> {
    /// Whether so many rows, `apart` elements apart, are there.
    #[inline(always)]
    pub(crate) fn fit(&self, rows: usize, apart: usize) -> bool {
        if self.lines == 0 || self.k == 0 || rows == 0 {
            return true;
        }
        let last = (self.lines - 1).checked_mul(self.pitch);
        let end = last
            .zip((rows - 1).checked_mul(apart))
            .and_then(|(line, row)| line.checked_add(row)?.checked_add(self.k));
        end.is_some_and(|end| end <= self.data.len())
    }
}

/// Checks a tile of `MR` rows and `NV` vectors of `lanes` elements, and returns how far the rows of A
/// are apart, `ROW` or, if that is 0, their pitch, and how many columns the last vector has.
///
/// Panics if a matrix is too short, or if the output is not such a tile.
#[inline(always)]
pub(super) fn checked<const MR: usize, const NV: usize, const ROW: usize>(
    lanes: usize,
    a: &Rows<'_>,
    b: &[f32],
    to: &Patch<'_>,
    finish: &Finish<'_>,
) -> (usize, usize) {
    let rest = to.columns.wrapping_sub((NV - 1) * lanes);
    let whole = to.rows == MR && rest.wrapping_sub(1) < lanes;
    assert!(whole, "the output of a tile");
    // One line has no other line in a distance.
    let apart = if ROW == 0 { a.pitch } else { ROW };
    assert!(ROW > 0 || a.lines == 1, "the rows of a tile");
    let there = a.fit(MR, apart) && b.len() / (NV * lanes) >= a.lines * a.k;
    assert!(there, "a tile outside of its matrices");
    let biased = finish.bias.is_none_or(|bias| bias.len() >= to.columns);
    assert!(biased, "the bias of a tile");
    (apart, rest)
}

/// What happens to the sums of a tile.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
    /// One element per column, added to every row.
    pub bias: Option<&'a [f32]>,
    /// Add to what the output holds, after the bias.
    pub accumulate: bool,
    /// Bounds of the values, applied last; NaN passes.
    pub clamp: Option<(f32, f32)>,
}
