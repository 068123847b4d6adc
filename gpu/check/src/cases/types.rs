//! Calls of elements of several types: conversions, comparisons, choices, and rows that others change.

use tfp_kernels::base::dtype::DType;

use super::{Checked, kernel, kernel_of};
use crate::compare::Tolerance;
use crate::run::Case;
use crate::tensor::{Attr, Random, Table, Tensor};

/// A call whose result is exact.
fn exact(op: &str, dtype: DType, inputs: Vec<Tensor>, attrs: Vec<(&'static str, Attr)>) -> Checked {
    let mut case = Case::new(kernel_of(op, dtype), inputs);
    case.dtype = dtype;
    case.attrs = Table(attrs);
    Checked {
        case,
        tolerance: Tolerance {
            absolute: 0.0,
            relative: 0.0,
        },
        must: true,
    }
}

/// Numbers around the limits of all types, as many as the shape needs.
fn numbers(random: &mut Random, dtype: DType, dims: &[usize]) -> Tensor {
    const INTEGERS: [i64; 20] = [
        0,
        1,
        -1,
        (1 << 24) + 1,
        (1 << 24) + 3,
        -(1 << 25) - 6,
        i32::MAX as i64,
        i32::MIN as i64,
        (1 << 31) + 64,
        (1 << 31) + 192,
        1 << 32,
        (1 << 40) + (1 << 16),
        (1 << 40) + (1 << 16) + 1,
        -(1 << 40) - 3 * (1 << 16),
        (1 << 56) + (1 << 32),
        i64::MAX,
        i64::MIN,
        i64::MIN + 1,
        (1 << 53) - 1,
        -(1 << 33),
    ];
    const FLOATS: [f32; 20] = [
        0.0,
        -0.0,
        0.999,
        -0.999,
        1.5,
        -2.5,
        8_388_609.0,
        2_147_483_500.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        -2_147_484_000.0,
        4e9,
        1.2e18,
        -1.2e18,
        9.3e18,
        -9.223_372e18,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-40,
    ];
    let count: usize = dims.iter().product();
    let places = |random: &mut Random| random.between(0, INTEGERS.len() - 1);
    let mut bytes = Vec::new();
    for _ in 0..count {
        let at = places(random);
        let integer = INTEGERS[at];
        match dtype {
            DType::F32 => bytes.extend(FLOATS[at].to_ne_bytes()),
            DType::I32 => bytes.extend((integer as i32).to_ne_bytes()),
            DType::I64 => bytes.extend(integer.to_ne_bytes()),
            DType::U8 => bytes.push(integer as u8),
            _ => bytes.push(u8::from(at % 2 == 0)),
        }
    }
    Tensor::new(dtype, dims, &bytes)
}

const TYPES: [DType; 4] = [DType::Bool, DType::F32, DType::I32, DType::I64];

fn casts(random: &mut Random, out: &mut Vec<Checked>) {
    for from in TYPES.into_iter().chain([DType::U8]) {
        for to in TYPES.into_iter().filter(|&to| to != from) {
            // Bytes are not cast to truth values.
            if from == DType::U8 && to == DType::Bool {
                continue;
            }
            for dims in [&[1][..], &[7, 3], &[513], &[40, 64]] {
                let attrs = vec![("DstT", Attr::Type(to)), ("Truncate", Attr::Bool(false))];
                out.push(exact(
                    "Cast",
                    from,
                    vec![numbers(random, from, dims)],
                    attrs,
                ));
            }
        }
    }
}

/// Shapes of two operands and of a condition.
const MEETINGS: [[&[usize]; 3]; 5] = [
    [&[70], &[70], &[70]],
    [&[3, 1, 5], &[4, 5], &[]],
    [&[2, 1, 8, 8], &[2, 1, 8, 8], &[1, 8, 1]],
    [&[], &[6, 3], &[6, 1]],
    [&[33, 65], &[65], &[33, 65]],
];

fn masks(random: &mut Random, out: &mut Vec<Checked>) {
    const ORDERED: [&str; 4] = ["Less", "LessEqual", "Greater", "GreaterEqual"];
    for [a, b, condition] in MEETINGS {
        for dtype in TYPES {
            let mut operand = |dims: &[usize]| numbers(random, dtype, dims);
            let equal = || vec![("incompatible_shape_error", Attr::Bool(true))];
            // The kernels don't compare int32, and truth values have no order.
            for op in ["Equal", "NotEqual"]
                .into_iter()
                .filter(|_| dtype != DType::I32)
            {
                out.push(exact(op, dtype, vec![operand(a), operand(b)], equal()));
            }
            let is_ordered = matches!(dtype, DType::F32 | DType::I64);
            for op in ORDERED.into_iter().filter(|_| is_ordered) {
                out.push(exact(op, dtype, vec![operand(a), operand(b)], vec![]));
            }
            let (x, y) = (operand(a), operand(b));
            let chosen = numbers(random, DType::Bool, condition);
            out.push(exact("SelectV2", dtype, vec![chosen, x, y], vec![]));
        }
        let mut truth = |dims: &[usize]| numbers(random, DType::Bool, dims);
        for op in ["LogicalAnd", "LogicalOr"] {
            out.push(exact(op, DType::Bool, vec![truth(a), truth(b)], vec![]));
        }
        out.push(exact("LogicalNot", DType::Bool, vec![truth(b)], vec![]));
    }
}

fn one_hots(random: &mut Random, out: &mut Vec<Checked>) {
    for (dims, depth, axis) in [
        (&[9][..], 5, -1),
        (&[3, 4], 6, 1),
        (&[2, 50], 33, 0),
        (&[], 3, -1),
    ] {
        let count = dims.iter().product::<usize>();
        let places: Vec<i64> = (0..count)
            .map(|_| random.between(0, 8) as i64 - 2)
            .collect();
        let small: Vec<i32> = places.iter().map(|&place| place as i32).collect();
        for indices in [Tensor::i64(dims, &places), Tensor::i32(dims, &small)] {
            let limits = [Tensor::f32(&[], &[1.5]), Tensor::f32(&[], &[-0.5])];
            let [on, off] = limits;
            let inputs = vec![indices, Tensor::i32(&[], &[depth]), on, off];
            let mut checked = exact(
                "OneHot",
                DType::F32,
                inputs,
                vec![("axis", Attr::Int(axis))],
            );
            checked.case.host = vec![1];
            out.push(checked);
        }
    }
}

fn scatters(random: &mut Random, out: &mut Vec<Checked>) {
    let changes = ["add", "sub", "mul", "min", "max", "update"];
    // The tensor, the axes of a list of indices, the numbers of one.
    for (dims, list, depth) in [
        (&[7, 12][..], &[5][..], 1),
        (&[7, 3], &[2, 4], 1),
        (&[40, 3], &[60], 1),
        (&[5, 6, 8], &[9], 2),
        (&[5, 6], &[17], 2),
    ] {
        let count = list.iter().product::<usize>();
        let inner: usize = dims[depth..].iter().product();
        let mut places = Vec::new();
        for _ in 0..count {
            for &limit in &dims[..depth] {
                places.push(random.between(0, limit - 1) as i64);
            }
        }
        let nd = [list, &[depth]].concat();
        let updates = random.tensor(&[list, &dims[depth..]].concat(), 2.0);
        let tensor = random.tensor(dims, 2.0);
        debug_assert_eq!(updates.len(), count * inner * 4);
        for change in changes {
            for (is_nd, shape) in [(true, &nd[..]), (false, list)] {
                if !is_nd && depth > 1 {
                    continue;
                }
                let attrs = || vec![("reduction", Attr::Text(change)), ("nd", Attr::Bool(is_nd))];
                let indices = Tensor::i64(shape, &places);
                for updates in [updates.clone(), random.tensor(&[], 2.0)] {
                    let inputs = vec![tensor.clone(), indices.clone(), updates];
                    let mut checked = exact("TfpScatter", DType::F32, inputs, attrs());
                    out.push(exact(
                        "TfpScatter",
                        DType::F32,
                        checked.case.inputs.clone(),
                        attrs(),
                    ));
                    checked.case.forwarded = vec![(0, 0)];
                    out.push(checked);
                }
            }
        }
        let indices = Tensor::i64(&nd, &places);
        for op in ["Add", "Sub", "Min", "Max", "Update"] {
            let inputs = vec![tensor.clone(), indices.clone(), updates.clone()];
            out.push(exact(
                &format!("TensorScatter{op}"),
                DType::F32,
                inputs,
                vec![],
            ));
        }
        let shape: Vec<i32> = dims.iter().map(|&dim| dim as i32).collect();
        let inputs = vec![indices, updates, Tensor::i32(&[dims.len()], &shape)];
        let mut case = Case::new(kernel("ScatterNd"), inputs);
        case.host = vec![2];
        out.push(Checked {
            case,
            tolerance: Tolerance {
                absolute: 0.0,
                relative: 0.0,
            },
            must: true,
        });
    }
}

/// All calls of this file.
#[must_use]
pub fn cases(seed: u64) -> Vec<Checked> {
    let mut random = Random::new(seed + 500);
    let mut out = Vec::new();
    casts(&mut random, &mut out);
    masks(&mut random, &mut out);
    one_hots(&mut random, &mut out);
    scatters(&mut random, &mut out);
    out
}
