//! The gradients of a step of a GRU.

use super::{Cell, Gradients, Memory, Projection, add_rows};
use crate::base::adapt::check_count;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::scratch::take;
use crate::frame::map::Map;
use crate::gemm::Matrix;
use crate::ops::elementwise::unary::{Sigmoid, Tanh};
use crate::simd::body::{Body, dispatch};

/// Rows that a pass takes: of more, gates and products would need scratch memory of more than half
/// as much again as inputs and outputs have.
const ROWS: usize = 96;

/// How the reset gate of a GRU acts.
#[derive(Debug)]
pub enum Reset<'a> {
    /// On the projected state (Keras: `reset_after=True`).
    After {
        /// `3 * units`, added to the projected state.
        bias: Option<&'a [f32]>,
        /// Its gradient; added to. Only where there is a bias.
        gradient: Option<&'a mut [f32]>,
    },
    /// On the state, before its projection for the candidate (Keras: `reset_after=False`).
    Before,
}

/// Elements of scratch memory that [`gru_gradient`] needs: for 96 rows, the gates of inputs and
/// state, the state after the reset and its gradient; and what products need.
///
/// # Errors
/// [`Error::Overflow`].
pub fn gru_scratch_len(cell: &Cell<'_>) -> Result<usize> {
    let all = cell.batch.checked_mul(cell.units.max(cell.inputs));
    all.ok_or(Error::Overflow { argument: "units" })?;
    let rows = |batch| Cell { batch, ..*cell };
    let last = rows(cell.batch % ROWS).scratch(3, 8)?;
    Ok(rows(cell.batch.min(ROWS)).scratch(3, 8)?.max(last))
}

/// The gradients of a step of [`crate::ops::sequence::lstm::Gru`] from the inputs, the state before it and the
/// gradient of the state after it.
///
/// # Errors
/// [`Error::Length`] if a slice has not the length that the sizes say; [`Error::Overflow`].
#[allow(clippy::too_many_arguments)]
pub fn gru_gradient(
    cell: &Cell<'_>,
    reset: &mut Reset<'_>,
    inputs: &[f32],
    before: &[f32],
    after: &[f32],
    gradients: &mut Gradients<'_>,
    scratch: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    let needed = gru_scratch_len(cell)?;
    let states = [
        ("hidden", before.len()),
        ("hidden output gradient", after.len()),
    ];
    cell.check(3, inputs, &states)?;
    cell.check_gradients(gradients)?;
    let scratch = take(scratch, needed)?;
    if let Reset::After { bias, gradient } = &*reset {
        let all = 3 * cell.units;
        let found = bias.map_or(all, <[f32]>::len);
        check_count("recurrent bias", found, all)?;
        let found = gradient.as_ref().map_or(all, |gradient| gradient.len());
        check_count("recurrent bias gradient", found, all)?;
    }
    for first in (0..cell.batch).step_by(ROWS) {
        let rows = first..cell.batch.min(first + ROWS);
        let of = |each: usize| rows.start * each..rows.end * each;
        let part = Cell {
            batch: rows.len(),
            ..*cell
        };
        let mut gradients = Gradients {
            inputs: &mut gradients.inputs[of(cell.inputs)],
            hidden: &mut gradients.hidden[of(cell.units)],
            kernel: gradients.kernel,
            recurrent: gradients.recurrent,
            bias: gradients.bias.as_deref_mut(),
        };
        gru_rows(
            &part,
            reset,
            &inputs[of(cell.inputs)],
            (&before[of(cell.units)], &after[of(cell.units)]),
            &mut gradients,
            scratch,
            parallel,
        )?;
    }
    Ok(())
}

