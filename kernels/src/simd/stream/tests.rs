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
