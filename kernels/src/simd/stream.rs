//! Outputs that no cache holds are written past the caches: a plain store would read each line
//! before it overwrites it, and push out what others still need.
//!
//! Results are computed some lines at a time in registers. Loops that keep them in memory in
//! between gain nothing: there, reading waits for writing.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{
    _mm_loadu_si128, _mm_sfence, _mm_stream_si128, _mm256_loadu_si256, _mm256_stream_si256,
    _mm512_loadu_si512, _mm512_stream_si512,
};

use core::ops::Range;

use super::{Simd, fetch_far, fetch_near};
#[cfg(target_arch = "x86_64")]
use crate::base::level::Level;

/// Bytes of an output from which on it is written past the caches. Below, the caches of a server
/// are likely to hold it until its reader comes.
const FAR: usize = 16 << 20;

/// Elements that are computed at a time: whole lines, whatever their size.
pub(crate) const BLOCK: usize = 64;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes that are asked for before they are read. The processor itself looks ahead only within a
/// page of memory.
pub(crate) const AHEAD: usize = 8192;

/// Bytes that are asked for into the first cache before they are read.
const NEAR: usize = 512;
/// Parts of memory that are worked on in turn: the processor looks ahead in each.
const PARTS: usize = 4;
/// Blocks of such a part; a page of memory, if the elements have four bytes.
const PART: usize = 16;

/// Whether an output of `len` elements should be written past the caches.
pub(crate) fn is_far<T>(len: usize) -> bool {
    #[cfg(test)]
    if forced::everywhere() {
        return true;
    }
    // Only there is more than a plain store.
    cfg!(target_arch = "x86_64") && len.saturating_mul(size_of::<T>()) >= FAR
}

/// A function of elements, on several at a time.
pub(crate) trait Each<T, U> {
    /// `out[i]` from `x[i]`, for as many as both have. Must be `#[inline(always)]`.
    fn each<S: Simd>(&self, s: S, x: &[T], out: &mut [U]);
}

/// Writes `out` from as many elements of `x`; past the caches, and with `x` fetched ahead, if `far`
/// is there.
#[inline(always)]
pub(crate) fn map<S: Simd, T: Copy, U: Copy + Default>(
    s: S,
    x: &[T],
    out: &mut [U],
    far: Option<&Fence<S>>,
    function: impl Each<T, U>,
) {
    let count = x.len().min(out.len());
    let (x, out) = (&x[..count], &mut out[..count]);
    let [head, tail] = match far {
        Some(_) => ends(out),
        None => [count; 2],
    };
    if let Some(fence) = far {
        let lines = out[head..tail].as_chunks_mut::<BLOCK>().0;
        let x_lines = x[head..tail].as_chunks::<BLOCK>().0;
        let all = lines.chunks_mut(PARTS * PART);
        for (lines, x_lines) in all.zip(x_lines.chunks(PARTS * PART)) {
            for i in 0..lines.len() {
                // In the last ones the parts are shorter, and so the order is that of memory.
                let place = if lines.len() == PARTS * PART {
                    i % PARTS * PART + i / PARTS
                } else {
                    i
                };
                let x = &x_lines[place];
                fetch_far(x, PARTS * PART * size_of_val(x));
                fetch_near(x, NEAR);
                let mut block = [U::default(); BLOCK];
                function.each(s, x, &mut block);
                fence.store(&mut lines[place], &block);
            }
        }
    }
    for part in Ends::new(count, [head, tail]) {
        function.each(s, &x[part.clone()], &mut out[part]);
    }
}

