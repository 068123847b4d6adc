//! Reductions of any axes, one range of axes after the other.

use crate::request::{Operand, Request};
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, Region, numbers, spread};

/// What the elements of a column become, by the shader's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sum = 0,
    Largest = 1,
    Smallest = 2,
    /// The sum of the squared distances from the center.
    Squares = 3,
    /// The sums of the slopes, then those of their products with the distances from the center.
    Slopes = 4,
}

/// Groups that keep a large device busy.
const GROUPS: usize = 1024;
/// Rows that a thread has at least, if there are several parts.
const LEAST: usize = 8;

/// A reduction of the middle axis of `[outer, rows, columns]`.
pub struct Columns {
    pub kind: Kind,
    pub sizes: [usize; 3],
    pub input: Region,
    /// What [`Kind::Slopes`] sums; else any region.
    pub slope: Region,
    /// A number per column for [`Kind::Squares`] and [`Kind::Slopes`]; else any region.
    pub center: Region,
    /// What a sum is multiplied with.
    pub factor: f32,
}

impl Columns {
    /// A reduction of one input.
    pub fn of(kind: Kind, sizes: [usize; 3], input: Region, factor: f32) -> Self {
        Self {
            kind,
            sizes,
            input,
            slope: input,
            center: input,
            factor,
        }
    }

    /// Adds the dispatches to a plan. `None` if a size is too large, or 0.
    pub fn add_to(&self, plan: &mut Plan, output: Region) -> Option<()> {
        let [outer, rows, columns] = self.sizes;
        if outer == 0 || rows == 0 || columns == 0 {
            return None;
        }
        u32::try_from(outer.checked_mul(rows)?.checked_mul(columns)?).ok()?;
        let width = columns.next_power_of_two().min(64);
        let blocks = columns.div_ceil(width) * outer;
        let most = rows.div_ceil(256 / width * LEAST);
        let chunk = rows.div_ceil((GROUPS / blocks).clamp(1, most));
        let parts = rows.div_ceil(chunk);
        let slopes = self.kind == Kind::Slopes;
        let wide = if slopes { 2 * columns } else { columns };
        let target = if parts > 1 {
            plan.room(outer * parts * wide * 4)
        } else {
            output
        };
        let factor = if parts > 1 { 1.0 } else { self.factor };
        let mut words = numbers(&[rows, columns, chunk, parts, outer])?;
        words.push(factor.to_bits());
        plan.dispatches.push(Dispatch {
            shader: Shader::Columns,
            constants: numbers(&[self.kind as usize, width])?,
            words,
            buffers: vec![self.input, self.slope, self.center, target],
            groups: spread(blocks * parts)?,
        });
        plan.flops += (outer * rows * columns) as u64;
        if parts == 1 {
            return Some(());
        }
        let kind = match self.kind {
            Kind::Largest | Kind::Smallest => self.kind,
            Kind::Sum | Kind::Squares | Kind::Slopes => Kind::Sum,
        };
        // There are at most as many parts as groups: another turn ends it.
        Self::of(kind, [outer, parts, wide], target, self.factor).add_to(plan, output)
    }
}

/// The plan that reduces some axes of a tensor; `None` if there is nothing to reduce.
fn reduce(
    (kind, is_mean): (Kind, bool),
    (input, output): (&Operand, &Operand),
    reduced: &[bool],
) -> Option<Plan> {
    // Ranges of axes that are reduced, or kept, by turns.
    let mut ranges: Vec<(bool, usize)> = Vec::new();
    for (&size, &is_reduced) in input.shape.iter().zip(reduced) {
        match ranges.last_mut() {
            _ if size == 1 => {}
            Some((last, product)) if *last == is_reduced => *product *= size,
            _ => ranges.push((is_reduced, size)),
        }
    }
    let mut plan = Plan::default();
    let mut from = input.region();
    let mut left = ranges.iter().filter(|(is_reduced, _)| *is_reduced).count();
    if left == 0 {
        return None;
    }
    let mut kept = 1;
    while let Some((is_reduced, size)) = ranges.pop() {
        if !is_reduced {
            kept *= size;
            continue;
        }
        left -= 1;
        let outer = ranges.iter().map(|(_, size)| size).product::<usize>();
        let to = if left == 0 {
            output.region()
        } else {
            plan.room(outer * kept * 4)
        };
        let factor = if is_mean { 1.0 / size as f32 } else { 1.0 };
        Columns::of(kind, [outer, size, kept], from, factor).add_to(&mut plan, to)?;
        from = to;
    }
    Some(plan)
}

/// The axes that a reduction names.
fn axes(request: &Request<'_>, rank: usize) -> Option<Vec<bool>> {
    let mut reduced = vec![false; rank];
    let rank = i64::try_from(rank).ok()?;
    for axis in request.integers(1)? {
        let at = if axis < 0 { axis + rank } else { axis };
        *reduced.get_mut(usize::try_from(at).ok()?)? = true;
    }
    Some(reduced)
}

/// Sums, means and extremes over any axes.
pub fn reduction(request: &Request<'_>, limits: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let reduced = axes(request, input.shape.len())?;
    if !input.is_f32() || !output.is_f32() {
        return None;
    }
    let kept = input.shape.iter().zip(&reduced);
    let kept: usize = kept.filter(|(_, is)| !**is).map(|(size, _)| size).product();
    if kept != output.elements() {
        return None;
    }
    if let Some(plan) = super::rows::reduction(request, &reduced, limits) {
        return Some(plan);
    }
    let kind = match request.op {
        "Sum" | "Mean" => Kind::Sum,
        "Max" => Kind::Largest,
        "Min" => Kind::Smallest,
        _ => return None,
    };
    reduce((kind, request.op == "Mean"), (input, output), &reduced)
}

/// `BiasAddGrad`.
pub fn bias_add_grad(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let rank = input.shape.len();
    if !request.is_f32() || rank < 2 {
        return None;
    }
    let channels = match request.attrs.string("data_format").ok()? {
        "NHWC" => rank - 1,
        "NCHW" => 1,
        _ => return None,
    };
    let reduced: Vec<bool> = (0..rank).map(|axis| axis != channels).collect();
    if input.shape[channels] != output.elements() {
        return None;
    }
    reduce((Kind::Sum, false), (input, output), &reduced)
}
