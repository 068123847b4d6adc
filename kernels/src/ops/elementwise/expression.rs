//! `TfpExpression`, an op that the plug-in defines: several element-wise operations in one pass.
//!
//! A [`Program`] is a list of steps, each an operation on one or two values: inputs of the op, or
//! results of steps before. The last result is the first output; results of other steps may be
//! further ones. Values that a step uses stay in the cache, block by block; every element has the
//! bits that separate ops give it.
//!
//! All steps compute in `f32`. A step of a 16-bit float rounds its result to that type, as the op that
//! it stands for does; `Cast` between floats is such a step. Inputs may have different types of floats,
//! and the outputs have the one that the attribute `T` names.
//!
//! The attribute `extents` has, for each input, the least that it has to be: 0 for a number, 1 for a
//! row, 2 for a whole one. It is empty where anything goes.
//!
//! A value is whole (of the output's shape), a row (a number per element of the last axis), or one
//! number for all. What needs rows and numbers alone is computed once.

use crate::base::adapt::variants;
use crate::base::def::{AttrKind, Call, Inputs, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::half::Half;
use crate::base::shape::Shape;
use crate::frame::map::{Map, map_here};
use crate::frame::zip::Zip;
use crate::ops::elementwise::binary as two;
use crate::ops::elementwise::division::Pow;
use crate::ops::elementwise::gradient as back;
use crate::ops::elementwise::unary as one;
use crate::simd::body::{Body, dispatch};

mod evaluate;

pub use self::evaluate::{Store, Values, Wide, evaluate};

/// Most inputs of a program.
pub const MAX_INPUTS: usize = 12;
/// Most steps of a program.
pub const MAX_STEPS: usize = 24;
/// Most outputs of a program.
pub const MAX_OUTPUTS: usize = 4;
/// Most elements of a row.
pub const MAX_ROW: usize = 512;
/// Most values that are kept at a time.
const REGISTERS: usize = 24;
/// Elements that are worked on at a time, unless a row has more: the values of a long program fit
/// into the first cache.
const BLOCK: usize = 256;
/// Numbers in a program per step: operation, first and second operand.
const WORDS: usize = 3;

/// What a step does.
#[derive(Clone, Copy)]
enum Function {
    One(fn(&[f32], &mut [f32])),
    Two(fn(&[f32], &[f32], &mut [f32])),
    /// Of two values of one shape: a gradient.
    Back(fn(&[f32], &[f32], &mut [f32])),
}

/// An operation that a step can be.
struct Operation {
    /// The op of TensorFlow.
    op: &'static str,
    cost: usize,
    function: Function,
}

struct Pairs<'a, O> {
    op: O,
    a: &'a [f32],
    b: &'a [f32],
    out: &'a mut [f32],
}

impl<O: Zip<f32, Out = f32>> Body for Pairs<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((out, &a), &b) in self.out.iter_mut().zip(self.a).zip(self.b) {
            *out = self.op.apply(a, b);
        }
    }
}

/// The op's own loop; one for expressions alone would be as large.
fn map_one<O: Map<f32, Out = f32> + Default>(x: &[f32], out: &mut [f32]) {
    map_here(O::default(), x, out);
}

fn map_two<O: Zip<f32, Out = f32> + Default>(a: &[f32], b: &[f32], out: &mut [f32]) {
    let op = O::default();
    dispatch(Pairs { op, a, b, out });
}

macro_rules! operations {
    (one [$($first:ident)*] two [$($second:ident)*] back [$($third:ident)*]) => {
        &[
            $(Operation {
                op: stringify!($first),
                cost: <one::$first as Map<f32>>::COST,
                function: Function::One(map_one::<one::$first>),
            },)*
            $(Operation {
                op: stringify!($second),
                cost: <two::$second as Zip<f32>>::COST,
                function: Function::Two(map_two::<two::$second>),
            },)*
            $(Operation {
                op: stringify!($third),
                cost: <back::$third as Zip<f32>>::COST,
                function: Function::Back(map_two::<back::$third>),
            },)*
            Operation {
                op: "Pow",
                cost: <Pow as Zip<f32>>::COST,
                function: Function::Two(map_two::<Pow>),
            },
            Operation {
                op: "Cast",
                cost: 1,
                function: Function::One(|x, out| out.copy_from_slice(x)),
            },
        ]
    };
}