/// The gradients of rows whose gates fit into scratch memory.
fn gru_rows(
    cell: &Cell<'_>,
    reset: &mut Reset<'_>,
    inputs: &[f32],
    (before, after): (&[f32], &[f32]),
    gradients: &mut Gradients<'_>,
    scratch: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    let (batch, units, all) = (cell.batch, cell.units, 3 * cell.units);
    let (x, rest) = scratch.split_at_mut(batch * all);
    let (h, rest) = rest.split_at_mut(batch * all);
    let (kept, rest) = rest.split_at_mut(batch * units);
    let (kept_gradient, scratch) = rest.split_at_mut(batch * units);
    let mut memory = Memory { scratch, parallel };
    let (of_inputs, of_hidden) = ((batch, all, cell.inputs), (batch, all, units));
    memory.project(of_inputs, inputs, cell.kernel, false, cell.bias, x)?;
    match reset {
        Reset::After { bias, gradient } => {
            memory.project(of_hidden, before, cell.recurrent, false, *bias, h)?;
            for row in 0..batch {
                dispatch(AfterRow(GruRow::new(
                    row,
                    units,
                    (x, h),
                    before,
                    after,
                    gradients,
                )));
            }
            if let Some(gradient) = gradient {
                add_rows(h, gradient);
            }
            let of_hidden = Projection {
                sizes: of_hidden,
                rows: before,
                matrix: cell.recurrent,
            };
            memory.projection_gradients(
                &of_hidden,
                h,
                true,
                gradients.hidden,
                gradients.recurrent,
            )?;
        }
        Reset::Before => {
            let rows = Rows {
                x: &mut *x,
                h,
                kept,
                kept_gradient,
            };
            reset_before(cell, &mut memory, rows, (before, after), gradients)?;
        }
    }
    if let Some(bias) = &mut gradients.bias {
        add_rows(x, bias);
    }
    let of_inputs = Projection {
        sizes: of_inputs,
        rows: inputs,
        matrix: cell.kernel,
    };
    memory.projection_gradients(&of_inputs, x, false, gradients.inputs, gradients.kernel)
}

/// The columns from `first` on of a matrix of `ld` columns, or their transpose.
fn part(data: &[f32], first: usize, ld: usize, transposed: bool) -> Matrix<'_> {
    Matrix {
        data: data.get(first..).unwrap_or(&[]),
        ld,
        transposed,
    }
}

/// Scratch memory of rows whose reset gate acts on the state.
struct Rows<'a> {
    /// The projections of the inputs.
    x: &'a mut [f32],
    /// The projections of the state.
    h: &'a mut [f32],
    /// The states times their reset gates.
    kept: &'a mut [f32],
    kept_gradient: &'a mut [f32],
}

/// Turns `x`, the projected inputs, into the gradients of the gates, where the reset gate acts on
/// the state, and computes the gradients of state and recurrent matrix.
fn reset_before(
    cell: &Cell<'_>,
    memory: &mut Memory<'_>,
    rows: Rows<'_>,
    (before, after): (&[f32], &[f32]),
    gradients: &mut Gradients<'_>,
) -> Result<()> {
    let Rows {
        x,
        h,
        kept,
        kept_gradient,
    } = rows;
    let (batch, units) = (cell.batch, cell.units);
    if batch == 0 || units == 0 {
        return Ok(());
    }
    // The recurrent matrix has a part for two gates and one for the candidate.
    let (all, two) = (3 * units, 2 * units);
    let weights = |first, transposed| part(cell.recurrent, first, all, transposed);
    memory.multiply(
        (batch, two, units),
        Matrix::rows(before, units),
        weights(0, false),
        false,
        h,
        all,
    )?;
    for row in 0..batch {
        let (x, h) = (&x[row * all + units..], &mut h[row * all + units..]);
        let of = row * units..(row + 1) * units;
        let states = before[of.clone()].iter().zip(&mut kept[of]);
        for ((old, kept), (x, h)) in states.zip(x.iter().zip(h)) {
            *h = Sigmoid.apply(x + *h);
            *kept = *h * old;
        }
    }
    memory.multiply(
        (batch, units, units),
        Matrix::rows(kept, units),
        weights(two, false),
        false,
        &mut h[two..],
        all,
    )?;
    for row in 0..batch {
        dispatch(BeforeRow(GruRow::new(
            row,
            units,
            (x, h),
            before,
            after,
            gradients,
        )));
    }
    memory.multiply(
        (batch, units, units),
        part(x, two, all, false),
        weights(two, true),
        false,
        kept_gradient,
        units,
    )?;
    for row in 0..batch {
        let (x, h) = (&mut x[row * all + units..], &h[row * all + units..]);
        let of = row * units..(row + 1) * units;
        let states = before[of.clone()]
            .iter()
            .zip(&mut gradients.hidden[of.clone()]);
        let gates = x.iter_mut().zip(h);
        for ((d, (old, hidden)), (x, reset)) in kept_gradient[of].iter().zip(states).zip(gates) {
            *x = d * old * reset * (1.0 - reset);
            *hidden += d * reset;
        }
    }
    memory.multiply(
        (units, units, batch),
        Matrix::columns(kept, units),
        part(x, two, all, false),
        true,
        &mut gradients.recurrent[two..],
        all,
    )?;
    memory.multiply(
        (batch, units, two),
        part(x, 0, all, false),
        weights(0, true),
        true,
        gradients.hidden,
        units,
    )?;
    memory.multiply(
        (units, two, batch),
        Matrix::columns(before, units),
        part(x, 0, all, false),
        true,
        gradients.recurrent,
        all,
    )
}

