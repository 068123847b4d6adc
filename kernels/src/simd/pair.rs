//! Two registers of four lanes as a vector of eight: what NEON and WebAssembly have.
//!
//! Panels, strips and scratch memory are then those of AVX2 and of the portable level, and each
//! operation is two instructions that do not wait for each other.

/// The first and the last four lanes.
#[derive(Clone, Copy, Debug)]
pub struct Pair<V>(pub V, pub V);

/// Operations that do the same with both halves, for a level whose instructions the target has.
macro_rules! halves {
    ($($name:ident($($arg:ident: $in:ident),*) -> $out:ident = $value:expr;)*) => {
        $(
            #[inline(always)]
            // Where an intrinsic is safe by the target alone.
            #[allow(unused_unsafe)]
            fn $name(self, $($arg: Self::$in),*) -> Self::$out {
                // SAFETY: the target has the instructions; registers only.
                unsafe {
                    $crate::simd::pair::Pair(
                        { $(let $arg = $arg.0;)* $value },
                        { $(let $arg = $arg.1;)* $value },
                    )
                }
            }
        )*
    };
}
pub(super) use halves;

/// Loads and stores of slices of at most eight elements by those of at most four: `load_few` and
/// `store_few` of the module that asks for them.
macro_rules! parts_of_slices {
    ($register:ty) => {
        #[inline(always)]
        fn load_partial(self, from: &[f32]) -> Pair<$register> {
            self.load_filled(from, 0.0)
        }

        #[inline(always)]
        fn load_filled(self, from: &[f32], nothing: f32) -> Pair<$register> {
            assert!(from.len() <= LANES, "a slice is longer than a vector");
            let nothing = self.splat(nothing);
            match from.split_at_checked(HALF) {
                Some((low, high)) => Pair(load_four(low), load_few(high, nothing.1)),
                None => Pair(load_few(from, nothing.0), nothing.1),
            }
        }

        #[inline(always)]
        fn store_partial(self, to: &mut [f32], x: Pair<$register>) {
            assert!(to.len() <= LANES, "a slice is longer than a vector");
            match to.split_at_mut_checked(HALF) {
                Some((low, high)) => {
                    store_four(low, x.0);
                    store_few(high, x.1);
                }
                None => store_few(to, x.0),
            }
        }

        #[inline(always)]
        fn load(self, from: &[f32]) -> Pair<$register> {
            let (low, high) = from[..LANES].split_at(HALF);
            Pair(load_four(low), load_four(high))
        }

        #[inline(always)]
        fn store(self, to: &mut [f32], x: Pair<$register>) {
            let (low, high) = to[..LANES].split_at_mut(HALF);
            store_four(low, x.0);
            store_four(high, x.1);
        }

        #[inline(always)]
        fn to_array(self, a: Pair<$register>) -> [f32; 16] {
            let mut out = [0.0; 16];
            self.store(&mut out, a);
            out
        }
    };
}
pub(super) use parts_of_slices;
