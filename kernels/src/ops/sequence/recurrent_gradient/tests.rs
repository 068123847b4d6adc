//! The gradients against differences in double precision and against TensorFlow's.

use proptest::prelude::*;

use super::*;
use crate::testing::{Interleaved, numbers};

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Sizes of a cell.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    batch: usize,
    inputs: usize,
    units: usize,
}

fn sizes() -> impl Strategy<Value = Sizes> {
    // A GRU takes 128 rows at a time.
    (
        prop_oneof![6 => 1..5_usize, 1 => 129..140_usize],
        1..6_usize,
        prop_oneof![1..6_usize, 15..19_usize],
    )
        .prop_map(|(batch, inputs, units)| Sizes {
            batch,
            inputs,
            units,
        })
}

/// `rows * matrix`, where the matrix has as many columns.
fn product(rows: &[f64], matrix: &[f64], depth: usize, columns: usize) -> Vec<f64> {
    let dot = |i: usize, j: usize| -> f64 {
        (0..depth)
            .map(|p| rows[i * depth + p] * matrix[p * columns + j])
            .sum()
    };
    (0..rows.len() / depth * columns)
        .map(|at| dot(at / columns, at % columns))
        .collect()
}

/// Inputs, hidden, cell, kernel, recurrent, bias: the new hidden and cell states.
fn lstm(s: Sizes, v: &[Vec<f64>]) -> Vec<f64> {
    let all = 4 * s.units;
    let (x, h) = (
        product(&v[0], &v[3], s.inputs, all),
        product(&v[1], &v[4], s.units, all),
    );
    let (mut hidden, mut cell) = (Vec::new(), Vec::new());
    for at in 0..s.batch * s.units {
        let (row, j) = (at / s.units, at % s.units);
        let gate = |gate: usize| {
            let j = gate * s.units + j;
            x[row * all + j] + h[row * all + j] + v[5][j]
        };
        let new = sigmoid(gate(1)) * v[2][at] + sigmoid(gate(0)) * gate(2).tanh();
        cell.push(new);
        hidden.push(sigmoid(gate(3)) * new.tanh());
    }
    hidden.extend(cell);
    hidden
}

/// Inputs, hidden, kernel, recurrent, bias, recurrent bias: the new state.
fn gru(after: bool, s: Sizes, v: &[Vec<f64>]) -> Vec<f64> {
    let (units, all) = (s.units, 3 * s.units);
    let (x, h) = (
        product(&v[0], &v[2], s.inputs, all),
        product(&v[1], &v[3], units, all),
    );
    let mut out = Vec::new();
    for row in 0..s.batch {
        let input = |j: usize| x[row * all + j] + v[4][j];
        let state = |j: usize| h[row * all + j] + if after { v[5][j] } else { 0.0 };
        let reset = |j: usize| sigmoid(input(units + j) + state(units + j));
        for j in 0..units {
            let update = sigmoid(input(j) + state(j));
            let rest = if after {
                reset(j) * state(2 * units + j)
            } else {
                let term =
                    |p: usize| reset(p) * v[1][row * units + p] * v[3][p * all + 2 * units + j];
                (0..units).map(term).sum()
            };
            let candidate = (input(2 * units + j) + rest).tanh();
            out.push(update * v[1][row * units + j] + (1.0 - update) * candidate);
        }
    }
    out
}

/// The gradient of `sum(weights * step(values))` with respect to one element.
fn difference(
    step: &dyn Fn(&[Vec<f64>]) -> Vec<f64>,
    values: &[Vec<f32>],
    weights: &[f32],
    (which, at): (usize, usize),
) -> f64 {
    let loss = |by: f64| -> f64 {
        let mut values: Vec<Vec<f64>> = values
            .iter()
            .map(|x| x.iter().map(|&x| f64::from(x)).collect())
            .collect();
        values[which][at] += by;
        let out = step(&values);
        out.iter()
            .zip(weights)
            .map(|(x, &w)| x * f64::from(w))
            .sum()
    };
    (loss(1e-5) - loss(-1e-5)) / 2e-5
}

/// The gradients of inputs, hidden, cell, kernel, recurrent, bias; the last three start at `start`.
fn lstm_gradients(s: Sizes, v: &[Vec<f32>], d: &[f32], start: f32) -> Result<Vec<Vec<f32>>> {
    let cell = Cell {
        batch: s.batch,
        inputs: s.inputs,
        units: s.units,
        kernel: &v[3],
        recurrent: &v[4],
        bias: Some(&v[5]),
    };
    let mut found: Vec<Vec<f32>> = v
        .iter()
        .enumerate()
        .map(|(i, x)| vec![if i < 3 { f32::NAN } else { start }; x.len()])
        .collect();
    let (to, weights) = found.split_at_mut(3);
    let [x, h, c] = to else { unreachable!() };
    let [kernel, recurrent, bias] = weights else {
        unreachable!()
    };
    let mut gradients = Gradients {
        inputs: x,
        hidden: h,
        kernel,
        recurrent,
        bias: Some(bias),
    };
    let mut scratch = vec![f32::NAN; lstm_scratch_len(&cell)?];
    let states = s.batch * s.units;
    lstm_gradient(
        &cell,
        &v[0],
        LstmStates {
            hidden: &v[1],
            cell: &v[2],
        },
        LstmStates {
            hidden: &d[..states],
            cell: &d[states..],
        },
        &mut gradients,
        c,
        &mut scratch,
        &Interleaved,
    )?;
    Ok(found)
}

