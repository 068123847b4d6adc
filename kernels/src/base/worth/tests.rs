//! What kernels divide: counted, not timed.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::base::error::Result;
use crate::base::shape::Shape;
use crate::conv::depthwise::Depthwise;
use crate::conv::{BackwardFilter, BackwardInput, Conv, Filter, Forward, Padding, Window};
use crate::frame::zip::zip;
use crate::gemm::{Gemm, Matrix};
use crate::ops::elementwise::binary::Add;
use crate::ops::image::pooling::{Kind, Pooling};
use crate::ops::norm::softmax::softmax;

/// Says that it has some threads, and counts the tasks that it is given beside the caller's.
struct Counting {
    threads: usize,
    tasks: AtomicUsize,
}

impl Parallel for Counting {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.tasks
            .fetch_add(tasks.saturating_sub(1), Ordering::Relaxed);
        (0..tasks).for_each(task);
    }
}

/// The tasks that a kernel gives away with so many threads.
fn given(threads: usize, call: impl FnOnce(&dyn Parallel) -> Result<()>) -> usize {
    let counting = Counting {
        threads,
        tasks: AtomicUsize::new(0),
    };
    call(&counting).unwrap();
    counting.tasks.into_inner()
}

/// Whether a kernel is divided.
fn divides(call: impl Fn(&dyn Parallel) -> Result<()>) -> bool {
    let tasks = [2, 3, 8].map(|threads| given(threads, &call));
    // Either all pools have a part of it, or none has.
    assert!(tasks.iter().all(|&count| (count > 0) == (tasks[0] > 0)));
    tasks[0] > 0
}

fn product((m, n, k): (usize, usize, usize)) -> bool {
    let (a, b) = (vec![0.5; m * k], vec![0.25; k * n]);
    let gemm = Gemm::new((m, n, k), Matrix::rows(&a, k), Matrix::rows(&b, n));
    divides(|parallel| {
        let mut scratch = vec![0.0; gemm.scratch_len()?];
        gemm.run(&mut vec![0.0; m * n], n, &mut scratch, parallel)
    })
}

#[test]
fn products_are_divided_that_take_long() {
    for sizes in [
        (8, 10, 512),
        (32, 10, 512),
        (64, 64, 64),
        (4, 64, 256),
        (1, 128, 128),
        (128, 1, 128),
        (1, 200, 200),
    ] {
        assert!(!product(sizes), "{sizes:?}");
    }
    for sizes in [
        (8, 512, 512),
        (2, 512, 512),
        (80, 80, 80),
        (128, 64, 128),
        (1, 1024, 512),
        (1024, 1, 512),
        (256, 256, 9),
    ] {
        assert!(product(sizes), "{sizes:?}");
    }
}

fn conv(side: usize, channels: (usize, usize), size: usize, groups: usize) -> Conv {
    let window = Window::new(side, size, 1, 1, Padding::Same).unwrap();
    Conv {
        batch: 1,
        y: window,
        x: window,
        in_channels: channels.0,
        out_channels: channels.1,
        groups,
    }
}

/// Whether a convolution is divided, its gradient by the input, and that by the filter.
fn convolution(side: usize, channels: (usize, usize), size: usize) -> [bool; 3] {
    let conv = conv(side, channels, size, 1);
    let [x, w, y] =
        [conv.input_len(), conv.filter_len(), conv.output_len()].map(|len| vec![0.5; len]);
    let forward = Forward::new(conv, Filter::Plain(&w));
    let by_input = BackwardInput::new(conv, Filter::Plain(&w));
    let by_filter = BackwardFilter::new(conv);
    [
        divides(|parallel| {
            let mut scratch = vec![0.0; forward.scratch_len()?];
            forward.run(&x, &mut vec![0.0; y.len()], &mut scratch, parallel)
        }),
        divides(|parallel| {
            let mut scratch = vec![0.0; by_input.scratch_len()?];
            by_input.run(&y, &mut vec![0.0; x.len()], &mut scratch, parallel)
        }),
        divides(|parallel| {
            let mut scratch = vec![0.0; by_filter.scratch_len()?];
            by_filter.run(&x, &y, &mut vec![0.0; w.len()], &mut scratch, parallel)
        }),
    ]
}

