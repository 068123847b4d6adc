//! Scales images, `[batch, height, width, channels]`, by the nearest pixel or by bilinear
//! interpolation, with TensorFlow's choices of where pixels lie.

mod bilinear;

pub use bilinear::resize_bilinear;

use crate::base::adapt::{by_width, check_len, units, units_mut, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::math;

/// Where pixels lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corners {
    /// The centres of the corner pixels of both images coincide.
    pub align: bool,
    /// A pixel's centre is at half a pixel.
    pub half_pixel: bool,
}

/// One axis of a resize.
#[derive(Clone, Copy, Debug)]
struct Axis {
    size: usize,
    scale: f32,
    corners: Corners,
}

impl Axis {
    fn new(size: usize, out: usize, corners: Corners) -> Self {
        let scale = if corners.align && out > 1 {
            (size - 1) as f32 / (out - 1) as f32
        } else {
            size as f32 / out as f32
        };
        Self {
            size,
            scale,
            corners,
        }
    }

    /// The pixel nearest to output pixel `index`.
    fn nearest(&self, index: usize) -> usize {
        let place = if self.corners.half_pixel {
            (index as f32 + 0.5) * self.scale
        } else {
            index as f32 * self.scale
        };
        let place = if self.corners.align {
            // Halves away from 0.
            math::floor(place + 0.5)
        } else {
            math::floor(place)
        };
        (place.max(0.0) as usize).min(self.size - 1)
    }

    /// The pixels on both sides of output pixel `index`, and the weight of the second.
    fn between(&self, index: usize) -> (usize, usize, f32) {
        let place = if self.corners.half_pixel {
            (index as f32 + 0.5) * self.scale - 0.5
        } else {
            index as f32 * self.scale
        };
        let floor = math::floor(place);
        let low = (floor.max(0.0) as usize).min(self.size - 1);
        let high = ((floor + 1.0).max(0.0) as usize).min(self.size - 1);
        (low, high, place - floor)
    }
}

fn image(argument: &'static str, shape: &Shape) -> Result<[usize; 4]> {
    <[usize; 4]>::try_from(&**shape).map_err(|_| Error::Rank {
        argument,
        found: shape.rank(),
        expected: "4: batch, height, width, channels",
    })
}

/// Fails unless the images have pixels and the size is one.
fn check(shape: &Shape, out: &Shape) -> Result<([usize; 4], [usize; 4])> {
    let (from, to) = (image("images", shape)?, image("size", out)?);
    if from[0] != to[0] || from[3] != to[3] {
        return Err(Error::Incompatible {
            arguments: ("images", "resized_images"),
            shapes: (*shape, *out),
            rule: "batch and channels must be equal",
        });
    }
    if from[1] == 0 || from[2] == 0 || to[1] == 0 || to[2] == 0 {
        return Err(Error::Value {
            argument: "size",
            expected: "images and a size of at least one pixel",
        });
    }
    Ok((from, to))
}

/// How the pixels of images lie that are scaled.
#[derive(Clone, Copy, Debug)]
struct Scaling {
    /// Lines of an image, and of a scaled one.
    heights: [usize; 2],
    /// Pixels of a line.
    widths: [usize; 2],
    channels: usize,
    vertical: Axis,
    horizontal: Axis,
}

impl Scaling {
    /// Of images of a shape to those of another; fails as [`check`].
    fn new(images: &Shape, scaled: &Shape, corners: Corners) -> Result<Self> {
        let ([_, height, width, channels], [_, rows, columns, _]) = check(images, scaled)?;
        Ok(Self {
            heights: [height, rows],
            widths: [width, columns],
            channels,
            vertical: Axis::new(height, rows, corners),
            horizontal: Axis::new(width, columns, corners),
        })
    }

    /// The line that is nearest to line `row` of all scaled images.
    fn nearest(&self, row: usize) -> usize {
        let [height, rows] = self.heights;
        row / rows * height + self.vertical.nearest(row % rows)
    }

    /// The lines above and below line `row` of all scaled images, and the weight of the second.
    #[inline(always)]
    fn around(&self, row: usize) -> ([usize; 2], f32) {
        let [height, rows] = self.heights;
        let (top, bottom, down) = self.vertical.between(row % rows);
        let base = row / rows * height;
        ([base + top, base + bottom], down)
    }
}

