//! Pooling of images with the channels last, and its gradients.

use tfp_kernels::base::shape::Shape;
use tfp_kernels::conv::attributes::{Format, Sliding, spatial};
use tfp_kernels::conv::geometry::Window;

use crate::request::Request;
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, Region, numbers, spread};

/// The shader's numbers.
const LARGEST: u32 = 0;
const MEAN: u32 = 1;
const PLACES: u32 = 2;
const LARGEST_GRADIENT: u32 = 3;
const MEAN_GRADIENT: u32 = 4;

/// A pooling: images, channels, and both axes.
struct Pooling {
    batch: usize,
    channels: usize,
    axes: [Window; 2],
}

impl Pooling {
    /// `None` unless the channels are last and all is small enough.
    fn of(request: &Request<'_>, input: &Shape) -> Option<Self> {
        let is_largest = request.op.starts_with("Max");
        let sliding = Sliding::of_pooling(request.attrs, is_largest).ok()?;
        let size = spatial(request.attrs, "ksize", sliding.format).ok()?;
        let &[batch, height, width, channels] = &input[..] else {
            return None;
        };
        if sliding.format != Format::Nhwc {
            return None;
        }
        let axes = sliding.windows([height, width], size).ok()?;
        // Places are signed numbers of 32 bits; so are sums of them with the padding.
        let small = axes.iter().all(|axis| {
            let reach = axis.stride.checked_mul(axis.output);
            axis.size < 1 << 20 && reach.is_some_and(|reach| reach < 1 << 28)
        });
        let images = [
            batch * height * width * channels,
            batch * axes[0].output * axes[1].output * channels,
        ];
        let few = images.iter().all(|&len| len > 0 && len < 1 << 30);
        (small && few).then_some(Self {
            batch,
            channels,
            axes,
        })
    }

    fn output(&self) -> [usize; 4] {
        let [y, x] = self.axes.map(|axis| axis.output);
        [self.batch, y, x, self.channels]
    }

    /// `buffers` are the input, the places and the output.
    fn dispatch(&self, kind: u32, count: usize, buffers: [Region; 3]) -> Option<Dispatch> {
        let [y, x] = self.axes;
        let words = [
            count,
            self.channels,
            y.input,
            x.input,
            y.output,
            x.output,
            y.size,
            x.size,
            y.stride,
            x.stride,
            y.before,
            x.before,
        ];
        Some(Dispatch {
            shader: Shader::Pool,
            constants: vec![kind],
            words: numbers(&words)?,
            buffers: buffers.into(),
            groups: spread(count.div_ceil(256))?,
        })
    }

    fn flops(&self) -> u64 {
        let [y, x] = self.axes;
        (self.output().iter().product::<usize>() * y.size * x.size) as u64
    }
}

/// `MaxPool` and `AvgPool`.
pub fn forward(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let pooling = Pooling::of(request, &input.shape)?;
    if !request.is_f32() || output.shape[..] != pooling.output() {
        return None;
    }
    let kind = if request.op == "MaxPool" {
        LARGEST
    } else {
        MEAN
    };
    let to = output.region();
    let dispatch = pooling.dispatch(kind, output.elements(), [input.region(), to, to])?;
    Some(Plan::one(dispatch, pooling.flops()))
}

/// `MaxPoolGrad`: the places of the largest elements first, so that each element knows what is its own.
pub fn largest_gradient(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [input, _, slope] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let pooling = Pooling::of(request, &input.shape)?;
    if !request.is_f32() || slope.shape[..] != pooling.output() || output.shape != input.shape {
        return None;
    }
    let mut plan = Plan::default();
    let places = plan.room(slope.elements() * 4);
    let to = output.region();
    plan.dispatches = vec![
        pooling.dispatch(PLACES, slope.elements(), [input.region(), places, to])?,
        pooling.dispatch(
            LARGEST_GRADIENT,
            output.elements(),
            [slope.region(), places, to],
        )?,
    ];
    plan.flops = 2 * pooling.flops();
    Some(plan)
}

/// `AvgPoolGrad`.
pub fn mean_gradient(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (slope, output) = (request.inputs.get(1)?, request.outputs.first()?);
    let pooling = Pooling::of(request, &output.shape)?;
    if !slope.is_f32() || slope.shape[..] != pooling.output() {
        return None;
    }
    let to = output.region();
    let dispatch = pooling.dispatch(MEAN_GRADIENT, output.elements(), [slope.region(), to, to])?;
    Some(Plan::one(dispatch, pooling.flops()))
}
