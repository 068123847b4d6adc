//! Matmuls.

use super::product::{After, Batch, Left, Product, Right};
use crate::request::{Operand, Request};
use crate::vulkan::device::Limits;
use crate::work::Plan;

/// A matrix: rows, columns and whether it is transposed in memory.
fn sizes(operand: &Operand, transposed: bool) -> Option<[usize; 2]> {
    let [.., rows, columns] = operand.shape[..] else {
        return None;
    };
    Some(if transposed {
        [columns, rows]
    } else {
        [rows, columns]
    })
}

/// What both sides are, whether they can be read in vectors, and their product's sizes.
struct Sides {
    size: [usize; 3],
    kinds: (Left, Right),
    pitches: [usize; 2],
    vectors: [bool; 2],
}

fn sides(a: &Operand, b: &Operand, (ta, tb): (bool, bool)) -> Option<Sides> {
    let ([m, k], [other, n]) = (sizes(a, ta)?, sizes(b, tb)?);
    let pitches = [if ta { m } else { k }, if tb { k } else { n }];
    (k == other).then_some(Sides {
        size: [m, n, k],
        kinds: (
            if ta { Left::Columns } else { Left::Rows },
            if tb { Right::Columns } else { Right::Rows },
        ),
        pitches,
        vectors: pitches.map(|pitch| pitch % 4 == 0),
    })
}

/// `MatMul`, and the plug-in's with a bias and an activation.
pub fn mat_mul(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [a, b] = request.inputs.first_chunk()?;
    let transposed = (
        request.attrs.boolean("transpose_a").ok()?,
        request.attrs.boolean("transpose_b").ok()?,
    );
    if !request.is_f32() || a.shape.len() != 2 || b.shape.len() != 2 {
        return None;
    }
    let sides = sides(a, b, transposed)?;
    let (bias, after) = match request.inputs.get(2) {
        Some(bias) => (Some(bias), After::read(request.attrs)?),
        None => (None, After::default()),
    };
    if bias.is_some_and(|bias| bias.shape[..] != [sides.size[1]]) {
        return None;
    }
    Product {
        size: sides.size,
        a: (a, sides.kinds.0, sides.pitches[0]),
        b: (b, sides.kinds.1, sides.pitches[1]),
        c: request.outputs.first()?,
        bias,
        extra: None,
        after,
        batch: Batch::ONE,
        convolution: [1; 13],
        vectors: sides.vectors,
    }
    .plan()
}

/// The products of tensors whose leading axes are equal, or 1 from some axis on to either end.
fn batch(a: &[usize], b: &[usize], sizes: [usize; 2]) -> Option<Batch> {
    let rank = a.len().max(b.len());
    let dim = |shape: &[usize], axis: usize| {
        (axis + shape.len())
            .checked_sub(rank)
            .map_or(1, |at| shape[at])
    };
    // Axes from the last on: the size, and whether A and B step.
    let mut axes: Vec<(usize, [bool; 2])> = Vec::new();
    for axis in (0..rank).rev() {
        let (x, y) = (dim(a, axis), dim(b, axis));
        if x != y && x != 1 && y != 1 {
            return None;
        }
        let size = x.max(y);
        let steps = [x == size, y == size];
        if size == 1 {
            continue;
        }
        match axes.last_mut() {
            Some((last, before)) if *before == steps => *last *= size,
            _ => axes.push((size, steps)),
        }
    }
    let mut found = Batch {
        inner: axes.first().map_or(1, |(size, _)| *size),
        outer: axes.get(1).map_or(1, |(size, _)| *size),
        ..Batch::ONE
    };
    if axes.len() > 2 {
        return None;
    }
    let mut reach = sizes;
    for (direction, (size, steps)) in axes.iter().enumerate() {
        let slot = 1 - direction;
        for side in 0..2 {
            let step = if steps[side] { reach[side] } else { 0 };
            if side == 0 {
                found.a[slot] = step;
            } else {
                found.b[slot] = step;
            }
            if steps[side] {
                reach[side] *= size;
            }
        }
    }
    Some(found)
}

/// `BatchMatMulV2`.
pub fn batch_mat_mul(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [a, b] = request.inputs.first_chunk()?;
    let transposed = (
        request.attrs.boolean("adj_x").ok()?,
        request.attrs.boolean("adj_y").ok()?,
    );
    if !request.is_f32() || a.shape.len() < 2 || b.shape.len() < 2 {
        return None;
    }
    let sides = sides(a, b, transposed)?;
    let [m, n, k] = sides.size;
    let leading = |operand: &'_ Operand| operand.shape[..operand.shape.len() - 2].to_vec();
    let batch = batch(&leading(a), &leading(b), [m * k, k * n])?;
    Product {
        size: sides.size,
        a: (a, sides.kinds.0, sides.pitches[0]),
        b: (b, sides.kinds.1, sides.pitches[1]),
        c: request.outputs.first()?,
        bias: None,
        extra: None,
        after: After::default(),
        batch,
        convolution: [1; 13],
        vectors: sides.vectors,
    }
    .plan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_without_an_axis_stays() {
        let found = batch(&[5, 3], &[3], [8, 16]).unwrap();
        assert_eq!((found.outer, found.inner), (5, 3));
        assert_eq!((found.a, found.b), ([24, 8], [0, 16]));
        let found = batch(&[2, 3], &[2, 3], [8, 16]).unwrap();
        assert_eq!((found.outer, found.inner), (1, 6));
        assert_eq!((found.a, found.b), ([0, 8], [0, 16]));
        assert!(batch(&[2, 1, 2], &[2, 2, 1], [1, 1]).is_none());
        assert!(batch(&[2], &[3], [1, 1]).is_none());
    }
}
