//! Answers how much scratch memory kernels need, for the test of the planner: a line of words in, a
//! number out. `TFP_KERNELS` names the SIMD level.
// The kernels' error carries two shapes by value.
#![allow(clippy::result_large_err)]

use std::io::{BufWriter, Write, stdin, stdout};

use tfp_kernels::base::error::Result;
use tfp_kernels::base::parallel::Serial;
use tfp_kernels::base::shape::Shape;
use tfp_kernels::conv::chain::{Chain, Link};
use tfp_kernels::conv::depthwise::Depthwise;
use tfp_kernels::conv::{
    BackwardInput, Conv, Direction, Filter, Forward, PackedFilter, Padding, Window,
};
use tfp_kernels::gemm::{Activation, Gemm, Matrix, Packed};
use tfp_kernels::ops::image::suppress::{Limits, suppress};
use tfp_kernels::ops::matrix::batch_mat_mul_v2::BatchMatMul;
use tfp_kernels::ops::matrix::linear_system::{log_determinant, solve};
use tfp_kernels::ops::sequence::attention::Attention;
use tfp_kernels::ops::sequence::recurrent::{
    Factor, GruLayer, LstmLayer, Reset, SimpleRnnLayer, Walk,
};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut out = BufWriter::new(stdout().lock());
    for line in stdin().lines() {
        let line = line?;
        let (kind, sizes) = line.split_once(' ').ok_or("expected a kind and sizes")?;
        let sizes: Vec<usize> = sizes
            .split(' ')
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let len = scratch_len(kind, &sizes).map_err(|error| format!("{line}: {error}"))?;
        writeln!(out, "{}", len.ok_or(format!("{line}: unknown"))?)?;
    }
    Ok(out.flush()?)
}

/// The elements that a kernel asks for; `None` for a question of another form.
fn scratch_len(kind: &str, sizes: &[usize]) -> Result<Option<usize>> {
    Ok(Some(match (kind, sizes) {
        ("product", &[m, n, k]) => {
            let (a, b) = (Matrix::rows(&[], k), Matrix::rows(&[], n));
            Gemm::new((m, n, k), a, b).scratch_len()?
        }
        ("matmul", &[lead, m, n, k, over_a, over_b]) => {
            let turned = |rows, columns, over| {
                if over == 1 {
                    (columns, rows)
                } else {
                    (rows, columns)
                }
            };
            let (a, b) = (turned(m, k, over_a), turned(k, n, over_b));
            let (a, b) = (
                Shape::new(&[lead, a.0, a.1])?,
                Shape::new(&[lead, b.0, b.1])?,
            );
            BatchMatMul::new(&a, &b, (over_a == 1, over_b == 1))?.scratch_len()?
        }
        ("attention", &[heads, queries, keys, depth, width]) => {
            attention(heads, (queries, keys), (depth, width)).scratch_len()?
        }
        ("beside", &[examples, heads, queries, keys, depth, width]) => {
            attention(examples * heads, (queries, keys), (depth, width))
                .scratch_len_beside(heads)?
        }
        (
            "plain" | "packed" | "transpose",
            &[
                batch,
                y0,
                y1,
                y2,
                y3,
                y4,
                y5,
                x0,
                x1,
                x2,
                x3,
                x4,
                x5,
                groups,
                inputs,
                outputs,
            ],
        ) => {
            let conv = Conv {
                batch,
                y: window([y0, y1, y2, y3, y4, y5])?,
                x: window([x0, x1, x2, x3, x4, x5])?,
                in_channels: inputs,
                out_channels: outputs,
                groups,
            };
            match kind {
                "transpose" => BackwardInput::new(conv, Filter::Plain(&[])).scratch_len()?,
                "plain" => Forward::new(conv, Filter::Plain(&[])).scratch_len()?,
                _ => packed(&conv, |filter| Forward::new(conv, filter).scratch_len())?,
            }
        }
        ("chain", &[size, taps, stride, dilation, inputs, middle, outputs]) => {
            chain((size, taps, stride, dilation), (inputs, middle, outputs))?
        }
        ("lstm" | "gru" | "gru_before" | "simple", &[is_packed, batch, steps, inputs, units]) => {
            recurrent(kind, is_packed == 1, (batch, steps), (inputs, units))?
        }
        ("solve" | "log_determinant" | "suppress", &[size]) => least(kind, size),
        _ => return Ok(None),
    }))
}

