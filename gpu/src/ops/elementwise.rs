//! Element-wise ops, alone and as programs.

use tfp_kernels::base::shape::Shape;
use tfp_kernels::ops::elementwise::expression::{MAX_INPUTS, MAX_OUTPUTS, MAX_STEPS, operation};

use super::codes::{ONE, TWO, code};
use crate::request::{Operand, Request};
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, Region, spread};

/// Values of the shader that are numbers of the call begin here.
const NUMBERS: usize = 12;
/// Values of the shader that are results of steps begin here.
const RESULTS: usize = 16;
/// Most axes of a strided input.
const AXES: usize = 6;
const THREADS: usize = 256;

/// How an input meets the output.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Extent {
    Number,
    /// Repeats this many elements.
    Row(usize),
    Whole,
    Strided,
}

/// An operation and its operands, in the numbers of the shader.
type Step = (u32, [usize; 2]);

/// The step of an op.
fn step(op: &str, operands: [usize; 2]) -> Option<Step> {
    Some((code(op)?.0, operands))
}

/// What a program computes with.
struct Program<'a> {
    inputs: &'a [Operand],
    outputs: &'a [Operand],
    numbers: &'a [f32],
    steps: &'a [Step],
    /// The steps whose results are the outputs after the first.
    results: &'a [usize],
}

fn extent(input: &Operand, of: &Shape) -> Option<Extent> {
    let shape: &[usize] = &input.shape;
    if shape == &**of {
        return Some(Extent::Whole);
    }
    if shape.len() > of.len() {
        return None;
    }
    if input.elements() == 1 {
        return Some(Extent::Number);
    }
    if input.elements() == of.elements() {
        return Some(Extent::Whole);
    }
    let significant = shape.iter().skip_while(|&&dim| dim == 1).count();
    let (tail, end) = (
        &shape[shape.len() - significant..],
        &of[of.len() - significant..],
    );
    if tail == end {
        return Some(Extent::Row(input.elements()));
    }
    let mut pairs = shape.iter().zip(&of[of.len() - shape.len()..]);
    pairs
        .all(|(&dim, &of)| dim == of || dim == 1)
        .then_some(Extent::Strided)
}

/// The axes of the output from the last on, and the step of each of two inputs along them. Axes that all step
/// through evenly are one.
fn strides(inputs: &[Operand], of: &Shape) -> Option<Vec<(usize, [usize; 2])>> {
    let mut found: Vec<(usize, [usize; 2])> = Vec::new();
    let mut reach = [1; 2];
    for axis in 0..of.len() {
        let size = of[of.len() - 1 - axis];
        let mut steps = [0; 2];
        for (number, input) in inputs.iter().take(2).enumerate() {
            let rank = input.shape.len();
            let dim = if axis < rank {
                input.shape[rank - 1 - axis]
            } else {
                1
            };
            if dim != 1 {
                steps[number] = reach[number];
                reach[number] *= dim;
            }
        }
        if size == 1 {
            continue;
        }
        if let Some((last, before)) = found.last_mut()
            && (0..2).all(|number| before[number] * *last == steps[number])
        {
            *last *= size;
        } else {
            found.push((size, steps));
        }
    }
    (found.len() <= AXES).then_some(found)
}

fn number(value: usize) -> Option<u32> {
    u32::try_from(value).ok()
}

