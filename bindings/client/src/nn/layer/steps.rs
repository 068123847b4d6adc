//! Recurrent layers over any number of steps.

use tfp_core::{Context, Error, Result, Shape, Tensor};

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::control_flow::{LoopOptions, while_loop_with};
use crate::nn::functional::{self as f, Cell, RnnOptions};
use crate::ops;

/// Runs a cell as [`f::run`] does; where the number of steps is open, by a loop.
///
/// # Errors
/// As for [`f::run`], but for a number of steps that is not known.
pub(super) fn run(
    cx: &AnyContext,
    cell: &impl Cell<AnyContext>,
    x: &AnyValue,
    mask: Option<&AnyValue>,
    initial: Option<&[AnyValue]>,
    options: RnnOptions,
) -> Result<(AnyValue, Vec<AnyValue>)> {
    match x.shape()?.dim(1) {
        Some(_) => f::run(cx, cell, x, mask, initial, options),
        None => looped(cx, cell, x, mask, initial, options),
    }
}

/// The steps first, as a list takes them.
fn by_step(cx: &AnyContext, x: &AnyValue, rank: usize) -> Result<AnyValue> {
    let order: Vec<i32> = [1, 0].into_iter().chain(2..rank as i32).collect();
    ops::transpose(cx, x, order.as_slice())
}

/// A shape of which at most the last dimension is known.
fn shape_tensor(cx: &AnyContext, rank: usize, last: i64) -> Result<AnyValue> {
    let mut shape = vec![-1_i32; rank];
    if let (Some(size), Ok(last)) = (shape.last_mut(), i32::try_from(last)) {
        *size = last;
    }
    cx.constant(&Tensor::from_slice(&shape, &[rank as i64])?)
}

fn looped(
    cx: &AnyContext,
    cell: &impl Cell<AnyContext>,
    x: &AnyValue,
    mask: Option<&AnyValue>,
    initial: Option<&[AnyValue]>,
    options: RnnOptions,
) -> Result<(AnyValue, Vec<AnyValue>)> {
    let projected = cell.project(cx, x)?;
    let (shape, dtype) = (projected.shape()?, projected.dtype());
    let open = || Error::argument(format!("recurrent layer: an input of shape {shape}"));
    let rank = shape.rank().filter(|&rank| rank >= 3).ok_or_else(open)?;
    let width = shape.dim(rank - 1).unwrap_or(-1);
    let units = cell.units();
    let states = match initial {
        Some(states) => states.to_vec(),
        None => vec![f::zero_state(cx, x, units)?; cell.states()],
    };

    // Steps are taken from the end of a list.
    let mut steps = by_step(cx, &projected, rank)?;
    let mut masks = mask.map(|mask| by_step(cx, mask, 2)).transpose()?;
    if !options.go_backwards {
        steps = ops::reverse_v2(cx, steps, [0])?;
        masks = masks
            .map(|mask| ops::reverse_v2(cx, mask, [0]))
            .transpose()?;
    }
    let sizes = ops::shape(cx, &steps, ops::ShapeOptions::default())?;
    let scalar = cx.constant(&Tensor::from_slice::<i32>(&[], &[0])?)?;
    let count = ops::reshape(cx, ops::slice(cx, sizes, [0], [1])?, scalar)?;
    let step_shape = shape_tensor(cx, rank - 1, width)?;
    let list = ops::tensor_list_from_tensor(cx, steps, step_shape)?;
    let output_shape = shape_tensor(cx, rank - 1, units)?;
    let outputs = ops::empty_tensor_list(cx, output_shape, -1, dtype)?;
    let [output, ..] = &states[..] else {
        return Err(Error::argument("recurrent layer: a cell without a state"));
    };
    let output = ops::zeros_like(cx, output)?;

    let state_shape = Shape::new(&[vec![-1; rank - 2], vec![units]].concat());
    let mut shapes = vec![
        Shape::scalar(),
        Shape::unknown(),
        Shape::unknown(),
        state_shape.clone(),
    ];
    shapes.resize(shapes.len() + states.len(), state_shape);
    let zero = cx.constant(&Tensor::scalar(0_i32)?)?;
    let mut variables = vec![zero, list, outputs, output];
    variables.extend(states);
    let loop_options = LoopOptions {
        shapes: &shapes,
        ..Default::default()
    };
    let found = while_loop_with(
        cx,
        &variables,
        |cx, values| ops::less(cx, &values[0], &count),
        |cx, values| {
            let [index, list, outputs, output, states @ ..] = values else {
                return Err(Error::argument("a loop over steps has states"));
            };
            let step_shape = shape_tensor(cx, rank - 1, width)?;
            let popped = ops::tensor_list_pop_back(cx, list, step_shape, dtype)?;
            let mut next = cell.step(cx, &popped.tensor, states)?;
            let Some(mut now) = next.first().cloned() else {
                return Err(Error::argument("recurrent layer: a cell without a state"));
            };
            if let Some(masks) = &masks {
                // The list ends where the mask begins.
                let place = ops::sub(cx, ops::sub(cx, &count, index)?, 1)?;
                let mut mask = ops::gather_v2(cx, masks, place, 0, Default::default())?;
                for _ in 1..rank - 1 {
                    mask = ops::expand_dims(cx, mask, -1)?;
                }
                for (next, old) in next.iter_mut().zip(states) {
                    *next = ops::select_v2(cx, &mask, &*next, old)?;
                }
                let before = match options.zero_masked {
                    true => ops::zeros_like(cx, output)?,
                    false => output.clone(),
                };
                now = ops::select_v2(cx, &mask, now, before)?;
            }
            let outputs = match options.return_sequences {
                true => ops::tensor_list_push_back(cx, outputs, &now)?,
                false => outputs.clone(),
            };
            let mut all = vec![
                ops::add_v2(cx, index, 1)?,
                popped.output_handle,
                outputs,
                now,
            ];
            all.extend(next);
            Ok(all)
        },
        &loop_options,
    )?;
    let [_, _, outputs, output, states @ ..] = &found[..] else {
        return Err(Error::argument("a loop over steps has states"));
    };
    let output = match options.return_sequences {
        true => {
            let shape = shape_tensor(cx, rank - 1, units)?;
            let options = ops::TensorListStackOptions::default();
            let stacked = ops::tensor_list_stack(cx, outputs, shape, dtype, options)?;
            by_step(cx, &stacked, rank)?
        }
        false => output.clone(),
    };
    Ok((output, states.to_vec()))
}

