//! The work of a program, block by block.

use super::{BLOCK, Extent, Function, MAX_OUTPUTS, MAX_ROW, Program, REGISTERS, Step};
use crate::base::adapt::check_count;
use crate::base::chunks::chunk_len;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::simd::blocks::for_each_chunk_of_all;

/// One program's work on a part of the output that begins where a row does.
struct Part<'a> {
    program: &'a Program,
    inputs: &'a [&'a [f32]],
    /// Length of a row, or 0 if there are no rows.
    row: usize,
    /// Index of the first element of the output.
    start: usize,
}

/// A part of each output; those that a program does not have are empty.
pub(super) type Outputs<'a> = [&'a mut [f32]; MAX_OUTPUTS];

impl Part<'_> {
    fn run<const B: usize>(&self, mut outputs: Outputs<'_>) {
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
        [out, others @ ..]: Outputs<'_>,
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
                if let Some(output) = step.output {
                    others[output - 1].copy_from_slice(&registers[step.register][..out.len()]);
                }
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
            Function::Two(function) | Function::Back(function) => {
                function(operand(step.operands[0]), operand(step.operands[1]), own);
            }
        }
    }
}

/// Computes a program. Inputs are in the order of the program's; one in the first output's buffer
/// is empty, and so are the outputs that the program does not have. `row` is the length of the
/// outputs' last axis.
///
/// # Errors
/// [`Error::Length`] if an input or output does not have as many elements as its extent says, or if
/// the outputs have no whole rows, or too long ones, where a program uses rows.
pub fn evaluate(
    program: &Program,
    inputs: &[&[f32]],
    row: usize,
    outputs: [&mut [f32]; MAX_OUTPUTS],
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
            Extent::Whole if program.kept[input] < REGISTERS => 0,
            Extent::Whole => len,
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
        };
        match outputs[0].len() {
            0..=16 => part.run::<16>(outputs),
            _ if row <= BLOCK => part.run::<BLOCK>(outputs),
            _ => part.run::<MAX_ROW>(outputs),
        }
    });
    Ok(())
}
