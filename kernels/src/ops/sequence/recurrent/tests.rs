use super::*;
use crate::ops::sequence::lstm::{Gru, Lstm, Recurrent};
use crate::testing::numbers;

mod shared;

const BATCH: usize = 3;
const STEPS: usize = 5;
const INPUTS: usize = 4;
const UNITS: usize = 7;

struct Matrices {
    memory: Vec<Vec<f32>>,
    plain: Vec<(Vec<f32>, usize, usize)>,
}

impl Matrices {
    fn new(sizes: &[(usize, usize)]) -> Self {
        Self::scaled(sizes, 1.0)
    }

    fn scaled(sizes: &[(usize, usize)], scale: f32) -> Self {
        let mut memory = Vec::new();
        let mut plain = Vec::new();
        for (seed, &(rows, columns)) in sizes.iter().enumerate() {
            let mut data = numbers(rows * columns, seed as u64 + 1);
            data.iter_mut().for_each(|x| *x *= scale);
            let mut packed = vec![0.0; Packed::len(rows, columns).unwrap()];
            let matrix = Matrix::rows(&data, columns);
            Packed::pack(&matrix, (rows, columns), &mut packed, &Serial).unwrap();
            memory.push(packed);
            plain.push((data, rows, columns));
        }
        Self { memory, plain }
    }

    fn packed(&self, index: usize) -> Packed<'_> {
        let (_, rows, columns) = self.plain[index];
        Packed::from_packed((rows, columns), &self.memory[index]).unwrap()
    }

    fn factor(&self, index: usize, packed: bool) -> Factor<'_> {
        let (data, rows, columns) = &self.plain[index];
        if packed {
            Factor::packed(self.packed(index))
        } else {
            Factor::plain(Matrix::rows(data, *columns), (*rows, *columns))
        }
    }
}

/// Steps one row at a time, as the definition of masks says; returns all outputs.
fn by_steps(
    walk: &Walk<'_>,
    x: &[f32],
    states: &mut [Vec<f32>],
    mut step: impl FnMut(&[f32], &mut [Vec<f32>]),
) -> Vec<f32> {
    let mut sequence = vec![0.0; BATCH * STEPS * UNITS];
    for row in 0..BATCH {
        let mut last = vec![0.0; UNITS];
        for place in 0..STEPS {
            let at = if walk.reverse {
                STEPS - 1 - place
            } else {
                place
            };
            let masked = walk.mask.is_some_and(|mask| mask[row * STEPS + at] == 0);
            let mut own: Vec<Vec<f32>> = states
                .iter()
                .map(|state| state[row * UNITS..(row + 1) * UNITS].to_vec())
                .collect();
            if !masked {
                step(&x[(row * STEPS + at) * INPUTS..][..INPUTS], &mut own);
                last.clone_from(&own[0]);
            } else if walk.zero_masked {
                last.fill(0.0);
            }
            for (state, own) in states.iter_mut().zip(&own) {
                state[row * UNITS..(row + 1) * UNITS].copy_from_slice(own);
            }
            sequence[(row * STEPS + place) * UNITS..][..UNITS].copy_from_slice(&last);
        }
    }
    sequence
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 2e-6, "{found} {expected}");
    }
}

fn walks() -> impl Iterator<Item = Walk<'static>> {
    static MASK: [u8; BATCH * STEPS] = [1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1];
    (0..8).map(|bits| Walk {
        batch: BATCH,
        steps: STEPS,
        units: UNITS,
        reverse: bits & 1 != 0,
        mask: (bits & 2 != 0).then_some(&MASK),
        zero_masked: bits & 4 != 0,
    })
}

#[test]
fn an_lstm_is_its_steps() {
    let matrices = Matrices::new(&[(INPUTS, 4 * UNITS), (UNITS, 4 * UNITS)]);
    let (x, bias) = (numbers(BATCH * STEPS * INPUTS, 8), numbers(4 * UNITS, 9));
    for walk in walks() {
        for packed in [true, false] {
            let layer = LstmLayer {
                walk,
                kernel: matrices.factor(0, packed),
                recurrent: matrices.factor(1, packed),
                bias: Some(&bias),
            };
            let (mut h, mut c) = (numbers(BATCH * UNITS, 10), numbers(BATCH * UNITS, 11));
            let mut states = [h.clone(), c.clone()];
            let cell = Lstm {
                batch: 1,
                units: UNITS,
                kernel: matrices.packed(0),
                recurrent: matrices.packed(1),
                bias: Some(&bias),
            };
            let mut memory = vec![0.0; cell.scratch_len().unwrap()];
            let expected = by_steps(&walk, &x, &mut states, |x, own| {
                let [h, c] = own else { unreachable!() };
                cell.step(x, h, c, &mut memory, &Serial).unwrap();
            });
            let mut scratch = vec![f32::NAN; layer.scratch_len().unwrap()];
            let mut sequence = vec![f32::NAN; expected.len()];
            layer
                .run(&x, &mut h, &mut c, &mut sequence, &mut scratch, &Serial)
                .unwrap();
            assert_close(&sequence, &expected);
            assert_close(&h, &states[0]);
            assert_close(&c, &states[1]);
            let short = &mut scratch[1..];
            assert!(
                layer
                    .run(&x, &mut h, &mut c, &mut [], short, &Serial)
                    .is_err()
            );
            assert!(
                layer
                    .run(&x[1..], &mut h, &mut c, &mut [], &mut scratch, &Serial)
                    .is_err()
            );
        }
    }
}

