//! What the kernels reach on this machine: `cargo bench`, or `bazel run -c opt //kernels:bench`.
//!
//! Takes names of sections (`gemm`, `conv`, `depthwise`, `pooling`), or none for all, and the
//! number of threads as `--threads=N`. Prints the median of some calls of each shape.

// An error carries two shapes by value.
#![allow(clippy::result_large_err)]

use std::hint::black_box;
use std::time::Instant;

use tfp_kernels::base::error::Result;
use tfp_kernels::base::level::level;
use tfp_kernels::base::parallel::Parallel;
use tfp_kernels::base::threads::ThreadPool;
use tfp_kernels::conv::depthwise::Depthwise;
use tfp_kernels::conv::{Conv, Direction, Filter, Forward, PackedFilter, Padding, Window};
use tfp_kernels::gemm::{Gemm, Matrix, Packed};
use tfp_kernels::ops::image::pooling::{Kind, Pooling};
use tfp_kernels::simd::{Body, Simd, dispatch};

/// Calls of a shape.
const CALLS: usize = 25;

struct Peak(usize);

impl Body for Peak {
    type Out = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let (x, y) = (s.splat(black_box(0.999)), s.splat(black_box(1e-6)));
        let mut sums = [s.splat(1.0); 12];
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = s.mul_add(*sum, x, y);
            }
        }
        for sum in sums {
            black_box(s.sum(sum));
        }
        self.0 * sums.len() * 2 * S::LANES
    }
}

/// Operations per second of a thread that only multiplies and adds.
fn peak() -> f64 {
    let window = || {
        let start = Instant::now();
        dispatch(level(), Peak(50_000)) as f64 / start.elapsed().as_secs_f64()
    };
    (0..20).map(|_| window()).fold(0.0, f64::max)
}

