//! Batch norms with the channels last, and their gradient.

use super::columns::{Columns, Kind};
use crate::request::{Operand, Request};
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, Region, numbers, spread};

/// The shader's numbers.
const STATISTICS: u32 = 0;
const VALUES: u32 = 1;
const PARAMETERS: u32 = 2;
const GRADIENT: u32 = 3;

/// Buffers of a dispatch, by the shader's names.
#[derive(Clone, Copy)]
struct Buffers {
    x: Region,
    slope: Region,
    scale: Region,
    offset: Region,
    mean: Region,
    variance: Region,
    sums: Region,
    running: [Region; 2],
    outputs: [Region; 4],
}

struct Norm {
    channels: usize,
    rows: usize,
    epsilon: f32,
    share: f32,
    training: bool,
}

impl Norm {
    /// `None` unless the channels are last, and all are float32.
    fn of(request: &Request<'_>, x: &Operand) -> Option<Self> {
        let attrs = request.attrs;
        let last = matches!(attrs.string("data_format").ok()?, "NHWC" | "NDHWC");
        let &channels = x.shape.last()?;
        if !last || !request.is_f32() || x.elements() == 0 || x.elements() >= 1 << 31 {
            return None;
        }
        Some(Self {
            channels,
            rows: x.elements() / channels,
            epsilon: attrs.float("epsilon").ok()?,
            share: attrs.float("exponential_avg_factor").unwrap_or(1.0),
            training: attrs.boolean("is_training").ok()?,
        })
    }

    fn dispatch(&self, kind: u32, count: usize, buffers: &Buffers) -> Option<Dispatch> {
        let mut words = numbers(&[count, self.channels])?;
        let values = [self.rows as f32, self.epsilon, self.share];
        words.extend(values.map(f32::to_bits));
        let Buffers {
            x,
            slope,
            scale,
            offset,
            mean,
            variance,
            sums,
            running,
            outputs,
        } = *buffers;
        let mut all = vec![x, slope, scale, offset, mean, variance, sums];
        all.extend(running);
        all.extend(outputs);
        Some(Dispatch {
            shader: Shader::Norm,
            constants: vec![kind, u32::from(self.training)],
            words,
            buffers: all,
            groups: spread(count.div_ceil(256))?,
        })
    }

    fn elements(&self) -> usize {
        self.rows * self.channels
    }

    /// Mean and variance of the channels, in new scratch memory.
    fn moments(&self, plan: &mut Plan, x: Region) -> Option<[Region; 2]> {
        let [mean, variance] = [(); 2].map(|()| plan.room(self.channels * 4));
        let sizes = [1, self.rows, self.channels];
        let factor = 1.0 / self.rows as f32;
        Columns::of(Kind::Sum, sizes, x, factor).add_to(plan, mean)?;
        let squares = Columns {
            center: mean,
            ..Columns::of(Kind::Squares, sizes, x, factor)
        };
        squares.add_to(plan, variance)?;
        Some([mean, variance])
    }
}

/// `FusedBatchNorm` and its later versions.
pub fn forward(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [x, scale, offset, mean, variance] = request.inputs.first_chunk()?;
    let [y, kept_mean, kept_variance, own_mean, own_variance] = request.outputs.first_chunk()?;
    let norm = Norm::of(request, x)?;
    let mut plan = Plan::default();
    let (from, to) = (x.region(), y.region());
    let given = mean.bytes > 0 && variance.bytes > 0;
    let [center, spread] = if norm.training {
        norm.moments(&mut plan, from)?
    } else {
        [mean.region(), variance.region()]
    };
    let running = if given {
        [mean.region(), variance.region()]
    } else {
        [center, spread]
    };
    let mut buffers = Buffers {
        x: from,
        slope: from,
        scale: scale.region(),
        offset: offset.region(),
        mean: center,
        variance: spread,
        sums: from,
        running,
        outputs: [kept_mean, kept_variance, own_mean, own_variance].map(Operand::region),
    };
    let statistics = norm.dispatch(STATISTICS, norm.channels, &buffers)?;
    buffers.outputs = [to; 4];
    let values = norm.dispatch(VALUES, norm.elements(), &buffers)?;
    plan.dispatches.extend([statistics, values]);
    if let Some(last) = request.outputs.get(5) {
        plan.dispatches.push(super::view::filled(last, 0.0)?);
    }
    plan.flops += 4 * norm.elements() as u64;
    Some(plan)
}

/// `FusedBatchNormGrad` and its later versions.
pub fn gradient(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [slope, x, scale, mean, variance] = request.inputs.first_chunk()?;
    let [by_x, by_scale, by_offset] = request.outputs.first_chunk()?;
    let norm = Norm::of(request, x)?;
    let mut plan = Plan::default();
    let sums = plan.room(2 * norm.channels * 4);
    let columns = Columns {
        slope: slope.region(),
        center: mean.region(),
        ..Columns::of(Kind::Slopes, [1, norm.rows, norm.channels], x.region(), 1.0)
    };
    columns.add_to(&mut plan, sums)?;
    let mut buffers = Buffers {
        x: x.region(),
        slope: slope.region(),
        scale: scale.region(),
        offset: scale.region(),
        mean: mean.region(),
        variance: variance.region(),
        sums,
        running: [sums; 2],
        outputs: [by_scale, by_offset, by_offset, by_offset].map(Operand::region),
    };
    let parameters = norm.dispatch(PARAMETERS, norm.channels, &buffers)?;
    buffers.outputs = [by_x.region(); 4];
    let values = norm.dispatch(GRADIENT, norm.elements(), &buffers)?;
    plan.dispatches.extend([parameters, values]);
    plan.flops += 8 * norm.elements() as u64;
    Some(plan)
}
