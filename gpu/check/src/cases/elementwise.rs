//! Calls of element-wise ops.

use tfp_kernels::base::dtype::DType;
use tfp_kernels::ops::elementwise::expression::operation;

use super::{Checked, kernel};
use crate::compare::Tolerance;
use crate::run::Case;
use crate::tensor::{Attr, Random, Table, Tensor};

/// Ops of one argument, and the range of its values.
const ONE: &[(&str, f32)] = &[
    ("Abs", 4.0),
    ("Ceil", 4.0),
    ("Elu", 6.0),
    ("Erf", 4.0),
    ("Erfc", 8.0),
    ("Exp", 80.0),
    ("Expm1", 6.0),
    ("Floor", 4.0),
    ("Inv", 4.0),
    ("Log", 4.0),
    ("Log1p", 4.0),
    ("Neg", 4.0),
    ("Reciprocal", 4.0),
    ("Relu", 4.0),
    ("Relu6", 9.0),
    ("Rint", 4.0),
    ("Round", 4.0),
    ("Rsqrt", 4.0),
    ("Selu", 6.0),
    ("Sigmoid", 30.0),
    ("Sign", 4.0),
    ("Softplus", 30.0),
    ("Softsign", 4.0),
    ("Sqrt", 4.0),
    ("Square", 4.0),
    ("Tanh", 6.0),
];

const TWO: &[&str] = &[
    "Add",
    "AddV2",
    "DivNoNan",
    "Maximum",
    "Minimum",
    "Mul",
    "MulNoNan",
    "RealDiv",
    "SquaredDifference",
    "Sub",
];

const GRADIENTS: &[&str] = &[
    "EluGrad",
    "InvGrad",
    "ReciprocalGrad",
    "Relu6Grad",
    "ReluGrad",
    "RsqrtGrad",
    "SeluGrad",
    "SigmoidGrad",
    "SoftplusGrad",
    "SoftsignGrad",
    "SqrtGrad",
    "TanhGrad",
];

/// Divisions of Vulkan are within 2.5 ulp, functions within a few; nothing is smaller than 1e-37.
const NEAR: Tolerance = Tolerance {
    absolute: 2e-7,
    relative: 1.5e-6,
};

fn checked(case: Case, must: bool) -> Checked {
    Checked {
        case,
        tolerance: NEAR,
        must,
    }
}

/// Values with the special ones of floats among them.
fn special(random: &mut Random, dims: &[usize], scale: f32) -> Tensor {
    let len: usize = dims.iter().product();
    let mut data: Vec<f32> = (0..len).map(|_| random.number() * scale).collect();
    let odd = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1.0,
        -1.0,
        100.0,
        -100.0,
        1e-6,
    ];
    for (at, value) in odd.into_iter().enumerate() {
        if let Some(slot) = data.get_mut(at * 3) {
            *slot = value;
        }
    }
    Tensor::f32(dims, &data)
}

/// A shape and one that broadcasts with it.
fn pair(random: &mut Random) -> (Vec<usize>, Vec<usize>) {
    let rank = random.between(0, 5);
    let mut a: Vec<usize> = (0..rank).map(|_| random.between(1, 9)).collect();
    let mut b = a.clone();
    for axis in 0..rank {
        match random.between(0, 4) {
            0 => a[axis] = 1,
            1 => b[axis] = 1,
            _ => {}
        }
    }
    let drop = random.between(0, rank);
    let keeps = random.between(0, 1) == 0;
    let short = b[drop..].to_vec();
    if keeps { (a, b) } else { (a, short) }
}

fn programs(random: &mut Random, out: &mut Vec<Checked>) {
    let number = |op: &str| operation(op).map_or(-1, |(number, _)| number);
    // tanh(x * row + scalar) * y, and the sum as a second output.
    let words = [
        [number("Mul"), 0, 1],
        [number("AddV2"), 4, 2],
        [number("Tanh"), 5, 5],
        [number("Mul"), 6, 3],
    ];
    for dims in [vec![6, 8], vec![5, 7], vec![2, 3, 12], vec![33, 4]] {
        let row = *dims.last().unwrap_or(&1);
        let inputs = vec![
            random.tensor(&dims, 2.0),
            random.tensor(&[row], 1.0),
            random.tensor(&[], 1.0),
            random.tensor(&dims, 1.0),
        ];
        let mut case = Case::new(kernel("TfpExpression"), inputs);
        case.attrs = Table(vec![
            ("T", Attr::Type(DType::F32)),
            ("program", Attr::Ints(words.concat())),
            ("results", Attr::Ints(vec![1])),
            ("extents", Attr::Ints(vec![])),
        ]);
        out.push(checked(case, true));
    }
}