/// `out[i] = value(a[i], b[i])` for the first elements of `out`, past the caches if `far` is there;
/// returns for how many. It is all of them unless `far` is there, and 0 only if there are none:
/// who calls it until all are written has one loop for what lies before, between and behind the
/// blocks. `a` and `b` have at least as many elements.
#[inline(always)]
pub(crate) fn zip_first<S: Simd, T: Copy, U: Copy + Default>(
    a: &[T],
    b: &[T],
    out: &mut [U],
    far: Option<&Fence<S>>,
    value: impl Fn(T, T) -> U,
) -> usize {
    let mut count = out.len();
    if let Some(fence) = far {
        let head = head(out);
        let lines = out.as_chunks_mut::<BLOCK>().0;
        if head == 0 && !lines.is_empty() {
            count = lines.as_flattened().len();
            let pairs = a
                .as_chunks::<BLOCK>()
                .0
                .iter()
                .zip(b.as_chunks::<BLOCK>().0);
            for (line, (a, b)) in lines.iter_mut().zip(pairs) {
                fetch_far(a, AHEAD);
                fetch_far(b, AHEAD);
                let mut block = [U::default(); BLOCK];
                for i in 0..BLOCK {
                    block[i] = value(a[i], b[i]);
                }
                fence.store(line, &block);
            }
            return count;
        }
        if head > 0 {
            count = head;
        }
    }
    for ((out, &a), &b) in out[..count].iter_mut().zip(a).zip(b) {
        *out = value(a, b);
    }
    count
}

/// What lies before `head` and, if that is not all, what lies from `tail` on. The compiler can't
/// know how many parts these are, and so it has one loop for both.
struct Ends {
    next: Option<Range<usize>>,
    last: Range<usize>,
}

impl Ends {
    #[inline(always)]
    fn new(count: usize, [head, tail]: [usize; 2]) -> Self {
        Self {
            next: Some(0..head),
            last: tail..count,
        }
    }
}

impl Iterator for Ends {
    type Item = Range<usize>;

    #[inline(always)]
    fn next(&mut self) -> Option<Range<usize>> {
        let part = self.next.take()?;
        if part.end < self.last.end {
            self.next = Some(self.last.clone());
        }
        Some(part)
    }
}

/// A row as a function of its columns.
pub(crate) trait Columns {
    /// `out[i] = value(first + i)`.
    fn write(&self, first: usize, out: &mut [f32]);
}

/// A row that is written past the caches while something else is computed, a block at a time:
/// memory would rest meanwhile, and many lines at a time would wait for each other.
pub(crate) struct Behind<'a, S: Simd, C> {
    fence: &'a Fence<S>,
    columns: C,
    out: &'a mut [f32],
    /// Where the blocks start.
    head: usize,
    /// Where the next block starts.
    next: usize,
    /// Where the blocks end.
    tail: usize,
}

impl<'a, S: Simd, C: Columns> Behind<'a, S, C> {
    /// Nothing is written yet.
    #[inline(always)]
    pub(crate) fn new(fence: &'a Fence<S>, columns: C, out: &'a mut [f32]) -> Self {
        let [head, tail] = ends(out);
        Self {
            fence,
            columns,
            out,
            head,
            next: head,
            tail,
        }
    }

    /// Writes the next block; false if there is none.
    #[inline(always)]
    pub(crate) fn block(&mut self) -> bool {
        let start = self.next;
        let found = self.out[start..self.tail].first_chunk_mut::<BLOCK>();
        let Some(line) = found else {
            return false;
        };
        let mut block = [0.0; BLOCK];
        self.columns.write(start, &mut block);
        self.fence.store(line, &block);
        self.next += BLOCK;
        true
    }

    /// Writes all that is left.
    #[inline(always)]
    pub(crate) fn rest(mut self) {
        while self.block() {}
        self.columns.write(0, &mut self.out[..self.head]);
        self.columns.write(self.tail, &mut self.out[self.tail..]);
    }
}

/// Elements before the first line that is the slice's alone; all of them if there is none.
#[inline(always)]
pub(crate) fn head<T>(out: &[T]) -> usize {
    let (start, size) = (out.as_ptr().addr(), size_of::<T>().max(1));
    let before = start.next_multiple_of(LINE) - start;
    if LINE.is_multiple_of(size) && before.is_multiple_of(size) {
        out.len().min(before / size)
    } else {
        out.len()
    }
}

/// Where the blocks of a slice start and end.
#[inline(always)]
fn ends<T>(out: &[T]) -> [usize; 2] {
    let head = head(out);
    [head, head + (out.len() - head) / BLOCK * BLOCK]
}

/// Lets a thread write past the caches, and orders what it has written so before all that it does
/// after the drop.
pub(crate) struct Fence<S: Simd>(S);

impl<S: Simd> Fence<S> {
    /// A fence for an output that is `far`.
    #[inline(always)]
    pub(crate) fn new(s: S, far: bool) -> Option<Self> {
        // One that is made is dropped, and a drop is a fence.
        far.then(|| Self(s))
    }

