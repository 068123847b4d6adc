//! Reductions, scans and segments.

use tfp_core::{DataType, Result};
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules};
use crate::gradient::shapes::{count_as, elements_from, kept_shape, reshape_like};

/// Returns a gradient of a reduction with the reduced axes kept.
fn kept(c: &Backward<'_>, value: &AnyValue) -> Result<AnyValue> {
    if c.op.bool("keep_dims")? {
        return Ok(value.clone());
    }
    let shape = kept_shape(c.cx, c.input(0), c.input(1))?;
    reshape(c.cx, value, &shape)
}

/// The gradient of the first of two inputs.
fn first(value: Result<AnyValue>) -> Result<InputGradients> {
    Ok(vec![Some(value?.into()), None])
}

fn spread(c: &Backward<'_>) -> Result<AnyValue> {
    let grad = kept(c, &c.grad(0)?)?;
    broadcast_to(c.cx, grad, &c.cx.shape_of(c.input(0))?)
}

fn mean_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let x = c.input(0);
    let spread = spread(c)?;
    let (all, left) = (
        count_as(c.cx, x, x.dtype())?,
        count_as(c.cx, c.output(0), x.dtype())?,
    );
    // A product, not a quotient of a quotient: of that TensorFlow's optimizer makes two nodes of one
    // name, which ends the process. Of a mean of nothing, what is multiplied is empty.
    let share = match (
        x.shape()?.element_count(),
        c.output(0).shape()?.element_count(),
    ) {
        (Some(all), Some(left)) => c.cx.scalar_like(x, left as f64 / all.max(1) as f64)?,
        _ => div(c.cx, left, all)?,
    };
    first(mul(c.cx, spread, share))
}

/// The gradient is shared by all elements that have the extreme value.
fn extreme(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, axes) = (c.input(0), c.input(1));
    let (y, grad) = (kept(c, c.output(0))?, kept(c, &c.grad(0)?)?);
    let chosen =
        c.cx.cast(&equal(c.cx, y, x, EqualOptions::default())?, x.dtype())?;
    let count = sum(
        c.cx,
        &chosen,
        axes,
        SumOptions {
            keep_dims: Some(true),
        },
    )?;
    first(mul(c.cx, div(c.cx, &chosen, count)?, grad))
}

fn norm_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let y = kept(c, c.output(0))?;
    let grad = kept(c, &c.grad(0)?)?;
    first(mul(c.cx, c.input(0), div_no_nan(c.cx, grad, y)?))
}

/// The product of all others, by products from both sides, so that zeros do no harm.
fn prod_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (cx, x) = (c.cx, c.input(0));
    let grad = spread(c)?;
    let rank = cx.rank_of(x)?;
    let axes = cx.cast(&reshape(cx, c.input(1), [-1])?, DataType::INT32)?;
    let reduced = floor_mod(cx, add_v2(cx, axes, &rank)?, &rank)?;
    let others = list_diff(
        cx,
        range(cx, 0, &rank, 1)?,
        &reduced,
        ListDiffOptions::default(),
    )?
    .out;
    let perm = concat_v2(cx, [&reduced, &others], 0)?;
    let sizes = cx.shape_of(x)?;
    let size = |axes: &AnyValue| -> Result<AnyValue> {
        prod(
            cx,
            gather_v2(cx, &sizes, axes, 0, Default::default())?,
            0,
            ProdOptions {
                keep_dims: Some(true),
            },
        )
    };
    let permuted = transpose(cx, x, &perm)?;
    let matrix = concat_v2(cx, [size(&reduced)?, size(&others)?], 0)?;
    let flat = reshape(cx, &permuted, matrix)?;
    let side = |reverse: bool| {
        cumprod(
            cx,
            &flat,
            0,
            CumprodOptions {
                exclusive: Some(true),
                reverse: Some(reverse),
            },
        )
    };
    let product = mul(cx, side(false)?, side(true)?)?;
    let product = match product.dtype().is_complex() {
        true => conj(cx, product)?,
        false => product,
    };
    let product = reshape(cx, product, &shape(cx, &permuted, ShapeOptions::default())?)?;
    let back = transpose(cx, product, invert_permutation(cx, &perm)?)?;
    first(mul(cx, grad, back))
}