/// The shortest memory that a kernel takes which has one bound and says it by an error alone.
fn least(kind: &str, size: usize) -> usize {
    let mut matrix = vec![0.0; size * size];
    matrix.iter_mut().step_by(size + 1).for_each(|x| *x = 1.0);
    let right = vec![1.0; size];
    let limits = Limits {
        overlap: 0.5,
        score: 0.0,
        in_order: true,
    };
    let takes = |len: usize| {
        let (mut out, mut scratch) = (vec![0.0; size], vec![0.0; len]);
        match kind {
            "solve" => solve((&matrix, size), false, (&right, 1), &mut out, &mut scratch),
            "log_determinant" => {
                let results = (&mut [][..], &mut out[..1]);
                log_determinant(&matrix, size, results, &mut scratch)
            }
            _ => {
                let boxes = vec![0.5; 4 * size];
                suppress((&boxes, &right, size), limits, &mut [0], &mut scratch)
            }
        }
    };
    (0..).find(|&len| takes(len).is_ok()).unwrap_or_default()
}

fn attention<'a>(
    heads: usize,
    (queries, keys): (usize, usize),
    (depth, width): (usize, usize),
) -> Attention<'a> {
    Attention {
        heads,
        queries,
        keys,
        depth,
        width,
        scale: 1.0,
        mask: None,
        causal: false,
    }
}

fn window([input, size, stride, dilation, before, after]: [usize; 6]) -> Result<Window> {
    Window::new(
        input,
        size,
        stride,
        dilation,
        Padding::Explicit(before, after),
    )
}

/// What `ask` says of a filter that is packed for one image.
fn packed(conv: &Conv, ask: impl FnOnce(Filter<'_>) -> Result<usize>) -> Result<usize> {
    let one = Conv { batch: 1, ..*conv };
    let filter = vec![0.5; one.filter_len()];
    let mut memory = vec![0.0; PackedFilter::len(Direction::Forward, &one)?];
    let filter = PackedFilter::pack(Direction::Forward, &one, &filter, &mut memory, &Serial)?;
    ask(Filter::Packed(filter))
}

/// A convolution of one tap, one of each channel, and another of one tap, computed together.
fn chain(
    (size, taps, stride, dilation): (usize, usize, usize, usize),
    (inputs, middle, outputs): (usize, usize, usize),
) -> Result<usize> {
    let square = |axis, in_channels, out_channels, groups| Conv {
        batch: 1,
        y: axis,
        x: axis,
        in_channels,
        out_channels,
        groups,
    };
    let reach = (taps - 1) * dilation;
    let moves = window([size, taps, stride, dilation, reach / 2, reach - reach / 2])?;
    let widen = square(window([size, 1, 1, 1, 0, 0])?, inputs, middle, 1);
    let between = square(moves, middle, middle, middle);
    let narrow = square(window([moves.output, 1, 1, 1, 0, 0])?, middle, outputs, 1);
    let taps = vec![0.5; between.filter_len()];
    packed(&widen, |first| {
        packed(&narrow, |last| {
            let links = [
                Link::Forward(Forward::new(widen, first)),
                Link::Depthwise(Depthwise::new(between), &taps),
                Link::Forward(Forward::new(narrow, last)),
            ];
            Chain { links: &links }.scratch_len()
        })
    })
}

fn recurrent(
    kind: &str,
    is_packed: bool,
    (batch, steps): (usize, usize),
    (inputs, units): (usize, usize),
) -> Result<usize> {
    let gates = match kind {
        "lstm" => 4,
        "simple" => 1,
        _ => 3,
    };
    let walk = Walk {
        batch,
        steps,
        units,
        reverse: false,
        mask: None,
        zero_masked: false,
    };
    let mut rooms: [Vec<f32>; 4] = Default::default();
    let [first, second, third, fourth] = &mut rooms;
    let kernel = factor(is_packed, first, (inputs, gates * units))?;
    let matrix = factor(is_packed, second, (units, gates * units))?;
    let gates = factor(is_packed, third, (units, 2 * units))?;
    let candidate = factor(is_packed, fourth, (units, units))?;
    let (recurrent, bias) = (matrix, None);
    match kind {
        "lstm" => LstmLayer {
            walk,
            kernel,
            recurrent,
            bias,
        }
        .scratch_len(),
        "simple" => SimpleRnnLayer {
            walk,
            kernel,
            recurrent,
            bias,
            activation: Activation::None,
        }
        .scratch_len(),
        _ => GruLayer {
            walk,
            kernel,
            recurrent: match kind {
                "gru" => Reset::After { matrix, bias },
                _ => Reset::Before { gates, candidate },
            },
            bias,
        }
        .scratch_len(),
    }
}

fn factor(
    is_packed: bool,
    room: &mut Vec<f32>,
    (rows, columns): (usize, usize),
) -> Result<Factor<'_>> {
    if !is_packed {
        let plain = Matrix::rows(&[], columns);
        return Ok(Factor::plain(plain, (rows, columns)));
    }
    let plain = vec![0.5; rows * columns];
    room.resize(Packed::len(rows, columns)?, 0.0);
    let plain = Matrix::rows(&plain, columns);
    Ok(Factor::packed(Packed::pack(
        &plain,
        (rows, columns),
        room,
        &Serial,
    )?))
}
