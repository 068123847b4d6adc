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

/// Whether an output of `len` elements is to be written past the caches.
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
/// memory would rest meanwhile, and many lines at once would wait for each other.
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
mod tests {
    use super::*;
    use crate::simd::{Body, Portable, available, dispatch};

    /// Both loops.
    struct Both<'a, T, F> {
        two: bool,
        a: &'a [usize],
        b: &'a [usize],
        out: &'a mut [T],
        value: F,
    }

    /// A function of one element.
    struct Value<F>(F);

    impl<T, F: Fn(usize) -> T> Each<usize, T> for Value<F> {
        #[inline(always)]
        fn each<S: Simd>(&self, _: S, x: &[usize], out: &mut [T]) {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = (self.0)(x);
            }
        }
    }

    impl<T: Copy + Default, F: Fn(usize) -> T> Body for Both<'_, T, F> {
        type Out = ();

        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let fence = Fence::new(s, true);
            if self.two {
                let value = |a, b| (self.value)(a * 3 + b);
                let mut at = 0;
                while at < self.out.len() {
                    let (a, b, out) = (&self.a[at..], &self.b[at..], &mut self.out[at..]);
                    at += zip_first(a, b, out, fence.as_ref(), value);
                }
            } else {
                map(s, self.a, self.out, fence.as_ref(), Value(self.value));
            }
        }
    }

    /// Both loops at every level, with the output somewhere between guards.
    fn check<T: Copy + Default + PartialEq + core::fmt::Debug>(
        value: impl Fn(usize) -> T + Copy,
        guard: T,
        (start, len): (usize, usize),
    ) {
        let (a, b): (Vec<usize>, Vec<usize>) = ((0..len).collect(), (1..=len).collect());
        for (two, level) in available().flat_map(|level| [(false, level), (true, level)]) {
            let mut buffer = vec![guard; start + len + 70];
            let both = Both {
                two,
                a: &a,
                b: &b,
                out: &mut buffer[start..start + len],
                value,
            };
            dispatch(level, both);
            for (i, &x) in buffer.iter().enumerate() {
                let inside = i >= start && i < start + len;
                let i = i.wrapping_sub(start);
                let exact = if two {
                    i.wrapping_mul(4).wrapping_add(1)
                } else {
                    i
                };
                assert_eq!(x, if inside { value(exact) } else { guard });
            }
        }
    }

    #[test]
    fn every_element_arrives_and_no_other_changes() {
        for start in [0, 1, 5, 16, 33] {
            for len in (0..70).chain([127, 128, 129, 191, 192, 1000, 4200, 8400]) {
                check(|i| i as f32, -1.0, (start, len));
                check(|i| i as u8, 255, (start, len));
                check(|i| i as u16, u16::MAX, (start, len));
                check(|i| i as u64, u64::MAX, (start, len));
                check(|i| [i as u8; 3], [255; 3], (start, len));
                check(|i| [i as u8; 4], [255; 4], (start, len));
            }
        }
    }

    #[test]
    fn the_ends_leave_whole_lines() {
        let memory = vec![0.0_f32; 1000];
        let line = memory.as_ptr().align_offset(LINE);
        assert_eq!(ends(&memory[line..line + 640]), [0, 640]);
        assert_eq!(ends(&memory[line + 3..line + 640]), [13, 13 + 576]);
        assert_eq!(ends(&memory[line + 3..line + 10]), [7, 7]);
    }

    #[test]
    fn who_writes_into_the_caches_waits_for_nothing() {
        let before = forced::fences();
        assert!(Fence::new(Portable, false).is_none());
        assert_eq!(forced::fences(), before);
        drop(Fence::new(Portable, true));
        assert_eq!(forced::fences(), before + 1);
    }

    #[test]
    fn small_outputs_stay_in_the_caches() {
        assert!(!is_far::<f32>(FAR / 4 - 1));
        assert_eq!(is_far::<f32>(FAR / 4), cfg!(target_arch = "x86_64"));
        assert!(forced::far(|| is_far::<u8>(0)));
    }
}