/// Calls of all element-wise bodies.
#[must_use]
pub fn cases(seed: u64) -> Vec<Checked> {
    let mut random = Random::new(seed);
    let mut out = Vec::new();
    for &(op, scale) in ONE {
        for dims in [vec![], vec![3], vec![64, 4], vec![7, 5, 3], vec![1030]] {
            out.push(checked(
                Case::new(kernel(op), vec![special(&mut random, &dims, scale)]),
                true,
            ));
        }
        let mut case = Case::new(kernel(op), vec![random.tensor(&[40, 4], scale)]);
        case.forwarded = vec![(0, 0)];
        out.push(checked(case, true));
    }
    for &op in TWO {
        for _ in 0..8 {
            let (a, b) = pair(&mut random);
            let inputs = vec![random.tensor(&a, 3.0), random.tensor(&b, 3.0)];
            out.push(checked(Case::new(kernel(op), inputs), true));
        }
        let inputs = vec![
            special(&mut random, &[64], 3.0),
            special(&mut random, &[64], 2.0),
        ];
        out.push(checked(Case::new(kernel(op), inputs), true));
        let mut case = Case::new(
            kernel(op),
            vec![random.tensor(&[8, 4], 2.0), random.tensor(&[4], 2.0)],
        );
        case.forwarded = vec![(0, 0)];
        out.push(checked(case, true));
    }
    for &op in GRADIENTS {
        for dims in [vec![5, 7], vec![64]] {
            let inputs = vec![random.tensor(&dims, 3.0), random.tensor(&dims, 3.0)];
            out.push(checked(Case::new(kernel(op), inputs), true));
        }
        if op.starts_with("Relu") {
            let inputs = vec![special(&mut random, &[64], 3.0), random.tensor(&[64], 9.0)];
            out.push(checked(Case::new(kernel(op), inputs), true));
        }
    }
    for dims in [vec![3, 5], vec![2, 3, 4, 8]] {
        let channels = *dims.last().unwrap_or(&1);
        let inputs = vec![random.tensor(&dims, 3.0), random.tensor(&[channels], 3.0)];
        let mut case = Case::new(kernel("BiasAdd"), inputs);
        case.attrs = Table(vec![("data_format", Attr::Text("NHWC"))]);
        out.push(checked(case, true));
        for activation in ["", "Relu", "Relu6"] {
            let mut row = || random.tensor(&[channels], 2.0);
            let rows = [row(), row()];
            let mut inputs = vec![special(&mut random, &dims, 3.0)];
            inputs.extend(rows);
            let mut case = Case::new(kernel("TfpScaleShift"), inputs);
            case.attrs = Table(vec![("activation", Attr::Text(activation))]);
            case.forwarded = vec![(0, 0)];
            // A product of up to 6 may be rounded before the sum, or not.
            out.push(Checked {
                tolerance: Tolerance {
                    absolute: 1e-6,
                    ..NEAR
                },
                ..checked(case, true)
            });
        }
        let mut case = Case::new(kernel("LeakyRelu"), vec![special(&mut random, &dims, 3.0)]);
        case.attrs = Table(vec![("alpha", Attr::Float(0.2))]);
        out.push(checked(case, true));
        let limits = [Tensor::f32(&[], &[-0.5]), Tensor::f32(&[], &[0.7])];
        let [low, high] = limits;
        let inputs = vec![special(&mut random, &dims, 3.0), low, high];
        out.push(checked(Case::new(kernel("ClipByValue"), inputs), true));
        let inputs = (0..5).map(|_| random.tensor(&dims, 3.0)).collect();
        out.push(checked(Case::new(kernel("AddN"), inputs), true));
    }
    programs(&mut random, &mut out);
    out
}
