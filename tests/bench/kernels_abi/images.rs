//! What training computes: convolutions whose filters change with every call, and their gradients;
//! and images of other sizes.

use std::slice::{from_raw_parts, from_raw_parts_mut};

use tfp_kernels::base::shape::Shape;
use tfp_kernels::conv::{BackwardFilter, BackwardInput, Filter, Forward};
use tfp_kernels::ops::image::resize::{Corners, resize_bilinear, resize_nearest};

use crate::{conv, with_pool, with_scratch};

/// A convolution with a filter as TensorFlow has it: 0 forward, which writes the output; 1 its
/// gradient by the input, which writes that; 2 that by the filter, which writes that.
///
/// # Safety
/// `sizes` is valid for ten elements, the other pointers for those of input, filter and output, and
/// nobody else has what is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_conv_training(
    threads: usize,
    direction: usize,
    sizes: *const [usize; 10],
    input: *mut f32,
    filter: *mut f32,
    output: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let Ok(conv) = conv(unsafe { &*sizes }) else {
        return -1.0;
    };
    let lengths = (conv.input_len(), conv.filter_len(), conv.output_len());
    match direction {
        0 => {
            // SAFETY: the caller's promise.
            let (input, filter, output) = unsafe {
                (
                    from_raw_parts(input, lengths.0),
                    from_raw_parts(filter, lengths.1),
                    from_raw_parts_mut(output, lengths.2),
                )
            };
            let forward = Forward::new(conv, Filter::Plain(filter));
            with_scratch(forward.scratch_len(), |scratch| {
                with_pool(threads, |pool| forward.run(input, output, scratch, pool))
            })
        }
        1 => {
            // SAFETY: the caller's promise.
            let (input, filter, output) = unsafe {
                (
                    from_raw_parts_mut(input, lengths.0),
                    from_raw_parts(filter, lengths.1),
                    from_raw_parts(output, lengths.2),
                )
            };
            let backward = BackwardInput::new(conv, Filter::Plain(filter));
            with_scratch(backward.scratch_len(), |scratch| {
                with_pool(threads, |pool| backward.run(output, input, scratch, pool))
            })
        }
        _ => {
            // SAFETY: the caller's promise.
            let (input, filter, output) = unsafe {
                (
                    from_raw_parts(input, lengths.0),
                    from_raw_parts_mut(filter, lengths.1),
                    from_raw_parts(output, lengths.2),
                )
            };
            let backward = BackwardFilter::new(conv);
            with_scratch(backward.scratch_len(), |scratch| {
                with_pool(threads, |pool| {
                    backward.run(input, output, filter, scratch, pool)
                })
            })
        }
    }
}

/// One square image in another size, with the centres of half pixels: whether it interpolates, the
/// sides of the input and of the output, and channels.
///
/// # Safety
/// `sizes` is valid for four elements, the other pointers for those of input and output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_resize(
    threads: usize,
    sizes: *const [usize; 4],
    x: *const f32,
    y: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let [bilinear, from, to, channels] = unsafe { *sizes };
    // SAFETY: as above.
    let (x, y) = unsafe {
        (
            from_raw_parts(x, from * from * channels),
            from_raw_parts_mut(y, to * to * channels),
        )
    };
    with_pool(threads, |pool| {
        let shape = Shape::new(&[1, from, from, channels])?;
        let out_shape = Shape::new(&[1, to, to, channels])?;
        let corners = Corners {
            half_pixel: true,
            ..Corners::default()
        };
        if bilinear == 1 {
            resize_bilinear((x, &shape), (y, &out_shape), corners, pool)
        } else {
            resize_nearest((x, &shape), (y, &out_shape), corners, pool)
        }
    })
}
