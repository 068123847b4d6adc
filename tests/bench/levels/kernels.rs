//! A few kernels, each as often as a caller asks: what a level of instructions is measured with.
//!
//! As a program: `kernels CASE CALLS`, or nothing for the names of all cases. As a WebAssembly
//! module: `cases` and `calls`.

// An error carries two shapes by value.
#![allow(clippy::result_large_err)]

use std::hint::black_box;

use tfp_kernels::base::error::Result;
use tfp_kernels::base::parallel::Serial;
use tfp_kernels::base::shape::Shape;
use tfp_kernels::conv::depthwise::Depthwise;
use tfp_kernels::conv::{Conv, Direction, Filter, Forward, PackedFilter, Padding, Window};
use tfp_kernels::frame::map::map;
use tfp_kernels::gemm::{Gemm, Matrix, Packed};
use tfp_kernels::ops::elementwise::activation::Gelu;
use tfp_kernels::ops::image::pooling::{self, Pooling};
use tfp_kernels::ops::image::resize::{Corners, resize_bilinear};
use tfp_kernels::ops::norm::layer_norm::{self, normalize_rows};
use tfp_kernels::ops::norm::softmax::softmax;
use tfp_kernels::ops::sequence::lstm::Lstm;
use tfp_kernels::quantized::conv::Conv as Int8Conv;
use tfp_kernels::quantized::depthwise::Depthwise as Int8Depthwise;
use tfp_kernels::quantized::{Range, Rescaling, Scaling};

/// Runs a kernel so many times, on the calling thread; returns the sum of its last result.
type Case = fn(usize) -> Result<f32>;

/// All cases, in the order of the pages that show them.
const CASES: &[(&str, Case)] = &[
    ("GEMM 256 x 256 x 256", |calls| gemm(256, calls)),
    ("GEMV 512 x 512", |calls| gemm(1, calls)),
    ("conv 3x3, 28x28, 128 -> 128", |calls| {
        conv((28, 128, 128), (3, 1), calls)
    }),
    ("conv 1x1, 28x28, 128 -> 128", |calls| {
        conv((28, 128, 128), (1, 1), calls)
    }),
    ("conv 3x3/2, 112x112, 3 -> 32", |calls| {
        conv((112, 3, 32), (3, 2), calls)
    }),
    ("depthwise 3x3, 28x28x128", |calls| depthwise(3, calls)),
    ("depthwise 5x5, 28x28x128", |calls| depthwise(5, calls)),
    ("grouped conv 3x3, 28x28, 32 x 4", grouped),
    ("softmax 64 x 1000", |calls| rows(calls, softmax_rows)),
    ("layer norm 64 x 1000", |calls| rows(calls, norm_rows)),
    ("GELU of 65536", gelu),
    ("LSTM step, 128 units", lstm),
    ("max pooling 3x3/2, 56x56x64", pool),
    ("resize 28 -> 56, 64 channels", resize),
    ("int8 matmul 1 x 512 x 512", |calls| {
        int8_conv((1, 512, 512), (1, 1), Rescaling::Once, calls)
    }),
    ("int8 conv 3x3, 28x28, 128 -> 128", |calls| {
        int8_conv((28, 128, 128), (3, 1), Rescaling::Twice, calls)
    }),
    ("int8 conv 1x1, 28x28, 128 -> 128", |calls| {
        int8_conv((28, 128, 128), (1, 1), Rescaling::Twice, calls)
    }),
    ("int8 conv 3x3/2, 112x112, 3 -> 32", |calls| {
        int8_conv((112, 3, 32), (3, 2), Rescaling::Twice, calls)
    }),
    ("int8 depthwise 3x3, 28x28x128", |calls| {
        int8_depthwise(3, calls)
    }),
    ("int8 depthwise 5x5, 28x28x128", |calls| {
        int8_depthwise(5, calls)
    }),
];

