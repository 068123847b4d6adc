//! The kernels behind C functions, for the benchmark that compares them with their peers.
//!
//! Every function returns the seconds that the kernel took, or a negative number if it refused
//! its arguments.

#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
// An error carries two shapes by value.
#![allow(clippy::result_large_err)]

mod images;

use std::hint::black_box;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use tfp_kernels::base::error::Result;
use tfp_kernels::base::level::level;
use tfp_kernels::base::parallel::{Parallel, Serial};
use tfp_kernels::base::shape::Shape;
use tfp_kernels::base::threads::ThreadPool;
use tfp_kernels::conv::depthwise::Depthwise;
use tfp_kernels::conv::{Conv, Direction, Filter, Forward, PackedFilter, Padding, Window};
use tfp_kernels::frame::map::map;
use tfp_kernels::gemm::{Activation, Gemm, Matrix};
use tfp_kernels::ops::elementwise::activation::Gelu;
use tfp_kernels::ops::elementwise::binary::add_v2;
use tfp_kernels::ops::elementwise::scale_shift::scale_shift;
use tfp_kernels::ops::elementwise::unary::{erf, exp, log, relu, sigmoid, tanh};
use tfp_kernels::ops::image::pooling::{self, Pooling};
use tfp_kernels::ops::norm::layer_norm::{Kind, normalize_rows};
use tfp_kernels::ops::norm::softmax::softmax;
use tfp_kernels::simd::{Body, Simd, dispatch};

/// Does some work on the calling thread, or on a pool of as many threads as the last caller asked
/// for that wanted several; returns its seconds.
fn with_pool(threads: usize, work: impl FnOnce(&dyn Parallel) -> Result<()>) -> f64 {
    static POOL: OnceLock<Mutex<ThreadPool>> = OnceLock::new();
    if threads == 1 {
        return seconds(&Serial, work);
    }
    let pool = POOL.get_or_init(|| Mutex::new(ThreadPool::new(threads)));
    let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
    if pool.threads() != threads {
        *pool = ThreadPool::new(threads);
    }
    seconds(&*pool, work)
}

fn seconds(pool: &dyn Parallel, work: impl FnOnce(&dyn Parallel) -> Result<()>) -> f64 {
    let start = Instant::now();
    match work(pool) {
        Ok(()) => start.elapsed().as_secs_f64(),
        Err(_) => -1.0,
    }
}

/// Does some work with at least so much scratch memory, which a caller has before it calls.
fn with_scratch(needed: Result<usize>, work: impl FnOnce(&mut [f32]) -> f64) -> f64 {
    static SCRATCH: Mutex<Vec<f32>> = Mutex::new(Vec::new());
    let mut scratch = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(needed) = needed else {
        return -1.0;
    };
    if scratch.len() < needed {
        scratch.resize(needed, 0.0);
    }
    work(&mut scratch)
}

/// Independent multiply-adds in all registers that the micro-kernels use.
struct Peak(usize);

impl Body for Peak {
    type Out = (f32, usize);

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f32, usize) {
        let (x, y) = (s.splat(black_box(0.999)), s.splat(black_box(1e-6)));
        let mut sums = [s.splat(1.0); 12];
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = s.mul_add(*sum, x, y);
            }
        }
        let mut total = s.zero();
        for sum in sums {
            total = s.add(total, sum);
        }
        (s.sum(total), self.0 * sums.len() * 2 * S::LANES)
    }
}

/// Seconds per floating-point operation, if all threads do nothing but multiply and add.
#[unsafe(no_mangle)]
pub extern "C" fn bench_peak(threads: usize) -> f64 {
    let flops = AtomicUsize::new(0);
    let seconds = with_pool(threads, |pool| {
        pool.run(threads, &|_| {
            let (sum, done) = dispatch(level(), Peak(400_000));
            black_box(sum);
            flops.fetch_add(done, Ordering::Relaxed);
        });
        Ok(())
    });
    seconds / flops.into_inner() as f64
}

/// `c = a * b`, dense, row-major.
///
/// # Safety
/// The pointers are valid for `m * k`, `k * n` and `m * n` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_gemm(
    threads: usize,
    m: usize,
    n: usize,
    k: usize,
    a: *const f32,
    b: *const f32,
    c: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let (a, b, c) = unsafe {
        (
            from_raw_parts(a, m * k),
            from_raw_parts(b, k * n),
            from_raw_parts_mut(c, m * n),
        )
    };
    let gemm = Gemm::new((m, n, k), Matrix::rows(a, k), Matrix::rows(b, n));
    with_scratch(gemm.scratch_len().map(|len| len + 15), |scratch| {
        with_pool(threads, |pool| gemm.run(c, n, scratch, pool))
    })
}

