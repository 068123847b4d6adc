//! The transforms of minimal filtering: what an input, a filter and an output are multiplied by.
//!
//! A tile of `OUT` outputs of a filter of three taps takes `SIDE = OUT + 2` inputs and as many
//! products. The products are those of the polynomials that input and filter are, at `SIDE - 1`
//! points and at infinity (S. Winograd, Arithmetic Complexity of Computations, 1980).

use core::fmt::Debug;

use crate::simd::Simd;

/// Most inputs of a tile along one axis.
pub const MOST: usize = 6;

/// Transforms along one axis. What lies beyond `SIDE` or `OUT` is neither read nor written.
pub trait Form: Copy + Debug + Send + Sync + 'static {
    /// Outputs of a tile.
    const OUT: usize;
    /// Inputs of a tile, and products.
    const SIDE: usize = Self::OUT + 2;
    /// What the taps are multiplied by, for each product.
    const FILTER: [[f64; 3]; MOST];
    /// What the transformed taps are multiplied by to have them back.
    const TAPS: [[f32; MOST]; 3];

    /// Transforms the inputs.
    fn input<S: Simd>(s: S, x: [S::F; MOST]) -> [S::F; MOST];
    /// Makes outputs of products.
    fn output<S: Simd>(s: S, x: [S::F; MOST]) -> [S::F; 4];
}

/// Tiles of 4 outputs: 36 products instead of 144 for 4 x 4. The points are 0, 3/4, -3/4, 3/2 and
/// -3/2: their squares are exact, and the error is a third of what it is with the usual 1 and 2.
#[derive(Clone, Copy, Debug)]
pub struct Four;

/// The smaller point,
const A: f64 = 0.75;
/// the greater one,
const B: f64 = 1.5;
/// and their squares.
const AA: f64 = A * A;
const BB: f64 = B * B;
/// The products of the distances of a point to all others: of 0, of the smaller, of the greater.
const OF_0: f64 = AA * BB;
const OF_A: f64 = 2.0 * AA * (AA - BB);
const OF_B: f64 = 2.0 * BB * (BB - AA);

impl Form for Four {
    const OUT: usize = 4;
    const FILTER: [[f64; 3]; MOST] = [
        [1.0 / OF_0, 0.0, 0.0],
        [1.0 / OF_A, A / OF_A, AA / OF_A],
        [1.0 / OF_A, -A / OF_A, AA / OF_A],
        [1.0 / OF_B, B / OF_B, BB / OF_B],
        [1.0 / OF_B, -B / OF_B, BB / OF_B],
        [0.0, 0.0, 1.0],
    ];
    const TAPS: [[f32; MOST]; 3] = [
        [OF_0 as f32, 0.0, 0.0, 0.0, 0.0, 0.0],
        [
            0.0,
            (OF_A / (2.0 * A)) as f32,
            (-OF_A / (2.0 * A)) as f32,
            0.0,
            0.0,
            0.0,
        ],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    ];

    #[inline(always)]
    fn input<S: Simd>(s: S, x: [S::F; MOST]) -> [S::F; MOST] {
        let [aa, bb] = [s.splat(-AA as f32), s.splat(-BB as f32)];
        let [a, b] = [s.splat(A as f32), s.splat(B as f32)];
        let [sum, product] = [s.splat(-(AA + BB) as f32), s.splat((AA * BB) as f32)];
        let [x0, x1, x2, x3, x4, x5] = x;
        let (even_a, odd_a) = (s.mul_add(bb, x2, x4), s.mul_add(bb, x1, x3));
        let (even_b, odd_b) = (s.mul_add(aa, x2, x4), s.mul_add(aa, x1, x3));
        let (odd_a, odd_b) = (s.mul(a, odd_a), s.mul(b, odd_b));
        [
            s.mul_add(product, x0, s.mul_add(sum, x2, x4)),
            s.add(even_a, odd_a),
            s.sub(even_a, odd_a),
            s.add(even_b, odd_b),
            s.sub(even_b, odd_b),
            s.mul_add(product, x1, s.mul_add(sum, x3, x5)),
        ]
    }

    #[inline(always)]
    fn output<S: Simd>(s: S, x: [S::F; MOST]) -> [S::F; 4] {
        let [x0, x1, x2, x3, x4, x5] = x;
        let (even_a, odd_a) = (s.add(x1, x2), s.sub(x1, x2));
        let (even_b, odd_b) = (s.add(x3, x4), s.sub(x3, x4));
        [
            s.add(x0, s.add(even_a, even_b)),
            sum(s, (A, odd_a), (B, odd_b)),
            sum(s, (AA, even_a), (BB, even_b)),
            s.add(sum(s, (A * AA, odd_a), (B * BB, odd_b)), x5),
        ]
    }
}

impl Four {
    /// Transforms the gradients of outputs: [`Form::output`] with rows for columns.
    #[inline(always)]
    pub fn gradient<S: Simd>(s: S, x: [S::F; MOST]) -> [S::F; MOST] {
        let [x0, x1, x2, x3, ..] = x;
        let even_a = s.mul_add(s.splat(AA as f32), x2, x0);
        let even_b = s.mul_add(s.splat(BB as f32), x2, x0);
        let odd_a = sum(s, (A, x1), (A * AA, x3));
        let odd_b = sum(s, (B, x1), (B * BB, x3));
        [
            x0,
            s.add(even_a, odd_a),
            s.sub(even_a, odd_a),
            s.add(even_b, odd_b),
            s.sub(even_b, odd_b),
            x3,
        ]
    }
}

/// `a * x + b * y`
#[inline(always)]
fn sum<S: Simd>(s: S, (a, x): (f64, S::F), (b, y): (f64, S::F)) -> S::F {
    s.mul_add(s.splat(a as f32), x, s.mul(s.splat(b as f32), y))
}

/// Tiles of 2 outputs: 16 products instead of 36 for 2 x 2. The points are 0, 1 and -1.
#[derive(Clone, Copy, Debug)]
pub struct Two;

impl Form for Two {
    const OUT: usize = 2;
    const FILTER: [[f64; 3]; MOST] = [
        [-1.0, 0.0, 0.0],
        [0.5, 0.5, 0.5],
        [0.5, -0.5, 0.5],
        [0.0, 0.0, 1.0],
        [0.0; 3],
        [0.0; 3],
    ];
    const TAPS: [[f32; MOST]; 3] = [
        [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, -1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    ];

    #[inline(always)]
    fn input<S: Simd>(s: S, x: [S::F; MOST]) -> [S::F; MOST] {
        let [x0, x1, x2, x3, ..] = x;
        let none = s.zero();
        [
            s.sub(x2, x0),
            s.add(x2, x1),
            s.sub(x2, x1),
            s.sub(x3, x1),
            none,
            none,
        ]
    }

    #[inline(always)]
    fn output<S: Simd>(s: S, x: [S::F; MOST]) -> [S::F; 4] {
        let [x0, x1, x2, x3, ..] = x;
        let none = s.zero();
        [
            s.add(x0, s.add(x1, x2)),
            s.add(s.sub(x1, x2), x3),
            none,
            none,
        ]
    }
}
