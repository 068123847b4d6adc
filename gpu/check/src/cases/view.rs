//! Calls of ops that move elements.

use tfp_kernels::base::dtype::DType;

use super::{Checked, kernel};
use crate::compare::Tolerance;
use crate::run::Case;
use crate::tensor::{Attr, Random, Table, Tensor};

/// Elements are moved as they are.
const EXACT: Tolerance = Tolerance {
    absolute: 0.0,
    relative: 0.0,
};

fn checked(op: &str, x: Tensor, numbers: &[&[i32]]) -> Checked {
    let lists = numbers.iter().map(|list| Tensor::i32(&[list.len()], list));
    let mut case = Case::new(kernel(op), [x].into_iter().chain(lists).collect());
    case.host = (1..=numbers.len()).collect();
    Checked {
        case,
        tolerance: EXACT,
        must: true,
    }
}

/// A call with attributes, whose result is exact; `host` are the inputs in the host's memory.
fn exact(op: &str, inputs: Vec<Tensor>, host: &[usize], attrs: Table) -> Checked {
    let mut case = Case::new(kernel(op), inputs);
    case.host = host.to_vec();
    case.attrs = attrs;
    Checked {
        case,
        tolerance: EXACT,
        must: true,
    }
}

fn integer(name: &'static str, value: i64) -> Table {
    Table(vec![(name, Attr::Int(value))])
}

fn masks(values: [i64; 5]) -> Table {
    let names = [
        "begin_mask",
        "end_mask",
        "ellipsis_mask",
        "new_axis_mask",
        "shrink_axis_mask",
    ];
    let all = names.into_iter().zip(values);
    Table(all.map(|(name, value)| (name, Attr::Int(value))).collect())
}

fn list(values: &[i32]) -> Tensor {
    Tensor::i32(&[values.len()], values)
}

fn one(value: i32) -> Tensor {
    Tensor::i32(&[], &[value])
}

/// The shape; begin, end and steps; and the masks.
type Index = (&'static [usize], [&'static [i32]; 3], [i64; 5]);

fn strided(random: &mut Random, out: &mut Vec<Checked>) {
    let cases: [Index; 6] = [
        (&[9, 8], [&[1, 4], &[8, 8], &[2, 1]], [0; 5]),
        (&[9, 8], [&[-1, 0], &[-10, 0], &[-3, 2]], [0, 2, 0, 0, 0]),
        (&[5, 6, 7], [&[2, 1], &[3, 5], &[1, 1]], [0, 0, 0, 0, 1]),
        (&[5, 6, 8], [&[0, 4], &[0, 8], &[1, 1]], [0, 0, 1, 0, 0]),
        (
            &[4, 6],
            [&[0, 0, 3], &[0, 4, 0], &[1, 1, 1]],
            [0, 0, 0, 1, 4],
        ),
        (&[300], [&[7], &[290], &[1]], [0; 5]),
    ];
    for (dims, lists, values) in cases {
        let attrs = masks(values);
        let [begin, end, steps] = lists.map(list);
        let inputs = vec![
            random.tensor(dims, 9.0),
            begin.clone(),
            end.clone(),
            steps.clone(),
        ];
        let forward = exact("StridedSlice", inputs, &[1, 2, 3], attrs.clone());
        let slope = random.tensor(&forward.case.output_dims().unwrap_or_default(), 1.0);
        out.push(forward);
        let shape: Vec<i32> = dims
            .iter()
            .map(|&dim| i32::try_from(dim).unwrap_or(0))
            .collect();
        let inputs = vec![list(&shape), begin, end, steps, slope];
        out.push(exact("StridedSliceGrad", inputs, &[0, 1, 2, 3], attrs));
    }
}