fn cumsum_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let options = CumsumOptions {
        exclusive: Some(c.op.bool("exclusive")?),
        reverse: Some(!c.op.bool("reverse")?),
    };
    first(cumsum(c.cx, &c.grad(0)?, c.input(1), options))
}

fn cumprod_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (exclusive, reverse) = (c.op.bool("exclusive")?, c.op.bool("reverse")?);
    let product = mul(c.cx, c.output(0), &c.grad(0)?)?;
    let options = CumsumOptions {
        exclusive: Some(exclusive),
        reverse: Some(!reverse),
    };
    let summed = cumsum(c.cx, product, c.input(1), options)?;
    first(div_no_nan(c.cx, summed, c.input(0)))
}

fn cumulative_logsumexp_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, axis, y, grad) = (c.input(0), c.input(1), c.output(0), c.grad(0)?);
    let options = CumulativeLogsumexpOptions {
        exclusive: Some(c.op.bool("exclusive")?),
        reverse: Some(!c.op.bool("reverse")?),
    };
    // Of the positive and the negative part, each as a logarithm.
    let least = c.cx.scalar_like(
        x,
        if x.dtype() == DataType::DOUBLE {
            f64::MIN
        } else {
            f32::MIN.into()
        },
    )?;
    let part = |of: &AnyValue| -> Result<AnyValue> {
        let positive = greater(c.cx, of, 0.0)?;
        let safe = select_v2(c.cx, &positive, of, ones_like(c.cx, of)?)?;
        let logs = select_v2(c.cx, &positive, log(c.cx, safe)?, &least)?;
        let scanned = cumulative_logsumexp(c.cx, sub(c.cx, logs, y)?, axis, options)?;
        exp(c.cx, add_v2(c.cx, scanned, x)?)
    };
    first(sub(c.cx, part(&grad)?, part(&neg(c.cx, &grad)?)?))
}

fn rows(c: &Backward<'_>, params: &AnyValue, ids: &AnyValue) -> Result<AnyValue> {
    gather_v2(c.cx, params, ids, 0, GatherV2Options::default())
}

/// Returns a vector with a shape that broadcasts against the rows of another tensor.
fn as_rows(c: &Backward<'_>, vector: &AnyValue, like: &AnyValue) -> Result<AnyValue> {
    let trailing = sub(c.cx, c.cx.rank_of(like)?, 1)?;
    let ones = fill(c.cx, reshape(c.cx, trailing, [1])?, 1)?;
    let shape = concat_v2(
        c.cx,
        [shape(c.cx, vector, ShapeOptions::default())?, ones],
        0,
    )?;
    reshape(c.cx, vector, shape)
}

fn segment_mean_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (ids, grad) = (c.input(1), c.grad(0)?);
    let ones = fill(
        c.cx,
        shape(c.cx, ids, ShapeOptions::default())?,
        c.cx.scalar_like(&grad, 1.0)?,
    )?;
    let counts = segment_sum(c.cx, ones, ids)?;
    let counts = as_rows(c, &maximum(c.cx, counts, 1.0)?, &grad)?;
    first(rows(c, &div(c.cx, &grad, counts)?, ids))
}

fn segment_extreme_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, ids, grad) = (c.input(0), c.input(1), c.grad(0)?);
    let chosen = equal(c.cx, x, rows(c, c.output(0), ids)?, EqualOptions::default())?;
    let count = segment_sum(c.cx, c.cx.cast(&chosen, grad.dtype())?, ids)?;
    let share = rows(c, &div(c.cx, &grad, count)?, ids)?;
    first(select_v2(c.cx, chosen, share, zeros_like(c.cx, x)?))
}