fn lstm_values(s: Sizes) -> (Vec<Vec<f32>>, Vec<f32>) {
    let (states, all) = (s.batch * s.units, 4 * s.units);
    let lens = [
        s.batch * s.inputs,
        states,
        states,
        s.inputs * all,
        s.units * all,
        all,
    ];
    let values = lens.iter().zip(1..).map(|(&len, seed)| numbers(len, seed));
    (values.collect(), numbers(2 * states, 9))
}

/// The gradients of inputs, hidden, kernel, recurrent, bias and recurrent bias; the last four
/// start at `start`.
fn gru_gradients(
    after: bool,
    s: Sizes,
    v: &[Vec<f32>],
    d: &[f32],
    start: f32,
) -> Result<Vec<Vec<f32>>> {
    let cell = Cell {
        batch: s.batch,
        inputs: s.inputs,
        units: s.units,
        kernel: &v[2],
        recurrent: &v[3],
        bias: Some(&v[4]),
    };
    let mut found: Vec<Vec<f32>> = v
        .iter()
        .enumerate()
        .map(|(i, x)| vec![if i < 2 { f32::NAN } else { start }; x.len()])
        .collect();
    let (to, weights) = found.split_at_mut(2);
    let [x, h] = to else { unreachable!() };
    let [kernel, recurrent, bias, last] = weights else {
        unreachable!()
    };
    let mut gradients = Gradients {
        inputs: x,
        hidden: h,
        kernel,
        recurrent,
        bias: Some(bias),
    };
    let mut reset = if after {
        Reset::After {
            bias: Some(&v[5]),
            gradient: Some(last),
        }
    } else {
        Reset::Before
    };
    let mut scratch = vec![f32::NAN; gru_scratch_len(&cell)?];
    gru_gradient(
        &cell,
        &mut reset,
        &v[0],
        &v[1],
        d,
        &mut gradients,
        &mut scratch,
        &Interleaved,
    )?;
    Ok(found)
}

fn gru_values(s: Sizes) -> (Vec<Vec<f32>>, Vec<f32>) {
    let (states, all) = (s.batch * s.units, 3 * s.units);
    let lens = [
        s.batch * s.inputs,
        states,
        s.inputs * all,
        s.units * all,
        all,
        all,
    ];
    let values = lens.iter().zip(1..).map(|(&len, seed)| numbers(len, seed));
    (values.collect(), numbers(states, 9))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn lstm_matches_differences(s in sizes(), places in any::<[u16; 4]>()) {
        let (values, d) = lstm_values(s);
        let found = lstm_gradients(s, &values, &d, 0.5).unwrap();
        for (which, found) in found.iter().enumerate() {
            for place in places {
                let at = usize::from(place) % found.len();
                let exact = difference(&|v| lstm(s, v), &values, &d, (which, at));
                let exact = exact + if which < 3 { 0.0 } else { 0.5 };
                let error = (f64::from(found[at]) - exact).abs();
                let tolerance = 1e-5 * (s.batch as f64).sqrt();
                prop_assert!(error < tolerance, "{} {} {} {}", which, at, found[at], exact);
            }
        }
    }

    #[test]
    fn gru_matches_differences(s in sizes(), after: bool, places in any::<[u16; 4]>()) {
        let (values, d) = gru_values(s);
        let found = gru_gradients(after, s, &values, &d, 0.5).unwrap();
        for (which, found) in found.iter().enumerate() {
            for place in places {
                let at = usize::from(place) % found.len();
                let exact = difference(&|v| gru(after, s, v), &values, &d, (which, at));
                let exact = exact + if which < 2 { 0.0 } else { 0.5 };
                let error = (f64::from(found[at]) - exact).abs();
                let tolerance = 1e-5 * (s.batch as f64).sqrt();
                prop_assert!(error < tolerance, "{} {} {} {}", which, at, found[at], exact);
            }
        }
    }
}

/// What TensorFlow 2.21 gives for the same numbers: `tf.GradientTape` over Keras' cell in float64.
fn assert_tensorflows(found: &[Vec<f32>], expected: &[&[f32]]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(*expected) {
            assert!((found - expected).abs() < 2e-6, "{found} {expected}");
        }
    }
}

const SMALL: Sizes = Sizes {
    batch: 2,
    inputs: 3,
    units: 2,
};