fn parts(random: &mut Random, out: &mut Vec<Checked>) {
    for (dims, axis, sizes) in [
        (vec![3, 8, 4], 1, vec![4, 1, 3]),
        (vec![6, 5], 0, vec![2, 2, 2]),
        (vec![2, 3, 12], -1, vec![4, 8]),
        (vec![7], 0, vec![3, 0, 4]),
    ] {
        let place = if axis < 0 {
            dims.len() - 1
        } else {
            axis as usize
        };
        let mut part = |size: usize| {
            let mut dims = dims.clone();
            dims[place] = size;
            random.tensor(&dims, 9.0)
        };
        let mut inputs: Vec<_> = sizes.iter().map(|&size| part(size)).collect();
        let whole = part(sizes.iter().sum());
        inputs.push(one(axis));
        let last = sizes.len();
        out.push(exact("ConcatV2", inputs, &[last], Table::default()));
        let long: Vec<i32> = sizes.iter().map(|&size| size as i32).collect();
        let inputs = vec![whole.clone(), list(&long), one(axis)];
        let attrs = integer("num_split", last as i64);
        out.push(exact("SplitV", inputs, &[1, 2], attrs.clone()));
        if sizes.iter().all(|&size| size == sizes[0]) {
            out.push(exact("Split", vec![one(axis), whole.clone()], &[0], attrs));
        }
        let same = (0..3).map(|_| random.tensor(&dims, 9.0)).collect();
        out.push(exact("Pack", same, &[], integer("axis", axis.into())));
        let mut attrs = integer("axis", axis.into());
        attrs.0.push(("num", Attr::Int(whole.dims[place] as i64)));
        out.push(exact("Unpack", vec![whole], &[], attrs));
    }
}

fn by_number(random: &mut Random, out: &mut Vec<Checked>) {
    let numbers = [3, 0, 6, 6, 1, 2];
    for (dims, axis, batch) in [
        (vec![7, 4], 0, 0),
        (vec![7, 3], 0, 0),
        (vec![5, 7, 8], 1, 0),
        (vec![2, 7, 6], 1, 1),
        (vec![2, 3, 7], -1, 1),
    ] {
        let short = Tensor::i32(&[2, 3], &numbers);
        let long = Tensor::i64(&[2, 3], &numbers.map(i64::from));
        for indices in [short, long] {
            let inputs = vec![random.tensor(&dims, 9.0), indices, one(axis)];
            out.push(exact(
                "GatherV2",
                inputs,
                &[2],
                integer("batch_dims", batch),
            ));
        }
    }
    for (inner, ids) in [(4, [0, 2, -1, 2, 5, 0]), (3, [1, 1, 1, 1, 1, 1])] {
        let data = random.tensor(&[6, inner], 2.0);
        let short = vec![data.clone(), list(&ids), one(6)];
        let long = vec![data, Tensor::i64(&[6], &ids.map(i64::from)), one(6)];
        for inputs in [short, long] {
            out.push(exact("UnsortedSegmentSum", inputs, &[2], Table::default()));
        }
    }
}

fn truths(random: &mut Random, out: &mut Vec<Checked>) {
    for op in [
        "Equal",
        "NotEqual",
        "Less",
        "LessEqual",
        "Greater",
        "GreaterEqual",
    ] {
        for dims in [vec![64], vec![7, 5], vec![1], vec![1026]] {
            let len: usize = dims.iter().product();
            let mut data: Vec<f32> = (0..len).map(|_| (random.number() * 3.0).round()).collect();
            if let Some(slot) = data.get_mut(5) {
                *slot = f32::NAN;
            }
            let attrs = Table(vec![("incompatible_shape_error", Attr::Bool(true))]);
            for inputs in [
                vec![Tensor::f32(&dims, &data), random.tensor(&dims, 3.0)],
                vec![Tensor::f32(&dims, &data), Tensor::f32(&[], &[1.0])],
                vec![Tensor::f32(&[], &[0.0]), Tensor::f32(&dims, &data)],
            ] {
                out.push(exact(op, inputs, &[], attrs.clone()));
            }
        }
    }
    for (a, b) in [(vec![2, 1, 5], vec![3, 1]), (vec![1, 8], vec![7, 8])] {
        let attrs = Table(vec![("incompatible_shape_error", Attr::Bool(true))]);
        let inputs = vec![random.tensor(&a, 1.0), random.tensor(&b, 1.0)];
        out.push(exact("Greater", inputs, &[], attrs));
    }
    let mut chance = |dims: &[usize]| {
        let len: usize = dims.iter().product();
        let bytes: Vec<u8> = (0..len).map(|_| u8::from(random.number() > 0.0)).collect();
        Tensor::new(DType::Bool, dims, &bytes)
    };
    let conditions = [
        chance(&[2, 1, 5]),
        chance(&[]),
        chance(&[4, 1]),
        chance(&[2, 4, 5]),
    ];
    for condition in conditions {
        let inputs = vec![
            condition,
            random.tensor(&[2, 4, 5], 9.0),
            random.tensor(&[5], 9.0),
        ];
        out.push(exact("SelectV2", inputs, &[], Table::default()));
    }
    for dims in [vec![64], vec![7, 5], vec![1026]] {
        let len: usize = dims.iter().product();
        let bytes: Vec<u8> = (0..len).map(|_| u8::from(random.number() > 0.0)).collect();
        let condition = Tensor::new(DType::Bool, &dims, &bytes);
        let a = random.tensor(&dims, 9.0);
        for b in [random.tensor(&dims, 9.0), Tensor::f32(&[], &[0.0])] {
            let inputs = vec![condition.clone(), a.clone(), b.clone()];
            out.push(exact("SelectV2", inputs, &[], Table::default()));
            if b.dims == a.dims {
                let inputs = vec![condition.clone(), b, a.clone()];
                out.push(exact("Select", inputs, &[], Table::default()));
            }
        }
    }
}