#[test]
fn a_gru_is_its_steps() {
    let sizes = [
        (INPUTS, 3 * UNITS),
        (UNITS, 3 * UNITS),
        (UNITS, 2 * UNITS),
        (UNITS, UNITS),
    ];
    let matrices = Matrices::new(&sizes);
    let (x, bias) = (numbers(BATCH * STEPS * INPUTS, 8), numbers(3 * UNITS, 9));
    let state_bias = numbers(3 * UNITS, 12);
    for (walk, after) in walks().flat_map(|walk| [(walk, true), (walk, false)]) {
        for packed in [true, false] {
            let (recurrent, steps) = if after {
                let bias = Some(&state_bias[..]);
                let matrix = matrices.factor(1, packed);
                let own = matrices.packed(1);
                (
                    Reset::After { matrix, bias },
                    Recurrent::ResetAfter { matrix: own, bias },
                )
            } else {
                (
                    Reset::Before {
                        gates: matrices.factor(2, packed),
                        candidate: matrices.factor(3, packed),
                    },
                    Recurrent::ResetBefore {
                        gates: matrices.packed(2),
                        candidate: matrices.packed(3),
                    },
                )
            };
            let layer = GruLayer {
                walk,
                kernel: matrices.factor(0, packed),
                recurrent,
                bias: Some(&bias),
            };
            let cell = Gru {
                batch: 1,
                units: UNITS,
                kernel: matrices.packed(0),
                recurrent: steps,
                bias: Some(&bias),
            };
            let mut h = numbers(BATCH * UNITS, 10);
            let mut states = [h.clone()];
            let mut memory = vec![0.0; cell.scratch_len().unwrap()];
            let expected = by_steps(&walk, &x, &mut states, |x, own| {
                cell.step(x, &mut own[0], &mut memory, &Serial).unwrap();
            });
            let mut scratch = vec![f32::NAN; layer.scratch_len().unwrap()];
            let mut sequence = vec![f32::NAN; expected.len()];
            layer
                .run(&x, &mut h, &mut sequence, &mut scratch, &Serial)
                .unwrap();
            assert_close(&sequence, &expected);
            assert_close(&h, &states[0]);
        }
    }
}

#[test]
fn a_simple_rnn_is_its_definition() {
    let matrices = Matrices::new(&[(INPUTS, UNITS), (UNITS, UNITS)]);
    let (x, bias) = (numbers(BATCH * STEPS * INPUTS, 8), numbers(UNITS, 9));
    for walk in walks() {
        let layer = SimpleRnnLayer {
            walk,
            kernel: matrices.factor(0, true),
            recurrent: matrices.factor(1, true),
            bias: Some(&bias),
            activation: Activation::RELU,
        };
        let mut h = numbers(BATCH * UNITS, 10);
        let mut states = [h.clone()];
        let expected = by_steps(&walk, &x, &mut states, |x, own| {
            let old = own[0].clone();
            for (j, out) in own[0].iter_mut().enumerate() {
                let sum = |x: &[f32], index: usize| -> f32 {
                    let (data, _, columns) = &matrices.plain[index];
                    x.iter()
                        .enumerate()
                        .map(|(i, x)| x * data[i * columns + j])
                        .sum()
                };
                *out = (sum(x, 0) + sum(&old, 1) + bias[j]).max(0.0);
            }
        });
        let mut scratch = vec![f32::NAN; layer.scratch_len().unwrap()];
        let mut sequence = vec![f32::NAN; expected.len()];
        layer
            .run(&x, &mut h, &mut sequence, &mut scratch, &Serial)
            .unwrap();
        assert_close(&sequence, &expected);
        assert_close(&h, &states[0]);
    }
}