/// One row of a GRU: the projections of inputs and state, which become gradients.
struct GruRow<'a> {
    x: &'a mut [f32],
    h: &'a mut [f32],
    old: &'a [f32],
    after: &'a [f32],
    hidden: &'a mut [f32],
}

impl<'a> GruRow<'a> {
    fn new(
        row: usize,
        units: usize,
        (x, h): (&'a mut [f32], &'a mut [f32]),
        before: &'a [f32],
        after: &'a [f32],
        gradients: &'a mut Gradients<'_>,
    ) -> Self {
        let of = row * units..(row + 1) * units;
        let all = 3 * of.start..3 * of.end;
        Self {
            x: &mut x[all.clone()],
            h: &mut h[all],
            old: &before[of.clone()],
            after: &after[of.clone()],
            hidden: &mut gradients.hidden[of],
        }
    }
}

/// A row whose reset gate acts on the projected state.
struct AfterRow<'a>(GruRow<'a>);

impl Body for AfterRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let GruRow {
            x,
            h,
            old,
            after,
            hidden,
        } = self.0;
        let units = old.len();
        let (x_update, x) = x.split_at_mut(units);
        let (x_reset, x_candidate) = x.split_at_mut(units);
        let (h_update, h) = h.split_at_mut(units);
        let (h_reset, h_candidate) = h.split_at_mut(units);
        for j in 0..units {
            let update = Sigmoid.apply(x_update[j] + h_update[j]);
            let reset = Sigmoid.apply(x_reset[j] + h_reset[j]);
            let state = h_candidate[j];
            let candidate = Tanh.apply(x_candidate[j] + reset * state);
            let d = after[j];
            let inner = d * (1.0 - update) * (1.0 - candidate * candidate);
            x_update[j] = d * (old[j] - candidate) * update * (1.0 - update);
            x_reset[j] = inner * state * reset * (1.0 - reset);
            x_candidate[j] = inner;
            h_update[j] = x_update[j];
            h_reset[j] = x_reset[j];
            h_candidate[j] = inner * reset;
            hidden[j] = d * update;
        }
    }
}

/// A row whose reset gate acts on the state; all but the gradient of that gate, in whose place of
/// `h` its value is.
struct BeforeRow<'a>(GruRow<'a>);

impl Body for BeforeRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let GruRow {
            x,
            h,
            old,
            after,
            hidden,
        } = self.0;
        let units = old.len();
        let (x_update, x) = x.split_at_mut(units);
        let x_candidate = &mut x[units..];
        let (h_update, h) = h.split_at_mut(units);
        let h_candidate = &h[units..];
        for j in 0..units {
            let update = Sigmoid.apply(x_update[j] + h_update[j]);
            let candidate = Tanh.apply(x_candidate[j] + h_candidate[j]);
            let d = after[j];
            x_update[j] = d * (old[j] - candidate) * update * (1.0 - update);
            x_candidate[j] = d * (1.0 - update) * (1.0 - candidate * candidate);
            hidden[j] = d * update;
        }
    }
}