#[test]
fn convolutions_are_divided_that_take_long() {
    for (side, channels, size) in [(1, (64, 16), 1), (4, (8, 8), 3), (7, (16, 16), 1)] {
        assert_eq!(convolution(side, channels, size), [false; 3], "{side}");
    }
    for (side, channels, size) in [(14, (64, 64), 3), (28, (32, 64), 1), (7, (64, 512), 1)] {
        assert_eq!(convolution(side, channels, size), [true; 3], "{side}");
    }
    // Many sums of few terms.
    assert!(convolution(28, (1, 32), 3)[0]);
}

/// Whether a convolution channel by channel is divided, and its two gradients.
fn depthwise(side: usize, channels: usize) -> [bool; 3] {
    let conv = conv(side, (channels, channels), 3, channels);
    let [x, w, y] =
        [conv.input_len(), conv.filter_len(), conv.output_len()].map(|len| vec![0.5; len]);
    let depthwise = Depthwise::new(conv);
    [
        divides(|parallel| depthwise.run(&x, &w, &mut vec![0.0; y.len()], parallel)),
        divides(|parallel| depthwise.backward_input(&y, &w, &mut vec![0.0; x.len()], parallel)),
        divides(|parallel| depthwise.backward_filter(&x, &y, &mut vec![0.0; w.len()], parallel)),
    ]
}

#[test]
fn gradients_are_divided_before_convolutions_channel_by_channel() {
    assert_eq!(depthwise(4, 256), [false; 3]);
    assert_eq!(depthwise(14, 80), [false, true, true]);
    assert_eq!(depthwise(7, 960), [true; 3]);
    assert_eq!(depthwise(28, 192), [true; 3]);
}

fn pooling(side: usize, channels: usize, size: usize) -> bool {
    let window = Window::new(side, size, size, 1, Padding::Valid).unwrap();
    let pooling = Pooling::new(Kind::Max, 1, channels, window, window).unwrap();
    let x = vec![0.5; pooling.input_len()];
    divides(|parallel| pooling.run(&x, &mut vec![0.0; pooling.output_len()], parallel))
}

#[test]
fn pooling_is_divided_by_its_windows() {
    assert!(!pooling(14, 64, 2) && !pooling(28, 32, 2) && !pooling(7, 512, 7));
    assert!(pooling(56, 32, 2) && pooling(42, 64, 3));
}

#[test]
fn rows_and_elements_are_divided_by_what_each_takes() {
    let add = |len: usize| {
        let (x, shape) = (vec![0.5_f32; len], Shape::new(&[len]).unwrap());
        divides(|parallel| {
            let (a, b) = ((&x[..], &shape), (&x[..], &shape));
            zip(Add, a, b, &mut vec![0.0; len], parallel)
        })
    };
    assert!(!add(30_000) && add(40_000));
    let rows = |count: usize, width: usize| {
        let x = vec![0.5; count * width];
        divides(|parallel| softmax(&x, width, &mut vec![0.0; x.len()], parallel))
    };
    assert!(!rows(32, 128) && !rows(4, 1000) && !rows(1, 100_000));
    assert!(rows(128, 128) && rows(500, 10));
}

#[test]
fn more_work_never_repays_less() {
    let works: [fn(usize) -> Work; 9] = [
        |count| Work::Product(count, count / 8),
        Work::Depthwise,
        Work::DepthwiseGradient,
        Work::Weights,
        |count| Work::Windows(count, 9),
        Work::Moved,
        Work::Packed,
        Work::Scores,
        |count| Work::Elements(count, 3),
    ];
    for work in works {
        let counts = [0, 1 << 8, 1 << 14, 1 << 18, 1 << 24, usize::MAX];
        let repays = counts.map(|count| work(count).repays());
        assert!(repays.is_sorted() && !repays[1] && repays[4]);
    }
    let (long, short) = (Work::Moved(100), Work::Moved(10));
    assert_eq!((long.or(short), short.or(long)), (long, long));
}
