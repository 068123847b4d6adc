//! The work of a program, block by block.

use super::{BLOCK, Extent, Function, MAX_OUTPUTS, MAX_ROW, Program, REGISTERS, Step};
use crate::base::adapt::check_count;
use crate::base::chunks::chunk_len;
use crate::base::error::{Error, Result};
use crate::base::half::Half;
use crate::base::parallel::Parallel;
use crate::simd::blocks::for_each_chunk_of_all;

/// The elements of an input.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// Of `f32`.
    Wide(&'a [f32]),
    /// Of a 16-bit float, as their bits.
    Narrow(Half, &'a [u16]),
    /// Those that lie in the first output's buffer.
    Output,
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Wide(values) => values.len(),
            Self::Narrow(_, bits) => bits.len(),
            Self::Output => 0,
        }
    }

    /// Puts the elements from `at` on into `out`, which they fill; those of [`Values::Output`] are
    /// elsewhere.
    fn load(&self, at: usize, out: &mut [f32]) {
        match self {
            Self::Wide(values) => out.copy_from_slice(&values[at..at + out.len()]),
            Self::Narrow(half, bits) => half.widen(&bits[at..at + out.len()], out),
            Self::Output => {}
        }
    }
}

/// How the elements of outputs are stored.
pub trait Store: Copy + Sync {
    /// An element.
    type Element: Copy + Send;

    /// `to[i] = from[i]`, of as many.
    fn load(self, from: &[Self::Element], to: &mut [f32]);

    /// `to[i] = from[i]`, rounded, of as many.
    fn store(self, from: &[f32], to: &mut [Self::Element]);

    /// The elements as what a step writes; `None` where they have another type.
    fn direct(out: &mut [Self::Element]) -> Option<&mut [f32]>;
}

/// Outputs of `f32`.
#[derive(Clone, Copy)]
pub struct Wide;

impl Store for Wide {
    type Element = f32;

    fn load(self, from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    fn store(self, from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    fn direct(out: &mut [f32]) -> Option<&mut [f32]> {
        Some(out)
    }
}

impl Store for Half {
    type Element = u16;

    fn load(self, from: &[u16], to: &mut [f32]) {
        self.widen(from, to);
    }

    fn store(self, from: &[f32], to: &mut [u16]) {
        self.round(from, to);
    }

    fn direct(_: &mut [u16]) -> Option<&mut [f32]> {
        None
    }
}

/// One program's work on a part of the output that begins where a row does.
struct Part<'a, S> {
    program: &'a Program,
    inputs: &'a [Values<'a>],
    /// Length of a row, or 0 if there are no rows.
    row: usize,
    /// Index of the first element of the output.
    start: usize,
    store: S,
}

/// A part of each output; those that a program does not have are empty.
pub(super) type Outputs<'a, E> = [&'a mut [E]; MAX_OUTPUTS];

impl<S: Store> Part<'_, S> {
    fn run<const B: usize>(&self, mut outputs: Outputs<'_, S::Element>) {
        let mut registers = [[0.0; B]; REGISTERS];
        let rows = B.checked_div(self.row);
        let step = rows.map_or(B, |rows| rows * self.row).max(1);
        let len = outputs[0].len();
        self.prepare(&mut registers, step.min(len));
        for at in (0..len).step_by(step) {
            let end = (at + step).min(len);
            let block = outputs
                .each_mut()
                .map(|output| output.get_mut(at..end).unwrap_or_default());
            self.block(&mut registers, self.start + at, block);
        }
    }

    /// Fills the registers of rows and numbers, each repeated over a block.
    fn prepare<const B: usize>(&self, registers: &mut [[f32; B]; REGISTERS], step: usize) {
        let program = self.program;
        for (input, values) in self.inputs.iter().enumerate().take(program.inputs) {
            let count = values.len();
            if program.extents[input] != Extent::Whole && count > 0 {
                let register = &mut registers[program.kept[input]][..step];
                let (first, rest) = register.split_at_mut(count.min(step));
                values.load(0, first);
                match first {
                    [value] => rest.fill(*value),
                    _ => rest
                        .chunks_mut(count)
                        .for_each(|part| part.copy_from_slice(&first[..part.len()])),
                }
            }
        }
        for step_of in &program.steps[..program.len] {
            if step_of.extent != Extent::Whole {
                step_in(program, self.inputs, registers, step_of, (0, step), None);
            }
        }
    }

    fn block<const B: usize>(
        &self,
        registers: &mut [[f32; B]; REGISTERS],
        at: usize,
        [out, others @ ..]: Outputs<'_, S::Element>,
    ) {
        let (program, len) = (self.program, out.len());
        for (input, values) in self.inputs.iter().enumerate().take(program.inputs) {
            if program.extents[input] == Extent::Whole && program.kept[input] < REGISTERS {
                let register = &mut registers[program.kept[input]][..len];
                match values {
                    Values::Output => self.store.load(out, register),
                    values => values.load(at, register),
                }
            }
        }
        let (last, before) = match program.steps[..program.len].split_last() {
            Some(split) => split,
            None => return,
        };
        for step in before {
            if step.extent == Extent::Whole {
                step_in(program, self.inputs, registers, step, (at, len), None);
                if let Some(output) = step.output {
                    let from = &registers[step.register][..len];
                    self.store.store(from, others[output - 1]);
                }
            }
        }
        if let Some(out) = S::direct(out) {
            step_in(program, self.inputs, registers, last, (at, len), Some(out));
            return;
        }
        let mut result = [0.0; B];
        let to = Some(&mut result[..len]);
        step_in(program, self.inputs, registers, last, (at, len), to);
        self.store.store(&result[..len], out);
    }
}

