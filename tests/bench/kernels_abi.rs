//! The kernels behind C functions, for the benchmark that compares them with their peers.
//!
//! Every function returns the seconds that the kernel took, or a negative number if it refused
//! its arguments.

#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
// An error carries two shapes by value.
#![allow(clippy::result_large_err)]

use std::hint::black_box;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use tfp_kernels::conv::depthwise::Depthwise;
use tfp_kernels::conv::{Conv, Direction, Filter, Forward, PackedFilter, Padding, Window};
use tfp_kernels::error::Result;
use tfp_kernels::gemm::{Gemm, Matrix};
use tfp_kernels::level::level;
use tfp_kernels::parallel::Parallel;
use tfp_kernels::simd::{Body, Simd, dispatch};
use tfp_kernels::threads::ThreadPool;

/// The pool of as many threads as the last caller asked for.
fn with_pool(threads: usize, work: impl FnOnce(&dyn Parallel) -> Result<()>) -> f64 {
    static POOL: OnceLock<Mutex<ThreadPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| Mutex::new(ThreadPool::new(threads)));
    let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
    if pool.threads() != threads {
        *pool = ThreadPool::new(threads);
    }
    let start = Instant::now();
    match work(&*pool) {
        Ok(()) => start.elapsed().as_secs_f64(),
        Err(_) => -1.0,
    }
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

/// Floating-point operations per second of one thread that does nothing but multiply and add:
/// the best of some short windows.
#[unsafe(no_mangle)]
pub extern "C" fn bench_peak() -> f64 {
    let mut best = 0.0_f64;
    for _ in 0..20 {
        let start = Instant::now();
        let (sum, flops) = dispatch(level(), Peak(100_000));
        black_box(sum);
        best = best.max(flops as f64 / start.elapsed().as_secs_f64());
    }
    best
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
    static SCRATCH: Mutex<Vec<f32>> = Mutex::new(Vec::new());
    let mut scratch = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(needed) = gemm.scratch_len() else {
        return -1.0;
    };
    if scratch.len() < needed {
        scratch.resize(needed, 0.0);
    }
    with_pool(threads, |pool| gemm.run(c, n, &mut scratch, pool))
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
        forward.run(input, output, &mut [], pool)
    })
}