/// Takes the nearest pixel of `x` for each of `out`.
///
/// # Errors
/// [`Error::Rank`] unless both are images, [`Error::Incompatible`] if batch or channels differ,
/// [`Error::Value`] if one has no pixels, [`Error::Length`] if a slice does not fit its shape.
pub fn resize_nearest<T: Copy + Send + Sync>(
    (x, shape): (&[T], &Shape),
    (out, out_shape): (&mut [T], &Shape),
    corners: Corners,
    parallel: &dyn Parallel,
) -> Result<()> {
    let scaling = Scaling::new(shape, out_shape, corners)?;
    check_len("images", x.len(), shape)?;
    check_len("resized_images", out.len(), out_shape)?;
    if out.is_empty() {
        return Ok(());
    }
    let [len, line] = scaling.widths.map(|width| width * scaling.channels);
    let chunk = chunk_len(parallel, out.len(), line, 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        for (index, out) in out.chunks_mut(line).enumerate() {
            let x = &x[scaling.nearest(start / line + index) * len..][..len];
            for (column, out) in out.chunks_mut(scaling.channels).enumerate() {
                let from = scaling.horizontal.nearest(column) * scaling.channels;
                out.copy_from_slice(&x[from..from + scaling.channels]);
            }
        }
    });
    Ok(())
}

/// The gradient of [`resize_nearest`]: adds each of `gradients` to the pixel that it was taken
/// from.
///
/// # Errors
/// As [`resize_nearest`]; `shape` and `out` are those of the gradients and the images.
pub fn resize_nearest_grad(
    (gradients, shape): (&[f32], &Shape),
    (out, out_shape): (&mut [f32], &Shape),
    corners: Corners,
) -> Result<()> {
    let scaling = Scaling::new(out_shape, shape, corners)?;
    check_len("grads", gradients.len(), shape)?;
    check_len("output", out.len(), out_shape)?;
    out.fill(0.0);
    if out.is_empty() {
        return Ok(());
    }
    let (channels, [width, columns]) = (scaling.channels, scaling.widths);
    for (row, line) in gradients.chunks(columns * channels).enumerate() {
        let target = scaling.nearest(row);
        for (column, gradients) in line.chunks(channels).enumerate() {
            let at = (target * width + scaling.horizontal.nearest(column)) * channels;
            for (out, &gradient) in out[at..at + channels].iter_mut().zip(gradients) {
                *out += gradient;
            }
        }
    }
    Ok(())
}

/// The gradient of [`resize_bilinear`]: adds each of `gradients` to its four pixels by weight.
///
/// # Errors
/// As [`resize_nearest_grad`].
pub fn resize_bilinear_grad(
    (gradients, shape): (&[f32], &Shape),
    (out, out_shape): (&mut [f32], &Shape),
    corners: Corners,
) -> Result<()> {
    let scaling = Scaling::new(out_shape, shape, corners)?;
    check_len("grads", gradients.len(), shape)?;
    check_len("output", out.len(), out_shape)?;
    out.fill(0.0);
    if out.is_empty() {
        return Ok(());
    }
    let (channels, [width, columns]) = (scaling.channels, scaling.widths);
    for (row, line) in gradients.chunks(columns * channels).enumerate() {
        let ([top, bottom], down) = scaling.around(row);
        for (column, gradients) in line.chunks(channels).enumerate() {
            let (left, right, across) = scaling.horizontal.between(column);
            let corners = [
                (top, left, (1.0 - down) * (1.0 - across)),
                (top, right, (1.0 - down) * across),
                (bottom, left, down * (1.0 - across)),
                (bottom, right, down * across),
            ];
            for (row, column, weight) in corners {
                let at = (row * width + column) * channels;
                for (out, &gradient) in out[at..at + channels].iter_mut().zip(gradients) {
                    *out += gradient * weight;
                }
            }
        }
    }
    Ok(())
}

const ATTRS: &[(&str, AttrKind)] = &[
    ("align_corners", AttrKind::Bool),
    ("half_pixel_centers", AttrKind::Bool),
];

