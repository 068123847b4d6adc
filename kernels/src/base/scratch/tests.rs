//! Scratch memory is at most half as much again as inputs and outputs, and 64 KiB: the shapes that
//! need those are so small that a block of rows or lanes is more than all their data.

use proptest::prelude::*;

use crate::base::parallel::Serial;
use crate::base::shape::Shape;
use crate::conv::{BackwardInput, Conv, Direction, Filter, Forward, PackedFilter, Padding, Window};
use crate::gemm::{Gemm, Matrix, Packed};
use crate::ops::matrix::batch_mat_mul_v2::BatchMatMul;
use crate::ops::norm::layer_norm::Kind;
use crate::ops::norm::norm_gradient::NormGradient;
use crate::ops::sequence::attention::Attention;
use crate::ops::sequence::lstm::{Gru, Lstm, Recurrent};
use crate::ops::sequence::recurrent::{Factor, GruLayer, LstmLayer, Reset, SimpleRnnLayer, Walk};
use crate::ops::sequence::recurrent_gradient::{Cell, gru_scratch_len, lstm_scratch_len};
use crate::simd::available;

/// Elements that scratch memory may have in any case.
const SMALL: usize = (64 << 10) / size_of::<f32>();

fn check(what: &str, scratch: usize, data: usize, allowance: usize) {
    let most = data + data / 2 + allowance;
    assert!(scratch <= most, "{what}: {scratch} for {data}");
}

/// A size, small ones more often.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1..20_usize, 2 => 20..100_usize, 1 => 100..2000_usize]
}

fn packed(rows: usize, columns: usize, memory: &mut Vec<f32>) -> Packed<'_> {
    memory.resize(Packed::len(rows, columns).unwrap(), 0.0);
    let plain = vec![0.0; rows * columns];
    let matrix = Matrix::rows(&plain, columns);
    Packed::pack(&matrix, (rows, columns), memory, &Serial).unwrap()
}

fn factor(rows: usize, columns: usize) -> Factor<'static> {
    Factor::plain(Matrix::rows(&[], columns), (rows, columns))
}

/// Scratch memory of the steps of recurrent layers and of their gradients.
fn check_cells(batch: usize, inputs: usize, units: usize) {
    let what = format!("batch {batch}, inputs {inputs}, units {units}");
    let (mut kernel, mut recurrent) = (Vec::new(), Vec::new());
    let state = 2 * batch * units;
    let x = batch * inputs;
    let lstm = Lstm {
        batch,
        units,
        kernel: packed(inputs, 4 * units, &mut kernel),
        recurrent: packed(units, 4 * units, &mut recurrent),
        bias: None,
    };
    let weights = |gates: usize| gates * units * (inputs + units);
    check(
        &what,
        lstm.scratch_len().unwrap(),
        x + 2 * state + weights(4),
        SMALL,
    );
    let gru = Gru {
        batch,
        units,
        kernel: packed(inputs, 3 * units, &mut kernel),
        recurrent: Recurrent::ResetAfter {
            matrix: packed(units, 3 * units, &mut recurrent),
            bias: None,
        },
        bias: None,
    };
    check(
        &what,
        gru.scratch_len().unwrap(),
        x + state + weights(3),
        SMALL,
    );
    let cell = Cell {
        batch,
        inputs,
        units,
        kernel: &[],
        recurrent: &[],
        bias: None,
    };
    // The states, their gradients before and after; weights and inputs with theirs.
    let data = 2 * x + 3 * state + 2 * weights(4);
    check(&what, lstm_scratch_len(&cell).unwrap(), data, SMALL);
    let data = 2 * x + 3 * state / 2 + 2 * weights(3);
    check(&what, gru_scratch_len(&cell).unwrap(), data, SMALL);
}

