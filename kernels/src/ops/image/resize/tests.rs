use super::*;
use crate::simd::body::forced::same_bits;
use crate::testing::{Interleaved, numbers};

const X: [f32; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];

/// What TensorFlow 2.21 gives on a CPU.
#[test]
fn values_are_those_of_tensorflow() {
    let (from, to) = (
        Shape::new(&[1, 2, 3, 1]).unwrap(),
        Shape::new(&[1, 3, 4, 1]).unwrap(),
    );
    let bilinear = |corners| {
        let mut out = [f32::NAN; 12];
        resize_bilinear((&X, &from), (&mut out, &to), corners, &Interleaved).unwrap();
        out
    };
    let half = Corners {
        align: false,
        half_pixel: true,
    };
    assert_eq!(
        bilinear(half),
        [
            0.0, 0.625, 1.375, 2.0, 1.5, 2.125, 2.875, 3.5, 3.0, 3.625, 4.375, 5.0
        ]
    );
    let align = Corners {
        align: true,
        half_pixel: false,
    };
    let third = 2.0_f32 / 3.0;
    for (found, expected) in bilinear(align)
        .iter()
        .zip([0.0, third, 2.0 * third, 2.0, 1.5])
    {
        assert!((found - expected).abs() < 1e-6);
    }
    let mut out = [f32::NAN; 12];
    resize_nearest((&X, &from), (&mut out, &to), half, &Interleaved).unwrap();
    assert_eq!(
        out,
        [0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 5.0, 3.0, 4.0, 4.0, 5.0]
    );
}

/// Every element from its four pixels alone, in as many roundings.
#[test]
fn lines_share_what_is_between_left_and_right() {
    for (from, to) in [
        ([2, 5, 4, 3], [2, 11, 9, 3]),
        ([1, 9, 300, 3], [1, 4, 400, 3]),
        ([3, 2, 1, 1], [3, 7, 1100, 1]),
        ([1, 6, 7, 5], [1, 12, 50, 5]),
        ([2, 6, 7, 6], [2, 3, 50, 6]),
        ([1, 6, 7, 15], [1, 12, 150, 15]),
        ([1, 6, 7, 16], [1, 12, 9, 16]),
        ([1, 6, 7, 31], [1, 12, 9, 31]),
        ([1, 6, 7, 33], [1, 12, 9, 33]),
        ([1, 9, 7, 31], [1, 4, 90, 31]),
        ([2, 1, 1, 2], [2, 3, 1, 2]),
    ] {
        let shapes = [from, to].map(|dims| Shape::new(&dims).unwrap());
        let x = numbers(shapes[0].elements(), 7);
        for (align, half_pixel) in [(false, false), (true, false), (false, true)] {
            let corners = Corners { align, half_pixel };
            let found = same_bits(|| {
                let mut out = vec![f32::NAN; shapes[1].elements()];
                let images = ((&*x, &shapes[0]), (&mut *out, &shapes[1]));
                resize_bilinear(images.0, images.1, corners, &Interleaved).unwrap();
                out
            });
            let [_, height, width, channels] = from;
            let [_, rows, columns, _] = to;
            let axes = [(height, rows), (width, columns)];
            let [vertical, horizontal] = axes.map(|(size, out)| Axis::new(size, out, corners));
            for (i, found) in found.into_iter().enumerate() {
                let (pixel, channel) = (i / channels, i % channels);
                let (row, column) = (pixel / columns, pixel % columns);
                let (top, bottom, down) = vertical.between(row % rows);
                let (left, right, across) = horizontal.between(column);
                let line = |y: usize| {
                    let at = |x: usize| ((row / rows * height + y) * width + x) * channels;
                    let (a, b) = (x[at(left) + channel], x[at(right) + channel]);
                    a + (b - a) * across
                };
                let exact = line(top) + (line(bottom) - line(top)) * down;
                assert_eq!(found.to_bits(), exact.to_bits(), "{from:?} {to:?} {i}");
            }
        }
    }
}

/// The sum of products of an operation's result and a gradient is that of its argument and the
/// gradient's gradient.
#[test]
fn gradients_are_adjoint() {
    let (from, to) = (
        Shape::new(&[2, 5, 4, 3]).unwrap(),
        Shape::new(&[2, 7, 3, 3]).unwrap(),
    );
    let (x, gradient) = (numbers(from.elements(), 1), numbers(to.elements(), 2));
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter()
            .zip(b)
            .map(|(&a, &b)| f64::from(a) * f64::from(b))
            .sum()
    };
    for (align, half_pixel) in [(false, false), (true, false), (false, true)] {
        let corners = Corners { align, half_pixel };
        let (mut out, mut back) = (vec![0.0; gradient.len()], vec![0.0; x.len()]);
        resize_bilinear((&x, &from), (&mut out, &to), corners, &Interleaved).unwrap();
        resize_bilinear_grad((&gradient, &to), (&mut back, &from), corners).unwrap();
        assert!((dot(&out, &gradient) - dot(&x, &back)).abs() < 1e-4);
        resize_nearest((&x, &from), (&mut out, &to), corners, &Interleaved).unwrap();
        resize_nearest_grad((&gradient, &to), (&mut back, &from), corners).unwrap();
        assert!((dot(&out, &gradient) - dot(&x, &back)).abs() < 1e-4);
    }
    let flat = Shape::new(&[6]).unwrap();
    let result = resize_nearest(
        (&X, &flat),
        (&mut [0.0; 6], &flat),
        Corners::default(),
        &Interleaved,
    );
    assert!(matches!(result, Err(Error::Rank { .. })));
}