/// Numbers between -1 and 1.
fn numbers(len: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn sum(numbers: &[f32]) -> f32 {
    numbers.iter().map(|&x| f64::from(x)).sum::<f64>() as f32
}

fn gemm(m: usize, calls: usize) -> Result<f32> {
    let side = if m == 1 { 512 } else { m };
    let (a, b) = (numbers(m * side), numbers(side * side));
    let mut packed = vec![0.0; Packed::len(side, side)?];
    let b = Packed::pack(&Matrix::rows(&b, side), (side, side), &mut packed, &Serial)?;
    let gemm = Gemm::packed(m, Matrix::rows(&a, side), b);
    let mut c = vec![0.0; m * side];
    for _ in 0..calls {
        gemm.run(black_box(&mut c), side, &mut [], &Serial)?;
    }
    Ok(sum(&c))
}

fn window(side: usize, size: usize, stride: usize) -> Result<Window> {
    Window::new(side, size, stride, 1, Padding::Same)
}

fn conv(sizes: (usize, usize, usize), taps: (usize, usize), calls: usize) -> Result<f32> {
    forward(sizes, taps, 1, calls)
}

fn grouped(calls: usize) -> Result<f32> {
    forward((28, 128, 128), (3, 1), 32, calls)
}

fn forward(
    (side, in_channels, out_channels): (usize, usize, usize),
    (size, stride): (usize, usize),
    groups: usize,
    calls: usize,
) -> Result<f32> {
    let window = window(side, size, stride)?;
    let conv = Conv {
        batch: 1,
        y: window,
        x: window,
        in_channels,
        out_channels,
        groups,
    };
    let (x, w) = (numbers(conv.input_len()), numbers(conv.filter_len()));
    let mut y = vec![0.0; conv.output_len()];
    let mut packed = vec![0.0; PackedFilter::len(Direction::Forward, &conv)?];
    let filter = PackedFilter::pack(Direction::Forward, &conv, &w, &mut packed, &Serial)?;
    let forward = Forward::new(conv, Filter::Packed(filter));
    let mut scratch = vec![0.0; forward.scratch_len()?];
    for _ in 0..calls {
        forward.run(&x, black_box(&mut y), &mut scratch, &Serial)?;
    }
    Ok(sum(&y))
}

fn depthwise(size: usize, calls: usize) -> Result<f32> {
    let window = window(28, size, 1)?;
    let conv = Conv {
        batch: 1,
        y: window,
        x: window,
        in_channels: 128,
        out_channels: 128,
        groups: 128,
    };
    let (x, w) = (numbers(conv.input_len()), numbers(conv.filter_len()));
    let mut y = vec![0.0; conv.output_len()];
    for _ in 0..calls {
        Depthwise::new(conv).run(&x, &w, black_box(&mut y), &Serial)?;
    }
    Ok(sum(&y))
}

fn rows(calls: usize, kernel: fn(&[f32], usize, &mut [f32]) -> Result<()>) -> Result<f32> {
    let (x, mut y) = (numbers(64 * 1000), vec![0.0; 64 * 1000]);
    for _ in 0..calls {
        kernel(&x, 1000, black_box(&mut y))?;
    }
    Ok(sum(&y))
}

fn softmax_rows(x: &[f32], width: usize, y: &mut [f32]) -> Result<()> {
    softmax(x, width, y, &Serial)
}

fn norm_rows(x: &[f32], width: usize, y: &mut [f32]) -> Result<()> {
    normalize_rows(
        layer_norm::Kind::Layer,
        x,
        width,
        (None, None),
        1e-3,
        y,
        &Serial,
    )
}

fn gelu(calls: usize) -> Result<f32> {
    let (x, mut y) = (numbers(65536), vec![0.0; 65536]);
    for _ in 0..calls {
        map(Gelu {}, &x, black_box(&mut y), &Serial)?;
    }
    Ok(sum(&y))
}

fn lstm(calls: usize) -> Result<f32> {
    const UNITS: usize = 128;
    let weights = numbers(UNITS * 4 * UNITS);
    let len = Packed::len(UNITS, 4 * UNITS)?;
    let (mut kernel, mut recurrent) = (vec![0.0; len], vec![0.0; len]);
    let (matrix, sizes) = (Matrix::rows(&weights, 4 * UNITS), (UNITS, 4 * UNITS));
    let lstm = Lstm {
        batch: 1,
        units: UNITS,
        kernel: Packed::pack(&matrix, sizes, &mut kernel, &Serial)?,
        recurrent: Packed::pack(&matrix, sizes, &mut recurrent, &Serial)?,
        bias: None,
    };
    let x = numbers(UNITS);
    let (mut hidden, mut cell) = (vec![0.0; UNITS], vec![0.0; UNITS]);
    let mut scratch = vec![0.0; lstm.scratch_len()?];
    for _ in 0..calls {
        lstm.step(&x, black_box(&mut hidden), &mut cell, &mut scratch, &Serial)?;
    }
    Ok(sum(&hidden))
}

fn pool(calls: usize) -> Result<f32> {
    let window = window(56, 3, 2)?;
    let pooling = Pooling::new(pooling::Kind::Max, 1, 64, window, window)?;
    let x = numbers(pooling.input_len());
    let mut y = vec![0.0; pooling.output_len()];
    for _ in 0..calls {
        pooling.run(&x, black_box(&mut y), &Serial)?;
    }
    Ok(sum(&y))
}

fn resize(calls: usize) -> Result<f32> {
    let (from, to) = (Shape::new(&[1, 28, 28, 64])?, Shape::new(&[1, 56, 56, 64])?);
    let (x, mut y) = (numbers(28 * 28 * 64), vec![0.0; 56 * 56 * 64]);
    let corners = Corners {
        half_pixel: true,
        ..Corners::default()
    };
    for _ in 0..calls {
        resize_bilinear((&x, &from), (black_box(&mut y), &to), corners, &Serial)?;
    }
    Ok(sum(&y))
}

/// Numbers between -128 and 127.
fn bytes(len: usize) -> Vec<i8> {
    numbers(len).iter().map(|x| (x * 128.0) as i8).collect()
}

fn sum_of_bytes(bytes: &[i8]) -> f32 {
    bytes.iter().map(|&x| i32::from(x)).sum::<i32>() as f32
}

/// Factors, shifts and biases of channels, as those of models are.
fn factors(channels: usize, window: usize) -> [Vec<i32>; 3] {
    let shift = -(window.ilog2() as i32 / 2) - 6;
    let scaled = |by: f32| numbers(channels).into_iter().map(move |x| (x * by) as i32);
    let multiplier = scaled(1e9).map(|x| (1 << 30) + x.abs()).collect();
    [multiplier, vec![shift; channels], scaled(1000.0).collect()]
}

fn scaling<'a>([multiplier, shift, _]: &'a [Vec<i32>; 3], rescaling: Rescaling) -> Scaling<'a> {
    Scaling {
        multiplier,
        shift,
        range: Range::all(3),
        rescaling,
    }
}