/// Computes `len` elements from element `at` on, into `out` or the step's register.
fn step_in<const B: usize>(
    program: &Program,
    inputs: &[Values<'_>],
    registers: &mut [[f32; B]; REGISTERS],
    step: &Step,
    (at, len): (usize, usize),
    out: Option<&mut [f32]>,
) {
    let (low, rest) = registers.split_at_mut(if out.is_some() { 0 } else { step.register });
    let (own, high) = match (out, rest) {
        (Some(out), rest) => (out, &*rest),
        (None, [own, high @ ..]) => (&mut own[..len], &*high),
        (None, []) => return,
    };
    let above = REGISTERS - high.len();
    let operand = |value: usize| -> &[f32] {
        let register = if value < program.inputs {
            match (program.kept[value], &inputs[value]) {
                (REGISTERS, Values::Wide(values)) => return &values[at..at + len],
                (REGISTERS, _) => return &[],
                (register, _) => register,
            }
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
        Function::Two(function) | Function::Back(function) => {
            function(operand(step.operands[0]), operand(step.operands[1]), own);
        }
    }
    if let Some(half) = step.rounds {
        half.keep(own);
    }
}

/// What an input of a 16-bit float has to be.
const NOT_LOADED: Error = Error::Value {
    argument: "inputs",
    expected: "16-bit floats among the inputs that the program loads",
};

/// Computes a program. Inputs are in the order of the program's; all but those of [`Values::Wide`] are
/// among the ones that it loads. The outputs that the program does not have are empty; `store` says how
/// the others are stored. `row` is the length of the outputs' last axis.
///
/// # Errors
/// [`Error::Value`] if an input that the program does not load has to be. [`Error::Length`] if an input or output does not have as many elements as its extent says, or if
/// the outputs have no whole rows, or too long ones, where a program uses rows.
pub fn evaluate<S: Store>(
    program: &Program,
    inputs: &[Values<'_>],
    row: usize,
    store: S,
    outputs: [&mut [S::Element]; MAX_OUTPUTS],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("inputs", inputs.len(), program.inputs)?;
    let len = outputs[0].len();
    for (number, output) in outputs.iter().enumerate() {
        let expected = if number < program.outputs { len } else { 0 };
        check_count("outputs", output.len(), expected)?;
    }
    let mut rows = false;
    for (input, values) in inputs.iter().enumerate() {
        let expected = match program.extents[input] {
            Extent::Scalar => 1,
            Extent::Row => {
                rows = true;
                row
            }
            Extent::Whole => match values {
                Values::Output if program.kept[input] < REGISTERS => 0,
                Values::Narrow(..) if program.kept[input] == REGISTERS => return Err(NOT_LOADED),
                _ => len,
            },
        };
        check_count("inputs", values.len(), expected)?;
    }
    let row = if rows { row } else { 0 };
    if rows && !len.is_multiple_of(row) {
        return Err(Error::Length {
            argument: "outputs",
            found: len,
            expected: len.checked_div(row).unwrap_or(0) * row,
        });
    }
    if len == 0 {
        return Ok(());
    }
    if row > MAX_ROW {
        return Err(Error::Length {
            argument: "inputs",
            found: row,
            expected: MAX_ROW,
        });
    }
    let unit = if rows { row } else { 16 };
    let chunk = chunk_len(parallel, len, unit, program.cost);
    for_each_chunk_of_all(parallel, outputs, chunk, &|start, outputs| {
        let part = Part {
            program,
            inputs,
            row,
            start,
            store,
        };
        match outputs[0].len() {
            0..=16 => part.run::<16>(outputs),
            _ if row <= BLOCK => part.run::<BLOCK>(outputs),
            _ => part.run::<MAX_ROW>(outputs),
        }
    });
    Ok(())
}