/// Rows by ids of which negative ones stand for no row: their rows are zero.
fn kept_rows(c: &Backward<'_>, params: &AnyValue, ids: &AnyValue) -> Result<(AnyValue, AnyValue)> {
    let clipped = maximum(c.cx, ids, zeros_like(c.cx, ids)?)?;
    let gathered = rows(c, params, &clipped)?;
    let valid = greater_equal(c.cx, ids, zeros_like(c.cx, ids)?)?;
    // One truth value per row, with the rank of the rows.
    let (rank, ids_rank) = (c.cx.rank_of(&gathered)?, c.cx.rank_of(ids)?);
    let ones = fill(c.cx, reshape(c.cx, sub(c.cx, rank, ids_rank)?, [1])?, 1)?;
    let shape = concat_v2(c.cx, [shape(c.cx, ids, ShapeOptions::default())?, ones], 0)?;
    let valid = reshape(c.cx, valid, shape)?;
    let kept = select_v2(c.cx, &valid, &gathered, zeros_like(c.cx, &gathered)?)?;
    Ok((kept, valid))
}

fn of_three(value: Result<AnyValue>) -> Result<InputGradients> {
    Ok(vec![Some(value?.into()), None, None])
}

fn unsorted_extreme_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, ids, count, grad) = (c.input(0), c.input(1), c.input(2), c.grad(0)?);
    let (chosen_of, valid) = kept_rows(c, c.output(0), ids)?;
    let chosen = equal(c.cx, x, chosen_of, EqualOptions::default())?;
    let chosen = logical_and(c.cx, chosen, valid)?;
    let selected = unsorted_segment_sum(c.cx, c.cx.cast(&chosen, grad.dtype())?, ids, count)?;
    let (share, _) = kept_rows(c, &div(c.cx, &grad, selected)?, ids)?;
    of_three(select_v2(c.cx, chosen, share, zeros_like(c.cx, x)?))
}

fn segment_prod_grad(c: &Backward<'_>, count: &AnyValue) -> Result<AnyValue> {
    let (cx, x, ids) = (c.cx, c.input(0), c.input(1));
    let is_zero = equal(cx, x, zeros_like(cx, x)?, EqualOptions::default())?;
    let zeros = unsorted_segment_sum(cx, cx.cast(&is_zero, DataType::INT32)?, ids, count)?;
    let grad = c.grad(0)?;
    // More than one zero: every product of the others is zero.
    let grad = select_v2(cx, greater(cx, zeros, 1)?, zeros_like(cx, &grad)?, &grad)?;
    let without = select_v2(cx, &is_zero, ones_like(cx, x)?, x)?;
    let (without, _) = kept_rows(c, &unsorted_segment_prod(cx, &without, ids, count)?, ids)?;
    let (with, _) = kept_rows(c, c.output(0), ids)?;
    let safe = select_v2(cx, &is_zero, ones_like(cx, x)?, x)?;
    let others = select_v2(cx, &is_zero, without, div(cx, with, safe)?)?;
    let (grad, _) = kept_rows(c, &grad, ids)?;
    mul(cx, grad, others)
}

/// The elements that have the value that was chosen share its gradient.
fn nth_element_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let last = |value: &AnyValue| expand_dims(c.cx, value, -1);
    let chosen = last(c.output(0))?;
    let is_it = equal(c.cx, c.input(0), chosen, EqualOptions::default())?;
    let is_it = c.cx.cast(&is_it, c.input(0).dtype())?;
    let count = last(&sum(c.cx, &is_it, [-1], SumOptions::default())?)?;
    let share = div(c.cx, last(&c.grad(0)?)?, count)?;
    Ok(vec![Some(mul(c.cx, is_it, share)?.into()), None])
}

