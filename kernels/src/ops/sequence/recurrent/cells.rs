//! What the steps of recurrent layers do with the gates of some units of one row.
//!
//! The bits of a result depend on its operands and on the level, but not on its place.

use core::ops::Range;

use crate::base::level::Level;
use crate::frame::map::{Function, Map};
use crate::ops::elementwise::unary::{Sigmoid, Tanh};
use crate::simd::body::dispatch_simd;
use crate::simd::{Body, Simd};

/// Runs the body for the level in use.
pub(super) fn run(cell: impl Body<Out = ()>) {
    dispatch_simd(cell);
}

/// Some units of each of `N` gates that lie side by side.
pub(super) fn gates<const N: usize>(row: &[f32], units: usize, own: Range<usize>) -> [&[f32]; N] {
    core::array::from_fn(|gate| &row[gate * units..][own.clone()])
}

/// The state of an LSTM after a step.
pub(super) struct LstmCell<'a> {
    /// Input, forget, candidate, output.
    pub gates: [&'a [f32]; 4],
    pub cell: &'a mut [f32],
    pub hidden: &'a mut [f32],
}

impl Body for LstmCell<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let units = self.cell.len();
        let [input, forget, candidate, output] = self.gates.map(|gate| &gate[..units]);
        let hidden = &mut self.hidden[..units];
        if const { matches!(S::LEVEL, Level::Portable) } {
            // Two loops, which the compiler makes vectors of.
            for (cell, ((&i, &f), &g)) in self
                .cell
                .iter_mut()
                .zip(input.iter().zip(forget).zip(candidate))
            {
                *cell = Sigmoid.apply(f) * *cell + Sigmoid.apply(i) * Tanh.apply(g);
            }
            for (hidden, (&cell, &o)) in hidden.iter_mut().zip(self.cell.iter().zip(output)) {
                *hidden = Sigmoid.apply(o) * Tanh.apply(cell);
            }
            return;
        }
        for at in (0..units).step_by(S::LANES) {
            let i = Sigmoid.of(s, s.load_up_to(&input[at..]));
            let f = Sigmoid.of(s, s.load_up_to(&forget[at..]));
            let g = Tanh.of(s, s.load_up_to(&candidate[at..]));
            let o = Sigmoid.of(s, s.load_up_to(&output[at..]));
            let cell = s.load_up_to(&self.cell[at..]);
            let cell = s.mul_add(f, cell, s.mul(i, g));
            s.store_up_to(&mut self.cell[at..], cell);
            s.store_forwarded(&mut hidden[at..], s.mul(o, Tanh.of(s, cell)));
        }
    }
}

/// The state of a GRU after a step whose reset gate acts on the projected state. Gates are update,
/// reset, candidate.
pub(super) struct GruAfter<'a> {
    /// The projected input, ...
    pub x: [&'a [f32]; 3],
    /// ... and the projected state.
    pub state: [&'a [f32]; 3],
    /// The state before, and after.
    pub hidden: &'a mut [f32],
}

impl Body for GruAfter<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let units = self.hidden.len();
        let [xz, xr, xh] = self.x.map(|gate| &gate[..units]);
        let [hz, hr, hh] = self.state.map(|gate| &gate[..units]);
        if const { matches!(S::LEVEL, Level::Portable) } {
            let sums = xz.iter().zip(hz).zip(xr.iter().zip(hr));
            let rest = sums.zip(xh.iter().zip(hh));
            for (hidden, (((xz, hz), (xr, hr)), (xh, hh))) in self.hidden.iter_mut().zip(rest) {
                let z = Sigmoid.apply(xz + hz);
                let candidate = Tanh.apply(xh + Sigmoid.apply(xr + hr) * hh);
                *hidden = z * *hidden + (1.0 - z) * candidate;
            }
            return;
        }
        for at in (0..units).step_by(S::LANES) {
            let z = s.add(s.load_up_to(&xz[at..]), s.load_up_to(&hz[at..]));
            let r = s.add(s.load_up_to(&xr[at..]), s.load_up_to(&hr[at..]));
            let r = Sigmoid.of(s, r);
            let sum = s.mul_add(r, s.load_up_to(&hh[at..]), s.load_up_to(&xh[at..]));
            let hidden = blend(s, z, sum, s.load_up_to(&self.hidden[at..]));
            s.store_forwarded(&mut self.hidden[at..], hidden);
        }
    }
}

/// `sigmoid(z) * before + (1 - sigmoid(z)) * tanh(sum)`
#[inline(always)]
fn blend<S: Simd>(s: S, z: S::F, sum: S::F, before: S::F) -> S::F {
    let z = Sigmoid.of(s, z);
    let candidate = s.mul(s.sub(s.splat(1.0), z), Tanh.of(s, sum));
    s.mul_add(z, before, candidate)
}

/// `kept = sigmoid(x + state) * before`.
pub(super) struct GruReset<'a> {
    pub x: &'a [f32],
    pub state: &'a [f32],
    pub before: &'a [f32],
    pub kept: &'a mut [f32],
}

impl Body for GruReset<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let units = self.kept.len();
        let (x, state, before) = (
            &self.x[..units],
            &self.state[..units],
            &self.before[..units],
        );
        if const { matches!(S::LEVEL, Level::Portable) } {
            let rest = x.iter().zip(state).zip(before);
            for (kept, ((x, state), h)) in self.kept.iter_mut().zip(rest) {
                *kept = Sigmoid.apply(x + state) * h;
            }
            return;
        }
        for at in (0..units).step_by(S::LANES) {
            let r = s.add(s.load_up_to(&x[at..]), s.load_up_to(&state[at..]));
            let kept = s.mul(Sigmoid.of(s, r), s.load_up_to(&before[at..]));
            s.store_forwarded(&mut self.kept[at..], kept);
        }
    }
}

/// The state of a GRU after a step whose reset gate acts on the state.
pub(super) struct GruBefore<'a> {
    /// The projected input for update and candidate, ...
    pub x: [&'a [f32]; 2],
    /// ... and the projected state.
    pub state: [&'a [f32]; 2],
    /// The state before, and after.
    pub hidden: &'a mut [f32],
}

impl Body for GruBefore<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let units = self.hidden.len();
        let [xz, xh] = self.x.map(|gate| &gate[..units]);
        let [hz, hh] = self.state.map(|gate| &gate[..units]);
        if const { matches!(S::LEVEL, Level::Portable) } {
            let rest = xz.iter().zip(hz).zip(xh.iter().zip(hh));
            for (hidden, ((xz, hz), (xh, hh))) in self.hidden.iter_mut().zip(rest) {
                let z = Sigmoid.apply(xz + hz);
                *hidden = z * *hidden + (1.0 - z) * Tanh.apply(xh + hh);
            }
            return;
        }
        for at in (0..units).step_by(S::LANES) {
            let z = s.add(s.load_up_to(&xz[at..]), s.load_up_to(&hz[at..]));
            let sum = s.add(s.load_up_to(&xh[at..]), s.load_up_to(&hh[at..]));
            let hidden = blend(s, z, sum, s.load_up_to(&self.hidden[at..]));
            s.store_forwarded(&mut self.hidden[at..], hidden);
        }
    }
}
