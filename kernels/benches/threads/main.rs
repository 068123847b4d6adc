//! Where a second thread pays: `cargo bench --bench threads`, or `bazel run -c opt
//! //kernels:threads`.
//!
//! Calls of each shape on one thread and on `--threads=N` (2) alternate in one process. Prints the
//! lower quartiles, their ratio, and how much faster so many threads multiplied registers at the
//! same time: threads of a virtual machine may have one core between them, now and then. Shapes
//! that lose are marked, unless that was so. Takes names of sections, or none for all. `--rest=N`
//! lets the workers fall asleep: there are N milliseconds before every five calls.

// An error carries two shapes by value.
#![allow(clippy::result_large_err)]

use std::time::Duration;

use tfp_kernels::base::error::Result;
use tfp_kernels::base::parallel::Serial;
use tfp_kernels::base::shape::Shape;
use tfp_kernels::conv::depthwise::Depthwise;
use tfp_kernels::conv::{
    BackwardFilter, BackwardInput, Conv, Direction, Filter, Forward, PackedFilter, Padding, Window,
};
use tfp_kernels::frame::map::map;
use tfp_kernels::frame::zip::zip;
use tfp_kernels::gemm::{Gemm, Matrix, Packed};
use tfp_kernels::ops::elementwise::binary::Add;
use tfp_kernels::ops::elementwise::unary::Tanh;
use tfp_kernels::ops::image::pooling::{Kind, Pooling};
use tfp_kernels::ops::norm::softmax::softmax;
use tfp_kernels::ops::sequence::recurrent::{Factor, LstmLayer, Walk};

use timer::Timer;

mod timer;

fn conv(
    batch: usize,
    side: usize,
    channels: (usize, usize),
    size: usize,
    stride: usize,
) -> Result<Conv> {
    let window = Window::new(side, size, stride, 1, Padding::Same)?;
    Ok(Conv {
        batch,
        y: window,
        x: window,
        in_channels: channels.0,
        out_channels: channels.1,
        groups: 1,
    })
}

/// Some numbers from a cache line on.
struct Lines(Vec<f32>, usize);

impl Lines {
    fn new(len: usize) -> Self {
        let numbers: Vec<f32> = (0..len + 15).map(|i| (i % 7) as f32 * 0.25 - 0.5).collect();
        let at = numbers.as_ptr().align_offset(64).min(15);
        Self(numbers, at)
    }

    fn get(&mut self) -> &mut [f32] {
        let len = self.0.len() - 15;
        &mut self.0[self.1..][..len]
    }
}

/// Sizes of products: rows, columns, and what is summed.
const GEMMS: [(usize, usize, usize); 26] = [
    (64, 64, 64),
    (80, 80, 80),
    (96, 96, 96),
    (128, 128, 128),
    (256, 256, 256),
    (384, 384, 384),
    (512, 512, 512),
    (768, 768, 768),
    (1024, 1024, 1024),
    (1, 512, 512),
    (1, 1000, 1280),
    (2, 512, 512),
    (4, 512, 512),
    (8, 512, 784),
    (8, 512, 512),
    (8, 10, 512),
    (16, 512, 512),
    (32, 512, 784),
    (32, 512, 512),
    (32, 10, 512),
    (64, 512, 512),
    (4, 2048, 2048),
    (16, 4096, 1024),
    (64, 4096, 4096),
    (128, 64, 128),
    (49, 160, 960),
];

fn gemms(timer: &mut Timer) -> Result<()> {
    for (m, n, k) in GEMMS {
        let (mut a, mut b, mut c) = (Lines::new(m * k), Lines::new(k * n), Lines::new(m * n));
        let (a, b, c) = (a.get(), b.get(), c.get());
        let plain = Gemm::new((m, n, k), Matrix::rows(a, k), Matrix::rows(b, n));
        let mut scratch = Lines::new(plain.scratch_len()?);
        timer.time(&format!("gemm {m}x{n}x{k}"), |parallel| {
            plain.run(c, n, scratch.get(), parallel)
        })?;
        let mut memory = Lines::new(Packed::len(k, n)?);
        let b = Packed::pack(&Matrix::rows(b, n), (k, n), memory.get(), &Serial)?;
        let packed = Gemm::packed(m, Matrix::rows(a, k), b);
        timer.time(&format!("gemm {m}x{n}x{k}, packed"), |parallel| {
            packed.run(c, n, &mut [], parallel)
        })?;
    }
    Ok(())
}

/// Convolutions: images, side, channels, taps and stride.
type Layer = (usize, usize, (usize, usize), usize, usize);