impl Program<'_> {
    fn plan(&self) -> Option<Plan> {
        let output = self.outputs.first()?;
        let shape = &output.shape;
        let elements = output.elements();
        let fits = self.inputs.len() <= MAX_INPUTS
            && (1..=MAX_STEPS).contains(&self.steps.len())
            && self.outputs.len() <= MAX_OUTPUTS
            && self.outputs.iter().all(|each| each.shape == *shape);
        if !fits || elements == 0 {
            return None;
        }
        let extents = self.inputs.iter().map(|input| extent(input, shape));
        let extents = extents.collect::<Option<Vec<_>>>()?;
        let strided = extents.contains(&Extent::Strided);
        if strided && extents.len() > 2 {
            return None;
        }
        let mut rows = extents.iter().filter_map(|extent| match extent {
            Extent::Row(len) => Some(*len),
            _ => None,
        });
        let row = rows.next().unwrap_or(4);
        if rows.any(|other| other != row) {
            return None;
        }
        let vectors = !strided && elements % 4 == 0 && row % 4 == 0;
        let width = if vectors { 4 } else { 1 };
        let count = elements / width;
        let mut words = vec![number(count)?, number(row / width)?, 0, 0];
        let numbers = (0..4).map(|at| self.numbers.get(at).copied().unwrap_or(0.0));
        words.extend(numbers.map(f32::to_bits));
        if strided {
            let axes = strides(self.inputs, shape)?;
            words[2] = number(axes.len())?;
            let at = |place: usize| axes.get(place).copied().unwrap_or((1, [0; 2]));
            for place in 0..AXES {
                words.push(number(at(place).0)?);
            }
            for input in 0..2 {
                for place in 0..AXES {
                    words.push(number(at(place).1[input])?);
                }
            }
        }
        let constants = constants(&extents, self.steps, self.results)?;
        let spare = output.region();
        let inputs = self.inputs.iter().map(Operand::region);
        let mut buffers: Vec<Region> = inputs.collect();
        buffers.resize(MAX_INPUTS, spare);
        buffers.extend(self.outputs.iter().map(Operand::region));
        let groups = spread(count.div_ceil(THREADS))?;
        let shader = if vectors { Shader::Map4 } else { Shader::Map1 };
        let dispatch = Dispatch {
            shader,
            constants,
            words,
            buffers,
            groups,
        };
        Some(Plan::one(dispatch, (elements * self.steps.len()) as u64))
    }
}

fn constants(extents: &[Extent], steps: &[Step], results: &[usize]) -> Option<Vec<u32>> {
    let counts = extents.len() | steps.len() << 8 | (1 + results.len()) << 16;
    let mut packed = 0;
    for (at, extent) in extents.iter().enumerate() {
        let code = match extent {
            Extent::Number => 0,
            Extent::Row(_) => 1,
            Extent::Whole => 2,
            Extent::Strided => 3,
        };
        packed |= code << (2 * at);
    }
    let mut places = 0;
    for (at, &result) in results.iter().enumerate() {
        places |= number(result)? << (8 * at);
    }
    let mut constants = vec![number(counts)?, packed, places];
    for &(code, [a, b]) in steps {
        constants.push(code | number(a)? << 8 | number(b)? << 16);
    }
    constants.resize(3 + MAX_STEPS, 0);
    Some(constants)
}

/// The constants of a program that negates its input.
pub fn negation() -> Vec<u32> {
    let steps = step("Neg", [0, 0]).into_iter().collect::<Vec<_>>();
    constants(&[Extent::Whole], &steps, &[]).unwrap_or_default()
}

/// The words of a program whose inputs are whole, for as many vectors.
pub fn whole_words(vectors: u32) -> Vec<u32> {
    vec![vectors, 1, 0, 0, 0, 0, 0, 0]
}

/// An op of one or two operands that is an operation of the shader.
pub fn plain(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let operands = code(request.op)?.1;
    if !request.is_f32() || request.inputs.len() != operands {
        return None;
    }
    let steps = [step(request.op, [0, operands - 1])?];
    if operands == 2 && !broadcasts(request) {
        return None;
    }
    run(request, &[], &steps)
}

/// Whether the output's shape is what the first two inputs broadcast to.
fn broadcasts(request: &Request<'_>) -> bool {
    let [a, b] = [0, 1].map(|at| request.inputs[at].shape);
    let found = a.broadcast(&b, ("x", "y"));
    found.is_ok_and(|shape| shape == request.outputs[0].shape)
}

fn run(request: &Request<'_>, numbers: &[f32], steps: &[Step]) -> Option<Plan> {
    let program = Program {
        inputs: &request.inputs,
        outputs: &request.outputs,
        numbers,
        steps,
        results: &[],
    };
    program.plan()
}

/// `BiasAdd` with the channels last.
pub fn bias_add(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let last = request.attrs.string("data_format").ok()? == "NHWC";
    let [x, bias] = request.inputs.first_chunk()?;
    let fits = bias.shape.len() == 1 && x.shape.len() >= 2 && x.shape.last() == bias.shape.last();
    if !last || !fits || !request.is_f32() {
        return None;
    }
    run(request, &[], &[step("AddV2", [0, 1])?])
}