fn sparse_segment(c: &Backward<'_>, grad_op: &str) -> Result<InputGradients> {
    let x = c.input(0);
    let size = gather_v2(c.cx, c.cx.shape_of(x)?, 0, 0, GatherV2Options::default())?;
    let grad =
        c.cx.op1(grad_op, &[&c.grad(0)?, c.input(1), c.input(2), &size])?;
    let mut found = vec![None; c.op.inputs().len()];
    found[0] = Some(grad.into());
    Ok(found)
}

/// The mean of the gradient over the segments of each row.
fn isotonic_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, segments, g) = (c.input(0), c.output(1), c.grad(0)?);
    // The same segment in another row has another number.
    let width = elements_from(c.cx, &c.cx.shape_of(x)?, -1)?;
    let count = size(c.cx, x, SizeOptions::default())?;
    let starts = range(c.cx, 0, &count, reshape(c.cx, &width, c.cx.ints(&[])?)?)?;
    let rows = concat_v2(c.cx, (c.cx.ints(&[-1])?, &width), 0)?;
    let by_row = reshape(c.cx, segments, rows)?;
    let numbers = add_v2(c.cx, by_row, expand_dims(c.cx, starts, -1)?)?;
    let numbers = reshape(c.cx, numbers, [-1])?;
    let total = |x: AnyValue| -> Result<AnyValue> {
        let sums = unsorted_segment_sum(c.cx, reshape(c.cx, x, [-1])?, &numbers, &count)?;
        gather_v2(c.cx, sums, &numbers, 0, GatherV2Options::default())
    };
    let ones = ones_like(c.cx, &g)?;
    let means = div(c.cx, total(g)?, total(ones)?)?;
    let found = reshape_like(c.cx, &means, x)?;
    Ok(vec![Some(c.cx.cast(&found, x.dtype())?.into())])
}

pub(super) static RULES: Rules = &[
    ("Sum", |c| first(spread(c))),
    ("Mean", mean_grad),
    ("Max", extreme),
    ("Min", extreme),
    ("Prod", prod_grad),
    ("EuclideanNorm", norm_grad),
    ("Cumsum", cumsum_grad),
    ("Cumprod", cumprod_grad),
    ("CumulativeLogsumexp", cumulative_logsumexp_grad),
    ("SegmentSum", |c| first(rows(c, &c.grad(0)?, c.input(1)))),
    ("SegmentMean", segment_mean_grad),
    ("SegmentMax", segment_extreme_grad),
    ("SegmentMin", segment_extreme_grad),
    ("SegmentProd", |c| {
        let size = c.cx.shape_of(c.output(0))?;
        let count = gather_v2(c.cx, size, 0, 0, GatherV2Options::default())?;
        first(segment_prod_grad(c, &count))
    }),
    ("NthElement", nth_element_grad),
    ("UnsortedSegmentSum", |c| {
        of_three(kept_rows(c, &c.grad(0)?, c.input(1)).map(|kept| kept.0))
    }),
    ("IsotonicRegression", isotonic_grad),
    ("UnsortedSegmentMax", unsorted_extreme_grad),
    ("UnsortedSegmentMin", unsorted_extreme_grad),
    ("UnsortedSegmentProd", |c| {
        of_three(segment_prod_grad(c, c.input(2)))
    }),
    ("SparseSegmentSum", |c| {
        sparse_segment(c, "SparseSegmentSumGrad")
    }),
    ("SparseSegmentSumWithNumSegments", |c| {
        sparse_segment(c, "SparseSegmentSumGrad")
    }),
    ("SparseSegmentMean", |c| {
        sparse_segment(c, "SparseSegmentMeanGrad")
    }),
    ("SparseSegmentMeanWithNumSegments", |c| {
        sparse_segment(c, "SparseSegmentMeanGrad")
    }),
    ("SparseSegmentSqrtN", |c| {
        sparse_segment(c, "SparseSegmentSqrtNGrad")
    }),
    ("SparseSegmentSqrtNWithNumSegments", |c| {
        sparse_segment(c, "SparseSegmentSqrtNGrad")
    }),
];
