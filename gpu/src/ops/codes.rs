//! The operations of the element-wise shader, in the order of its codes.

/// Ops of TensorFlow with one operand.
pub const ONE: &[&str] = &[
    "Abs",
    "Ceil",
    "Elu",
    "Erf",
    "Erfc",
    "Exp",
    "Expm1",
    "Floor",
    "Inv",
    "Log",
    "Log1p",
    "Neg",
    "Reciprocal",
    "Relu",
    "Relu6",
    "Rint",
    "Round",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "Sign",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Square",
    "Tanh",
];

/// Ops of TensorFlow with two operands, and the two of `ClipByValue`; their codes follow those of [`ONE`].
pub const TWO: &[&str] = &[
    "Add",
    "AddV2",
    "BiasAdd",
    "DivNoNan",
    "LeakyRelu",
    "Maximum",
    "Minimum",
    "Mul",
    "MulNoNan",
    "RealDiv",
    "SquaredDifference",
    "Sub",
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
    "Lower",
    "Raise",
];

/// The code of an op, and how many operands it has.
pub fn code(op: &str) -> Option<(u32, usize)> {
    let place = |list: &[&str]| list.iter().position(|name| *name == op);
    let found = place(ONE).map(|at| (at, 1));
    let (at, operands) = found.or_else(|| place(TWO).map(|at| (ONE.len() + at, 2)))?;
    Some((u32::try_from(at).ok()?, operands))
}