/// `TfpScaleShift`: a product and a sum with a number per channel each, and an activation.
pub fn scale_shift(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [x, scale, shift] = request.inputs.first_chunk()?;
    let channels = *x.shape.last()?;
    let fits = |row: &Operand| row.elements() == channels && row.shape.last() == Some(&channels);
    if !request.is_f32() || !fits(scale) || !fits(shift) {
        return None;
    }
    let mut steps = vec![step("Mul", [0, 1])?, step("AddV2", [RESULTS, 2])?];
    match request.attrs.string("activation").ok()? {
        "" => {}
        activation @ ("Relu" | "Relu6") => steps.push(step(activation, [RESULTS + 1; 2])?),
        _ => return None,
    }
    run(request, &[], &steps)
}

/// `LeakyRelu`: its slope is a number of the call.
pub fn leaky_relu(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let alpha = request.attrs.float("alpha").ok()?;
    if !request.is_f32() {
        return None;
    }
    run(request, &[alpha], &[step("LeakyRelu", [0, NUMBERS])?])
}

/// `ClipByValue`.
pub fn clip(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [x, low, high] = request.inputs.first_chunk()?;
    let fits = |limit: &Operand| limit.elements() == 1 || limit.shape == x.shape;
    if !request.is_f32() || !fits(low) || !fits(high) {
        return None;
    }
    run(
        request,
        &[],
        &[step("Lower", [0, 2])?, step("Raise", [RESULTS, 1])?],
    )
}

/// `AddN`: one step per summand after the first.
pub fn add_n(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let count = request.inputs.len();
    let same = request
        .inputs
        .iter()
        .all(|input| input.shape == request.outputs[0].shape);
    if !request.is_f32() || !same || !(2..=MAX_INPUTS).contains(&count) {
        return None;
    }
    let sum = |at: usize| step("AddV2", [if at == 1 { 0 } else { RESULTS + at - 2 }, at]);
    let steps = (1..count).map(sum).collect::<Option<Vec<_>>>()?;
    run(request, &[], &steps)
}

/// The steps of a program of `TfpExpression` in the numbers of the shader.
fn translate(words: &[i64], inputs: usize) -> Option<Vec<Step>> {
    let names = ONE.iter().chain(TWO);
    let known: Vec<(i64, &str)> = names
        .filter_map(|name| operation(name).map(|(number, _)| (number, *name)))
        .collect();
    let (steps, rest) = words.as_chunks::<3>();
    if !rest.is_empty() {
        return None;
    }
    let made = steps.iter().enumerate().map(|(place, &[operation, a, b])| {
        let name = known.iter().find(|(number, _)| *number == operation)?.1;
        let operand = |value: i64| {
            let value = usize::try_from(value).ok()?;
            let known = value < inputs + place;
            known.then_some(if value < inputs {
                value
            } else {
                RESULTS + value - inputs
            })
        };
        let (_, operands) = code(name)?;
        let a = operand(a)?;
        step(name, [a, if operands == 1 { a } else { operand(b)? }])
    });
    made.collect()
}

/// `TfpExpression`: what the plug-in's graph optimizer fused.
pub fn expression(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let inputs = &request.inputs;
    if !request.is_f32() {
        return None;
    }
    let steps = translate(request.attrs.ints("program").ok()?, inputs.len())?;
    let results = request.attrs.ints("results").ok()?;
    let results = results.iter().map(|&step| usize::try_from(step).ok());
    let results = results.collect::<Option<Vec<_>>>()?;
    let least = request.attrs.ints("extents").ok()?;
    let shape = &request.outputs.first()?.shape;
    // The CPU's kernel refuses smaller inputs than those that the program was made for.
    for (number, input) in inputs.iter().enumerate() {
        let found = match extent(input, shape)? {
            Extent::Number => 0,
            Extent::Row(len) if Some(&len) == shape.last() => 1,
            Extent::Whole => 2,
            Extent::Row(_) | Extent::Strided => return None,
        };
        if least.get(number).is_some_and(|&least| found < least) {
            return None;
        }
    }
    let known = results.iter().all(|&step| step + 1 < steps.len());
    if !known || results.len() + 1 != request.outputs.len() {
        return None;
    }
    let program = Program {
        inputs,
        outputs: &request.outputs,
        numbers: &[],
        steps: &steps,
        results: &results,
    };
    program.plan()
}