fn int8_conv(
    (side, in_channels, out_channels): (usize, usize, usize),
    (size, stride): (usize, usize),
    rescaling: Rescaling,
    calls: usize,
) -> Result<f32> {
    let window = window(side, size, stride)?;
    let sizes = Conv {
        batch: 1,
        y: window,
        x: window,
        in_channels,
        out_channels,
        groups: 1,
    };
    let taps = size * size * in_channels;
    let filter = bytes(taps.next_multiple_of(4) * out_channels);
    let factors = factors(out_channels, taps);
    let conv = Int8Conv {
        sizes,
        filter: &filter,
        bias: &factors[2],
        zero: -5,
        filter_zero: 0,
        scaling: scaling(&factors, rescaling),
    };
    let (x, mut y) = (bytes(sizes.input_len()), vec![0; sizes.output_len()]);
    for _ in 0..calls {
        conv.run(&x, black_box(&mut y), &Serial)?;
    }
    Ok(sum_of_bytes(&y))
}

fn int8_depthwise(size: usize, calls: usize) -> Result<f32> {
    let window = window(28, size, 1)?;
    let sizes = Conv {
        batch: 1,
        y: window,
        x: window,
        in_channels: 128,
        out_channels: 128,
        groups: 128,
    };
    let filter = bytes(sizes.filter_len());
    let factors = factors(128, size * size);
    let layer = Int8Depthwise {
        sizes,
        filter: &filter,
        bias: &factors[2],
        zero: -5,
        filter_zero: 0,
        scaling: scaling(&factors, Rescaling::Twice),
    };
    let (x, mut y) = (bytes(sizes.input_len()), vec![0; sizes.output_len()]);
    for _ in 0..calls {
        layer.run(&x, black_box(&mut y), &Serial)?;
    }
    Ok(sum_of_bytes(&y))
}

/// How many cases there are.
#[unsafe(no_mangle)]
pub extern "C" fn cases() -> usize {
    CASES.len()
}

/// Runs a case so many times, and returns the sum of its last result; NaN if there is no such case,
/// or if its kernel refused.
#[unsafe(no_mangle)]
pub extern "C" fn calls(case: usize, count: usize) -> f32 {
    let run = CASES.get(case).map(|(_, run)| run(count));
    run.and_then(Result::ok).unwrap_or(f32::NAN)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|number| number.parse().ok());
    let Some((case, count)) = number().zip(number()) else {
        for (name, _) in CASES {
            println!("{name}");
        }
        return;
    };
    let sum = calls(case, count);
    if sum.is_nan() {
        eprintln!("case {case} is not one of {} or was refused", CASES.len());
        std::process::exit(1);
    }
    println!("{sum}");
}