/// A convolution: batch, height, width, input and output channels, rows and columns of the
/// filter, stride, whether the padding is SAME, groups.
fn conv(sizes: &[usize; 10]) -> Result<Conv> {
    let [
        batch,
        height,
        width,
        in_channels,
        out_channels,
        rows,
        columns,
        stride,
        same,
        groups,
    ] = *sizes;
    let padding = if same == 1 {
        Padding::Same
    } else {
        Padding::Valid
    };
    Ok(Conv {
        batch,
        y: Window::new(height, rows, stride, 1, padding)?,
        x: Window::new(width, columns, stride, 1, padding)?,
        in_channels,
        out_channels,
        groups,
    })
}

fn is_depthwise(conv: &Conv) -> bool {
    conv.groups > 1 && conv.groups == conv.in_channels
}

/// Elements of the packed filter.
///
/// # Safety
/// `sizes` is valid for ten elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_conv_packed_len(sizes: *const [usize; 10]) -> usize {
    // SAFETY: the caller's promise.
    let Ok(conv) = conv(unsafe { &*sizes }) else {
        return 0;
    };
    if is_depthwise(&conv) {
        return conv.filter_len();
    }
    PackedFilter::len(Direction::Forward, &conv).unwrap_or(0)
}

/// Packs a filter.
///
/// # Safety
/// `filter` is valid for the filter's elements, `packed` for those of the packed one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_conv_pack(
    sizes: *const [usize; 10],
    filter: *const f32,
    packed: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let Ok(conv) = conv(unsafe { &*sizes }) else {
        return -1.0;
    };
    // SAFETY: as above.
    let len = unsafe { bench_conv_packed_len(sizes) };
    // SAFETY: as above.
    let (filter, packed) = unsafe {
        (
            from_raw_parts(filter, conv.filter_len()),
            from_raw_parts_mut(packed, len),
        )
    };
    with_pool(1, |pool| {
        if is_depthwise(&conv) {
            packed.copy_from_slice(filter);
            return Ok(());
        }
        PackedFilter::pack(Direction::Forward, &conv, filter, packed, pool).map(|_| ())
    })
}

/// A convolution with a packed filter and a bias, channels last.
///
/// # Safety
/// The pointers are valid for the elements of input, packed filter, bias and output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_conv(
    threads: usize,
    sizes: *const [usize; 10],
    input: *const f32,
    packed: *const f32,
    bias: *const f32,
    output: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let Ok(conv) = conv(unsafe { &*sizes }) else {
        return -1.0;
    };
    // SAFETY: as above.
    let len = unsafe { bench_conv_packed_len(sizes) };
    // SAFETY: as above.
    let (input, packed, bias, output) = unsafe {
        (
            from_raw_parts(input, conv.input_len()),
            from_raw_parts(packed, len),
            from_raw_parts(bias, conv.out_channels),
            from_raw_parts_mut(output, conv.output_len()),
        )
    };
    let needed = if is_depthwise(&conv) {
        Ok(0)
    } else {
        PackedFilter::from_packed(Direction::Forward, &conv, packed)
            .and_then(|filter| Forward::new(conv, Filter::Packed(filter)).scratch_len())
    };
    with_scratch(needed, |scratch| {
        with_pool(threads, |pool| {
            if is_depthwise(&conv) {
                let depthwise = Depthwise {
                    bias: Some(bias),
                    ..Depthwise::new(conv)
                };
                return depthwise.run(input, packed, output, pool);
            }
            let filter = PackedFilter::from_packed(Direction::Forward, &conv, packed)?;
            let forward = Forward {
                bias: Some(bias),
                ..Forward::new(conv, Filter::Packed(filter))
            };
            forward.run(input, output, scratch, pool)
        })
    })
}

/// An operation of `n` elements: 0 copy, 1 relu, 2 exp, 3 tanh, 4 sigmoid, 5 erf, 6 log, 7 gelu.
///
/// # Safety
/// The pointers are valid for `n` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_unary(
    threads: usize,
    op: usize,
    n: usize,
    x: *const f32,
    y: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let (x, y) = unsafe { (from_raw_parts(x, n), from_raw_parts_mut(y, n)) };
    with_pool(threads, |pool| match op {
        0 => {
            y.copy_from_slice(x);
            Ok(())
        }
        1 => relu(x, y, pool),
        2 => exp(x, y, pool),
        3 => tanh(x, y, pool),
        4 => sigmoid(x, y, pool),
        5 => erf(x, y, pool),
        6 => log(x, y, pool),
        _ => map(Gelu {}, x, y, pool),
    })
}