const CONVS: [Layer; 29] = [
    (1, 224, (3, 64), 7, 2),
    (1, 224, (3, 32), 3, 2),
    (1, 32, (3, 16), 3, 1),
    (1, 28, (1, 32), 3, 1),
    (1, 28, (32, 64), 3, 1),
    (1, 16, (16, 32), 3, 1),
    (1, 14, (32, 64), 3, 1),
    (1, 8, (64, 64), 3, 1),
    (1, 8, (32, 32), 3, 1),
    (1, 56, (64, 64), 1, 1),
    (1, 56, (64, 64), 3, 1),
    (1, 28, (128, 128), 3, 1),
    (1, 14, (256, 256), 3, 1),
    (1, 14, (1024, 256), 1, 1),
    (1, 7, (512, 512), 3, 1),
    (1, 7, (512, 2048), 1, 1),
    (1, 112, (32, 16), 1, 1),
    (1, 112, (16, 96), 1, 1),
    (1, 56, (144, 24), 1, 1),
    (1, 28, (192, 32), 1, 1),
    (1, 28, (32, 64), 1, 1),
    (1, 14, (64, 384), 1, 1),
    (1, 14, (96, 576), 1, 1),
    (1, 14, (40, 240), 1, 1),
    (1, 7, (160, 960), 1, 1),
    (1, 7, (960, 160), 1, 1),
    (1, 1, (960, 240), 1, 1),
    (1, 1, (64, 16), 1, 1),
    (8, 14, (256, 256), 3, 1),
];

fn convs(timer: &mut Timer) -> Result<()> {
    for (batch, side, channels, size, stride) in CONVS {
        let conv = conv(batch, side, channels, size, stride)?;
        let (mut x, mut y) = (Lines::new(conv.input_len()), Lines::new(conv.output_len()));
        let (mut w, mut memory) = (
            Lines::new(conv.filter_len()),
            Lines::new(PackedFilter::len(Direction::Forward, &conv)?),
        );
        let (x, y) = (x.get(), y.get());
        let filter = PackedFilter::pack(Direction::Forward, &conv, w.get(), memory.get(), &Serial)?;
        let forward = Forward::new(conv, Filter::Packed(filter));
        let mut scratch = Lines::new(forward.scratch_len()?);
        let name = format!("conv {batch}x{side}^2 {channels:?} {size}x{size}/{stride}");
        timer.time(&name, |parallel| forward.run(x, y, scratch.get(), parallel))?;
    }
    Ok(())
}

fn gradients(timer: &mut Timer) -> Result<()> {
    for (batch, side, channels, size, stride) in CONVS {
        let conv = conv(batch, side, channels, size, stride)?;
        let (mut x, mut y) = (Lines::new(conv.input_len()), Lines::new(conv.output_len()));
        let mut w = Lines::new(conv.filter_len());
        let (x, y, w) = (x.get(), y.get(), w.get());
        let name = format!("{batch}x{side}^2 {channels:?} {size}x{size}/{stride}");
        let by_filter = BackwardFilter::new(conv);
        let mut scratch = Lines::new(by_filter.scratch_len()?);
        timer.time(&format!("by filter {name}"), |parallel| {
            by_filter.run(x, y, w, scratch.get(), parallel)
        })?;
        let by_input = BackwardInput::new(conv, Filter::Plain(w));
        let mut scratch = Lines::new(by_input.scratch_len()?);
        timer.time(&format!("by input {name}"), |parallel| {
            by_input.run(y, x, scratch.get(), parallel)
        })?;
    }
    Ok(())
}

fn depthwise(timer: &mut Timer) -> Result<()> {
    for (side, channels, size, stride) in [
        (112, 32, 3, 1),
        (112, 96, 3, 2),
        (56, 144, 3, 1),
        (56, 24, 3, 1),
        (28, 32, 3, 1),
        (28, 192, 3, 2),
        (28, 240, 5, 1),
        (14, 64, 3, 1),
        (14, 384, 3, 1),
        (14, 480, 5, 1),
        (14, 576, 3, 2),
        (7, 576, 3, 1),
        (7, 960, 3, 1),
        (7, 1152, 5, 1),
        (4, 512, 3, 1),
    ] {
        let conv = Conv {
            groups: channels,
            ..conv(1, side, (channels, channels), size, stride)?
        };
        let (mut x, mut y) = (Lines::new(conv.input_len()), Lines::new(conv.output_len()));
        let mut w = Lines::new(conv.filter_len());
        let (x, y, w) = (x.get(), y.get(), w.get());
        let name = format!("{side}^2 {channels} {size}x{size}/{stride}");
        let depthwise = Depthwise::new(conv);
        timer.time(&format!("depthwise {name}"), |parallel| {
            depthwise.run(x, w, y, parallel)
        })?;
        timer.time(&format!("depthwise by input {name}"), |parallel| {
            depthwise.backward_input(y, w, x, parallel)
        })?;
        timer.time(&format!("depthwise by filter {name}"), |parallel| {
            depthwise.backward_filter(x, y, w, parallel)
        })?;
    }
    Ok(())
}