    /// Bytes that are written at a time: a line where the level can, because one that waits for its
    /// parts holds up those that are read.
    #[cfg(target_arch = "x86_64")]
    const PIECE: usize = match S::LEVEL {
        Level::Avx512 => 64,
        Level::Avx2 => 32,
        _ => 16,
    };

    /// Writes `count` pieces past the caches.
    ///
    /// # Safety
    /// They lie in memory that is valid for the access, `to` is aligned to a piece.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    unsafe fn pieces(&self, to: *mut u8, from: *const u8, count: usize) {
        for at in (0..count).map(|piece| piece * Self::PIECE) {
            // SAFETY: inside of both, says the caller.
            let (from, to) = unsafe { (from.add(at), to.add(at)) };
            match S::LEVEL {
                // SAFETY: a piece that is valid and aligned, says the caller; `self.0` proves that
                // the processor has AVX-512. `self` orders the store.
                Level::Avx512 => unsafe {
                    _mm512_stream_si512(to.cast(), _mm512_loadu_si512(from.cast()));
                },
                // SAFETY: as above, with AVX2.
                Level::Avx2 => unsafe {
                    _mm256_stream_si256(to.cast(), _mm256_loadu_si256(from.cast()));
                },
                // SAFETY: as above, with SSE2, which is part of this architecture.
                _ => unsafe {
                    _mm_stream_si128(to.cast(), _mm_loadu_si128(from.cast()));
                },
            }
        }
    }

    /// Writes a block to lines of its own, past the caches.
    ///
    /// Panics unless it starts at a line.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    fn store<T: Copy>(&self, line: &mut [T; BLOCK], block: &[T; BLOCK]) {
        let (from, to) = (block.as_ptr().cast::<u8>(), line.as_mut_ptr().cast::<u8>());
        assert!(to.addr().is_multiple_of(LINE), "a block starts at a line");
        // SAFETY: both have so many pieces, and `to` is aligned to the largest of them.
        unsafe { self.pieces(to, from, size_of_val(block) / Self::PIECE) }
    }

    /// Writes a vector, past the caches if it starts at a multiple of its size.
    ///
    /// Panics if there are fewer elements.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn store_vector(&self, to: &mut [f32], x: S::F) {
        let to = &mut to[..S::LANES];
        if !to.as_ptr().addr().is_multiple_of(4 * S::LANES) {
            return self.0.store(to, x);
        }
        let x = self.0.to_array(x);
        let (from, to) = (x.as_ptr().cast(), to.as_mut_ptr().cast());
        // SAFETY: the slice and the array have so many elements; a piece is not larger than the
        // vector, to whose size `to` is aligned, checked above.
        unsafe { self.pieces(to, from, 4 * S::LANES / Self::PIECE) }
    }

    /// Writes a vector.
    #[inline(always)]
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn store_vector(&self, to: &mut [f32], x: S::F) {
        self.0.store(to, x);
    }

    /// Writes a block.
    #[inline(always)]
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn store<T: Copy>(&self, line: &mut [T; BLOCK], block: &[T; BLOCK]) {
        *line = *block;
    }
}

impl<S: Simd> Drop for Fence<S> {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(test)]
        forced::count_fence();
        #[cfg(target_arch = "x86_64")]
        #[allow(unused_unsafe)]
        // SAFETY: the instruction is part of every x86-64 processor.
        unsafe {
            _mm_sfence();
        }
    }
}

/// Writing past the caches at any size, so that tests need no large outputs.
#[cfg(test)]
pub(crate) mod forced {
    use std::cell::Cell;

    std::thread_local! {
        static EVERYWHERE: Cell<bool> = const { Cell::new(false) };
        static FENCES: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count_fence() {
        FENCES.set(FENCES.get() + 1);
    }

    /// How often this thread has waited for what it wrote.
    pub(super) fn fences() -> usize {
        FENCES.get()
    }

    pub(super) fn everywhere() -> bool {
        EVERYWHERE.get()
    }

    /// The result of `run` when all outputs of the calling thread go past the caches.
    pub(crate) fn far<R>(run: impl FnOnce() -> R) -> R {
        EVERYWHERE.set(true);
        let result = run();
        EVERYWHERE.set(false);
        result
    }
}

#[cfg(test)]
mod tests;