#[test]
fn of_small_cells() {
    for (batch, units) in (1..200).flat_map(|batch| (1..81).map(move |units| (batch, units))) {
        check_cells(batch, 1, units);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn of_products(m in size(), n in size(), k in size(), a: bool, b: bool, batch in 1..20_usize) {
        let matrix = |transposed| Matrix { transposed, ..Matrix::rows(&[], 0) };
        for level in available() {
            let gemm = Gemm { level, ..Gemm::new((m, n, k), matrix(a), matrix(b)) };
            let data = m * k + k * n + m * n;
            // Here there is no allowance.
            check(&format!("{gemm:?}"), gemm.scratch_len().unwrap(), data, 0);
        }
        let dims = |transposed, rows, columns| -> [usize; 2] {
            if transposed { [columns, rows] } else { [rows, columns] }
        };
        let ([a0, a1], [b0, b1]) = (dims(a, m, k), dims(b, k, n));
        let (x, y) = (Shape::new(&[batch, a0, a1]).unwrap(), Shape::new(&[batch, b0, b1]).unwrap());
        let all = BatchMatMul::new(&x, &y, (a, b)).unwrap();
        let data = batch * (m * k + k * n + m * n);
        check(&format!("{all:?}"), all.scratch_len().unwrap(), data, 0);
    }

    #[test]
    fn of_convolutions(
        (batch, side) in (1..4_usize, 1..40_usize),
        (taps, stride, dilation) in (1..6_usize, 1..4_usize, 1..3_usize),
        (inputs, outputs) in (1..80_usize, 1..80_usize),
        groups in prop_oneof![Just(1), Just(1), 2..9_usize],
    ) {
        let window = Window::new(side, taps, stride, dilation, Padding::Same).unwrap();
        let conv = Conv {
            batch,
            y: window,
            x: window,
            in_channels: inputs * groups,
            out_channels: outputs * groups,
            groups,
        };
        let data = conv.input_len() + conv.filter_len() + conv.output_len();
        for level in available() {
            let forward = Forward { level, ..Forward::new(conv, Filter::Plain(&[])) };
            check(&format!("{level:?} {conv:?}"), forward.scratch_len().unwrap(), data, 0);
            let direction = Direction::Forward;
            let memory = vec![0.0; PackedFilter::len(direction, &conv).unwrap()];
            let packed = PackedFilter::from_packed(direction, &conv, &memory).unwrap();
            let filter = Filter::Packed(PackedFilter { level, ..packed });
            let forward = Forward { level, ..Forward::new(conv, filter) };
            check(&format!("{level:?} {conv:?}"), forward.scratch_len().unwrap(), data, 0);
            let backward = BackwardInput { level, ..BackwardInput::new(conv, Filter::Plain(&[])) };
            check(&format!("{level:?} {conv:?}"), backward.scratch_len().unwrap(), data, 0);
        }
    }

    #[test]
    fn of_attention(
        (heads, queries, keys) in (1..5_usize, size(), size()),
        (depth, width) in (1..130_usize, 1..130_usize),
        masked: bool,
    ) {
        let mask = vec![0.0; if masked { queries * keys } else { 0 }];
        let attention = Attention {
            heads, queries, keys, depth, width,
            scale: 1.0,
            mask: masked.then_some(&mask[..]),
            causal: false,
        };
        let each = (queries + keys) * depth + (queries + keys) * width;
        let data = heads * each + mask.len();
        check(&format!("{attention:?}"), attention.scratch_len().unwrap(), data, SMALL + 64 * keys);
        let scratch = attention.backward_scratch_len().unwrap();
        check(&format!("{attention:?}"), scratch, 2 * data, SMALL + 128 * keys);
    }

    #[test]
    fn of_recurrent_layers(
        (batch, steps) in (1..40_usize, 1..60_usize),
        (inputs, units) in (1..200_usize, 1..200_usize),
    ) {
        let what = format!("batch {batch}, steps {steps}, inputs {inputs}, units {units}");
        let walk = Walk { batch, steps, units, reverse: false, mask: None, zero_masked: false };
        let weights = |gates: usize| gates * units * (inputs + units);
        let state = 2 * batch * units;
        let (x, sequence) = (batch * steps * inputs, batch * steps * units);
        let lstm = LstmLayer {
            walk,
            kernel: factor(inputs, 4 * units),
            recurrent: factor(units, 4 * units),
            bias: None,
        };
        let data = x + sequence + weights(4) + 2 * state;
        check(&what, lstm.scratch_len().unwrap(), data, SMALL);
        let gru = |recurrent| GruLayer { walk, kernel: factor(inputs, 3 * units), recurrent, bias: None };
        let data = x + sequence + weights(3) + state;
        let after = Reset::After { matrix: factor(units, 3 * units), bias: None };
        check(&what, gru(after).scratch_len().unwrap(), data, SMALL);
        let before = Reset::Before {
            gates: factor(units, 2 * units),
            candidate: factor(units, units),
        };
        check(&what, gru(before).scratch_len().unwrap(), data, SMALL);
        let simple = SimpleRnnLayer {
            walk,
            kernel: factor(inputs, units),
            recurrent: factor(units, units),
            bias: None,
            activation: crate::gemm::Activation::None,
        };
        let data = x + sequence + weights(1) + state;
        check(&what, simple.scratch_len().unwrap(), data, SMALL);
    }

    #[test]
    fn of_cells(
        (batch, inputs, units) in (prop_oneof![1..40_usize, 40..2000_usize], 1..80_usize, 1..80_usize),
    ) {
        check_cells(batch, inputs, units);
    }

    #[test]
    fn of_norm_gradients(samples in 1..50_usize, positions in 1..20_usize, width in 1..20_usize, groups in 1..20_usize) {
        let channels = width * groups;
        let norm = NormGradient {
            kind: Kind::Layer,
            positions, channels, groups,
            scale: None,
            epsilon: 0.0,
        };
        let len = samples * positions * channels;
        check(&format!("{norm:?}"), norm.scratch_len(len).unwrap(), 3 * len, 0);
    }
}
