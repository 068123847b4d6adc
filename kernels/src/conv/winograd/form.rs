//! The transforms of minimal filtering: what an input, a filter and an output are multiplied by.
//!
//! A line of outputs takes as many inputs, and products, as there are outputs and taps, less one.
//! The products are those of the polynomials that input and filter are, at one point less and at
//! infinity (S. Winograd, Arithmetic Complexity of Computations, 1980).

use core::fmt::Debug;

use crate::simd::Simd;

/// Most inputs of a tile along one axis, ...
const MOST: usize = 8;
/// ... most taps ...
pub const MOST_TAPS: usize = 5;
/// ... and most outputs.
pub const MOST_OUT: usize = 4;

/// Tiles of `M` lines of `N` inputs, and as many products: with as many lines as columns, or one.
/// What lies beyond the outputs that a tile has is not read.
pub trait Form<const M: usize, const N: usize>: Copy + Debug + Send + Sync + 'static {
    /// What is not a function.
    const SHAPE: Shape;

    /// Transforms the inputs of a column.
    fn input_column<S: Simd>(s: S, x: [S::F; M]) -> [S::F; M];
    /// Transforms the inputs of a line.
    fn input<S: Simd>(s: S, x: [S::F; N]) -> [S::F; N];
    /// Makes outputs of the products of a column.
    fn output_column<S: Simd>(s: S, x: [S::F; M]) -> [S::F; MOST_OUT];
    /// Makes outputs of the products of a line.
    fn output<S: Simd>(s: S, x: [S::F; N]) -> [S::F; MOST_OUT];
}

/// What a tile has, and what makes points of taps and taps of points.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Lines and columns of points, ...
    pub points: (usize, usize),
    /// ... of taps ...
    pub taps: (usize, usize),
    /// ... and of outputs.
    pub out: (usize, usize),
    /// What taps along an axis are multiplied by for each point.
    pub filter: &'static [[f64; MOST_TAPS]; MOST],
    /// What points along an axis are multiplied by for each tap.
    pub back: &'static [[f32; MOST]; MOST_TAPS],
}

/// Evaluates an expression with the form of some tiles as a type.
macro_rules! with_form {
    ($tiles:expr, $form:ident, $m:ident, $n:ident => $value:expr) => {
        match $tiles {
            $crate::conv::winograd::Tiles::Two => {
                type $form = $crate::conv::winograd::form::Two;
                const $m: usize = 4;
                const $n: usize = 4;
                $value
            }
            $crate::conv::winograd::Tiles::Four => {
                type $form = $crate::conv::winograd::form::Four;
                const $m: usize = 6;
                const $n: usize = 6;
                $value
            }
            $crate::conv::winograd::Tiles::LineOfThree => {
                type $form = $crate::conv::winograd::form::LineOfThree;
                const $m: usize = 1;
                const $n: usize = 6;
                $value
            }
            $crate::conv::winograd::Tiles::LineOfFive => {
                type $form = $crate::conv::winograd::form::LineOfFive;
                const $m: usize = 1;
                const $n: usize = 8;
                $value
            }
        }
    };
}

pub(super) use with_form;

/// Tiles of 4 x 4 outputs: 36 products instead of 144. The points are 0, 3/4, -3/4, 3/2 and
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