fn pooling(timer: &mut Timer) -> Result<()> {
    for (kind, side, channels, size, stride) in [
        (Kind::Max, 112, 64, 3, 2),
        (Kind::Max, 56, 32, 2, 2),
        (Kind::Max, 28, 32, 2, 2),
        (Kind::Max, 14, 64, 2, 2),
        (Kind::Average, 112, 64, 3, 2),
        (Kind::Average, 14, 256, 2, 2),
        (Kind::Average, 7, 2048, 7, 7),
        (Kind::Average, 7, 1280, 7, 7),
        (Kind::Average, 7, 512, 7, 7),
    ] {
        let window = Window::new(side, size, stride, 1, Padding::Same)?;
        let pooling = Pooling::new(kind, 1, channels, window, window)?;
        let (mut x, mut y) = (
            Lines::new(pooling.input_len()),
            Lines::new(pooling.output_len()),
        );
        let (x, y) = (x.get(), y.get());
        let name = format!("{kind:?} pooling {side}^2 {channels} {size}x{size}/{stride}");
        timer.time(&name, |parallel| pooling.run(x, y, parallel))?;
    }
    Ok(())
}

/// Lengths of tensors, and of rows.
const LENGTHS: [usize; 8] = [
    1 << 12,
    1 << 14,
    1 << 15,
    1 << 16,
    1 << 17,
    1 << 18,
    1 << 20,
    1 << 22,
];

fn elementwise(timer: &mut Timer) -> Result<()> {
    for len in LENGTHS {
        let (mut a, mut b, mut c) = (Lines::new(len), Lines::new(len), Lines::new(len));
        let (a, b, c) = (a.get(), b.get(), c.get());
        let shape = Shape::new(&[len])?;
        timer.time(&format!("add {len}"), |parallel| {
            zip(Add, (a, &shape), (b, &shape), c, parallel)
        })?;
        timer.time(&format!("tanh {len}"), |parallel| map(Tanh, a, c, parallel))?;
        for width in [10, 128, 1000] {
            let whole = len / width * width;
            timer.time(&format!("softmax {}x{width}", len / width), |parallel| {
                softmax(&a[..whole], width, &mut c[..whole], parallel)
            })?;
        }
    }
    Ok(())
}

fn lstm(timer: &mut Timer) -> Result<()> {
    for (batch, steps, inputs, units) in [
        (1, 50, 32, 32),
        (1, 50, 64, 64),
        (1, 50, 64, 128),
        (1, 50, 256, 256),
        (2, 50, 64, 128),
        (3, 50, 64, 128),
        (4, 50, 64, 128),
        (8, 50, 64, 128),
        (16, 50, 64, 128),
        (32, 50, 64, 128),
        (32, 50, 32, 32),
        (8, 50, 256, 256),
        (32, 50, 256, 256),
        (32, 50, 512, 512),
    ] {
        let columns = 4 * units;
        let mut memory = [inputs, units].map(|rows| Lines::new(rows * columns));
        let numbers = Lines::new(inputs.max(units) * columns).0;
        let [kernel, recurrent] = &mut memory;
        let pack = |rows: usize, memory| {
            let matrix = Matrix::rows(&numbers, columns);
            Packed::pack(&matrix, (rows, columns), memory, &Serial).map(Factor::packed)
        };
        let layer = LstmLayer {
            walk: Walk {
                batch,
                steps,
                units,
                reverse: false,
                mask: None,
                zero_masked: false,
            },
            kernel: pack(inputs, kernel.get())?,
            recurrent: pack(units, recurrent.get())?,
            bias: None,
        };
        let mut x = Lines::new(batch * steps * inputs);
        let (mut hidden, mut cell) = (Lines::new(batch * units), Lines::new(batch * units));
        let mut sequence = Lines::new(batch * steps * units);
        let mut scratch = Lines::new(layer.scratch_len()?);
        timer.time(
            &format!("lstm {batch}x{steps}x{inputs} -> {units}"),
            |parallel| {
                let (hidden, cell) = (hidden.get(), cell.get());
                let (sequence, scratch) = (sequence.get(), scratch.get());
                layer.run(x.get(), hidden, cell, sequence, scratch, parallel)
            },
        )?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str| {
        let found = arguments.iter().find_map(|a| a.strip_prefix(flag));
        found.and_then(|value| value.parse().ok())
    };
    let rest = Duration::from_millis(number("--rest=").unwrap_or(0) as u64);
    let mut timer = Timer::new(number("--threads=").unwrap_or(2), rest);
    let names: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    type Section = fn(&mut Timer) -> Result<()>;
    let sections: [(&str, Section); 7] = [
        ("gemm", gemms),
        ("conv", convs),
        ("gradient", gradients),
        ("depthwise", depthwise),
        ("pooling", pooling),
        ("elementwise", elementwise),
        ("lstm", lstm),
    ];
    for (name, section) in sections {
        if names.is_empty() || names.iter().any(|n| *n == name) {
            section(&mut timer)?;
        }
    }
    timer.summarize();
    Ok(())
}
