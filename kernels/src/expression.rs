//! `TfpExpression`, an op that the plug-in defines: several element-wise operations in one pass.
//!
//! A [`Program`] is a list of steps, each an operation on one or two values: inputs of the op, or
//! results of steps before. The last result is the output. Values that a step uses stay in the
//! cache, block by block; every element has the bits that separate ops give it.
//!
//! A value is whole (of the output's shape), a row (a number per element of the last axis), or one
//! number for all. What needs rows and numbers alone is computed once.

use crate::adapt::check_count;
use crate::binary as two;
use crate::body::{Body, dispatch};
use crate::chunks::{chunk_len, for_each_chunk};
use crate::def::{AttrKind, Call, Inputs, KernelDef, Variant, no_scratch};
use crate::division::Pow;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gradient as back;
use crate::map::Map;
use crate::parallel::Parallel;
use crate::shape::Shape;
use crate::unary as one;
use crate::zip::Zip;

/// Most inputs of a program.
pub const MAX_INPUTS: usize = 8;
/// Most steps of a program.
pub const MAX_STEPS: usize = 24;
/// Most elements of a row.
pub const MAX_ROW: usize = BLOCK;
/// Most values that are kept at a time.
const REGISTERS: usize = 14;
/// Most elements that are worked on at a time.
const BLOCK: usize = 512;
/// Numbers in a program per step: operation, first and second operand.
const WORDS: usize = 3;

/// What a step does.
#[derive(Clone, Copy)]
enum Function {
    One(fn(&[f32], &mut [f32])),
    Two(fn(&[f32], &[f32], &mut [f32])),
}

/// An operation that a step can be.
struct Operation {
    /// The op of TensorFlow.
    op: &'static str,
    cost: usize,
    function: Function,
}

struct Singles<'a, O> {
    op: O,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl<O: Map<f32, Out = f32>> Body for Singles<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, &x) in self.out.iter_mut().zip(self.x) {
            *out = self.op.apply(x);
        }
    }
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

fn map_one<O: Map<f32, Out = f32> + Default>(x: &[f32], out: &mut [f32]) {
    let op = O::default();
    dispatch(Singles { op, x, out });
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
                function: Function::Two(map_two::<back::$third>),
            },)*
            Operation {
                op: "Pow",
                cost: <Pow as Zip<f32>>::COST,
                function: Function::Two(map_two::<Pow>),
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
        Function::Two(_) => 2,
    };
    Some((i64::try_from(number).ok()?, operands))
}

/// How many elements a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// One.
    Scalar,
    /// One for each element of the output's last axis.
    Row,
    /// As many as the output.
    Whole,
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
    operands: [usize; 2],
    extent: Extent,
    /// The register of the result; the output's block for the last step.
    register: usize,
}

/// Steps whose values have their places.
pub struct Program {
    inputs: usize,
    steps: [Step; MAX_STEPS],
    len: usize,
    extents: [Extent; MAX_INPUTS],
    /// Registers of inputs that are not whole, or whose values are in the output's buffer.
    kept: [usize; MAX_INPUTS],
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
    /// number of inputs is an input, one above the result of a step. `forwarded` are the inputs
    /// whose values are in the output's buffer, as bits.
    ///
    /// # Errors
    /// [`Error::Value`] for what is no program, or one with too many inputs, steps or values at a
    /// time; or if its result is not [`Extent::Whole`].
    pub fn new(words: &[i64], extents: &[Extent], forwarded: u32) -> Result<Self> {
        let (words, rest) = words.as_chunks::<WORDS>();
        let inputs = extents.len();
        if words.is_empty() || !rest.is_empty() || words.len() > MAX_STEPS || inputs > MAX_INPUTS {
            return Err(NO_PROGRAM);
        }
        let mut last_use = [0; MAX_INPUTS + MAX_STEPS];
        let mut program = Self {
            inputs,
            steps: [Step {
                function: OPERATIONS[0].function,
                operands: [0; 2],
                extent: Extent::Scalar,
                register: 0,
            }; MAX_STEPS],
            len: words.len(),
            extents: [Extent::Scalar; MAX_INPUTS],
            kept: [REGISTERS; MAX_INPUTS],
            cost: 0,
        };
        program.extents[..inputs].copy_from_slice(extents);
        for (number, &[code, a, b]) in words.iter().enumerate() {
            let place = usize::try_from(code).ok();
            let operation = place
                .and_then(|place| OPERATIONS.get(place))
                .ok_or(NO_PROGRAM)?;
            let operand = |value: i64| {
                let found = usize::try_from(value).ok();
                found
                    .filter(|&value| value < inputs + number)
                    .ok_or(NO_PROGRAM)
            };
            let operands = match operation.function {
                Function::One(_) => [operand(a)?; 2],
                Function::Two(_) => [operand(a)?, operand(b)?],
            };
            for value in operands {
                last_use[value] = number;
            }
            let step = Step {
                function: operation.function,
                operands,
                extent: operands
                    .map(|value| program.extent(value))
                    .into_iter()
                    .fold(Extent::Scalar, Ord::max),
                register: 0,
            };
            program.steps[number] = step;
            if step.extent == Extent::Whole {
                program.cost += operation.cost;
            }
        }
        program.place(&last_use, forwarded)?;
        Ok(program)
    }

