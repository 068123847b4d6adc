//! The kernels against the definition in f64, and their gradients against differences of it.

use super::gradient::{Backward, Given, Parts as BackwardParts};
use super::stack::{Mode, Stack, lengths_are_valid};
use super::{Forward, Parts};
use crate::base::parallel::{Parallel, Serial};
use crate::testing::{Threads, numbers};

/// Outputs, last states, last cells; in the order of the op.
struct Results {
    output: Vec<f64>,
    hidden: Vec<f64>,
    cells: Vec<f64>,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// One step of a cell, with the weights as the op has them: `w` is `[gate][unit][input]`.
fn step(stack: &Stack, w: [&[f64]; 4], x: &[f64], h: &mut [f64], c: &mut [f64]) {
    let [kernel, recurrent, bias, recurrent_bias] = w;
    let units = stack.units;
    let dot = |matrix: &[f64], row: usize, x: &[f64]| -> f64 {
        let row = &matrix[row * x.len()..][..x.len()];
        row.iter().zip(x).map(|(a, b)| a * b).sum()
    };
    let of_x =
        |gate: usize, unit: usize| dot(kernel, gate * units + unit, x) + bias[gate * units + unit];
    let old = h.to_vec();
    let of_h = |gate: usize, unit: usize| {
        dot(recurrent, gate * units + unit, &old) + recurrent_bias[gate * units + unit]
    };
    for unit in 0..units {
        let both = |gate| of_x(gate, unit) + of_h(gate, unit);
        match stack.mode {
            Mode::Lstm => {
                let (i, f, o) = (sigmoid(both(0)), sigmoid(both(1)), sigmoid(both(3)));
                c[unit] = f * c[unit] + i * both(2).tanh();
                h[unit] = o * c[unit].tanh();
            }
            Mode::Gru => {
                let (z, r) = (sigmoid(both(0)), sigmoid(both(1)));
                let n = (of_x(2, unit) + r * of_h(2, unit)).tanh();
                h[unit] = (1.0 - z) * n + z * old[unit];
            }
        }
    }
}

fn reference(
    stack: &Stack,
    lengths: &[i32],
    x: &[f64],
    states: (&[f64], &[f64]),
    params: &[f64],
) -> Results {
    let (steps, batch, units, gates) = (stack.steps, stack.batch, stack.units, stack.gates());
    // [batch][step][width]
    let mut from = vec![vec![vec![]; steps]; batch];
    for (row, sequence) in from.iter_mut().enumerate() {
        for (step, values) in sequence.iter_mut().enumerate() {
            let at = if stack.time_major {
                step * batch + row
            } else {
                row * steps + step
            };
            *values = x[at * stack.inputs..][..stack.inputs].to_vec();
        }
    }
    let mut hidden = states.0.to_vec();
    let mut cells = states.1.to_vec();
    let all = stack.layers * stack.directions;
    let mut offset = 0;
    let matrices: Vec<_> = (0..all)
        .map(|index| {
            let depth = if index < stack.directions {
                stack.inputs
            } else {
                stack.directions * units
            };
            let kernel = &params[offset..][..gates * units * depth];
            let recurrent = &params[offset + kernel.len()..][..gates * units * units];
            offset += kernel.len() + recurrent.len();
            (kernel, recurrent)
        })
        .collect();
    for layer in 0..stack.layers {
        let mut to = vec![vec![vec![0.0; stack.directions * units]; steps]; batch];
        for direction in 0..stack.directions {
            let index = layer * stack.directions + direction;
            let bias = &params[offset + index * 2 * gates * units..];
            let (bias, other) = bias.split_at(gates * units);
            let (kernel, recurrent) = matrices[index];
            for row in 0..batch {
                let at = stack.state_at(index, row);
                let mut h = hidden[at.clone()].to_vec();
                let mut c = if stack.mode == Mode::Lstm {
                    cells[at.clone()].to_vec()
                } else {
                    vec![]
                };
                let length = usize::try_from(lengths[row]).unwrap();
                for place in 0..length {
                    let time = if direction == 1 {
                        length - 1 - place
                    } else {
                        place
                    };
                    let weights = [kernel, recurrent, bias, other];
                    step(stack, weights, &from[row][time], &mut h, &mut c);
                    to[row][time][direction * units..][..units].copy_from_slice(&h);
                }
                hidden[at.clone()].copy_from_slice(&h);
                if stack.mode == Mode::Lstm {
                    cells[at].copy_from_slice(&c);
                }
            }
        }
        from = to;
    }
    let mut output = vec![];
    for outer in 0..if stack.time_major { steps } else { batch } {
        for inner in 0..if stack.time_major { batch } else { steps } {
            let (row, time) = if stack.time_major {
                (inner, outer)
            } else {
                (outer, inner)
            };
            output.extend(&from[row][time]);
        }
    }
    Results {
        output,
        hidden,
        cells,
    }
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

fn sum_of(results: &Results, weights: [&[f32]; 3]) -> f64 {
    [&results.output, &results.hidden, &results.cells]
        .into_iter()
        .zip(weights)
        .flat_map(|(values, weights)| values.iter().zip(weights))
        .map(|(value, &weight)| value * f64::from(weight))
        .sum()
}

fn close(name: &str, found: &[f32], expected: &[f64], tolerance: f64, stack: &Stack) {
    assert_eq!(found.len(), expected.len(), "{name} of {stack:?}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(*found) - expected).abs() <= tolerance * (1.0 + expected.abs()),
            "{name}[{index}] of {stack:?}: {found}, expected {expected}"
        );
    }
}

/// Compares all outputs and all gradients of one stack.
fn compare(stack: &Stack, lengths: &[i32], seed: u64, parallel: &dyn Parallel) {
    assert!(lengths_are_valid(lengths, stack.steps));
    let states = stack.states().unwrap().elements();
    let has_cells = stack.mode == Mode::Lstm;
    let draw = |len: usize, salt: u64| numbers(len, seed * 16 + salt);
    let x = draw(stack.rows() * stack.inputs, 1);
    let hidden = draw(states, 2);
    let cells = draw(if has_cells { states } else { 1 }, 3);
    let params = draw(stack.params_len().unwrap(), 4);
    let used = lengths
        .iter()
        .any(|&length| usize::try_from(length).unwrap() < stack.steps);
    let given = used.then_some(lengths);

    let nan = |len: usize| vec![f32::NAN; len];
    let mut output = nan(stack.rows() * stack.width());
    let (mut last, mut last_cells) = (nan(states), nan(cells.len()));
    let mut reserve = nan((stack.layers - 1) * stack.rows() * stack.width());
    let mut memory = nan(Parts::of(stack).unwrap().len().unwrap());
    let mut mask = vec![7_u8; stack.rows()];
    let forward = Forward {
        stack,
        lengths: given,
        params: &params,
        parallel,
    };
    forward
        .run(
            (&x, &hidden, &cells),
            &mut output,
            &mut last,
            &mut last_cells,
            &mut reserve,
            (&mut memory, &mut mask),
        )
        .unwrap();
    let wides = [&x, &hidden, &cells, &params].map(|values| wide(values));
    let at = |inputs: &[Vec<f64>; 4]| {
        reference(
            stack,
            lengths,
            &inputs[0],
            (&inputs[1], &inputs[2]),
            &inputs[3],
        )
    };
    let expected = at(&wides);
    close("output", &output, &expected.output, 2e-6, stack);
    close("output_h", &last, &expected.hidden, 2e-6, stack);
    if has_cells {
        close("output_c", &last_cells, &expected.cells, 2e-6, stack);
    } else {
        assert_eq!(last_cells, [0.0]);
    }

    let of_output = draw(output.len(), 5);
    let of_hidden = draw(states, 6);
    let of_cells = draw(cells.len(), 7);
    let backward = Backward {
        stack,
        lengths: given,
        given: Given {
            output: &output,
            of_output: &of_output,
            of_hidden: &of_hidden,
            of_cells: &of_cells,
            reserve: &reserve,
        },
        x: &x,
        hidden: &hidden,
        cells: &cells,
        params: &params,
        parallel,
    };
    let mut found = [x.len(), states, cells.len(), params.len()].map(nan);
    let [of_x, of_h, of_c, of_params] = &mut found;
    let mut memory = nan(BackwardParts::of(stack).unwrap().len().unwrap());
    backward
        .run(of_x, of_h, of_c, of_params, &mut memory)
        .unwrap();
    let none: &[f32] = &[];
    let weights = [
        &of_output[..],
        &of_hidden,
        if has_cells { &of_cells } else { none },
    ];
    for (argument, found) in found.iter().enumerate() {
        let mut expected = vec![0.0; found.len()];
        for (index, expected) in expected.iter_mut().enumerate() {
            if argument == 2 && !has_cells {
                continue;
            }
            let mut moved = wides.clone();
            moved[argument][index] += 1e-5;
            let above = sum_of(&at(&moved), weights);
            moved[argument][index] -= 2e-5;
            *expected = (above - sum_of(&at(&moved), weights)) / 2e-5;
        }
        let name = ["input", "input_h", "input_c", "params"][argument];
        close(name, found, &expected, 1e-5, stack);
    }
}

#[test]
fn stacks_and_their_gradients_are_those_of_the_definition() {
    let mut seed = 0;
    for mode in [Mode::Lstm, Mode::Gru] {
        for (layers, directions, batch, steps, inputs, units) in [
            (1, 1, 3, 4, 2, 3),
            (1, 2, 2, 3, 3, 2),
            (2, 1, 2, 3, 2, 3),
            (3, 2, 2, 3, 1, 2),
            (1, 1, 1, 1, 1, 1),
            (1, 1, 1, 5, 9, 17),
        ] {
            for time_major in [true, false] {
                seed += 1;
                let stack = Stack {
                    mode,
                    layers,
                    directions,
                    batch,
                    steps,
                    inputs,
                    units,
                    time_major,
                };
                let all = vec![i32::try_from(steps).unwrap(); batch];
                compare(&stack, &all, seed, &Serial);
                let some: Vec<_> = (0..batch)
                    .map(|row| i32::try_from((row + 1).min(steps) % (steps + 1)).unwrap())
                    .collect();
                compare(&stack, &some, seed, &Threads(2));
            }
        }
    }
}

#[test]
fn sequences_without_steps_leave_the_states() {
    for mode in [Mode::Lstm, Mode::Gru] {
        for (batch, steps) in [(2, 3), (2, 0), (0, 3)] {
            let stack = Stack {
                mode,
                layers: 2,
                directions: 2,
                batch,
                steps,
                inputs: 2,
                units: 2,
                time_major: true,
            };
            compare(&stack, &vec![0; batch], 3, &Serial);
        }
    }
}

#[test]
fn lengths_beyond_the_steps_are_refused() {
    assert!(lengths_are_valid(&[0, 3], 3));
    assert!(!lengths_are_valid(&[4], 3));
    assert!(!lengths_are_valid(&[-1], 3));
}