#[cfg(test)]
mod tests {
    use tfp_core::{DataType, Graph, Session};

    use super::*;
    use crate::context::any::Mode;
    use crate::nn::Weights;
    use crate::nn::layer::{Bidirectional, ConvLstm, Layer, Pass, Recurrent, RnnKind};

    const COUNT: i64 = 4;

    fn numbers(shape: &[i64]) -> Result<Tensor> {
        let count: i64 = shape.iter().product();
        let list = (0..count).map(|i| (i * 7 % 11) as f32 / 5.0 - 1.0);
        Tensor::from_vec(list.collect(), shape)
    }

    /// The output of a layer and the gradients of its weights and its input, where the number of steps is
    /// known or not.
    fn computed(
        layer: &impl Layer,
        sample: &[i64],
        has_mask: bool,
        is_open: bool,
    ) -> Result<Vec<Vec<f32>>> {
        let graph = Graph::new()?;
        let cx = graph.any();
        let scope = graph.scope();
        let mut shape = [&[-1, COUNT], sample].concat();
        let mut built = sample.to_vec();
        built.insert(0, COUNT);
        if is_open {
            shape[1] = -1;
            built[0] = -1;
        }
        let x = scope.placeholder("x", DataType::FLOAT, &Shape::new(&shape))?;
        let mask = scope.placeholder("mask", DataType::BOOL, &Shape::new(&shape[..2]))?;
        let weights = Weights::new(&graph, 3);
        let built = layer.build(&weights, &built)?;
        let pass = Pass::training(&cx);
        pass.enter(vec![has_mask.then(|| AnyValue::from(&mask))]);
        let y = (built.forward)(&pass, &(&x).into())?;
        let flat = ops::reshape(&cx, ops::square(&cx, &y)?, [-1])?;
        let loss = ops::sum(&cx, flat, [0], Default::default())?;
        let variables = weights.trainables();
        let mut by: Vec<AnyValue> = variables.iter().map(|one| one.handle().clone()).collect();
        by.push((&x).into());
        let found = crate::gradient::gradients(&cx, &[loss], &by)?;
        assert!(found.iter().all(Option::is_some));
        let wanted: Vec<AnyValue> = std::iter::once(y)
            .chain(found.into_iter().flatten())
            .collect();
        let wanted = wanted
            .iter()
            .map(AnyValue::output)
            .collect::<Result<Vec<_>>>()?;
        let session = Session::new(&graph)?;
        crate::initialize(&session, &variables)?;
        let given = numbers(&[&[2, COUNT], sample].concat())?;
        let seen = [true, true, false, true, false, true, true, false];
        let seen = Tensor::from_slice(&seen, &[2, COUNT])?;
        let results = session.eval(&[(&x, &given), (&mask, &seen)], &wanted)?;
        results.iter().map(|one| one.to_vec::<f32>()).collect()
    }

    fn check(layer: &(impl Layer + std::fmt::Debug), sample: &[i64]) -> Result<()> {
        for has_mask in [false, true] {
            let open = computed(layer, sample, has_mask, true)?;
            let known = computed(layer, sample, has_mask, false)?;
            assert_eq!(open.len(), known.len());
            for (open, known) in open.iter().zip(&known) {
                assert_eq!(open.len(), known.len());
                for (a, b) in open.iter().zip(known) {
                    assert!((a - b).abs() < 2e-5, "{layer:?}: {a} and {b}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn open_steps_are_those_of_a_known_number() -> Result<()> {
        for kind in [RnnKind::Simple, RnnKind::Lstm, RnnKind::Gru] {
            // Steps differ by kind, the loop does not.
            let variants = if kind == RnnKind::Lstm { 0..8 } else { 1..3 };
            for variant in variants {
                let mut layer = Recurrent::new(kind, 5);
                layer.options.return_sequences = variant & 1 != 0;
                layer.options.go_backwards = variant & 2 != 0;
                layer.options.zero_masked = variant & 4 != 0;
                check(&layer, &[3])?;
            }
            let mut layer = Recurrent::new(kind, 2);
            layer.options.return_sequences = true;
            let merge = Default::default();
            check(&Bidirectional { layer, merge }, &[3])?;
        }
        let mut layer = ConvLstm::new(2, &[2, 2]);
        check(&layer, &[3, 4, 2])?;
        layer.options.return_sequences = true;
        check(&layer, &[3, 4, 2])
    }
}