fn random_numbers(out: &mut Vec<Checked>) {
    let words = |values: &[u64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Tensor::new(DType::U64, &[values.len()], &bytes)
    };
    for counter in [[0, 0], [u64::MAX - 1, 7], [u64::MAX - 3, u64::MAX]] {
        for dims in [&[1][..], &[37], &[8, 1000]] {
            let shape = list(dims);
            let inputs = vec![
                shape,
                words(&[0x1234_5678_9abc_def0]),
                words(&counter),
                one(1),
            ];
            let attrs = Table(vec![("dtype", Attr::Type(DType::F32))]);
            out.push(exact("StatelessRandomUniformV2", inputs, &[0, 3], attrs));
        }
    }
}

fn filled(random: &mut Random, out: &mut Vec<Checked>) {
    let scalar = Tensor::f32(&[], &[2.5]);
    for dims in [vec![64], vec![7, 5], vec![2, 3, 8]] {
        let x = random.tensor(&dims, 9.0);
        let shape: Vec<i32> = dims.iter().map(|&dim| dim as i32).collect();
        out.push(exact(
            "Fill",
            vec![list(&shape), scalar.clone()],
            &[0],
            Table::default(),
        ));
        out.push(exact("ZerosLike", vec![x.clone()], &[], Table::default()));
        out.push(exact("OnesLike", vec![x.clone()], &[], Table::default()));
        let rank = dims.len();
        let paddings: Vec<i32> = (0..2 * rank).map(|at| [1, 0, 4, 2][at % 4]).collect();
        let paddings = Tensor::i32(&[rank, 2], &paddings);
        let inputs = vec![x.clone(), paddings.clone()];
        out.push(exact("Pad", inputs, &[1], Table::default()));
        let inputs = vec![x.clone(), paddings, scalar.clone()];
        out.push(exact("PadV2", inputs, &[1], Table::default()));
        let multiples: Vec<i32> = (0..rank).map(|at| [2, 1, 3][at % 3]).collect();
        let inputs = vec![x, list(&multiples)];
        out.push(exact("Tile", inputs, &[1], Table::default()));
    }
}

/// Calls of ops that move elements.
#[must_use]
pub fn cases(seed: u64) -> Vec<Checked> {
    let mut random = Random::new(seed + 300);
    let mut out = Vec::new();
    strided(&mut random, &mut out);
    parts(&mut random, &mut out);
    by_number(&mut random, &mut out);
    truths(&mut random, &mut out);
    random_numbers(&mut out);
    filled(&mut random, &mut out);
    let mut x = |dims: &[usize]| random.tensor(dims, 9.0);
    out.extend([
        checked("Transpose", x(&[5, 7]), &[&[1, 0]]),
        checked("Transpose", x(&[2, 3, 4]), &[&[2, 0, 1]]),
        checked("Transpose", x(&[2, 5, 3, 8]), &[&[0, 2, 1, 3]]),
        checked("Transpose", x(&[2, 1, 3, 4, 5]), &[&[4, 3, 2, 1, 0]]),
        checked("Transpose", x(&[2, 3]), &[&[0, 1]]),
        checked("Slice", x(&[9, 10]), &[&[2, 3], &[4, -1]]),
        checked("Slice", x(&[3, 4, 5, 6]), &[&[1, 0, 2, 1], &[2, 4, 3, 5]]),
        checked("Slice", x(&[300]), &[&[7], &[280]]),
        checked("BroadcastTo", x(&[3, 1]), &[&[2, 3, 5]]),
        checked("BroadcastTo", x(&[1]), &[&[70]]),
        checked("BroadcastTo", x(&[4, 1, 6]), &[&[4, 5, 6]]),
    ]);
    out
}