static OPERATIONS: &[Operation] = operations! {
    one [
        Abs Elu Erf Erfc Exp Log Log1p Neg Reciprocal Relu Relu6 Rsqrt Selu Sigmoid Sign Softplus
        Sqrt Square Tanh
    ]
    two [Add AddV2 DivNoNan Maximum Minimum Mul RealDiv SquaredDifference Sub]
    back [EluGrad ReluGrad Relu6Grad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad]
};

/// The number of the step that does what an op of TensorFlow does, and how many operands it has.
#[must_use]
pub fn operation(op: &str) -> Option<(i64, usize)> {
    let number = OPERATIONS.iter().position(|candidate| candidate.op == op)?;
    let operands = match OPERATIONS[number].function {
        Function::One(_) => 1,
        Function::Two(_) | Function::Back(_) => 2,
    };
    Some((i64::try_from(number).ok()?, operands))
}

/// What rounds the results of steps, by the part of a step's number that is above the operations.
const ROUNDED: [Option<Half>; 3] = [None, Some(Half::F16), Some(Half::BF16)];

/// The number of the step that does what an op does, see [`operation`], on elements of this type.
/// `None` for types that are not floats of at most 32 bits.
#[must_use]
pub fn step_of(operation: i64, dtype: DType) -> Option<i64> {
    let wide = (dtype == DType::F32).then_some(None);
    let half = wide.or_else(|| Half::of(dtype).map(Some))?;
    let kind = ROUNDED.iter().position(|known| *known == half)?;
    let kinds = i64::try_from(kind * OPERATIONS.len()).ok()?;
    operation.checked_add(kinds)
}

/// The operation of a step, and what rounds its result.
fn found(code: i64) -> Option<(&'static Operation, Option<Half>)> {
    let code = usize::try_from(code).ok()?;
    let rounds = ROUNDED.get(code / OPERATIONS.len())?;
    Some((OPERATIONS.get(code % OPERATIONS.len())?, *rounds))
}

/// How many elements a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// One.
    Scalar = 0,
    /// One for each element of the output's last axis.
    Row = 1,
    /// As many as the output.
    Whole = 2,
}

impl Extent {
    /// Of a tensor in a program whose output has the shape `of`; `None` for any other.
    #[must_use]
    pub fn find<T: Copy + PartialEq + From<u8>>(shape: &[T], of: &[T]) -> Option<Self> {
        if shape == of {
            return Some(Self::Whole);
        }
        let unit = T::from(1);
        let (before, last) = match shape {
            [before @ .., last] => (before, *last),
            [] => return Some(Self::Scalar),
        };
        if shape.len() > of.len() || before.iter().any(|&dim| dim != unit) {
            None
        } else if last == unit {
            Some(Self::Scalar)
        } else {
            (of.last() == Some(&last)).then_some(Self::Row)
        }
    }
}

#[derive(Clone, Copy)]
struct Step {
    function: Function,
    /// The type whose numbers the results are, unless it is `f32`.
    rounds: Option<Half>,
    operands: [usize; 2],
    extent: Extent,
    /// The register of the result; the output's block for the last step.
    register: usize,
    /// The number of the output that is the result, if it is one besides the last step's.
    output: Option<usize>,
}

/// Steps whose values have their places.
pub struct Program {
    inputs: usize,
    steps: [Step; MAX_STEPS],
    len: usize,
    extents: [Extent; MAX_INPUTS],
    /// Registers of inputs that are not whole, or whose values come through a register.
    kept: [usize; MAX_INPUTS],
    outputs: usize,
    cost: usize,
}

const NO_PROGRAM: Error = Error::Value {
    argument: "program",
    expected: "steps that use inputs and steps before",
};

/// Registers that are free, as bits.
struct Free(u32);

impl Free {
    fn take(&mut self) -> Result<usize> {
        let register = self.0.trailing_zeros() as usize;
        if register >= REGISTERS {
            return Err(Error::Value {
                argument: "program",
                expected: "fewer values at a time",
            });
        }
        self.0 &= !(1 << register);
        Ok(register)
    }