    /// Gives every value that is kept a register.
    fn place(&mut self, last_use: &[usize], forwarded: u32) -> Result<()> {
        let mut free = Free((1 << REGISTERS) - 1);
        for input in 0..self.inputs {
            if self.extents[input] != Extent::Whole || forwarded >> input & 1 == 1 {
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

/// One program's work on a part of the output that begins where a row does.
struct Part<'a> {
    program: &'a Program,
    inputs: &'a [&'a [f32]],
    /// Length of a row, or 0 if there are no rows.
    row: usize,
    /// Index of the first element of the output.
    start: usize,
}

impl Part<'_> {
    fn run<const B: usize>(&self, out: &mut [f32]) {
        let mut registers = [[0.0; B]; REGISTERS];
        let rows = B.checked_div(self.row);
        let step = rows.map_or(B, |rows| rows * self.row);
        self.prepare(&mut registers, step.min(out.len()));
        let mut at = self.start;
        for out in out.chunks_mut(step.max(1)) {
            self.block(&mut registers, at, out);
            at += out.len();
        }
    }

    /// Fills the registers of rows and numbers, each repeated over a block.
    fn prepare<const B: usize>(&self, registers: &mut [[f32; B]; REGISTERS], step: usize) {
        let program = self.program;
        for (input, values) in self.inputs.iter().enumerate().take(program.inputs) {
            if program.extents[input] != Extent::Whole && !values.is_empty() {
                let register = &mut registers[program.kept[input]][..step];
                match values {
                    [value] => register.fill(*value),
                    _ => register
                        .chunks_mut(values.len())
                        .for_each(|part| part.copy_from_slice(&values[..part.len()])),
                }
            }
        }
        for step_of in &program.steps[..program.len] {
            if step_of.extent != Extent::Whole {
                self.step(registers, step_of, 0, step, None);
            }
        }
    }

    fn block<const B: usize>(
        &self,
        registers: &mut [[f32; B]; REGISTERS],
        at: usize,
        out: &mut [f32],
    ) {
        let program = self.program;
        for input in 0..program.inputs {
            if program.extents[input] == Extent::Whole && program.kept[input] < REGISTERS {
                registers[program.kept[input]][..out.len()].copy_from_slice(out);
            }
        }
        let (last, before) = match program.steps[..program.len].split_last() {
            Some(split) => split,
            None => return,
        };
        for step in before {
            if step.extent == Extent::Whole {
                self.step(registers, step, at, out.len(), None);
            }
        }
        self.step(registers, last, at, out.len(), Some(out));
    }

    /// Computes `len` elements from element `at` on, into `out` or the step's register.
    fn step<const B: usize>(
        &self,
        registers: &mut [[f32; B]; REGISTERS],
        step: &Step,
        at: usize,
        len: usize,
        out: Option<&mut [f32]>,
    ) {
        let program = self.program;
        let (low, rest) = registers.split_at_mut(if out.is_some() { 0 } else { step.register });
        let (own, high) = match (out, rest) {
            (Some(out), rest) => (out, &*rest),
            (None, [own, high @ ..]) => (&mut own[..len], &*high),
            (None, []) => return,
        };
        let above = REGISTERS - high.len();
        let operand = |value: usize| -> &[f32] {
            let register = if value < program.inputs {
                let register = program.kept[value];
                if register == REGISTERS {
                    return &self.inputs[value][at..at + len];
                }
                register
            } else {
                program.steps[value - program.inputs].register
            };
            let block = if register < low.len() {
                &low[register]
            } else {
                &high[register - above]
            };
            &block[..len]
        };
        match step.function {
            Function::One(function) => function(operand(step.operands[0]), own),
            Function::Two(function) => {
                function(operand(step.operands[0]), operand(step.operands[1]), own);
            }
        }
    }
}

/// Computes a program. Inputs are in the order of the program's; one in the output's buffer is
/// empty. `row` is the length of the output's last axis.
///
/// # Errors
/// [`Error::Length`] if an input does not have as many elements as its extent says.
pub fn evaluate(
    program: &Program,
    inputs: &[&[f32]],
    row: usize,
    out: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("inputs", inputs.len(), program.inputs)?;
    let mut rows = false;
    for (input, values) in inputs.iter().enumerate() {
        let expected = match program.extents[input] {
            Extent::Scalar => 1,
            Extent::Row => {
                rows = true;
                row
            }
            Extent::Whole if program.kept[input] < REGISTERS => 0,
            Extent::Whole => out.len(),
        };
        check_count("inputs", values.len(), expected)?;
    }
    let row = if rows { row } else { 0 };
    if out.is_empty() {
        return Ok(());
    }
    if row > MAX_ROW || (rows && !out.len().is_multiple_of(row.max(1))) {
        return Err(Error::Length {
            argument: "inputs",
            found: row,
            expected: MAX_ROW,
        });
    }
    let unit = if rows { row } else { 16 };
    let chunk = chunk_len(parallel, out.len(), unit, program.cost);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let part = Part {
            program,
            inputs,
            row,
            start,
        };
        match out.len() {
            0..=16 => part.run::<16>(out),
            17..=128 => part.run::<128>(out),
            _ => part.run::<BLOCK>(out),
        }
    });
    Ok(())
}

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    op: "TfpExpression",
    variants: &[Variant {
        types: &[("T", DType::F32)],
        host: &[],
    }],
    attrs: &[("program", AttrKind::Ints)],
    forward: &[
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 0),
    ],
    outputs: |inputs, sink| sink(DType::F32, output_shape(inputs)?),
    scratch: no_scratch,
    run,
};

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
    let mut values = [&[][..]; MAX_INPUTS];
    let mut forwarded = 0;
    let slots = extents.iter_mut().zip(&mut values);
    for (number, (input, (extent, values))) in call.inputs.tensors.iter().zip(slots).enumerate() {
        *extent = Extent::find(input.shape(), &shape).ok_or(Error::Shape {
            argument: "inputs",
            found: *input.shape(),
            expected: shape,
        })?;
        if input.is_forwarded() {
            forwarded |= 1 << number;
        } else {
            *values = input.f32("inputs")?;
        }
    }
    let extents = extents.get(..count).ok_or(NO_PROGRAM)?;
    let program = Program::new(call.inputs.attrs.ints("program")?, extents, forwarded)?;
    let row = shape.last().copied().unwrap_or(1);
    let parallel = call.parallel;
    let out = call.output(0)?.f32_mut("output")?;
    evaluate(&program, &values[..count], row, out, parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::forced::same_bits;
    use crate::testing::{Interleaved, numbers};
    use crate::trial::{Attr, Tensor, run};

    fn step(op: &str, a: i64, b: i64) -> [i64; 3] {
        [operation(op).unwrap().0, a, b]
    }

    /// `m * alpha / (sqrt(v) + epsilon)`, the step of Adam, of `m`, `v`, `alpha` and `epsilon`.
    fn adam() -> Vec<i64> {
        [
            step("Mul", 0, 2),
            step("Sqrt", 1, 0),
            step("AddV2", 5, 3),
            step("RealDiv", 4, 6),
        ]
        .concat()
    }

    #[test]
    fn whole_tensors_and_numbers() {
        use Extent::{Scalar, Whole};
        for len in [0, 1, 5, 16, 17, 128, 129, 511, 512, 513, 5000, 200_000] {
            let m = numbers(len, 1);
            let v: Vec<f32> = numbers(len, 2).iter().map(|x| x * x).collect();
            let (alpha, epsilon) = (0.3_f32, 1e-3_f32);
            for forwarded in [0, 1, 2] {
                let extents = [Whole, Whole, Scalar, Scalar];
                let program = Program::new(&adam(), &extents, forwarded).unwrap();
                let found = same_bits(|| {
                    let mut out =
                        [vec![f32::NAN; len], m.clone(), v.clone()][forwarded as usize].clone();
                    let take = |bit: u32, x: &'static [f32]| -> &'static [f32] {
                        if forwarded == bit { &[] } else { x }
                    };
                    let (m, v) = (m.clone().leak(), v.clone().leak());
                    let inputs = [take(1, m), take(2, v), &[alpha][..], &[epsilon]];
                    evaluate(&program, &inputs, len, &mut out, &Interleaved).unwrap();
                    out
                });
                for ((found, m), v) in found.iter().zip(&m).zip(&v) {
                    let expected = m * alpha / (v.sqrt() + epsilon);
                    assert_eq!(found.to_bits(), expected.to_bits());
                }
            }
        }
    }

    #[test]
    fn rows_are_repeated_and_what_needs_them_alone_is_computed_once() {
        use Extent::{Row, Scalar, Whole};
        // (x - mean) * rsqrt(variance + epsilon) + mean
        let words = [
            step("AddV2", 2, 3),
            step("Rsqrt", 4, 0),
            step("Sub", 0, 1),
            step("Mul", 6, 5),
            step("AddV2", 1, 7),
        ]
        .concat();
        let program = Program::new(&words, &[Whole, Row, Row, Scalar], 0).unwrap();
        for (rows, width) in [
            (1, 1),
            (3, 5),
            (4, 4),
            (50, 3),
            (7, 512),
            (900, 96),
            (2, 300),
        ] {
            let (x, mean) = (numbers(rows * width, 1), numbers(width, 2));
            let variance: Vec<f32> = numbers(width, 3).iter().map(|x| x * x).collect();
            let inputs = [&x[..], &mean, &variance, &[1e-3]];
            let found = same_bits(|| {
                let mut out = vec![f32::NAN; x.len()];
                evaluate(&program, &inputs, width, &mut out, &Interleaved).unwrap();
                out
            });
            for (i, found) in found.iter().enumerate() {
                let (mean, variance) = (mean[i % width], variance[i % width]);
                let root = 1.0 / (variance + 1e-3_f32).sqrt();
                let expected = mean + (x[i] - mean) * root;
                assert_eq!(found.to_bits(), expected.to_bits());
            }
        }
    }

    #[test]
    fn the_definition_takes_shapes_and_buffers() {
        let attrs = [("program", Attr::Ints(adam().leak()))];
        let inputs = |dims: &[usize], row: &[usize]| {
            let ones = |dims: &[usize]| Tensor::f32(dims, &vec![1.0; dims.iter().product()]);
            [ones(dims), ones(row), ones(&[]), ones(&[])]
        };
        for forward in [false, true] {
            for (dims, row) in [
                (&[2, 3][..], &[2, 3][..]),
                (&[2, 3], &[3]),
                (&[4, 2, 3], &[1, 1, 3]),
                (&[1, 3], &[3]),
                (&[0, 3], &[3]),
                (&[], &[]),
                (&[1], &[]),
            ] {
                let out = run(&DEF, &attrs, &inputs(dims, row), forward).unwrap();
                assert_eq!(out[0].dims, dims);
                assert!(out[0].to_f32().iter().all(|&x| x == 0.5));
            }
        }
        assert!(run(&DEF, &attrs, &inputs(&[2, 3], &[2, 1]), false).is_err());
        assert!(run(&DEF, &attrs, &inputs(&[2, 3], &[2]), false).is_err());
        assert!(run(&DEF, &[], &inputs(&[2], &[2]), false).is_err());
        let wide = inputs(&[2, MAX_ROW + 1], &[MAX_ROW + 1]);
        assert!(run(&DEF, &attrs, &wide, false).is_err());
    }

    #[test]
    fn what_is_no_program_is_refused() {
        use Extent::{Scalar, Whole};
        let refused = |words: &[i64], extents: &[Extent]| Program::new(words, extents, 0).is_err();
        assert!(refused(&[], &[Whole]));
        assert!(refused(&[0, 0], &[Whole]));
        assert!(refused(&step("Neg", 1, 0), &[Whole]));
        assert!(refused(&step("Neg", -1, 0), &[Whole]));
        assert!(refused(&[9999, 0, 0], &[Whole]));
        assert!(refused(&step("Neg", 0, 0), &[Scalar]));
        assert!(refused(&step("Neg", 0, 0), &[Whole; MAX_INPUTS + 1]));
        assert!(refused(&step("Neg", 0, 0).repeat(MAX_STEPS + 1), &[Whole]));
        // A sum of many values that are all needed at the end.
        let many: Vec<i64> = (0..16).flat_map(|_| step("Exp", 0, 0)).collect();
        let sum: Vec<i64> = (0..7).flat_map(|i| step("Add", 1 + i, 16 - i)).collect();
        assert!(refused(&[many, sum].concat(), &[Whole]));
        assert!(operation("Conv2D").is_none());
    }
}