/// The sum of two vectors of `n` elements.
///
/// # Safety
/// The pointers are valid for `n` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_add(
    threads: usize,
    n: usize,
    x: *const f32,
    y: *const f32,
    z: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let (x, y, z) = unsafe {
        (
            from_raw_parts(x, n),
            from_raw_parts(y, n),
            from_raw_parts_mut(z, n),
        )
    };
    with_pool(threads, |pool| {
        let shape = Shape::new(&[n])?;
        add_v2((x, &shape), (y, &shape), z, pool)
    })
}

/// Rows of `width` elements: 0 softmax, 1 layer normalisation, 2 factor and shift per column.
///
/// # Safety
/// The pointers are valid for `rows * width` elements, those of the parameters for `width`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_rows(
    threads: usize,
    op: usize,
    sizes: *const [usize; 2],
    x: *const f32,
    scale: *const f32,
    shift: *const f32,
    y: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let [rows, width] = unsafe { *sizes };
    // SAFETY: the caller's promise.
    let (x, scale, shift, y) = unsafe {
        (
            from_raw_parts(x, rows * width),
            from_raw_parts(scale, width),
            from_raw_parts(shift, width),
            from_raw_parts_mut(y, rows * width),
        )
    };
    with_pool(threads, |pool| match op {
        0 => softmax(x, width, y, pool),
        1 => {
            let parameters = (Some(scale), Some(shift));
            normalize_rows(Kind::Layer, x, width, parameters, 1e-3, y, pool)
        }
        _ => scale_shift(Some(x), (scale, shift), &Activation::None, y, pool),
    })
}

/// A pooling without padding of one image: whether it takes the mean, then side, channels, window
/// and stride.
///
/// # Safety
/// `sizes` is valid for five elements, the other pointers for those of input and output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_pool(
    threads: usize,
    sizes: *const [usize; 5],
    x: *const f32,
    y: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let [mean, side, channels, size, stride] = unsafe { *sizes };
    let kind = if mean == 1 {
        pooling::Kind::Average
    } else {
        pooling::Kind::Max
    };
    let pooling = Window::new(side, size, stride, 1, Padding::Valid)
        .and_then(|window| Pooling::new(kind, 1, channels, window, window));
    let Ok(pooling) = pooling else {
        return -1.0;
    };
    // SAFETY: the caller's promise.
    let (x, y) = unsafe {
        (
            from_raw_parts(x, pooling.input_len()),
            from_raw_parts_mut(y, pooling.output_len()),
        )
    };
    with_pool(threads, |pool| pooling.run(x, y, pool))
}

/// A perceptron of 6, 64, 8 and 4 units with `relu` between, `calls` times. The weights are those
/// of each layer, then its bias.
///
/// # Safety
/// `x` is valid for 6 elements, `weights` for 1004, `y` for 4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_mlp(
    calls: usize,
    x: *const f32,
    weights: *const f32,
    y: *mut f32,
) -> f64 {
    // SAFETY: the caller's promise.
    let (x, weights, y) = unsafe {
        (
            from_raw_parts(x, 6),
            from_raw_parts(weights, 1004),
            from_raw_parts_mut(y, 4),
        )
    };
    let (w1, rest) = weights.split_at(6 * 64);
    let (b1, rest) = rest.split_at(64);
    let (w2, rest) = rest.split_at(64 * 8);
    let (b2, rest) = rest.split_at(8);
    let (w3, b3) = rest.split_at(8 * 4);
    let dense = |x: &[f32], w: &[f32], bias: &[f32], activation, y: &mut [f32]| {
        let (k, n) = (x.len(), y.len());
        let gemm = Gemm {
            bias: Some(bias),
            activation,
            ..Gemm::new((1, n, k), Matrix::rows(x, k), Matrix::rows(w, n))
        };
        gemm.run(y, n, &mut [], &Serial)
    };
    let start = Instant::now();
    for _ in 0..calls {
        let (mut first, mut second) = ([0.0; 64], [0.0; 8]);
        let done = dense(black_box(x), w1, b1, Activation::RELU, &mut first)
            .and_then(|()| dense(&first, w2, b2, Activation::RELU, &mut second))
            .and_then(|()| dense(&second, w3, b3, Activation::None, y));
        if done.is_err() {
            return -1.0;
        }
        black_box(&mut *y);
    }
    start.elapsed().as_secs_f64()
}