impl Form<6, 6> for Four {
    const SHAPE: Shape = Shape {
        points: (6, 6),
        taps: (3, 3),
        out: (4, 4),
        filter: &[
            powers(0.0, 3, OF_0),
            powers(A, 3, OF_A),
            powers(-A, 3, OF_A),
            powers(B, 3, OF_B),
            powers(-B, 3, OF_B),
            [0.0, 0.0, 1.0, 0.0, 0.0],
            [0.0; MOST_TAPS],
            [0.0; MOST_TAPS],
        ],
        back: &[
            [OF_0 as f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            odd([OF_A / (2.0 * A), 0.0, 0.0]),
            [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            [0.0; MOST],
            [0.0; MOST],
        ],
    };

    #[inline(always)]
    fn input_column<S: Simd>(s: S, x: [S::F; 6]) -> [S::F; 6] {
        Self::input(s, x)
    }

    #[inline(always)]
    fn output_column<S: Simd>(s: S, x: [S::F; 6]) -> [S::F; MOST_OUT] {
        Self::output(s, x)
    }

    #[inline(always)]
    fn input<S: Simd>(s: S, x: [S::F; 6]) -> [S::F; 6] {
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
    fn output<S: Simd>(s: S, x: [S::F; 6]) -> [S::F; MOST_OUT] {
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
    pub fn gradient<S: Simd>(s: S, x: [S::F; 6]) -> [S::F; 6] {
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

/// The first powers of a point, over the product of its distances to all others.
const fn powers(point: f64, count: usize, distances: f64) -> [f64; MOST_TAPS] {
    let mut row = [0.0; MOST_TAPS];
    let (mut power, mut i) = (1.0 / distances, 0);
    while i < count {
        row[i] = power;
        power *= point;
        i += 1;
    }
    row
}

/// Weights of the differences of opposite points.
const fn odd([a, b, c]: [f64; 3]) -> [f32; MOST] {
    let [a, b, c] = [a as f32, b as f32, c as f32];
    [0.0, a, -a, b, -b, c, -c, 0.0]
}

/// Four outputs of three taps of a line: 6 products instead of 12, with the points of [`Four`].
#[derive(Clone, Copy, Debug)]
pub struct LineOfThree;

impl Form<1, 6> for LineOfThree {
    const SHAPE: Shape = Shape {
        points: (1, 6),
        taps: (1, 3),
        out: (1, 4),
        filter: Four::SHAPE.filter,
        back: Four::SHAPE.back,
    };

    #[inline(always)]
    fn input_column<S: Simd>(_s: S, x: [S::F; 1]) -> [S::F; 1] {
        x
    }

    #[inline(always)]
    fn output_column<S: Simd>(s: S, x: [S::F; 1]) -> [S::F; MOST_OUT] {
        [x[0], s.zero(), s.zero(), s.zero()]
    }

    #[inline(always)]
    fn input<S: Simd>(s: S, x: [S::F; 6]) -> [S::F; 6] {
        Four::input(s, x)
    }

    #[inline(always)]
    fn output<S: Simd>(s: S, x: [S::F; 6]) -> [S::F; MOST_OUT] {
        Four::output(s, x)
    }
}

/// Four outputs of up to five taps of a line: 8 products instead of 20. The points are 0, 1/2,
/// -1/2, 1, -1, 2 and -2.
#[derive(Clone, Copy, Debug)]
pub struct LineOfFive;

/// Squares of the points.
const P: [f64; 3] = [0.25, 1.0, 4.0];
/// The sums of the products of one, two and three of them.
const SYMMETRIC: [f64; 3] = [
    P[0] + P[1] + P[2],
    P[0] * P[1] + P[0] * P[2] + P[1] * P[2],
    P[0] * P[1] * P[2],
];
/// The products of the distances of a point to all others: of 1/2, of 1, of 2; that of 0 is -1.
const DISTANCES: [f64; 3] = [
    2.0 * P[0] * (P[0] - P[1]) * (P[0] - P[2]),
    2.0 * P[1] * (P[1] - P[0]) * (P[1] - P[2]),
    2.0 * P[2] * (P[2] - P[0]) * (P[2] - P[1]),
];
/// What half of the sum and half of the difference of the two smaller points are multiplied by for
/// a sum of taps: the distances over the difference of their squares.
const OF_PAIR: [f64; 2] = [
    DISTANCES[0] / (2.0 * (P[0] - P[1])),
    -DISTANCES[1] / (2.0 * (P[0] - P[1])),
];

impl Form<1, 8> for LineOfFive {
    const SHAPE: Shape = Shape {
        points: (1, 8),
        taps: (1, 5),
        out: (1, 4),
        filter: &[
            powers(0.0, 5, -SYMMETRIC[2]),
            powers(0.5, 5, DISTANCES[0]),
            powers(-0.5, 5, DISTANCES[0]),
            powers(1.0, 5, DISTANCES[1]),
            powers(-1.0, 5, DISTANCES[1]),
            powers(2.0, 5, DISTANCES[2]),
            powers(-2.0, 5, DISTANCES[2]),
            [0.0, 0.0, 0.0, 0.0, 1.0],
        ],
        back: &[
            [-SYMMETRIC[2] as f32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            // Half of a difference over its point is `tap 1 + square * tap 3`.
            odd([-P[1] * OF_PAIR[0] / 0.5, -P[0] * OF_PAIR[1], 0.0]),
            // Half of a sum is `tap 0 + square * tap 2 + square^2 * tap 4`.
            [
                0.0,
                OF_PAIR[0] as f32,
                OF_PAIR[0] as f32,
                OF_PAIR[1] as f32,
                OF_PAIR[1] as f32,
                0.0,
                0.0,
                -(P[0] + P[1]) as f32,
            ],
            odd([OF_PAIR[0] / 0.5, OF_PAIR[1], 0.0]),
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        ],
    };

    #[inline(always)]
    fn input_column<S: Simd>(_s: S, x: [S::F; 1]) -> [S::F; 1] {
        x
    }

    #[inline(always)]
    fn output_column<S: Simd>(s: S, x: [S::F; 1]) -> [S::F; MOST_OUT] {
        [x[0], s.zero(), s.zero(), s.zero()]
    }

    #[inline(always)]
    fn input<S: Simd>(s: S, x: [S::F; 8]) -> [S::F; 8] {
        let [x0, x1, x2, x3, x4, x5, x6, x7] = x;
        let [one, two, three] = SYMMETRIC.map(|x| x as f32);
        // The polynomial of four points, without that of a pair.
        let pair = |y: f64, z: f64, first: [S::F; 3]| {
            let (sum, product) = (s.splat(-(y + z) as f32), s.splat((y * z) as f32));
            s.mul_add(product, first[0], s.mul_add(sum, first[1], first[2]))
        };
        let (even, odd) = ([x2, x4, x6], [x1, x3, x5]);
        let [p, q, r] = P;
        let (even_p, odd_p) = (pair(q, r, even), s.mul(s.splat(0.5), pair(q, r, odd)));
        let (even_q, odd_q) = (pair(p, r, even), pair(p, r, odd));
        let (even_r, odd_r) = (pair(p, q, even), s.mul(s.splat(2.0), pair(p, q, odd)));
        let all = |a: S::F, b: S::F, c: S::F, d: S::F| {
            let sum = s.mul_add(s.splat(-one), c, d);
            s.mul_add(s.splat(-three), a, s.mul_add(s.splat(two), b, sum))
        };
        [
            all(x0, x2, x4, x6),
            s.add(even_p, odd_p),
            s.sub(even_p, odd_p),
            s.add(even_q, odd_q),
            s.sub(even_q, odd_q),
            s.add(even_r, odd_r),
            s.sub(even_r, odd_r),
            all(x1, x3, x5, x7),
        ]
    }

    #[inline(always)]
    fn output<S: Simd>(s: S, x: [S::F; 8]) -> [S::F; MOST_OUT] {
        let [x0, x1, x2, x3, x4, x5, x6, x7] = x;
        let (even_p, odd_p) = (s.add(x1, x2), s.sub(x1, x2));
        let (even_q, odd_q) = (s.add(x3, x4), s.sub(x3, x4));
        let (even_r, odd_r) = (s.add(x5, x6), s.sub(x5, x6));
        [
            s.add(s.add(x0, even_p), s.add(even_q, even_r)),
            s.add(sum(s, (0.5, odd_p), (2.0, odd_r)), odd_q),
            s.add(sum(s, (P[0], even_p), (P[2], even_r)), even_q),
            s.add(sum(s, (0.125, odd_p), (8.0, odd_r)), s.add(odd_q, x7)),
        ]
    }
}

/// `a * x + b * y`
#[inline(always)]
fn sum<S: Simd>(s: S, (a, x): (f64, S::F), (b, y): (f64, S::F)) -> S::F {
    s.mul_add(s.splat(a as f32), x, s.mul(s.splat(b as f32), y))
}

/// Tiles of 2 x 2 outputs: 16 products instead of 36. The points are 0, 1 and -1.
#[derive(Clone, Copy, Debug)]
pub struct Two;

impl Form<4, 4> for Two {
    const SHAPE: Shape = Shape {
        points: (4, 4),
        taps: (3, 3),
        out: (2, 2),
        filter: &[
            powers(0.0, 3, -1.0),
            powers(1.0, 3, 2.0),
            powers(-1.0, 3, 2.0),
            [0.0, 0.0, 1.0, 0.0, 0.0],
            [0.0; MOST_TAPS],
            [0.0; MOST_TAPS],
            [0.0; MOST_TAPS],
            [0.0; MOST_TAPS],
        ],
        back: &[
            [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            odd([1.0, 0.0, 0.0]),
            [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0; MOST],
            [0.0; MOST],
        ],
    };

    #[inline(always)]
    fn input_column<S: Simd>(s: S, x: [S::F; 4]) -> [S::F; 4] {
        Self::input(s, x)
    }

    #[inline(always)]
    fn output_column<S: Simd>(s: S, x: [S::F; 4]) -> [S::F; MOST_OUT] {
        Self::output(s, x)
    }

    #[inline(always)]
    fn input<S: Simd>(s: S, x: [S::F; 4]) -> [S::F; 4] {
        let [x0, x1, x2, x3] = x;
        [s.sub(x2, x0), s.add(x2, x1), s.sub(x2, x1), s.sub(x3, x1)]
    }

    #[inline(always)]
    fn output<S: Simd>(s: S, x: [S::F; 4]) -> [S::F; MOST_OUT] {
        let [x0, x1, x2, x3] = x;
        let none = s.zero();
        [
            s.add(x0, s.add(x1, x2)),
            s.add(s.sub(x1, x2), x3),
            none,
            none,
        ]
    }
}