    fn give(&mut self, register: usize) {
        self.0 |= 1 << register;
    }
}

impl Program {
    /// Reads steps of three numbers: operation, first and second operand. An operand below the
    /// number of inputs is an input, one above the result of a step. `loaded` are the inputs whose
    /// values come through a register, as bits: those in the first output's buffer, and those of 16-bit
    /// floats. `results` are the numbers of the steps whose results are the outputs after the first.
    ///
    /// # Errors
    /// [`Error::Value`] for bytes that are not a program, or one with too many inputs, steps, outputs or
    /// values at a time; or if an output is not [`Extent::Whole`].
    pub fn new(words: &[i64], extents: &[Extent], loaded: u32, results: &[i64]) -> Result<Self> {
        let (words, rest) = words.as_chunks::<WORDS>();
        let inputs = extents.len();
        let too_many = words.len() > MAX_STEPS || inputs > MAX_INPUTS;
        if words.is_empty() || !rest.is_empty() || too_many || results.len() >= MAX_OUTPUTS {
            return Err(NO_PROGRAM);
        }
        let mut last_use = [0; MAX_INPUTS + MAX_STEPS];
        let mut program = Self {
            inputs,
            steps: [Step {
                function: OPERATIONS[0].function,
                rounds: None,
                operands: [0; 2],
                extent: Extent::Scalar,
                register: 0,
                output: None,
            }; MAX_STEPS],
            len: words.len(),
            extents: [Extent::Scalar; MAX_INPUTS],
            kept: [REGISTERS; MAX_INPUTS],
            outputs: 1 + results.len(),
            cost: 0,
        };
        program.extents[..inputs].copy_from_slice(extents);
        for (number, &[code, a, b]) in words.iter().enumerate() {
            let (operation, rounds) = found(code).ok_or(NO_PROGRAM)?;
            let operand = |value: i64| {
                let found = usize::try_from(value).ok();
                found
                    .filter(|&value| value < inputs + number)
                    .ok_or(NO_PROGRAM)
            };
            let operands = match operation.function {
                Function::One(_) => [operand(a)?; 2],
                Function::Two(_) | Function::Back(_) => [operand(a)?, operand(b)?],
            };
            let is_back = matches!(operation.function, Function::Back(_));
            if is_back && operands.map(|value| program.extent(value)) != [Extent::Whole; 2] {
                return Err(Error::Value {
                    argument: "inputs",
                    expected: "a gradient and what it belongs to, both of the output's shape",
                });
            }
            for value in operands {
                last_use[value] = number;
            }
            let step = Step {
                function: operation.function,
                rounds,
                operands,
                extent: operands
                    .map(|value| program.extent(value))
                    .into_iter()
                    .fold(Extent::Scalar, Ord::max),
                register: 0,
                output: None,
            };
            program.steps[number] = step;
            if step.extent == Extent::Whole {
                program.cost += operation.cost;
            }
        }
        for (output, &number) in results.iter().enumerate() {
            let before = usize::try_from(number).ok();
            let step = before
                .filter(|&number| number < words.len() - 1)
                .map(|number| &mut program.steps[number])
                .filter(|step| step.extent == Extent::Whole && step.output.is_none())
                .ok_or(NO_PROGRAM)?;
            step.output = Some(1 + output);
        }
        program.place(&last_use, loaded)?;
        Ok(program)
    }

    /// Gives every value that is kept a register.
    fn place(&mut self, last_use: &[usize], loaded: u32) -> Result<()> {
        let mut free = Free((1 << REGISTERS) - 1);
        for input in 0..self.inputs {
            if self.extents[input] != Extent::Whole || loaded >> input & 1 == 1 {
                self.kept[input] = free.take()?;
            }
        }
        // Rows and numbers are computed before all, and used in every block.
        for number in 0..self.len {
            if self.steps[number].extent != Extent::Whole {
                self.steps[number].register = free.take()?;
            }
        }
        let last = self.len - 1;
        if self.steps[last].extent != Extent::Whole {
            return Err(NO_PROGRAM);
        }
        for number in 0..last {
            let step = self.steps[number];
            if step.extent != Extent::Whole {
                continue;
            }
            self.steps[number].register = free.take()?;
            for (index, &value) in step.operands.iter().enumerate() {
                let is_result = value >= self.inputs;
                let first = index == 0 || step.operands[0] != value;
                if is_result && first && last_use[value] == number {
                    let from = self.steps[value - self.inputs];
                    if from.extent == Extent::Whole {
                        free.give(from.register);
                    }
                }
            }
        }
        Ok(())
    }