fn corners(inputs: &Inputs<'_>) -> Result<Corners> {
    let corners = Corners {
        align: inputs.attrs.boolean("align_corners")?,
        half_pixel: inputs.attrs.boolean("half_pixel_centers")?,
    };
    if corners.align && corners.half_pixel {
        return Err(Error::Value {
            argument: "half_pixel_centers",
            expected: "false if align_corners is true",
        });
    }
    Ok(corners)
}

/// The shape of the images that the first input becomes at the size that the second one gives.
fn resized(inputs: &Inputs<'_>) -> Result<Shape> {
    corners(inputs)?;
    let shape = inputs.shape(0, "images")?;
    let [batch, _, _, channels] = image("images", &shape)?;
    let size = inputs.ints(1, "size")?;
    let (&[height, width], 1) = (&*size, inputs.shape(1, "size")?.rank()) else {
        return Err(Error::Length {
            argument: "size",
            found: size.len(),
            expected: 2,
        });
    };
    let pixels = |size: i64| usize::try_from(size).unwrap_or(0);
    let out = Shape::new(&[batch, pixels(height), pixels(width), channels])?;
    check(&shape, &out)?;
    Ok(out)
}

/// `ResizeNearestNeighbor` of TensorFlow.
pub static RESIZE_NEAREST_NEIGHBOR: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16] host &["size"];),
    attrs: ATTRS,
    outputs: |inputs, sink| sink(inputs.get(0, "images")?.dtype(), resized(inputs)?),
    run: |call| by_width!(call.inputs.get(0, "images")?.dtype(), run_nearest(call)),
    ..KernelDef::of("ResizeNearestNeighbor")
};

fn run_nearest<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (x, corners) = (call.inputs.get(0, "images")?, corners(&call.inputs)?);
    let parallel = call.parallel;
    let output = call.output(0)?;
    let shape = *output.shape();
    let out = units_mut::<N>(output.bytes_mut());
    let x = (units(x.bytes()), x.shape());
    resize_nearest(x, (out, &shape), corners, parallel)
}

/// `ResizeBilinear` of TensorFlow.
pub static RESIZE_BILINEAR: KernelDef = KernelDef {
    variants: variants!(["T": F32] host &["size"];),
    attrs: ATTRS,
    outputs: |inputs, sink| sink(DType::F32, resized(inputs)?),
    run: |call| {
        let (x, corners) = (call.inputs.get(0, "images")?, corners(&call.inputs)?);
        let parallel = call.parallel;
        let output = call.output(0)?;
        let shape = *output.shape();
        let out = (output.f32_mut("resized_images")?, &shape);
        resize_bilinear((x.f32("images")?, x.shape()), out, corners, parallel)
    },
    ..KernelDef::of("ResizeBilinear")
};

/// `ResizeNearestNeighborGrad` of TensorFlow.
pub static RESIZE_NEAREST_NEIGHBOR_GRAD: KernelDef = KernelDef {
    variants: variants!(["T": F32] host &["size"];),
    attrs: ATTRS,
    outputs: |inputs, sink| sink(DType::F32, resized(inputs)?),
    run: |call| {
        let (x, corners) = (call.inputs.get(0, "grads")?, corners(&call.inputs)?);
        let output = call.output(0)?;
        let shape = *output.shape();
        let out = (output.f32_mut("output")?, &shape);
        resize_nearest_grad((x.f32("grads")?, x.shape()), out, corners)
    },
    ..KernelDef::of("ResizeNearestNeighborGrad")
};

/// `ResizeBilinearGrad` of TensorFlow.
pub static RESIZE_BILINEAR_GRAD: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: ATTRS,
    outputs: |inputs, sink| {
        corners(inputs)?;
        let shape = inputs.shape(1, "original_image")?;
        check(&inputs.shape(0, "grads")?, &shape)?;
        sink(DType::F32, shape)
    },
    run: |call| {
        let (x, corners) = (call.inputs.get(0, "grads")?, corners(&call.inputs)?);
        let output = call.output(0)?;
        let shape = *output.shape();
        let out = (output.f32_mut("output")?, &shape);
        resize_bilinear_grad((x.f32("grads")?, x.shape()), out, corners)
    },
    ..KernelDef::of("ResizeBilinearGrad")
};

#[cfg(test)]
mod tests;