fn report(name: &str, flops: f64, peak: f64, mut call: impl FnMut() -> Result<()>) -> Result<()> {
    let mut seconds = Vec::new();
    for _ in 0..CALLS {
        let start = Instant::now();
        call()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let (low, middle) = (seconds[0], seconds[CALLS / 2]);
    println!(
        "{name:44} {:9.4} ms {:7.1} GFLOP/s {:4.0} % of peak, best {:7.1}",
        middle * 1e3,
        flops / middle / 1e9,
        flops / middle / peak * 100.0,
        flops / low / 1e9
    );
    Ok(())
}

fn conv(side: usize, channels: (usize, usize), size: usize, stride: usize) -> Result<Conv> {
    let window = Window::new(side, size, stride, 1, Padding::Same)?;
    Ok(Conv {
        batch: 1,
        y: window,
        x: window,
        in_channels: channels.0,
        out_channels: channels.1,
        groups: 1,
    })
}

/// The part of some memory that starts at a cache line.
fn from_line(memory: &mut [f32]) -> &mut [f32] {
    let line = memory.as_ptr().align_offset(64).min(memory.len());
    &mut memory[line..]
}

fn gemms(pool: &dyn Parallel, peak: f64) -> Result<()> {
    for size in [64, 128, 256, 512, 1024, 2048] {
        let (a, b) = (vec![0.5; size * size], vec![0.25; size * size]);
        let mut c = vec![0.0; size * size];
        let flops = 2.0 * (size as f64).powi(3);
        let plain = Gemm::new(
            (size, size, size),
            Matrix::rows(&a, size),
            Matrix::rows(&b, size),
        );
        let mut scratch = vec![0.0; plain.scratch_len()? + 15];
        report(&format!("gemm {size}"), flops, peak, || {
            plain.run(&mut c, size, &mut scratch, pool)
        })?;
        let mut memory = vec![0.0; Packed::len(size, size)? + 15];
        let memory = from_line(&mut memory);
        let b = Packed::pack(&Matrix::rows(&b, size), (size, size), memory, pool)?;
        let packed = Gemm::packed(size, Matrix::rows(&a, size), b);
        report(&format!("gemm {size}, packed"), flops, peak, || {
            packed.run(&mut c, size, &mut [], pool)
        })?;
    }
    let (x, b) = (vec![0.5; 512], vec![0.25; 512 * 512]);
    let mut c = vec![0.0; 512];
    let gemv = Gemm::new((1, 512, 512), Matrix::rows(&x, 512), Matrix::rows(&b, 512));
    report("gemv 512", 2.0 * 512.0 * 512.0, peak, || {
        gemv.run(&mut c, 512, &mut [], pool)
    })
}

fn convs(pool: &dyn Parallel, peak: f64) -> Result<()> {
    for (side, channels, size, stride) in [
        (224, (3, 64), 7, 2),
        (224, (3, 32), 3, 2),
        (56, (64, 64), 1, 1),
        (56, (64, 64), 3, 1),
        (56, (64, 256), 1, 1),
        (28, (128, 128), 3, 1),
        (14, (256, 256), 3, 1),
        (14, (1024, 256), 1, 1),
        (7, (512, 512), 3, 1),
        (7, (512, 2048), 1, 1),
        (112, (32, 16), 1, 1),
        (112, (16, 96), 1, 1),
        (56, (144, 24), 1, 1),
        (14, (96, 576), 1, 1),
    ] {
        let conv = conv(side, channels, size, stride)?;
        let (x, w) = (vec![0.5; conv.input_len()], vec![0.25; conv.filter_len()]);
        let mut y = vec![0.0; conv.output_len()];
        let mut memory = vec![0.0; PackedFilter::len(Direction::Forward, &conv)? + 15];
        let memory = from_line(&mut memory);
        let filter = PackedFilter::pack(Direction::Forward, &conv, &w, memory, pool)?;
        let forward = Forward::new(conv, Filter::Packed(filter));
        let mut scratch = vec![0.0; forward.scratch_len()?];
        let name = format!("conv {side}^2 {channels:?} {size}x{size}/{stride}");
        report(&name, conv.flops() as f64, peak, || {
            forward.run(&x, &mut y, &mut scratch, pool)
        })?;
    }
    Ok(())
}

fn depthwise(pool: &dyn Parallel, peak: f64) -> Result<()> {
    for (side, channels, size, stride) in [
        (112, 32, 3, 1),
        (112, 96, 3, 2),
        (56, 144, 3, 1),
        (28, 240, 5, 1),
        (14, 480, 5, 1),
        (7, 1152, 5, 1),
    ] {
        let conv = Conv {
            groups: channels,
            ..conv(side, (channels, channels), size, stride)?
        };
        let (x, w) = (vec![0.5; conv.input_len()], vec![0.25; conv.filter_len()]);
        let mut y = vec![0.0; conv.output_len()];
        let name = format!("depthwise {side}^2 {channels} {size}x{size}/{stride}");
        report(&name, conv.flops() as f64, peak, || {
            Depthwise::new(conv).run(&x, &w, &mut y, pool)
        })?;
    }
    Ok(())
}

fn pooling(pool: &dyn Parallel, peak: f64) -> Result<()> {
    for kind in [Kind::Max, Kind::Average] {
        let window = Window::new(112, 3, 2, 1, Padding::Same)?;
        let pooling = Pooling::new(kind, 1, 64, window, window)?;
        let x = vec![0.5; pooling.input_len()];
        let mut y = vec![0.0; pooling.output_len()];
        let name = format!("{kind:?} pooling 112^2 64 3x3/2");
        report(&name, 9.0 * pooling.output_len() as f64, peak, || {
            pooling.run(&x, &mut y, pool)
        })?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = arguments
        .iter()
        .find_map(|a| a.strip_prefix("--threads=")?.parse().ok())
        .unwrap_or(1);
    let pool = ThreadPool::new(threads);
    let peak = peak() * pool.threads() as f64;
    println!(
        "{}, {} thread(s), peak {:.1} GFLOP/s",
        level().name(),
        pool.threads(),
        peak / 1e9
    );
    let names: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    type Section = fn(&dyn Parallel, f64) -> Result<()>;
    let sections: [(&str, Section); 4] = [
        ("gemm", gemms),
        ("conv", convs),
        ("depthwise", depthwise),
        ("pooling", pooling),
    ];
    for (name, section) in sections {
        if names.is_empty() || names.iter().any(|n| *n == name) {
            section(&pool, peak)?;
        }
    }
    Ok(())
}