    fn extent(&self, value: usize) -> Extent {
        if value < self.inputs {
            self.extents[value]
        } else {
            self.steps[value - self.inputs].extent
        }
    }
}

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32 F16 BF16];),
    attrs: &[
        ("T", AttrKind::Type),
        ("program", AttrKind::Ints),
        ("results", AttrKind::Ints),
        ("extents", AttrKind::Ints),
    ],
    forward: &[
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 0),
        (8, 0),
        (9, 0),
        (10, 0),
        (11, 0),
    ],
    outputs: |inputs, sink| {
        let shape = output_shape(inputs)?;
        let others = inputs.attrs.ints("results")?;
        let dtype = inputs.attrs.dtype("T")?;
        (0..=others.len()).try_for_each(|_| sink(dtype, shape))
    },
    run,
    ..KernelDef::of("TfpExpression")
};

/// Fails if an input is smaller than the one that the program was made for: whoever made it relied on
/// an op that refuses such an input, and that the program replaces.
fn check_extents(found: &[Extent], least: &[i64]) -> Result<()> {
    let smaller = |(found, least): (&Extent, &i64)| (*found as i64) < *least;
    if found.iter().zip(least).any(smaller) {
        return Err(Error::Value {
            argument: "inputs",
            expected: "the shapes that the ops of the expression were given for",
        });
    }
    Ok(())
}

/// What all inputs broadcast to.
fn output_shape(inputs: &Inputs<'_>) -> Result<Shape> {
    let mut shape = Shape::SCALAR;
    for input in inputs.tensors {
        shape = shape.broadcast(input.shape(), ("output", "inputs"))?;
    }
    Ok(shape)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let shape = output_shape(&call.inputs)?;
    let count = call.inputs.tensors.len();
    let mut extents = [Extent::Scalar; MAX_INPUTS];
    let mut values = [Values::Output; MAX_INPUTS];
    let mut loaded = 0;
    let slots = extents.iter_mut().zip(&mut values);
    for (number, (input, (extent, values))) in call.inputs.tensors.iter().zip(slots).enumerate() {
        *extent = Extent::find(input.shape(), &shape).ok_or(Error::Shape {
            argument: "inputs",
            found: *input.shape(),
            expected: shape,
        })?;
        if !input.is_forwarded() {
            *values = match Half::of(input.dtype()) {
                None => Values::Wide(input.f32("inputs")?),
                Some(_) => {
                    let (half, bits) = input.halves("inputs")?;
                    Values::Narrow(half, bits)
                }
            };
        }
        if !matches!(values, Values::Wide(_)) {
            loaded |= 1 << number;
        }
    }
    let extents = extents.get(..count).ok_or(NO_PROGRAM)?;
    let attrs = call.inputs.attrs;
    check_extents(extents, attrs.ints("extents")?)?;
    let results = attrs.ints("results")?;
    let program = Program::new(attrs.ints("program")?, extents, loaded, results)?;
    let row = shape.last().copied().unwrap_or(1);
    let (values, parallel) = (&values[..count], call.parallel);
    match Half::of(attrs.dtype("T")?) {
        None => {
            let mut outputs: [&mut [f32]; MAX_OUTPUTS] = Default::default();
            for (slot, output) in outputs.iter_mut().zip(&mut *call.outputs) {
                *slot = output.f32_mut("outputs")?;
            }
            evaluate(&program, values, row, Wide, outputs, parallel)
        }
        Some(half) => {
            let mut outputs: [&mut [u16]; MAX_OUTPUTS] = Default::default();
            for (slot, output) in outputs.iter_mut().zip(&mut *call.outputs) {
                *slot = output.halves_mut("outputs")?.1;
            }
            evaluate(&program, values, row, half, outputs, parallel)
        }
    }
}

#[cfg(test)]
mod tests;