#[test]
fn lstm_matches_tensorflow() {
    let (values, d) = lstm_values(SMALL);
    let found = lstm_gradients(SMALL, &values, &d, 0.0).unwrap();
    let expected: [&[f32]; 6] = [
        &[
            -0.320828, 0.276294, 0.387557, 0.445563, -0.037507, -0.084124,
        ],
        &[0.065777, -0.321754, 0.260761, 0.333576],
        &[0.486647, -0.310788, -0.365576, 0.160732],
        &[
            -0.162480, -0.065400, -0.033040, 0.076936, -0.208281, 0.500952, -0.015718, -0.014214,
            0.109778, 0.030309, 0.075469, -0.033986, 0.171180, -0.348206, 0.009104, 0.010186,
            0.094521, 0.041543, 0.005827, -0.049292, 0.113490, -0.288969, 0.009525, 0.008122,
        ],
        &[
            -0.011220, 0.032001, -0.142130, -0.042040, -0.094528, 0.060230, 0.002901, -0.002514,
            0.126060, 0.021099, 0.139151, -0.021254, 0.226649, -0.409472, 0.008958, 0.012272,
        ],
        &[
            0.108693, 0.117474, -0.260240, -0.147068, -0.022473, -0.283359, 0.018563, 0.006414,
        ],
    ];
    assert_tensorflows(&found, &expected);
}

#[test]
fn gru_with_reset_after_matches_tensorflow() {
    let (values, d) = gru_values(SMALL);
    let found = gru_gradients(true, SMALL, &values, &d, 0.0).unwrap();
    let expected: [&[f32]; 6] = [
        &[0.445859, 0.134095, 0.300321, 0.025225, 0.003171, 0.002479],
        &[0.394325, -0.623946, -0.011004, -0.106380],
        &[
            -0.055753, -0.008660, -0.004997, -0.000734, -0.351659, 0.015634, 0.029678, -0.006700,
            0.003252, 0.001321, 0.186906, 0.000050, 0.034448, 0.008201, 0.002938, 0.000219,
            0.217349, -0.011769,
        ],
        &[
            0.017178, 0.032429, -0.000018, -0.002221, 0.009641, -0.011501, 0.026187, -0.020089,
            0.003611, 0.002331, 0.015578, 0.010167,
        ],
        &[0.079751, 0.072471, 0.004004, -0.003892, 0.504540, -0.066840],
        &[0.079751, 0.072471, 0.004004, -0.003892, 0.045749, -0.022284],
    ];
    assert_tensorflows(&found, &expected);
}

#[test]
fn gru_with_reset_before_matches_tensorflow() {
    let (values, d) = gru_values(SMALL);
    let found = gru_gradients(false, SMALL, &values, &d, 0.0).unwrap();
    let expected: [&[f32]; 5] = [
        &[0.305609, 0.122766, 0.230452, 0.063228, 0.014846, 0.012810],
        &[0.642322, -0.555931, -0.010634, -0.072595],
        &[
            -0.064636, -0.017593, 0.003982, 0.008476, -0.198794, 0.027587, 0.033275, -0.005761,
            -0.001119, -0.003644, 0.104545, 0.002459, 0.040222, 0.014682, -0.002713, -0.005455,
            0.123149, -0.021365,
        ],
        &[
            0.022893, 0.045222, -0.003861, -0.004893, 0.009326, -0.009216, 0.027943, -0.024044,
            0.000268, -0.002129, 0.024303, 0.022910,
        ],
        &[
            0.098469, 0.105521, -0.011014, -0.016730, 0.291133, -0.130537,
        ],
    ];
    assert_tensorflows(&found, &expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    let s = Sizes {
        batch: 2,
        inputs: 3,
        units: 4,
    };
    let (values, d) = lstm_values(s);
    for which in 0..values.len() {
        let mut values = values.clone();
        values[which].push(0.0);
        let result = lstm_gradients(s, &values, &d, 0.0);
        assert!(matches!(result, Err(Error::Length { .. })), "{which}");
    }
    let (values, d) = gru_values(s);
    for which in 0..values.len() {
        let mut values = values.clone();
        values[which].push(0.0);
        let result = gru_gradients(true, s, &values, &d, 0.0);
        assert!(matches!(result, Err(Error::Length { .. })), "{which}");
    }
    assert!(gru_gradients(false, s, &values, &d[1..], 0.0).is_err());
}

#[test]
fn nothing_to_do_is_fine() {
    for (batch, units) in [(0, 3), (2, 0)] {
        let s = Sizes {
            batch,
            inputs: 2,
            units,
        };
        let (values, d) = lstm_values(s);
        assert!(lstm_gradients(s, &values, &d, 0.0).is_ok());
        let (values, d) = gru_values(s);
        assert!(gru_gradients(true, s, &values, &d, 0.0).is_ok());
        assert!(gru_gradients(false, s, &values, &d, 0.0).is_ok());
    }
}
